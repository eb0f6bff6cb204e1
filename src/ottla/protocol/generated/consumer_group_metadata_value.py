"""The epoch of a consumer group, and a hash of the topics that it was reached with.

Made from schemas/consumer_group_metadata_value.schema by `python -m ottla.protocol.compile`: change that file.
"""

from __future__ import annotations

from collections.abc import Mapping
from struct import Struct

from ottla.protocol.message import Message, bad_bytes, bad_value, tag_of_other_size, undecodable, unencodable
from ottla.protocol.primitives import (
    Buffer,
    DECODE_FAULTS,
    ENCODE_FAULTS,
    NO_TAGS,
    put_tags,
    read_tag,
    read_tag_count,
)

_pack_i = Struct(">i").pack
_pack_q = Struct(">q").pack
_unpack_i = Struct(">i").unpack_from
_unpack_q = Struct(">q").unpack_from

class ConsumerGroupMetadataValue(Message):
    __slots__ = ("epoch", "metadata_hash", "unknown_tags",)
    API_KEY = -1
    MIN_VERSION = 0
    MAX_VERSION = 0
    FLEXIBLE_FROM = 0

    def __init__(
        self,
        *,
        epoch: int = 0,
        metadata_hash: int = 0,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.epoch = epoch
        self.metadata_hash = metadata_hash
        self.unknown_tags = unknown_tags

    def encode_into(self, out: bytearray, version: int) -> None:
        if not 0 <= version <= 0:
            raise unencodable(ConsumerGroupMetadataValue, version)
        try:
            _write_consumer_group_metadata_value(out, self, version)
        except ENCODE_FAULTS as fault:
            raise bad_value(ConsumerGroupMetadataValue, version, fault) from fault

    @classmethod
    def decode(cls, buf: Buffer, version: int, pos: int = 0) -> tuple[ConsumerGroupMetadataValue, int]:
        if not 0 <= version <= 0:
            raise undecodable(ConsumerGroupMetadataValue, version)
        try:
            return _read_consumer_group_metadata_value(buf, pos, len(buf), version)
        except DECODE_FAULTS as fault:
            raise bad_bytes(ConsumerGroupMetadataValue, version, fault) from fault


_TAGS_CONSUMER_GROUP_METADATA_VALUE = frozenset((0,))


def _read_consumer_group_metadata_value(buf: Buffer, pos: int, limit: int, version: int) -> tuple[ConsumerGroupMetadataValue, int]:
    m = object.__new__(ConsumerGroupMetadataValue)
    (m.epoch,) = _unpack_i(buf, pos)
    pos += 4
    m.metadata_hash = 0
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        pos = _read_consumer_group_metadata_value_tags(m, buf, pos, limit, version)
    return m, pos


def _read_consumer_group_metadata_value_tags(m: ConsumerGroupMetadataValue, buf: Buffer, pos: int, limit: int, version: int) -> int:
    unknown: dict[int, bytes] = {}
    many, pos = read_tag_count(buf, pos, limit)
    for _ in range(many):
        tag, pos, end = read_tag(buf, pos, limit)
        if tag == 0:
            (m.metadata_hash,) = _unpack_q(buf, pos)
            pos += 8
        else:
            unknown[tag] = bytes(buf[pos:end])
            pos = end
        if pos != end:
            raise tag_of_other_size(m, tag)
    m.unknown_tags = unknown or NO_TAGS
    return pos


def _write_consumer_group_metadata_value(out: bytearray, m: ConsumerGroupMetadataValue, version: int) -> None:
    out += _pack_i(m.epoch)
    tags: list[tuple[int, bytearray]] = []
    if m.metadata_hash != 0:
        tag = bytearray()
        tag += _pack_q(m.metadata_hash)
        tags.append((0, tag))
    if tags or m.unknown_tags:
        put_tags(out, tags, m.unknown_tags, _TAGS_CONSUMER_GROUP_METADATA_VALUE)
    else:
        out.append(0)
