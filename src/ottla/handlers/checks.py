"""Batches with too much in them for the loop, looked into by another process: for Produce and for ListOffsets.

They take turns, in the order in which they came. What waits for its turn holds no more than its request: a batch that
is to be read from a log is read when its turn has come.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

from ottla import logs
from ottla.ports import Workers
from ottla.records.errors import RecordError

T = TypeVar("T")

log_event = logs.logger("handlers")


class CheckFailed(Exception):
    """The process died of it, twice. The client is told to try again: nothing is known of its batch."""


class Checks:
    def __init__(self, workers: Workers) -> None:
        self._workers = workers
        self._turn = asyncio.Lock()

    async def run(self, work: Callable[..., T], arguments: Callable[[], tuple[object, ...]]) -> T:
        """The result of `work`, a module-level function, or the RecordError that it raises; or raises CheckFailed.

        What `arguments` raises is raised.
        """
        async with self._turn:
            values = arguments()
            try:
                return await self._workers.check(work, *values)
            except RecordError:
                raise
            except Exception as error:  # whatever the process died of, or could not do
                log_event.warning_limited("a batch is looked into again", reason=error)
            try:
                return await self._workers.check(work, *values)
            except RecordError:
                raise
            except Exception as error:
                log_event.error("a batch could not be looked into", reason=error)
                raise CheckFailed from error
