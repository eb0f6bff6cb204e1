"""Members of consumer groups: clients of several implementations behind one face, each polling on a thread of its own.

A member notes what it was assigned, what was taken from it, and what it read. Positions are committed by the client
itself when partitions are revoked and at its end, so that a group whose members come and go in peace reads each record
once.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, Protocol

import aiokafka
import confluent_kafka
import kafka
from aiokafka.coordinator.assignors.range import RangePartitionAssignor as AiokafkaRange
from kafka.coordinator.assignors.range import RangePartitionAssignor as KafkaPythonRange
from kafka.util import Timer

from ottla.client import Consumer
from tests.interop.clients import SECONDS_MAX

Partition = tuple[str, int]

#: Rebalances are noticed by heartbeats; the clients' own three seconds would be most of a test.
HEARTBEAT_MS = 100
#: Nobody shall be put out because the machine is busy, except where a test says so.
SESSION_MS = 30_000


#: For a member to join, with a rebalance that waits for the others.
JOIN_MS_MAX = 60_000


class Event(NamedTuple):
    #: "assigned", "revoked" or "lost"
    kind: str
    partitions: frozenset[Partition]
    seconds: float


class Received(NamedTuple):
    partition: Partition
    offset: int
    value: bytes
    seconds: float


class Member:
    """What a test sees of a member. Its client's thread writes, the test reads."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.events: list[Event] = []
        self.received: list[Received] = []
        self.failure: str | None = None

    def leave(self) -> None:
        """Ends as a well-behaved client does; returns when it has."""
        raise NotImplementedError

    def stay(self) -> None:
        """Ends without telling the group, as a process that is restarted does."""
        raise NotImplementedError(f"{type(self).__name__} cannot do that")

    @property
    def assigned(self) -> frozenset[Partition]:
        """What it holds by what it was told so far."""
        held: frozenset[Partition] = frozenset()
        for event in tuple(self.events):
            held = held | event.partitions if event.kind == "assigned" else held - event.partitions
        return held

    @property
    def values(self) -> list[bytes]:
        return [received.value for received in tuple(self.received)]

    def told(self, kind: str, partitions: Iterable[Partition]) -> None:
        self.events.append(Event(kind, frozenset(partitions), time.monotonic()))

    def read(self, topic: str, partition: int, offset: int, value: bytes) -> None:
        self.received.append(Received((topic, partition), offset, value, time.monotonic()))

    def __repr__(self) -> str:
        return f"{type(self).__name__} {self.name} with {sorted(self.assigned)}"


class Start(Protocol):
    def __call__(self, name: str, bootstrap: str, group: str, topics: Sequence[str], **settings: Any) -> Member:
        """A member that joins. ``settings`` are the client's own, with underscores for dots."""


