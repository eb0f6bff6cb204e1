"""A pipeline over Apache Kafka, on both sides: tables, dead letters and their replay, a topic in Avro, a backfill."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.interop.broker import Broker
from tests.pipeline.conftest import Pipeline
from tests.spark.source.test_in_spark import committed

from ottla.client.sync import Admin
from ottla.formats import decoder
from ottla.pipeline.backfill import Range, backfill
from ottla.pipeline.replay import replay
from ottla.spark.sink.clients import close_kept_clients
from ottla.spark.source.links import close_links

pytestmark = [pytest.mark.slow, pytest.mark.java, pytest.mark.xdist_group("spark"), pytest.mark.timeout(1800)]

RECORDS = 50
#: All in one window.
TIME = 1_700_000_000_000
SCHEMA = {
    "type": "record",
    "name": "Order",
    "fields": [{"name": "id", "type": "long"}, {"name": "amount", "type": "double"}],
}
FILE = """
@table
def raw():
    return read_topic("TOPIC", maxOffsetsPerTrigger=20)

@table
@expect_or_drop("positive", "amount > 0")
def orders():
    return decode_json(read_stream("raw"), "id BIGINT, amount DOUBLE")

@table(keys=["window", "half"])
def totals():
    rows = read_stream("orders").withWatermark("timestamp", "1 day")
    halves = rows.groupBy(F.window("timestamp", "1 hour"), (F.col("id") % 2).alias("half"))
    return halves.agg(F.sum("amount").alias("amount"))

@sink(topic="TOPIC-out", options={"value_as": "avro:AVSC"})
def out():
    return read_stream("orders").selectExpr("struct(id, amount) AS value")

@sink(topic="TOPIC-gold-avro", options={"value_as": "avro:GOLD"})
def gold_in_avro():
    return read_stream("totals").selectExpr("struct(half, amount) AS value")

@sink(topic="TOPIC-gold-protobuf", options={"value_as": "protobuf:PROTO#Total"})
def gold_in_protobuf():
    return read_stream("totals").selectExpr("struct(half, amount) AS value")
"""
GOLD = {**SCHEMA, "name": "Total", "fields": [{"name": "half", "type": "long"}, {"name": "amount", "type": "double"}]}
PROTO = 'syntax = "proto3";\nmessage Total { int64 half = 1; double amount = 2; }\n'


class KafkaTopics:
    """As much of a broker as a pipeline's test asks for."""

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap

    def create_topic(self, name: str, partitions: int = 1) -> None:
        with Admin(bootstrap_servers=self.bootstrap) as admin:
            admin.create_topic(name, partitions, 1)


@pytest.fixture
def kafka(apache_kafka: Broker) -> Iterator[KafkaTopics]:
    yield KafkaTopics(apache_kafka.bootstrap)
    close_links()
    close_kept_clients()


def test_a_pipeline_from_kafka_to_kafka(spark: Any, kept_settings: None, kafka: KafkaTopics, tmp_path: Path) -> None:
    schema = tmp_path / "order.avsc"
    schema.write_text(json.dumps(SCHEMA))
    pipeline = Pipeline(spark, kafka, tmp_path)
    (tmp_path / "gold.avsc").write_text(json.dumps(GOLD))
    (tmp_path / "gold.proto").write_text(PROTO)
    gold = {"avro": f"avro:{tmp_path / 'gold.avsc'}", "protobuf": f"protobuf:{tmp_path / 'gold.proto'}#Total"}
    for name in ("out", *(f"gold-{one}" for one in gold)):
        kafka.create_topic(f"{pipeline.topic}-{name}")
    text = FILE.replace("AVSC", str(schema)).replace("GOLD", str(tmp_path / "gold.avsc"))
    pipeline.define(text.replace("PROTO", str(tmp_path / "gold.proto")))
    good = [number for number in range(RECORDS) if number % 10]
    halves = [(half, float(sum(number % 10 for number in good if number % 2 == half))) for half in (0, 1)]

    def check(raw: int, letters: int) -> None:
        assert len(pipeline.rows("raw", "offset")) == raw
        assert pipeline.rows("orders", "id") == sorted(((number,) for number in good), key=repr)
        assert pipeline.rows("totals", "half", "amount") == halves
        values = pa.array([one.value for one in pipeline.records(f"{pipeline.topic}-out")])
        column, errors = decoder(f"avro:{schema}").decode(values)
        assert sorted(one["id"] for one in column.to_pylist()) == good
        assert errors.null_count == len(values)
        for name, spec in gold.items():
            sent = pa.array([one.value for one in pipeline.records(f"{pipeline.topic}-gold-{name}")])
            totals, errors = decoder(spec).decode(sent)
            assert errors.null_count == len(sent)
            assert sorted({one["half"]: one["amount"] for one in totals.to_pylist()}.items()) == halves
        assert len(pipeline.records(f"{pipeline.topic}-dlq")) == letters
        assert committed(kafka, "shop.raw", pipeline.topic) == raw

    pipeline.send(*({"id": number, "amount": number % 10} for number in range(RECORDS)), b"junk", timestamp=TIME)
    bad = RECORDS - len(good) + 1
    pipeline.catch_up()
    check(RECORDS + 1, bad)
    backfill(pipeline.run(), Range(0, 2 * TIME))
    check(RECORDS + 1, bad)
    assert replay(pipeline.topic, {"bootstrap.servers": kafka.bootstrap}, pipeline.places, pipeline="shop").sent == bad
    pipeline.catch_up()
    check(RECORDS + 1 + bad, 2 * bad)
