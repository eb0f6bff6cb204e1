"""Enters a classic group, and waits until the generation is complete.

In steps; made from schemas/join_group.schema by `python -m ottla.protocol.compile`.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct
from sys import getsizeof
from typing import Any

from ottla.protocol.generated.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
    _write_join_group_response_member,
)
from ottla.protocol.message import Message, not_in_version, not_nullable, not_tagged
from ottla.protocol.primitives import (
    Buffer,
    NO_TAGS,
    put_compact_count,
    put_compact_nullable_string,
    put_compact_string,
    put_count,
    put_string,
    put_tags,
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
    FEW,
    Pace,
    write_structs,
)
from ottla.steps import Steps

_pack_hi = Struct(">hi").pack
_pack_i = Struct(">i").pack
_unpack_i = Struct(">i").unpack_from


def _read_join_group_request_protocol_held(buf: Buffer, pos: int, limit: int, version: int, allowance: DecodingAllowance) -> tuple[JoinGroupRequestProtocol, int]:
    m = object.__new__(JoinGroupRequestProtocol)
    if version >= 6:
        m.name, pos = read_compact_string(buf, pos, limit)
        allowance.left -= getsizeof(m.name)
        m.metadata, pos = read_compact_bytes(buf, pos, limit)
        allowance.left -= getsizeof(m.metadata)
    else:
        m.name, pos = read_string(buf, pos, limit)
        allowance.left -= getsizeof(m.name)
        m.metadata, pos = read_bytes(buf, pos, limit)
        allowance.left -= getsizeof(m.metadata)
    if version >= 6:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            m.unknown_tags, pos = read_tags(buf, pos, limit)
            allowance.take_tags(m.unknown_tags)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _read_join_group_request_held(buf: Buffer, pos: int, limit: int, version: int, allowance: DecodingAllowance) -> Steps[tuple[JoinGroupRequest, int]]:
    m = object.__new__(JoinGroupRequest)
    if version >= 6:
        m.group_id, pos = read_compact_string(buf, pos, limit)
        allowance.left -= getsizeof(m.group_id)
    else:
        m.group_id, pos = read_string(buf, pos, limit)
        allowance.left -= getsizeof(m.group_id)
    (m.session_timeout_ms,) = _unpack_i(buf, pos)
    pos += 4
    if version >= 1:
        (m.rebalance_timeout_ms,) = _unpack_i(buf, pos)
        pos += 4
    else:
        m.rebalance_timeout_ms = -1
    if version >= 6:
        m.member_id, pos = read_compact_string(buf, pos, limit)
        allowance.left -= getsizeof(m.member_id)
    else:
        m.member_id, pos = read_string(buf, pos, limit)
        allowance.left -= getsizeof(m.member_id)
    if version >= 6:
        m.group_instance_id, pos = read_compact_nullable_string(buf, pos, limit)
        allowance.left -= getsizeof(m.group_instance_id)
    elif version >= 5:
        m.group_instance_id, pos = read_nullable_string(buf, pos, limit)
        allowance.left -= getsizeof(m.group_instance_id)
    else:
        m.group_instance_id = None
    if version >= 6:
        m.protocol_type, pos = read_compact_string(buf, pos, limit)
        allowance.left -= getsizeof(m.protocol_type)
    else:
        m.protocol_type, pos = read_string(buf, pos, limit)
        allowance.left -= getsizeof(m.protocol_type)
    count, pos = read_compact_count(buf, pos, limit, 3) if version >= 6 else read_count(buf, pos, limit, 3)
    allowance.take_array(count, 224)
    protocols_: list[JoinGroupRequestProtocol] = []
    for _ in range(count):
        protocols_item, pos = _read_join_group_request_protocol_held(buf, pos, limit, version, allowance)
        protocols_.append(protocols_item)
        if allowance.due(pos):
            yield
    m.protocols = protocols_
    if version >= 8:
        m.reason, pos = read_compact_nullable_string(buf, pos, limit)
        allowance.left -= getsizeof(m.reason)
    else:
        m.reason = None
    if version >= 6:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            m.unknown_tags, pos = read_tags(buf, pos, limit)
            allowance.take_tags(m.unknown_tags)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _write_join_group_response_steps(out: bytearray, m: JoinGroupResponse, version: int, pace: Pace) -> Steps[None]:
    if version >= 2:
        out += _pack_i(m.throttle_time_ms)
    out += _pack_hi(m.error_code, m.generation_id)
    if version >= 7:
        put_compact_nullable_string(out, m.protocol_type)
    if version >= 7:
        put_compact_nullable_string(out, m.protocol_name)
    elif version >= 6:
        if m.protocol_name is None:
            raise not_nullable(m, "protocol_name", version)
        put_compact_string(out, m.protocol_name)
    else:
        if m.protocol_name is None:
            raise not_nullable(m, "protocol_name", version)
        put_string(out, m.protocol_name)
    if version >= 6:
        put_compact_string(out, m.leader)
    else:
        put_string(out, m.leader)
    if version >= 9:
        out.append(1 if m.skip_assignment else 0)
    else:
        if m.skip_assignment:
            raise not_in_version(m, "skip_assignment", version)
    if version >= 6:
        put_compact_string(out, m.member_id)
    else:
        put_string(out, m.member_id)
    if version >= 6:
        put_compact_count(out, len(m.members))
    else:
        put_count(out, len(m.members))
    if len(m.members) > FEW:
        yield from write_structs(out, m.members, _write_join_group_response_member, version, pace)
    else:
        for members_item in m.members:
            _write_join_group_response_member(out, members_item, version)
        pace.work -= len(m.members)
    if version >= 6:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)


READERS: dict[type[Message], Callable[..., Steps[Any]]] = {
    JoinGroupRequest: _read_join_group_request_held,
}

WRITERS: dict[type[Message], Callable[..., Steps[Any]]] = {
    JoinGroupResponse: _write_join_group_response_steps,
}
