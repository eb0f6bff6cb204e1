"""An asyncio loop in virtual time: what waits for an hour is done at once, and one seed gives one order of events.

Time moves only when nothing is ready, and then straight to the next timer. There is no selector, no thread and no
real sleep. Where nothing is ready and no timer is set, nothing can ever happen again: that is reported as a deadlock
with the names of the tasks that wait.
"""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Callable
from random import Random
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

from ottla.ports.memory.clock import Timeline
from ottla.ports.memory.processes import PROCESS, Process, task_of_a_process

if TYPE_CHECKING:
    from collections import deque
    from contextvars import Context

T = TypeVar("T")

#: Turns without any time passing. A broker needs some hundreds for a burst; a million is a loop that feeds itself.
STANDSTILL_TURNS_MAX: Final = 1_000_000
#: Cancelled timers that may lie in the heap, beside as many as half of all.
CANCELLED_TIMERS_MAX: Final = 100
#: How often all tasks are ended at the end of a run: each time only what the ones before have started is left.
ENDINGS_MAX: Final = 100
#: Waiting tasks that a deadlock's message names.
TASKS_NAMED_MAX: Final = 10


class DeadlockError(RuntimeError):
    """Everything waits and nothing will wake it."""


class StandstillError(RuntimeError):
    """Call-backs go on scheduling call-backs, and time does not move."""


