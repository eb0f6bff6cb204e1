"""Readers of committed records in racks (KIP-392), over processes: each reads from the broker of its own rack.

Transactions are committed, aborted and open meanwhile, and brokers are killed while some are open: wherever a reader
reads, it sees what was committed, once and in the order of the log, and nothing behind a transaction that is open.
"""

from __future__ import annotations

import re
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Protocol

import confluent_kafka
import pytest

from ottla.client.sync import Consumer, Producer
from ottla.local_cluster.free_ports import bound, free_port
from ottla.model import TopicPartition
from ottla.testing.processes import Cluster

#: `./test` shows by one broker what a follower brings (`tests/handlers/fetch/test_reading_from_followers.py`), and by a
#: simulated cluster what its readers see.
pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

HOST = "127.0.0.1"
TP = TopicPartition("orders", 0)
RACKS = {1: "a", 2: "b", 3: "c"}
SELECTOR = "org.apache.kafka.common.replica.RackAwareReplicaSelector"
SECONDS_MAX = 120.0
ROUNDS = 8


class Reader(Protocol):
    seen: list[bytes]

    def read_to(self, end: int) -> None:
        """Until the last stable offset is there."""
        ...

    def close(self) -> None: ...


class Librdkafka:
    def __init__(self, bootstrap: str, rack: str) -> None:
        self.seen: list[bytes] = []
        #: Where it was at an end.
        self._end = 0
        self._consumer = confluent_kafka.Consumer(
            {"bootstrap.servers": bootstrap, "client.rack": rack, "isolation.level": "read_committed"}
            | {"group.id": f"readers-{rack}", "enable.auto.commit": False, "enable.partition.eof": True}
            | {"reconnect.backoff.max.ms": 1_000, "log_level": 0}
        )
        self._consumer.assign([confluent_kafka.TopicPartition(*TP, 0)])

    def read_to(self, end: int) -> None:
        while self._end < end:
            message = self._consumer.poll(SECONDS_MAX)
            assert message is not None, f"at {self._end}, before {end}"
            if message.error() is None:
                self.seen.append(message.value() or b"")
            elif message.error().code() == confluent_kafka.KafkaError._PARTITION_EOF:
                self._end = message.offset()

    def close(self) -> None:
        self._consumer.close()


class Ours:
    def __init__(self, bootstrap: str, rack: str) -> None:
        self.seen: list[bytes] = []
        self._consumer = Consumer(bootstrap_servers=bootstrap, client_rack=rack, isolation_level="read_committed")
        self._consumer.assign([TP])
        self._consumer.seek_to_beginning(TP)

    def read_to(self, end: int) -> None:
        while self._consumer.position(TP) < end:
            self.seen += [record.value or b"" for record in self._consumer.poll(timeout_ms=100)]

    def close(self) -> None:
        self._consumer.close()


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    properties = {"replica.selector.class": SELECTOR, "auto.leader.rebalance.enable": "false"}
    with Cluster(3, properties=properties, racks=RACKS, metrics_port=three_free_ports()) as running:
        running.create_topic(TP.topic, 1, 3)
        yield running


def three_free_ports() -> int:
    """The first of three that follow one another."""
    while True:
        first = free_port(HOST)
        if all(bound(HOST, first + number) for number in range(3)):
            return first


def until_whole(cluster: Cluster) -> None:
    for topic in (TP.topic, "__transaction_state"):
        cluster.until_in_sync(topic)


def end(cluster: Cluster, isolation: str) -> int:
    with Consumer(bootstrap_servers=cluster.bootstrap, isolation_level=isolation) as consumer:
        return consumer.end_offsets([TP])[TP]


def bytes_to_consumers(cluster: Cluster, broker: int) -> int:
    """Since it was started."""
    assert cluster.metrics_port is not None
    address = f"http://{HOST}:{cluster.metrics_port + broker - 1}/metrics"
    with urllib.request.urlopen(address, timeout=SECONDS_MAX) as answer:
        text = answer.read().decode()
    name = f'kafka_server_brokertopicmetrics_bytesout_total{{topic="{TP.topic}"}}'
    found = re.search(rf"^{re.escape(name)} (\S+)$", text, re.MULTILINE)
    return 0 if found is None else int(float(found[1]))


class Writers:
    """Three producers; `late` is open while the others begin and end."""

    def __init__(self, bootstrap: str, stack: ExitStack) -> None:
        self.kept, self.dropped, self.late = (
            stack.enter_context(
                Producer(
                    bootstrap_servers=bootstrap, transactional_id=name, delivery_timeout_ms=int(SECONDS_MAX * 1000)
                )
            )
            for name in ("kept", "dropped", "late")
        )


def write(producer: Producer, *values: bytes) -> None:
    for delivery in [producer.send(TP.topic, value, partition=TP.partition) for value in values]:
        delivery.result(SECONDS_MAX)


def whole_transaction(producer: Producer, *values: bytes, commits: bool = True) -> None:
    producer.begin()
    write(producer, *values)
    if commits:
        producer.commit()
    else:
        producer.abort()


def test_readers_in_every_rack_see_what_is_committed(cluster: Cluster) -> None:
    expected: list[bytes] = []
    with ExitStack() as stack:
        writers = Writers(cluster.bootstrap, stack)
        whole_transaction(writers.kept, b"first")
        expected.append(b"first")
        readers: list[Reader] = [
            kind(cluster.bootstrap, rack) for kind in (Librdkafka, Ours) for rack in RACKS.values()
        ]
        for reader in readers:
            stack.callback(reader.close)
        for number in range(ROUNDS):
            until_whole(cluster)
            leader = cluster.until_led(TP.topic)
            one_round(cluster, writers, readers, expected, number, victim=leader if number % 2 == 0 else leader % 3 + 1)


def one_round(
    cluster: Cluster, writers: Writers, readers: list[Reader], expected: list[bytes], number: int, *, victim: int
) -> None:
    cluster.until(lambda: end(cluster, "read_committed") == end(cluster, "read_uncommitted"))
    before = {broker: bytes_to_consumers(cluster, broker) for broker in RACKS}
    opened_at = end(cluster, "read_uncommitted")
    writers.late.begin()
    write(writers.late, b"late %d" % number)
    whole_transaction(writers.kept, b"kept %d" % number, b"kept too %d" % number)
    whole_transaction(writers.dropped, b"dropped %d" % number, commits=False)
    assert end(cluster, "read_committed") == opened_at
    for reader in readers:
        reader.read_to(opened_at)
        assert reader.seen == expected

    cluster.kill(victim)
    write(writers.late, b"latest %d" % number)
    writers.late.commit()
    whole_transaction(writers.dropped, b"dropped again %d" % number, commits=False)
    expected += [b"late %d" % number, b"kept %d" % number, b"kept too %d" % number, b"latest %d" % number]
    cluster.until(lambda: end(cluster, "read_committed") == end(cluster, "read_uncommitted"))
    last = end(cluster, "read_committed")
    for reader in readers:
        reader.read_to(last)
        assert reader.seen == expected
    living = [broker for broker in RACKS if broker != victim]
    assert all(bytes_to_consumers(cluster, broker) > before[broker] for broker in living)
