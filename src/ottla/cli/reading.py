"""Reads partitions from a place on until it is enough: at an offset, at a time, after so many records, or never."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from ottla.cli.offsets import LATEST, OffsetPoint, offsets_of, resolved
from ottla.cli.reachability import BrokerWatch
from ottla.client.consuming.consumer import Consumer
from ottla.client.records import ConsumerRecord
from ottla.model import TopicPartition

#: Between looks at whether it is over without a record: what is left of partitions may be markers of transactions, or
#: what compaction took; and a broker may stay away.
_LOOK_MS: Final = 200


class ReadingLimits(NamedTuple):
    records: int | None = None
    #: Without any record for so long it is over.
    idle_ms: int | None = None
    #: Whether what is the end at the beginning is the end.
    at_end: bool = False
    #: Which records count and are given out.
    where: Callable[[ConsumerRecord], bool] | None = None

    @property
    def has_end(self) -> bool:
        """Whether the caller waits for it to be over."""
        return self.records is not None or self.idle_ms is not None or self.at_end


class PartitionReading:
    def __init__(self, consumer: Consumer, limits: ReadingLimits, place: OffsetPoint, watch: BrokerWatch) -> None:
        self._consumer = consumer
        self._watch = watch
        self._limits = limits
        self._place = place
        self._left = limits.records
        #: Where to stop, of open partitions that have such an offset.
        self._stops: dict[TopicPartition, int] = {}
        #: Before which records are passed over, of partitions that may end before it.
        self._least: dict[TopicPartition, int] = {}
        #: The time that no record may have any more, where that time was yet to come.
        self._until_ms: int | None = None
        self._open: set[TopicPartition] = set()
        self._last_ms = 0.0
        #: How many records there will be at most, if that is known.
        self.expected = limits.records

    async def begin(self, partitions: Sequence[TopicPartition]) -> None:
        consumer = self._consumer
        isolation = int(consumer.settings.isolation_level == "read_committed")
        starts = await resolved(consumer.cluster, dict.fromkeys(partitions, self._place), isolation)
        if self._place.offset is not None or self._place.after_start is not None:
            # An offset that is yet to come is waited for: a fetch beyond the end would be an error.
            self._least = starts
            ends = await offsets_of(consumer.cluster, dict.fromkeys(partitions, LATEST), isolation)
            starts = {tp: min(offset, ends[tp]) for tp, offset in starts.items()}
        await self._find_stops(partitions, isolation)
        self._watch.concerns = lambda tp: tp in self._open
        self._watch.reads({tp.topic for tp in partitions})
        consumer.assign(partitions)
        for tp, offset in starts.items():
            consumer.seek(tp, offset)
        self._open = set(partitions)
        if len(self._stops) == len(self._open) and self._limits.where is None:
            there = sum(max(0, stop - starts[tp]) for tp, stop in self._stops.items())
            self.expected = there if self._left is None else min(there, self._left)
        for tp, stop in list(self._stops.items()):
            if starts[tp] >= stop:
                self._close(tp)
        self._last_ms = _now_ms()

    async def _find_stops(self, partitions: Sequence[TopicPartition], isolation: int) -> None:
        cluster, until_ms = self._consumer.cluster, self._place.until_ms
        until = self._place.until_offset
        if self._limits.at_end or self._place.to_end or until is not None:
            self._stops = await offsets_of(cluster, dict.fromkeys(partitions, LATEST), isolation)
        if until is not None:  # rpk, too, ends at what is the end now where that comes first
            self._stops = {tp: min(until, stop) for tp, stop in self._stops.items()}
        if until_ms is None:
            return
        if until_ms <= time.time() * 1000:
            stops = await resolved(cluster, dict.fromkeys(partitions, OffsetPoint(time_ms=until_ms)), isolation)
            self._stops = {tp: min(stop, self._stops.get(tp, stop)) for tp, stop in stops.items()}
        else:
            self._until_ms = until_ms

    async def more(self) -> list[ConsumerRecord] | None:
        """The next records, perhaps none yet; None when it is over."""
        if not self._open or self._left == 0:
            return None
        if self._has_end:
            self._watch.check_topics()
        records = await self._consumer.poll(timeout_ms=self._patience_ms())
        if records:
            self._last_ms = _now_ms()
            self._watch.heard()
        elif self._has_end:
            self._watch.check()
            if self._limits.idle_ms is not None and _now_ms() - self._last_ms >= self._limits.idle_ms:
                if self._watch.lacks_something():
                    raise self._watch.given_up()
                if await self._watch.is_silent(self._consumer, self._open, self._limits.idle_ms):
                    return None
                self._last_ms = _now_ms()
        wanted = [record for record in records if self._is_wanted(record)]
        if self._left is not None:
            del wanted[self._left :]
            self._left -= len(wanted)
        await self._close_ended()
        return wanted

    @property
    def _has_end(self) -> bool:
        return self._limits.has_end or bool(self._stops) or self._until_ms is not None

    def _patience_ms(self) -> int | None:
        if not self._has_end:
            return None
        if self._limits.idle_ms is None:
            return _LOOK_MS
        return min(max(0, round(self._limits.idle_ms - (_now_ms() - self._last_ms)) + 1), _LOOK_MS)

    def _is_wanted(self, record: ConsumerRecord) -> bool:
        tp = TopicPartition(record.topic, record.partition)
        if tp not in self._open:
            return False
        stop = self._stops.get(tp)
        if stop is not None and record.offset >= stop:
            self._close(tp)
            return False
        if self._until_ms is not None and record.timestamp >= self._until_ms:
            self._close(tp)
            return False
        if record.offset < self._least.get(tp, 0):
            return False
        return self._limits.where is None or self._limits.where(record)

    async def _close_ended(self) -> None:
        for tp, stop in list(self._stops.items()):
            if await self._consumer.position(tp) >= stop:
                self._close(tp)

    def _close(self, tp: TopicPartition) -> None:
        self._open.discard(tp)
        self._stops.pop(tp, None)
        self._consumer.pause(tp)


def _now_ms() -> float:
    return asyncio.get_running_loop().time() * 1000
