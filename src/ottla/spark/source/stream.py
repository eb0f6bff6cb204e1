"""`spark.readStream.format("ottla")`.

One reader lives in a process of the driver for as long as the query; it plans. The reading itself is done in tasks, by
other instances that know nothing but the settings.

Where a query begins is not in its checkpoint until the first batch is planned, and a stopped query that begins at
*latest* would begin later when it is started again. So the first batch of a query whose beginning is not the same each
time is empty: its end, which the checkpoint has, is the beginning. *Earliest* counts as the same each time: what
retention removes before the first batch was finished is not missed.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Iterator, Mapping
from dataclasses import replace
from typing import Any, Final, TypeVar

from pyspark.sql.datasource import DataSourceStreamReader
from pyspark.sql.streaming import datasource as limits_of_spark

from ottla.client.wire.cluster import Cluster
from ottla.client.wire.listed_offset import EARLIEST, LATEST
from ottla.model import ZERO_TOPIC_ID, TopicPartition
from ottla.spark.options import OptionError
from ottla.spark.source.bounds import Offsets
from ottla.spark.source.columns import columns_in
from ottla.spark.source.groups import commit_offsets
from ottla.spark.source.limits import MinimumWait, between, within_bytes, within_rows
from ottla.spark.source.links import close_links, link
from ottla.spark.source.loss import LossPolicy
from ottla.spark.source.offsets import EARLIEST_OFFSET, LATEST_OFFSET, Positions, positions_of
from ottla.spark.source.progress import reported
from ottla.spark.source.settings import Bound, SourceSettings, source_settings
from ottla.spark.source.sizes import bytes_an_offset
from ottla.spark.source.splits import Split, planned
from ottla.spark.source.tasks import read_split
from ottla.spark.source.topics import FoundPartitions, find_partitions

Result = TypeVar("Result")

#: What messages call offsets that come out of a checkpoint.
_CHECKPOINT: Final = "the checkpoint"
#: So long brokers say that something is gone until that is believed, as the client has it for a topic that is new.
_HEARD_SECONDS: Final = 2.0
_ASKED_AGAIN_SECONDS: Final = 0.2


class StreamReader(DataSourceStreamReader, limits_of_spark.SupportsTriggerAvailableNow):  # type: ignore[misc]
    def __init__(self, settings: SourceSettings) -> None:
        self._settings = settings
        self._loss = LossPolicy(fail=settings.fail_on_data_loss)
        self._wait = MinimumWait(settings.min_offsets, settings.max_delay_ms)
        #: Where the query begins, as soon as that was asked for.
        self._initial: dict[str, Any] | None = None
        #: All that there is, as the last planning saw it.
        self._there: Positions | None = None
        #: What a run with `availableNow` reads up to.
        self._target: dict[TopicPartition, int] | None = None
        #: Whether a batch was cut into splits: one is even before any is looked for, where the last was not finished.
        self._has_planned = False

    # Planning, in the process of the driver

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 - Spark's names, here and below
        if self._initial is None:
            self._initial = self._run(self._first_positions).as_json()
        return self._initial

    def getDefaultReadLimit(self) -> Any:  # noqa: N802
        settings = self._settings
        if settings.max_offsets is not None:
            return limits_of_spark.ReadMaxRows(settings.max_offsets)
        if settings.max_bytes is not None:
            return limits_of_spark.ReadMaxBytes(settings.max_bytes)
        if settings.min_offsets is not None:
            return limits_of_spark.ReadMinRows(settings.min_offsets)
        return limits_of_spark.ReadAllAvailable()

    def latestOffset(self, start: dict[str, Any], limit: Any) -> dict[str, Any]:  # noqa: N802
        is_first = self._there is None and not self._has_planned
        if is_first and start == self._initial and not _is_the_same_each_time(self._settings.starting):
            self._there = _kept(start)
            return start
        return self._run(lambda cluster: self._next(cluster, start, limit))

    def reportLatestOffset(self) -> dict[str, Any] | None:  # noqa: N802
        return None if self._there is None else reported(self._there, self._settings)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        self._target = self._run(self._latest)

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[Split]:
        self._has_planned = True
        return self._run(lambda cluster: self._splits(cluster, start, end))

    def commit(self, end: dict[str, Any]) -> None:
        """Called when the batch after the one that ended here is planned."""
        group = self._settings.group
        if group is not None:
            commit_offsets(link(self._settings.client), group, _kept(end).offsets)

    def stop(self) -> None:
        close_links()

    def _run(self, work: Callable[[Cluster], Coroutine[Any, Any, Result]]) -> Result:
        return link(self._settings.client).run(work)

    def _offsets(self, cluster: Cluster) -> Offsets:
        return Offsets(cluster, self._settings.consumer())

    async def _first_positions(self, cluster: Cluster) -> Positions:
        settings = self._settings
        found = await find_partitions(cluster, settings.subscription)
        found.check_whole()
        offsets = self._offsets(cluster)
        there = await offsets.ends(found.partitions)
        starts = await offsets.resolved(settings.starting, there, group=settings.group, ids=found.ids, loss=self._loss)
        return Positions(starts, found.ids)

    async def _latest(self, cluster: Cluster) -> dict[TopicPartition, int]:
        found = await self._found(cluster, lambda found: not found.missing)
        there, _ = await self._offsets(cluster).there(found.partitions, LATEST)
        return there

    async def _found(self, cluster: Cluster, is_whole: Callable[[FoundPartitions], bool]) -> FoundPartitions:
        """What there is. That something is not is believed when brokers have said so for a while: one of them lags."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + _HEARD_SECONDS
        while True:
            found = await find_partitions(cluster, self._settings.subscription)
            if is_whole(found) or loop.time() >= deadline:
                return found
            cluster.knew_nobody(await cluster.any_connection())
            await asyncio.sleep(_ASKED_AGAIN_SECONDS)

    async def _next(self, cluster: Cluster, start: dict[str, Any], limit: Any) -> dict[str, Any]:
        """Where the next batch ends; `start` itself where there is to be none."""
        known = _kept(start)
        found = await self._found(cluster, lambda found: _has_all(found, known))
        offsets = self._offsets(cluster)
        ends, _ = await offsets.there(found.partitions, LATEST)
        self._there = Positions(ends, found.ids)
        if self._target is not None:
            ends = {tp: min(end, self._target[tp]) for tp, end in ends.items() if tp in self._target}
        starts = await self._starts(offsets, known, found, ends)
        # What the run does not read stays where it was.
        ends = {tp: starts[tp] if tp not in ends else max(starts[tp], ends[tp]) for tp in starts}
        everything = isinstance(limit, limits_of_spark.ReadAllAvailable)
        if not everything and self._target is None and self._waits(starts, ends):
            return start
        if isinstance(limit, limits_of_spark.ReadMaxRows):
            ends = within_rows(starts, ends, limit.max_rows)
        elif isinstance(limit, limits_of_spark.ReadMaxBytes):
            weights = await bytes_an_offset(cluster, await offsets.ends(list(ends)))
            ends = within_bytes(starts, ends, weights, limit.max_bytes)
        return Positions(ends, found.ids).as_json()

    def _waits(self, starts: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int]) -> bool:
        return self._wait.waits(between(starts, ends), round(time.monotonic() * 1000))

    async def _starts(
        self, offsets: Offsets, known: Positions, found: FoundPartitions, ends: Mapping[TopicPartition, int]
    ) -> dict[TopicPartition, int]:
        """Where reading goes on: where it stands; at the first offset of what is new. What is gone is a loss."""
        assert self._there is not None, "it was asked for"
        starts: dict[TopicPartition, int] = {}
        for tp, offset in known.offsets.items():
            there = self._there.offsets.get(tp)
            if there is None:
                self._loss.report(
                    f"{tp} is no longer there, or no longer subscribed to: it was read up to offset {offset}"
                )
            elif not known.same_topic(tp.topic, found.ids[tp.topic]):
                self._loss.report(f"topic {tp.topic} was deleted and made again: {tp} was read up to offset {offset}")
            elif offset > there:
                self._loss.lost(tp, there, offset, f"the log ends at offset {there} now")
                starts[tp] = there
            else:
                starts[tp] = offset
        new, _ = await offsets.there([tp for tp in ends if tp not in starts], EARLIEST)
        return starts | new

    async def _splits(self, cluster: Cluster, start: dict[str, Any], end: dict[str, Any]) -> list[Split]:
        before, after = _kept(start), _kept(end)
        starts = {
            tp: before.offsets[tp]
            for tp in after.offsets
            if tp in before.offsets and before.same_topic(tp.topic, after.ids.get(tp.topic, ZERO_TOPIC_ID))
        }
        new = [tp for tp in after.offsets if tp not in starts]
        return planned(
            starts | await self._beginnings(cluster, new, after),
            after.offsets,
            after.ids,
            at_least=self._settings.min_partitions,
            records_max=self._settings.max_records_per_partition,
        )

    async def _beginnings(
        self, cluster: Cluster, new: list[TopicPartition], after: Positions
    ) -> dict[TopicPartition, int]:
        """Of partitions that the batch before did not have."""
        found, missing = await self._offsets(cluster).there(new, EARLIEST)
        for tp, fault in missing.items():
            self._loss.report(f"of {tp} nothing can be read any more: {fault}")
        for tp, first in found.items():
            if first:
                self._loss.report(f"{tp} is new to the query, and begins at offset {first} instead of 0")
        return {tp: found.get(tp, after.offsets[tp]) for tp in new}

    # Reading, in tasks

    def read(self, partition: Split | None) -> Iterator[Any]:
        return read_split(self._settings, partition)


def stream_reader(schema: Any, options: Mapping[str, Any]) -> StreamReader:
    settings = source_settings(options, stream=True)
    return StreamReader(replace(settings, columns=columns_in(schema, settings.decoders)))


def _kept(given: dict[str, Any]) -> Positions:
    """Offsets out of a checkpoint, which may be another query's."""
    try:
        return positions_of(given, _CHECKPOINT)
    except OptionError as error:
        raise OptionError(
            f"{error}: these are another source's offsets; give the query a checkpointLocation of its own"
        ) from None


def _has_all(found: FoundPartitions, known: Positions) -> bool:
    there = set(found.partitions)
    return all(tp in there and known.same_topic(tp.topic, found.ids[tp.topic]) for tp in known.offsets)


def _is_the_same_each_time(starting: Bound) -> bool:
    """Whether a query that is started again before its first batch has ended would begin where it did."""
    if starting.everywhere is not None:
        return starting.everywhere == EARLIEST_OFFSET
    return starting.positions is not None and LATEST_OFFSET not in starting.positions.offsets.values()
