"""Transactions on Apache Kafka: of its clients and of ours, read by both, in every generation of the protocol."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest
from confluent_kafka import Consumer as Librdkafka
from confluent_kafka import IsolationLevel, KafkaException, Producer
from confluent_kafka import TopicPartition as ConsumerPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from ottla.client import sync
from ottla.client.admin.admin import Admin
from ottla.client.errors import ProducerFenced, TransactionTimedOut
from ottla.client.producing.transactions.core import TransactionIdentity
from ottla.client.sync import Consumer
from ottla.model import TopicPartition
from ottla.protocol.generated.update_features import FeatureUpdateKey, UpdateFeaturesRequest, UpdateFeaturesResponse
from tests.conftest import WatchServer
from tests.interop.broker import Broker, kafka_broker
from tests.interop.clients import SECONDS_MAX, eventually
from tests.interop.conftest import create_topic

pytestmark = [pytest.mark.java, pytest.mark.xdist_group("kafka-tools")]

TOPIC = "transactions"
TRANSACTIONS = 12


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory, kafka_jars: Path, watch_server: WatchServer) -> Iterator[Broker]:
    """One for all of these tests. It looks soon for transactions whose time is over."""
    properties = {
        "transaction.abort.timed.out.transaction.cleanup.interval.ms": "100",
        "transaction.state.log.num.partitions": "2",
        "offsets.topic.num.partitions": "2",
    }
    broker = kafka_broker(tmp_path_factory.mktemp("transactions"), kafka_jars, properties)
    with watch_server(broker.server), broker.server:
        yield broker


def write(bootstrap: str) -> None:
    """Transactions of three producers, open at the same time, in between records of none; half are aborted."""
    chance = Random(1)
    names = {f"writer-{number}": codec for number, codec in enumerate(("none", "lz4", "zstd"))}
    writers = [
        Producer({"bootstrap.servers": bootstrap, "transactional.id": name, "compression.type": codec, "linger.ms": 0})
        for name, codec in names.items()
    ]
    plain = Producer({"bootstrap.servers": bootstrap, "linger.ms": 0})
    for writer in writers:
        writer.init_transactions(SECONDS_MAX)
        writer.begin_transaction()
    for number in range(TRANSACTIONS):
        for writer in (*writers, plain):
            for _ in range(chance.randrange(4)):
                writer.produce(TOPIC, b"%d" % number, partition=0)
            assert writer.flush(SECONDS_MAX) == 0
        ended = chance.choice(writers)
        (ended.commit_transaction if chance.randrange(2) else ended.abort_transaction)(SECONDS_MAX)
        ended.begin_transaction()
    for writer in writers:
        writer.abort_transaction(SECONDS_MAX)


def until_decided(bootstrap: str, topic: str) -> None:
    """All transactions have their markers, which come some time after the answer to a commit."""
    admin = AdminClient({"bootstrap.servers": bootstrap})

    def is_decided() -> bool:
        ends = []
        for level in (IsolationLevel.READ_UNCOMMITTED, IsolationLevel.READ_COMMITTED):
            asked = {ConsumerPartition(topic, 0): OffsetSpec.latest()}
            (found,) = admin.list_offsets(asked, isolation_level=level).values()
            ends.append(found.result(SECONDS_MAX).offset)
        return ends[0] == ends[1]

    eventually(is_decided)


def committed_by_librdkafka(bootstrap: str) -> list[int]:
    settings = {"bootstrap.servers": bootstrap, "group.id": "r", "isolation.level": "read_committed"}
    reader = Librdkafka({**settings, "enable.partition.eof": True, "enable.auto.commit": False})
    reader.assign([ConsumerPartition(TOPIC, 0, 0)])
    offsets = []
    while (message := reader.poll(SECONDS_MAX)) is not None and message.error() is None:
        offsets.append(message.offset())
    reader.close()
    return offsets


def test_what_was_aborted_is_left_out(kafka: Broker) -> None:
    create_topic(AdminClient({"bootstrap.servers": kafka.bootstrap}), TOPIC)
    write(kafka.bootstrap)
    until_decided(kafka.bootstrap, TOPIC)
    committed = committed_by_librdkafka(kafka.bootstrap)
    found: dict[str, list[int]] = {}
    for isolation in ("read_committed", "read_uncommitted"):
        # Small fetches, each with a list of its own.
        with Consumer(
            bootstrap_servers=kafka.bootstrap,
            auto_offset_reset="earliest",
            isolation_level=isolation,
            max_partition_fetch_bytes=2000,
        ) as consumer:
            consumer.assign([(TOPIC, 0)])
            found[isolation] = []
            # How long Kafka takes for the first of them is its own business.
            for batch in consumer.arrow(columns=["offset"], max_rows=7, timeout_ms=SECONDS_MAX * 1000):
                found[isolation] += batch.column(0).to_pylist()
                if found[isolation][-1] >= committed[-1]:
                    break
            while (rest := consumer.poll_arrow(columns=["offset"], timeout_ms=300)) is not None:
                found[isolation] += rest.column(0).to_pylist()
            consumer.seek_to_beginning()
            polled: list[int] = []
            while len(polled) < len(found[isolation]):
                polled += [record.offset for record in consumer.poll()]
            assert polled == found[isolation]
    assert found["read_committed"] == committed
    assert 0 < len(found["read_committed"]) < len(found["read_uncommitted"])


# Ours beside Kafka's clients


async def set_version(bootstrap: str, level: int) -> None:
    """Has the cluster speak this generation; a producer that begins hears of it."""
    async with Admin(bootstrap_servers=bootstrap) as admin:
        update = FeatureUpdateKey(feature="transaction.version", max_version_level=level, upgrade_type=1)
        found = await admin.cluster.any_connection()
        if found.features.get("transaction.version", 0) > level:
            update.upgrade_type = 2  # down, where nothing is lost by it
        request = UpdateFeaturesRequest(timeout_ms=60_000, feature_updates=[update])
        await admin.cluster.updated()
        answer = await admin.cluster.ask(await admin.cluster.controller_id(), request, UpdateFeaturesResponse)
        assert (answer.error_code, [one.error_code for one in answer.results if one.error_code]) == (0, [])


def until_spoken(bootstrap: str, level: int) -> None:
    async def spoken() -> bool:
        async with Admin(bootstrap_servers=bootstrap) as admin:
            return (await admin.cluster.any_connection()).features.get("transaction.version", 0) == level

    eventually(lambda: asyncio.run(spoken()))


def read_by_librdkafka(bootstrap: str, topic: str) -> list[bytes]:
    settings = {"bootstrap.servers": bootstrap, "group.id": "r", "isolation.level": "read_committed"}
    reader = Librdkafka({**settings, "enable.partition.eof": True, "enable.auto.commit": False})
    reader.assign([ConsumerPartition(topic, 0, 0)])
    values = []
    while (message := reader.poll(SECONDS_MAX)) is not None and message.error() is None:
        values.append(message.value())
    reader.close()
    return values


def read_by_ours(bootstrap: str, topic: str) -> list[bytes]:
    partition = TopicPartition(topic, 0)
    with Consumer(bootstrap_servers=bootstrap, isolation_level="read_committed") as consumer:
        consumer.assign([partition])
        consumer.seek(partition, 0)
        end = consumer.end_offsets([partition])[partition]
        values: list[bytes] = []
        while consumer.position(partition) < end:
            values += [record.value for record in consumer.poll(timeout_ms=20)]
        return values


#: `transaction.version` goes down and up again on a broker that runs. The newest alone shows what most clusters have.
@pytest.mark.parametrize("level", [1, 2, pytest.param(0, marks=pytest.mark.slow)])
def test_ours_and_librdkafkas_on_one_topic(kafka: Broker, level: int) -> None:
    bootstrap, topic = kafka.bootstrap, f"both-{level}"
    asyncio.run(set_version(bootstrap, level))
    until_spoken(bootstrap, level)
    create_topic(AdminClient({"bootstrap.servers": bootstrap}), topic)
    theirs = Producer({"bootstrap.servers": bootstrap, "transactional.id": f"theirs-{level}"})
    theirs.init_transactions(SECONDS_MAX)
    expected = []
    with sync.Producer(bootstrap_servers=bootstrap, transactional_id=f"ours-{level}") as ours:
        for number in range(6):
            value = b"%d" % number
            ours.begin()
            theirs.begin_transaction()
            ours.send(topic, b"ours-" + value)
            ours.flush()
            theirs.produce(topic, b"theirs-" + value)
            assert theirs.flush(SECONDS_MAX) == 0
            if number % 3:
                ours.commit()
                expected.append(b"ours-" + value)
            else:
                ours.abort()
            if number % 2:
                theirs.commit_transaction(SECONDS_MAX)
                expected.append(b"theirs-" + value)
            else:
                theirs.abort_transaction(SECONDS_MAX)
        with ours.transaction():
            ours.send_offsets({TopicPartition(topic, 0): 5}, f"group-{level}")
        identity = detached(bootstrap, topic, f"detached-{level}")
        assert identity.version == max(1, level)
        for _ in range(2):
            ours.finish(identity)
        expected.append(b"handed over")
    with sync.Admin(bootstrap_servers=bootstrap) as admin:
        offsets = admin.list_group_offsets(f"group-{level}", require_stable=True)
        assert offsets[TopicPartition(topic, 0)].offset == 5
    until_decided(bootstrap, topic)
    assert read_by_librdkafka(bootstrap, topic) == expected
    assert read_by_ours(bootstrap, topic) == expected


def detached(bootstrap: str, topic: str, name: str) -> TransactionIdentity:
    with sync.Producer(bootstrap_servers=bootstrap, transactional_id=name) as producer:
        producer.begin()
        producer.send(topic, b"handed over")
        identity = producer.detach()
    assert identity is not None
    return identity


@pytest.mark.parametrize("level", [2, pytest.param(1, marks=pytest.mark.slow)])
def test_an_id_goes_from_ours_to_librdkafka_and_back(kafka: Broker, level: int) -> None:
    """Each fences the one before, whose open transaction nobody sees."""
    bootstrap, topic = kafka.bootstrap, f"fenced-{level}"
    asyncio.run(set_version(bootstrap, level))
    until_spoken(bootstrap, level)
    create_topic(AdminClient({"bootstrap.servers": bootstrap}), topic)
    with sync.Producer(bootstrap_servers=bootstrap, transactional_id=topic) as ours:
        ours.begin()
        ours.send_and_wait(topic, b"of the first")
        theirs = Producer({"bootstrap.servers": bootstrap, "transactional.id": topic})
        theirs.init_transactions(SECONDS_MAX)
        with pytest.raises(ProducerFenced):
            ours.commit()
        theirs.begin_transaction()
        theirs.produce(topic, b"of the second")
        assert theirs.flush(SECONDS_MAX) == 0
    with sync.Producer(bootstrap_servers=bootstrap, transactional_id=topic) as ours:
        with ours.transaction():
            ours.send(topic, b"of the third")
        with pytest.raises(KafkaException) as fenced:
            theirs.commit_transaction(SECONDS_MAX)
        assert fenced.value.args[0].fatal()
    until_decided(bootstrap, topic)
    assert read_by_librdkafka(bootstrap, topic) == [b"of the third"]


@pytest.mark.slow
@pytest.mark.parametrize("level", [1, 2])
def test_a_time_out_is_told_from_a_fence(kafka: Broker, level: int) -> None:
    bootstrap, topic = kafka.bootstrap, f"slow-{level}"
    asyncio.run(set_version(bootstrap, level))
    until_spoken(bootstrap, level)
    create_topic(AdminClient({"bootstrap.servers": bootstrap}), topic)
    with (
        sync.Producer(bootstrap_servers=bootstrap, transactional_id=topic, transaction_timeout_ms=200) as ours,
        sync.Admin(bootstrap_servers=bootstrap) as admin,
    ):
        ours.begin()
        ours.send_and_wait(topic, b"slow")
        eventually(lambda: admin.describe_transactions([topic])[topic].state == "CompleteAbort")
        with pytest.raises(TransactionTimedOut):
            ours.commit()
        ours.abort()
    assert read_by_librdkafka(bootstrap, topic) == []
