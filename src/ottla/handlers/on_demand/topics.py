"""Topics that are created because a client asked for their metadata.

As in Kafka the client is not kept waiting: it learns that the topic does not exist, which was true when it asked, and
finds it when it asks again. A client that only looks whether a topic exists gets the truth, and a request that names a
thousand made-up topics is answered at once.
"""

from __future__ import annotations

import asyncio
from itertools import islice
from typing import Final

from ottla import logs
from ottla.config.live import LiveConfig
from ottla.controller.interface import Controller, TopicToCreate
from ottla.handlers.on_demand.internal_topics import new_internal_topic
from ottla.model import ErrorCode

log_event = logs.logger("handlers")

#: Names that wait or are being created. More are not taken: their clients ask again.
WAITING_MAX: Final = 1_000
#: Of one request to the controller, so that others have their turn there.
AT_ONCE_MAX: Final = 50
_TIMEOUT_MS: Final = 30_000


class TopicsOnDemand:
    def __init__(self, controller: Controller, live: LiveConfig) -> None:
        self._controller = controller
        self._live = live
        #: In the order in which they were asked for. len <= WAITING_MAX
        self._waiting: dict[str, None] = {}
        self._task: asyncio.Task[None] | None = None

    def __len__(self) -> int:
        return len(self._waiting)

    def ask(self, name: str) -> None:
        """Has a topic of a good name created, unless it is on its way."""
        if name in self._waiting or len(self._waiting) >= WAITING_MAX:
            return
        self._waiting[name] = None
        self._begin()

    def _begin(self) -> None:
        if self._task is None or self._task.done():
            self._task = asyncio.ensure_future(self._create_all())
            self._task.add_done_callback(self._ended)

    async def _create_all(self) -> None:
        while self._waiting:
            names = list(islice(self._waiting, AT_ONCE_MAX))
            try:
                results = await self._controller.create_topics(
                    [self._topic(name) for name in names], timeout_ms=_TIMEOUT_MS
                )
            finally:
                for name in names:
                    del self._waiting[name]
            for result in results:
                if result.error not in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS):
                    reason = result.message or result.error.name
                    log_event.warning_limited("a topic could not be created on demand", topic=result.name, why=reason)

    def _topic(self, name: str) -> TopicToCreate:
        return new_internal_topic(name, self._live.current) or TopicToCreate(name)

    def _ended(self, task: asyncio.Task[None]) -> None:
        if task.cancelled():
            # A client that still wants one asks again.
            self._waiting.clear()
        elif task.exception() is not None:
            log_event.error("creating topics on demand failed", fault=repr(task.exception()))
            if self._waiting:
                self._begin()
