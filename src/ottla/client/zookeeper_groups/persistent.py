"""Nodes that stay, made with all that has to be above them."""

from __future__ import annotations

from contextlib import suppress

from ottla.coordination.errors import NodeExists, NoNode
from ottla.coordination.interface import Coordination


async def make(tree: Coordination, path: str) -> None:
    """Does nothing where it is there."""
    if await tree.exists(path) is not None:
        return
    names = path.split("/")
    for count in range(2, len(names) + 1):
        with suppress(NodeExists):
            await tree.create("/".join(names[:count]))


async def put(tree: Coordination, path: str, data: bytes) -> None:
    try:
        await tree.set(path, data)
    except NoNode:
        await make(tree, path.rpartition("/")[0])
        try:
            await tree.create(path, data)
        except NodeExists:
            await tree.set(path, data)
