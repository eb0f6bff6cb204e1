"""Long work of requests, in turns: a slice of it between two rounds of the network, one piece of work after another.

What is small ends in its first slice, in the request's own round, and costs no more than a generator. What does not
stands in a queue whose head gets one slice in each turn of the event loop: however many long requests there are, all
others wait for one slice and not for the sum of them.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any, Final, NamedTuple, TypeVar

from ottla.ports import Clock
from ottla.steps import Steps

T = TypeVar("T")

#: How long a slice goes on: by a clock of milliseconds, between one and this.
SLICE_MS: Final = 2
#: Steps between two looks at the clock; each takes some ten microseconds.
STEPS_A_LOOK: Final = 8
#: Looks at the clock in one slice: that of a simulation stands still meanwhile.
LOOKS_A_SLICE: Final = 512


class Ended(NamedTuple):
    """A wrapper, since None may be a result."""

    result: Any


class Job:
    """Work that has not ended in its first slice, and who wants its result."""

    __slots__ = ("done", "failed", "steps")

    def __init__(self, steps: Steps[Any], done: Callable[[Any], None], failed: Callable[[Exception], None]) -> None:
        self.steps = steps
        self.done = done
        self.failed = failed


class Turns:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._queue: deque[Job] = deque()
        self._wake: asyncio.Handle | None = None

    def __len__(self) -> int:
        return len(self._queue)

    def slice(self, steps: Steps[Any]) -> Ended | None:
        """Begins a piece of work; None where it has not ended, and is to `go_on`. Raises what the work raises."""
        ends_ms = self._clock.monotonic_ms() + SLICE_MS
        try:
            for _ in range(LOOKS_A_SLICE):
                for _ in range(STEPS_A_LOOK):
                    next(steps)
                if self._clock.monotonic_ms() >= ends_ms:
                    break
        except StopIteration as end:
            return Ended(end.value)
        return None

    def go_on(self, steps: Steps[T], done: Callable[[T], None], failed: Callable[[Exception], None]) -> Job:
        """Has the rest done in the next turns; one of the two is then called, never from here."""
        job = Job(steps, done, failed)
        self._queue.append(job)
        self._wake_soon()
        return job

    def give_up(self, job: Job) -> None:
        """Ends work that nobody waits for any more; nothing is called."""
        if job in self._queue:
            self._queue.remove(job)
            job.steps.close()

    async def to_end(self, steps: Steps[T]) -> T:
        """The result, for a handler that waits for other things too."""
        ended = self.slice(steps)
        if ended is not None:
            result: T = ended.result
            return result
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        job = self.go_on(steps, future.set_result, future.set_exception)
        try:
            return await future
        finally:
            self.give_up(job)

    def _wake_soon(self) -> None:
        if self._wake is None:
            self._wake = asyncio.get_running_loop().call_soon(self._serve)

    def _serve(self) -> None:
        self._wake = None
        if not self._queue:
            return
        job = self._queue.popleft()
        try:
            ended = self.slice(job.steps)
            if ended is None:
                self._queue.append(job)
            else:
                job.done(ended.result)
        except Exception as fault:
            job.failed(fault)
        if self._queue:
            self._wake_soon()
