"""What is done to the files of logs that have roles: new segments, flushes, cuts, and what a fault has left undone.

Workers do it, for it waits for the disk; here stands what it means for leaders, followers and those who wait.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from ottla import logs
from ottla.model import TopicPartition
from ottla.ports import Clock, Workers
from ottla.replication.flushing import Flushing
from ottla.replication.follower import Follower
from ottla.replication.leader import Leader
from ottla.replication.rolls import Rolled, Rolls
from ottla.replication.waiters import Waiters
from ottla.steps import DiskSteps, pieces
from ottla.storage.directories.directories import LogDirectories
from ottla.storage.errors import StorageFault
from ottla.storage.log.log import Log

log_event = logs.logger("replication")

T = TypeVar("T")


class LogFiles:
    def __init__(
        self,
        leaders: dict[TopicPartition, Leader],
        followers: dict[TopicPartition, Follower],
        directories: LogDirectories,
        waiters: Waiters,
        workers: Workers,
        clock: Clock,
        change_apart: Callable[[DiskSteps[Any]], asyncio.Future[Any]],
    ) -> None:
        self._leaders = leaders
        self._followers = followers
        self._directories = directories
        self._waiters = waiters
        self._clock = clock
        #: One after the other with all that changes folders.
        self._change_apart = change_apart
        #: Logs whose files a fault keeps from following them: they are tried again.
        self._unfinished: set[Log] = set()
        self._flushing = Flushing(workers, self._flushed, self._flush_failed)
        self._rolls = Rolls(workers, self._flushing.running, self._rolled)

    def work_ends(self, partitions: Sequence[TopicPartition]) -> DiskSteps[None]:
        """Before their folders lose their names: a worker that goes by these would meet another partition's files."""
        found: list[Log] = []
        for piece in pieces(partitions):
            found += [log for tp in piece if (log := self._directories.get(tp)) is not None]
            yield None
        if any(log.is_rolling or log.durability.is_flushing for log in found):
            yield FileWork(self._rolls, self._flushing, found)

    # -- cuts, and what faults left undone

    def cut(self, follower: Follower, cutting: DiskSteps[T]) -> asyncio.Future[T | None]:
        """Cuts the log of a follower, whose fetcher asks for nothing meanwhile. None where it has another role then."""
        return self._change_apart(self._cutting(follower, cutting))

    def _cutting(self, follower: Follower, cutting: DiskSteps[T]) -> DiskSteps[T | None]:
        log = follower.log
        yield from self.work_ends([follower.tp])
        if not follower.active or self._directories.get(follower.tp) is not log:
            return None
        try:
            return (yield from cutting)
        finally:
            self.note_unfinished(log)
            if log.flush_due(self._clock.wall_ms()) and not log.is_abandoned:
                self._flushing.request(log)

    def note_unfinished(self, log: Log) -> None:
        """A change of its files has ended, perhaps with a fault that passes."""
        if log.unfinished and not log.is_abandoned:
            self._unfinished.add(log)

    @property
    def are_unfinished(self) -> bool:
        """Whether there is anything to try again."""
        return bool(self._unfinished)

    def finishing(self) -> DiskSteps[None]:
        """Tries again what a full disk has left undone."""
        for log in list(self._unfinished):
            self._unfinished.discard(log)
            if self._directories.get(log.tp) is not log:
                continue
            try:
                yield from log.following()
            except StorageFault as fault:
                if fault.directory_failed:
                    self._directories.fail_directory_of(log.tp, str(fault))
            self.note_unfinished(log)

    # -- segments

    def roll(self, leader: Leader) -> asyncio.Future[StorageFault | None]:
        """The leader's log has raised RollDue: what this round stages is written, then a worker makes the segment.

        What comes after waits for what is returned.
        """
        self._rolls.begin(leader.log)
        return leader.changes_over()

    def roll_log(self, log: Log, then: Rolled) -> None:
        """The same for a log that nobody else may lead, with a call-back."""
        leader = self._leaders.get(log.tp)
        if leader is not None and leader.log is log:
            leader.changes_over()
        self._rolls.begin(log, then)

    @property
    def is_rolling(self) -> bool:
        """Whether a segment is due, or being made."""
        return self._rolls.are_any

    async def rolls_end(self) -> None:
        """Returns when those that are due now are made; for tests."""
        await self._rolls.end()

    def _rolled(self, log: Log, fault: StorageFault | None) -> None:
        leader = self._leaders.get(log.tp)
        is_led = leader is not None and leader.log is log
        if fault is not None and fault.directory_failed:
            if self._directories.get(log.tp) is log:
                self._directories.fail_directory_of(log.tp, str(fault))
        elif fault is not None:
            log_event.warning_limited("a segment has to wait", key=str(log.tp), partition=log.tp, reason=fault)
        if is_led and leader is not None:
            leader.changed_over(fault)
        if log.flush_due(self._clock.wall_ms()) and self._directories.get(log.tp) is log:
            # The segment that was sealed; no write may come to ask for that.
            self._flushing.request(log)

    # -- flushes

    def flush(self, log: Log) -> None:
        """Starts a flush now, or another one behind that which is running."""
        self._flushing.request(log)

    def request_flush(self, tp: TopicPartition) -> None:
        """Starts a flush now, for `flush.ms` and for recovery points."""
        role = self._leaders.get(tp) or self._followers.get(tp)
        if role is not None:
            self._flushing.request(role.log)

    async def flush_found(self) -> None:
        """Before the first request: flushes what a crash has left, where the high watermark waits for the disk.

        It was acknowledged, and may be in the system's memory only: nobody may see a shorter log than before.
        """
        for leader in list(self._leaders.values()):
            if leader.durable_end < leader.log.end_offset:
                self._flushing.request(leader.log)
        await self._flushing.idle()

    async def catch_up(self, seconds: float) -> None:
        """Before a stop: requests that wait only for this broker's disk are answered when this returns."""
        await self._flushing.catch_up(seconds)
        self._waiters.settle_all(self._clock.monotonic_ms())

    async def flushes_end(self) -> None:
        """Returns when no segment is being made and no flush is running any more."""
        await self._rolls.end()
        await self._flushing.idle()

    def follower_wrote(self, log: Log) -> None:
        if log.durability.is_due(log.config, self._clock.wall_ms()):
            self._flushing.request(log)

    def _follower_flushed(self, log: Log) -> None:
        follower = self._followers.get(log.tp)
        if follower is None or follower.log is not log:
            return
        try:
            follower.flushed()
        finally:
            if log.flush_due(self._clock.wall_ms()):
                self._flushing.request(log)

    def _flushed(self, log: Log) -> None:
        leader = self._leaders.get(log.tp)
        if leader is None or leader.log is not log:
            self._follower_flushed(log)
            return
        try:
            leader.advance()
            self._waiters.changed(log.tp)
        except Exception as fault:
            # Nothing may come later that lets them answer.
            self._waiters.give_up(log.tp, fault)
        self._waiters.settle_outside(self._clock.monotonic_ms())
        if log.flush_due(self._clock.wall_ms()):
            # What was written while it ran asked for none, and nobody else may come to ask.
            self._flushing.request(log)

    def _flush_failed(self, log: Log, error: OSError | StorageFault) -> None:
        if isinstance(error, StorageFault) and not error.directory_failed:
            log_event.warning_limited("a flush has to wait", key=str(log.tp), partition=log.tp, reason=error)
            leader = self._leaders.get(log.tp)
            if leader is not None and leader.log is log and leader.advance():
                # The records are certain, and only what stands beside them is not.
                self._waiters.changed(log.tp)
                self._waiters.settle_outside(self._clock.monotonic_ms())
        elif self._directories.get(log.tp) is log:
            # One that was deleted meanwhile has lost its files, which says nothing about the device.
            self._directories.fail_directory_of(log.tp, f"fsync failed: {error}")


class FileWork:
    """Yielded by a change, which goes on when no worker has anything in hand that goes by these logs' folders."""

    def __init__(self, rolls: Rolls, flushing: Flushing, found: Sequence[Log]) -> None:
        self._rolls = rolls
        self._flushing = flushing
        self._found = found

    def __call__(self) -> None:
        """Where the caller waits for the disk itself nothing is in any worker's hand."""

    async def wait(self) -> None:
        await self._rolls.end(self._found)
        # What was asked for behind a running flush, or by a roll, begins when that ends.
        while running := self._flushing.of(self._found):
            await asyncio.wait(running)
            await self._rolls.end(self._found)
