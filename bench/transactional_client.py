"""librdkafka's transactions in a process of their own: ``python -m bench.transactional_client WORK PORTS TOPIC ...``.

small PRODUCERS SECONDS     transactions of one record, one after the other, of each producer; prints transactions,
                            seconds, and microseconds of a transaction's p50 and p99
large RECORDS A_TRANSACTION [ABORTED_EACH]
                            how long so many records take, 0 for none in transactions; of so many transactions one is
                            aborted; prints seconds
consume RECORDS ISOLATION   how long a consumer takes for so many; prints seconds
idle PRODUCERS OPEN         begins with so many producers, each with a record in a transaction that is committed, or
                            left open where OPEN is 1; prints a line, and does nothing until its input ends
"""

from __future__ import annotations

import os
import statistics
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import confluent_kafka

#: Records handed over between two looks at the delivery reports.
BURST = 10_000
VALUE = os.urandom(100)
WAIT_S = 60.0
ASKED_AT_ONCE = 10_000


def servers(ports: str) -> dict[str, Any]:
    return {"bootstrap.servers": ",".join(f"127.0.0.1:{port}" for port in ports.split(","))}


def transactional(ports: str, name: str, **settings: Any) -> confluent_kafka.Producer:
    return confluent_kafka.Producer({**servers(ports), "transactional.id": name, **settings})


class SmallTransactions(threading.Thread):
    """One producer; the interpreter's lock is not held while it waits."""

    def __init__(self, ports: str, topic: str, number: int, ready: threading.Barrier, seconds: float) -> None:
        super().__init__(daemon=True)
        self._topic = topic
        self._ready = ready
        self._seconds = seconds
        self._producer = transactional(ports, f"small-{number}", **{"linger.ms": 0})
        self.took: list[float] = []
        self.failure: BaseException | None = None

    def run(self) -> None:
        try:
            self._producer.init_transactions(WAIT_S)
            for _ in range(3):
                self._once()  # metadata, and the topic's first transaction
            self._ready.wait(WAIT_S)
            ends = time.monotonic() + self._seconds
            while (began := time.monotonic()) < ends:
                self._once()
                self.took.append(time.monotonic() - began)
        except BaseException as failure:
            self.failure = failure
            self._ready.abort()

    def _once(self) -> None:
        self._producer.begin_transaction()
        self._producer.produce(self._topic, VALUE, partition=0)
        self._producer.commit_transaction(WAIT_S)


def small(ports: str, topic: str, producers: str, seconds: str) -> None:
    ready = threading.Barrier(int(producers) + 1)
    threads = [SmallTransactions(ports, topic, number, ready, float(seconds)) for number in range(int(producers))]
    for thread in threads:
        thread.start()
    try:
        ready.wait(WAIT_S)
    except threading.BrokenBarrierError:
        raise SystemExit(f"a producer failed: {[thread.failure for thread in threads if thread.failure][:1]}") from None
    began = time.monotonic()
    for thread in threads:
        thread.join()
    passed = time.monotonic() - began
    failures = [thread.failure for thread in threads if thread.failure]
    took = sorted(each for thread in threads for each in thread.took)
    if failures or len(took) < 2:
        raise SystemExit(f"{len(failures)} producers failed: {failures[:1]}")
    print(len(took), passed, statistics.median(took) * 1e6, took[int(len(took) * 0.99)] * 1e6)


def large(ports: str, topic: str, records: str, a_transaction: str, aborted_each: str = "0") -> None:
    failures: list[object] = []
    settings = {
        "linger.ms": 5,
        "batch.num.messages": 10_000,
        "queue.buffering.max.messages": 1_000_000,
        "enable.idempotence": True,
        "delivery.report.only.error": True,
        "on_delivery": lambda error, _message: failures.append(error) if error else None,
    }
    each = int(a_transaction)
    if each:
        producer = transactional(ports, "large", **settings)
        producer.init_transactions(WAIT_S)
    else:
        producer = confluent_kafka.Producer({**servers(ports), **settings})
    # The first answers of a broker's metadata are no part of what is measured.
    _produce(producer, topic, 1, in_transaction=bool(each))
    began = time.monotonic()
    for number, left in enumerate(range(int(records), 0, -(each or int(records)))):
        aborts = is_aborted(number, int(aborted_each))
        _produce(producer, topic, min(left, each or left), in_transaction=bool(each), aborts=aborts)
    passed = time.monotonic() - began
    if failures:
        raise SystemExit(f"{len(failures)} records were refused: {failures[:1]}")
    print(passed)


def is_aborted(number: int, each: int) -> bool:
    """Of every so many transactions the first; with 0 none."""
    return bool(each) and number % each == 0


def _produce(
    producer: confluent_kafka.Producer, topic: str, records: int, *, in_transaction: bool, aborts: bool = False
) -> None:
    if in_transaction:
        producer.begin_transaction()
    produce = producer.produce
    for first in range(0, records, BURST):
        for _ in range(min(BURST, records - first)):
            try:
                produce(topic, VALUE, partition=0)
            except BufferError:
                producer.poll(0.01)
                produce(topic, VALUE, partition=0)
        producer.poll(0)
    if aborts:
        producer.flush(WAIT_S)  # what has not been sent yet would never be
        producer.abort_transaction(WAIT_S)
    elif in_transaction:
        producer.commit_transaction(WAIT_S)
    elif left := producer.flush(WAIT_S):
        raise SystemExit(f"{left} records unacknowledged")


def consume(ports: str, topic: str, records: str, isolation: str) -> None:
    consumer = confluent_kafka.Consumer(
        {
            **servers(ports),
            "group.id": "bench",
            "isolation.level": isolation,
            "enable.auto.commit": False,
            # It else pauses for a second wherever its queue is full.
            "fetch.queue.backoff.ms": 1,
        }
    )
    consumer.assign([confluent_kafka.TopicPartition(topic, 0, 0)])
    wanted = int(records)
    seen = len(consumer.consume(1, WAIT_S))
    began = time.monotonic()
    while seen < wanted:
        found = consumer.consume(min(ASKED_AT_ONCE, wanted - seen), WAIT_S)
        if not found:
            raise SystemExit(f"{seen} records of {wanted} came")
        seen += len(found)
    print(time.monotonic() - began)
    consumer.close()


def idle(ports: str, topic: str, producers: str, is_open: str) -> None:
    made = [transactional(ports, f"idle-{number}", **{"linger.ms": 0}) for number in range(int(producers))]
    for producer in made:
        producer.init_transactions(WAIT_S)
        producer.begin_transaction()
        producer.produce(topic, VALUE, partition=0)
        if producer.flush(WAIT_S):
            raise SystemExit("a record was not acknowledged")
        if not int(is_open):
            producer.commit_transaction(WAIT_S)
    print("idle", flush=True)
    sys.stdin.read()
    for producer in made if int(is_open) else ():
        producer.abort_transaction(WAIT_S)


WORKS: dict[str, Callable[..., None]] = {"small": small, "large": large, "consume": consume, "idle": idle}

if __name__ == "__main__":
    WORKS[sys.argv[1]](*sys.argv[2:])
