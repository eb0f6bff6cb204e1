"""How far a group has read, as its members write it into the tree: each for the partitions that it owns."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

from ottla.client.zookeeper_groups.persistent import put
from ottla.client.zookeeper_groups.znodes import decode_offset, encode_offset, offset_path
from ottla.coordination.interface import Coordination
from ottla.model import TopicPartition


class TreeOffsets:
    def __init__(self, group: str) -> None:
        self._group = group
        #: What stood there when this member last read or wrote it: the same is not written again.
        self.known: dict[TopicPartition, int | None] = {}

    async def read(self, tree: Coordination, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, int | None]:
        """None where the group has none. Raises DamagedZnode and what a read raises."""
        paths = [offset_path(self._group, *tp) for tp in partitions]
        found = await tree.get_many(paths)
        return {
            tp: None if node is None else decode_offset(path, node[0])
            for tp, path, node in zip(partitions, paths, found, strict=True)
        }

    async def write(self, tree: Coordination, offsets: Mapping[TopicPartition, int]) -> None:
        """Those that have changed. Raises what a write raises; then some may have been written."""
        changed = {tp: offset for tp, offset in offsets.items() if self.known.get(tp) != offset}
        results = await asyncio.gather(
            *(self._write(tree, tp, offset) for tp, offset in changed.items()), return_exceptions=True
        )
        for result in results:
            if isinstance(result, BaseException):
                raise result

    async def _write(self, tree: Coordination, tp: TopicPartition, offset: int) -> None:
        self.known.pop(tp, None)  # until the answer has come nobody knows
        await put(tree, offset_path(self._group, *tp), encode_offset(offset))
        self.known[tp] = offset
