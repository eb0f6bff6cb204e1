"""Callers that wait for room in `buffer.memory`, in the order in which they came."""

from __future__ import annotations

import asyncio
from collections import deque

from ottla.client.errors import BufferExhausted
from ottla.client.producing.accumulator import Accumulator
from ottla.client.producing.sender import Sender


class WaitingForRoom:
    def __init__(self, queues: Accumulator, max_block_ms: int) -> None:
        self._queues = queues
        self._max_block_ms = max_block_ms
        #: The longest waiting first.
        self._waiting: deque[asyncio.Future[None]] = deque()
        self.closed = False

    def __bool__(self) -> bool:
        return bool(self._waiting)

    async def wait(self, cost: int, sender: Sender) -> None:
        """Until a record that costs so much has room, or nobody will make any."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(future)
        self._queues.pressed = True
        self._queues.hurry()
        sender.wake()
        try:
            async with asyncio.timeout(self._max_block_ms / 1000):
                while not self._queues.has_room(cost) or self._waiting[0] is not future:
                    await future
                    if self.closed:
                        return
                    if sender.fault is not None:
                        raise sender.fault
                    place = self._waiting.index(future)
                    future = self._waiting[place] = asyncio.get_running_loop().create_future()
        except TimeoutError:
            raise BufferExhausted(
                f"buffer.memory stayed full for max.block.ms, {self._max_block_ms}: records come faster than "
                "brokers take them, or no broker does"
            ) from None
        finally:
            if future in self._waiting:
                self._waiting.remove(future)
            self._queues.pressed = bool(self._waiting)
            self.wake_first()

    def wake_first(self) -> None:
        """There may be room: the one whose turn it is looks."""
        if self._waiting and not self._waiting[0].done():
            self._waiting[0].set_result(None)

    def close(self) -> None:
        """Nobody waits any more."""
        self.closed = True
        for future in self._waiting:
            if not future.done():
                future.set_result(None)
