"""Takes members out of a classic group.

In steps; made from schemas/leave_group.schema by `python -m ottla.protocol.compile`.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct
from sys import getsizeof
from typing import Any

from ottla.protocol.generated.leave_group import (
    LeaveGroupRequest,
    LeaveGroupResponse,
    _read_member_identity,
    _write_member_response,
)
from ottla.protocol.message import Message, not_in_version, not_tagged
from ottla.protocol.primitives import (
    Buffer,
    NO_TAGS,
    put_compact_count,
    put_count,
    put_tags,
    read_compact_count,
    read_compact_string,
    read_count,
    read_string,
    read_tags,
)
from ottla.protocol.stepping import (
    DecodingAllowance,
    FEW,
    Pace,
    read_few,
    read_structs,
    write_structs,
)
from ottla.steps import Steps

_pack_h = Struct(">h").pack
_pack_i = Struct(">i").pack


def _read_leave_group_request_held(buf: Buffer, pos: int, limit: int, version: int, allowance: DecodingAllowance) -> Steps[tuple[LeaveGroupRequest, int]]:
    m = object.__new__(LeaveGroupRequest)
    if version >= 4:
        m.group_id, pos = read_compact_string(buf, pos, limit)
        allowance.left -= getsizeof(m.group_id)
    else:
        m.group_id, pos = read_string(buf, pos, limit)
        allowance.left -= getsizeof(m.group_id)
    if version >= 3:
        m.member_id = ""
        count, pos = read_compact_count(buf, pos, limit, 3) if version >= 4 else read_count(buf, pos, limit, 3)
        if count > FEW:
            allowance.take_array(count, 320)
            m.members, pos = yield from read_structs(_read_member_identity, buf, pos, limit, version, count, allowance, text=True)
        else:
            allowance.left -= count * 320
            m.members, pos = read_few(_read_member_identity, buf, pos, limit, version, count, allowance, text=True)
    else:
        m.member_id, pos = read_string(buf, pos, limit)
        allowance.left -= getsizeof(m.member_id)
        m.members = []
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


def _write_leave_group_response_steps(out: bytearray, m: LeaveGroupResponse, version: int, pace: Pace) -> Steps[None]:
    if version >= 1:
        out += _pack_i(m.throttle_time_ms)
    out += _pack_h(m.error_code)
    if version >= 3:
        if version >= 4:
            put_compact_count(out, len(m.members))
        else:
            put_count(out, len(m.members))
        if len(m.members) > FEW:
            yield from write_structs(out, m.members, _write_member_response, version, pace)
        else:
            for members_item in m.members:
                _write_member_response(out, members_item, version)
            pace.work -= len(m.members)
    else:
        if m.members != []:
            raise not_in_version(m, "members", version)
    if version >= 4:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)


READERS: dict[type[Message], Callable[..., Steps[Any]]] = {
    LeaveGroupRequest: _read_leave_group_request_held,
}

WRITERS: dict[type[Message], Callable[..., Steps[Any]]] = {
    LeaveGroupResponse: _write_leave_group_response_steps,
}
