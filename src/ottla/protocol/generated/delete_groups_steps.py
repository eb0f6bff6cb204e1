"""Deletes groups that have no members.

In steps; made from schemas/delete_groups.schema by `python -m ottla.protocol.compile`.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct
from typing import Any

from ottla.protocol.generated.delete_groups import (
    DeleteGroupsRequest,
    DeleteGroupsResponse,
    _write_deletable_group_result,
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
    read_count,
    read_string,
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

_pack_i = Struct(">i").pack


def _read_delete_groups_request_held(buf: Buffer, pos: int, limit: int, version: int, allowance: DecodingAllowance) -> Steps[tuple[DeleteGroupsRequest, int]]:
    m = object.__new__(DeleteGroupsRequest)
    count, pos = read_compact_count(buf, pos, limit, 1) if version >= 2 else read_count(buf, pos, limit, 1)
    allowance.take_array(count, 304)
    m.groups_names, pos = yield from read_strings(read_compact_string if version >= 2 else read_string, buf, pos, limit, count, allowance)
    if version >= 2:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            m.unknown_tags, pos = read_tags(buf, pos, limit)
            allowance.take_tags(m.unknown_tags)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _write_delete_groups_response_steps(out: bytearray, m: DeleteGroupsResponse, version: int, pace: Pace) -> Steps[None]:
    out += _pack_i(m.throttle_time_ms)
    if version >= 2:
        put_compact_count(out, len(m.results))
    else:
        put_count(out, len(m.results))
    if len(m.results) > FEW:
        yield from write_structs(out, m.results, _write_deletable_group_result, version, pace)
    else:
        for results_item in m.results:
            _write_deletable_group_result(out, results_item, version)
        pace.work -= len(m.results)
    if version >= 2:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)


READERS: dict[type[Message], Callable[..., Steps[Any]]] = {
    DeleteGroupsRequest: _read_delete_groups_request_held,
}

WRITERS: dict[type[Message], Callable[..., Steps[Any]]] = {
    DeleteGroupsResponse: _write_delete_groups_response_steps,
}
