"""The controller's event queue: one consumer, so that each decision stands on what the last one left.

A turn may take seconds: ten thousand folders on a slow disk. Where nothing of what it decided is half done, it lets
others pass that change nothing but what they make themselves (`let_pass`): these run whole, and then it goes on.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any, Final, NamedTuple, TypeVar

from ottla.controller.refusal import Refusal
from ottla.model import ErrorCode
from ottla.steps import is_stray

#: Requests that wait for their turn. An admin client sends a handful; a flood is answered that it may try again later.
EVENTS_MAX: Final = 1_000
#: That pass a long turn at one time, so that a stream of them holds it up for a while and not for ever.
PASSING_MAX: Final = 16

T = TypeVar("T")


class _QueuedEvent(NamedTuple):
    work: Callable[[], Awaitable[Any]]
    #: In monotonic milliseconds; None waits as long as it takes.
    deadline_ms: int | None
    answer: asyncio.Future[Any]
    may_pass: bool


class EventQueue:
    def __init__(self, now_ms: Callable[[], int]) -> None:
        self._now_ms = now_ms
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
        """Lets the event that is running finish, and turns the waiting ones away."""
        consumer, self._consumer = self._consumer, None
        if consumer is None:
            return
        for event in self._events:
            event.answer.set_exception(_stopping())
        self._events.clear()
        if self._running is not None:
            await asyncio.wait([self._running.answer])
        consumer.cancel()
        await asyncio.wait([consumer])

    async def run(
        self, work: Callable[[], Awaitable[T]], timeout_ms: int | None = None, *, may_pass: bool = False
    ) -> T:
        """What `work` returns or raises when its turn has come. Raises Refusal when it does not come.

        With `may_pass` its turn may come in the middle of a long one. It must not let others pass itself.
        """
        if self._consumer is None or self._consumer.done():
            raise Refusal(ErrorCode.NOT_CONTROLLER, "This is not the correct controller for this cluster.")
        if len(self._events) >= EVENTS_MAX:
            raise Refusal(ErrorCode.REQUEST_TIMED_OUT, f"{EVENTS_MAX} requests wait for the controller already.")
        deadline_ms = None if timeout_ms is None else self._now_ms() + timeout_ms
        answer: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        # Where nobody waits any more the outcome is not missed.
        answer.add_done_callback(lambda done: done.cancelled() or done.exception())
        self._events.append(_QueuedEvent(work, deadline_ms, answer, may_pass))
        self._arrived.set()
        # A client that goes away does not take back what has begun: half a creation would be worse.
        return await asyncio.shield(answer)

    async def _consume(self) -> None:
        while True:
            while not self._events:
                self._arrived.clear()
                await self._arrived.wait()
            event = self._running = self._events.popleft()
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

    async def let_pass(self, as_long_as: Callable[[], bool]) -> None:
        """To be called from the turn that runs: does some that wait and may pass, in their order."""
        for event in [event for event in self._events if event.may_pass][:PASSING_MAX]:
            if not as_long_as():
                return
            if event in self._events:  # unless all were turned away meanwhile
                self._events.remove(event)
                await self._do(event)


def _stopping() -> Refusal:
    return Refusal(ErrorCode.NOT_CONTROLLER, "The controller is stopping.")
