"""Producer ids, handed out from blocks that the controller allocates in the coordination tree.

A block is durable before the first id of it is given out, so an id is never given twice, whatever crashes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from ottla.controller.interface import Controller
from ottla.model import BrokerId, ErrorCode

#: Half of this is a long time for a controller that is reached. Where it is not, another broker may know of ids.
WAIT_S: Final = 1.0
#: This broker is registered anew, or about to be, and the controller has not heard of it yet. No client knows these
#: codes: as in Kafka it is told to ask again.
_BETWEEN_BROKERS: Final = frozenset({ErrorCode.STALE_BROKER_EPOCH, ErrorCode.BROKER_ID_NOT_REGISTERED})


class ProducerIds:
    def __init__(self, controller: Controller, broker_id: BrokerId) -> None:
        self._controller = controller
        self._broker_id = broker_id
        self._next = 0
        #: The end of the current block; nothing is left where both are equal.
        self._end = 0
        self._refill = asyncio.Lock()
        #: Of callers that wait for a block.
        self._asking: set[asyncio.Task[None]] = set()

    async def next(self) -> int | ErrorCode:
        """A fresh id, or why none can be had."""
        try:
            async with asyncio.timeout(WAIT_S):
                while self._next >= self._end:
                    async with self._refill:
                        error = await self._allocate() if self._next >= self._end else ErrorCode.NONE
                    if error != ErrorCode.NONE:
                        return error
        except TimeoutError:
            # As in Kafka, where who comes before the block is asked to come again.
            return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        return self._taken()

    async def _allocate(self) -> ErrorCode:
        block = await self._controller.allocate_producer_ids(self._broker_id)
        if block.error == ErrorCode.NONE:
            self._next, self._end = block.first, block.first + block.length
        return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS if block.error in _BETWEEN_BROKERS else block.error

    def ask(self, call: Callable[[int | ErrorCode], None]) -> None:
        """Calls with a fresh id or why none can be had, at once or later."""
        if self._next < self._end:
            call(self._taken())
            return
        task = asyncio.get_running_loop().create_task(self._give(call), name="a producer id")
        self._asking.add(task)
        task.add_done_callback(self._asking.discard)

    async def _give(self, call: Callable[[int | ErrorCode], None]) -> None:
        call(await self.next())

    def _taken(self) -> int:
        taken = self._next
        self._next += 1
        return taken
