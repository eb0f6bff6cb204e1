"""The cluster's feature levels, as every broker reads them from `/feature` and hears of them by a watch.

A level that this broker does not know is refused at a start; later the broker keeps the level that it has, and says so.
"""

from __future__ import annotations

import asyncio
from typing import Final

from ottla import logs
from ottla.coordination.errors import CoordinationError, NoNode
from ottla.coordination.interface import Coordination, WatchEvent
from ottla.coordination.znode_json import DamagedZnode
from ottla.coordination.znodes import FEATURE, decode_features
from ottla.metadata.features import FinalizedFeatures, UnknownLevel, transaction_level
from ottla.steps import is_stray

log_event = logs.logger("server")

#: After a fault of the tree that does not end the session.
_AGAIN_S: Final = 1.0


class TreeFeatures:
    """What one session of a broker reads of `/feature`."""

    def __init__(self, coordination: Coordination, features: FinalizedFeatures) -> None:
        self._coordination = coordination
        self._features = features
        self._task: asyncio.Task[None] | None = None
        self._again: asyncio.TimerHandle | None = None
        #: Whether the node has changed since the task began to read it.
        self._has_news = False
        self._closed = False

    async def begin(self) -> None:
        """Reads them, and watches from then on. Raises CoordinationError: DamagedZnode."""
        await self._read()

    def close(self) -> None:
        self._closed = True
        if self._task is not None:
            self._task.cancel()
        if self._again is not None:
            self._again.cancel()

    async def _read(self) -> None:
        try:
            data, stat = await self._coordination.get(FEATURE, self._changed)
        except NoNode:
            # Somebody has removed it: this broker hears of it when it is made again.
            if await self._coordination.exists(FEATURE, self._changed) is not None:
                self._has_news = True
                self._look()
            return
        try:
            level = transaction_level(decode_features(FEATURE, data))
        except UnknownLevel as fault:
            raise DamagedZnode(FEATURE, fault) from fault
        known = self._features
        if level != known.transaction_version:
            log_event.info("a feature level has changed", feature="transaction.version", level=level)
        known.transaction_version, known.epoch = level, stat.version

    def _changed(self, _: WatchEvent) -> None:
        self._has_news = True
        self._look()

    def _look(self) -> None:
        self._again = None
        if self._task is None and not self._closed:
            self._task = asyncio.get_running_loop().create_task(self._read_news())

    async def _read_news(self) -> None:
        try:
            while self._has_news and not self._closed:
                self._has_news = False
                await self._read()
        except DamagedZnode as fault:
            # The watch is set: the next change is heard.
            log_event.error("feature levels are left as they were", fault=str(fault))
        except CoordinationError as fault:
            # With a session that is over another one begins, and reads them.
            log_event.warning_limited("feature levels could not be read yet", fault=str(fault))
            self._try_again()
        except asyncio.CancelledError as fault:
            if not is_stray(fault):
                raise
            self._try_again()
        finally:
            self._task = None
            if self._has_news and self._again is None:
                self._look()

    def _try_again(self) -> None:
        self._has_news = True
        if not self._closed:
            self._again = asyncio.get_running_loop().call_later(_AGAIN_S, self._look)
