"""Flushes in the background, one at a time for each log, so that many appends share one fsync.

fsync runs in a worker thread; the loop only hears of its end. A failed fsync is never tried again: the kernel may have
dropped the pages, and a second call would report success for data that is gone. The directory goes offline instead. A
full disk is something else: what could not be written beside the log is written with a later flush. So is a fault of
ours, in which no fsync has failed: all that the flush was to do is due again.
"""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import Callable, Iterable

from ottla import logs
from ottla.ports import Workers
from ottla.storage.errors import StorageFault
from ottla.storage.log.log import Flush, Log

log_event = logs.logger("replication")


class Flushing:
    def __init__(
        self, workers: Workers, flushed: Callable[[Log], None], failed: Callable[[Log, OSError | StorageFault], None]
    ) -> None:
        self._workers = workers
        self._flushed = flushed
        self._failed = failed
        #: By log and not by partition: one that is deleted and created again has another log.
        self._running: dict[Log, asyncio.Future[None]] = {}
        #: Asked for while a flush of the same log was running, which may have missed the newest writes.
        self._again: set[Log] = set()

    def request(self, log: Log) -> None:
        if log in self._running:
            self._again.add(log)
            return
        try:
            flush = log.prepare_flush()
        except StorageFault as fault:
            self._failed(log, fault)
            return
        except Exception as fault:
            self._lost(log, fault)
            return
        if flush is None:
            return
        try:
            future = self._workers.thread(flush.run)
        except Exception as fault:
            self._lost(log, fault)
            return
        self._running[log] = future
        future.add_done_callback(lambda done: self._ended(log, flush, done))

    def running(self, log: Log) -> asyncio.Future[None] | None:
        """The log's flush that a worker has in hand."""
        return self._running.get(log)

    def of(self, logs: Iterable[Log]) -> list[asyncio.Future[None]]:
        """The same of many."""
        return [self._running[log] for log in logs if log in self._running]

    async def catch_up(self, seconds: float) -> None:
        """Returns when all that is written now and waits for a flush has had it, or when the time is up.

        What a running flush has missed is in the one behind it. New ones, which new writes ask for, are not waited for.
        """
        for _ in range(2):
            if self._running:
                await asyncio.wait(list(self._running.values()), timeout=seconds)

    async def idle(self) -> None:
        """Returns when no flush is running."""
        while self._running:
            await asyncio.wait(list(self._running.values()))

    def _ended(self, log: Log, flush: Flush, done: asyncio.Future[None]) -> None:
        self._running.pop(log, None)
        again = log in self._again
        self._again.discard(log)
        if done.cancelled():
            return
        error = done.exception()
        if isinstance(error, (OSError, StorageFault)):
            if isinstance(error, StorageFault) and not error.directory_failed:
                log.durability.refused(flush)
            self._failed(log, error)
            return
        if error is not None and not isinstance(error, Exception):
            raise error
        try:
            if flush.done:
                log.flushed(flush)
                self._flushed(log)
        except Exception as fault:
            error = fault
        if error is not None:
            self._lost(log, error)
        if again and log not in self._running:
            self.request(log)

    def _lost(self, log: Log, fault: Exception) -> None:
        log_event.warning_limited(
            "a flush failed for a fault of the broker, and is due again",
            key=str(log.tp),
            partition=log.tp,
            error="".join(traceback.format_exception(fault)),
        )
        if log not in self._running:
            log.durability.lost()
