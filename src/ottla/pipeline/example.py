"""What `ottla pipeline init` writes: the example of docs/pipelines.md."""

from __future__ import annotations

from typing import Final

TEXT: Final = '''\
"""Orders: from a topic to tables, and the totals to a topic."""

from pyspark.sql import functions as F

from ottla.pipeline import decode_json, expect, expect_or_drop, read_stream, read_topic, sink, table


@table(retain="30d")
def orders_raw():
    """Bronze: records as they came, with topic, partition, offset and timestamp."""
    return read_topic("orders")


@table
@expect("has a customer", "customer IS NOT NULL")
@expect_or_drop("positive amount", "amount > 0")
def orders():
    """Silver: decoded and checked. Bad records go to the topic orders-dlq."""
    return decode_json(read_stream("orders_raw"), "id BIGINT, customer STRING, amount DOUBLE")


@table(keys=["window", "customer"])
def totals():
    """Gold: what each customer has ordered in each hour."""
    rows = read_stream("orders").withWatermark("timestamp", "1 day")
    hours = rows.groupBy(F.window("timestamp", "1 hour"), "customer")
    return hours.agg(F.sum("amount").alias("amount"), F.count("*").alias("orders"))


@sink(topic="order-totals")
def totals_out():
    """Each total that has changed."""
    return read_stream("totals").selectExpr("customer AS key", "to_json(struct(*)) AS value")
'''
