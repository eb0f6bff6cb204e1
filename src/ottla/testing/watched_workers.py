"""Workers that can be waited for: what a broker's threads were given is done before its time moves on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Final, TypeVar

from ottla.ports.workers import Workers

T = TypeVar("T")

#: A flush and what follows from it take milliseconds. Work that takes longer is not waited for.
IDLE_SECONDS_MAX: Final = 1.0
#: Work that brings new work, again and again.
_ROUNDS_MAX: Final = 20


class WatchedWorkers:
    def __init__(self, workers: Workers) -> None:
        self._workers = workers
        self._under_way: set[asyncio.Future[Any]] = set()

    def thread(self, work: Callable[[], T]) -> asyncio.Future[T]:
        return self._watched(self._workers.thread(work))

    def process(self, work: Callable[..., T], *arguments: object) -> asyncio.Future[T]:
        return self._watched(self._workers.process(work, *arguments))

    def check(self, work: Callable[..., T], *arguments: object) -> asyncio.Future[T]:
        return self._watched(self._workers.check(work, *arguments))

    def check_long(self, work: Callable[..., T], *arguments: object) -> asyncio.Future[T]:
        return self._watched(self._workers.check_long(work, *arguments))

    def _watched(self, future: asyncio.Future[T]) -> asyncio.Future[T]:
        self._under_way.add(future)
        future.add_done_callback(self._under_way.discard)
        return future

    async def idle(self, turns: int) -> None:
        """Until nothing is under way, and whatever followed from it has had that many turns of the loop."""
        for _ in range(_ROUNDS_MAX):
            for _ in range(turns):
                await asyncio.sleep(0)
            if not self._under_way:
                return
            _, late = await asyncio.wait(list(self._under_way), timeout=IDLE_SECONDS_MAX)
            if late:
                return

    def close(self) -> None:
        self._workers.close()
