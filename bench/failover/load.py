"""Producers and readers of other people's making (librdkafka), whose every record is noted in a history.

Each runs in a thread of its own until it is stopped. Values are `NAME-NUMBER`; a producer writes to its partitions in
turn. Pauses of a client between two tries to reach a broker are kept short here: a client that is thrown out of one
broker after the other waits for up to ten seconds by default, and would write nothing while others are killed.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaException, Producer, TopicPartition

from ottla.testing.histories import ClientHistory, Partition

QUICK: Final = {
    "reconnect.backoff.ms": 20,
    "reconnect.backoff.max.ms": 200,
    "topic.metadata.refresh.fast.interval.ms": 50,
    "log_level": 0,
}
#: Between two records of a producer.
PAUSE_S: Final = 0.004
#: How long a fresh reader may take for everything.
READING_S_MAX: Final = 120.0


class Task:
    """A thread that works until it is stopped; a fault of it is raised then."""

    def __init__(self, work: Callable[[], None], name: str) -> None:
        self.stopping = threading.Event()
        self._work = work
        self._fault: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def _run(self) -> None:
        try:
            self._work()
        except BaseException as fault:
            self._fault = fault

    def stop(self) -> None:
        self.stopping.set()
        self._thread.join()
        if self._fault is not None:
            raise self._fault


class Writer:
    def __init__(
        self,
        name: str,
        bootstrap: str,
        partitions: Sequence[Partition],
        history: ClientHistory,
        settings: Mapping[str, Any] | None = None,
        pause_s: float = PAUSE_S,
    ) -> None:
        self.name = name
        self._pause_s = pause_s
        self._partitions = partitions
        self._history = history
        self._producer = Producer(
            {"bootstrap.servers": bootstrap, "acks": "all", "enable.idempotence": True, **QUICK, **(settings or {})}
        )
        #: When each acknowledgement came, by the monotonic clock.
        self.acknowledged_at: list[float] = []
        #: What became of records that were given up, by the error's name.
        self.errors: dict[str, int] = {}
        self._task = Task(self._write, name)
        self._is_given_up = False

    def start(self) -> None:
        self._task.start()

    def _write(self) -> None:
        number = 0
        while not self._task.stopping.is_set():
            topic, partition = tp = self._partitions[number % len(self._partitions)]
            value = f"{self.name}-{number}"
            self._history.sent(self.name, tp, value)
            self._producer.produce(topic, value, partition=partition, on_delivery=self._done)
            number += 1
            self._producer.poll(self._pause_s)
        if self._is_given_up:
            self._producer.purge()
        self._producer.flush(60)

    def _done(self, error: Any, message: Any) -> None:
        tp = (message.topic(), message.partition())
        if error is None:
            self.acknowledged_at.append(time.monotonic())
            # Without an answer (acks=0) nobody knows where it is.
            offset = message.offset() if message.offset() is not None and message.offset() >= 0 else None
            self._history.acknowledged(self.name, tp, message.value().decode(), offset)
        else:
            name = error.name()
            self.errors[name] = self.errors.get(name, 0) + 1

    def stop(self) -> None:
        """What it has sent is acknowledged or given up then."""
        self._task.stop()

    def give_up(self) -> None:
        """Its brokers are gone for good: what was not acknowledged may have been written."""
        self._is_given_up = True
        self._task.stop()


class Reader:
    """Of all partitions, assigned by hand or as the only member of a group."""

    def __init__(
        self, name: str, bootstrap: str, partitions: Sequence[Partition], history: ClientHistory, *, group: bool = False
    ) -> None:
        self.name = name
        self._history = history
        self._partitions = partitions
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": name,
                "auto.offset.reset": "earliest" if group else "error",
                "enable.auto.commit": group,
                "auto.commit.interval.ms": 500,
                **QUICK,
            }
        )
        #: Errors that it was given instead of records.
        self.errors: dict[str, int] = {}
        if group:
            self._consumer.subscribe(sorted({topic for topic, _ in partitions}), on_assign=self._assigned)
        else:
            wanted = [TopicPartition(topic, number, OFFSET_BEGINNING) for topic, number in partitions]
            self._consumer.assign(wanted)
            self._assigned(self._consumer, wanted)
        self._task = Task(self._read, name)

    def start(self) -> None:
        self._task.start()

    def _assigned(self, _: Any, partitions: Sequence[Any]) -> None:
        for found in partitions:
            self._history.assigned(self.name, (found.topic, found.partition))

    def _read(self) -> None:
        while not self._task.stopping.is_set():
            for message in self._consumer.consume(500, 0.1):
                error = message.error()
                if error is None:
                    tp = (str(message.topic()), message.partition() or 0)
                    self._history.polled(self.name, tp, [_row(message)])
                else:
                    self.errors[error.name()] = self.errors.get(error.name(), 0) + 1
        self._consumer.close()

    def stop(self) -> None:
        self._task.stop()


def read_all(bootstrap: str, partitions: Sequence[Partition], history: ClientHistory) -> None:
    """By a fresh client, for the history's end."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "fresh", "auto.offset.reset": "error", **QUICK})
    try:
        for topic, number in partitions:
            rows = _rows(consumer, topic, number)
            history.ended((topic, number), rows)
    finally:
        consumer.close()


def _row(message: Any) -> tuple[int, str]:
    return message.offset(), message.value().decode()


def _rows(consumer: Any, topic: str, number: int) -> list[tuple[int, str]]:
    ends = time.monotonic() + READING_S_MAX
    end = -1
    while end < 0:
        try:
            _, end = consumer.get_watermark_offsets(TopicPartition(topic, number), timeout=5)
        except KafkaException:
            if time.monotonic() > ends:
                raise
    consumer.assign([TopicPartition(topic, number, OFFSET_BEGINNING)])
    rows: list[tuple[int, str]] = []
    while time.monotonic() < ends:
        for message in consumer.consume(1_000, 0.2):
            rows += [_row(message)] if message.error() is None else []
        # A marker or a hole may be the last: the reader's own place decides.
        if (at := consumer.position([TopicPartition(topic, number)])[0].offset) >= end or (end == 0 and at < 0):
            return rows
    raise TimeoutError(f"{topic}-{number} was not read up to {end}: {len(rows)} records came")
