"""Transactions over three brokers while coordinators and leaders move: brokers are killed one after the other, or
others are elected while all of them live. librdkafka speaks the
classic generation, our own client version 2 (KIP-890)."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import confluent_kafka
import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

import ottla.testing
from ottla.client import sync
from ottla.client.admin.results import NewTopic
from ottla.client.errors import (
    InvalidReplicaAssignment,
    InvalidReplicationFactor,
    RequestTimedOut,
    TransactionAbortable,
    TransactionFault,
)
from ottla.client.sync import Admin
from ottla.javahash import partition_of
from ottla.model import TRANSACTION_TOPIC
from ottla.testing.processes import Cluster
from tests.searches import some

TOPIC = "orders"
PARTITIONS = 3
TRANSACTIONS = 16
SECONDS_MAX = 120.0


class Writer:
    """Writes a number to all partitions in each transaction; every fourth one is aborted."""

    def __init__(self, bootstrap: str, topic: str, name: str, before_the_end: Callable[[int], None]) -> None:
        """`before_the_end` is called when all records of a transaction are written."""
        self.bootstrap, self.topic, self.name = bootstrap, topic, name
        self._before_the_end = before_the_end
        self.committed: list[int] = []
        #: Ended by a fault that says nothing of the outcome.
        self.doubtful: list[int] = []

    def write(self, number: int) -> None:
        if not self.written(number):
            return
        self._before_the_end(number)
        self.end(number, commits=number % 4 != 3)

    def written(self, number: int) -> bool:
        """Begins a transaction with the number; it is aborted where that fails."""
        raise NotImplementedError

    def end(self, number: int, *, commits: bool) -> None:
        raise NotImplementedError

    def close(self) -> None:
        """Nothing is left open."""


class ClassicWriter(Writer):
    """By librdkafka."""

    def __init__(self, bootstrap: str, topic: str, name: str, before_the_end: Callable[[int], None]) -> None:
        super().__init__(bootstrap, topic, name, before_the_end)
        self._producer = self._new()

    def _new(self) -> Producer:
        producer = Producer(
            {"bootstrap.servers": self.bootstrap, "transactional.id": self.name, "linger.ms": 0, "log_level": 0}
        )
        producer.init_transactions(SECONDS_MAX)
        return producer

    def written(self, number: int) -> bool:
        try:
            self._producer.begin_transaction()
            for partition in range(PARTITIONS):
                self._producer.produce(self.topic, str(number), partition=partition)
        except KafkaException:
            self._producer.abort_transaction(SECONDS_MAX)
            return False
        self._producer.flush(SECONDS_MAX)
        return True

    def end(self, number: int, *, commits: bool) -> None:
        while True:
            try:
                if commits:
                    self._producer.commit_transaction(SECONDS_MAX)
                    self.committed.append(number)
                else:
                    self._producer.abort_transaction(SECONDS_MAX)
            except KafkaException as fault:
                error = fault.args[0]
                if error.fatal():
                    self.doubtful.append(number)
                    self._producer = self._new()
                elif error.txn_requires_abort():
                    commits = False
                    continue
                elif error.retriable():
                    continue
                else:
                    raise
            return


class NewerWriter(Writer):
    """By our own client, for which each transaction has an epoch of its own."""

    def __init__(self, bootstrap: str, topic: str, name: str, before_the_end: Callable[[int], None]) -> None:
        super().__init__(bootstrap, topic, name, before_the_end)
        self._producer = self._new()

    def _new(self) -> sync.Producer:
        return sync.Producer(bootstrap_servers=self.bootstrap, transactional_id=self.name, linger_ms=0)

    def written(self, number: int) -> bool:
        try:
            self._producer.begin()
            sent = [
                self._producer.send(self.topic, str(number).encode(), partition=partition)
                for partition in range(PARTITIONS)
            ]
            for one in sent:
                one.result(SECONDS_MAX)
        except TransactionFault:
            self._end_unseen()
            return False
        return True

    def end(self, number: int, *, commits: bool) -> None:
        while True:
            try:
                if commits:
                    self._producer.commit()
                    self.committed.append(number)
                else:
                    self._producer.abort()
            except RequestTimedOut:
                continue
            except TransactionAbortable:
                commits = False
                continue
            except TransactionFault:
                self.doubtful.append(number)
                self._producer.close(timeout_ms=0)
                self._producer = self._new()
            return

    def _end_unseen(self) -> None:
        try:
            self._producer.abort()
        except TransactionFault:
            self._producer.close(timeout_ms=0)
            self._producer = self._new()

    def close(self) -> None:
        assert self._producer._inner.transaction_version == 2
        self._producer.close()


WRITERS = [ClassicWriter, NewerWriter]


def committed(bootstrap: str, topic: str, partition: int) -> list[int]:
    reader = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": "readers", "isolation.level": "read_committed"}
        | {"enable.partition.eof": True, "log_level": 0}
    )
    found: list[int] = []
    try:
        reader.assign([TopicPartition(topic, partition, 0)])
        while True:
            message = reader.poll(SECONDS_MAX)
            assert message is not None, "the last stable offset does not move"
            if message.error() is None:
                found.append(int(message.value() or b""))
            elif message.error().code() == confluent_kafka.KafkaError._PARTITION_EOF:
                return found
    finally:
        reader.close()


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with ottla.testing.cluster(3, properties={"auto.leader.rebalance.enable": "false"}) as running:
        yield running


def make(cluster: Cluster, topic: str) -> None:
    """Each broker leads one of its partitions."""
    replicas = {number: tuple((number + k) % 3 + 1 for k in range(3)) for number in range(PARTITIONS)}
    cluster.until(lambda: all(map(cluster.is_serving, cluster.addresses)))
    with Admin(bootstrap_servers=cluster.bootstrap) as admin:

        def is_made() -> bool:
            try:
                admin.create_topics([NewTopic(topic, assignments=replicas)])
            except (InvalidReplicaAssignment, InvalidReplicationFactor):
                return False  # whoever decides has not heard yet that a broker is back
            return True

        cluster.until(is_made)
    cluster.until_heard(topic)


def check(cluster: Cluster, topic: str, writer: Writer) -> None:
    found = [committed(cluster.bootstrap, topic, partition) for partition in range(PARTITIONS)]
    assert found[0] == found[1] == found[2]
    assert [number for number in found[0] if number not in writer.doubtful] == writer.committed


@pytest.mark.parametrize("kind", some(WRITERS, ClassicWriter))
def test_all_or_nothing_while_brokers_are_killed(cluster: Cluster, kind: type[Writer]) -> None:
    topic = f"{TOPIC}-{kind.__name__}"
    make(cluster, topic)
    writer = kind(cluster.bootstrap, topic, topic, lambda _: None)
    for number in range(TRANSACTIONS):
        if number in (4, 8, 12):
            cluster.kill(number // 4)
        writer.write(number)
    writer.close()
    check(cluster, topic, writer)
    assert len(writer.committed) > TRANSACTIONS // 2


@pytest.mark.parametrize("kind", WRITERS)
@pytest.mark.parametrize("transactions", [4, pytest.param(32, marks=pytest.mark.slow)])
def test_all_or_nothing_while_leaders_and_coordinators_are_elected(
    cluster: Cluster, transactions: int, kind: type[Writer]
) -> None:
    """Between a transaction's records and its end another broker leads a partition of it, or coordinates it."""
    name = topic = f"moved-{transactions}-{kind.__name__}"
    make(cluster, topic)
    with Admin(bootstrap_servers=cluster.bootstrap) as admin:

        def move(number: int) -> None:
            if number % 2:
                count = len(admin.describe_topic(TRANSACTION_TOPIC).partitions)
                cluster.move_leader(TRANSACTION_TOPIC, partition_of(name, count))
            else:
                cluster.move_leader(topic, number // 2 % PARTITIONS)

        writer = kind(cluster.bootstrap, topic, name, move)
        for number in range(transactions):
            writer.write(number)
        writer.close()
    check(cluster, topic, writer)
    # Whoever leads next knows all that the one before has known: nothing has to fail.
    assert writer.doubtful == []
    assert writer.committed == [number for number in range(transactions) if number % 4 != 3]
