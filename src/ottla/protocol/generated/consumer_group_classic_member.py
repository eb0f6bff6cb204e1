"""What a consumer group remembers of a member that speaks the classic protocol: tag 0 of ConsumerGroupMemberMetadataValue.

Made from schemas/consumer_group_classic_member.schema by `python -m ottla.protocol.compile`: change that file.
"""

from __future__ import annotations

from collections.abc import Mapping
from struct import Struct

from ottla.protocol.message import Message, Structure, bad_bytes, bad_value, undecodable, unencodable
from ottla.protocol.primitives import (
    Buffer,
    DECODE_FAULTS,
    EMPTY_LIST,
    ENCODE_FAULTS,
    NO_TAGS,
    put_compact_bytes,
    put_compact_count,
    put_compact_string,
    put_tags,
    read_compact_bytes,
    read_compact_count,
    read_compact_string,
    read_tags,
)

_pack_i = Struct(">i").pack
_unpack_i = Struct(">i").unpack_from

class ClassicProtocol(Structure):
    __slots__ = ("name", "metadata", "unknown_tags",)

    def __init__(
        self,
        *,
        name: str = "",
        metadata: Buffer = b"",
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.name = name
        self.metadata = metadata
        self.unknown_tags = unknown_tags


class ConsumerGroupClassicMember(Message):
    __slots__ = ("session_timeout_ms", "supported_protocols", "unknown_tags",)
    API_KEY = -1
    MIN_VERSION = 0
    MAX_VERSION = 0
    FLEXIBLE_FROM = 0
    HAS_ARRAYS = True

    def __init__(
        self,
        *,
        session_timeout_ms: int = 0,
        supported_protocols: list[ClassicProtocol] = EMPTY_LIST,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.session_timeout_ms = session_timeout_ms
        self.supported_protocols = [] if supported_protocols is EMPTY_LIST else supported_protocols
        self.unknown_tags = unknown_tags

    def encode_into(self, out: bytearray, version: int) -> None:
        if not 0 <= version <= 0:
            raise unencodable(ConsumerGroupClassicMember, version)
        try:
            _write_consumer_group_classic_member(out, self, version)
        except ENCODE_FAULTS as fault:
            raise bad_value(ConsumerGroupClassicMember, version, fault) from fault

    @classmethod
    def decode(cls, buf: Buffer, version: int, pos: int = 0) -> tuple[ConsumerGroupClassicMember, int]:
        if not 0 <= version <= 0:
            raise undecodable(ConsumerGroupClassicMember, version)
        try:
            return _read_consumer_group_classic_member(buf, pos, len(buf), version)
        except DECODE_FAULTS as fault:
            raise bad_bytes(ConsumerGroupClassicMember, version, fault) from fault


def _read_classic_protocol(buf: Buffer, pos: int, limit: int, version: int) -> tuple[ClassicProtocol, int]:
    m = object.__new__(ClassicProtocol)
    m.name, pos = read_compact_string(buf, pos, limit)
    m.metadata, pos = read_compact_bytes(buf, pos, limit)
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
    return m, pos


def _write_classic_protocol(out: bytearray, m: ClassicProtocol, version: int) -> None:
    put_compact_string(out, m.name)
    put_compact_bytes(out, m.metadata)
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)


def _read_consumer_group_classic_member(buf: Buffer, pos: int, limit: int, version: int) -> tuple[ConsumerGroupClassicMember, int]:
    m = object.__new__(ConsumerGroupClassicMember)
    (m.session_timeout_ms,) = _unpack_i(buf, pos)
    pos += 4
    count, pos = read_compact_count(buf, pos, limit, 3)
    supported_protocols_: list[ClassicProtocol] = []
    for _ in range(count):
        supported_protocols_item, pos = _read_classic_protocol(buf, pos, limit, version)
        supported_protocols_.append(supported_protocols_item)
    m.supported_protocols = supported_protocols_
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
    return m, pos


def _write_consumer_group_classic_member(out: bytearray, m: ConsumerGroupClassicMember, version: int) -> None:
    out += _pack_i(m.session_timeout_ms)
    put_compact_count(out, len(m.supported_protocols))
    for supported_protocols_item in m.supported_protocols:
        _write_classic_protocol(out, supported_protocols_item, version)
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)
