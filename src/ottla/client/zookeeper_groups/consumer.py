"""A consumer of Kafka 0.8's kind: its group agrees in ZooKeeper, where its offsets are as well.

    async with ZookeeperConsumer(zookeeper_connect="localhost:2181", group_id="billing") as consumer:
        consumer.subscribe(["orders"])
        for record in await consumer.poll(timeout_ms=1000):
            print(record.partition, record.offset, record.key, record.value)

Its members share a group with consumers of Kafka 0.8 to 0.10 that are configured with `zookeeper.connect`. The shares
are taken in the background: a member that works on records for long holds nobody up. What a poll gave out counts as
done with the next poll, or with `commit`.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Iterable, Mapping
from types import TracebackType
from typing import Any, Self

from ottla.client.arguments import a_kind_of, checked_count, checked_subscription, checked_timeout_ms
from ottla.client.errors import BadArgument, ClientClosed, NotAssigned, WrongConsumerState
from ottla.client.records import ConsumerRecord
from ottla.client.wire.world import ClientPorts, real_world
from ottla.client.zookeeper_groups.member import ZookeeperMember
from ottla.client.zookeeper_groups.settings import parse_zookeeper_settings
from ottla.client.zookeeper_groups.share import Share
from ottla.client.zookeeper_groups.znodes import Subscription, SubscriptionKind
from ottla.model import TopicPartition


class ZookeeperConsumer:
    """One client of one event loop; one task at a time polls."""

    def __init__(
        self, settings: Mapping[str, Any] | None = None, /, *, world: ClientPorts | None = None, **keywords: Any
    ) -> None:
        self.settings = parse_zookeeper_settings(settings, keywords)
        self._world = world or real_world()
        self._share = Share(self.settings, self._world)
        self._member: ZookeeperMember | None = None
        self._closed = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close(commit=kind is None)

    async def close(self, *, commit: bool = True) -> None:
        """Leaves the group; before that commits what was given out, if it commits by itself."""
        if self._closed:
            return
        self._closed = True
        self._share.news.set()
        if commit:
            self._share.all_done()
        try:
            if self._member is not None:
                await self._member.end(commit=commit and self.settings.auto_commit_enable)
        finally:
            await self._share.close()

    def subscribe(self, topics: Iterable[str] | Mapping[str, int]) -> None:
        """Shares these topics with the group, once. A number of threads for each makes its share so many times as
        large: all their records come by `poll`.
        """
        names = checked_subscription(topics)
        counts = dict(topics) if isinstance(topics, Mapping) else dict.fromkeys(names, 1)
        self._subscribe(Subscription(SubscriptionKind.STATIC, counts))

    def subscribe_pattern(self, expression: str, threads: int = 1, *, excludes: bool = False) -> None:
        """All topics whose whole names match, or with `excludes` all others: 0.8's white list and black list."""
        if not isinstance(expression, str):
            raise BadArgument(f"expression must be a str, not {a_kind_of(expression)}")
        kind = SubscriptionKind.BLACK_LIST if excludes else SubscriptionKind.WHITE_LIST
        self._subscribe(Subscription(kind, {expression: threads}))

    def _subscribe(self, subscription: Subscription) -> None:
        self._check_open()
        if self._member is not None:
            raise WrongConsumerState("a consumer of this kind subscribes once, as those of Kafka 0.8 did")
        for name, count in subscription.counts.items():
            checked_count(count, f"the threads of {name}")
        try:
            subscription.check()
        except ValueError as fault:
            raise BadArgument(f"this cannot be subscribed to: {fault}") from fault
        self._member = ZookeeperMember(self.settings, self._world, self._name(), subscription, self._share)
        self._member.begin()

    def _name(self) -> str:
        """As 0.8 makes it."""
        settings = self.settings
        if settings.consumer_id is not None:
            return f"{settings.group_id}_{settings.consumer_id}"
        random = self._world.entropy.below(2**32)
        return f"{settings.group_id}_{socket.gethostname()}-{self._world.clock.wall_ms()}-{random:08x}"

    @property
    def name(self) -> str | None:
        """Under which it is registered; None before it subscribes."""
        return None if self._member is None else self._member.name

    def assignment(self) -> list[TopicPartition]:
        """Its share; nothing while the group balances."""
        return self._share.partitions()

    async def commit(self) -> None:
        """Has the tree remember how far everything was given out; raises CommitFailed."""
        self._check_open()
        if self._member is None:
            raise NotAssigned("there is nothing to commit: subscribe to topics first")
        self._share.all_done()
        await self._member.commit()

    async def poll(self, *, max_records: int | None = None, timeout_ms: int | None = None) -> list[ConsumerRecord]:
        """Records, as soon as there are any; empty when the time is up (None: never).

        Raises GroupRebalanceFailed where the member got no share in all its tries; the next poll has it try again.
        """
        self._check_open()
        if self._member is None:
            raise NotAssigned("there is nothing to read: subscribe to topics first")
        share = self._share
        share.all_done()
        checked_timeout_ms(timeout_ms)
        if max_records is not None:
            checked_count(max_records, "max_records")
        loop = asyncio.get_running_loop()
        deadline = None if timeout_ms is None else loop.time() + timeout_ms / 1000
        while True:
            share.news.clear()
            self._raise_fault(self._member)
            left_s = None if deadline is None else max(0.0, deadline - loop.time())
            records = await self._read_or_hear(left_s, max_records)
            self._check_open()
            share.gave(records)
            if records or (deadline is not None and loop.time() >= deadline):
                return records

    def _raise_fault(self, member: ZookeeperMember) -> None:
        member.check()
        fault, self._share.fault = self._share.fault, None
        if fault is not None:
            member.try_again()
            raise fault

    async def _read_or_hear(self, left_s: float | None, max_records: int | None) -> list[ConsumerRecord]:
        """Records, or none where there is news or the time is up."""
        share, loop = self._share, asyncio.get_running_loop()
        reader = share.reader if share.partitions() else None
        if reader is not None and (ready := share.take(max_records)):
            return ready
        tasks: list[asyncio.Task[Any]] = [loop.create_task(share.news.wait())]
        reading: asyncio.Task[None] | None = None
        if reader is not None:
            left_ms = None if left_s is None else int(left_s * 1000)
            reading = loop.create_task(share.read(reader, max_records, left_ms))
            tasks.append(reading)
        try:
            await asyncio.wait(tasks, timeout=left_s, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
        if reading is None:
            return []
        if not reading.cancelled():
            reading.result()
        # Records that were taken are given out, whatever happened meanwhile: their partitions stand behind them.
        return share.take(max_records)

    async def __aiter__(self) -> AsyncIterator[ConsumerRecord]:
        """All records, for ever, some at a time: they count as done together, when all of them were given out."""
        while True:
            for record in await self.poll():
                yield record

    def _check_open(self) -> None:
        if self._closed:
            raise ClientClosed("the consumer was closed")
