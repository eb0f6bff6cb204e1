"""A snapshot: the whole tree at one zxid, laid out as columns so that a start reads it in one pass.

One table of fixed-size rows, parents before children, then all names and all data in a piece each: thousands of nodes
load in milliseconds. docs/formats/coordination-journal.md has the layout.
"""

from __future__ import annotations

import struct
from typing import Final

from ottla.coordination.interface import SessionInfo
from ottla.coordination.paths import name_of, parent_of
from ottla.coordination.tree import TreeNode, ZnodeTree
from ottla.records.checksum import crc32c
from ottla.steps import Steps, at_once

SNAPSHOT_MAGIC: Final = b"OttlaZs1"
#: Magic, CRC-32C of everything behind this field, zxid, sessions, nodes, bytes of names, bytes of data.
_HEADER: Final = struct.Struct(">8sIQIIQQ")
_CHECKSUM_END: Final = 12
_SESSION: Final = struct.Struct(">QIB")
#: Parent's row, characters of the name, bytes of data, czxid, mzxid, pzxid, ctime, mtime, version, children ever
#: created, ephemeral owner.
_ROW: Final = struct.Struct(">IIIQQQqqIIQ")


#: Each takes two microseconds or three.
_ROWS_A_STEP: Final = 32


class SnapshotFault(Exception):
    """These bytes are not a snapshot."""


def encode_snapshot(tree: ZnodeTree) -> bytes:
    return at_once(encoding_snapshot(tree))


def encoding_snapshot(tree: ZnodeTree) -> Steps[bytes]:
    """The same in steps, between which nobody may write to the tree."""
    rows: list[bytes] = []
    names: list[str] = []
    data: list[bytes] = []
    row_of: dict[str, int] = {}
    # Parents are in front of their children: a node is made behind its parent, which cannot go before it.
    for path, node in tree.nodes.items():
        name = "" if path == "/" else name_of(path)
        parent = 0 if path == "/" else row_of[parent_of(path)]
        if node.children:
            row_of[path] = len(rows)
        rows.append(
            _ROW.pack(
                parent,
                len(name),
                len(node.data),
                node.czxid,
                node.mzxid,
                node.pzxid,
                node.ctime_ms,
                node.mtime_ms,
                node.version,
                node.created_children,
                node.ephemeral_owner,
            )
        )
        names.append(name)
        data.append(node.data)
        if len(rows) % _ROWS_A_STEP == 0:
            yield
    sessions = b"".join(
        _SESSION.pack(session.id, session.timeout_ms, len(session.password)) + session.password
        for _, session in sorted(tree.sessions.items())
    )
    # Each piece takes a millisecond or some for a hundred thousand nodes.
    all_rows = b"".join(rows)
    yield
    all_names = "".join(names).encode()
    yield
    all_data = b"".join(data)
    yield
    header = _HEADER.pack(SNAPSHOT_MAGIC, 0, tree.zxid, len(tree.sessions), len(rows), len(all_names), len(all_data))
    body = b"".join((header[_CHECKSUM_END:], sessions, all_rows, all_names, all_data))
    yield
    checksum = crc32c(body).to_bytes(4, "big")
    yield
    return b"".join((SNAPSHOT_MAGIC, checksum, body))


def decode_snapshot(buffer: bytes, expected_zxid: int) -> ZnodeTree:
    """The tree at the zxid that the file is named after. Raises SnapshotFault and nothing else."""
    if len(buffer) < _HEADER.size:
        raise SnapshotFault(f"{len(buffer)} bytes are too few")
    magic, checksum, zxid, session_count, node_count, names_size, data_size = _HEADER.unpack_from(buffer)
    if magic != SNAPSHOT_MAGIC:
        raise SnapshotFault("it does not start as a snapshot does")
    if crc32c(memoryview(buffer)[_CHECKSUM_END:]) != checksum:
        raise SnapshotFault("its checksum is wrong")
    if zxid != expected_zxid:
        raise SnapshotFault(f"it is of zxid {zxid}, not {expected_zxid}")
    tree = ZnodeTree()
    tree.zxid = zxid
    try:
        position = _decode_sessions(buffer, session_count, tree)
        rows_end = position + node_count * _ROW.size
        if rows_end + names_size + data_size != len(buffer) or node_count == 0:
            raise SnapshotFault("its parts do not add up to its length")
        names = buffer[rows_end : rows_end + names_size].decode()
        _decode_nodes(buffer[position:rows_end], names, buffer[rows_end + names_size :], tree)
    except (struct.error, UnicodeDecodeError, IndexError) as error:
        raise SnapshotFault(str(error)) from error
    return tree


def _decode_sessions(buffer: bytes, count: int, tree: ZnodeTree) -> int:
    position = _HEADER.size
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
