"""The partitions that one member owns: an ephemeral node for each, with the name of the thread that reads it.

invariant  what is in `owned` was created in the session that `owned` was made with, and not deleted since
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress

from ottla.client.zookeeper_groups.persistent import make
from ottla.client.zookeeper_groups.znodes import ConsumerThread, owner_path, owners_path
from ottla.coordination.errors import CoordinationError, NodeExists, NoNode
from ottla.coordination.interface import Coordination
from ottla.model import TopicPartition


class Claims:
    def __init__(self, group: str) -> None:
        self._group = group
        self.owned: dict[TopicPartition, ConsumerThread] = {}
        #: Whether they were made is not known: the connection was lost meanwhile.
        self._unsure: set[TopicPartition] = set()
        #: The session that made them.
        self._session = 0

    async def claim(self, tree: Coordination, wanted: Mapping[TopicPartition, ConsumerThread]) -> bool:
        """All of them, or none and False: another member has not let go of one yet."""
        self._begin(tree)
        for topic in {tp.topic for tp in wanted}:
            await make(tree, f"{owners_path(self._group)}/{topic}")
        results = await asyncio.gather(
            *(self._claim(tree, tp, thread) for tp, thread in wanted.items()), return_exceptions=True
        )
        faults = [result for result in results if isinstance(result, BaseException)]
        if all(result is True for result in results):
            return True
        await self.release(tree)
        if faults:
            raise faults[0]
        return False

    async def _claim(self, tree: Coordination, tp: TopicPartition, thread: ConsumerThread) -> bool:
        path, data = owner_path(self._group, *tp), str(thread).encode()
        try:
            await tree.create(path, data, ephemeral=True)
        except NodeExists:
            if not await self._is_own(tree, path):
                return False
        except CoordinationError:
            self._unsure.add(tp)
            raise
        self.owned[tp] = thread
        return True

    @staticmethod
    async def _is_own(tree: Coordination, path: str) -> bool:
        """Made by this session, under a connection that was lost before the answer came."""
        stat = await tree.exists(path)
        return stat is not None and stat.ephemeral_owner == tree.session.id

    async def release(self, tree: Coordination) -> None:
        """Raises CoordinationError, and then owns what is still in `owned`."""
        self._begin(tree)
        for tp in list(self._unsure):
            if await self._is_own(tree, owner_path(self._group, *tp)):
                await self._release(tree, tp)
            self._unsure.discard(tp)
        results = await asyncio.gather(*(self._release(tree, tp) for tp in list(self.owned)), return_exceptions=True)
        for result in results:
            if isinstance(result, BaseException):
                raise result

    async def _release(self, tree: Coordination, tp: TopicPartition) -> None:
        # It is not there where the answer to an earlier try was lost, or somebody has tidied up by hand.
        with suppress(NoNode):
            await tree.delete(owner_path(self._group, *tp))
        self.owned.pop(tp, None)

    def _begin(self, tree: Coordination) -> None:
        """What an earlier session made went with it: at these paths may be another's claims."""
        if self._session != tree.session.id:
            self.lost()
            self._session = tree.session.id

    def lost(self) -> None:
        """With the session: its nodes are gone."""
        self.owned.clear()
        self._unsure.clear()
