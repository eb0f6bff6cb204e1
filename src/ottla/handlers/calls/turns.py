"""Long work of requests, in turns: a slice of it between two rounds of the network, one piece of work after another.

What is small ends in its first slice, in the request's own round, and costs no more than a generator. What does not
stands in a line, and in each turn of the event loop one piece of work gets one slice: however many long requests there
are, all others wait for one slice and not for the sum of them.

Work that is in progress holds memory, so only so much of it is: the rest waits as it came. Large requests have a line
of their own, since each may take seconds, and small ones would wait behind them.

What the controller announces stands in neither: it has all turns until it has ended.
"""

from __future__ import annotations

import asyncio
import traceback
from collections import deque
from collections.abc import Callable, Generator
from functools import partial
from typing import Any, Final, NamedTuple, Protocol, TypeVar

from ottla import logs
from ottla.handlers.calls.letting_go import Parts, gathered_by, held_by, kept_by, left_by
from ottla.ports import Clock
from ottla.steps import Steps, give_to_collector, keep_from_collector

log_event = logs.logger("handlers")

T = TypeVar("T")

#: How long a slice goes on: by a clock of milliseconds, between one and this.
SLICE_MS: Final = 2
#: Steps between two looks at the clock; each takes some ten microseconds.
STEPS_A_LOOK: Final = 8
#: Looks at the clock in one slice: that of a simulation stands still meanwhile.
LOOKS_A_SLICE: Final = 512
#: A request of more bytes is large. One of fewer takes 15 MB at the most, decoded into objects.
SMALL_BYTES_MAX: Final = 64 * 1024
#: What is in progress at once, of each kind. Of the first: a controller, and another one that takes its place.
SMALL_AT_ONCE: Final = 16
LARGE_AT_ONCE: Final = 2
FIRST_AT_ONCE: Final = 2


class JobResult(NamedTuple):
    """A wrapper, since None may be a result."""

    result: Any


class Pause(Protocol):
    """What work yields in place of None to say that it cannot go on yet. It asks again when it is called."""

    def wait(self, resume: Callable[[], None]) -> None: ...


#: Work in steps that may have to wait between two of them.
PausingSteps = Generator[Pause | None, None, T]


def behind(pause: Pause | None, steps: PausingSteps[T]) -> PausingSteps[T]:
    """The rest of work that has had its first slice, which may have ended with a pause."""
    yield pause
    return (yield from steps)


class Job:
    """Work that has not ended in its first slice, and the call-backs that want its result."""

    __slots__ = ("done", "failed", "held", "line", "over", "steps")

    def __init__(
        self,
        line: Line,
        steps: PausingSteps[Any],
        done: Callable[[Any], None],
        failed: Callable[[Exception], None],
    ) -> None:
        self.line = line
        self.steps = steps
        self.done = done
        self.failed = failed
        #: What the work had gathered at the end of its last slice.
        self.held: dict[int, Any] = {}
        self.over = False


class Line:
    """Work of one kind: what is in progress, in its turns, and what has yet to begin."""

    __slots__ = ("at_once", "begun", "waiting")

    def __init__(self, at_once: int) -> None:
        self.at_once = at_once
        #: In the order of their turns; thousands may leave at once.
        self.begun: dict[Job, None] = {}
        self.waiting: dict[Job, None] = {}

    def __len__(self) -> int:
        return len(self.begun) + len(self.waiting)

    def add(self, job: Job) -> None:
        (self.begun if len(self.begun) < self.at_once else self.waiting)[job] = None

    def leave(self, job: Job) -> None:
        """It has ended, is given up or pauses: the next one may begin."""
        self.begun.pop(job, None)
        self.waiting.pop(job, None)
        if self.waiting and len(self.begun) < self.at_once:
            first = next(iter(self.waiting))
            del self.waiting[first]
            self.begun[first] = None

    def rotate(self, job: Job) -> None:
        """It has had its turn."""
        del self.begun[job]
        self.begun[job] = None


