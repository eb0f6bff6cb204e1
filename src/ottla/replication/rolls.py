"""Segments are begun by workers: creating a file may wait for the disk, and a log's next segment is three or four.

    a batch, or retention, asks ──▶ due ──the next turn──▶ being made ──▶ the log goes on, in the next segment
                                     │                        └ a fault ──▶ the log goes on as it was
                                     └ while a flush writes the indexes, behind that

From the first to the last of these nothing is appended to the log (`RollDue`). Produced batches wait
(`Leader.changing_over`), journals and fetchers come again, and the other logs go on. A roll that has failed is not
tried again by itself: those that waited for it are refused, and the next batch asks anew.
"""

from __future__ import annotations

import asyncio
import errno
import traceback
from collections import deque
from collections.abc import Callable, Iterable
from functools import partial
from typing import Final

from ottla import logs
from ottla.ports import Workers
from ottla.storage.errors import FaultKind, StorageFault
from ottla.storage.log.log import Log
from ottla.storage.log.rolling import LogReading, Roll

log_event = logs.logger("replication")

#: Logs whose segments workers have in hand at once. Each takes the loop a tenth of a millisecond when it comes back,
#: and those of a request of many partitions come back together.
AT_ONCE_MAX: Final = 8

#: Called when the log takes batches again: with None, or with the fault that left it as it was.
Rolled = Callable[[StorageFault | None], None]


class Rolls:
    def __init__(
        self,
        workers: Workers,
        running_flush: Callable[[Log], asyncio.Future[None] | None],
        ended: Callable[[Log, StorageFault | None], None],
    ) -> None:
        self._workers = workers
        self._running_flush = running_flush
        self._ended = ended
        #: Due or being made, and what waits besides the log's leader. By log and not by partition, as flushes are.
        self._waiting: dict[Log, list[Rolled]] = {}
        #: Those of them that somebody waits for in `end`: done once they are made, or never will be.
        self._ends: dict[Log, asyncio.Future[None]] = {}
        #: What workers have in hand.
        self._running: dict[Log, asyncio.Future[None]] = {}
        #: Those that are due while workers have enough in hand, in their order.
        self._line: deque[Log] = deque()
        self._turn: asyncio.Handle | None = None

    def begin(self, log: Log, then: Rolled | None = None) -> None:
        """The log has raised RollDue. What this turn of the loop has staged is written before the worker begins."""
        waiting = self._waiting.get(log)
        if waiting is None:
            waiting = self._waiting[log] = []
            self._line.append(log)
            self._look()
        if then is not None:
            waiting.append(then)

    @property
    def are_any(self) -> bool:
        return bool(self._waiting)

    async def end(self, some: Iterable[Log] | None = None) -> None:
        """Returns when no segment of these logs, or of any, is due or being made."""
        for log in list(self._waiting if some is None else some):
            while log in self._waiting:
                ended = self._ends.get(log)
                if ended is None:
                    ended = self._ends[log] = asyncio.get_running_loop().create_future()
                await asyncio.wait([ended])

    def _look(self) -> None:
        """The next in line begins in the next turn of the loop, if workers have room for it."""
        if self._line and self._turn is None and len(self._running) < AT_ONCE_MAX:
            self._turn = asyncio.get_running_loop().call_soon(self._take_turn)

    def _take_turn(self) -> None:
        self._turn = None
        try:
            while self._line and len(self._running) < AT_ONCE_MAX:
                self._prepare(self._line.popleft())
        finally:
            self._look()

    # -- one roll

    def _prepare(self, log: Log) -> None:
        if log.is_abandoned:
            log.roll_failed(None)
            self._end(log, None)
            return
        flush = self._running_flush(log) if log.durability.writes_indexes else None
        if flush is not None:
            flush.add_done_callback(lambda _: self._comes_again(log))
            return
        if not log.is_rolling:
            self._end(log, None)  # it was the flush alone that was to be waited for
            return
        self._start(log, has_made_room=False)

    def _comes_again(self, log: Log) -> None:
        """Behind its flush."""
        self._line.append(log)
        self._look()

    def _start(self, log: Log, *, has_made_room: bool) -> None:
        begun: Roll | LogReading | None = None
        try:
            begun = log.prepare_roll()
            if begun is None:
                log.rolled(None)
                self._end(log, None)
                return
            done = self._workers.thread(begun.run)
        except Exception as fault:
            self._failed(log, begun, fault if isinstance(fault, StorageFault) else _of_ours(log, fault))
            return
        self._running[log] = done
        done.add_done_callback(partial(self._made, log, begun, has_made_room))

    def _made(self, log: Log, begun: Roll | LogReading, has_made_room: bool, done: asyncio.Future[None]) -> None:
        del self._running[log]
        if done.cancelled():
            del self._waiting[log]  # the broker ends, and `end` is not to wait for what nobody makes
            self._let_go(log)
            return
        fault = done.exception()
        if log.is_abandoned:
            log.roll_failed(begun)
            self._end(log, None)
            return
        if fault is None:
            try:
                log.rolled(begun)
            except Exception as of_ours:
                # The files are there, and what is known of them may not be: only a start can find out.
                _of_ours(log, of_ours)
                self._failed(log, begun, StorageFault.of_ours(log.directory, of_ours))
                return
            self._end(log, None)
            return
        if isinstance(fault, OSError):
            self._refused(log, begun, StorageFault.of(log.directory, fault), has_made_room=has_made_room)
        elif isinstance(fault, StorageFault):
            self._failed(log, begun, fault)
        elif isinstance(fault, Exception):
            self._failed(log, begun, _of_ours(log, fault))
        else:
            raise fault

    def _refused(self, log: Log, begun: Roll | LogReading, fault: StorageFault, *, has_made_room: bool) -> None:
        """By the disk. Where no descriptor was left, other files are closed for it, once."""
        if fault.kind is FaultKind.NO_DESCRIPTOR and not has_made_room and log.places.around.files.close_half():
            log.roll_failed(begun)
            if isinstance(begun, LogReading):
                log.staging.want_reading()
            else:
                log.staging.want_roll(begun.base_offset)
            self._start(log, has_made_room=True)
        else:
            self._failed(log, begun, fault)

    def _failed(self, log: Log, begun: Roll | LogReading | None, fault: StorageFault) -> None:
        log.roll_failed(begun)
        self._end(log, fault)

    def _end(self, log: Log, fault: StorageFault | None) -> None:
        self._look()
        waiting = self._waiting.pop(log)
        self._let_go(log)
        self._ended(log, fault)
        for then in waiting:
            then(fault)

    def _let_go(self, log: Log) -> None:
        ended = self._ends.pop(log, None)
        if ended is not None:
            ended.set_result(None)


def _of_ours(log: Log, fault: Exception) -> StorageFault:
    """A fault of the broker's own, after which the log is as it was: the next batch tries again."""
    trace = "".join(traceback.format_exception(fault))
    log_event.error("a segment could not be begun for a fault of the broker", partition=log.tp, error=trace)
    return StorageFault(FaultKind.ROLLING, log.directory, OSError(errno.EAGAIN, f"a fault of the broker: {fault!r}"))
