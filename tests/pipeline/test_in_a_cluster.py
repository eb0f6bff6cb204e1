"""A pipeline on three brokers, of which leaders are killed while it runs: rows once, dead letters and a topic whole."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.pipeline.conftest import Pipeline

import ottla.testing
from ottla.pipeline.tables.log import TableLog
from ottla.spark.sink.clients import close_kept_clients
from ottla.spark.sink.entries import LEDGER_TOPIC
from ottla.spark.source.links import close_links
from ottla.testing import Cluster

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("spark"), pytest.mark.timeout(1800)]

RECORDS_A_KILL = 100
SECONDS_MAX = 900.0
FILE = """
@table
def raw():
    return read_topic("TOPIC", maxOffsetsPerTrigger=20)

@table
@expect_or_drop("positive", "amount > 0")
def orders():
    return decode_json(read_stream("raw"), "id INT, amount INT")

@sink(topic="TOPIC-out")
def out():
    return read_stream("orders").selectExpr("CAST(id AS STRING) AS value")
"""


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    properties = {"min.insync.replicas": "2", "default.replication.factor": "3"}
    with ottla.testing.cluster(3, properties=properties) as made:
        yield made
        close_links()
        close_kept_clients()


class Killing:
    """Kills the leader of one topic after the other, each time in the middle of what has just been sent."""

    def __init__(self, pipeline: Pipeline, cluster: Cluster) -> None:
        self.pipeline = pipeline
        self.cluster = cluster
        self.sent = 0
        topic = pipeline.topic
        self._left = [topic, f"{topic}-dlq", f"{topic}-out", LEDGER_TOPIC]
        self.killed: list[str] = []
        self._give_up = time.monotonic() + SECONDS_MAX
        self._orders = TableLog(pipeline.places.table("orders"))
        self._send()

    def ends(self) -> bool:
        """Called again and again while the pipeline runs; whether it may end."""
        assert time.monotonic() < self._give_up, self.killed
        written = self._orders.state().counts.get("in", 0)
        if not self._left:
            return written == self.sent and self.values(f"{self.pipeline.topic}-out") == self.good()
        if written > self.sent - RECORDS_A_KILL // 2:
            self._send()
            self.killed.append(self._left.pop(0))
            self.cluster.kill_leader(self.killed[-1])  # it comes back by itself
        return False

    def _send(self) -> None:
        ids = range(self.sent, self.sent + RECORDS_A_KILL)
        self.pipeline.send(*({"id": number, "amount": number % 10} for number in ids))
        self.sent += RECORDS_A_KILL

    def good(self) -> set[bytes]:
        return {b"%d" % number for number in range(self.sent) if number % 10}

    def values(self, topic: str) -> set[Any]:
        return {one.value for one in self.pipeline.records(topic)}


def test_leaders_are_killed_while_a_pipeline_runs(
    spark: Any, kept_settings: None, cluster: Cluster, tmp_path: Path
) -> None:
    pipeline = Pipeline(spark, cluster, tmp_path)
    cluster.create_topic(f"{pipeline.topic}-out", partitions=2)
    pipeline.define(FILE)
    killing = Killing(pipeline, cluster)
    pipeline.run().stream(0.0, killing.ends)

    raw = pipeline.rows("raw", "CAST(value AS STRING)")
    assert len(raw) == len(set(raw)) == killing.sent
    good = [number for number in range(killing.sent) if number % 10]
    assert pipeline.rows("orders", "id") == sorted(((number,) for number in good), key=repr)
    letters = killing.values(f"{pipeline.topic}-dlq")
    assert letters == {b'{"id": %d, "amount": 0}' % number for number in range(0, killing.sent, 10)}
    assert len(killing.killed) == 4
