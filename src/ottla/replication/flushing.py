"""Flushes in the background, one at a time for each log, so that many appends share one fsync.

fsync runs in a worker thread; the loop only hears of its end. A failed fsync is never tried again: the kernel may have
dropped the pages, and a second call would report success for data that is gone. The directory goes offline instead.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from ottla.model import TopicPartition
from ottla.ports import Workers
from ottla.storage.errors import StorageFault
from ottla.storage.log import Flush, Log


class Flushing:
    def __init__(
        self,
        workers: Workers,
        flushed: Callable[[TopicPartition], None],
        failed: Callable[[TopicPartition, Exception], None],
    ) -> None:
        self._workers = workers
        self._flushed = flushed
        self._failed = failed
        self._running: dict[TopicPartition, tuple[Log, asyncio.Future[None]]] = {}
        #: Asked for while a flush of the same log was running, which may have missed the newest writes.
        self._again: set[TopicPartition] = set()

    def request(self, log: Log) -> None:
        if log.tp in self._running:
            self._again.add(log.tp)
            return
        flush = log.prepare_flush()
        if flush is None:
            return
        future = self._workers.thread(flush.run)
        self._running[log.tp] = log, future
        future.add_done_callback(lambda done: self._ended(log, flush, done))

    async def idle(self) -> None:
        """Returns when no flush is running."""
        while self._running:
            await asyncio.wait([future for _, future in self._running.values()])

    def _ended(self, log: Log, flush: Flush, done: asyncio.Future[None]) -> None:
        self._running.pop(log.tp, None)
        again = log.tp in self._again
        self._again.discard(log.tp)
        if done.cancelled():
            return
        error = done.exception()
        if isinstance(error, (OSError, StorageFault)):
            self._failed(log.tp, error)
            return
        if error is not None:
            raise error
        log.flushed(flush)
        self._flushed(log.tp)
        if again:
            self.request(log)
