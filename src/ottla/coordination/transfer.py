"""A tree as JSON: to look at, to keep, and to move a cluster from one provider to another (docs/formats/tree-dump.md).

Moving restores what Kafka's znodes mean, which is paths and data. Versions, zxids and times are in the dump to be read,
but they cannot be given to another tree. Nothing that outlives a process rests on them: a partition's epoch (its
state's version), a broker's epoch (its registration's czxid) and the controller's fence are learned anew at each start,
from the tree that is there then. The one version that means something (how many broker ids were given out) is raised to
what it was. Two kinds of nodes stay where they are: ephemeral ones belong to sessions, and notifications to those who
listen, whose numbers another tree counts anew.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final, NamedTuple, Protocol

from ottla.coordination.errors import CoordinationError, NoNode
from ottla.coordination.interface import NO_DATA, REQUEST_BYTES_MAX, Coordination, Create, Op, SetData, Stat
from ottla.coordination.notifications import CONFIG_CHANGES, ISR_CHANGES, LOG_DIR_EVENTS
from ottla.coordination.paths import check_path, parent_of
from ottla.coordination.sizes import op_size, split
from ottla.coordination.znodes import BROKER_SEQUENCE

FORMAT: Final = 1
#: ZooKeeper keeps its own matters there.
_NOT_OURS: Final = "/zookeeper"
#: Nodes read at once.
_READ_AT_ONCE: Final = 1000
#: How often a counter may have been set; more is damage.
_COUNTER_MAX: Final = 100_000
#: Their children are read by brokers that listen when they come, and by nobody later: a start reads the things
#: themselves.
_NOTIFICATIONS: Final = (
    CONFIG_CHANGES,
    ISR_CHANGES,
    LOG_DIR_EVENTS,
    "/kafka-acl-changes",
    "/kafka-acl-extended-changes",
)


class DamagedDump(CoordinationError):
    """Not what `export_tree` makes."""


class DumpedNode(NamedTuple):
    path: str
    data: bytes
    version: int
    czxid: int
    mzxid: int
    ctime_ms: int
    #: The session of an ephemeral node, else 0.
    ephemeral_owner: int

    @property
    def moves(self) -> bool:
        """Whether it means anything in another tree."""
        return self.ephemeral_owner == 0 and self.path != "/" and self.path.rpartition("/")[0] not in _NOTIFICATIONS


class ReadableTree(Protocol):
    """As much of `Coordination` as a dump needs."""

    async def get_many(self, paths: Sequence[str]) -> list[tuple[bytes, Stat] | None]: ...

    async def children(self, path: str) -> tuple[list[str], Stat]: ...


async def export_tree(coordination: ReadableTree, names: Collection[str] | None = None) -> dict[str, Any]:
    """All that is below these names of the root, or everything, as a value for json.dump: parents before children.

    Not one point in time while others write.
    """
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
                    children, _ = await coordination.children(path)
                except NoNode:
                    continue
                if path == "/":
                    children = [name for name in children if names is None or name in names]
                prefix = "" if path == "/" else path
                waiting += [f"{prefix}/{name}" for name in children if f"{prefix}/{name}" != _NOT_OURS]
    return {"format": FORMAT, "nodes": nodes}


def check_writable(nodes: Mapping[str, DumpedNode]) -> None:
    """Raises DamagedDump where writing them would end in the middle: no tree is left half written for that."""
    for path, node in nodes.items():
        parent = parent_of(path)
        if parent != "/" and parent not in nodes:
            raise DamagedDump(f"the node {path} is there, and {parent} above it is not")
        if op_size(Create(path, node.data)) > REQUEST_BYTES_MAX:
            raise DamagedDump(f"the node {path} has {len(node.data)} bytes, and a request {REQUEST_BYTES_MAX} at most")
        if path == BROKER_SEQUENCE and node.version > _COUNTER_MAX:
            raise DamagedDump(f"the node {path} was set {node.version} times")


async def write_nodes(coordination: Coordination, nodes: Sequence[DumpedNode]) -> None:
    """Parents first. A node that is there with this data stays as it is."""
    there = await coordination.get_many([node.path for node in nodes])
    ops: list[Op] = []
    for node, found in zip(nodes, there, strict=True):
        if found is None:
            ops.append(Create(node.path, node.data))
        elif found[0] != node.data:
            ops.append(SetData(node.path, node.data))
    for piece in split(ops):
        await coordination.multi(piece)
    for node in nodes:
        if node.path == BROKER_SEQUENCE:
            await _raise_version(coordination, node)


def _dumped(path: str, data: bytes, stat: Stat) -> dict[str, Any]:
    node: dict[str, Any] = {"path": path}
    try:
        node["text"] = None if data is NO_DATA else data.decode()
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


def parsed(dump: object) -> list[DumpedNode]:
    """All nodes, those that do not move too. Raises DamagedDump."""
    if not isinstance(dump, dict) or dump.get("format") != FORMAT or not isinstance(dump.get("nodes"), list):
        raise DamagedDump(f"it is not a tree in format {FORMAT}")
    return [_parsed_node(node) for node in dump["nodes"]]


def _parsed_node(node: Any) -> DumpedNode:
    try:
        path = node["path"]
        data = _parsed_text(node["text"]) if "text" in node else base64.b64decode(node["base64"], validate=True)
        check_path(path)
    except (KeyError, TypeError, AttributeError, ValueError, binascii.Error, CoordinationError) as fault:
        raise DamagedDump(f"a node cannot be read: {fault!r}") from fault
    numbers = [node.get(name, 0) for name in ("version", "czxid", "mzxid", "ctime_ms", "ephemeral_owner")]
    if any(type(number) is not int for number in numbers) or not {"version", "ephemeral_owner"} <= node.keys():
        raise DamagedDump(f"the node {path} has no version or owner, or one of its numbers is none")
    return DumpedNode(path, data, *numbers)


def _parsed_text(text: str | None) -> bytes:
    return NO_DATA if text is None else text.encode()


async def _raise_version(coordination: Coordination, node: DumpedNode) -> None:
    _, stat = await coordination.get(node.path)
    missing: Sequence[Op] = [SetData(node.path, node.data)] * (node.version - stat.version)
    for piece in split(missing):
        await coordination.multi(piece)
