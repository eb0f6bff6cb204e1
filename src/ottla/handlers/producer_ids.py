"""Producer ids, handed out from blocks that the controller allocates in the coordination tree.

A block is durable before the first id of it is given out, so an id is never given twice, whatever crashes.
"""

from __future__ import annotations

import asyncio

from ottla.controller.interface import Controller


class ProducerIds:
    def __init__(self, controller: Controller) -> None:
        self._controller = controller
        self._next = 0
        #: The end of the current block; nothing is left where both are equal.
        self._end = 0
        self._refill = asyncio.Lock()

    async def next(self) -> int:
        while self._next >= self._end:
            async with self._refill:
                if self._next >= self._end:
                    block = await self._controller.allocate_producer_ids()
                    self._next, self._end = block.start, block.start + block.length
        taken = self._next
        self._next += 1
        return taken
