"""Members of a group for tests: consumers that note what they are told, and polls that go on until something is so."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ottla.client.consuming.consumer import Consumer
from ottla.client.producing.producer import Producer
from ottla.client.records import ConsumerRecord
from ottla.model import TopicPartition

#: Rebalances are noticed by heartbeats, topics by metadata: the usual seconds would be most of a test.
QUICK: dict[str, Any] = {
    "heartbeat_interval_ms": 50,
    "retry_backoff_ms": 20,
    "reconnect_backoff_max_ms": 50,
    "fetch_max_wait_ms": 50,
    "metadata_max_age_ms": 200,
    "auto_offset_reset": "earliest",
    "auto_commit_interval_ms": 100,
}


class Member:
    """A consumer, what it was told of partitions, and what it read."""

    def __init__(self, bootstrap: str, group: str, name: str = "member", **settings: Any) -> None:
        self.events: list[tuple[str, list[int]]] = []
        self.records: list[ConsumerRecord] = []
        self.consumer = Consumer(
            {**QUICK, "bootstrap_servers": bootstrap, "group_id": group, "client_id": name, **settings}
        )

    def subscribe(self, *topics: str, pattern: str | None = None) -> Member:
        self.consumer.subscribe(topics or None, pattern=pattern, listener=self)
        return self

    def on_assigned(self, partitions: Sequence[TopicPartition]) -> None:
        self.events.append(("assigned", [tp.partition for tp in partitions]))

    def on_revoked(self, partitions: Sequence[TopicPartition]) -> None:
        self.events.append(("revoked", [tp.partition for tp in partitions]))

    def on_lost(self, partitions: Sequence[TopicPartition]) -> None:
        self.events.append(("lost", [tp.partition for tp in partitions]))

    @property
    def has(self) -> list[int]:
        """The numbers of its partitions, in order."""
        return sorted(tp.partition for tp in self.consumer.assignment())

    @property
    def values(self) -> list[bytes]:
        return [record.value for record in self.records]

    async def poll(self, timeout_ms: int = 20) -> None:
        self.records += await self.consumer.poll(timeout_ms=timeout_ms)

    async def vanish(self) -> None:
        """Ends as a process does that is killed: the group hears nothing."""
        await self.consumer.cluster.close()


async def until(condition: Callable[[], bool], *members: Member) -> None:
    """Has all members poll until it holds; the test's own time-out ends it otherwise."""

    async def work(member: Member) -> None:
        while not condition():
            await member.poll()

    async with asyncio.TaskGroup() as group:
        for member in members:
            group.create_task(work(member))


async def poll_on(member: Member) -> None:
    """Polls until a poll raises."""
    while True:
        await member.poll()


def shares(partitions: int, *members: Member) -> Callable[[], bool]:
    """Whether the members have the partitions 0 to n-1 of one topic, each exactly one, and none has nothing."""

    def check() -> bool:
        held = [number for member in members for number in member.has]
        return sorted(held) == list(range(partitions)) and all(member.has for member in members)

    return check


async def close(*members: Member) -> None:
    for member in members:
        await member.consumer.close()


async def write(bootstrap: str, topic: str, values: Iterable[bytes], partitions: int = 1) -> None:
    """To one partition after the other."""
    async with Producer(bootstrap_servers=bootstrap) as producer:
        for number, value in enumerate(values):
            await producer.send(topic, value, partition=number % partitions)