class ThreadMember(Member):
    """Runs ``_work`` on a thread until it is told to end."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._guarded, name=name, daemon=True)

    def _guarded(self) -> None:
        try:
            self._work()
        except Exception as error:
            self.failure = repr(error)
            raise

    def _work(self) -> None:
        raise NotImplementedError

    def leave(self) -> None:
        self._ending.set()
        self._thread.join(SECONDS_MAX)
        assert not self._thread.is_alive(), f"{self.name} did not end"

    def stay(self) -> None:
        """For static members: all these clients close such a one without leaving its group."""
        self.leave()


class ConfluentMember(ThreadMember):
    """librdkafka. A static member of it stays in its group when it is closed."""

    def __init__(self, name: str, bootstrap: str, group: str, topics: Sequence[str], **settings: Any) -> None:
        super().__init__(name)
        self._settings = {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "client.id": name,
            "auto.offset.reset": "earliest",
            "fetch.wait.max.ms": 100,
            "topic.metadata.refresh.interval.ms": 500,
            "log_level": 0,
        }
        if settings.get("group_protocol") != "consumer":  # there the server decides these
            self._settings |= {
                "session.timeout.ms": SESSION_MS,
                "heartbeat.interval.ms": HEARTBEAT_MS,
                "partition.assignment.strategy": "range",
            }
        self._settings |= {key.replace("_", "."): value for key, value in settings.items()}
        self._incremental = settings.get("partition_assignment_strategy") == "cooperative-sticky" or (
            settings.get("group_protocol") == "consumer"
        )
        self._topics = list(topics)
        self.member_id = ""
        self._thread.start()

    def _work(self) -> None:
        consumer = confluent_kafka.Consumer(self._settings)
        consumer.subscribe(self._topics, on_assign=self._assign, on_revoke=self._revoke, on_lost=self._lose)
        while not self._ending.is_set():
            message = consumer.poll(0.05)
            if message is None:
                continue
            if message.error() is not None:
                if message.error().fatal():
                    self.failure = str(message.error())
                    break
                continue
            self.read(message.topic(), message.partition(), message.offset(), message.value())
        consumer.close()

    def _assign(self, consumer: confluent_kafka.Consumer, partitions: list[confluent_kafka.TopicPartition]) -> None:
        self.member_id = consumer.memberid()
        self.told("assigned", [(each.topic, each.partition) for each in partitions])

    def _revoke(self, _: confluent_kafka.Consumer, partitions: list[confluent_kafka.TopicPartition]) -> None:
        self.told("revoked", [(each.topic, each.partition) for each in partitions])

    def _lose(self, _: confluent_kafka.Consumer, partitions: list[confluent_kafka.TopicPartition]) -> None:
        self.told("lost", [(each.topic, each.partition) for each in partitions])


class KafkaPythonMember(ThreadMember):
    """kafka-python, which is given time to join.

    A call of its `poll` whose time is up while it joins leaves the join running behind it, and the next call begins
    another beside it: now and then, against any broker, the last of them ends with the heartbeats off and takes itself
    for a member, for which the group then waits until its session is over. One round of what `poll` does looks for
    records no longer than until the next heartbeat.
    """

    def __init__(self, name: str, bootstrap: str, group: str, topics: Sequence[str], **settings: Any) -> None:
        super().__init__(name)
        self._settings = {
            "bootstrap_servers": bootstrap,
            "group_id": group,
            "client_id": name,
            "auto_offset_reset": "earliest",
            "session_timeout_ms": SESSION_MS,
            "heartbeat_interval_ms": HEARTBEAT_MS,
            "retry_backoff_ms": 50,
            "fetch_max_wait_ms": 100,
            "partition_assignment_strategy": (KafkaPythonRange,),
            **settings,
        }
        self._topics = list(topics)
        self._thread.start()

    def _work(self) -> None:
        consumer = kafka.KafkaConsumer(**self._settings)
        for topic in self._topics:
            # Against any broker it at times waits for ever if it hears of a topic while it joins for the first time.
            consumer.partitions_for_topic(topic)
        consumer.subscribe(self._topics)
        while not self._ending.is_set():
            polled = consumer._poll_once(Timer(JOIN_MS_MAX), consumer.config["max_poll_records"])
            self._look(frozenset((each.topic, each.partition) for each in consumer.assignment()))
            for records in polled.values():
                for record in records:
                    self.read(record.topic, record.partition, record.offset, record.value)
        consumer.close()

    def _look(self, held: frozenset[Partition]) -> None:
        """Its listener is told in the wrong order when one rebalance follows another at once: so it is looked at."""
        before = self.assigned
        if before - held:
            self.told("revoked", before - held)
        if held - before:
            self.told("assigned", held - before)


class AsyncMember(ThreadMember):
    """A client of asyncio, on a loop of its own."""

    def _work(self) -> None:
        asyncio.run(self._poll())

    async def _poll(self) -> None:
        raise NotImplementedError


class AiokafkaMember(AsyncMember):
    def __init__(self, name: str, bootstrap: str, group: str, topics: Sequence[str], **settings: Any) -> None:
        super().__init__(name)
        self._settings = {
            "bootstrap_servers": bootstrap,
            "group_id": group,
            "client_id": name,
            "auto_offset_reset": "earliest",
            "session_timeout_ms": SESSION_MS,
            "rebalance_timeout_ms": SESSION_MS,
            "heartbeat_interval_ms": HEARTBEAT_MS,
            "retry_backoff_ms": 50,
            "fetch_max_wait_ms": 100,
            "partition_assignment_strategy": (AiokafkaRange,),
            **settings,
        }
        self._topics = list(topics)
        self._thread.start()

    async def _poll(self) -> None:
        member = self

        class Listener(aiokafka.ConsumerRebalanceListener):  # type: ignore[misc]
            async def on_partitions_revoked(self, revoked: Iterable[Any]) -> None:
                member.told("revoked", [(each.topic, each.partition) for each in revoked])

            async def on_partitions_assigned(self, assigned: Iterable[Any]) -> None:
                member.told("assigned", [(each.topic, each.partition) for each in assigned])

        consumer = aiokafka.AIOKafkaConsumer(**self._settings)
        consumer.subscribe(self._topics, listener=Listener())
        await consumer.start()
        try:
            while not self._ending.is_set():
                for records in (await consumer.getmany(timeout_ms=50)).values():
                    for record in records:
                        self.read(record.topic, record.partition, record.offset, record.value)
        finally:
            await consumer.stop()


class OttlaMember(AsyncMember):
    """Our own client."""

    def __init__(self, name: str, bootstrap: str, group: str, topics: Sequence[str], **settings: Any) -> None:
        super().__init__(name)
        self._settings = {
            "bootstrap_servers": bootstrap,
            "group_id": group,
            "client_id": name,
            "auto_offset_reset": "earliest",
            "session_timeout_ms": SESSION_MS,
            "heartbeat_interval_ms": HEARTBEAT_MS,
            "retry_backoff_ms": 20,
            "fetch_max_wait_ms": 100,
            "partition_assignment_strategy": "range",
            **settings,
        }
        self._topics = list(topics)
        self._thread.start()

    async def _poll(self) -> None:
        async with Consumer(self._settings) as consumer:
            consumer.subscribe(self._topics, listener=self)
            while not self._ending.is_set():
                for record in await consumer.poll(timeout_ms=50):
                    self.read(record.topic, record.partition, record.offset, record.value or b"")

    def on_assigned(self, partitions: Iterable[Partition]) -> None:
        self.told("assigned", map(tuple, partitions))

    def on_revoked(self, partitions: Iterable[Partition]) -> None:
        self.told("revoked", map(tuple, partitions))

    def on_lost(self, partitions: Iterable[Partition]) -> None:
        self.told("lost", map(tuple, partitions))


STARTS: dict[str, Start] = {
    "confluent": ConfluentMember,
    "kafka-python": KafkaPythonMember,
    "aiokafka": AiokafkaMember,
    "ottla": OttlaMember,
}


def wait_for(condition: Callable[[], bool], members: Iterable[Member], seconds: float = SECONDS_MAX) -> None:
    """Until ``condition`` holds; fails with what the members say."""
    deadline = time.monotonic() + seconds
    everyone = list(members)
    while not condition():
        failed = {member.name: member.failure for member in everyone if member.failure is not None}
        assert not failed, failed
        told = {member: [(event.kind, sorted(event.partitions)) for event in member.events] for member in everyone}
        assert time.monotonic() < deadline, f"it never came: {told}"
        time.sleep(0.01)


def wait_for_each_once(written: Sequence[bytes], members: Sequence[Member], seconds: float = SECONDS_MAX) -> None:
    """Until the members have read all of these values; fails with those that nobody read, or that were read again."""
    wanted = Counter(written)

    def differing() -> dict[bytes, list[tuple[str, Received]]]:
        read: dict[bytes, list[tuple[str, Received]]] = {value: [] for value in wanted}
        for member in members:
            for received in tuple(member.received):
                read.setdefault(received.value, []).append((member.name, received))
        return {value: found for value, found in read.items() if len(found) != wanted[value]}

    try:
        wait_for(lambda: not differing(), members, seconds)
    except AssertionError as error:
        told = {member.name: member.events for member in members}
        raise AssertionError(f"not read once: {differing()} by members that were told {told}") from error


def shares(members: Iterable[Member], partitions: Iterable[Partition]) -> bool:
    """Whether the members hold these partitions, each exactly one."""
    held = [partition for member in members for partition in member.assigned]
    return sorted(held) == sorted(partitions)


def partitions_of(topic: str, count: int) -> list[Partition]:
    return [(topic, number) for number in range(count)]
