"""For which of a consumer group's epochs its target assignment was computed, and when.

Made from schemas/consumer_group_target_assignment_metadata_value.schema by `python -m ottla.protocol.compile`: change that file.
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

class ConsumerGroupTargetAssignmentMetadataValue(Message):
    __slots__ = ("assignment_epoch", "assignment_timestamp", "unknown_tags",)
    API_KEY = -1
    MIN_VERSION = 0
    MAX_VERSION = 0
    FLEXIBLE_FROM = 0

    def __init__(
        self,
        *,
        assignment_epoch: int = 0,
        assignment_timestamp: int = 0,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.assignment_epoch = assignment_epoch
        self.assignment_timestamp = assignment_timestamp
        self.unknown_tags = unknown_tags

    def encode_into(self, out: bytearray, version: int) -> None:
        if not 0 <= version <= 0:
            raise unencodable(ConsumerGroupTargetAssignmentMetadataValue, version)
        try:
            _write_consumer_group_target_assignment_metadata_value(out, self, version)
        except ENCODE_FAULTS as fault:
            raise bad_value(ConsumerGroupTargetAssignmentMetadataValue, version, fault) from fault

    @classmethod
    def decode(cls, buf: Buffer, version: int, pos: int = 0) -> tuple[ConsumerGroupTargetAssignmentMetadataValue, int]:
        if not 0 <= version <= 0:
            raise undecodable(ConsumerGroupTargetAssignmentMetadataValue, version)
        try:
            return _read_consumer_group_target_assignment_metadata_value(buf, pos, len(buf), version)
        except DECODE_FAULTS as fault:
            raise bad_bytes(ConsumerGroupTargetAssignmentMetadataValue, version, fault) from fault


_TAGS_CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA_VALUE = frozenset((0,))


def _read_consumer_group_target_assignment_metadata_value(buf: Buffer, pos: int, limit: int, version: int) -> tuple[ConsumerGroupTargetAssignmentMetadataValue, int]:
    m = object.__new__(ConsumerGroupTargetAssignmentMetadataValue)
    (m.assignment_epoch,) = _unpack_i(buf, pos)
    pos += 4
    m.assignment_timestamp = 0
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        pos = _read_consumer_group_target_assignment_metadata_value_tags(m, buf, pos, limit, version)
    return m, pos


def _read_consumer_group_target_assignment_metadata_value_tags(m: ConsumerGroupTargetAssignmentMetadataValue, buf: Buffer, pos: int, limit: int, version: int) -> int:
    unknown: dict[int, bytes] = {}
    many, pos = read_tag_count(buf, pos, limit)
    for _ in range(many):
        tag, pos, end = read_tag(buf, pos, limit)
        if tag == 0:
            (m.assignment_timestamp,) = _unpack_q(buf, pos)
            pos += 8
        else:
            unknown[tag] = bytes(buf[pos:end])
            pos = end
        if pos != end:
            raise tag_of_other_size(m, tag)
    m.unknown_tags = unknown or NO_TAGS
    return pos


def _write_consumer_group_target_assignment_metadata_value(out: bytearray, m: ConsumerGroupTargetAssignmentMetadataValue, version: int) -> None:
    out += _pack_i(m.assignment_epoch)
    tags: list[tuple[int, bytearray]] = []
    if m.assignment_timestamp != 0:
        tag = bytearray()
        tag += _pack_q(m.assignment_timestamp)
        tags.append((0, tag))
    if tags or m.unknown_tags:
        put_tags(out, tags, m.unknown_tags, _TAGS_CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA_VALUE)
    else:
        out.append(0)
