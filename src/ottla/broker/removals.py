"""Files on their way out: each not before its time, and however many there are, a few at a time in one worker.

A topic of ten thousand partitions leaves as many folders behind, and retention may take a segment from each of as many
logs in one round. Nobody waits for them, so they stand in one queue: the loop hands the next batch over when the last
one is done, and the other workers stay free for flushes, which somebody waits for.
"""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import Callable
from functools import partial
from heapq import heappop, heappush
from itertools import count
from typing import Final, NamedTuple, Protocol

from ottla import logs
from ottla.ports import Clock, Workers

log_event = logs.logger("server")

#: What one worker removes before it reports: some ten milliseconds.
REMOVALS_A_BATCH: Final = 64
#: After this, what no worker has taken, or a worker was lost with, is tried again.
_AGAIN_MS: Final = 10_000


class Removable(Protocol):
    """Files that nothing refers to any more; `run` blocks."""

    def run(self) -> None: ...


class _QueuedRemoval(NamedTuple):
    due_ms: int
    #: In the order of arrival among those that are due at once.
    number: int
    removal: Removable
    log_directory: str


class Removals:
    def __init__(self, workers: Workers, clock: Clock, failed: Callable[[Removable, str, Exception], None]) -> None:
        self._workers = workers
        self._clock = clock
        #: Called with what could not be removed, and its log directory.
        self._failed = failed
        self._queue: list[_QueuedRemoval] = []
        self._numbers = count()
        self._timer: asyncio.TimerHandle | None = None
        self._timer_ms = 0
        self._running = False
        self._closed = False

    def __len__(self) -> int:
        """Those whose turn has not come."""
        return len(self._queue)

    def add(self, removal: Removable, log_directory: str, delay_ms: int) -> None:
        if self._closed:
            return  # the next start finds them by their names
        due_ms = self._clock.monotonic_ms() + delay_ms
        heappush(self._queue, _QueuedRemoval(due_ms, next(self._numbers), removal, log_directory))
        self._arm()

    def close(self) -> None:
        """What waits is left to the next start."""
        self._closed = True
        self._queue.clear()
        if self._timer is not None:
            self._timer.cancel()

    def _arm(self) -> None:
        if self._running or self._closed or not self._queue:
            return
        due_ms = self._queue[0].due_ms
        if self._timer is not None:
            if self._timer_ms <= due_ms:
                return
            self._timer.cancel()
        self._timer_ms = due_ms
        delay_s = max(0, due_ms - self._clock.monotonic_ms()) / 1000
        self._timer = asyncio.get_running_loop().call_later(delay_s, self._begin)

    def _begin(self) -> None:
        self._timer = None
        now_ms = self._clock.monotonic_ms()
        batch: list[_QueuedRemoval] = []
        while self._queue and self._queue[0].due_ms <= now_ms and len(batch) < REMOVALS_A_BATCH:
            batch.append(heappop(self._queue))
        if not batch:
            self._arm()  # the timer's clock was ahead by a part of a millisecond
            return
        try:
            future = self._workers.thread(lambda: _removed(batch))
        except Exception as fault:
            self._put_back(batch, fault)
            return
        self._running = True
        future.add_done_callback(partial(self._done, batch))

    def _done(
        self, batch: list[_QueuedRemoval], future: asyncio.Future[list[tuple[_QueuedRemoval, Exception]]]
    ) -> None:
        self._running = False
        if future.cancelled() or future.exception() is not None:
            self._put_back(batch, None if future.cancelled() else future.exception())
            return
        for queued, fault in future.result():
            try:
                self._failed(queued.removal, queued.log_directory, fault)
            except Exception as second:
                _say(second)
        self._arm()

    def _put_back(self, batch: list[_QueuedRemoval], fault: BaseException | None) -> None:
        """To remove what is gone already does no harm."""
        if fault is not None:
            _say(fault)
        for queued in batch:
            self.add(queued.removal, queued.log_directory, _AGAIN_MS)


def _removed(batch: list[_QueuedRemoval]) -> list[tuple[_QueuedRemoval, Exception]]:
    """Blocks; returns what could not be removed."""
    faults: list[tuple[_QueuedRemoval, Exception]] = []
    for queued in batch:
        try:
            queued.removal.run()
        except Exception as fault:
            faults.append((queued, fault))
    return faults


def _say(fault: BaseException) -> None:
    error = "".join(traceback.format_exception(fault))
    log_event.warning_limited("files could not be removed for a fault of the broker", error=error)
