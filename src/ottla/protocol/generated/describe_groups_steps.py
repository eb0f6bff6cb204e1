"""State and members of classic groups.

In steps; made from schemas/describe_groups.schema by `python -m ottla.protocol.compile`.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct
from typing import Any

from ottla.protocol.generated.describe_groups import (
    DescribeGroupsRequest,
    DescribeGroupsResponse,
    DescribedGroup,
    _write_described_group_member,
)
from ottla.protocol.message import Message, not_in_version, not_tagged
from ottla.protocol.primitives import (
    Buffer,
    NO_TAGS,
    put_compact_count,
    put_compact_nullable_string,
    put_compact_string,
    put_count,
    put_string,
    put_tags,
    read_compact_count,
    read_compact_string,
    read_count,
    read_string,
    read_tags,
    shortened,
)
from ottla.protocol.stepping import (
    DecodingAllowance,
    FEW,
    Pace,
    read_strings,
    write_structs,
)
from ottla.steps import Steps

_pack_h = Struct(">h").pack
_pack_i = Struct(">i").pack


def _read_describe_groups_request_held(buf: Buffer, pos: int, limit: int, version: int, allowance: DecodingAllowance) -> Steps[tuple[DescribeGroupsRequest, int]]:
    m = object.__new__(DescribeGroupsRequest)
    count, pos = read_compact_count(buf, pos, limit, 1) if version >= 5 else read_count(buf, pos, limit, 1)
    allowance.take_array(count, 304)
    m.groups, pos = yield from read_strings(read_compact_string if version >= 5 else read_string, buf, pos, limit, count, allowance)
    if version >= 3:
        m.include_authorized_operations = buf[pos] != 0
        pos += 1
    else:
        m.include_authorized_operations = False
    if version >= 5:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            m.unknown_tags, pos = read_tags(buf, pos, limit)
            allowance.take_tags(m.unknown_tags)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _write_described_group_steps(out: bytearray, m: DescribedGroup, version: int, pace: Pace) -> Steps[None]:
    out += _pack_h(m.error_code)
    if version >= 6:
        put_compact_nullable_string(out, shortened(m.error_message))
    else:
        if m.error_message is not None:
            raise not_in_version(m, "error_message", version)
    if version >= 5:
        put_compact_string(out, m.group_id)
        put_compact_string(out, m.group_state)
        put_compact_string(out, m.protocol_type)
        put_compact_string(out, m.protocol_data)
    else:
        put_string(out, m.group_id)
        put_string(out, m.group_state)
        put_string(out, m.protocol_type)
        put_string(out, m.protocol_data)
    if version >= 5:
        put_compact_count(out, len(m.members))
    else:
        put_count(out, len(m.members))
    if len(m.members) > FEW:
        yield from write_structs(out, m.members, _write_described_group_member, version, pace)
    else:
        for members_item in m.members:
            _write_described_group_member(out, members_item, version)
        pace.work -= len(m.members)
    if version >= 3:
        out += _pack_i(m.authorized_operations)
    else:
        if m.authorized_operations != -2147483648:
            raise not_in_version(m, "authorized_operations", version)
    if version >= 5:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)


def _write_describe_groups_response_steps(out: bytearray, m: DescribeGroupsResponse, version: int, pace: Pace) -> Steps[None]:
    if version >= 1:
        out += _pack_i(m.throttle_time_ms)
    if version >= 5:
        put_compact_count(out, len(m.groups))
    else:
        put_count(out, len(m.groups))
    for groups_item in m.groups:
        yield from _write_described_group_steps(out, groups_item, version, pace)
        if pace.due():
            yield
    if version >= 5:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)


READERS: dict[type[Message], Callable[..., Steps[Any]]] = {
    DescribeGroupsRequest: _read_describe_groups_request_held,
}

WRITERS: dict[type[Message], Callable[..., Steps[Any]]] = {
    DescribeGroupsResponse: _write_describe_groups_response_steps,
}
