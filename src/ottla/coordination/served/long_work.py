"""Work for one client that takes long: one piece after the other, a slice of it in each turn of the loop."""

from __future__ import annotations

import asyncio
import traceback
from collections import deque
from collections.abc import Callable
from typing import Any

from ottla import logs
from ottla.ports.clock import Clock
from ottla.steps import Steps, in_turns

_log = logs.logger("tree")

#: What is done, what takes its result, and what is called in its place when it fails.
_Job = tuple[Steps[Any], Callable[[Any], None], Callable[[Exception], None]]


class LongWork:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        #: At most one for each request that waits.
        self._jobs: deque[_Job] = deque()
        self._task: asyncio.Task[None] | None = None

    def add(self, steps: Steps[Any], done: Callable[[Any], None], failed: Callable[[Exception], None]) -> None:
        """One of the two is called in a later turn."""
        self._jobs.append((steps, done, failed))
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._serve())

    async def finish(self) -> None:
        """Returns when nothing is left to do."""
        if self._task is not None:
            await asyncio.wait([self._task])

    async def _serve(self) -> None:
        try:
            while self._jobs:
                steps, done, failed = self._jobs.popleft()
                try:
                    done(await in_turns(steps, self._clock.monotonic_ms))
                except Exception as fault:
                    try:
                        failed(fault)
                    except Exception as second:
                        trace = "".join(traceback.format_exception(second))
                        _log.error("long work could not be given up", reason=repr(fault), error=trace)
        finally:
            self._task = None
