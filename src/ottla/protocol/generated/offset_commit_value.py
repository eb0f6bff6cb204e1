"""A committed position, as the offsets topic keeps it.

Made from schemas/offset_commit_value.schema by `python -m ottla.protocol.compile`: change that file.
"""

from __future__ import annotations

from collections.abc import Mapping
from struct import Struct

from ottla.protocol.message import Message, bad_bytes, bad_value, not_tagged, tag_of_other_size, undecodable, unencodable
from ottla.protocol.primitives import (
    Buffer,
    DECODE_FAULTS,
    ENCODE_FAULTS,
    NO_TAGS,
    ZERO_UUID,
    put_compact_string,
    put_string,
    put_tags,
    put_uuid,
    read_compact_string,
    read_string,
    read_tag,
    read_tag_count,
)

_pack_i = Struct(">i").pack
_pack_q = Struct(">q").pack
_unpack_i = Struct(">i").unpack_from
_unpack_q = Struct(">q").unpack_from
_unpack_u = Struct(">16s").unpack_from

class OffsetCommitValue(Message):
    __slots__ = ("offset", "leader_epoch", "metadata", "commit_timestamp", "expire_timestamp", "topic_id", "unknown_tags",)
    API_KEY = -1
    MIN_VERSION = 0
    MAX_VERSION = 4
    FLEXIBLE_FROM = 4

    def __init__(
        self,
        *,
        offset: int = 0,
        leader_epoch: int = -1,
        metadata: str = "",
        commit_timestamp: int = 0,
        expire_timestamp: int = -1,
        topic_id: bytes = ZERO_UUID,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.offset = offset
        self.leader_epoch = leader_epoch
        self.metadata = metadata
        self.commit_timestamp = commit_timestamp
        self.expire_timestamp = expire_timestamp
        self.topic_id = topic_id
        self.unknown_tags = unknown_tags

    def encode_into(self, out: bytearray, version: int) -> None:
        if not 0 <= version <= 4:
            raise unencodable(OffsetCommitValue, version)
        try:
            _write_offset_commit_value(out, self, version)
        except ENCODE_FAULTS as fault:
            raise bad_value(OffsetCommitValue, version, fault) from fault

    @classmethod
    def decode(cls, buf: Buffer, version: int, pos: int = 0) -> tuple[OffsetCommitValue, int]:
        if not 0 <= version <= 4:
            raise undecodable(OffsetCommitValue, version)
        try:
            return _read_offset_commit_value(buf, pos, len(buf), version)
        except DECODE_FAULTS as fault:
            raise bad_bytes(OffsetCommitValue, version, fault) from fault


_TAGS_OFFSET_COMMIT_VALUE = frozenset((0,))


def _read_offset_commit_value(buf: Buffer, pos: int, limit: int, version: int) -> tuple[OffsetCommitValue, int]:
    m = object.__new__(OffsetCommitValue)
    (m.offset,) = _unpack_q(buf, pos)
    pos += 8
    if version >= 3:
        (m.leader_epoch,) = _unpack_i(buf, pos)
        pos += 4
    else:
        m.leader_epoch = -1
    if version >= 4:
        m.metadata, pos = read_compact_string(buf, pos, limit)
    else:
        m.metadata, pos = read_string(buf, pos, limit)
    (m.commit_timestamp,) = _unpack_q(buf, pos)
    pos += 8
    if version >= 2:
        m.expire_timestamp = -1
    elif version >= 1:
        (m.expire_timestamp,) = _unpack_q(buf, pos)
        pos += 8
    else:
        m.expire_timestamp = -1
    m.topic_id = ZERO_UUID
    if version >= 4:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            pos = _read_offset_commit_value_tags(m, buf, pos, limit, version)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _read_offset_commit_value_tags(m: OffsetCommitValue, buf: Buffer, pos: int, limit: int, version: int) -> int:
    unknown: dict[int, bytes] = {}
    many, pos = read_tag_count(buf, pos, limit)
    for _ in range(many):
        tag, pos, end = read_tag(buf, pos, limit)
        if tag == 0:
            (m.topic_id,) = _unpack_u(buf, pos)
            pos += 16
        else:
            unknown[tag] = bytes(buf[pos:end])
            pos = end
        if pos != end:
            raise tag_of_other_size(m, tag)
    m.unknown_tags = unknown or NO_TAGS
    return pos


def _write_offset_commit_value(out: bytearray, m: OffsetCommitValue, version: int) -> None:
    out += _pack_q(m.offset)
    if version >= 3:
        out += _pack_i(m.leader_epoch)
    if version >= 4:
        put_compact_string(out, m.metadata)
    else:
        put_string(out, m.metadata)
    out += _pack_q(m.commit_timestamp)
    if version >= 2:
        pass
    elif version >= 1:
        out += _pack_q(m.expire_timestamp)
    if version >= 4:
        tags: list[tuple[int, bytearray]] = []
        if m.topic_id != ZERO_UUID:
            tag = bytearray()
            put_uuid(tag, m.topic_id)
            tags.append((0, tag))
        if tags or m.unknown_tags:
            put_tags(out, tags, m.unknown_tags, _TAGS_OFFSET_COMMIT_VALUE)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)
