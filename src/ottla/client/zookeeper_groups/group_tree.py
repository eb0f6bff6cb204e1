"""A group of Kafka 0.8 as it stands in the tree: to be taken over, or to be looked at."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from ottla.client.zookeeper_groups.znodes import (
    CONSUMERS,
    consumer_of_owner,
    decode_offset,
    group_path,
    ids_path,
    offset_path,
    offsets_path,
    owner_path,
    owners_path,
)
from ottla.coordination.errors import NoNode
from ottla.coordination.interface import Coordination
from ottla.coordination.znode_json import DamagedZnode
from ottla.coordination.zookeeper.addresses import Chroot
from ottla.model import TopicPartition

#: A partition's number is a whole number of 32 bits.
_PARTITION_MAX: Final = 2**31 - 1


class OldGroup(NamedTuple):
    name: str
    #: Consumers that are registered, or that own a partition.
    members: tuple[str, ...]
    owners: Mapping[TopicPartition, str]
    offsets: Mapping[TopicPartition, int]
    #: Nodes below `owners` and `offsets` that are not what should stand there, each with the reason.
    damaged: tuple[str, ...]


class GroupTree:
    """Reads only. The chroot goes before each path here, so that a session need not have it."""

    def __init__(self, tree: Coordination, chroot: Chroot) -> None:
        self._tree = tree
        self._chroot = chroot

    async def names(self) -> list[str]:
        return await self._children(CONSUMERS)

    async def group(self, name: str) -> OldGroup | None:
        """None where there is no such group."""
        if await self._tree.exists(self._chroot.on_server(group_path(name))) is None:
            return None
        members = dict.fromkeys(await self._children(ids_path(name)))
        damaged: list[str] = []
        owned = await self._partitions(owners_path(name), damaged)
        placed = await self._partitions(offsets_path(name), damaged)
        owners: dict[TopicPartition, str] = {}
        for tp, data in zip(owned, await self._data(owner_path(name, *tp) for tp in owned), strict=True):
            if data is not None:
                owners[tp] = consumer_of_owner(data)
        offsets: dict[TopicPartition, int] = {}
        for tp, data in zip(placed, await self._data(offset_path(name, *tp) for tp in placed), strict=True):
            if data is None:
                continue
            try:
                offsets[tp] = decode_offset(offset_path(name, *tp), data)
            except DamagedZnode as fault:
                damaged.append(str(fault))
        members |= dict.fromkeys(owners.values())
        return OldGroup(name, tuple(members), owners, offsets, tuple(damaged))

    async def _partitions(self, path: str, damaged: list[str]) -> list[TopicPartition]:
        found = []
        for topic in await self._children(path):
            for number in await self._children(f"{path}/{topic}"):
                if number.isascii() and number.isdigit() and len(number) <= 10 and int(number) <= _PARTITION_MAX:
                    found.append(TopicPartition(topic, int(number)))
                else:
                    damaged.append(f"the znode {path}/{topic}/{number} is damaged: {number!r} is no partition")
        return sorted(found)

    async def _children(self, path: str) -> list[str]:
        try:
            return (await self._tree.children(self._chroot.on_server(path)))[0]
        except NoNode:
            return []

    async def _data(self, paths: Iterable[str]) -> list[bytes | None]:
        read = await self._tree.get_many([self._chroot.on_server(path) for path in paths])
        return [None if one is None else one[0] for one in read]
