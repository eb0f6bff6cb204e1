"""The application of `transforming.py` as a member of a group, by librdkafka or by our own client.

``python -m tests.interop.transforming_in_a_group BOOTSTRAP SOURCE TARGET CLIENT``: each step of a transaction is a line
of its output. After a fault it ends and is to be started again, and waits then until the session of the one before is
over.
"""

from __future__ import annotations

import os
import signal
import sys

from confluent_kafka import KafkaException

from ottla.client import sync
from ottla.client.errors import KafkaError, RequestTimedOut
from ottla.client.records import ConsumerRecord
from ottla.model import TopicPartition
from tests.interop.transforming import (
    BEGUN,
    COMMITTED,
    GROUP,
    OFFSETS_WAIT_S,
    PRODUCED,
    RECORDS_A_TRANSACTION,
    SENT,
    WAIT_S,
    repeated,
    transformed,
)

CLIENTS = LIBRDKAFKA, OURS = "librdkafka", "ours"
SESSION_MS = 2_000
HEARTBEAT_MS = 500


def by_librdkafka(bootstrap: str, source: str, target: str) -> None:
    import confluent_kafka

    quick = {"log_level": 0, "reconnect.backoff.ms": 10, "reconnect.backoff.max.ms": 50, "retry.backoff.ms": 20}
    producer = confluent_kafka.Producer(
        {"bootstrap.servers": bootstrap, "transactional.id": GROUP, "linger.ms": 0, **quick}
    )
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": GROUP,
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "session.timeout.ms": SESSION_MS,
            "heartbeat.interval.ms": HEARTBEAT_MS,
            **quick,
        }
    )
    # Before it asks where it stands: offsets of a transaction that was left open would be waited for.
    repeated(producer.init_transactions)
    consumer.subscribe([source])
    while True:
        taken = [message for message in consumer.consume(RECORDS_A_TRANSACTION, 0.2) if message.error() is None]
        if not taken:
            print("idle", flush=True)
            continue
        producer.begin_transaction()
        print(BEGUN, flush=True)
        for message in taken:
            producer.produce(target, transformed(message.value()), partition=message.partition())
        print(PRODUCED, flush=True)
        positions = consumer.position(consumer.assignment())
        signal.alarm(OFFSETS_WAIT_S)  # as in `transforming.py`
        producer.send_offsets_to_transaction(
            [one for one in positions if one.offset >= 0], consumer.consumer_group_metadata(), WAIT_S
        )
        signal.alarm(0)
        print(SENT, flush=True)
        repeated(producer.commit_transaction)
        print(COMMITTED, flush=True)


def by_ours(bootstrap: str, source: str, target: str) -> None:
    producer = sync.Producer(bootstrap_servers=bootstrap, transactional_id=GROUP, linger_ms=0)
    consumer = sync.Consumer(
        bootstrap_servers=bootstrap,
        group_id=GROUP,
        isolation_level="read_committed",
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        session_timeout_ms=SESSION_MS,
        heartbeat_interval_ms=HEARTBEAT_MS,
    )
    producer.init_transactions()
    consumer.subscribe([source])
    while True:
        taken = consumer.poll(max_records=RECORDS_A_TRANSACTION, timeout_ms=200)
        if not taken:
            print("idle", flush=True)
            continue
        producer.begin()
        print(BEGUN, flush=True)
        for record in taken:
            producer.send(target, transformed(record.value or b""), partition=record.partition)
        print(PRODUCED, flush=True)
        producer.send_offsets(behind(taken), consumer.group_metadata())
        print(SENT, flush=True)
        committed(producer)
        print(COMMITTED, flush=True)


def behind(taken: list[ConsumerRecord]) -> dict[TopicPartition, int]:
    return {TopicPartition(one.topic, one.partition): one.offset + 1 for one in taken}


def committed(producer: sync.Producer) -> None:
    while True:
        try:
            producer.commit()
        except RequestTimedOut:
            continue
        return


if __name__ == "__main__":
    try:
        {LIBRDKAFKA: by_librdkafka, OURS: by_ours}[sys.argv[4]](*sys.argv[1:4])
    except (KafkaException, KafkaError) as fault:
        print(fault, file=sys.stderr, flush=True)
        os._exit(1)  # librdkafka would wait for what it does not send
