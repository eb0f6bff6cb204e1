"""Transactions of librdkafka over three brokers that are killed one after the other: coordinators and leaders move."""

from __future__ import annotations

from collections.abc import Iterator

import confluent_kafka
import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

import ottla.testing
from ottla.client.admin.results import NewTopic
from ottla.client.sync import Admin
from ottla.testing.processes import Cluster

TOPIC = "orders"
PARTITIONS = 3
TRANSACTIONS = 16
SECONDS_MAX = 120.0


class Writer:
    """Writes a number to all partitions in each transaction; every fourth one is aborted."""

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap
        self.committed: list[int] = []
        #: Ended by a fault that says nothing of the outcome.
        self.doubtful: list[int] = []
        self._producer = self._new()

    def _new(self) -> Producer:
        producer = Producer(
            {"bootstrap.servers": self._bootstrap, "transactional.id": "writer", "linger.ms": 0, "log_level": 0}
        )
        producer.init_transactions(SECONDS_MAX)
        return producer

    def write(self, number: int) -> None:
        try:
            self._producer.begin_transaction()
            for partition in range(PARTITIONS):
                self._producer.produce(TOPIC, str(number), partition=partition)
        except KafkaException:
            self._producer.abort_transaction(SECONDS_MAX)
            return
        self._end(number, commits=number % 4 != 3)

    def _end(self, number: int, *, commits: bool) -> None:
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


def committed(bootstrap: str, partition: int) -> list[int]:
    reader = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": "readers", "isolation.level": "read_committed"}
        | {"enable.partition.eof": True, "log_level": 0}
    )
    found: list[int] = []
    try:
        reader.assign([TopicPartition(TOPIC, partition, 0)])
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
        replicas = {number: tuple((number + k) % 3 + 1 for k in range(3)) for number in range(PARTITIONS)}
        with Admin(bootstrap_servers=running.bootstrap) as admin:
            admin.create_topics([NewTopic(TOPIC, assignments=replicas)])
        running.until_heard(TOPIC)
        yield running


def test_all_or_nothing_while_brokers_are_killed(cluster: Cluster) -> None:
    writer = Writer(cluster.bootstrap)
    for number in range(TRANSACTIONS):
        if number in (4, 8, 12):
            cluster.kill(number // 4)
        writer.write(number)
    found = [committed(cluster.bootstrap, partition) for partition in range(PARTITIONS)]
    assert found[0] == found[1] == found[2]
    assert [number for number in found[0] if number not in writer.doubtful] == writer.committed
    assert len(writer.committed) > TRANSACTIONS // 2
