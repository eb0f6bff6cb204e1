"""Work beside the loop, done on the loop: at a later moment, but always at the same one."""

from __future__ import annotations

import asyncio
import pickle
from collections.abc import Callable
from random import Random
from typing import Any, TypeVar

from ottla.ports.memory.loop import VirtualLoop, run_into

T = TypeVar("T")


class MemoryWorkers:
    """Each piece of work takes between `latency_ms` of virtual time, and nothing of it happens before its end."""

    __slots__ = ("_closed", "_loop", "_random", "_waiting", "latency_ms")

    def __init__(self, loop: VirtualLoop, seed: int, latency_ms: tuple[float, float] = (0.0, 0.0)) -> None:
        self._loop = loop
        self._random = Random(seed)
        self._closed = False
        self._waiting: dict[asyncio.Future[Any], asyncio.Handle] = {}
        #: Least and most.
        self.latency_ms = latency_ms

    def thread(self, work: Callable[[], T]) -> asyncio.Future[T]:
        if self._closed:
            raise RuntimeError("the workers are closed")
        future: asyncio.Future[T] = self._loop.create_future()
        least, most = self.latency_ms
        if most > 0:
            delay = self._random.uniform(least, most) / 1_000
            handle: asyncio.Handle = self._loop.call_later(delay, run_into, future, work)
        else:
            handle = self._loop.call_soon(run_into, future, work)
        self._waiting[future] = handle
        future.add_done_callback(self._done)
        return future

    def _done(self, future: asyncio.Future[Any]) -> None:
        self._waiting.pop(future, None)

    def process(self, work: Callable[..., T], *arguments: object) -> asyncio.Future[T]:
        data = pickle.dumps((work, arguments))  # what cannot go to a process cannot go here

        def call() -> T:
            function, values = pickle.loads(data)  # noqa: S301 - our own, of a moment ago
            result: T = pickle.loads(pickle.dumps(function(*values)))  # noqa: S301
            return result

        return self.thread(call)

    def check(self, work: Callable[..., T], *arguments: object) -> asyncio.Future[T]:
        return self.process(work, *arguments)

    def check_long(self, work: Callable[..., T], *arguments: object) -> asyncio.Future[T]:
        return self.process(work, *arguments)

    def close(self) -> None:
        self._closed = True
        for future, handle in list(self._waiting.items()):
            handle.cancel()
            future.cancel()
        self._waiting.clear()
