"""Batches with too much in them for the loop, looked into by another process: for Produce and for ListOffsets.

They take turns, in the order in which they came. What waits for its turn holds no more than its request: a batch that
is to be read from a log is read when its turn has come. Whoever has waited for too long is told so in place of its
turn: its client has given up by then, and those behind it have not.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final, TypeVar

from ottla import logs
from ottla.ports import Clock, Workers
from ottla.records.errors import RecordError

T = TypeVar("T")

log_event = logs.logger("handlers")


#: What waited for so long gets no turn any more. Clients wait 30 s for an answer by default.
WAIT_MS_MAX: Final = 30_000


class CheckFailed(Exception):
    """Its turn came too late, or the process died of it, twice. The client is told to try again: nothing is known."""


class Checks:
    def __init__(self, workers: Workers, clock: Clock) -> None:
        self._workers = workers
        self._clock = clock
        self._turn = asyncio.Lock()

    async def run(self, work: Callable[..., T], arguments: Callable[[], tuple[object, ...]]) -> T:
        """The result of `work`, a module-level function, or the RecordError that it raises; or raises CheckFailed.

        What `arguments` raises is raised.
        """
        began_ms = self._clock.monotonic_ms()
        async with self._turn:
            if self._clock.monotonic_ms() - began_ms > WAIT_MS_MAX:
                raise CheckFailed
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
