"""Transactions of Apache Kafka, committed and aborted, as Arrow: a reader of committed records sees what others see."""

from __future__ import annotations

from random import Random

import pytest
from confluent_kafka import Consumer as Librdkafka
from confluent_kafka import Producer
from confluent_kafka import TopicPartition as ConsumerPartition
from confluent_kafka.admin import AdminClient

from ottla.client.sync import Consumer
from tests.interop.broker import Broker
from tests.interop.clients import SECONDS_MAX
from tests.interop.conftest import create_topic

pytestmark = [pytest.mark.java, pytest.mark.xdist_group("kafka-tools")]

TOPIC = "transactions-in-arrow"
TRANSACTIONS = 12


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


def committed_by_librdkafka(bootstrap: str) -> list[int]:
    settings = {"bootstrap.servers": bootstrap, "group.id": "r", "isolation.level": "read_committed"}
    reader = Librdkafka({**settings, "enable.partition.eof": True, "enable.auto.commit": False})
    reader.assign([ConsumerPartition(TOPIC, 0, 0)])
    offsets = []
    while (message := reader.poll(SECONDS_MAX)) is not None and message.error() is None:
        offsets.append(message.offset())
    reader.close()
    return offsets


def test_what_was_aborted_is_left_out(apache_kafka: Broker) -> None:
    bootstrap = apache_kafka.bootstrap
    create_topic(AdminClient({"bootstrap.servers": bootstrap}), TOPIC)
    write(bootstrap)
    committed = committed_by_librdkafka(bootstrap)
    found: dict[str, list[int]] = {}
    for isolation in ("read_committed", "read_uncommitted"):
        # Small fetches, each with a list of its own.
        with Consumer(
            bootstrap_servers=bootstrap,
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
