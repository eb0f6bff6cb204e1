"""Reads a topic as a member of a group, and commits what was printed: after a crash it is printed again, never lost.

What `more` gives counts as printed when it is called again. Until then it is not committed, so a broken pipe in the
middle of a batch leaves the batch to the next reader.
"""

from __future__ import annotations

import asyncio
import re
import sys
from collections.abc import Sequence
from typing import Final

from ottla.cli.reachability import BrokerWatch
from ottla.cli.reading import ReadingLimits
from ottla.client.consuming.consumer import Consumer
from ottla.client.errors import KafkaError
from ottla.client.records import ConsumerRecord
from ottla.model import TopicPartition

#: Between looks at whether it is over or something is to be committed.
_LOOK_MS: Final = 200
#: A last commit does not keep a user waiting who pressed Ctrl-C.
_LAST_COMMIT_MS_MAX: Final = 5_000


class GroupReading:
    """Also the consumer's listener: hears in `poll` which partitions come and go."""

    def __init__(self, consumer: Consumer, limits: ReadingLimits, watch: BrokerWatch) -> None:
        self._consumer = consumer
        self._watch = watch
        self._limits = limits
        self._left = limits.records
        #: Where to go on behind what was handed out last; what was printed; what the group remembers of that.
        self._given: dict[TopicPartition, int] = {}
        self._printed: dict[TopicPartition, int] = {}
        self._committed: dict[TopicPartition, int] = {}
        #: Where to stop, of partitions that are read to what was their end when they came.
        self._stops: dict[TopicPartition, int] = {}
        self._has_joined = False
        self._last_ms = self._last_commit_ms = 0.0
        self.expected = limits.records

    def begin(self, topics: Sequence[str], pattern: re.Pattern[str] | None) -> None:
        if pattern is None:
            self._watch.reads(topics)
            self._consumer.subscribe(topics, listener=self)
        else:
            self._consumer.subscribe(pattern=pattern, listener=self)
        self._watch.concerns = lambda tp: not self._has_joined or tp in self._consumer.assignment()
        self._last_ms = self._last_commit_ms = _now_ms()

    async def more(self) -> list[ConsumerRecord] | None:
        """The next records, perhaps none yet; None when it is over."""
        self._printed.update(self._given)
        self._given.clear()
        await self._commit_now_and_then()
        if self._limits.has_end:
            self._watch.check_topics()
        if self._left == 0 or await self._is_at_end():
            return None
        polled = await self._consumer.poll(timeout_ms=self._patience_ms())
        if polled:
            self._last_ms = _now_ms()
            self._watch.heard()
        elif self._limits.has_end:
            self._watch.check()
            if self._idle_ms_left() <= 0 and (self._has_joined or self._watch.lacks_something()):
                if self._watch.lacks_something():
                    raise self._watch.given_up()
                if self._limits.idle_ms is None:
                    return None
                if await self._watch.is_silent(self._consumer, self._consumer.assignment(), self._limits.idle_ms):
                    return None
                self._last_ms = _now_ms()
        return self._wanted(polled)

    def _wanted(self, polled: Sequence[ConsumerRecord]) -> list[ConsumerRecord]:
        where = self._limits.where
        wanted: list[ConsumerRecord] = []
        for record in polled:
            tp = TopicPartition(record.topic, record.partition)
            stop = self._stops.get(tp)
            if self._left == 0 or (stop is not None and record.offset >= stop):
                # Nobody has looked at it: here the group goes on.
                if tp not in self._given:
                    self._printed.setdefault(tp, record.offset)
                continue
            self._given[tp] = record.offset + 1
            if where is None or where(record):
                wanted.append(record)
                if self._left is not None:
                    self._left -= 1
        return wanted

    def _patience_ms(self) -> int:
        return max(0, min(_LOOK_MS, round(self._idle_ms_left()))) if self._has_joined else _LOOK_MS

    def _idle_ms_left(self) -> float:
        """Joining does not count as idling: a new group waits for its members first."""
        if self._limits.idle_ms is None:
            return _LOOK_MS
        return self._limits.idle_ms - (_now_ms() - self._last_ms)

    async def _is_at_end(self) -> bool:
        if not self._limits.at_end or not self._has_joined or self._watch.lacks_topic():
            return False
        assigned = self._consumer.assignment()
        for tp in assigned:
            if await self._consumer.position(tp) < self._stops.get(tp, 0):
                return False
        # One that came without its end being known yet is not read to it either.
        return all(tp in self._stops for tp in assigned)

    # What the group does

    async def on_assigned(self, partitions: Sequence[TopicPartition]) -> None:
        if self._limits.at_end and partitions:
            self._stops.update(await self._consumer.end_offsets(partitions))
        if not self._has_joined:
            self._has_joined = True
            self._last_ms = _now_ms()

    async def on_revoked(self, partitions: Sequence[TopicPartition]) -> None:
        """The member that gets them goes on behind what was printed here."""
        try:
            await self._commit()
        except KafkaError as error:
            # The others have gone on already: that is no reason to stop reading with them.
            print(f"ottla: positions were not committed, so records will be read again: {error}", file=sys.stderr)
        self.on_lost(partitions)

    def on_lost(self, partitions: Sequence[TopicPartition]) -> None:
        for tp in partitions:
            for known in (self._given, self._printed, self._committed, self._stops):
                known.pop(tp, None)

    # Commits

    async def _uncommitted(self) -> dict[TopicPartition, int]:
        """Where nothing was read the group goes on where it began: what comes meanwhile is not to be passed over."""
        for tp in self._consumer.assignment():
            if tp not in self._printed and tp not in self._given:
                try:
                    self._printed[tp] = await self._consumer.position(tp, timeout_ms=0)
                except KafkaError:
                    continue  # it has not been found yet
        return {tp: offset for tp, offset in self._printed.items() if self._committed.get(tp) != offset}

    async def _commit_now_and_then(self) -> None:
        pause_ms = self._consumer.settings.auto_commit_interval_ms
        if _now_ms() - self._last_commit_ms < pause_ms:
            return
        offsets = await self._uncommitted()
        self._last_commit_ms = _now_ms()
        if offsets:

            def done(_: object, error: Exception | None) -> None:
                if error is None:  # otherwise they are committed with the next
                    self._committed.update(offsets)

            self._consumer.commit_async(offsets, done)

    async def _commit(self) -> None:
        if self._watch.has_given_up:
            return  # the one that would remember it is the one that was waited for in vain
        offsets = await self._uncommitted()
        if offsets:
            await self._consumer.commit(offsets, timeout_ms=_LAST_COMMIT_MS_MAX)
            self._committed.update(offsets)

    async def end(self) -> None:
        """Commits what was printed. Raises what keeps that from being remembered."""
        await self._commit()

    async def abandon(self) -> None:
        """The same where it ends early: whatever ends it matters more than a commit that fails."""
        try:
            await self._commit()
        except KafkaError:
            return


def _now_ms() -> float:
    return asyncio.get_running_loop().time() * 1000
