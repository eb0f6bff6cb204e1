"""A tree as JSON: to look at, to keep, and to move a cluster from one provider to another.

Moving restores what Kafka's znodes mean, which is paths and data. Versions, zxids and times are in the dump to be read,
but they cannot be given to another tree; the one version that means something (how many broker ids were given out) is
raised to what it was. Ephemeral nodes belong to sessions, and stay where these are.

Nothing calls it yet: it is for a verb that moves a cluster, as soon as there is a second provider to move to.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from typing import Any, Final

from ottla.coordination.errors import CoordinationError, NoNode
from ottla.coordination.interface import Coordination, Create, Op, SetData, Stat
from ottla.coordination.paths import check_path
from ottla.coordination.sizes import split
from ottla.coordination.znodes import BROKER_SEQUENCE

FORMAT: Final = 1
#: ZooKeeper keeps its own matters there.
_NOT_OURS: Final = "/zookeeper"
#: Nodes read at once.
_READ_AT_ONCE: Final = 1000
#: How often a counter may have been set; more is damage.
_COUNTER_MAX: Final = 100_000


class DamagedDump(CoordinationError):
    """Not what `export_tree` makes."""


async def export_tree(coordination: Coordination) -> dict[str, Any]:
    """Everything, as a value for json.dump: parents before children. Not one point in time while others write."""
    nodes: list[dict[str, Any]] = []
    waiting = ["/"]
    while waiting:
        level, waiting = waiting[:_READ_AT_ONCE], waiting[_READ_AT_ONCE:]
        for path, found in zip(level, await coordination.get_many(level), strict=True):
            if found is None:
                continue
            data, stat = found
            nodes.append(_dumped(path, data, stat))
            if stat.num_children:
                try:
                    names, _ = await coordination.children(path)
                except NoNode:
                    continue
                prefix = "" if path == "/" else path
                waiting += [f"{prefix}/{name}" for name in names if f"{prefix}/{name}" != _NOT_OURS]
    return {"format": FORMAT, "nodes": nodes}


async def import_tree(coordination: Coordination, dump: object) -> int:
    """Creates the dump's lasting nodes, or sets the data of those that are there. Returns how many they are.

    Raises DamagedDump.
    """
    nodes = _parsed(dump)
    paths = [path for path, _, _ in nodes]
    there = await coordination.get_many(paths)
    ops: list[Op] = []
    for (path, data, _), found in zip(nodes, there, strict=True):
        if found is None:
            ops.append(Create(path, data))
        elif found[0] != data:
            ops.append(SetData(path, data))
    for piece in split(ops):
        await coordination.multi(piece)
    for path, data, version in nodes:
        if path == BROKER_SEQUENCE:
            await _raise_version(coordination, path, data, version)
    return len(nodes)


def _dumped(path: str, data: bytes, stat: Stat) -> dict[str, Any]:
    node: dict[str, Any] = {"path": path}
    try:
        node["text"] = data.decode()
    except UnicodeDecodeError:
        node["base64"] = base64.b64encode(data).decode()
    return node | {
        "version": stat.version,
        "cversion": stat.cversion,
        "ephemeral_owner": stat.ephemeral_owner,
        "czxid": stat.czxid,
        "mzxid": stat.mzxid,
        "pzxid": stat.pzxid,
        "ctime_ms": stat.ctime_ms,
        "mtime_ms": stat.mtime_ms,
    }


def _parsed(dump: object) -> list[tuple[str, bytes, int]]:
    """(path, data, version) of the nodes that last."""
    if not isinstance(dump, dict) or dump.get("format") != FORMAT or not isinstance(dump.get("nodes"), list):
        raise DamagedDump(f"it is not a tree in format {FORMAT}")
    nodes: list[tuple[str, bytes, int]] = []
    for node in dump["nodes"]:
        try:
            path, version, owner = node["path"], node["version"], node["ephemeral_owner"]
            data = node["text"].encode() if "text" in node else base64.b64decode(node["base64"], validate=True)
            check_path(path)
        except (KeyError, TypeError, AttributeError, ValueError, binascii.Error, CoordinationError) as fault:
            raise DamagedDump(f"a node cannot be read: {fault!r}") from fault
        if not isinstance(version, int) or not isinstance(owner, int):
            raise DamagedDump(f"the node {path} has no version or owner")
        if owner == 0 and path != "/":
            nodes.append((path, data, version))
    return nodes


async def _raise_version(coordination: Coordination, path: str, data: bytes, version: int) -> None:
    if version > _COUNTER_MAX:
        raise DamagedDump(f"the node {path} was set {version} times")
    _, stat = await coordination.get(path)
    missing: Sequence[Op] = [SetData(path, data)] * (version - stat.version)
    for piece in split(missing):
        await coordination.multi(piece)
