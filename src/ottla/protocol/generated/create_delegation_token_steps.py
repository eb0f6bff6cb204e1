"""Creates a token that stands in for its owner's credentials.

In steps; made from schemas/create_delegation_token.schema by `python -m ottla.protocol.compile`.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct
from sys import getsizeof
from typing import Any

from ottla.protocol.generated.create_delegation_token import (
    CreateDelegationTokenRequest,
    _read_creatable_renewers,
)
from ottla.protocol.message import Message
from ottla.protocol.primitives import (
    Buffer,
    NO_TAGS,
    read_compact_count,
    read_compact_nullable_string,
    read_count,
    read_tags,
)
from ottla.protocol.stepping import (
    DecodingAllowance,
    FEW,
    read_few,
    read_structs,
)
from ottla.steps import Steps

_unpack_q = Struct(">q").unpack_from


def _read_create_delegation_token_request_held(buf: Buffer, pos: int, limit: int, version: int, allowance: DecodingAllowance) -> Steps[tuple[CreateDelegationTokenRequest, int]]:
    m = object.__new__(CreateDelegationTokenRequest)
    if version >= 3:
        m.owner_principal_type, pos = read_compact_nullable_string(buf, pos, limit)
        allowance.left -= getsizeof(m.owner_principal_type)
        m.owner_principal_name, pos = read_compact_nullable_string(buf, pos, limit)
        allowance.left -= getsizeof(m.owner_principal_name)
    else:
        m.owner_principal_type = ""
        m.owner_principal_name = ""
    count, pos = read_compact_count(buf, pos, limit, 3) if version >= 2 else read_count(buf, pos, limit, 3)
    if count > FEW:
        allowance.take_array(count, 232)
        m.renewers, pos = yield from read_structs(_read_creatable_renewers, buf, pos, limit, version, count, allowance, text=True)
    else:
        allowance.left -= count * 232
        m.renewers, pos = read_few(_read_creatable_renewers, buf, pos, limit, version, count, allowance, text=True)
    (m.max_lifetime_ms,) = _unpack_q(buf, pos)
    pos += 8
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


READERS: dict[type[Message], Callable[..., Steps[Any]]] = {
    CreateDelegationTokenRequest: _read_create_delegation_token_request_held,
}

WRITERS: dict[type[Message], Callable[..., Steps[Any]]] = {
}
