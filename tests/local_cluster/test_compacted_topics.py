"""A compacted topic is replicated: each replica has holes of its own, and whoever leads has each key's last value."""

from __future__ import annotations

from contextlib import suppress

import ottla.testing
from ottla.client.admin.results import ElectionKind, NewTopic
from ottla.client.errors import KafkaError
from ottla.client.records import ConsumerRecord
from ottla.client.sync import Admin, Consumer, Producer
from ottla.model import TopicPartition
from ottla.testing.processes import Cluster

TP = TopicPartition("states", 0)
KEYS = 20
CONFIGS = {"cleanup.policy": "compact", "segment.bytes": "16384", "min.cleanable.dirty.ratio": "0.01"}
PROPERTIES = {
    "log.cleaner.backoff.ms": "50",
    "replica.lag.time.max.ms": "3000",
    # Nobody leads again but by the test.
    "auto.leader.rebalance.enable": "false",
}


def write(cluster: Cluster, first: int, count: int) -> dict[bytes, bytes]:
    """The last value of each key."""
    values = {}
    with Producer(bootstrap_servers=cluster.bootstrap, acks="all", linger_ms=0, batch_size=1_000) as producer:
        sent = []
        for number in range(first, first + count):
            key = b"key %d" % (number % KEYS)
            values[key] = b"%d " % number + bytes(100)
            sent.append(producer.send(TP.topic, values[key], key))
        for delivery in sent:
            delivery.result(60)
    return values


def everything(cluster: Cluster) -> list[ConsumerRecord]:
    found: list[ConsumerRecord] = []
    with Consumer(bootstrap_servers=cluster.bootstrap) as consumer:
        consumer.assign([TP])
        consumer.seek_to_beginning(TP)
        end = consumer.end_offsets([TP])[TP]
        while consumer.position(TP) < end:
            found += consumer.poll(timeout_ms=1_000)
    return found


def until_cleaned(cluster: Cluster, written: int) -> None:
    cluster.until(lambda: len(everything(cluster)) < written / 2)


def check(cluster: Cluster, expected: dict[bytes, bytes], written: int) -> None:
    """What the present leader has."""
    found = everything(cluster)
    offsets = [record.offset for record in found]
    assert offsets == sorted(set(offsets))
    assert {record.key: record.value for record in found} == expected
    for record in found:
        assert record.key is not None
        assert record.value is not None
        number = int(record.value.split()[0])
        # Each record is where it was written.
        assert (record.offset, record.key) == (number, b"key %d" % (number % KEYS))
    assert len(found) < written / 2


def lead(cluster: Cluster, admin: Admin, broker: int) -> None:
    others = [other for other in cluster.addresses if other != broker]
    admin.alter_partition_reassignments({TP: [broker, *others]})
    cluster.until(lambda: not admin.list_partition_reassignments())
    cluster.until_in_sync(TP.topic)

    def leads() -> bool:
        with suppress(KafkaError):  # it leads already, or its session was over for a moment
            admin.elect_leaders(ElectionKind.PREFERRED, [TP])
        return cluster.leader(TP.topic) == broker

    cluster.until(leads)


def test_each_replica_that_leads_has_the_last_values() -> None:
    with (
        ottla.testing.cluster(3, properties=PROPERTIES) as cluster,
        Admin(bootstrap_servers=cluster.bootstrap) as admin,
    ):
        first, second, third = cluster.addresses
        admin.create_topics([NewTopic(TP.topic, assignments={TP.partition: [first, second]}, configs=CONFIGS)])
        cluster.until_heard(TP.topic)
        expected, written = write(cluster, 0, 2_000), 2_000
        until_cleaned(cluster, written)
        # One that followed and was cleaned by itself, a new one of a log with holes, and the first one again.
        for broker in (second, third, first):
            lead(cluster, admin, broker)
            until_cleaned(cluster, written)
            check(cluster, expected, written)
            expected = write(cluster, written, 500)
            written += 500
        # Who comes back has what the others have cleaned away meanwhile.
        for _ in range(2):
            cluster.kill_leader(TP.topic)
            cluster.until_in_sync(TP.topic)
            until_cleaned(cluster, written)
            check(cluster, expected, written)
