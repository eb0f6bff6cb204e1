"""A shop: orders and clicks to tables, and what each page has sold to a topic (docs/shop.md)."""

from pyspark.sql import functions as F

from ottla.pipeline import decode_json, expect, expect_on_time, expect_or_drop, read_stream, read_topic, sink, table


@table(retain="30d")
def records():
    """Bronze: both topics as they came."""
    return read_topic("orders", "clicks")


@table(time="at")
@expect("has a customer", "customer IS NOT NULL")
@expect_or_drop("positive amount", "amount > 0")
def orders():
    """Silver: decoded and checked. Bad records go to orders-dlq."""
    rows = read_stream("records").where("topic = 'orders'")
    return decode_json(rows, "id BIGINT, customer STRING, amount DOUBLE, at TIMESTAMP")


@table(time="at")
@expect_or_drop("has a page", "page IS NOT NULL")
@expect_on_time("at", "1h")
def clicks():
    """Silver: bad and late records go to clicks-dlq."""
    rows = read_stream("records").where("topic = 'clicks'")
    return decode_json(rows, "customer STRING, page STRING, at TIMESTAMP")


@table(time="ordered_at")
def sold():
    """Silver: each order with the pages that its customer had looked at in the half hour before."""
    ordered = read_stream("orders").select("id", "customer", "amount", F.col("at").alias("ordered_at"))
    clicked = read_stream("clicks").select(F.col("customer").alias("who"), "page", F.col("at").alias("clicked_at"))
    near = "who = customer AND clicked_at BETWEEN ordered_at - INTERVAL 30 MINUTES AND ordered_at"
    ordered = ordered.withWatermark("ordered_at", "1 hour")
    return ordered.join(clicked.withWatermark("clicked_at", "1 hour"), F.expr(near)).drop("who")


@table(keys=["window", "page"])
def sales():
    """Gold: what was ordered in each hour behind a look at a page."""
    rows = read_stream("sold").withWatermark("ordered_at", "1 hour")
    hours = rows.groupBy(F.window("ordered_at", "1 hour"), "page")
    return hours.agg(F.count("*").alias("orders"), F.sum("amount").alias("amount"))


@sink(topic="sales")
def sales_out():
    """Each of these rows when it has changed."""
    row = "to_json(struct(page, window.start AS hour, orders, amount))"
    return read_stream("sales").selectExpr("page AS key", f"{row} AS value")
