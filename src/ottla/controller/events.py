"""The controller's event queue: one consumer, so that each decision stands on what the last one left."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any, Final, NamedTuple, TypeVar

from ottla.controller.deciding.refusal import Refusal
from ottla.model import ErrorCode
from ottla.steps import is_stray

#: Requests that wait for their turn. An admin client sends a handful; a flood is answered that it may try again later.
EVENTS_MAX: Final = 1_000
#: For the turn that a stop finds under way. One that takes longer waits for a tree that is away: its session is not
#: known to be over before that answers, and without this the broker never stopped.
LAST_TURN_S_MAX: Final = 10.0

T = TypeVar("T")


class _QueuedEvent(NamedTuple):
    work: Callable[[], Awaitable[Any]]
    #: In monotonic milliseconds; None waits as long as it takes.
    deadline_ms: int | None
    answer: asyncio.Future[Any]
    #: When it came.
    since_ms: int


class EventQueue:
    def __init__(self, now_ms: Callable[[], int], waited: Callable[[int], None] = lambda milliseconds: None) -> None:
        """`waited` is called with each event's time until its turn came."""
        self._now_ms = now_ms
        self._waited = waited
        self._events: deque[_QueuedEvent] = deque()
        self._arrived = asyncio.Event()
        self._consumer: asyncio.Task[None] | None = None
        self._running: _QueuedEvent | None = None

    def __len__(self) -> int:
        """How many wait."""
        return len(self._events)

    def start(self) -> None:
        assert self._consumer is None
        self._consumer = asyncio.get_running_loop().create_task(self._consume())

    async def stop(self) -> None:
        """Lets the event that is running finish, if it does, and turns the waiting ones away."""
        consumer, self._consumer = self._consumer, None
        if consumer is None:
            return
        for event in self._events:
            event.answer.set_exception(_stopping())
        self._events.clear()
        if self._running is not None:
            await asyncio.wait([self._running.answer], timeout=LAST_TURN_S_MAX)
        consumer.cancel()
        await asyncio.wait([consumer])

    async def run(self, work: Callable[[], Awaitable[T]], timeout_ms: int | None = None) -> T:
        """What `work` returns or raises when its turn has come. Raises Refusal when it does not come."""
        if len(self._events) >= EVENTS_MAX:
            raise Refusal(ErrorCode.REQUEST_TIMED_OUT, f"{EVENTS_MAX} requests wait for the controller already.")
        # A client that goes away does not take back what has begun: half a creation would be worse.
        return await asyncio.shield(self.add(work, timeout_ms))

    def add(self, work: Callable[[], Awaitable[T]], timeout_ms: int | None = None) -> asyncio.Future[T]:
        """As `run`, of an event of the controller's own: there is one of each kind at most, beside those who ask."""
        if self._consumer is None or self._consumer.done():
            raise Refusal(ErrorCode.NOT_CONTROLLER, "This is not the correct controller for this cluster.")
        now_ms = self._now_ms()
        deadline_ms = None if timeout_ms is None else now_ms + timeout_ms
        answer: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        # Where nobody waits any more the outcome is not missed.
        answer.add_done_callback(lambda done: done.cancelled() or done.exception())
        self._events.append(_QueuedEvent(work, deadline_ms, answer, now_ms))
        self._arrived.set()
        return answer

    async def _consume(self) -> None:
        while True:
            while not self._events:
                self._arrived.clear()
                await self._arrived.wait()
            event = self._running = self._events.popleft()
            self._waited(self._now_ms() - event.since_ms)
            try:
                await self._do(event)
            finally:
                self._running = None

    async def _do(self, event: _QueuedEvent) -> None:
        if event.deadline_ms is not None and self._now_ms() >= event.deadline_ms:
            event.answer.set_exception(Refusal(ErrorCode.REQUEST_TIMED_OUT, "The request's turn came too late."))
            return
        try:
            event.answer.set_result(await event.work())
        except Exception as error:
            event.answer.set_exception(error)
        except BaseException as error:
            # A caller that waits is not left waiting.
            event.answer.set_exception(_stopping())
            if not is_stray(error):
                raise  # the process ends, or the task


def _stopping() -> Refusal:
    return Refusal(ErrorCode.NOT_CONTROLLER, "The controller is stopping.")
