"""Clients of other people write and read while the partitions move to other brokers, and brokers are started again and
killed.

Their producers are idempotent: whatever was written is there once, each partition's in the order in which it was sent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Self

import pytest

import ottla.testing
from ottla.client.sync import Admin, Consumer
from ottla.model import TopicPartition
from ottla.testing.processes import Cluster
from tests.interop.moving_clients import (
    AiokafkaReader,
    AiokafkaWriter,
    JavaReader,
    JavaWriter,
    LibrdkafkaReader,
    LibrdkafkaWriter,
    NumberReader,
    NumberWriter,
    Place,
)

PARTITIONS = 2
#: How many are read before the next thing is done to the cluster.
BETWEEN = 100


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    # What has moved stays there: no leader goes back by itself.
    with ottla.testing.cluster(3, properties={"auto.leader.rebalance.enable": "false"}) as running:
        yield running


class Both:
    """A writer and a reader of one topic."""

    def __init__(self, cluster: Cluster, writer: NumberWriter, reader: NumberReader) -> None:
        self._cluster = cluster
        self.writer = writer
        self.reader = reader

    def __enter__(self) -> Self:
        self.reader.start()
        self.writer.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.writer.stop()
        self.reader.stop()

    def go_on(self) -> None:
        """Until records that are written from now on are read."""
        awaited = self.writer.written + BETWEEN
        self.until(lambda: self.last_read() >= awaited)

    def last_read(self) -> int:
        return max((place.value for place in self.reader.read[-BETWEEN:]), default=-1)

    def until_all_is_read(self) -> None:
        self.writer.stop()
        self.until(lambda: self.writer.acknowledged <= {place.value for place in self.reader.read})

    def until(self, holds: Callable[[], bool]) -> None:
        self._cluster.until(lambda: bool(self.faults) or holds())
        assert self.faults == []

    @property
    def faults(self) -> list[str]:
        return self.writer.faults + self.reader.faults


@pytest.fixture
def both(request: pytest.FixtureRequest, cluster: Cluster) -> Both:
    client: str = request.param
    topic, at = f"moving-{client}", cluster.bootstrap
    cluster.create_topic(topic, partitions=PARTITIONS, replication_factor=2)
    if client == "librdkafka":
        return Both(cluster, LibrdkafkaWriter(at, topic, PARTITIONS), LibrdkafkaReader(at, topic))
    if client == "aiokafka":
        return Both(cluster, AiokafkaWriter(at, topic, PARTITIONS), AiokafkaReader(at, topic))
    jars: Path = request.getfixturevalue("kafka_jars")
    return Both(cluster, JavaWriter(at, topic, PARTITIONS, jars), JavaReader(at, topic, jars))


@pytest.mark.parametrize(
    "both", ["librdkafka", "aiokafka", pytest.param("java", marks=pytest.mark.java)], indirect=True
)
def test_clients_go_on_while_their_partitions_move_and_brokers_stop_and_die(cluster: Cluster, both: Both) -> None:
    topic = both.writer.topic
    with both:
        both.go_on()
        moved_on(cluster, topic)
        both.go_on()
        cluster.restart(cluster.until_led(topic))
        cluster.until_in_sync(topic)
        both.go_on()
        killed = cluster.kill_leader(topic)
        cluster.until(lambda: cluster.leader(topic) not in (-1, killed))
        both.go_on()
        cluster.until_in_sync(topic)
        both.until_all_is_read()
    assert both.faults == []
    assert both.writer.acknowledged == set(range(both.writer.written))
    places = stored_places(cluster, topic)
    assert repeated(places) == {}
    stored = {partition: [value for _, value in found] for partition, found in places.items()}
    assert sorted(value for values in stored.values() for value in values) == list(range(both.writer.written))
    for partition, values in stored.items():
        assert values == sorted(values)
        assert without_repetitions(both.reader.read, partition) == values


def moved_on(cluster: Cluster, topic: str) -> None:
    """What each leader has goes to the broker that had none of it."""
    with Admin(bootstrap_servers=cluster.bootstrap) as admin:
        targets: dict[TopicPartition, list[int]] = {}
        for one in admin.describe_topic(topic).partitions:
            (new,) = set(cluster.addresses) - set(one.replicas)
            kept = [broker for broker in one.replicas if broker != one.leader]
            targets[TopicPartition(topic, one.partition)] = [new, *kept]
        admin.alter_partition_reassignments(targets)
        cluster.until(lambda: not admin.list_partition_reassignments())
        # Whoever is asked may not have heard yet.
        wanted = [targets[tp] for tp in sorted(targets)]
        cluster.until(lambda: [list(one.replicas) for one in admin.describe_topic(topic).partitions] == wanted)
    cluster.until_in_sync(topic)


def stored_places(cluster: Cluster, topic: str) -> dict[int, list[tuple[int, int]]]:
    """Offset and value of each record of each partition."""
    found: dict[int, list[tuple[int, int]]] = {number: [] for number in range(PARTITIONS)}
    with Consumer(bootstrap_servers=cluster.bootstrap, auto_offset_reset="earliest") as consumer:
        places = [(topic, number) for number in range(PARTITIONS)]
        consumer.assign(places)
        count = sum(consumer.end_offsets(places).values())
        while sum(map(len, found.values())) < count:
            for record in consumer.poll(timeout_ms=1_000):
                found[record.partition].append((record.offset, int(record.value)))
    return found


def repeated(places: dict[int, list[tuple[int, int]]]) -> dict[int, list[tuple[int, int]]]:
    """Partition and offset of values that are there more than once: written twice, or read twice from one offset?"""
    where: dict[int, list[tuple[int, int]]] = {}
    for partition, found in places.items():
        for offset, value in found:
            where.setdefault(value, []).append((partition, offset))
    return {value: all_of_it for value, all_of_it in where.items() if len(all_of_it) > 1}


def without_repetitions(read: list[Place], partition: int) -> list[int]:
    """A group may be given again what it has not committed."""
    return list(dict.fromkeys(place.value for place in read if place.partition == partition))
