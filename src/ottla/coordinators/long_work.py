"""Long work of a coordinator, in steps beside everything else.

There are two lines. Work that holds much memory is done one after another: the targets of large groups. All other work
goes side by side, a step of each: the answers to a group of ten thousand must not wait for a target that takes seconds,
nor the answers to ten members of another group for those ten thousand.
"""

from __future__ import annotations

import asyncio
import traceback
from collections import deque
from collections.abc import Callable
from typing import Final

from ottla import logs
from ottla.steps import Steps, in_turns

log_event = logs.logger("coordinators")

#: Has work done in steps, beside everything else.
Beside = Callable[[Steps[None]], None]

#: Steps of the work that goes side by side, for each step of the other.
_STEPS_SIDE_BY_SIDE: Final = 4


class LongWork:
    def __init__(self, monotonic_ms: Callable[[], int]) -> None:
        self._monotonic_ms = monotonic_ms
        self._one_by_one: deque[Steps[None]] = deque()
        self._side_by_side: deque[Steps[None]] = deque()
        self._task: asyncio.Task[None] | None = None

    def one_by_one(self, steps: Steps[None]) -> None:
        """It begins when all that came before it in this way has ended."""
        self._one_by_one.append(steps)
        self._begin()

    def side_by_side(self, steps: Steps[None]) -> None:
        self._side_by_side.append(steps)
        self._begin()

    async def close(self) -> None:
        """Ends it: clients that are being answered are answered, and all else is left."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        self._one_by_one.clear()
        while self._side_by_side:
            steps = self._side_by_side.popleft()
            while not _stepped(steps):
                pass

    def _begin(self) -> None:
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._do(), name="long work of a coordinator")

    async def _do(self) -> None:
        try:
            await in_turns(self._all(), self._monotonic_ms)
        finally:
            self._task = None

    def _all(self) -> Steps[None]:
        yield  # the caller that hands it over answers first
        while self._one_by_one or self._side_by_side:
            for _ in range(min(_STEPS_SIDE_BY_SIDE, len(self._side_by_side))):
                steps = self._side_by_side[0]
                is_over = _stepped(steps)
                if is_over:
                    self._side_by_side.popleft()
                else:
                    self._side_by_side.rotate(-1)
                yield
            if self._one_by_one:
                if _stepped(self._one_by_one[0]):
                    self._one_by_one.popleft()
                yield


def _stepped(steps: Steps[None]) -> bool:
    """Whether it has ended. A fault of ours in one piece of work must not cost the others theirs."""
    try:
        next(steps)
    except StopIteration:
        return True
    except Exception as fault:
        log_event.error("long work of a coordinator failed", error="".join(traceback.format_exception(fault)))
        return True
    return False
