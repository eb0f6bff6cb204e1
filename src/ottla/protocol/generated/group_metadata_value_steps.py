"""A generation of a classic group, as the offsets topic keeps it.

In steps; made from schemas/group_metadata_value.schema by `python -m ottla.protocol.compile`.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct
from sys import getsizeof
from typing import Any

from ottla.protocol.generated.group_metadata_value import (
    GroupMetadataValue,
    MemberMetadata,
    _write_member_metadata,
)
from ottla.protocol.message import Message, not_tagged
from ottla.protocol.primitives import (
    Buffer,
    NO_TAGS,
    put_compact_count,
    put_compact_nullable_string,
    put_compact_string,
    put_count,
    put_nullable_string,
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

_pack_i = Struct(">i").pack
_pack_q = Struct(">q").pack
_unpack_i = Struct(">i").unpack_from
_unpack_q = Struct(">q").unpack_from


def _read_member_metadata_held(buf: Buffer, pos: int, limit: int, version: int, allowance: DecodingAllowance) -> tuple[MemberMetadata, int]:
    m = object.__new__(MemberMetadata)
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
    if version >= 4:
        m.client_id, pos = read_compact_string(buf, pos, limit)
        allowance.left -= getsizeof(m.client_id)
        m.client_host, pos = read_compact_string(buf, pos, limit)
        allowance.left -= getsizeof(m.client_host)
    else:
        m.client_id, pos = read_string(buf, pos, limit)
        allowance.left -= getsizeof(m.client_id)
        m.client_host, pos = read_string(buf, pos, limit)
        allowance.left -= getsizeof(m.client_host)
    if version >= 1:
        (m.rebalance_timeout,) = _unpack_i(buf, pos)
        pos += 4
    else:
        m.rebalance_timeout = -1
    (m.session_timeout,) = _unpack_i(buf, pos)
    pos += 4
    if version >= 4:
        m.subscription, pos = read_compact_bytes(buf, pos, limit)
        allowance.left -= getsizeof(m.subscription)
        m.assignment, pos = read_compact_bytes(buf, pos, limit)
        allowance.left -= getsizeof(m.assignment)
    else:
        m.subscription, pos = read_bytes(buf, pos, limit)
        allowance.left -= getsizeof(m.subscription)
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


def _read_group_metadata_value_held(buf: Buffer, pos: int, limit: int, version: int, allowance: DecodingAllowance) -> Steps[tuple[GroupMetadataValue, int]]:
    m = object.__new__(GroupMetadataValue)
    if version >= 4:
        m.protocol_type, pos = read_compact_string(buf, pos, limit)
        allowance.left -= getsizeof(m.protocol_type)
    else:
        m.protocol_type, pos = read_string(buf, pos, limit)
        allowance.left -= getsizeof(m.protocol_type)
    (m.generation,) = _unpack_i(buf, pos)
    pos += 4
    if version >= 4:
        m.protocol, pos = read_compact_nullable_string(buf, pos, limit)
        allowance.left -= getsizeof(m.protocol)
        m.leader, pos = read_compact_nullable_string(buf, pos, limit)
        allowance.left -= getsizeof(m.leader)
    else:
        m.protocol, pos = read_nullable_string(buf, pos, limit)
        allowance.left -= getsizeof(m.protocol)
        m.leader, pos = read_nullable_string(buf, pos, limit)
        allowance.left -= getsizeof(m.leader)
    if version >= 2:
        (m.current_state_timestamp,) = _unpack_q(buf, pos)
        pos += 8
    else:
        m.current_state_timestamp = -1
    count, pos = read_compact_count(buf, pos, limit, 15) if version >= 4 else read_count(buf, pos, limit, 15)
    allowance.take_array(count, 224)
    members_: list[MemberMetadata] = []
    for _ in range(count):
        members_item, pos = _read_member_metadata_held(buf, pos, limit, version, allowance)
        members_.append(members_item)
        if allowance.due(pos):
            yield
    m.members = members_
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


def _write_group_metadata_value_steps(out: bytearray, m: GroupMetadataValue, version: int, pace: Pace) -> Steps[None]:
    if version >= 4:
        put_compact_string(out, m.protocol_type)
    else:
        put_string(out, m.protocol_type)
    out += _pack_i(m.generation)
    if version >= 4:
        put_compact_nullable_string(out, m.protocol)
        put_compact_nullable_string(out, m.leader)
    else:
        put_nullable_string(out, m.protocol)
        put_nullable_string(out, m.leader)
    if version >= 2:
        out += _pack_q(m.current_state_timestamp)
    if version >= 4:
        put_compact_count(out, len(m.members))
    else:
        put_count(out, len(m.members))
    if len(m.members) > FEW:
        yield from write_structs(out, m.members, _write_member_metadata, version, pace)
    else:
        for members_item in m.members:
            _write_member_metadata(out, members_item, version)
        pace.work -= len(m.members)
    if version >= 4:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)


READERS: dict[type[Message], Callable[..., Steps[Any]]] = {
    GroupMetadataValue: _read_group_metadata_value_held,
}

WRITERS: dict[type[Message], Callable[..., Steps[Any]]] = {
    GroupMetadataValue: _write_group_metadata_value_steps,
}
