"""The groups that a broker coordinates.

In steps; made from schemas/list_groups.schema by `python -m ottla.protocol.compile`.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct
from typing import Any

from ottla.protocol.generated.list_groups import (
    ListGroupsRequest,
    ListGroupsResponse,
    _write_listed_group,
)
from ottla.protocol.message import Message, not_tagged
from ottla.protocol.primitives import (
    Buffer,
    NO_TAGS,
    put_compact_count,
    put_count,
    put_tags,
    read_compact_count,
    read_compact_string,
    read_tags,
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


def _read_list_groups_request_held(buf: Buffer, pos: int, limit: int, version: int, allowance: DecodingAllowance) -> Steps[tuple[ListGroupsRequest, int]]:
    m = object.__new__(ListGroupsRequest)
    if version >= 4:
        count, pos = read_compact_count(buf, pos, limit, 1)
        allowance.take_array(count, 304)
        m.states_filter, pos = yield from read_strings(read_compact_string, buf, pos, limit, count, allowance)
    else:
        m.states_filter = []
    if version >= 5:
        count, pos = read_compact_count(buf, pos, limit, 1)
        allowance.take_array(count, 304)
        m.types_filter, pos = yield from read_strings(read_compact_string, buf, pos, limit, count, allowance)
    else:
        m.types_filter = []
    if version >= 3:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            m.unknown_tags, pos = read_tags(buf, pos, limit)
            allowance.take_tags(m.unknown_tags)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _write_list_groups_response_steps(out: bytearray, m: ListGroupsResponse, version: int, pace: Pace) -> Steps[None]:
    if version >= 1:
        out += _pack_i(m.throttle_time_ms)
    out += _pack_h(m.error_code)
    if version >= 3:
        put_compact_count(out, len(m.groups))
    else:
        put_count(out, len(m.groups))
    if len(m.groups) > FEW:
        yield from write_structs(out, m.groups, _write_listed_group, version, pace)
    else:
        for groups_item in m.groups:
            _write_listed_group(out, groups_item, version)
        pace.work -= len(m.groups)
    if version >= 3:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)


READERS: dict[type[Message], Callable[..., Steps[Any]]] = {
    ListGroupsRequest: _read_list_groups_request_held,
}

WRITERS: dict[type[Message], Callable[..., Steps[Any]]] = {
    ListGroupsResponse: _write_list_groups_response_steps,
}
