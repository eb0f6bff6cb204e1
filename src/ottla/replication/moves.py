"""Replicas on their way from one log directory to another, copied in steps between the broker's other work.

    copy, a step a turn of the loop ──▶ level ──▶ flush in a worker ──▶ level again ──▶ change-over
      ▲                                             │
      └──── what was appended meanwhile is more than a step

All moves together take one step in a turn of the loop, one after the other, and keep to one rate
(`replica.alter.log.dirs.io.max.bytes.per.second`). From a copy's last step until it has taken
over, workers write names and markers, and nothing may be appended: the log is held back, produced batches wait
(`Leader.changing_over`), and what the change-over has to flush itself is a step's worth.
"""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import Awaitable, Callable
from typing import Final, Protocol

from ottla import logs
from ottla.model import TopicPartition
from ottla.ports import Clock, Workers
from ottla.replication.rolls import Rolled
from ottla.replication.throttles import NO_LIMIT, ReplicationQuota
from ottla.steps import DiskSteps
from ottla.storage.directories.directories import LogDirectories
from ottla.storage.directories.errors import DirectoryError
from ottla.storage.directories.moving import FutureLog
from ottla.storage.directories.removal import FolderRemoval
from ottla.storage.errors import AppendRefused, CorruptLog, OffsetOutsideLog, RollDue, StorageFault
from ottla.storage.log.cold_reads import ColdReads, Warmth, is_warm
from ottla.storage.log.flush import Flush
from ottla.storage.log.log import Log

log_event = logs.logger("replication")

#: A step takes about a millisecond, so that requests hardly notice a move.
_STEP_BYTES: Final = 1024 * 1024
#: How soon moves that were above their rate look whether they are still.
_THROTTLED_S: Final = 0.1
#: How soon one whose log rolls looks whether it still does.
_ROLLING_S: Final = 0.1
#: How long to wait after a full disk, or while one holds the original back, before the copy is tried again.
_RETRY_S: Final = 5.0
#: The longest wait after damage in the original, which somebody has to repair; the first is as after a full disk.
_DAMAGED_S_MAX: Final = 600.0
#: Flushes of one copy. Behind each there is less to flush, unless appends are faster than the disk: then the
#: change-over flushes what the last one missed.
_FLUSHES_MAX: Final = 10


class _UnflushedBytes:
    """How much of a copy no flush has seen, and what workers do for it."""

    __slots__ = ("damaged_s", "flushes", "is_running", "is_warmed", "left", "log")

    def __init__(self, log: Log) -> None:
        self.log = log
        #: Bytes that were copied since the last flush; more than a step as long as there was none.
        self.left = _STEP_BYTES + 1
        self.flushes = 0
        self.is_running = False
        #: A worker has read the next piece through.
        self.is_warmed = False
        #: How long to wait when it meets damage the next time.
        self.damaged_s = _RETRY_S

    @property
    def is_little(self) -> bool:
        """Whether the change-over may flush it, which the loop waits for."""
        return self.left <= _STEP_BYTES or self.flushes >= _FLUSHES_MAX


def _held_up_s(move: FutureLog) -> float:
    """How long a level copy waits: while its original rolls, or is held back."""
    if move.is_void or not move.is_level:
        return 0
    if move.source.is_rolling:
        return _ROLLING_S
    return 0 if move.source.staging.waits_for is None else _RETRY_S


class MovesOwner(Protocol):
    """Has the roles that stand on the logs."""

    def change(self, steps: DiskSteps[None]) -> Awaitable[None]:
        """Runs steps as one change of roles."""
        ...

    def log_changes_over(self, tp: TopicPartition) -> None:
        """Nothing can be appended to its log until `log_stays` or `log_replaced`."""
        ...

    def log_stays(self, tp: TopicPartition) -> None: ...

    def log_replaced(self, tp: TopicPartition, log: Log) -> None:
        """The same records, the same offsets, in another directory."""
        ...


