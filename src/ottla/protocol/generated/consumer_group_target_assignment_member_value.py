"""What a member of a consumer group is to have.

Made from schemas/consumer_group_target_assignment_member_value.schema by `python -m ottla.protocol.compile`: change that file.
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
    ZERO_UUID,
    put_compact_count,
    put_numbers,
    put_tags,
    put_uuid,
    read_compact_count,
    read_numbers,
    read_tags,
)

_unpack_u = Struct(">16s").unpack_from

class TopicPartition(Structure):
    __slots__ = ("topic_id", "partitions", "unknown_tags",)

    def __init__(
        self,
        *,
        topic_id: bytes = ZERO_UUID,
        partitions: list[int] = EMPTY_LIST,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.topic_id = topic_id
        self.partitions = [] if partitions is EMPTY_LIST else partitions
        self.unknown_tags = unknown_tags


class ConsumerGroupTargetAssignmentMemberValue(Message):
    __slots__ = ("topic_partitions", "unknown_tags",)
    API_KEY = -1
    MIN_VERSION = 0
    MAX_VERSION = 0
    FLEXIBLE_FROM = 0
    HAS_ARRAYS = True

    def __init__(
        self,
        *,
        topic_partitions: list[TopicPartition] = EMPTY_LIST,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.topic_partitions = [] if topic_partitions is EMPTY_LIST else topic_partitions
        self.unknown_tags = unknown_tags

    def encode_into(self, out: bytearray, version: int) -> None:
        if not 0 <= version <= 0:
            raise unencodable(ConsumerGroupTargetAssignmentMemberValue, version)
        try:
            _write_consumer_group_target_assignment_member_value(out, self, version)
        except ENCODE_FAULTS as fault:
            raise bad_value(ConsumerGroupTargetAssignmentMemberValue, version, fault) from fault

    @classmethod
    def decode(cls, buf: Buffer, version: int, pos: int = 0) -> tuple[ConsumerGroupTargetAssignmentMemberValue, int]:
        if not 0 <= version <= 0:
            raise undecodable(ConsumerGroupTargetAssignmentMemberValue, version)
        try:
            return _read_consumer_group_target_assignment_member_value(buf, pos, len(buf), version)
        except DECODE_FAULTS as fault:
            raise bad_bytes(ConsumerGroupTargetAssignmentMemberValue, version, fault) from fault


def _read_topic_partition(buf: Buffer, pos: int, limit: int, version: int) -> tuple[TopicPartition, int]:
    m = object.__new__(TopicPartition)
    (m.topic_id,) = _unpack_u(buf, pos)
    pos += 16
    count, pos = read_compact_count(buf, pos, limit, 4)
    m.partitions, pos = read_numbers(buf, pos, count, "i", 4)
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
    return m, pos


def _write_topic_partition(out: bytearray, m: TopicPartition, version: int) -> None:
    put_uuid(out, m.topic_id)
    put_compact_count(out, len(m.partitions))
    put_numbers(out, m.partitions, "i")
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)


def _read_consumer_group_target_assignment_member_value(buf: Buffer, pos: int, limit: int, version: int) -> tuple[ConsumerGroupTargetAssignmentMemberValue, int]:
    m = object.__new__(ConsumerGroupTargetAssignmentMemberValue)
    count, pos = read_compact_count(buf, pos, limit, 18)
    topic_partitions_: list[TopicPartition] = []
    for _ in range(count):
        topic_partitions_item, pos = _read_topic_partition(buf, pos, limit, version)
        topic_partitions_.append(topic_partitions_item)
    m.topic_partitions = topic_partitions_
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
    return m, pos


def _write_consumer_group_target_assignment_member_value(out: bytearray, m: ConsumerGroupTargetAssignmentMemberValue, version: int) -> None:
    put_compact_count(out, len(m.topic_partitions))
    for topic_partitions_item in m.topic_partitions:
        _write_topic_partition(out, topic_partitions_item, version)
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)
