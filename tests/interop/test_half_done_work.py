"""A controller of Kafka 3.9 dies in the middle of a deletion and of a move: ours finishes both, from the tree alone."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from kazoo.client import KazooClient
from tools.kafka_jars import BROKER_39
from tools.ottla_server import ottla_tree

from ottla.client.admin.results import NewTopic
from ottla.client.errors import KafkaError
from ottla.client.sync import Admin
from ottla.coordination.znodes import decode_topic
from ottla.model import TopicPartition
from tests.conftest import found_jars
from tests.interop.ensemble_brokers import KAFKA, OURS, EnsembleBrokers, until

#: With controllers of ours alone: `tests/controller/test_takeover.py`.
pytestmark = [pytest.mark.java, pytest.mark.slow, pytest.mark.timeout(600)]

#: So long that a broker which stands still is still there when a controller gives it work.
SESSION_MS = 15_000
CONTROLLER, ASLEEP, HEIR = 1, 2, 3
MOVING, GOING = "/brokers/topics/moving", "/admin/delete_topics/going"


@contextmanager
def looking(zookeeper: str) -> Iterator[KazooClient]:
    client = KazooClient(hosts=zookeeper)
    client.start(timeout=60)
    try:
        yield client
    finally:
        client.stop()
        client.close()


def test_what_a_controller_of_kafka_3_9_has_begun_is_finished_by_ours(tmp_path: Path) -> None:
    found_jars(BROKER_39)
    with ottla_tree(tmp_path / "tree") as tree, looking(tree.bootstrap) as client:
        kinds = {CONTROLLER: KAFKA, ASLEEP: KAFKA, HEIR: OURS}
        cluster = EnsembleBrokers(tmp_path, tree.bootstrap, kinds, SESSION_MS)
        try:
            cluster.start(first=CONTROLLER)
            with Admin(bootstrap_servers=cluster.brokers[HEIR].bootstrap) as admin:
                assert cluster.controller() == CONTROLLER
                begin(cluster, admin)
                until(lambda: client.exists(GOING) is not None, "the deletion has begun")
                until(lambda: added(client) == (ASLEEP,), "the move has begun")
                # Neither can end: a replica of each does not answer.
                cluster.brokers[CONTROLLER].kill()
                until(lambda: admin.describe_cluster().controller_id == HEIR, "ours is the controller")
                assert client.exists(GOING) is not None
                assert added(client) == (ASLEEP,)
                os.kill(cluster.brokers[ASLEEP].pid, signal.SIGCONT)
                until(lambda: replicas(admin) == {HEIR, ASLEEP}, "the move has ended")
                assert added(client) == ()
                until(lambda: client.exists(GOING) is None, "the deletion has ended")
                assert client.exists("/brokers/topics/going") is None
                until(lambda: not list(tmp_path.glob("logs-[23]/going-*")), "its logs are gone")
                # The dead one is no replica when it comes back. What it has on its disk stays there: Kafka's brokers
                # are told to remove what they have while they live, by controllers of either kind.
                cluster.brokers[CONTROLLER].start()
                until(lambda: len(admin.describe_cluster().brokers) == len(kinds), "all are registered")
                assert replicas(admin) == {HEIR, ASLEEP}
        finally:
            cluster.end()


def begin(cluster: EnsembleBrokers, admin: Admin) -> None:
    placed = {"moving": [HEIR, CONTROLLER], "going": [HEIR, ASLEEP]}
    admin.create_topics([NewTopic(topic, assignments={0: brokers}) for topic, brokers in placed.items()])
    for topic, brokers in placed.items():
        until(lambda t=topic, b=brokers: in_sync(admin, t) == set(b), "both topics are there")  # type: ignore[misc]
    os.kill(cluster.brokers[ASLEEP].pid, signal.SIGSTOP)
    admin.alter_partition_reassignments({TopicPartition("moving", 0): [HEIR, ASLEEP]})
    # It answers when the topic is gone, or with the end of that time.
    with suppress(KafkaError):
        admin.delete_topics(["going"], timeout_ms=2_000)


def in_sync(admin: Admin, topic: str) -> set[int]:
    try:
        (partition,) = admin.describe_topic(topic).partitions
    except KafkaError:
        return set()  # it has not heard of it yet
    return set(partition.isr)


def replicas(admin: Admin) -> set[int]:
    """Where the partition is, once all of these are in sync."""
    (partition,) = admin.describe_topic("moving").partitions
    return set(partition.replicas) if set(partition.isr) == set(partition.replicas) else set()


def added(client: KazooClient) -> tuple[int, ...]:
    """The replicas that the tree says are being added."""
    topic = decode_topic(MOVING, client.get(MOVING)[0])
    return tuple(topic.adding.get(0, ()))
