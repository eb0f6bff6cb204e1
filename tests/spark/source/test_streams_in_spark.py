"""Streams in a real Spark session: the consumer's rows, what bounds a micro-batch, and a group without a listener."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.client.reading import read_all
from tests.spark.source.conftest import Fill

from ottla.client.sync import Admin, Producer
from ottla.testing import InProcessBroker

pytestmark = [
    pytest.mark.slow,
    pytest.mark.xdist_group("spark"),
    pytest.mark.timeout(900),  # a JVM starts, on a machine with other work
]

SECONDS_MAX = 400
DATES = "spark.sql.streaming.noDataProgressEventInterval"


class Query:
    """A stream of rows into a list, micro-batch by micro-batch."""

    def __init__(self, spark: Any, broker: InProcessBroker, topic: str, folder: Path, **options: Any) -> None:
        self.spark, self.folder = spark, folder
        self.options = {
            "kafka.bootstrap.servers": broker.bootstrap,
            "subscribe": topic,
            "startingOffsets": "earliest",
            **options,
        }
        self.batches: list[list[Any]] = []

    def start(self, **trigger: Any) -> Any:
        def take(frame: Any, _: int) -> None:
            self.batches.append(frame.collect())

        stream = self.spark.readStream.format("ottla").options(**self.options).load()
        writer = stream.writeStream.option("checkpointLocation", str(self.folder)).trigger(**trigger)
        return writer.foreachBatch(take).start()

    def run(self) -> None:
        assert self.start(availableNow=True).awaitTermination(SECONDS_MAX)

    @property
    def rows(self) -> list[Any]:
        return [row for batch in self.batches for row in batch]

    @property
    def sizes(self) -> list[int]:
        return [len(batch) for batch in self.batches]


def wait_for(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + SECONDS_MAX
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def as_the_consumer_has_it(row: Any) -> tuple[Any, ...]:
    """Topic, partition, offset, key, value, type of time, milliseconds, headers."""
    key, value, topic, partition, offset, at, time_type, headers = row
    named = tuple((one["key"], one["value"]) for one in headers)
    return topic, partition, offset, key, value, time_type, round(at.timestamp() * 1000), named


def test_rows_are_the_consumers_in_bounded_batches(
    spark: Any, broker: InProcessBroker, topic: str, tmp_path: Path
) -> None:
    """Of times of both types, with a transaction that was aborted; without a listener a group is a batch behind."""
    stamped = f"{topic}-stamped"
    broker.create_topic(stamped, 1, {"message.timestamp.type": "LogAppendTime"})
    with Producer(bootstrap_servers=broker.bootstrap, batch_size=2_000) as producer:
        for number in range(120):
            producer.send(
                stamped if number % 4 == 0 else topic,
                None if number % 11 == 0 else b"v%d" % number * 20,
                key=None if number % 5 == 0 else b"k%d" % (number % 7),
                partition=0 if number % 4 == 0 else number % 3,
                timestamp=1_700_000_000_000 + 7 * number % 100,
                headers=[("trace", b"\xff"), ("kind", None), ("trace", b"")] if number % 2 else None,
            )
    with Producer(bootstrap_servers=broker.bootstrap, transactional_id=topic) as writer:
        writer.init_transactions()
        for value in (b"aborted", b"committed"):
            writer.begin()
            for partition in range(3):
                writer.send(topic, value, partition=partition)
            writer.flush()
            (writer.abort if value == b"aborted" else writer.commit)()
    wanted = [
        (one.topic, one.partition, one.offset, one.key, one.value, one.timestamp_type, one.timestamp, one.headers)
        for name in (topic, stamped)
        for one in asyncio.run(read_all(broker.bootstrap, name, isolation_level="read_committed"))
    ]
    options = {
        "includeHeaders": True,
        "kafka.isolation.level": "read_committed",
        "maxBytesPerTrigger": 3_000,
        "groupIdPrefix": f"group-of-{topic}",
    }
    query = Query(spark, broker, f"{topic},{stamped}", tmp_path / "checkpoint", **options)
    query.run()
    assert sorted(map(as_the_consumer_has_it, query.rows)) == sorted(wanted)
    assert {one[5] for one in wanted} == {0, 1}
    assert len(wanted) == 123
    assert len(query.batches) > 2, "Spark asks the reader for its limit, and hands it back"

    with Admin(bootstrap_servers=broker.bootstrap) as admin:
        (group,) = [one.group_id for one in admin.list_groups() if one.group_id.startswith(f"group-of-{topic}-")]
        committed = {(tp.topic, tp.partition): one.offset for tp, one in admin.list_group_offsets(group).items()}
    behind = {(row.topic, row.partition, row.offset) for row in query.batches[-1]}
    assert behind == {place[:3] for place in wanted if place[2] >= committed[place[0], place[1]]}

    again = Query(
        spark,
        broker,
        f"{topic},{stamped}",
        tmp_path / "another",
        startingOffsets="group",
        **{"kafka.group.id": group, "kafka.isolation.level": "read_committed"},
    )
    again.run()
    assert {(row.topic, row.partition, row.offset) for row in again.rows} == behind


def test_a_micro_batch_waits_for_offsets_and_no_longer_than_was_said(
    spark: Any, broker: InProcessBroker, topic: str, fill: Fill, tmp_path: Path
) -> None:
    fill(broker.bootstrap, topic, 5)
    query = Query(spark, broker, topic, tmp_path / "checkpoint", minOffsetsPerTrigger=20, maxTriggerDelay="1h")
    spark.conf.set(DATES, "0")  # progress of queries that wait is reported each time that they look
    try:
        running = query.start(processingTime="0 seconds")
        wait_for(lambda: query.sizes == [5])  # the first one does not wait
        fill(broker.bootstrap, topic, 10, first=5)
        wait_for(lambda: _seen(running, topic) == 15)
        assert query.sizes == [5]
        fill(broker.bootstrap, topic, 10, first=15)
        wait_for(lambda: len(query.sizes) > 1)
        assert query.sizes == [5, 20]
        running.stop()
    finally:
        spark.conf.unset(DATES)
    query.options["maxTriggerDelay"] = "1s"
    running = query.start(processingTime="0 seconds")
    for first in (25, 28):
        fill(broker.bootstrap, topic, 3, first=first)
        wait_for(lambda first=first: sum(query.sizes) == first + 3)
    running.stop()
    assert sorted(int(row.value) for row in query.rows) == list(range(31))


def _seen(running: Any, topic: str) -> int:
    """How many records there are by the last look of a query that reads nothing."""
    shown = running.lastProgress
    if shown is None or shown["numInputRows"] or not shown["sources"][0]["latestOffset"]:
        return 0
    return sum(json.loads(shown["sources"][0]["latestOffset"])[topic].values())
