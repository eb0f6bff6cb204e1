"""Removes the access rules that match filters.

In steps; made from schemas/delete_acls.schema by `python -m ottla.protocol.compile`.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct
from typing import Any

from ottla.protocol.generated.delete_acls import (
    DeleteAclsFilterResult,
    DeleteAclsRequest,
    DeleteAclsResponse,
    _read_delete_acls_filter,
    _write_delete_acls_matching_acl,
)
from ottla.protocol.message import Message, not_tagged
from ottla.protocol.primitives import (
    Buffer,
    NO_TAGS,
    put_compact_count,
    put_compact_nullable_string,
    put_count,
    put_nullable_string,
    put_tags,
    read_compact_count,
    read_count,
    read_tags,
    shortened,
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


def _read_delete_acls_request_held(buf: Buffer, pos: int, limit: int, version: int, allowance: DecodingAllowance) -> Steps[tuple[DeleteAclsRequest, int]]:
    m = object.__new__(DeleteAclsRequest)
    count, pos = read_compact_count(buf, pos, limit, 8) if version >= 2 else read_count(buf, pos, limit, 8)
    if count > FEW:
        allowance.take_array(count, 480)
        m.filters, pos = yield from read_structs(_read_delete_acls_filter, buf, pos, limit, version, count, allowance, text=True)
    else:
        allowance.left -= count * 480
        m.filters, pos = read_few(_read_delete_acls_filter, buf, pos, limit, version, count, allowance, text=True)
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


def _write_delete_acls_filter_result_steps(out: bytearray, m: DeleteAclsFilterResult, version: int, pace: Pace) -> Steps[None]:
    out += _pack_h(m.error_code)
    if version >= 2:
        put_compact_nullable_string(out, shortened(m.error_message))
    else:
        put_nullable_string(out, shortened(m.error_message))
    if version >= 2:
        put_compact_count(out, len(m.matching_acls))
    else:
        put_count(out, len(m.matching_acls))
    if len(m.matching_acls) > FEW:
        yield from write_structs(out, m.matching_acls, _write_delete_acls_matching_acl, version, pace)
    else:
        for matching_acls_item in m.matching_acls:
            _write_delete_acls_matching_acl(out, matching_acls_item, version)
        pace.work -= len(m.matching_acls)
    if version >= 2:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)


def _write_delete_acls_response_steps(out: bytearray, m: DeleteAclsResponse, version: int, pace: Pace) -> Steps[None]:
    out += _pack_i(m.throttle_time_ms)
    if version >= 2:
        put_compact_count(out, len(m.filter_results))
    else:
        put_count(out, len(m.filter_results))
    for filter_results_item in m.filter_results:
        yield from _write_delete_acls_filter_result_steps(out, filter_results_item, version, pace)
        if pace.due():
            yield
    if version >= 2:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)


READERS: dict[type[Message], Callable[..., Steps[Any]]] = {
    DeleteAclsRequest: _read_delete_acls_request_held,
}

WRITERS: dict[type[Message], Callable[..., Steps[Any]]] = {
    DeleteAclsResponse: _write_delete_acls_response_steps,
}
