"""Consumer: records of a group's share of topics, or of partitions of one's own choice, in the order of their offsets.

    async with Consumer(bootstrap_servers="localhost:9092", group_id="billing") as consumer:
        consumer.subscribe(["orders"])
        for record in await consumer.poll(timeout_ms=1000):
            print(record.partition, record.offset, record.key, record.value)

It reads ahead in the background as soon as it has partitions, within bounds; `poll` hands out what is there.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from types import TracebackType
from typing import Any, Final, Self, TypeVar

from ottla.client.admin.group_results import CommittedOffset
from ottla.client.arguments import (
    a_kind_of,
    check_call,
    checked_committable,
    checked_count,
    checked_offset,
    checked_partitions,
    checked_pattern,
    checked_subscription,
    checked_timeout_ms,
)
from ottla.client.consuming.assignment import AssignedPartition, FetchedBatches
from ottla.client.consuming.fetcher import Fetcher
from ottla.client.consuming.group.commits import OnCommitted
from ottla.client.consuming.group.listener import check_listener
from ottla.client.consuming.group.member import GroupMember
from ottla.client.consuming.group.membership import GroupMetadata
from ottla.client.consuming.offset_questions import OffsetQuestions
from ottla.client.consuming.reading import RecordReading, error_to_raise
from ottla.client.consuming.resets import Resets
from ottla.client.consuming.schema_loading import SchemaLoading
from ottla.client.errors import (
    BadArgument,
    ClientClosed,
    InvalidGroupId,
    NoOffset,
    NotAssigned,
    RequestTimedOut,
    WrongConsumerState,
)
from ottla.client.records import ConsumerRecord
from ottla.client.schemas import SchemaNotLoaded
from ottla.client.settings import ConsumerSettings, parse_settings
from ottla.client.wire.backoff import Backoff
from ottla.client.wire.cluster import Cluster
from ottla.client.wire.listed_offset import EARLIEST, LATEST
from ottla.client.wire.offsets import READ_COMMITTED, READ_UNCOMMITTED
from ottla.client.wire.world import ClientPorts, real_world
from ottla.model import TopicPartition

#: An offset to commit: a number, or (offset, metadata, leader epoch), of which only the first must be there.
Committable = int | tuple[int] | tuple[int, str] | tuple[int, str, int]


#: Rows of an Arrow batch where nothing is said: a fetch of 1 MiB has 10,000 of 100 bytes.
ARROW_ROWS_MAX: Final = 65_536

Taken = TypeVar("Taken")


class Consumer(OffsetQuestions):
    """One client of one event loop, for one task at a time."""

    def __init__(
        self, settings: Mapping[str, Any] | None = None, /, *, world: ClientPorts | None = None, **keywords: Any
    ) -> None:
        self.settings = parse_settings(ConsumerSettings, settings, keywords)
        self._reading = RecordReading(self.settings)
        self._world = world or real_world()
        self.cluster = Cluster(self.settings, self._world, auto_create=self.settings.allow_auto_create_topics)
        backoff = Backoff(self.settings.retry_backoff_ms, self.settings.retry_backoff_max_ms, self._world.entropy)
        self._isolation = READ_COMMITTED if self.settings.isolation_level == "read_committed" else READ_UNCOMMITTED
        self._resets = Resets(
            self.settings.auto_offset_reset, self.cluster, self._world.clock, backoff, self._isolation
        )
        self._group: GroupMember | None = None
        if self.settings.group_id is not None:
            self._group = GroupMember(
                self.settings, self.cluster, self._reading, self._resets, self._wake_waiting, self._wake
            )
        self._fetcher: Fetcher | None = None
        #: The polls that wait for something to come or to go wrong.
        self._waiting: set[asyncio.Future[None]] = set()
        self._polling = False
        self._schemas = SchemaLoading()
        #: Closing takes a while, in which a listener may close it again.
        self._closing = self._closed = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close(commit=kind is None)

    async def close(self, *, commit: bool = True) -> None:
        """Leaves the group, if it is in one; before that commits how far it has come, if it commits by itself.

        A `with` block that ends in an exception does not commit: what was being worked on then is read again.
        """
        if self._closing:
            return
        self._closing = True
        try:
            if self._group is not None:
                await self._group.end("the consumer was closed", commit=commit)
        finally:
            self._closed = True
            self._reading.ahead.clear()  # an iteration that goes on hears of the end
            if self._fetcher is not None:
                self._fetcher.close()
            if self._group is not None:
                await self._group.close()
            await self._resets.close()
            await self.cluster.close()
            self._wake_waiting()

    # What is read

    def subscribe(
        self,
        topics: Iterable[str] | None = None,
        *,
        pattern: str | re.Pattern[str] | None = None,
        listener: object = None,
    ) -> None:
        """Shares these topics, or all whose whole names match a pattern, with the other members of the group.

        The next poll joins. `listener` hears what comes and goes: see `RebalanceListener` in
        `ottla.client.consuming.group.listener`.
        """
        group = self._needs_group("subscribe")
        if (topics is None) == (pattern is None):
            raise BadArgument("subscribe takes topics or a pattern")
        check_listener(listener)
        compiled = None if pattern is None else checked_pattern(pattern)
        names = [] if topics is None else checked_subscription(topics)
        if self._reading.assigned and not group.subscribed:
            raise WrongConsumerState("partitions are assigned by hand: unsubscribe first")
        if compiled is not None:
            group.subscribe_pattern(compiled, listener)
        else:
            group.subscribe(names, listener)

    async def unsubscribe(self) -> None:
        """Reads nothing any more, and leaves the group."""
        self._check_open()
        if self._group is not None:
            await self._group.end("the consumer unsubscribed")
        self._assign([])

    def subscription(self) -> list[str]:
        """The topics that are subscribed to; with a pattern those that match it, as far as is known."""
        return [] if self._group is None else sorted(self._group.subscription())

    def assign(self, partitions: Iterable[TopicPartition | tuple[str, int]]) -> None:
        """Reads exactly these partitions, in no group; those that were assigned before keep their positions."""
        self._check_open()
        if self._group is not None and self._group.subscribed:
            raise WrongConsumerState("topics are subscribed to: unsubscribe first")
        if self._group is not None:
            self._group.stand_alone()
        self._assign(dict.fromkeys(checked_partitions(partitions)))

    def _assign(self, wanted: Iterable[TopicPartition]) -> None:
        before = {tp.topic for tp in self._reading.assigned}  # of which some may not be there
        self._reading.replace(wanted, self._fresh if self._group is None else self._group.placing.fresh)
        topics = {tp.topic for tp in self._reading.assigned}
        self.cluster.forget({*before, *self.cluster.metadata.topics} - topics)
        self.cluster.want(topics)
        self._wake()

    def _fresh(self, tp: TopicPartition) -> AssignedPartition:
        one = AssignedPartition(tp)
        strategy = self._resets.strategy()
        if strategy is None:
            one.error = NoOffset(f"{tp} has no position, and auto.offset.reset is none: seek first", tp)
        else:
            one.reset = strategy
        return one

    def assignment(self) -> list[TopicPartition]:
        return list(self._reading.assigned)

    def seek(self, partition: TopicPartition, offset: int) -> None:
        """The next record of the partition is the first at or behind this offset."""
        offset = checked_offset(offset)
        one = self._one(partition)
        self._reading.drop_ahead([partition])
        one.seek(offset)
        self._wake()

    def seek_to_beginning(self, *partitions: TopicPartition) -> None:
        """To the first offsets of these partitions, or of all."""
        self._seek_all(partitions, EARLIEST)

    def seek_to_end(self, *partitions: TopicPartition) -> None:
        self._seek_all(partitions, LATEST)

    def _seek_all(self, partitions: Iterable[TopicPartition], code: int) -> None:
        chosen = list(partitions) or list(self._reading.assigned)
        for one in self._all_of(chosen):
            one.reset_to(code)
        self._reading.drop_ahead(chosen)
        self._wake()

    def pause(self, *partitions: TopicPartition) -> None:
        """Gives out nothing of these partitions until `resume`; their positions stay."""
        for one in self._all_of(partitions):
            one.paused = True
        self._reading.count_as_not_read(partitions)

    def resume(self, *partitions: TopicPartition) -> None:
        for one in self._all_of(partitions):
            one.paused = False
        self._wake()
        self._wake_waiting()

    def paused(self) -> list[TopicPartition]:
        return [one.tp for one in self._reading.assigned.values() if one.paused]

    async def position(self, partition: TopicPartition, *, timeout_ms: int | None = None) -> int:
        """The offset of the next record; waits until it is known."""
        one, given_ms = self._one(partition), checked_timeout_ms(timeout_ms)
        deadline = self._deadline(self.settings.default_api_timeout_ms if given_ms is None else given_ms)
        while (position := self._reading.position(partition)) is None:
            if one.error is not None:
                raise error_to_raise(one)
            self._wake()
            if not await self._wait_for_news(deadline) and self._reading.position(partition) is None:
                raise RequestTimedOut(f"{partition}: the position was not found in time")
            one = self._one(partition)
        return position

    def high_watermark(self, partition: TopicPartition) -> int | None:
        """The offset behind the last record that is committed, as the last fetch heard; None before the first."""
        return self._one(partition).high_watermark

    # The group's offsets

    async def commit(
        self, offsets: Mapping[TopicPartition, Committable] | None = None, *, timeout_ms: int | None = None
    ) -> None:
        """Has the group remember these offsets, or how far everything has been read; waits until it does.

        What is committed is the offset of the next record to read, not of the last that was. Raises CommitFailed where
        the partitions may belong to others by now.
        """
        group = self._needs_group("commit")
        given_ms = checked_timeout_ms(timeout_ms)
        await group.commits.commit(self._committable(offsets), given_ms)

    def commit_async(
        self, offsets: Mapping[TopicPartition, Committable] | None = None, on_committed: OnCommitted | None = None
    ) -> None:
        """The same without waiting, tried once; `on_committed(offsets, error or None)` must not wait either."""
        group = self._needs_group("commit")
        if on_committed is not None:
            check_call(on_committed, "on_committed")
        group.commits.later(self._committable(offsets), on_committed)

    def _committable(
        self, offsets: Mapping[TopicPartition, Committable] | None
    ) -> dict[TopicPartition, CommittedOffset]:
        if offsets is None:
            return self._reading.positions()
        if not isinstance(offsets, Mapping):
            raise BadArgument(f"offsets must be a mapping of partitions to offsets, not {a_kind_of(offsets)}")
        partitions = checked_partitions(offsets)
        return {
            tp: CommittedOffset(*checked_committable(tp, given))
            for tp, given in zip(partitions, offsets.values(), strict=True)
        }

    async def committed(
        self, partitions: Iterable[TopicPartition], *, timeout_ms: int | None = None
    ) -> dict[TopicPartition, CommittedOffset | None]:
        """What any member of the group has committed of these partitions; None where that is nothing."""
        group = self._needs_group("committed")
        given_ms = checked_timeout_ms(timeout_ms)
        return await group.placing.committed(checked_partitions(partitions), given_ms)

    def group_metadata(self) -> GroupMetadata:
        """As whom this consumer joined its group last; one that was put out since is refused by that name."""
        return self._needs_group("group_metadata").metadata()

    @property
    def is_member(self) -> bool:
        """Whether its group knows it now, as far as it has heard."""
        return self._group is not None and self._group.is_member

    # Records

    async def poll(self, *, max_records: int | None = None, timeout_ms: int | None = None) -> list[ConsumerRecord]:
        """Up to `max.poll.records` records, as soon as there are any; empty when the time is up (None: never)."""
        limit = self.settings.max_poll_records if max_records is None else checked_count(max_records, "max_records")
        return await self._polled(lambda: self._reading.take(limit), timeout_ms) or []

    async def poll_arrow(
        self, *, columns: Iterable[str] | None = None, max_rows: int = ARROW_ROWS_MAX, timeout_ms: int | None = None
    ) -> Any:
        """The next records of one partition as a `pyarrow.RecordBatch`; None when the time is up (None: never).

        Columns are those of `ottla.arrow.COLUMNS`, without headers if none are named. Keys and values are bytes.
        """
        from ottla.arrow.errors import BadColumns
        from ottla.arrow.schema import checked_columns

        rows_max = checked_count(max_rows, "max_rows")
        try:
            chosen = checked_columns(columns)
        except BadColumns as error:
            raise BadArgument(str(error)) from None
        if self._reading.deserializes:
            raise BadArgument("Arrow has keys and values as they are: leave the deserializers out")
        return await self._polled(lambda: self._reading.take_arrow(chosen, rows_max), timeout_ms)

    async def arrow(
        self, *, columns: Iterable[str] | None = None, max_rows: int = ARROW_ROWS_MAX, timeout_ms: int | None = None
    ) -> AsyncIterator[Any]:
        """Arrow batches, for ever, or until nothing has come for `timeout_ms`.

        `position`, and with it what is committed, lies behind the batch that was given out last.
        """
        chosen = None if columns is None else list(columns)
        while True:
            batch = await self.poll_arrow(columns=chosen, max_rows=max_rows, timeout_ms=timeout_ms)
            if batch is None:
                return
            yield batch

    async def poll_batches(self, *, timeout_ms: int | None = None) -> FetchedBatches | None:
        """Batches of one partition as they were fetched, undecoded and unchecked; None when the time is up."""
        return await self._polled(self._reading.take_batches, timeout_ms)

    def take_back(self, taken: Any) -> None:
        """What the last poll gave did not reach the caller: it is given out again, and counts as not read."""
        if taken:
            self._reading.take_back(taken if isinstance(taken, list) else None)
            self._wake()

    async def _polled(self, take: Callable[[], Taken | None], timeout_ms: int | None) -> Taken | None:
        """What `take` gives, as soon as that is anything; None when the time is up."""
        deadline = self._deadline(checked_timeout_ms(timeout_ms))
        group = self._group
        if not self._reading.assigned and (group is None or not group.subscribed):
            self._check_open()
            raise NotAssigned("there is nothing to read: subscribe to topics or assign partitions first")
        with self._one_poll():
            while True:
                self._check_open()
                if group is not None:
                    await group.attend()
                    self._check_open()  # a listener may have closed it
                self._schemas.raise_failure()
                try:
                    taken = take()
                except SchemaNotLoaded as missing:
                    if not await self._schemas.ended(missing, deadline):
                        return None
                    continue
                self._wake()
                if taken:
                    if self._reading.missing is not None:
                        self._schemas.begin(self._reading.missing)  # the other partitions go on meanwhile
                    return taken
                if not await self._wait_for_news(deadline):
                    return None

    async def __aiter__(self) -> AsyncIterator[ConsumerRecord]:
        """All records, for ever. `position` counts what was given out here, not what was polled for it."""
        while True:
            record = self.next_ahead()
            if record is None:
                await self.read_ahead()
            else:
                yield record

    async def read_ahead(self) -> None:
        """Does what the group needs, waits for records and lays them ready for `next_ahead`."""
        if self._group is not None and self._reading.ahead:
            self._check_open()
            with self._one_poll():
                await self._group.attend()
            if self._reading.ahead:
                return
        self._reading.ahead.extend(await self.poll())

    def next_ahead(self) -> ConsumerRecord | None:
        """A record that lies ready, without waiting; None also where the group must be attended to first."""
        if self._group is not None and not self._group.goes_on():
            return None
        ahead = self._reading.ahead
        if not ahead:
            return None
        record = ahead[0]
        del ahead[0]  # no call like `popleft`: a Ctrl-C that comes behind one would take its result along
        return record

    @contextmanager
    def _one_poll(self) -> Iterator[None]:
        """Two at once would tear the order of records apart, and a rebalance's steps as well."""
        if self._polling:
            raise WrongConsumerState(
                "another poll of this consumer is under way: one task at a time polls, and a call-back of a rebalance "
                "must not poll"
            )
        self._polling = True
        try:
            with nullcontext() if self._group is None else self._group.watch:
                yield
        finally:
            self._polling = False

    # Waiting

    def _wake(self) -> None:
        if self._closed:
            return
        if self._fetcher is None:
            try:
                asyncio.get_running_loop()
            except RuntimeError:
                return  # assigned before the loop runs: the first poll begins
            self._fetcher = Fetcher(
                self.settings, self.cluster, self._world, self._reading.assigned, self._resets, self._wake_waiting
            )
        if self._group is not None:
            self._group.placing.begin()
        self._fetcher.wake()

    def _wake_waiting(self) -> None:
        for waiting in self._waiting:
            if not waiting.done():
                waiting.set_result(None)

    @staticmethod
    def _deadline(timeout_ms: float | None) -> float | None:
        return None if timeout_ms is None else asyncio.get_running_loop().time() + timeout_ms / 1000

    async def _wait_for_news(self, deadline: float | None) -> bool:
        """Until something has come or gone wrong; False when the time is up."""
        loop = asyncio.get_running_loop()
        if deadline is not None and loop.time() >= deadline:
            await asyncio.sleep(0)  # a caller that polls without waiting must not stop all else
            return False
        news = loop.create_future()
        self._waiting.add(news)
        try:
            async with asyncio.timeout_at(deadline):
                await news
        except TimeoutError:
            return False
        finally:
            self._waiting.discard(news)
        return True

    def _all_of(self, partitions: Iterable[TopicPartition]) -> list[AssignedPartition]:
        """All of these or, where one is not assigned, none: what is done to them is done to all."""
        return [self._one(tp) for tp in partitions]

    def _one(self, tp: TopicPartition) -> AssignedPartition:
        self._check_open()
        if not isinstance(tp, tuple):
            raise BadArgument(f"partition must be (topic, partition), not {a_kind_of(tp)}")
        (meant,) = checked_partitions([tp])
        found = self._reading.assigned.get(meant)
        if found is None:
            raise NotAssigned(f"{meant} is not assigned")
        return found

    def _needs_group(self, verb: str) -> GroupMember:
        self._check_open()
        if self._group is None:
            raise InvalidGroupId(f"{verb} needs a group: give group.id")
        return self._group

    def _check_open(self) -> None:
        if self._closed:
            raise ClientClosed("the consumer is closed")
