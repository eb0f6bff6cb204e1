"""The source in a real Spark session: the same rows by both entries, streams with a group, what errors look like."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
from tests.spark.source.conftest import Fill

import ottla.spark
from ottla.client.sync import Admin, Producer
from ottla.model import TopicPartition
from ottla.testing import InProcessBroker

pytestmark = [pytest.mark.xdist_group("spark"), pytest.mark.timeout(600)]  # a JVM starts, on a machine with other work

SECONDS_MAX = 400


def options_for(broker: InProcessBroker, topic: str, **options: Any) -> dict[str, Any]:
    return {"kafka.bootstrap.servers": broker.bootstrap, "subscribe": topic, **options}


def rows_of(frame: Any) -> list[tuple[Any, ...]]:
    """As Python has them, in the order of partitions and offsets."""
    return sorted((tuple(row) for row in frame.collect()), key=lambda row: (row[3], row[4]))


@pytest.fixture
def odd_topic(broker: InProcessBroker, topic: str) -> str:
    """Records with and without keys, values and headers."""
    with Producer(bootstrap_servers=broker.bootstrap) as producer:
        for number in range(9):
            producer.send(
                topic,
                None if number % 4 == 0 else b"v%d" % number,
                key=None if number % 3 == 0 else b"k%d" % number,
                partition=number % 3,
                timestamp=1_700_000_000_123 + number,
                headers=[("trace", b"\xff"), ("kind", None), ("trace", b"")] if number % 2 else None,
            )
    return topic


def test_both_entries_give_the_same_rows(spark: Any, broker: InProcessBroker, odd_topic: str) -> None:
    options = options_for(broker, odd_topic, includeHeaders=True, minPartitions=5)
    loaded = spark.read.format("ottla").options(**options).load()
    read = ottla.spark.read(spark, options)
    assert loaded.schema.simpleString() == (
        "struct<key:binary,value:binary,topic:string,partition:int,offset:bigint,timestamp:timestamp,"
        "timestampType:int,headers:array<struct<key:string,value:binary>>>"
    )
    assert read.schema.simpleString() == loaded.schema.simpleString()
    rows = rows_of(loaded)
    assert rows_of(read) == rows
    assert [(row[3], row[4]) for row in rows] == [(partition, offset) for partition in range(3) for offset in range(3)]
    key, value, topic, partition, offset, at, time_type, headers = rows[4]  # number 4 of all
    assert (key, value, topic, partition, offset, time_type, headers) == (b"k4", None, odd_topic, 1, 1, 0, [])
    assert at.timestamp() == pytest.approx(1_700_000_000.127, abs=0.0005)
    assert [tuple(header) for header in rows[3][7]] == [("trace", b"\xff"), ("kind", None), ("trace", b"")]


def test_columns_and_filters_are_asked_for_early(spark: Any, broker: InProcessBroker, topic: str, fill: Fill) -> None:
    fill(broker.bootstrap, topic, 30)
    few = ottla.spark.read(spark, options_for(broker, topic), columns=["value", "offset"])
    assert few.columns == ["value", "offset"]
    assert few.where("offset = 9").count() == 3
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    try:
        frame = ottla.spark.reader(spark).options(**options_for(broker, topic)).load()
        chosen = frame.where("partition = 1 and offset >= 7 and timestamp >= timestamp'2020-01-01 00:00:00'")
        assert chosen.rdd.getNumPartitions() == 1
        assert sorted(int(row.value) for row in chosen.collect()) == [22, 25, 28]
        younger = frame.where("timestamp > timestamp'2100-01-01 00:00:00'")
        assert (younger.count(), younger.rdd.getNumPartitions()) == (0, 1)  # of no split Spark makes one task
    finally:
        spark.conf.unset("spark.sql.python.filterPushdown.enabled")
    assert ottla.spark.reader(spark).options(**options_for(broker, topic)).load().where("offset > 8").count() == 3


def test_nothing_there_is_no_rows(spark: Any, broker: InProcessBroker, topic: str) -> None:
    assert ottla.spark.read(spark, options_for(broker, topic)).count() == 0
    assert spark.read.format("ottla").options(**options_for(broker, topic)).load().count() == 0


def test_what_is_wrong_is_said_in_the_plan(spark: Any, broker: InProcessBroker, topic: str) -> None:
    for options, said in (
        (options_for(broker, "nowhere"), "topic nowhere does not exist: create it, or change subscribe"),
        (options_for(broker, topic, startingOffset="earliest"), "did you mean startingOffsets?"),
        (options_for(broker, topic, **{"kafka.security.protocol": "SSL"}), "security.protocol SSL is not there yet"),
    ):
        with pytest.raises(Exception, match=r"(?s).*") as failed:
            spark.read.format("ottla").options(**options).load().count()
        assert said in str(failed.value)
    with pytest.raises(Exception, match="column value is binary, not string: leave the schema out"):
        spark.read.format("ottla").schema("value string").options(**options_for(broker, topic)).load().count()


def test_data_that_is_lost_fails_the_job_or_is_left_out(
    spark: Any, broker: InProcessBroker, topic: str, fill: Fill
) -> None:
    fill(broker.bootstrap, topic, 30)
    strict = ottla.spark.read(spark, options_for(broker, topic))
    forgiving = ottla.spark.read(spark, options_for(broker, topic, failOnDataLoss=False))
    with Admin(bootstrap_servers=broker.bootstrap) as admin:
        admin.delete_records({TopicPartition(topic, 1): 4})
    with pytest.raises(Exception, match=f"offsets 0 to 3 of {topic}-1 can no longer be read"):
        strict.count()
    assert forgiving.count() == 26


class Query:
    """A stream into a list, with a checkpoint of its own."""

    def __init__(self, spark: Any, folder: Path, options: dict[str, Any]) -> None:
        self.spark, self.folder, self.options = spark, folder, options
        self.batches: list[list[int]] = []

    def start(self, **trigger: Any) -> Any:
        def take(frame: Any, _: int) -> None:
            self.batches.append(sorted(int(row.value) for row in frame.select("value").collect()))

        stream = self.spark.readStream.format("ottla").options(**self.options).load()
        writer = stream.writeStream.option("checkpointLocation", str(self.folder)).trigger(**trigger)
        return writer.foreachBatch(take).start()

    def run(self) -> Any:
        query = self.start(availableNow=True)
        assert query.awaitTermination(SECONDS_MAX)
        return query

    @property
    def seen(self) -> list[int]:
        return sorted(number for batch in self.batches for number in batch)


def committed(broker: InProcessBroker, group: str, topic: str) -> int:
    with Admin(bootstrap_servers=broker.bootstrap) as admin:
        found = admin.list_group_offsets(group)
    return sum(one.offset for tp, one in found.items() if tp.topic == topic)


def wait_for(condition: Any) -> None:
    deadline = time.monotonic() + SECONDS_MAX
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_a_stream_with_a_group(spark: Any, broker: InProcessBroker, topic: str, fill: Fill, tmp_path: Path) -> None:
    group = f"group-of-{topic}"
    options = options_for(
        broker, topic, startingOffsets="earliest", maxOffsetsPerTrigger=12, **{"kafka.group.id": group}
    )
    fill(broker.bootstrap, topic, 30)
    tracked = ottla.spark.track(spark)
    try:
        query = Query(spark, tmp_path / "checkpoint", options)
        done = query.run()
        assert query.seen == list(range(30))
        assert [len(batch) for batch in query.batches] == [12, 12, 6]
        # Also the last batch, which Spark itself never commits.
        wait_for(lambda: committed(broker, group, topic) == 30)
        shown = done.lastProgress["sources"][0]
        assert json.loads(shown["latestOffset"])[topic] == {"0": 10, "1": 10, "2": 10}
        fill(broker.bootstrap, topic, 5, first=30)
        query.run()
        assert query.seen == list(range(35))
        wait_for(lambda: committed(broker, group, topic) == 35)
    finally:
        tracked.stop()


@pytest.mark.slow
def test_a_stream_that_goes_on(spark: Any, broker: InProcessBroker, topic: str, fill: Fill, tmp_path: Path) -> None:
    """Begins at the end; the broker is stopped and started, and the query again from its checkpoint."""
    fill(broker.bootstrap, topic, 3, first=1000)
    query = Query(spark, tmp_path / "checkpoint", options_for(broker, topic))
    running = query.start(processingTime="0 seconds")
    wait_for(lambda: query.batches)  # an empty one: where the query begins
    assert query.seen == []
    fill(broker.bootstrap, topic, 30)
    wait_for(lambda: len(query.seen) == 30)
    broker.restart()
    fill(broker.bootstrap, topic, 30, first=30)
    wait_for(lambda: len(query.seen) == 60)
    running.stop()
    fill(broker.bootstrap, topic, 30, first=60)
    again = query.start(processingTime="0 seconds")
    wait_for(lambda: len(set(query.seen)) == 90)
    again.stop()
    assert sorted(set(query.seen)) == list(range(90))