class VirtualLoop(asyncio.BaseEventLoop):
    """`Random(seed)` shuffles what is ready at one moment; without a seed the order is asyncio's own."""

    # Kept by BaseEventLoop; named here for the type checker.
    _ready: deque[asyncio.Handle]
    #: When, the timer's number, the timer.
    _scheduled: list[tuple[float, int, asyncio.TimerHandle]]
    _stopping: bool
    _timer_cancelled_count: int

    def __init__(self, timeline: Timeline | None = None, *, seed: int | None = None) -> None:
        super().__init__()
        self.timeline = timeline if timeline is not None else Timeline()
        #: Turns of the loop so far: a cheap fingerprint of a run.
        self.turns = 0
        #: Called after each turn, for a test that checks what must hold at every moment. What it raises ends the run.
        self.after_turn: Callable[[], None] | None = None
        #: The processes of which something ran in this turn, in order: only their state can have changed in it.
        self.ran: dict[Process, None] = {}
        #: Call-backs so far.
        self.calls = 0
        #: Processes that have ended so far.
        self.ends = 0
        self._timers_set = 0
        self._order = None if seed is None else Random(seed)
        self._standstill_turns = 0
        self._fatal: BaseException | None = None
        self.set_task_factory(task_of_a_process)

    def time(self) -> float:
        return self.timeline.seconds

    def call_at(  # type: ignore[override]
        self, when: float, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        timer = asyncio.TimerHandle(when, callback, args, self, context)
        self._timers_set += 1
        # Behind all that were set for the same moment before; and numbers are compared faster than timers.
        heapq.heappush(self._scheduled, (when, self._timers_set, timer))
        timer._scheduled = True  # type: ignore[attr-defined]  # noqa: SLF001 - cancel() looks at it
        return timer

    def _run_once(self) -> None:
        self.turns += 1
        scheduled = self._scheduled
        if self._timer_cancelled_count:
            self._drop_cancelled_timers()
            scheduled = self._scheduled
        self._move_time()
        now, ready = self.timeline.seconds, self._ready
        while scheduled and scheduled[0][0] <= now:
            timer = heapq.heappop(scheduled)[2]
            timer._scheduled = False  # type: ignore[attr-defined]  # noqa: SLF001 - cancel() looks at it
            ready.append(timer)
        batch = list(ready)
        ready.clear()
        if len(batch) > 1 and self._order is not None:
            self._order.shuffle(batch)
        ran = self.ran
        ran.clear()
        self.calls += len(batch)
        for position, handle in enumerate(batch):
            process = handle._context.get(PROCESS)  # type: ignore[attr-defined]  # noqa: SLF001 - asyncio keeps it there
            if process is not None:
                if process.stopped:
                    process.set_aside.append(handle)
                    continue
                ran[process] = None
            if not handle._cancelled:  # noqa: SLF001 - a call less for each call-back
                handle._run()  # noqa: SLF001 - how BaseEventLoop runs them
                if self._fatal is not None:
                    ready.extendleft(reversed(batch[position + 1 :]))
                    fatal, self._fatal = self._fatal, None
                    raise fatal
        if self.after_turn is not None:
            self.after_turn()

    # Processes

    def suspend(self, process: Process) -> None:
        """As SIGSTOP does: nothing of it runs until `go_on`."""
        process.stopped = not process.ended

    def go_on(self, process: Process) -> None:
        """As SIGCONT does: everything that came due meanwhile is due now."""
        process.stopped = False
        aside, process.set_aside = process.set_aside, []
        self._ready.extend(aside)

    def end(self, process: Process) -> None:
        """Cancels what it has set: its timers never go off, and its tasks end as far as they can."""
        process.ended = True
        for handle in process.set_aside:
            if isinstance(handle, asyncio.TimerHandle):
                handle.cancel()
        self.go_on(process)
        self.ends += 1
        for _, _, timer in list(self._scheduled):
            if timer._context.get(PROCESS) is process:  # type: ignore[attr-defined]  # noqa: SLF001 - as above
                timer.cancel()
        for task in process.tasks:
            if task is not asyncio.current_task(self):
                task.cancel()

    def _drop_cancelled_timers(self) -> None:
        # A heap of thousands of cancelled time-outs would be kept until each is due.
        if self._timer_cancelled_count > max(CANCELLED_TIMERS_MAX, len(self._scheduled) // 2):
            kept = []
            for row in self._scheduled:
                if row[2].cancelled():
                    row[2]._scheduled = False  # type: ignore[attr-defined]  # noqa: SLF001
                else:
                    kept.append(row)
            heapq.heapify(kept)
            self._scheduled = kept
            self._timer_cancelled_count = 0
        while self._scheduled and self._scheduled[0][2].cancelled():
            self._timer_cancelled_count -= 1
            heapq.heappop(self._scheduled)[2]._scheduled = False  # type: ignore[attr-defined]  # noqa: SLF001

    def _move_time(self) -> None:
        if self._ready or self._stopping:
            self._standstill_turns += 1
            if self._standstill_turns > STANDSTILL_TURNS_MAX:
                raise StandstillError(
                    f"{STANDSTILL_TURNS_MAX} turns at {self.timeline.seconds} s; next: {self._ready[0]}"
                )
            return
        if not self._scheduled:
            raise DeadlockError(f"nothing is ready and no timer is set; {self._waiting()}")
        self._standstill_turns = 0
        # A timer set for the past is due now.
        self.timeline.move_to(max(self._scheduled[0][0], self.timeline.seconds))

    def _waiting(self) -> str:
        tasks = sorted(asyncio.all_tasks(self), key=lambda task: task.get_name())
        named = [f"{task.get_name()} in {getattr(task.get_coro(), '__qualname__', '?')}" for task in tasks]
        more = f" and {len(named) - TASKS_NAMED_MAX} more" if len(named) > TASKS_NAMED_MAX else ""
        return f"waiting: {', '.join(named[:TASKS_NAMED_MAX]) or 'no task'}{more}"

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        error = context.get("exception")
        if error is None or isinstance(error, Exception | asyncio.CancelledError):
            super().call_exception_handler(context)
        elif "handle" in context:
            # A simulated crash in a call-back ends the run; asyncio would log it and go on. (In a task it goes to
            # the code that awaits the task; of one that nobody awaits nothing needs to be said.)
            self._fatal = error

    def run_in_executor(  # type: ignore[override]
        self,
        executor: Any,
        func: Callable[..., T],
        *args: Any,
    ) -> asyncio.Future[T]:
        """Runs it on the loop, in its turn: a thread would bring its own order of events."""
        future: asyncio.Future[T] = self.create_future()
        self.call_soon(run_into, future, lambda: func(*args))
        return future

    async def getaddrinfo(self, *_: Any, **__: Any) -> Any:
        raise OSError("names are not looked up in a simulation: use the Network port")

    def _write_to_self(self) -> None:
        """Nothing sleeps that would have to be woken."""

    def _process_events(self, _: Any) -> None:
        raise AssertionError("there is no selector")


def run_into(future: asyncio.Future[T], work: Callable[[], T]) -> None:
    """Runs `work` and settles `future` with it, as an executor does."""
    if future.cancelled():
        return
    try:
        future.set_result(work())
    except Exception as error:
        if isinstance(error, StopIteration):  # futures refuse it
            error = RuntimeError(repr(error))
        future.set_exception(error)
    except BaseException as error:
        future.set_exception(error)
        future.exception()  # it is raised here and now: nobody needs to fetch it as well
        raise


def cancel_all(loop: asyncio.AbstractEventLoop) -> None:
    """Ends every task, so that the loop can be closed without complaints.

    What ends may start something else, as a link does that loses its connection and dials again: that is ended too.
    """
    for _ in range(ENDINGS_MAX):
        tasks = sorted(asyncio.all_tasks(loop), key=lambda task: task.get_name())
        if not tasks:
            return
        for task in tasks:
            task.cancel()
        gathered = cast("asyncio.Future[Any]", asyncio.gather(*tasks, return_exceptions=True))
        loop.run_until_complete(gathered)
