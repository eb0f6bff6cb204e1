"""Three brokers, one of which is killed in the middle of a micro-batch: every row once, and nothing hangs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pytest
from tests.spark.sink.exactly_once.query import TASKS, Query, lines

import ottla.testing
from ottla.client import sync
from ottla.client.sync.loop_thread import LoopThread
from ottla.spark.sink.clients import KeptClients
from ottla.spark.sink.entries import LEDGER_TOPIC
from ottla.spark.sink.exactly_once.effects import Commit, Describe, Effect, Event, Fence, FindStrays, ReadLedger, Write
from ottla.spark.sink.exactly_once.naming import driver_id, task_id
from ottla.testing import Cluster

#: One broker shows in `./test` what needs no second one (`test_committing.py`), and what leaders' deaths do to a sink.
pytestmark = pytest.mark.slow

TOPIC = "rows"
#: So many are killed while tasks write.
LEADERS = 6
REPLICAS = 3
#: Behind which of the driver's steps.
STEPS = (Fence, ReadLedger, Describe, Write, Commit, FindStrays)


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with ottla.testing.cluster(REPLICAS, properties={"min.insync.replicas": "2"}) as made:
        made.create_topic(TOPIC, partitions=2, replication_factor=REPLICAS)
        yield made


@pytest.fixture(scope="module")
def query(cluster: Cluster) -> Iterator[Query]:
    worker = KeptClients(LoopThread("test"))
    yield Query(cluster.bootstrap, TOPIC, worker)
    worker.close()


def coordinator(query: Query, transactional_id: str) -> int:
    with sync.Admin(query.settings) as admin:
        found = admin.describe_transactions([transactional_id])[transactional_id].coordinator
    assert found is not None
    return found.id


def leader_of_rows(cluster: Cluster, query: Query) -> int:
    return cluster.until_led(TOPIC, 1)


def leader_of_the_ledger(cluster: Cluster, query: Query) -> int:
    return cluster.until_led(LEDGER_TOPIC)


def drivers_coordinator(cluster: Cluster, query: Query) -> int:
    return coordinator(query, driver_id(query.topic))


def tasks_coordinator(cluster: Cluster, query: Query) -> int:
    return coordinator(query, task_id(query.topic, query.run, 0))


Victim = Callable[[Cluster, Query], int]
VICTIMS: tuple[Victim, ...] = (leader_of_rows, leader_of_the_ledger, drivers_coordinator, tasks_coordinator)


def next_batch(cluster: Cluster, query: Query) -> int:
    """When all brokers are there again, and in sync."""
    entry = query.entry()
    for topic in (TOPIC, LEDGER_TOPIC, "__transaction_state"):
        if topic == TOPIC or entry is not None:
            cluster.until_in_sync(topic)
    return 0 if entry is None else entry.batch + 1


@pytest.mark.timeout(300)
def test_a_leader_is_killed_while_a_task_writes(cluster: Cluster, query: Query) -> None:
    for _ in range(LEADERS):
        batch = next_batch(cluster, query)

        def rows(batch: int = batch) -> Iterator[Any]:
            for row in range(4):
                if row == 2:
                    cluster.kill(leader_of_rows(cluster, query))
                yield pa.record_batch({"value": [b"%d 0 %d" % (batch, row)]})

        reports = [query.written(batch, 0, rows()), *(query.report(batch, task) for task in range(1, TASKS))]
        query.commit(batch, reports)
        assert query.seen() == lines(*range(batch + 1))
    assert query.open() == []


@pytest.mark.timeout(300)
@pytest.mark.parametrize("victim", VICTIMS)
@pytest.mark.parametrize("step", STEPS)
def test_a_broker_is_killed_behind_a_step(cluster: Cluster, query: Query, step: type[Effect], victim: Victim) -> None:
    batch = next_batch(cluster, query)
    killed: list[int] = []

    def kill(effect: Effect, event: Event) -> bool:
        if isinstance(effect, step) and not killed:
            killed.append(victim(cluster, query))
            cluster.kill(killed[0])
        return False

    query.commit(batch, query.whole(batch), kill)
    assert killed
    assert query.seen() == lines(*range(batch + 1))
    assert query.open() == []