class Turns:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._small = Line(SMALL_AT_ONCE)
        self._large = Line(LARGE_AT_ONCE)
        self._first = Line(FIRST_AT_ONCE)
        #: The line whose turn it is, and the other.
        self._lines = deque((self._small, self._large))
        self._wake: asyncio.Handle | None = None
        #: The one that is at work just now.
        self._served: Job | None = None

    def __len__(self) -> int:
        return len(self._small) + len(self._large) + len(self._first)

    @property
    def is_full(self) -> bool:
        """Whether as many small requests are in progress as may be."""
        return len(self._small.begun) >= SMALL_AT_ONCE

    def slice(self, steps: PausingSteps[Any], ends_ms: int | None = None) -> JobResult | Pause | None:
        """Goes on with a piece of work for one slice, or until then; None where it has not ended. A few steps are done
        in any case. Raises what the work raises."""
        if ends_ms is None:
            ends_ms = self._clock.monotonic_ms() + SLICE_MS
        try:
            for _ in range(LOOKS_A_SLICE):
                for _ in range(STEPS_A_LOOK):
                    pause = next(steps)
                    if pause is not None:
                        return pause
                if self._clock.monotonic_ms() >= ends_ms:
                    break
        except StopIteration as end:
            return JobResult(end.value)
        return None

    def go_on(
        self,
        steps: PausingSteps[T],
        done: Callable[[T], None],
        failed: Callable[[Exception], None],
        size: int = 0,
        *,
        is_first: bool = False,
    ) -> Job:
        """Has the work of a request of `size` bytes done in the next turns; one of the two is then called, never from
        here."""
        line = self._first if is_first else self._small if size <= SMALL_BYTES_MAX else self._large
        job = Job(line, steps, done, failed)
        line.add(job)
        self._wake_soon()
        return job

    def give_up(self, job: Job) -> None:
        """Ends work that nobody waits for any more; nothing is called."""
        if not job.over:
            job.over = True
            if job is not self._served:  # that is closed behind its step
                self._close(job)

    def _close(self, job: Job) -> None:
        """What work has gathered by now is freed in turns, as it was gathered."""
        line = job.line
        held = [] if job in line.waiting else held_by(job.steps)
        try:
            job.steps.close()
        finally:
            self._free(line, held)
            line.leave(job)

    def _free(self, line: Line, held: list[Any]) -> None:
        """In the place of the work that has held it."""
        if held:
            line.begun[Job(line, _freed(Parts(*held)), _nothing, _not_freed)] = None
            self._wake_soon()

    def _free_what_is_left(self, job: Job) -> None:
        """What the work had gathered by its last slice and has no more: a generator that has ended would have freed all
        that it had in one step. It is freed in turns instead."""
        if job.failed is _not_freed:
            return
        before, job.held = job.held, gathered_by(job.steps)
        self._free(job.line, left_by(before, job.held))

    async def to_end(self, steps: PausingSteps[T], *, is_first: bool = False) -> T:
        """The result, for a handler that waits for other things too."""
        ended = self.slice(steps)
        if isinstance(ended, JobResult):
            result: T = ended.result
            return result
        if ended is not None:
            steps = behind(ended, steps)
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        # The caller that waits here may be cancelled in the turn in which the work ends.
        job = self.go_on(
            steps,
            partial(_settle, future, future.set_result),
            partial(_settle, future, future.set_exception),
            is_first=is_first,
        )
        try:
            return await future
        finally:
            self.give_up(job)

    def _wake_soon(self) -> None:
        if self._wake is None:
            self._wake = asyncio.get_running_loop().call_soon(self._serve)

    def _serve(self) -> None:
        self._wake = None
        line = self._first
        if not line.begun:
            self._lines.rotate()
            line = self._lines[0] if self._lines[0].begun else self._lines[1]
        if not line.begun:
            return
        job = self._served = next(iter(line.begun))
        try:
            self._take(job, self.slice(job.steps))
        except Exception as fault:
            self._fail(job, fault)
        finally:
            # Whatever becomes of this work, the others have their turns.
            self._served = None
            self._wake_or_rest()

    def _wake_or_rest(self) -> None:
        if self._small.begun or self._large.begun or self._first.begun:
            keep_from_collector()
            self._wake_soon()
        else:
            give_to_collector()

    def _take(self, job: Job, found: JobResult | Pause | None) -> None:
        if job.over:
            self._close(job)
        elif found is None:
            job.line.rotate(job)
            self._free_what_is_left(job)
        elif isinstance(found, JobResult):
            self._free_what_is_left(job)
            self._end(job)
            job.done(found.result)
        else:
            job.line.leave(job)
            found.wait(partial(self._resume, job))

    def _fail(self, job: Job, fault: Exception) -> None:
        if job.failed is not _not_freed:  # or that would be freed in its turn, and fail again
            self._free(job.line, kept_by(fault))
        self._end(job)
        try:
            job.steps.close()
            job.failed(fault)
        except Exception as second:
            log_event.error(
                "long work could not be given up",
                reason=repr(fault),
                error="".join(traceback.format_exception(second)),
            )

    @staticmethod
    def _end(job: Job) -> None:
        job.over = True
        job.line.leave(job)

    def _resume(self, job: Job) -> None:
        if not job.over:
            job.line.add(job)
            self._wake_soon()


def _freed(parts: Parts) -> Steps[None]:
    yield from parts.found()
    yield from parts.let_go()


def _nothing(result: object) -> None:
    """Nobody waits for it."""


def _not_freed(fault: Exception) -> None:
    """All that is left of it goes at once, with the fault."""
    log_event.error("what long work has gathered could not be freed in turns", error=repr(fault))


def _settle(future: asyncio.Future[Any], settle: Callable[[Any], None], result: Any) -> None:
    if not future.done():
        settle(result)
