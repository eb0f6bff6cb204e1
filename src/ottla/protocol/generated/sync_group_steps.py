"""Hands out the assignment that a classic group's leader computed.

In steps; made from schemas/sync_group.schema by `python -m ottla.protocol.compile`.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct
from sys import getsizeof
from typing import Any

from ottla.protocol.generated.sync_group import (
    SyncGroupRequest,
    SyncGroupRequestAssignment,
)
from ottla.protocol.message import Message
from ottla.protocol.primitives import (
    Buffer,
    NO_TAGS,
    read_bytes,
    read_compact_bytes,
    read_compact_count,
    read_compact_nullable_string,
    read_compact_string,
    read_count,
    read_nullable_string,
    read_string,
    read_tags,
)
from ottla.protocol.stepping import (
    DecodingAllowance,
)
from ottla.steps import Steps

_unpack_i = Struct(">i").unpack_from


def _read_sync_group_request_assignment_held(buf: Buffer, pos: int, limit: int, version: int, allowance: DecodingAllowance) -> tuple[SyncGroupRequestAssignment, int]:
    m = object.__new__(SyncGroupRequestAssignment)
    if version >= 4:
        m.member_id, pos = read_compact_string(buf, pos, limit)
        allowance.left -= getsizeof(m.member_id)
        m.assignment, pos = read_compact_bytes(buf, pos, limit)
        allowance.left -= getsizeof(m.assignment)
    else:
        m.member_id, pos = read_string(buf, pos, limit)
        allowance.left -= getsizeof(m.member_id)
        m.assignment, pos = read_bytes(buf, pos, limit)
        allowance.left -= getsizeof(m.assignment)
    if version >= 4:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            m.unknown_tags, pos = read_tags(buf, pos, limit)
            allowance.take_tags(m.unknown_tags)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _read_sync_group_request_held(buf: Buffer, pos: int, limit: int, version: int, allowance: DecodingAllowance) -> Steps[tuple[SyncGroupRequest, int]]:
    m = object.__new__(SyncGroupRequest)
    if version >= 4:
        m.group_id, pos = read_compact_string(buf, pos, limit)
        allowance.left -= getsizeof(m.group_id)
    else:
        m.group_id, pos = read_string(buf, pos, limit)
        allowance.left -= getsizeof(m.group_id)
    (m.generation_id,) = _unpack_i(buf, pos)
    pos += 4
    if version >= 4:
        m.member_id, pos = read_compact_string(buf, pos, limit)
        allowance.left -= getsizeof(m.member_id)
    else:
        m.member_id, pos = read_string(buf, pos, limit)
        allowance.left -= getsizeof(m.member_id)
    if version >= 4:
        m.group_instance_id, pos = read_compact_nullable_string(buf, pos, limit)
        allowance.left -= getsizeof(m.group_instance_id)
    elif version >= 3:
        m.group_instance_id, pos = read_nullable_string(buf, pos, limit)
        allowance.left -= getsizeof(m.group_instance_id)
    else:
        m.group_instance_id = None
    if version >= 5:
        m.protocol_type, pos = read_compact_nullable_string(buf, pos, limit)
        allowance.left -= getsizeof(m.protocol_type)
        m.protocol_name, pos = read_compact_nullable_string(buf, pos, limit)
        allowance.left -= getsizeof(m.protocol_name)
    else:
        m.protocol_type = None
        m.protocol_name = None
    count, pos = read_compact_count(buf, pos, limit, 3) if version >= 4 else read_count(buf, pos, limit, 3)
    allowance.take_array(count, 224)
    assignments_: list[SyncGroupRequestAssignment] = []
    for _ in range(count):
        assignments_item, pos = _read_sync_group_request_assignment_held(buf, pos, limit, version, allowance)
        assignments_.append(assignments_item)
        if allowance.due(pos):
            yield
    m.assignments = assignments_
    if version >= 4:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            m.unknown_tags, pos = read_tags(buf, pos, limit)
            allowance.take_tags(m.unknown_tags)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


READERS: dict[type[Message], Callable[..., Steps[Any]]] = {
    SyncGroupRequest: _read_sync_group_request_held,
}

WRITERS: dict[type[Message], Callable[..., Steps[Any]]] = {
}
