"""Standing for controller: a broker that is not the controller watches the one that is, and tries when it has gone.

Each try is a controller of its own: one that lost its place stays lost, with everything that was in its queue.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from ottla import logs
from ottla.controller.controller import ClusterController
from ottla.controller.electing.controllership import ControllerElsewhere
from ottla.coordination.errors import CoordinationError, SessionClosed, SessionExpired
from ottla.coordination.providers import BrokersTree
from ottla.coordination.znodes import CONTROLLER

log_event = logs.logger("server")

_AGAIN_S: Final = 0.5


class Candidacy:
    def __init__(self, tree: BrokersTree, make: Callable[[BrokersTree], ClusterController]) -> None:
        self._tree = tree
        self._make = make
        #: The present try.
        self.controller = make(tree)
        #: Done when this broker has first become the controller, and has taken over; or could not.
        self.settled: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._task: asyncio.Task[None] | None = None

    @property
    def is_taking_over(self) -> bool:
        return self.controller.active and not self.settled.done()

    def stand(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def end(self) -> None:
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.wait([task])
        await self.controller.stop()

    async def _run(self) -> None:
        while True:
            changed = asyncio.Event()
            try:
                if await self._tree.exists(CONTROLLER, lambda _, changed=changed: changed.set()) is None:  # type: ignore[misc]
                    await self._try()
            except (SessionExpired, SessionClosed):
                return
            except ControllerElsewhere:
                continue
            except Exception as fault:
                if not self.settled.done():
                    self.settled.set_exception(fault)
                    self.settled.exception()
                log_event.error("this broker could not become the controller", fault=repr(fault))
                if not isinstance(fault, CoordinationError):
                    return
                await asyncio.sleep(_AGAIN_S)
                continue
            await changed.wait()

    async def _try(self) -> None:
        if self.controller.lost is not None:
            await self.controller.stop()
            self.controller = self._make(self._tree)
        await self.controller.start()
        if not self.settled.done():
            self.settled.set_result(None)
