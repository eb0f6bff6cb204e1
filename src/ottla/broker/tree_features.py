"""The cluster's feature levels, as every broker reads them from `/feature` and hears of them by a watch.

A level that this broker does not know is refused at a start; later the broker keeps the level that it has, and says so.
"""

from __future__ import annotations

from ottla import logs
from ottla.broker.tree_news import TreeNews
from ottla.coordination.errors import NoNode
from ottla.coordination.interface import Coordination
from ottla.coordination.znode_json import DamagedZnode
from ottla.coordination.znodes import FEATURE, decode_features
from ottla.metadata.features import FinalizedFeatures, UnknownLevel, transaction_level

log_event = logs.logger("server")


class TreeFeatures:
    """What one session of a broker reads of `/feature`."""

    def __init__(self, coordination: Coordination, features: FinalizedFeatures) -> None:
        self._coordination = coordination
        self._features = features
        self._news = TreeNews("feature levels", self._read_again)

    async def begin(self) -> None:
        """Reads them, and watches from then on. Raises CoordinationError: DamagedZnode."""
        await self._read()

    def close(self) -> None:
        self._news.close()

    async def _read(self) -> None:
        try:
            data, stat = await self._coordination.get(FEATURE, self._news.changed)
        except NoNode:
            # Somebody has removed it: this broker hears of it when it is made again.
            if await self._coordination.exists(FEATURE, self._news.changed) is not None:
                self._news.changed()
            return
        try:
            level = transaction_level(decode_features(FEATURE, data))
        except UnknownLevel as fault:
            raise DamagedZnode(FEATURE, fault) from fault
        known = self._features
        if level != known.transaction_version:
            log_event.info("a feature level has changed", feature="transaction.version", level=level)
        known.transaction_version, known.epoch = level, stat.version

    async def _read_again(self) -> None:
        try:
            await self._read()
        except DamagedZnode as fault:
            # The watch is set: the next change is heard.
            log_event.error("feature levels are left as they were", fault=str(fault))
