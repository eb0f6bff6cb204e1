"""A world for a test to run in, whichever kind it is."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from ottla.ports import Ports
from ottla.ports.memory.loop import cancel_all

T = TypeVar("T")

#: Far more than anything here takes; only a test that hangs gets there.
PATIENCE_SECONDS = 60


class World:
    """One set of ports, a folder on its disk, and the loop that its coroutines run on."""

    def __init__(self, kind: str, ports: Ports, folder: str, loop: asyncio.AbstractEventLoop) -> None:
        self.kind = kind
        self.ports = ports
        self.folder = folder
        self.loop = loop
        #: Outgoing connections, to be ended with the test.
        self.transports: list[asyncio.Transport] = []
        #: What the loop was told of: tests that expect it take it out.
        self.complaints: list[BaseException | None] = []
        loop.set_exception_handler(lambda _, context: self.complaints.append(context.get("exception")))

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self.loop.run_until_complete(asyncio.wait_for(work, PATIENCE_SECONDS))

    def close(self) -> None:
        for transport in self.transports:
            if not transport.is_closing():
                transport.abort()
        self.ports.network.close()
        self.ports.workers.close()
        cancel_all(self.loop)
        self.loop.run_until_complete(asyncio.sleep(0))  # in which the transports let go of their sockets
        self.loop.close()
        assert self.complaints == []


async def until(condition: Callable[[], object]) -> None:
    """Waits for what must come about."""
    while not condition():  # noqa: ASYNC110 - the condition is any expression of a test
        await asyncio.sleep(0.001)
