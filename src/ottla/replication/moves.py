"""Replicas on their way from one log directory to another, copied in steps between the broker's other work.

The last step and the change-over are one turn of the loop, so that no append can come in between.
"""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import Callable
from typing import Final

from ottla import logs
from ottla.model import TopicPartition
from ottla.ports import Clock
from ottla.steps import DiskSteps
from ottla.storage.directories.directories import LogDirectories
from ottla.storage.directories.errors import DirectoryError
from ottla.storage.directories.moving import FutureLog
from ottla.storage.directories.removal import FolderRemoval
from ottla.storage.errors import CorruptLog, OffsetOutsideLog, StorageFault
from ottla.storage.log.log import Log

log_event = logs.logger("replication")

#: A step takes about a millisecond, so that requests hardly notice a move.
_STEP_BYTES: Final = 1024 * 1024
#: How long to wait after a full disk before the copy is tried again.
_RETRY_S: Final = 5.0


class Moves:
    def __init__(
        self,
        directories: LogDirectories,
        clock: Clock,
        replaced: Callable[[TopicPartition, Log], None],
        remove_later: Callable[[FolderRemoval], None],
    ) -> None:
        self._directories = directories
        self._clock = clock
        self._replaced = replaced
        self._remove_later = remove_later
        self._scheduled: dict[TopicPartition, asyncio.TimerHandle] = {}

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
        if tp not in self._scheduled:
            self._scheduled[tp] = asyncio.get_running_loop().call_later(delay_s, self._step, tp)

    def _step(self, tp: TopicPartition) -> None:
        del self._scheduled[tp]
        move = self._directories.future(tp)
        if move is None:
            return
        try:
            self._go_on(tp, move)
            log = self._directories.get(tp)
            if log is not None and log is not move.source:
                self._replaced(tp, log)
                log_event.info("a replica was moved", partition=tp, to=log.directory)
        except Exception as fault:
            self._failed(tp, fault)

    def _go_on(self, tp: TopicPartition, move: FutureLog) -> None:
        """Copies a piece, or has the copy take over, which it has even where something behind that fails."""
        try:
            move.copy_step(_STEP_BYTES)
            if not move.is_level:
                self._schedule(tp, 0)
                return
            _, removal = self._directories.finish_move(tp, move.source.config, now_ms=self._clock.wall_ms())
            self._remove_later(removal)
        except (OffsetOutsideLog, CorruptLog, DirectoryError, OSError) as fault:
            log_event.error("a replica could not be moved", partition=tp, reason=fault)
            self._remove_dropped()
        except StorageFault as fault:
            log_event.warning_limited("a replica cannot be moved for now", key=str(tp), partition=tp, reason=fault)
            self._schedule(tp, _RETRY_S)

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
        for handle in self._scheduled.values():
            handle.cancel()
        self._scheduled.clear()
