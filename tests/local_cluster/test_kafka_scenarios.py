"""Kafka's own system tests of replication, over processes: brokers are stopped and killed while producers write.

As kafkatest's ReplicationTest: the leader of a partition, or the controller, cleanly or hard, again and again. And its
ReassignPartitionsTest: partitions move while all brokers are bounced. What was acknowledged is there once, and the logs
of all replicas are the same bytes at the end.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Self

import pytest

import ottla.testing
from ottla.client.errors import UnknownTopicOrPartition
from ottla.client.sync import Admin, Consumer, Producer
from ottla.model import TopicPartition
from ottla.testing.processes import Cluster

PARTITIONS = 3
SECONDS_MAX = 120.0
#: Of a producer: enough that some are under way whatever happens, and few enough for two cores.
PAUSE_S = 0.002


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    # Of two replicas the second to stop has nobody to hand over to, and would wait for a while before it stops.
    # What has moved stays there until somebody has looked: no leader goes back by itself.
    properties = {"replica.lag.time.max.ms": "3000", "auto.leader.rebalance.enable": "false"}
    with ottla.testing.cluster(3, properties=properties) as running:
        yield running


class Load:
    """A producer that goes on until it is stopped."""

    def __init__(self, cluster: Cluster, topic: str) -> None:
        self._cluster = cluster
        self._topic = topic
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)
        #: How many so far.
        self.sent = 0
        self.acknowledged: list[bytes] = []
        self.fault: BaseException | None = None

    def _run(self) -> None:
        waiting = []
        try:
            with Producer(
                bootstrap_servers=self._cluster.bootstrap, acks="all", delivery_timeout_ms=90_000
            ) as producer:
                while not self._stop.wait(PAUSE_S):
                    value = b"%d" % self.sent
                    waiting.append((value, producer.send(self._topic, value, partition=self.sent % PARTITIONS)))
                    self.sent += 1
                for value, delivery in waiting:
                    delivery.result(SECONDS_MAX)
                    self.acknowledged.append(value)
        except BaseException as fault:  # the test raises it
            self.fault = fault

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        if self.fault is not None:
            raise self.fault


def check(cluster: Cluster, topic: str, acknowledged: list[bytes]) -> None:
    """All of them once, each partition's in the order in which they were sent."""
    found: dict[int, list[int]] = {number: [] for number in range(PARTITIONS)}
    with Consumer(bootstrap_servers=cluster.bootstrap, auto_offset_reset="earliest") as consumer:
        places = [(topic, number) for number in range(PARTITIONS)]
        consumer.assign(places)
        count = sum(consumer.end_offsets(places).values())
        while sum(map(len, found.values())) < count:
            for record in consumer.poll(timeout_ms=1_000):
                assert record.value is not None
                found[record.partition].append(int(record.value))
    for number, values in found.items():
        assert values == [int(value) for value in acknowledged if int(value) % PARTITIONS == number]


def check_logs(cluster: Cluster, topic: str, partitions: int = PARTITIONS, replicas: int = 3) -> None:
    """Byte for byte, once nobody writes any more."""

    def are_equal() -> bool:
        for number in range(partitions):
            logs = [
                b"".join(segment.read_bytes() for segment in sorted(folder.glob("*.log")))
                for folder in Path(cluster.data).glob(f"*/{topic}-{number}")
            ]
            if len(logs) != replicas or len(set(logs)) != 1 or not logs[0]:
                return False
        return True

    cluster.until(are_equal)


def controller_of(cluster: Cluster) -> int:
    with Admin(bootstrap_servers=cluster.bootstrap) as admin:
        found = admin.describe_cluster().controller_id
    assert found is not None
    return int(found)


@contextmanager
def moved(cluster: Cluster, topic: str, who: str, broker: int) -> Iterator[None]:
    """Until another broker is what this one was."""
    yield
    if who == "leader":
        others = [one for one in cluster.addresses if one != broker]
        cluster.until(lambda: cluster.leader(topic, 0, asked=others) not in (-1, broker))
    else:
        cluster.until(lambda: controller_of(cluster) != broker)


