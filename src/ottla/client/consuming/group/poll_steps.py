"""Steps of a rebalance that only a poll may take: one waits at a time, and the next poll takes it.

A step that has begun runs to its end even if the poll that takes it is cancelled; the poll after that waits for it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from ottla.client.errors import WrongConsumerState

Step = Callable[[], Awaitable[None]]


class PollSteps:
    def __init__(self, on_news: Callable[[], None]) -> None:
        #: Ends a poll's wait.
        self._on_news = on_news
        #: What waits for a poll, and the future that ends for its caller when it is done.
        self._waiting: tuple[Step, asyncio.Future[None]] | None = None
        self._running: asyncio.Task[None] | None = None
        #: What the next poll raises: of a step, or of anything else that the caller must hear of.
        self.fault: Exception | None = None

    @property
    def due(self) -> bool:
        return self._waiting is not None or self.fault is not None

    async def in_poll(self, step: Step) -> None:
        """Until a poll has taken the step. What it raises, the poll raises; here it counts as done."""
        assert self._waiting is None, "two rebalances at once"
        done = asyncio.get_running_loop().create_future()
        self._waiting = (step, done)
        self._on_news()
        await done

    async def run(self) -> None:
        """Takes what waits, and what comes to wait because of that."""
        while self._waiting is not None:
            (step, done), self._waiting = self._waiting, None
            await self._perform(step, done)
            self.raise_fault()
            await asyncio.sleep(0)

    async def perform(self, step: Step) -> None:
        await self._perform(step, None)

    async def _perform(self, step: Step, done: asyncio.Future[None] | None) -> None:
        async def whole() -> None:
            try:
                await step()
            except Exception as error:
                self.fault = error
            finally:
                self._running = None
                if done is not None and not done.done():
                    done.set_result(None)

        running = self._running = asyncio.get_running_loop().create_task(whole())
        await asyncio.wait([running])

    async def finish(self, *, within: bool = False) -> None:
        """Until no step is under way. Raises where a step itself calls it, unless it may be `within` one."""
        running = self._running
        if running is None:
            return
        if running is not asyncio.current_task():
            await asyncio.wait([running])
        elif not within:
            raise WrongConsumerState("a call-back of a rebalance must not poll")

    def forget(self) -> None:
        """The caller that waited for a step has gone."""
        self._waiting = None

    def raise_fault(self) -> None:
        fault, self.fault = self.fault, None
        if fault is not None:
            raise fault
