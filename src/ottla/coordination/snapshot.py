"""A snapshot: the whole tree at one zxid, laid out as columns so that a start reads it in one pass.

One table of fixed-size rows, parents before children, then all names and all data in a piece each: thousands of nodes
load in milliseconds. docs/formats/coordination-journal.md has the layout.
"""

from __future__ import annotations

import struct
from typing import Final, NamedTuple

from ottla.coordination.codec import NO_DATA_LENGTH
from ottla.coordination.interface import NO_DATA, SessionInfo
from ottla.coordination.paths import name_of, parent_of
from ottla.coordination.tree import TreeNode, ZnodeTree
from ottla.records.checksum import crc32c
from ottla.steps import Steps, at_once, taken

SNAPSHOT_MAGIC: Final = b"OttlaZs2"
#: Magic, CRC-32C of everything behind this field, zxid, the last session's id, sessions, nodes, bytes of names, bytes
#: of data.
_HEADER: Final = struct.Struct(">8sIQQIIQQ")
#: An earlier version did not have the last session's id.
_MAGIC_1: Final = b"OttlaZs1"
_HEADER_1: Final = struct.Struct(">8sIQIIQQ")
_CHECKSUM_END: Final = 12
_SESSION: Final = struct.Struct(">QIB")
#: Parent's row, characters of the name, bytes of data, czxid, mzxid, pzxid, ctime, mtime, version, children ever
#: created, ephemeral owner.
_ROW: Final = struct.Struct(">IIIQQQqqIIQ")
_PARENT: Final = struct.Struct(">I")
#: The rest of it.
_ROW_OF_NODE: Final = struct.Struct(">IIQQQqqIIQ")

#: Each takes two microseconds or three.
_ROWS_A_STEP: Final = 32


class SnapshotFault(Exception):
    """These bytes are not a snapshot."""


class _NodeThen(NamedTuple):
    """A node as it was before it changed."""

    row: bytes
    data: bytes
    has_children: bool


class TreeAsItIs:
    """The tree as it is when this is made, to be encoded while it changes: what changes is kept as it was."""

    def __init__(self, tree: ZnodeTree) -> None:
        self.zxid = tree.zxid
        self._tree = tree
        #: Parents are in front of their children: a node is made behind its parent, which cannot go before it. A
        #: millisecond for two hundred thousand.
        self._paths = list(tree.nodes)
        self._sessions = list(tree.sessions.values())
        self._last_session_id = tree.last_session_id
        self._changed: dict[str, _NodeThen] = {}
        assert tree.before_change is None, "one at a time"
        tree.before_change = self._keep

    def _keep(self, path: str, node: TreeNode) -> None:
        # One that was not there yet is never looked for, nor is one that has been encoded.
        if path not in self._changed:
            self._changed[path] = _node_then(path, node)

    def let_go(self) -> None:
        """The tree's changes concern nobody any more."""
        self._tree.before_change = None

    def encoding(self) -> Steps[bytes]:
        nodes = self._tree.nodes
        rows, names, data = bytearray(), bytearray(), bytearray()
        row_of: dict[str, int] = {}
        count = 0
        for some in taken(self._paths, _ROWS_A_STEP):
            for path in some:
                then = self._changed.pop(path, None) or _node_then(path, nodes[path])
                if then.has_children:
                    row_of[path] = count
                rows += _PARENT.pack(0 if path == "/" else row_of[parent_of(path)])
                rows += then.row
                names += _name(path).encode()
                data += then.data
                count += 1
            yield
        sessions = b"".join(
            _SESSION.pack(session.id, session.timeout_ms, len(session.password)) + session.password
            for session in sorted(self._sessions)
        )
        sizes = len(self._sessions), count, len(names), len(data)
        header = _HEADER.pack(SNAPSHOT_MAGIC, 0, self.zxid, self._last_session_id, *sizes)
        # Each of these takes a millisecond or some for a hundred thousand nodes.
        body = b"".join((header[_CHECKSUM_END:], sessions, rows, names, data))
        yield
        checksum = crc32c(body).to_bytes(4, "big")
        yield
        return b"".join((SNAPSHOT_MAGIC, checksum, body))


def _name(path: str) -> str:
    return "" if path == "/" else name_of(path)


