"""Work for clients that takes long: a slice of it in each turn of the loop.

What is new and what has had a slice already go on in turn, and each of the two one after the other. So what is short
ends in its first slice, however long the others are; and however many these are, each waits for slices of the others
and not for the whole of them.
"""

from __future__ import annotations

import asyncio
import traceback
from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple

from ottla import logs
from ottla.ports.clock import Clock
from ottla.steps import STEPS_A_TURN, TURN_MS, Steps, give_to_collector, keep_from_collector

_log = logs.logger("tree")


class _Job(NamedTuple):
    steps: Steps[Any]
    #: Takes the result.
    done: Callable[[Any], None]
    #: Called in its place when the work fails.
    failed: Callable[[Exception], None]


class LongWork:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        #: At most one for each request that waits.
        self._new: deque[_Job] = deque()
        self._begun: deque[_Job] = deque()
        self._is_turn_of_new = False
        self._task: asyncio.Task[None] | None = None

    def add(self, steps: Steps[Any], done: Callable[[Any], None], failed: Callable[[Exception], None]) -> None:
        """One of the two is called in a later turn."""
        self._new.append(_Job(steps, done, failed))
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._serve())

    async def finish(self) -> None:
        """Returns when nothing is left to do."""
        if self._task is not None:
            await asyncio.wait([self._task])

    async def _serve(self) -> None:
        try:
            while self._new or self._begun:
                self._serve_turn()
                if self._begun:
                    keep_from_collector()
                await asyncio.sleep(0)
        finally:
            self._task = None
            give_to_collector()

    def _serve_turn(self) -> None:
        ends_ms, left = self._clock.monotonic_ms() + TURN_MS, STEPS_A_TURN
        while left > 0 and (self._new or self._begun):
            self._is_turn_of_new = not self._is_turn_of_new
            line = self._new if self._new and (self._is_turn_of_new or not self._begun) else self._begun
            left = self._go_on(line.popleft(), ends_ms, left)

    def _go_on(self, job: _Job, ends_ms: int, left: int) -> int:
        """Up to so many steps; how many are left for others in this turn."""
        try:
            while left > 0:
                left -= 1
                next(job.steps)
                if self._clock.monotonic_ms() >= ends_ms:
                    left = 0
        except StopIteration as end:
            self._end(job, end.value)
            if self._clock.monotonic_ms() >= ends_ms:
                return 0
        except Exception as fault:
            self._fail(job, fault)
        else:
            self._begun.append(job)
        return left

    def _end(self, job: _Job, result: Any) -> None:
        try:
            job.done(result)
        except Exception as fault:
            self._fail(job, fault)

    @staticmethod
    def _fail(job: _Job, fault: Exception) -> None:
        try:
            job.failed(fault)
        except Exception as second:
            trace = "".join(traceback.format_exception(second))
            _log.error("long work could not be given up", reason=repr(fault), error=trace)
