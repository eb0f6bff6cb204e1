"""Consumer: records of assigned partitions, in the order of their offsets.

    async with Consumer(bootstrap_servers="localhost:9092", auto_offset_reset="earliest") as consumer:
        consumer.assign([TopicPartition("orders", 0)])
        for record in await consumer.poll(timeout_ms=1000):
            print(record.offset, record.key, record.value)

It reads ahead in the background as soon as partitions are assigned, within bounds; `poll` hands out what is there.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Iterable, Mapping
from types import TracebackType
from typing import Any, Self

from ottla.client.assignment import Assigned
from ottla.client.backoff import Backoff
from ottla.client.cluster import Cluster
from ottla.client.errors import (
    ClientClosed,
    CorruptRecords,
    KafkaError,
    LogTruncated,
    NoOffset,
    OffsetOutOfRange,
    RequestTimedOut,
)
from ottla.client.fetcher import Fetcher
from ottla.client.listed_offset import EARLIEST, LATEST
from ottla.client.offsets import READ_COMMITTED, READ_UNCOMMITTED, list_offsets
from ottla.client.records import ConsumerRecord, OffsetAndTimestamp
from ottla.client.resets import Resets
from ottla.client.serializers import deserializer_for
from ottla.client.settings import ConsumerSettings, parse_settings
from ottla.client.world import World, real_world
from ottla.model import TopicPartition


class Consumer:
    """One client of one event loop, for one task at a time."""

    def __init__(
        self, settings: Mapping[str, Any] | None = None, /, *, world: World | None = None, **keywords: Any
    ) -> None:
        self.settings = parse_settings(ConsumerSettings, settings, keywords)
        self._key_deserializer = deserializer_for(self.settings.key_deserializer, "key.deserializer")
        self._value_deserializer = deserializer_for(self.settings.value_deserializer, "value.deserializer")
        self._world = world or real_world()
        self.cluster = Cluster(self.settings, self._world, auto_create=self.settings.allow_auto_create_topics)
        backoff = Backoff(self.settings.retry_backoff_ms, self.settings.retry_backoff_max_ms, self._world.entropy)
        self._isolation = READ_COMMITTED if self.settings.isolation_level == "read_committed" else READ_UNCOMMITTED
        self._resets = Resets(
            self.settings.auto_offset_reset, self.cluster, self._world.clock, backoff, self._isolation
        )
        self._assigned: dict[TopicPartition, Assigned] = {}
        self._fetcher: Fetcher | None = None
        self._news: asyncio.Future[None] | None = None
        #: Records that iteration has taken and not given out yet.
        self._ahead: deque[ConsumerRecord] = deque()
        self._closed = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        if self._fetcher is not None:
            self._fetcher.close()
        await self._resets.close()
        await self.cluster.close()
        self._tell()

    # What is read

    def assign(self, partitions: Iterable[TopicPartition | tuple[str, int]]) -> None:
        """Reads exactly these partitions; those that were assigned before keep their positions."""
        self._check_open()
        wanted = {TopicPartition(*tp): None for tp in partitions}
        for tp in list(self._assigned):
            if tp not in wanted:
                del self._assigned[tp]
        self._ahead = deque(record for record in self._ahead if TopicPartition(record[0], record[1]) in wanted)
        for tp in wanted:
            if tp not in self._assigned:
                self._assigned[tp] = self._fresh(tp)
        topics = {tp.topic for tp in wanted}
        self.cluster.forget({name for name in self.cluster.metadata.topics if name not in topics})
        self.cluster.want(topics)
        self._wake()

    def _fresh(self, tp: TopicPartition) -> Assigned:
        one = Assigned(tp)
        strategy = self._resets.strategy()
        if strategy is None:
            one.error = NoOffset(f"{tp} has no position, and auto.offset.reset is none: seek first", tp)
        else:
            one.reset = strategy
        return one

    def assignment(self) -> list[TopicPartition]:
        return list(self._assigned)

    def seek(self, partition: TopicPartition, offset: int) -> None:
        """The next record of the partition is the first at or behind this offset."""
        if offset < 0:
            raise ValueError(f"an offset is at least 0, not {offset}")
        self._one(partition).seek(offset)
        self._drop_ahead([partition])
        self._wake()

    def seek_to_beginning(self, *partitions: TopicPartition) -> None:
        """To the first offsets of these partitions, or of all."""
        self._seek_all(partitions, EARLIEST)

    def seek_to_end(self, *partitions: TopicPartition) -> None:
        self._seek_all(partitions, LATEST)

    def _seek_all(self, partitions: Iterable[TopicPartition], code: int) -> None:
        chosen = list(partitions) or list(self._assigned)
        for tp in chosen:
            self._one(tp).reset_to(code)
        self._drop_ahead(chosen)
        self._wake()

    def pause(self, *partitions: TopicPartition) -> None:
        """Gives out nothing of these partitions until `resume`; their positions stay."""
        for tp in partitions:
            self._one(tp).paused = True

    def resume(self, *partitions: TopicPartition) -> None:
        for tp in partitions:
            self._one(tp).paused = False
        self._wake()
        self._tell()

    def paused(self) -> list[TopicPartition]:
        return [one.tp for one in self._assigned.values() if one.paused]

    async def position(self, partition: TopicPartition, *, timeout_ms: int | None = None) -> int:
        """The offset of the next record; waits until it is known."""
        one = self._one(partition)
        deadline = self._deadline(self.settings.default_api_timeout_ms if timeout_ms is None else timeout_ms)
        while one.position is None:
            if one.error is not None:
                raise one.error
            self._wake()
            if not await self._wait_for_news(deadline):
                raise RequestTimedOut(f"{partition}: the position was not found in time")
        for record in self._ahead:
            if (record[0], record[1]) == partition:
                return record.offset
        return one.position

    def high_watermark(self, partition: TopicPartition) -> int | None:
        """The offset behind the last record that is committed, as the last fetch heard; None before the first."""
        return self._one(partition).high_watermark

    # Offsets

    async def beginning_offsets(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        return await self._offsets(dict.fromkeys(partitions, EARLIEST))

    async def end_offsets(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Behind the last record; with read_committed behind the last that no open transaction holds back."""
        return await self._offsets(dict.fromkeys(partitions, LATEST))

    async def _offsets(self, asked: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        found = await list_offsets(self.cluster, asked, isolation_level=self._isolation)
        return {tp: one.offset for tp, one in found.items()}

    async def offsets_for_times(
        self, times: Mapping[TopicPartition, int]
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        """For each partition the first record at or after a time in ms; None where there is none as young."""
        if any(time < 0 for time in times.values()):
            raise ValueError("a time is at least 0")
        found = await list_offsets(self.cluster, times, isolation_level=self._isolation)
        return {
            tp: None if one.offset < 0 else OffsetAndTimestamp(one.offset, one.timestamp, one.leader_epoch)
            for tp, one in found.items()
        }

    async def partitions_for(self, topic: str) -> list[TopicPartition]:
        """A topic's partitions, as `assign` takes them."""
        found = await self.cluster.topic(topic)
        return [TopicPartition(topic, one.partition) for one in found.partitions]

    # Records

    async def poll(self, *, max_records: int | None = None, timeout_ms: int | None = None) -> list[ConsumerRecord]:
        """Up to `max.poll.records` records, as soon as there are any; empty when the time is up (None: never)."""
        limit = self.settings.max_poll_records if max_records is None else max_records
        deadline = self._deadline(timeout_ms)
        while True:
            self._check_open()
            records = self._take(limit)
            if records:
                return records
            self._wake()
            if not await self._wait_for_news(deadline):
                return []

    async def __aiter__(self) -> AsyncIterator[ConsumerRecord]:
        """All records, for ever. `position` counts what was given out here, not what was polled for it."""
        while True:
            record = self.next_ahead()
            if record is None:
                await self.read_ahead()
            else:
                yield record

    async def read_ahead(self) -> None:
        """Waits for records and lays them ready for `next_ahead`."""
        self._ahead.extend(await self.poll())

    def next_ahead(self) -> ConsumerRecord | None:
        """A record that lies ready, without waiting."""
        return self._ahead.popleft() if self._ahead else None

    def _take(self, limit: int) -> list[ConsumerRecord]:
        """What is there, of one partition after the other; an error where there is nothing but one."""
        taken: list[ConsumerRecord] = []
        if self._ahead:
            while self._ahead and len(taken) < limit:
                taken.append(self._ahead.popleft())
            return taken
        check_crcs = self.settings.check_crcs
        fault: KafkaError | None = None
        for tp, one in list(self._assigned.items()):
            if one.paused:
                continue
            try:
                while len(taken) < limit and one.has_records:
                    taken += one.take(
                        limit - len(taken),
                        check_crcs=check_crcs,
                        key_deserializer=self._key_deserializer,
                        value_deserializer=self._value_deserializer,
                    )
            except KafkaError as error:
                fault = fault or error
            if one.error is not None and not one.has_records:
                fault = fault or self._raised(one)
            if len(taken) >= limit:
                # Its turn is over: the others come first next time.
                self._assigned[tp] = self._assigned.pop(tp)
                break
        if taken:
            self._wake()
        elif fault is not None:
            raise fault
        return taken

    @staticmethod
    def _raised(one: Assigned) -> KafkaError:
        """The partition's error. One that does not lie in the position is forgotten, so that it is tried again."""
        error = one.error
        assert error is not None
        if not isinstance(error, CorruptRecords | NoOffset | OffsetOutOfRange | LogTruncated):
            one.error = None
        return error

    # Waiting

    def _wake(self) -> None:
        if self._closed:
            return
        if self._fetcher is None:
            try:
                asyncio.get_running_loop()
            except RuntimeError:
                return  # assigned before the loop runs: the first poll begins
            self._fetcher = Fetcher(self.settings, self.cluster, self._world, self._assigned, self._resets, self._tell)
        self._fetcher.wake()

    def _tell(self) -> None:
        if self._news is not None and not self._news.done():
            self._news.set_result(None)

    @staticmethod
    def _deadline(timeout_ms: int | None) -> float | None:
        return None if timeout_ms is None else asyncio.get_running_loop().time() + timeout_ms / 1000

    async def _wait_for_news(self, deadline: float | None) -> bool:
        """Until something has come or gone wrong; False when the time is up."""
        loop = asyncio.get_running_loop()
        if deadline is not None and loop.time() >= deadline:
            return False
        self._news = loop.create_future()
        try:
            async with asyncio.timeout_at(deadline):
                await self._news
        except TimeoutError:
            return False
        finally:
            self._news = None
        return True

    def _one(self, tp: TopicPartition) -> Assigned:
        self._check_open()
        found = self._assigned.get(tp)
        if found is None:
            raise ValueError(f"{tp[0]}-{tp[1]} is not assigned")
        return found

    def _drop_ahead(self, partitions: Iterable[TopicPartition]) -> None:
        gone = set(partitions)
        self._ahead = deque(record for record in self._ahead if TopicPartition(record[0], record[1]) not in gone)

    def _check_open(self) -> None:
        if self._closed:
            raise ClientClosed("the consumer is closed")