@pytest.mark.in_turns
@pytest.mark.parametrize("times", [1, pytest.param(5, marks=pytest.mark.slow)])
@pytest.mark.parametrize("who", ["leader", "controller"])
@pytest.mark.parametrize("how", ["clean", "hard"])
def test_replication_with_broker_failure(cluster: Cluster, how: str, who: str, times: int) -> None:
    """clean_bounce and hard_bounce of kafkatest, which does it five times; what is stopped comes back."""
    topic = f"{how}-{who}-{times}"
    cluster.create_topic(topic, partitions=PARTITIONS)
    with Load(cluster, topic) as load:
        for _ in range(times):
            broker = cluster.until_led(topic, 0) if who == "leader" else controller_of(cluster)
            with moved(cluster, topic, who, broker):
                if how == "clean":
                    cluster.restart(broker)
                else:
                    cluster.kill(broker)
            cluster.until_in_sync(topic)
        cluster.until(lambda: load.sent > 100 or load.fault is not None)
    assert len(load.acknowledged) > 100
    check(cluster, topic, load.acknowledged)
    check_logs(cluster, topic)


@pytest.mark.slow
def test_reassign_partitions_while_brokers_are_bounced(cluster: Cluster) -> None:
    """Two replicas each move on by one broker while each broker is started again, one after the other."""
    topic = "moves"
    cluster.create_topic(topic, partitions=PARTITIONS, replication_factor=2)
    with Admin(bootstrap_servers=cluster.bootstrap) as admin, Load(cluster, topic) as load:
        targets = {
            TopicPartition(topic, one.partition): sorted({broker % 3 + 1 for broker in one.replicas})
            for one in admin.describe_topic(topic).partitions
        }
        admin.alter_partition_reassignments(targets)
        for broker in cluster.addresses:
            cluster.restart(broker)
            cluster.until(lambda: all(map(cluster.is_serving, cluster.addresses)))
        cluster.until(lambda: not admin.list_partition_reassignments())
        # Whoever is asked may not have heard yet.
        wanted = [targets[tp] for tp in sorted(targets)]
        cluster.until(lambda: [sorted(one.replicas) for one in admin.describe_topic(topic).partitions] == wanted)
        cluster.until_in_sync(topic)
    check(cluster, topic, load.acknowledged)


def test_logs_do_not_diverge_on_unclean_leader_elections(cluster: Cluster) -> None:
    """EpochDrivenReplicationProtocolAcceptance, over processes: one replica has written what the other never had; the
    other leads uncleanly and writes as well. The first gives up what it had alone, and offsets go on behind the cut.
    """
    topic = "unclean"
    cluster.create_topic(
        topic, replication_factor=2, configs={"unclean.leader.election.enable": "true", "min.insync.replicas": "1"}
    )
    cluster.until(lambda: all(len(state(address, topic)[1]) == 2 for address in cluster.addresses.values()))
    first, isr = state(cluster.addresses[1], topic)
    assert first is not None
    (second,) = set(isr) - {first}
    (third,) = set(cluster.addresses) - {first, second}
    # Whoever is paused is not asked: that would wait until its time is up.
    at = cluster.addresses[third]
    write(at, topic, "common")
    cluster.pause(second)
    cluster.until(lambda: state(at, topic) == (first, (first,)))
    write(at, topic, "first alone")
    cluster.pause(first)
    cluster.resume(second)
    cluster.until(lambda: state(at, topic)[0] == second)
    write(at, topic, "second")
    cluster.resume(first)
    cluster.until(lambda: len(state(at, topic)[1]) == 2)
    check_logs(cluster, topic, partitions=1, replicas=2)
    with Consumer(bootstrap_servers=cluster.bootstrap, auto_offset_reset="earliest") as consumer:
        consumer.assign([(topic, 0)])
        found: list[tuple[int, bytes | None]] = []
        while len(found) < consumer.end_offsets([(topic, 0)])[TopicPartition(topic, 0)]:
            found += [(record.offset, record.value) for record in consumer.poll(timeout_ms=1_000)]
    assert [value for _, value in found] == [b"common"] * 10 + [b"second"] * 10
    assert [offset for offset, _ in found] == list(range(20))


def state(address: str, topic: str) -> tuple[int | None, tuple[int, ...]]:
    """Leader and ISR of the only partition, as one broker knows them."""
    with Admin(bootstrap_servers=address) as admin:
        try:
            (one,) = admin.describe_topic(topic).partitions
        except UnknownTopicOrPartition:
            return None, ()  # it has not heard of it yet
    return one.leader, tuple(one.isr)


def write(address: str, topic: str, value: str, count: int = 10) -> None:
    with Producer(bootstrap_servers=address, acks="all", delivery_timeout_ms=60_000) as producer:
        for delivery in [producer.send(topic, value.encode()) for _ in range(count)]:
            delivery.result(SECONDS_MAX)
