"""Whose position in which partition a record of the offsets topic keeps; 0 and 1 are two kinds of record, with one layout.

Made from schemas/offset_commit_key.schema by `python -m ottla.protocol.compile`: change that file.
"""

from __future__ import annotations

from collections.abc import Mapping
from struct import Struct

from ottla.protocol.message import Message, bad_bytes, bad_value, not_tagged, undecodable, unencodable
from ottla.protocol.primitives import (
    Buffer,
    DECODE_FAULTS,
    ENCODE_FAULTS,
    NO_TAGS,
    put_string,
    read_string,
)

_pack_i = Struct(">i").pack
_unpack_i = Struct(">i").unpack_from

class OffsetCommitKey(Message):
    __slots__ = ("group", "topic", "partition", "unknown_tags",)
    API_KEY = -1
    MIN_VERSION = 0
    MAX_VERSION = 1
    FLEXIBLE_FROM = None

    def __init__(
        self,
        *,
        group: str = "",
        topic: str = "",
        partition: int = 0,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.group = group
        self.topic = topic
        self.partition = partition
        self.unknown_tags = unknown_tags

    def encode_into(self, out: bytearray, version: int) -> None:
        if not 0 <= version <= 1:
            raise unencodable(OffsetCommitKey, version)
        try:
            _write_offset_commit_key(out, self, version)
        except ENCODE_FAULTS as fault:
            raise bad_value(OffsetCommitKey, version, fault) from fault

    @classmethod
    def decode(cls, buf: Buffer, version: int, pos: int = 0) -> tuple[OffsetCommitKey, int]:
        if not 0 <= version <= 1:
            raise undecodable(OffsetCommitKey, version)
        try:
            return _read_offset_commit_key(buf, pos, len(buf), version)
        except DECODE_FAULTS as fault:
            raise bad_bytes(OffsetCommitKey, version, fault) from fault


def _read_offset_commit_key(buf: Buffer, pos: int, limit: int, version: int) -> tuple[OffsetCommitKey, int]:
    m = object.__new__(OffsetCommitKey)
    m.group, pos = read_string(buf, pos, limit)
    m.topic, pos = read_string(buf, pos, limit)
    (m.partition,) = _unpack_i(buf, pos)
    pos += 4
    m.unknown_tags = NO_TAGS
    return m, pos


def _write_offset_commit_key(out: bytearray, m: OffsetCommitKey, version: int) -> None:
    put_string(out, m.group)
    put_string(out, m.topic)
    out += _pack_i(m.partition)
    if m.unknown_tags:
        raise not_tagged(m, version)
