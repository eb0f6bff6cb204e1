"""Sets and removes users' SCRAM credentials.

In steps; made from schemas/alter_user_scram_credentials.schema by `python -m ottla.protocol.compile`.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct
from sys import getsizeof
from typing import Any

from ottla.protocol.generated.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    ScramCredentialUpsertion,
    _read_scram_credential_deletion,
    _write_alter_user_scram_credentials_result,
)
from ottla.protocol.message import Message
from ottla.protocol.primitives import (
    Buffer,
    NO_TAGS,
    put_compact_count,
    put_tags,
    read_compact_bytes,
    read_compact_count,
    read_compact_string,
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
_unpack_bi = Struct(">bi").unpack_from


def _read_scram_credential_upsertion_held(buf: Buffer, pos: int, limit: int, version: int, allowance: DecodingAllowance) -> tuple[ScramCredentialUpsertion, int]:
    m = object.__new__(ScramCredentialUpsertion)
    m.name, pos = read_compact_string(buf, pos, limit)
    allowance.left -= getsizeof(m.name)
    m.mechanism, m.iterations = _unpack_bi(buf, pos)
    pos += 5
    m.salt, pos = read_compact_bytes(buf, pos, limit)
    allowance.left -= getsizeof(m.salt)
    m.salted_password, pos = read_compact_bytes(buf, pos, limit)
    allowance.left -= getsizeof(m.salted_password)
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
        allowance.take_tags(m.unknown_tags)
    return m, pos


def _read_alter_user_scram_credentials_request_held(buf: Buffer, pos: int, limit: int, version: int, allowance: DecodingAllowance) -> Steps[tuple[AlterUserScramCredentialsRequest, int]]:
    m = object.__new__(AlterUserScramCredentialsRequest)
    count, pos = read_compact_count(buf, pos, limit, 3)
    if count > FEW:
        allowance.take_array(count, 224)
        m.deletions, pos = yield from read_structs(_read_scram_credential_deletion, buf, pos, limit, version, count, allowance, text=True)
    else:
        allowance.left -= count * 224
        m.deletions, pos = read_few(_read_scram_credential_deletion, buf, pos, limit, version, count, allowance, text=True)
    count, pos = read_compact_count(buf, pos, limit, 9)
    allowance.take_array(count, 224)
    upsertions_: list[ScramCredentialUpsertion] = []
    for _ in range(count):
        upsertions_item, pos = _read_scram_credential_upsertion_held(buf, pos, limit, version, allowance)
        upsertions_.append(upsertions_item)
        if allowance.due(pos):
            yield
    m.upsertions = upsertions_
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
        allowance.take_tags(m.unknown_tags)
    return m, pos


def _write_alter_user_scram_credentials_response_steps(out: bytearray, m: AlterUserScramCredentialsResponse, version: int, pace: Pace) -> Steps[None]:
    out += _pack_i(m.throttle_time_ms)
    put_compact_count(out, len(m.results))
    if len(m.results) > FEW:
        yield from write_structs(out, m.results, _write_alter_user_scram_credentials_result, version, pace)
    else:
        for results_item in m.results:
            _write_alter_user_scram_credentials_result(out, results_item, version)
        pace.work -= len(m.results)
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)


READERS: dict[type[Message], Callable[..., Steps[Any]]] = {
    AlterUserScramCredentialsRequest: _read_alter_user_scram_credentials_request_held,
}

WRITERS: dict[type[Message], Callable[..., Steps[Any]]] = {
    AlterUserScramCredentialsResponse: _write_alter_user_scram_credentials_response_steps,
}