def _node_then(path: str, node: TreeNode) -> _NodeThen:
    row = _ROW_OF_NODE.pack(
        len(_name(path)),
        NO_DATA_LENGTH if node.data is NO_DATA else len(node.data),
        node.czxid,
        node.mzxid,
        node.pzxid,
        node.ctime_ms,
        node.mtime_ms,
        node.version,
        node.created_children,
        node.ephemeral_owner,
    )
    return _NodeThen(row, node.data, bool(node.children))


def encode_snapshot(tree: ZnodeTree) -> bytes:
    now = TreeAsItIs(tree)
    try:
        return at_once(now.encoding())
    finally:
        now.let_go()


def decode_snapshot(buffer: bytes, expected_zxid: int) -> ZnodeTree:
    """The tree at the zxid that the file is named after. Raises SnapshotFault and nothing else."""
    header = _HEADER_1 if buffer.startswith(_MAGIC_1) else _HEADER
    if len(buffer) < header.size:
        raise SnapshotFault(f"{len(buffer)} bytes are too few")
    magic, checksum, zxid, *last_session_id, session_count, node_count, names_size, data_size = header.unpack_from(
        buffer
    )
    if magic not in {SNAPSHOT_MAGIC, _MAGIC_1}:
        raise SnapshotFault("it does not start as a snapshot does")
    if crc32c(memoryview(buffer)[_CHECKSUM_END:]) != checksum:
        raise SnapshotFault("its checksum is wrong")
    if zxid != expected_zxid:
        raise SnapshotFault(f"it is of zxid {zxid}, not {expected_zxid}")
    tree = ZnodeTree()
    tree.zxid = zxid
    try:
        position = _decode_sessions(buffer, header.size, session_count, tree)
        tree.last_session_id = max([*last_session_id, *tree.sessions], default=0)
        rows_end = position + node_count * _ROW.size
        if rows_end + names_size + data_size != len(buffer) or node_count == 0:
            raise SnapshotFault("its parts do not add up to its length")
        names = buffer[rows_end : rows_end + names_size].decode()
        _decode_nodes(buffer[position:rows_end], names, buffer[rows_end + names_size :], tree)
    except (struct.error, UnicodeDecodeError, IndexError) as error:
        raise SnapshotFault(str(error)) from error
    return tree


def _decode_sessions(buffer: bytes, position: int, count: int, tree: ZnodeTree) -> int:
    for _ in range(count):
        session_id, timeout_ms, length = _SESSION.unpack_from(buffer, position)
        position += _SESSION.size
        tree.sessions[session_id] = SessionInfo(session_id, buffer[position : position + length], timeout_ms)
        position += length
    return position


def _decode_nodes(rows: bytes, names: str, all_data: bytes, tree: ZnodeTree) -> None:
    nodes = tree.nodes
    prefixes: list[str] = []
    made: list[TreeNode] = []
    name_at = data_at = 0
    for row in _ROW.iter_unpack(rows):
        parent_row, name_size, data_size, czxid, mzxid, pzxid, ctime_ms, mtime_ms, version, created, owner = row
        name = names[name_at : name_at + name_size]
        name_at += name_size
        if data_size == NO_DATA_LENGTH:
            data: bytes = NO_DATA
        else:
            data = all_data[data_at : data_at + data_size]
            data_at += data_size
        node = TreeNode(data, czxid, ctime_ms, owner)
        node.mzxid = mzxid
        node.pzxid = pzxid
        node.mtime_ms = mtime_ms
        node.version = version
        node.created_children = created
        if not made:
            nodes["/"] = node
            prefixes.append("/")
        else:
            parent = made[parent_row]
            path = prefixes[parent_row] + name
            if parent.children is None:
                parent.children = {name}
            else:
                parent.children.add(name)
            nodes[path] = node
            prefixes.append(path + "/")
            if owner:
                if owner not in tree.sessions:
                    raise SnapshotFault(f"{path} belongs to a session that is not there")
                tree.ephemerals.setdefault(owner, {})[path] = None
        made.append(node)
    if len(nodes) != len(made) or name_at != len(names) or data_at != len(all_data):
        raise SnapshotFault("its names or data do not match its nodes")
