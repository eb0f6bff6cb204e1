"""Which SCRAM mechanisms users have, and their iterations.

In steps; made from schemas/describe_user_scram_credentials.schema by `python -m ottla.protocol.compile`.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct
from typing import Any

from ottla.protocol.generated.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
    _read_user_name,
    _write_credential_info,
)
from ottla.protocol.message import Message
from ottla.protocol.primitives import (
    Buffer,
    NO_TAGS,
    put_compact_count,
    put_compact_nullable_string,
    put_compact_string,
    put_tags,
    read_compact_nullable_count,
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
_pack_ih = Struct(">ih").pack


def _read_describe_user_scram_credentials_request_held(buf: Buffer, pos: int, limit: int, version: int, allowance: DecodingAllowance) -> Steps[tuple[DescribeUserScramCredentialsRequest, int]]:
    m = object.__new__(DescribeUserScramCredentialsRequest)
    count, pos = read_compact_nullable_count(buf, pos, limit, 2)
    if count < 0:
        m.users = None
    else:
        if count > FEW:
            allowance.take_array(count, 224)
            m.users, pos = yield from read_structs(_read_user_name, buf, pos, limit, version, count, allowance, text=True)
        else:
            allowance.left -= count * 224
            m.users, pos = read_few(_read_user_name, buf, pos, limit, version, count, allowance, text=True)
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
        allowance.take_tags(m.unknown_tags)
    return m, pos


def _write_describe_user_scram_credentials_result_steps(out: bytearray, m: DescribeUserScramCredentialsResult, version: int, pace: Pace) -> Steps[None]:
    put_compact_string(out, m.user)
    out += _pack_h(m.error_code)
    put_compact_nullable_string(out, shortened(m.error_message))
    put_compact_count(out, len(m.credential_infos))
    if len(m.credential_infos) > FEW:
        yield from write_structs(out, m.credential_infos, _write_credential_info, version, pace)
    else:
        for credential_infos_item in m.credential_infos:
            _write_credential_info(out, credential_infos_item, version)
        pace.work -= len(m.credential_infos)
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)


def _write_describe_user_scram_credentials_response_steps(out: bytearray, m: DescribeUserScramCredentialsResponse, version: int, pace: Pace) -> Steps[None]:
    out += _pack_ih(m.throttle_time_ms, m.error_code)
    put_compact_nullable_string(out, shortened(m.error_message))
    put_compact_count(out, len(m.results))
    for results_item in m.results:
        yield from _write_describe_user_scram_credentials_result_steps(out, results_item, version, pace)
        if pace.due():
            yield
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)


READERS: dict[type[Message], Callable[..., Steps[Any]]] = {
    DescribeUserScramCredentialsRequest: _read_describe_user_scram_credentials_request_held,
}

WRITERS: dict[type[Message], Callable[..., Steps[Any]]] = {
    DescribeUserScramCredentialsResponse: _write_describe_user_scram_credentials_response_steps,
}
