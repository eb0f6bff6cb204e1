"""The log cleaner's shell: which log is next, where the steps of its pass run, and what becomes of one that fails.

One pass at a time, in a process of its own, as long as anything is dirty enough; then it looks again every
log.cleaner.backoff.ms. A log whose pass fails is set aside, named in the log and in a metric, and tried again later,
each time after twice as long. Whatever else fails ends only the turn: the task notes it and begins anew.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, Final, NamedTuple, TypeVar

from ottla import logs
from ottla.config.live import LiveConfig
from ottla.metadata import MetadataCache
from ottla.metrics import Labels
from ottla.model import TopicPartition
from ottla.ports import Clock, Disk, Workers
from ottla.replication.replicas import Replicas
from ottla.replication.watermarks import CurrentWatermarks
from ottla.steps import DiskSteps, in_turns, is_stray
from ottla.steps import Steps as LoopSteps
from ottla.storage.cleaner.dirt import Dirt, looking_for_dirt
from ottla.storage.cleaner.faults import DiskRefused, PassInterrupted
from ottla.storage.cleaner.job import PassLimits
from ottla.storage.cleaner.rounds import (
    Changing,
    InProcess,
    InTurns,
    OnThread,
    PassContext,
    PassResult,
    ProcessWorker,
    Step,
    Steps,
    ThreadWorker,
    Worker,
    clean_log,
)
from ottla.storage.errors import StorageFault
from ottla.storage.log.cold_reads import missing_producers
from ottla.storage.log.log import Log
from ottla.storage.log.retention import Removal

log_event = logs.logger("cleaner")

T = TypeVar("T")

#: Between a fault that is no log's own and the next turn.
_PAUSE_MS: Final = 1000
#: A log that could not be cleaned is tried again after this, then twice that, and so on up to the most.
_RETRY_MS: Final = 60_000
_RETRY_MS_MAX: Final = 3_600_000


class UncleanableLog(NamedTuple):
    """A log that could not be cleaned."""

    log: Log
    reason: str
    failures: int
    #: Not before this, by the monotonic clock.
    again_ms: int


class Cleaning:
    def __init__(
        self,
        replicas: Replicas,
        workers: Workers,
        clock: Clock,
        disk: Disk,
        live: LiveConfig,
        metadata: MetadataCache,
        remove_later: Callable[[Removal, str, int], None],
    ) -> None:
        self._replicas = replicas
        self._workers = workers
        self._clock = clock
        self._live = live
        self._metadata = metadata
        self._remove_later = remove_later
        self._worker = _worker_for(disk)
        self._task: asyncio.Task[None] | None = None
        self._closed = False
        self.set_aside: dict[TopicPartition, UncleanableLog] = {}
        #: Logs with batches whose records cannot be read, which is said once of each.
        self._warned_of: dict[TopicPartition, Log] = {}
        # For metrics.
        #: Of the last look around: the largest share of a log that is dirty.
        self.dirtiest = 0.0
        self.overdue_ms = 0
        self.passes = 0
        self.failures = 0
        self.last: PassResult | None = None
        self.last_s = 0.0
        self.last_ended_ms = clock.monotonic_ms()

    def start(self) -> None:
        if self._live.current.storage.cleaner_enabled:
            self._task = asyncio.ensure_future(self._run())

    def close(self) -> None:
        """Ends the pass where it is: closing its log settles what is half done."""
        self._closed = True
        if self._task is not None:
            self._task.cancel()

    @property
    def is_dead(self) -> bool:
        """Whether nothing is cleaned any more though it should be."""
        return self._task is not None and self._task.done() and not self._closed

    async def _run(self) -> None:
        while not self._closed:
            pause_ms = _PAUSE_MS
            try:
                was_busy = await self._turn()
                pause_ms = 0 if was_busy else max(self._live.current.storage.cleaner_backoff_ms, 1)
            except (Exception, asyncio.CancelledError) as fault:
                if isinstance(fault, asyncio.CancelledError) and not is_stray(fault):
                    raise
                self.failures += 1
                log_event.error("the cleaner failed, and begins anew", reason=f"{type(fault).__name__}: {fault}")
            await asyncio.sleep(pause_ms / 1000)

    async def _turn(self) -> bool:
        """Cleans the dirtiest log; False where none is worth it."""
        if self._live.current.storage.cleaner_threads == 0:
            return False
        chosen = await in_turns(self._choosing(), self._clock.monotonic_ms, self._workers.thread)
        if chosen is None:
            return False
        log, dirt = chosen
        began_ms = self._clock.monotonic_ms()
        try:
            outcome = await self._drive(clean_log(log, dirt, self._surrounding()))
        except PassInterrupted as change:
            log_event.info("cleaning was interrupted", partition=log.tp, reason=change)
            return False
        except Exception as fault:
            self._failed(log, fault)
            return True
        self.set_aside.pop(log.tp, None)
        self._ended(log, outcome, began_ms)
        return True

    # -- which log

    def _choosing(self) -> DiskSteps[tuple[Log, Dirt] | None]:
        best: tuple[Log, Dirt] | None = None
        dirtiest, overdue_ms = 0.0, 0
        logs_now = list(self._replicas.directories.logs.values())
        self._forget_gone()
        for log in logs_now:
            yield None
            dirt = yield from self._dirt(log)
            if dirt is None:
                continue
            dirtiest, overdue_ms = max(dirtiest, dirt.ratio), max(overdue_ms, dirt.overdue_ms)
            if self._waits(log.tp) or not dirt.is_worth(log.config.min_cleanable_dirty_ratio):
                continue
            if best is None or dirt.ratio > best[1].ratio:
                best = (log, dirt)
        self.dirtiest, self.overdue_ms = dirtiest, overdue_ms
        if best is None or self._replicas.directories.get(best[0].tp) is not best[0]:
            return None
        if best[1].was_misplaced:
            log_event.warning("the cleaner's checkpoint lies beyond the log's end", partition=best[0].tp)
        return best

    def _dirt(self, log: Log) -> DiskSteps[Dirt | None]:
        tp = log.tp
        role = self._replicas.leaders.get(tp) or self._replicas.followers.get(tp)
        if not log.config.is_compacted or role is None or self._replicas.directories.get(tp) is not log:
            return None
        if self._is_moving(log):
            return None
        try:
            yield from _reading_producers(log)
            if self._replicas.directories.get(tp) is not log:
                return None
            unstable = log.first_unstable(role.high_watermark)
            stable = role.high_watermark if unstable is None else min(unstable, role.high_watermark)
            return (yield from self._while_current(log, looking_for_dirt(log, stable, self._clock.wall_ms())))
        except Exception as fault:
            # It holds up no other log, and counts as a try only when one is due.
            if not self._waits(tp):
                self._failed(log, fault)
            return None

    def _while_current(self, log: Log, looking: DiskSteps[T]) -> DiskSteps[T | None]:
        """None where the log is the partition's no more."""
        try:
            work = next(looking)
            while True:
                try:
                    yield work
                except Exception as fault:
                    work = looking.throw(fault)
                    continue
                if self._replicas.directories.get(log.tp) is not log:
                    return None
                work = next(looking)
        except StopIteration as end:
            result: T = end.value
            return result

    def _waits(self, tp: TopicPartition) -> bool:
        aside = self.set_aside.get(tp)
        return aside is not None and self._clock.monotonic_ms() < aside.again_ms

    def _forget_gone(self) -> None:
        """By log and not by partition: one that is deleted and created again has another log."""
        directories = self._replicas.directories
        for tp in [tp for tp, log in self._warned_of.items() if directories.get(tp) is not log]:
            del self._warned_of[tp]
        for tp in [tp for tp, aside in self.set_aside.items() if directories.get(tp) is not aside.log]:
            del self.set_aside[tp]

    # -- one pass

    async def _drive(self, steps: Steps) -> PassResult:
        try:
            step = next(steps)
            while True:
                try:
                    result = await self._do(step)
                except Exception as error:
                    step = steps.throw(error)
                else:
                    step = steps.send(result)
        except StopIteration as end:
            outcome: PassResult = end.value
            return outcome
        finally:
            steps.close()

    def _do(self, step: Step) -> Awaitable[Any]:
        match step:
            case InProcess(work, arguments):
                return self._workers.process(work, *arguments)
            case OnThread(work):
                return self._workers.thread(work)
            case InTurns(long):
                return in_turns(long, self._clock.monotonic_ms)
            case Changing(change):
                return self._replicas.change_apart(change)

    def _surrounding(self) -> PassContext:
        storage = self._live.current.storage
        directories = self._replicas.directories
        watermarks = CurrentWatermarks(self._replicas.leaders, self._replicas.followers)

        def checkpointing(log: Log) -> LoopSteps[Callable[[], None] | None]:
            write = yield from directories.checkpointing_of(log.tp, watermarks)
            return None if write is None else write.run

        def remove_later(log: Log, removal: Removal) -> None:
            home = directories.directory_of(log.tp)
            if home is not None:
                self._remove_later(removal, home, max(0, removal.due_ms - self._clock.wall_ms()))

        return PassContext(
            worker=self._worker,
            limits=PassLimits(
                memory_bytes=storage.cleaner_dedupe_buffer_bytes,
                load_factor=min(max(storage.cleaner_dedupe_load_factor, 0.01), 0.99),
                buffer_bytes=storage.cleaner_io_buffer_bytes,
                bytes_per_second=storage.cleaner_io_bytes_per_second_max,
            ),
            wall_ms=self._clock.wall_ms,
            is_current=lambda log: not self._closed and directories.get(log.tp) is log,
            checkpointing=checkpointing,
            remove_later=remove_later,
            is_moving=self._is_moving,
            all_have=self._all_have,
        )

    def _all_have(self, log: Log) -> bool:
        """Whether all replicas of a partition are in sync, as far as this broker knows.

        One that is away may lack a tombstone, and have what that deletes: it would show it again when it leads.
        """
        leader = self._replicas.leaders.get(log.tp)
        if leader is not None:
            return leader.isr.members.issuperset(leader.isr.replicas)
        known = self._metadata.partition(*log.tp)
        return known is not None and known.topic_id == log.topic_id and set(known.isr).issuperset(known.replicas)

    def _is_moving(self, log: Log) -> bool:
        return log.tp in self._replicas.directories.moves

    def _ended(self, log: Log, outcome: PassResult, began_ms: int) -> None:
        self.passes += 1
        self.last = outcome
        self.last_ended_ms = self._clock.monotonic_ms()
        self.last_s = (self.last_ended_ms - began_ms) / 1000
        if outcome.unreadable is not None and self._warned_of.get(log.tp) is not log:
            self._warned_of[log.tp] = log
            offset, fault = outcome.unreadable
            log_event.warning(
                "a batch stays as it is, its records cannot be read", partition=log.tp, offset=offset, reason=fault
            )
        log_event.info(
            "a log is cleaned",
            partition=log.tp,
            up_to=outcome.cleaned_to,
            records=outcome.records_read,
            kept=outcome.records_kept,
            bytes_written=outcome.bytes_written,
            seconds=self.last_s,
        )

    def _failed(self, log: Log, fault: Exception) -> None:
        """Sets a log aside; where the disk is at fault, as everywhere, its directory goes offline."""
        if isinstance(fault, DiskRefused):
            fault = StorageFault.of(log.directory, OSError(*fault.args))
        reason = str(fault) or type(fault).__name__
        if self._replicas.directories.get(log.tp) is not log:
            log_event.info("cleaning was interrupted", partition=log.tp, reason=reason)
            return
        self.failures += 1
        before = self.set_aside.get(log.tp)
        failures = 1 if before is None else before.failures + 1
        wait_ms = min(_RETRY_MS << min(failures - 1, 16), _RETRY_MS_MAX)
        self.set_aside[log.tp] = UncleanableLog(log, reason, failures, self._clock.monotonic_ms() + wait_ms)
        log_event.error("a log cannot be cleaned", partition=log.tp, reason=reason, again_in_ms=wait_ms)
        if isinstance(fault, StorageFault) and fault.directory_failed:
            self._replicas.fail_directory_of(log.tp, reason)

    # -- metrics

    def uncleanable_partitions(self) -> Iterator[tuple[Labels, float]]:
        """How many logs of each directory are set aside."""
        directories = self._replicas.directories
        counts = dict.fromkeys(directories.online_paths, 0)
        for tp in self.set_aside:
            home = directories.directory_of(tp)
            if home in counts:
                counts[home] += 1
        for path, count in counts.items():
            yield (path,), count

    def uncleanable(self) -> Iterator[tuple[Labels, float]]:
        """Each log that is set aside, by name, and how often it has failed."""
        for tp, aside in list(self.set_aside.items()):
            yield (tp.topic, str(tp.partition)), aside.failures


def _worker_for(disk: Disk) -> Worker:
    from ottla.ports.real.disk import RealDisk

    # Another process cannot open what is in this one's memory.
    return ProcessWorker() if isinstance(disk, RealDisk) else ThreadWorker(disk)


def _reading_producers(log: Log) -> DiskSteps[None]:
    """Behind a start the cleaner may be the first to ask for them. Raises StorageFault."""
    while (missing := missing_producers(log)) is not None:
        yield missing.run
        missing.take()
        if missing.fault is not None:
            raise missing.fault
