"""The delegation tokens of given owners.

In steps; made from schemas/describe_delegation_token.schema by `python -m ottla.protocol.compile`.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct
from typing import Any

from ottla.protocol.generated.describe_delegation_token import (
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
    DescribedDelegationToken,
    _read_describe_delegation_token_owner,
    _write_described_delegation_token_renewer,
)
from ottla.protocol.message import Message, not_in_version, not_tagged
from ottla.protocol.primitives import (
    Buffer,
    NO_TAGS,
    put_bytes,
    put_compact_bytes,
    put_compact_count,
    put_compact_string,
    put_count,
    put_string,
    put_tags,
    read_compact_nullable_count,
    read_nullable_count,
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
_pack_qqq = Struct(">qqq").pack


def _read_describe_delegation_token_request_held(buf: Buffer, pos: int, limit: int, version: int, allowance: DecodingAllowance) -> Steps[tuple[DescribeDelegationTokenRequest, int]]:
    m = object.__new__(DescribeDelegationTokenRequest)
    count, pos = read_compact_nullable_count(buf, pos, limit, 3) if version >= 2 else read_nullable_count(buf, pos, limit, 3)
    if count < 0:
        m.owners = None
    else:
        if count > FEW:
            allowance.take_array(count, 232)
            m.owners, pos = yield from read_structs(_read_describe_delegation_token_owner, buf, pos, limit, version, count, allowance, text=True)
        else:
            allowance.left -= count * 232
            m.owners, pos = read_few(_read_describe_delegation_token_owner, buf, pos, limit, version, count, allowance, text=True)
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


def _write_described_delegation_token_steps(out: bytearray, m: DescribedDelegationToken, version: int, pace: Pace) -> Steps[None]:
    if version >= 2:
        put_compact_string(out, m.principal_type)
        put_compact_string(out, m.principal_name)
    else:
        put_string(out, m.principal_type)
        put_string(out, m.principal_name)
    if version >= 3:
        put_compact_string(out, m.token_requester_principal_type)
        put_compact_string(out, m.token_requester_principal_name)
    else:
        if m.token_requester_principal_type != "":
            raise not_in_version(m, "token_requester_principal_type", version)
        if m.token_requester_principal_name != "":
            raise not_in_version(m, "token_requester_principal_name", version)
    out += _pack_qqq(m.issue_timestamp, m.expiry_timestamp, m.max_timestamp)
    if version >= 2:
        put_compact_string(out, m.token_id)
        put_compact_bytes(out, m.hmac)
    else:
        put_string(out, m.token_id)
        put_bytes(out, m.hmac)
    if version >= 2:
        put_compact_count(out, len(m.renewers))
    else:
        put_count(out, len(m.renewers))
    if len(m.renewers) > FEW:
        yield from write_structs(out, m.renewers, _write_described_delegation_token_renewer, version, pace)
    else:
        for renewers_item in m.renewers:
            _write_described_delegation_token_renewer(out, renewers_item, version)
        pace.work -= len(m.renewers)
    if version >= 2:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)


def _write_describe_delegation_token_response_steps(out: bytearray, m: DescribeDelegationTokenResponse, version: int, pace: Pace) -> Steps[None]:
    out += _pack_h(m.error_code)
    if version >= 2:
        put_compact_count(out, len(m.tokens))
    else:
        put_count(out, len(m.tokens))
    for tokens_item in m.tokens:
        yield from _write_described_delegation_token_steps(out, tokens_item, version, pace)
        if pace.due():
            yield
    out += _pack_i(m.throttle_time_ms)
    if version >= 2:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)


READERS: dict[type[Message], Callable[..., Steps[Any]]] = {
    DescribeDelegationTokenRequest: _read_describe_delegation_token_request_held,
}

WRITERS: dict[type[Message], Callable[..., Steps[Any]]] = {
    DescribeDelegationTokenResponse: _write_describe_delegation_token_response_steps,
}
