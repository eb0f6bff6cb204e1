"""Four Python clients of four implementations, one of them ours, each as a writer and a reader of one partition.

A reader assigns its partition by hand: nothing here needs a consumer group.
"""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import aiokafka
import confluent_kafka
import kafka

from ottla.client import sync

#: Far beyond what any answer takes; it only ends a test that would hang.
SECONDS_MAX = 60.0


class Row(NamedTuple):
    """A record as every client can write it."""

    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]
    timestamp_ms: int


class Read(NamedTuple):
    offset: int
    row: Row


Writer = Callable[[str, str, Sequence[Row], str], None]
Reader = Callable[..., list[Read]]


def eventually(condition: Callable[[], bool]) -> None:
    """Waits until ``condition`` holds: Apache Kafka answers a change before all of it shows."""
    deadline = time.monotonic() + SECONDS_MAX
    while not condition():
        assert time.monotonic() < deadline, f"{condition} never held"
        time.sleep(0.02)


def confluent_producer(bootstrap: str, **settings: Any) -> confluent_kafka.Producer:
    return confluent_kafka.Producer({"bootstrap.servers": bootstrap, **_dotted(settings)})


def _dotted(settings: dict[str, Any]) -> dict[str, Any]:
    """librdkafka's names have dots, save for a few."""
    return {
        name if name.endswith("_cb") or name == "log_level" else name.replace("_", "."): value
        for name, value in settings.items()
    }


def confluent_consumer(bootstrap: str, **settings: Any) -> confluent_kafka.Consumer:
    return confluent_kafka.Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": f"unused-{uuid.uuid4()}",
            "enable.auto.commit": False,
            "enable.auto.offset.store": False,
            **_dotted(settings),
        }
    )


def write_confluent(bootstrap: str, topic: str, rows: Sequence[Row], codec: str, **settings: Any) -> None:
    failures: list[confluent_kafka.KafkaError] = []
    producer = confluent_producer(bootstrap, compression_type=codec, linger_ms=20, **settings)
    for row in rows:
        producer.produce(
            topic,
            key=row.key,
            value=row.value,
            headers=list(row.headers),
            timestamp=row.timestamp_ms,
            partition=0,
            on_delivery=lambda error, _message: failures.append(error) if error else None,
        )
    left = producer.flush(SECONDS_MAX)
    assert not failures, failures
    assert left == 0, f"{left} records were not acknowledged"


def read_confluent(bootstrap: str, topic: str, count: int, *, start: int = 0, partition: int = 0) -> list[Read]:
    consumer = confluent_consumer(bootstrap, **{"isolation.level": "read_committed"})
    consumer.assign([confluent_kafka.TopicPartition(topic, partition, start)])
    found: list[Read] = []
    deadline = time.monotonic() + SECONDS_MAX
    while len(found) < count and time.monotonic() < deadline:
        for message in consumer.consume(count - len(found), 0.5):
            assert message.error() is None, message.error()
            headers = tuple((name, value) for name, value in message.headers() or ())
            row = Row(message.key(), message.value(), headers, message.timestamp()[1])
            found.append(Read(message.offset(), row))
    consumer.close()
    return found


def write_kafka_python(bootstrap: str, topic: str, rows: Sequence[Row], codec: str) -> None:
    producer = kafka.KafkaProducer(
        bootstrap_servers=bootstrap, compression_type=None if codec == "none" else codec, linger_ms=20
    )
    sent = [
        producer.send(
            topic,
            key=row.key,
            value=row.value,
            headers=list(row.headers),
            timestamp_ms=row.timestamp_ms,
            partition=0,
        )
        for row in rows
    ]
    for future in sent:
        future.get(SECONDS_MAX)
    producer.close()


def read_kafka_python(bootstrap: str, topic: str, count: int, **settings: Any) -> list[Read]:
    consumer = kafka.KafkaConsumer(bootstrap_servers=bootstrap, group_id=None, enable_auto_commit=False, **settings)
    partition = kafka.TopicPartition(topic, 0)
    consumer.assign([partition])
    consumer.seek(partition, 0)
    found: list[Read] = []
    deadline = time.monotonic() + SECONDS_MAX
    while len(found) < count and time.monotonic() < deadline:
        for records in consumer.poll(500).values():
            found += [Read(r.offset, Row(r.key, r.value, tuple(map(tuple, r.headers)), r.timestamp)) for r in records]
    consumer.close()
    return found


def write_aiokafka(bootstrap: str, topic: str, rows: Sequence[Row], codec: str) -> None:
    async def write() -> None:
        producer = aiokafka.AIOKafkaProducer(
            bootstrap_servers=bootstrap, compression_type=None if codec == "none" else codec, linger_ms=20
        )
        await producer.start()
        try:
            sent = [
                await producer.send(
                    topic,
                    key=row.key,
                    value=row.value,
                    headers=list(row.headers),
                    timestamp_ms=row.timestamp_ms,
                    partition=0,
                )
                for row in rows
            ]
            await asyncio.wait_for(asyncio.gather(*sent), SECONDS_MAX)
        finally:
            await producer.stop()

    asyncio.run(write())


def read_aiokafka(bootstrap: str, topic: str, count: int, **settings: Any) -> list[Read]:
    async def read() -> list[Read]:
        consumer = aiokafka.AIOKafkaConsumer(
            bootstrap_servers=bootstrap, group_id=None, enable_auto_commit=False, **settings
        )
        await consumer.start()
        found: list[Read] = []
        try:
            partition = aiokafka.TopicPartition(topic, 0)
            consumer.assign([partition])
            consumer.seek(partition, 0)
            deadline = time.monotonic() + SECONDS_MAX
            while len(found) < count and time.monotonic() < deadline:
                for records in (await consumer.getmany(timeout_ms=500)).values():
                    found += [Read(r.offset, Row(r.key, r.value, tuple(r.headers), r.timestamp)) for r in records]
        finally:
            await consumer.stop()
        return found

    return asyncio.run(read())


def write_ottla(bootstrap: str, topic: str, rows: Sequence[Row], codec: str, **settings: Any) -> None:
    with sync.Producer(bootstrap_servers=bootstrap, compression_type=codec, linger_ms=20, **settings) as producer:
        sent = [
            producer.send(topic, row.value, row.key, partition=0, timestamp=row.timestamp_ms, headers=list(row.headers))
            for row in rows
        ]
        for delivery in sent:
            delivery.result(SECONDS_MAX)


def read_ottla(bootstrap: str, topic: str, count: int, **settings: Any) -> list[Read]:
    found: list[Read] = []
    deadline = time.monotonic() + SECONDS_MAX
    with sync.Consumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest", **settings) as consumer:
        consumer.assign([(topic, 0)])
        while len(found) < count and time.monotonic() < deadline:
            records = consumer.poll(timeout_ms=500)
            found += [Read(r.offset, Row(r.key, r.value, tuple(r.headers), r.timestamp)) for r in records]
    return found


WRITERS: dict[str, Writer] = {
    "confluent": write_confluent,
    "kafka-python": write_kafka_python,
    "aiokafka": write_aiokafka,
    "ottla": write_ottla,
}
READERS: dict[str, Reader] = {
    "confluent": read_confluent,
    "kafka-python": read_kafka_python,
    "aiokafka": read_aiokafka,
    "ottla": read_ottla,
}
