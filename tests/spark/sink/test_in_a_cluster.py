"""The sink and its ledger on three brokers, while leaders are killed: no row lost, none twice, none out of order."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from tests.client.reading import read_all
from tests.spark.sink.conftest import frame

import ottla.testing
from ottla.client import sync
from ottla.client.admin.results import ConfigResource
from ottla.spark.sink import batch_writer
from ottla.spark.sink.entries import LEDGER_TOPIC
from ottla.spark.sink.ledger import Ledger
from ottla.testing import Cluster

TOPIC = "rows"
BATCHES = 12
ROWS = 1000


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with ottla.testing.cluster(3, properties={"min.insync.replicas": "2"}) as made:
        made.create_topic(TOPIC, partitions=1, replication_factor=3)
        yield made


@pytest.mark.timeout(300)
def test_leaders_are_killed_and_moved_while_a_task_writes(cluster: Cluster) -> None:
    bootstrap = cluster.bootstrap

    def batches() -> Iterator[Any]:
        for number in range(BATCHES):
            if number in {2, 7}:
                cluster.kill_leader(TOPIC)  # it comes back by itself
            elif number in {4, 9}:
                cluster.move_leader(TOPIC)
            yield pa.record_batch({"value": [b"%d" % n for n in range(number * ROWS, (number + 1) * ROWS)]})

    options = {"kafka.bootstrap.servers": bootstrap, "topic": TOPIC, "kafka.batch.size": "2000"}
    report = batch_writer(frame("value binary"), False, options).write(batches())
    assert report.rows == BATCHES * ROWS  # type: ignore[attr-defined]
    assert [int(one.value or b"") for one in asyncio.run(read_all(bootstrap, TOPIC))] == list(range(BATCHES * ROWS))
    _the_ledger_outlives_its_leader(cluster)


def _everybody_knows_all(cluster: Cluster) -> bool:
    """The ledger's topic has as many replicas as brokers are there, as the broker says that is asked."""
    for address in cluster.addresses.values():
        with sync.Admin(bootstrap_servers=address) as admin:
            if len(admin.describe_cluster().brokers) < len(cluster.addresses):
                return False
    return True


def _the_ledger_outlives_its_leader(cluster: Cluster) -> None:
    cluster.until_heard(TOPIC)
    cluster.until(lambda: _everybody_knows_all(cluster))

    async def through_it() -> list[int]:
        ledger = Ledger({"bootstrap.servers": cluster.bootstrap}, "q")
        known = []
        for batch in range(4):
            await ledger.finish("id", batch, 1)
            if batch == 1:
                await asyncio.to_thread(cluster.kill_leader, LEDGER_TOPIC)
            entry = await ledger.entry()
            assert entry is not None
            known.append(entry.batch)
        await ledger.close()
        return known

    assert asyncio.run(through_it()) == [0, 1, 2, 3]
    cluster.until_heard(LEDGER_TOPIC)
    with sync.Admin(bootstrap_servers=cluster.bootstrap) as admin:
        assert len(admin.describe_topic(LEDGER_TOPIC).partitions[0].replicas) == 3
        resource = ConfigResource.topic(LEDGER_TOPIC)
        assert admin.describe_configs([resource])[resource]["min.insync.replicas"].value == "2"
