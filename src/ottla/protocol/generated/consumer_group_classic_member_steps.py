"""What a consumer group remembers of a member that speaks the classic protocol: tag 0 of ConsumerGroupMemberMetadataValue.

In steps; made from schemas/consumer_group_classic_member.schema by `python -m ottla.protocol.compile`.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct
from sys import getsizeof
from typing import Any

from ottla.protocol.generated.consumer_group_classic_member import (
    ClassicProtocol,
    ConsumerGroupClassicMember,
    _write_classic_protocol,
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
    write_structs,
)
from ottla.steps import Steps

_pack_i = Struct(">i").pack
_unpack_i = Struct(">i").unpack_from


def _read_classic_protocol_held(buf: Buffer, pos: int, limit: int, version: int, allowance: DecodingAllowance) -> tuple[ClassicProtocol, int]:
    m = object.__new__(ClassicProtocol)
    m.name, pos = read_compact_string(buf, pos, limit)
    allowance.left -= getsizeof(m.name)
    m.metadata, pos = read_compact_bytes(buf, pos, limit)
    allowance.left -= getsizeof(m.metadata)
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
        allowance.take_tags(m.unknown_tags)
    return m, pos


def _read_consumer_group_classic_member_held(buf: Buffer, pos: int, limit: int, version: int, allowance: DecodingAllowance) -> Steps[tuple[ConsumerGroupClassicMember, int]]:
    m = object.__new__(ConsumerGroupClassicMember)
    (m.session_timeout_ms,) = _unpack_i(buf, pos)
    pos += 4
    count, pos = read_compact_count(buf, pos, limit, 3)
    allowance.take_array(count, 224)
    supported_protocols_: list[ClassicProtocol] = []
    for _ in range(count):
        supported_protocols_item, pos = _read_classic_protocol_held(buf, pos, limit, version, allowance)
        supported_protocols_.append(supported_protocols_item)
        if allowance.due(pos):
            yield
    m.supported_protocols = supported_protocols_
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
        allowance.take_tags(m.unknown_tags)
    return m, pos


def _write_consumer_group_classic_member_steps(out: bytearray, m: ConsumerGroupClassicMember, version: int, pace: Pace) -> Steps[None]:
    out += _pack_i(m.session_timeout_ms)
    put_compact_count(out, len(m.supported_protocols))
    if len(m.supported_protocols) > FEW:
        yield from write_structs(out, m.supported_protocols, _write_classic_protocol, version, pace)
    else:
        for supported_protocols_item in m.supported_protocols:
            _write_classic_protocol(out, supported_protocols_item, version)
        pace.work -= len(m.supported_protocols)
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)


READERS: dict[type[Message], Callable[..., Steps[Any]]] = {
    ConsumerGroupClassicMember: _read_consumer_group_classic_member_held,
}

WRITERS: dict[type[Message], Callable[..., Steps[Any]]] = {
    ConsumerGroupClassicMember: _write_consumer_group_classic_member_steps,
}
