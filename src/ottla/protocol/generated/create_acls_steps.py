"""Adds access rules.

In steps; made from schemas/create_acls.schema by `python -m ottla.protocol.compile`.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct
from typing import Any

from ottla.protocol.generated.create_acls import (
    CreateAclsRequest,
    CreateAclsResponse,
    _read_acl_creation,
    _write_acl_creation_result,
)
from ottla.protocol.message import Message, not_tagged
from ottla.protocol.primitives import (
    Buffer,
    NO_TAGS,
    put_compact_count,
    put_count,
    put_tags,
    read_compact_count,
    read_count,
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

_pack_i = Struct(">i").pack


def _read_create_acls_request_held(buf: Buffer, pos: int, limit: int, version: int, allowance: DecodingAllowance) -> Steps[tuple[CreateAclsRequest, int]]:
    m = object.__new__(CreateAclsRequest)
    count, pos = read_compact_count(buf, pos, limit, 8) if version >= 2 else read_count(buf, pos, limit, 8)
    if count > FEW:
        allowance.take_array(count, 480)
        m.creations, pos = yield from read_structs(_read_acl_creation, buf, pos, limit, version, count, allowance, text=True)
    else:
        allowance.left -= count * 480
        m.creations, pos = read_few(_read_acl_creation, buf, pos, limit, version, count, allowance, text=True)
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


def _write_create_acls_response_steps(out: bytearray, m: CreateAclsResponse, version: int, pace: Pace) -> Steps[None]:
    out += _pack_i(m.throttle_time_ms)
    if version >= 2:
        put_compact_count(out, len(m.results))
    else:
        put_count(out, len(m.results))
    if len(m.results) > FEW:
        yield from write_structs(out, m.results, _write_acl_creation_result, version, pace)
    else:
        for results_item in m.results:
            _write_acl_creation_result(out, results_item, version)
        pace.work -= len(m.results)
    if version >= 2:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)


READERS: dict[type[Message], Callable[..., Steps[Any]]] = {
    CreateAclsRequest: _read_create_acls_request_held,
}

WRITERS: dict[type[Message], Callable[..., Steps[Any]]] = {
    CreateAclsResponse: _write_create_acls_response_steps,
}
