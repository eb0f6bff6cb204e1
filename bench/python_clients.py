"""One Python client in a process: ``python -m bench.python_clients CLIENT produce|consume PORT TOPIC RECORDS``.

Prints the seconds from the first record to the last acknowledgement (or from the first poll to the last record) and the
seconds of processor time that the process used meanwhile. All clients get the same settings, and each is used in the
way that its own documentation gives as the fast one.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import Callable

import aiokafka
import confluent_kafka
import kafka

from ottla.client import Consumer, Producer, TopicPartition

BATCH_BYTES = 65_536
LINGER_MS = 5
#: Records handed over between two looks at what librdkafka has to report.
BURST = 10_000
VALUE = os.urandom(100)
ASKED_AT_ONCE = 5_000


class Stopwatch:
    """What passes from its making to `end`."""

    def __init__(self) -> None:
        self._began, self._used = time.monotonic(), time.process_time()

    def end(self) -> None:
        print(time.monotonic() - self._began, time.process_time() - self._used)


async def _ottla_produce(server: str, topic: str, records: int) -> None:
    async with Producer(bootstrap_servers=server, linger_ms=LINGER_MS, batch_size=BATCH_BYTES, acks="all") as producer:
        await producer.send_and_wait(topic, VALUE, partition=0)
        watch = Stopwatch()
        for _ in range(records):
            await producer.send(topic, VALUE, partition=0)
        await producer.flush()
        watch.end()


async def _ottla_consume(server: str, topic: str, records: int) -> None:
    async with Consumer(
        bootstrap_servers=server, auto_offset_reset="earliest", max_poll_records=ASKED_AT_ONCE
    ) as consumer:
        consumer.assign([TopicPartition(topic, 0)])
        watch, seen = Stopwatch(), 0
        while seen < records:
            seen += len(await consumer.poll())
        watch.end()


async def _aiokafka_produce(server: str, topic: str, records: int) -> None:
    async with aiokafka.AIOKafkaProducer(
        bootstrap_servers=server,
        linger_ms=LINGER_MS,
        max_batch_size=BATCH_BYTES,
        acks="all",
        enable_idempotence=True,
    ) as producer:
        await producer.send_and_wait(topic, VALUE, partition=0)
        watch = Stopwatch()
        for _ in range(records):
            await producer.send(topic, VALUE, partition=0)
        await producer.flush()
        watch.end()


async def _aiokafka_consume(server: str, topic: str, records: int) -> None:
    consumer = aiokafka.AIOKafkaConsumer(bootstrap_servers=server, auto_offset_reset="earliest")
    consumer.assign([aiokafka.TopicPartition(topic, 0)])
    await consumer.start()
    try:
        await consumer.seek_to_beginning()
        watch, seen = Stopwatch(), 0
        while seen < records:
            found = await consumer.getmany(timeout_ms=1000, max_records=ASKED_AT_ONCE)
            seen += sum(map(len, found.values()))
        watch.end()
    finally:
        await consumer.stop()


def _kafka_python_produce(server: str, topic: str, records: int) -> None:
    producer = kafka.KafkaProducer(
        bootstrap_servers=server, linger_ms=LINGER_MS, batch_size=BATCH_BYTES, acks="all", enable_idempotence=True
    )
    producer.send(topic, VALUE, partition=0).get(30)
    watch = Stopwatch()
    for _ in range(records):
        producer.send(topic, VALUE, partition=0)
    producer.flush()
    watch.end()
    producer.close()


def _kafka_python_consume(server: str, topic: str, records: int) -> None:
    consumer = kafka.KafkaConsumer(bootstrap_servers=server, auto_offset_reset="earliest", enable_auto_commit=False)
    consumer.assign([kafka.TopicPartition(topic, 0)])
    consumer.seek_to_beginning()
    watch, seen = Stopwatch(), 0
    while seen < records:
        found = consumer.poll(timeout_ms=1000, max_records=ASKED_AT_ONCE)
        seen += sum(map(len, found.values()))
    watch.end()
    consumer.close()


def _confluent_produce(server: str, topic: str, records: int) -> None:
    producer = confluent_kafka.Producer(
        {
            "bootstrap.servers": server,
            "linger.ms": LINGER_MS,
            "batch.size": BATCH_BYTES,
            "acks": "all",
            "enable.idempotence": True,
            "queue.buffering.max.messages": 1_000_000,
        }
    )
    producer.produce(topic, VALUE, partition=0)
    producer.flush(30)
    watch = Stopwatch()
    for number in range(records):
        while True:
            try:
                producer.produce(topic, VALUE, partition=0)
                break
            except BufferError:
                producer.poll(0.01)
        if number % BURST == 0:
            producer.poll(0)
    if left := producer.flush(60):
        raise SystemExit(f"{left} records unacknowledged")
    watch.end()


def _confluent_consume(server: str, topic: str, records: int) -> None:
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": server,
            "group.id": "bench",
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            # It else pauses for a second wherever its queue is full: its rate would be that of its pauses.
            "fetch.queue.backoff.ms": 1,
        }
    )
    consumer.assign([confluent_kafka.TopicPartition(topic, 0, 0)])
    watch, seen = Stopwatch(), 0
    while seen < records:
        seen += len(consumer.consume(ASKED_AT_ONCE, timeout=1.0))
    watch.end()
    consumer.close()


#: By the words of the command line.
PROGRAMS: dict[tuple[str, str], Callable[[str, str, int], object]] = {
    ("ottla", "produce"): lambda *args: asyncio.run(_ottla_produce(*args)),
    ("ottla", "consume"): lambda *args: asyncio.run(_ottla_consume(*args)),
    ("aiokafka", "produce"): lambda *args: asyncio.run(_aiokafka_produce(*args)),
    ("aiokafka", "consume"): lambda *args: asyncio.run(_aiokafka_consume(*args)),
    ("kafka-python", "produce"): _kafka_python_produce,
    ("kafka-python", "consume"): _kafka_python_consume,
    ("confluent-kafka", "produce"): _confluent_produce,
    ("confluent-kafka", "consume"): _confluent_consume,
}

if __name__ == "__main__":
    client, work, port, topic, records = sys.argv[1:]
    PROGRAMS[client, work](f"127.0.0.1:{port}", topic, int(records))