class Moves:
    def __init__(
        self,
        directories: LogDirectories,
        workers: Workers,
        clock: Clock,
        owner: MovesOwner,
        cold_reads: ColdReads,
        roll_log: Callable[[Log, Rolled], None],
        remove_later: Callable[[FolderRemoval], None],
    ) -> None:
        self._directories = directories
        self._workers = workers
        self._clock = clock
        self._owner = owner
        self._cold_reads = cold_reads
        #: Has a worker make a log's next segment.
        self._roll_log = roll_log
        self._remove_later = remove_later
        #: In the order of their turns.
        self._line: dict[TopicPartition, None] = {}
        self._turn: asyncio.Handle | None = None
        #: Those that wait for something else, and then stand in line again.
        self._delayed: dict[TopicPartition, asyncio.TimerHandle] = {}
        self._unflushed: dict[TopicPartition, _UnflushedBytes] = {}
        #: Those that change over. Kept, so that their tasks are not collected.
        self.changing: dict[TopicPartition, asyncio.Future[None]] = {}
        #: In workers. A copy that was given up may still have one.
        self._flushes: set[asyncio.Future[None]] = set()
        self._is_closed = False
        #: How fast all moves together may copy.
        self.quota = ReplicationQuota(clock, lambda: NO_LIMIT)

    def resume(self) -> None:
        """Goes on with the copies of an earlier life."""
        for tp in self._directories.moves:
            self._schedule(tp, 0)

    def starting(self, tp: TopicPartition, target_path: str) -> DiskSteps[None]:
        """Begins a move. Raises DirectoryError or StorageFault where it cannot begin."""
        log = self._directories.get(tp)
        config = log.config if log is not None else None
        if config is None:
            return
        now_ms = self._clock.wall_ms()
        move = yield from self._directories.starting_move(tp, target_path, config, now_ms=now_ms)
        self._remove_dropped()
        if move is not None:
            log_event.info("moving a replica", partition=tp, to=target_path)
            self._schedule(tp, 0)

    def _schedule(self, tp: TopicPartition, delay_s: float) -> None:
        if self._is_closed or tp in self._line or tp in self._delayed:
            return
        if delay_s:
            self._delayed[tp] = asyncio.get_running_loop().call_later(delay_s, self._delay_ended, tp)
        else:
            self._line[tp] = None
            self._begin_turn()

    def _delay_ended(self, tp: TopicPartition) -> None:
        del self._delayed[tp]
        self._schedule(tp, 0)

    def _begin_turn(self) -> None:
        if self._turn is None and self._line:
            self._turn = asyncio.get_running_loop().call_later(0, self._take_turn)

    def _take_turn(self) -> None:
        """One step of the first in line."""
        self._turn = None
        tp = next(iter(self._line))
        del self._line[tp]
        try:
            self._step(tp)
        finally:
            self._begin_turn()

    def _step(self, tp: TopicPartition) -> None:
        move = self._directories.future(tp)
        if move is None:
            self._unflushed.pop(tp, None)
            return
        move.log.staging.roll_apart()
        unflushed = self._unflushed.get(tp)
        if unflushed is None or unflushed.log is not move.log:
            unflushed = self._unflushed[tp] = _UnflushedBytes(move.log)
        if unflushed.is_running or tp in self.changing:
            return  # its end goes on
        try:
            self._go_on(tp, move, unflushed)
        except Exception as fault:
            self._failed(tp, fault)
        if self._directories.future(tp) is None:
            self._unflushed.pop(tp, None)

    def _go_on(self, tp: TopicPartition, move: FutureLog, unflushed: _UnflushedBytes) -> None:
        """Copies a piece, or has the copy flushed, or has it take over."""
        # A step of a slow rate is small, or one of it would be above the rate of all samples together.
        step_bytes = min(_STEP_BYTES, max(1, self.quota.bytes_a_second()))
        try:
            if not move.is_level and self.quota.is_exceeded:
                self._schedule(tp, _THROTTLED_S)
                return
            if move.log.is_rolling:
                self._roll(tp, move)
                return
            if delay_s := _held_up_s(move):
                self._schedule(tp, delay_s)
                return
            if move.is_void:
                self._change(tp, self._starting_over(tp, move))
                return
            missing = move.missing()
            if missing is not None:
                self._cold_reads.read([missing], lambda: self._was_read(tp, missing.fault))
                return
            piece = move.next_piece(step_bytes)
            if not unflushed.is_warmed and not is_warm(move.source, piece):
                unflushed.is_warmed = True
                Warmth(self._workers, [piece]).wait(lambda: self._schedule(tp, 0))
                return
            unflushed.is_warmed = False
            copied = move.copy_step(step_bytes)
            unflushed.left += copied
            if copied:
                self.quota.record(copied)
            if not move.is_level:
                self._schedule(tp, 0)
                return
            if not unflushed.is_little:
                self._flush(tp, move, unflushed)
                return
            self._change(tp, self._changing_over(tp, move))
        except RollDue:
            self._roll(tp, move)
        except (AppendRefused, OffsetOutsideLog, CorruptLog, DirectoryError, StorageFault, OSError) as fault:
            self._met(tp, fault)

    def _roll(self, tp: TopicPartition, move: FutureLog) -> None:
        self._roll_log(move.log, lambda fault: self._rolled(tp, fault))

    def _change(self, tp: TopicPartition, steps: DiskSteps[None]) -> None:
        changed = asyncio.ensure_future(self._owner.change(steps))
        self.changing[tp] = changed
        changed.add_done_callback(lambda changed: self._changed(tp, changed))

    def _was_read(self, tp: TopicPartition, fault: StorageFault | None) -> None:
        if fault is None:
            self._schedule(tp, 0)
        else:
            self._wait(tp, fault)

    def _rolled(self, tp: TopicPartition, fault: StorageFault | None) -> None:
        move = self._directories.future(tp)
        if fault is None or move is None:
            self._schedule(tp, 0)
        elif fault.directory_failed:
            self._directories.fail_directory(move.target_path, str(fault))
        else:
            self._wait(tp, fault)

    def _met(self, tp: TopicPartition, fault: Exception) -> None:
        """A move met a fault: of the world, or of ours."""
        if isinstance(fault, RollDue):
            self._schedule(tp, 0)
        elif isinstance(fault, (AppendRefused, CorruptLog)):
            self._met_damage(tp, fault)
        elif isinstance(fault, StorageFault):
            self._wait(tp, fault)
        elif isinstance(fault, (OffsetOutsideLog, DirectoryError, OSError)):
            log_event.error("a replica could not be moved", partition=tp, reason=fault)
            self._remove_dropped()
        else:
            self._failed(tp, fault)

    def _starting_over(self, tp: TopicPartition, move: FutureLog) -> DiskSteps[None]:
        if not self._is_closed and self._directories.future(tp) is move and not move.log.is_rolling:
            yield from move.starting_over()

    def _changing_over(self, tp: TopicPartition, move: FutureLog) -> DiskSteps[None]:
        staging = move.source.staging
        if self._is_closed or self._directories.future(tp) is not move or staging.waits_for is not None:
            return
        if move.source.is_rolling or move.log.is_rolling or move.is_void:
            return  # its next turn comes behind that
        origin = self._directories.home_of(tp)
        assert origin is not None
        staging.hold_back(f"{tp}: it takes its place in {move.target_path}")
        self._owner.log_changes_over(tp)
        try:
            move.copy_step(_STEP_BYTES)
            if not move.is_level:
                return
            config = move.source.config
            log = yield from self._directories.taking_over(tp, config, now_ms=self._clock.wall_ms())
            if move.source.config is not config:
                log.reconfigure(move.source.config)
            self._owner.log_replaced(tp, log)
            log_event.info("a replica was moved", partition=tp, to=log.directory)
        finally:
            staging.go_on()
            self._owner.log_stays(tp)
        removal = yield from self._directories.leaving(tp, origin)
        self._remove_later(removal)

    def _changed(self, tp: TopicPartition, changed: asyncio.Future[None]) -> None:
        del self.changing[tp]
        if not changed.cancelled() and isinstance(fault := changed.exception(), Exception):
            self._met(tp, fault)
        elif self._directories.future(tp) is not None:
            self._schedule(tp, 0)

    def _flush(self, tp: TopicPartition, move: FutureLog, unflushed: _UnflushedBytes) -> None:
        """In a worker, while the original is served and written to."""
        flush = move.log.prepare_flush()
        unflushed.left = 0
        unflushed.flushes += 1
        if flush is None:
            self._schedule(tp, 0)
            return
        try:
            done = self._workers.thread(flush.run)
        except BaseException:
            move.log.durability.lost()
            raise
        unflushed.is_running = True
        self._flushes.add(done)
        done.add_done_callback(lambda done: self._flushed(tp, move, flush, done))

    def _flushed(self, tp: TopicPartition, move: FutureLog, flush: Flush, done: asyncio.Future[None]) -> None:
        self._flushes.discard(done)
        unflushed = self._unflushed.get(tp)
        is_current = unflushed is not None and unflushed.log is move.log
        if unflushed is not None and is_current:
            unflushed.is_running = False
        if done.cancelled():
            return
        fault = done.exception()
        if fault is None:
            try:
                move.log.flushed(flush)
            except Exception as of_ours:
                fault = of_ours
        if fault is not None:
            if unflushed is not None and is_current:
                unflushed.left = _STEP_BYTES + 1
            move.log.durability.lost()
        if self._directories.future(tp) is not move:
            return  # it was given up meanwhile, and its files may be gone
        if fault is None:
            self._schedule(tp, 0)
        elif isinstance(fault, StorageFault) and not fault.directory_failed:
            self._wait(tp, fault)
        elif isinstance(fault, (OSError, StorageFault)):
            self._directories.fail_directory(move.target_path, f"fsync failed: {fault}")
        elif isinstance(fault, Exception):
            self._failed(tp, fault)
        else:
            raise fault

    def _wait(self, tp: TopicPartition, fault: StorageFault) -> None:
        log_event.warning_limited("a replica cannot be moved for now", key=str(tp), partition=tp, reason=fault)
        self._schedule(tp, _RETRY_S)

    def _met_damage(self, tp: TopicPartition, fault: AppendRefused | CorruptLog) -> None:
        """A batch of the original is damaged: its readers meet it as well, and it is not moved until it is repaired."""
        move, unflushed = self._directories.future(tp), self._unflushed.get(tp)
        if move is None or unflushed is None:
            return
        again_s, unflushed.damaged_s = unflushed.damaged_s, min(2 * unflushed.damaged_s, _DAMAGED_S_MAX)
        log_event.error(
            "a replica cannot be moved: its log is damaged",
            partition=tp,
            directory=move.source.directory,
            offset=move.log.end_offset,
            reason=fault,
            again_s=again_s,
        )
        self._schedule(tp, again_s)

    def _failed(self, tp: TopicPartition, fault: Exception) -> None:
        """After a fault of ours."""
        error = "".join(traceback.format_exception(fault))
        log_event.error("a replica's move failed for a fault of the broker", partition=tp, error=error)
        home = self._directories.directory_of(tp)
        if self._directories.future(tp) is not None:
            self._schedule(tp, _RETRY_S)
        elif home is not None:
            # In the middle of the change-over: its role may stand on the old log, which is closed.
            self._directories.fail_directory(home, f"the move of {tp} to it was not finished: {fault!r}")

    def _remove_dropped(self) -> None:
        """Copies that were given up are out of use, and their files may go."""
        for removal in self._directories.removals:
            self._remove_later(removal)
        self._directories.removals.clear()

    def close(self) -> None:
        """No move goes on any more; a flush that is under way ends by itself (`flushes_end`)."""
        for handle in self._delayed.values():
            handle.cancel()
        if self._turn is not None:
            self._turn.cancel()
        self._delayed.clear()
        self._line.clear()
        self._is_closed = True

    async def flushes_end(self) -> None:
        while self._flushes:
            await asyncio.wait(self._flushes)
