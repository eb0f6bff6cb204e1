"""What a member of a consumer group has, what it was asked to give up, and how far it has come.

Made from schemas/consumer_group_current_member_assignment_value.schema by `python -m ottla.protocol.compile`: change that file.
"""

from __future__ import annotations

from collections.abc import Mapping
from struct import Struct

from ottla.protocol.message import Message, Structure, bad_bytes, bad_value, tag_of_other_size, undecodable, unencodable
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
    read_compact_nullable_count,
    read_numbers,
    read_tag,
    read_tag_count,
    read_tags,
)

_pack_iib = Struct(">iib").pack
_unpack_iib = Struct(">iib").unpack_from
_unpack_u = Struct(">16s").unpack_from

class TopicPartitions(Structure):
    __slots__ = ("topic_id", "partitions", "assignment_epochs", "unknown_tags",)

    def __init__(
        self,
        *,
        topic_id: bytes = ZERO_UUID,
        partitions: list[int] = EMPTY_LIST,
        assignment_epochs: list[int] | None = EMPTY_LIST,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.topic_id = topic_id
        self.partitions = [] if partitions is EMPTY_LIST else partitions
        self.assignment_epochs = [] if assignment_epochs is EMPTY_LIST else assignment_epochs
        self.unknown_tags = unknown_tags


class ConsumerGroupCurrentMemberAssignmentValue(Message):
    __slots__ = ("member_epoch", "previous_member_epoch", "state", "assigned_partitions", "partitions_pending_revocation", "unknown_tags",)
    API_KEY = -1
    MIN_VERSION = 0
    MAX_VERSION = 0
    FLEXIBLE_FROM = 0
    HAS_ARRAYS = True

    def __init__(
        self,
        *,
        member_epoch: int = 0,
        previous_member_epoch: int = 0,
        state: int = 0,
        assigned_partitions: list[TopicPartitions] = EMPTY_LIST,
        partitions_pending_revocation: list[TopicPartitions] = EMPTY_LIST,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.member_epoch = member_epoch
        self.previous_member_epoch = previous_member_epoch
        self.state = state
        self.assigned_partitions = [] if assigned_partitions is EMPTY_LIST else assigned_partitions
        self.partitions_pending_revocation = [] if partitions_pending_revocation is EMPTY_LIST else partitions_pending_revocation
        self.unknown_tags = unknown_tags

    def encode_into(self, out: bytearray, version: int) -> None:
        if not 0 <= version <= 0:
            raise unencodable(ConsumerGroupCurrentMemberAssignmentValue, version)
        try:
            _write_consumer_group_current_member_assignment_value(out, self, version)
        except ENCODE_FAULTS as fault:
            raise bad_value(ConsumerGroupCurrentMemberAssignmentValue, version, fault) from fault

    @classmethod
    def decode(cls, buf: Buffer, version: int, pos: int = 0) -> tuple[ConsumerGroupCurrentMemberAssignmentValue, int]:
        if not 0 <= version <= 0:
            raise undecodable(ConsumerGroupCurrentMemberAssignmentValue, version)
        try:
            return _read_consumer_group_current_member_assignment_value(buf, pos, len(buf), version)
        except DECODE_FAULTS as fault:
            raise bad_bytes(ConsumerGroupCurrentMemberAssignmentValue, version, fault) from fault


_TAGS_TOPIC_PARTITIONS = frozenset((0,))


def _read_topic_partitions(buf: Buffer, pos: int, limit: int, version: int) -> tuple[TopicPartitions, int]:
    m = object.__new__(TopicPartitions)
    (m.topic_id,) = _unpack_u(buf, pos)
    pos += 16
    count, pos = read_compact_count(buf, pos, limit, 4)
    m.partitions, pos = read_numbers(buf, pos, count, "i", 4)
    m.assignment_epochs = []
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        pos = _read_topic_partitions_tags(m, buf, pos, limit, version)
    return m, pos


def _read_topic_partitions_tags(m: TopicPartitions, buf: Buffer, pos: int, limit: int, version: int) -> int:
    unknown: dict[int, bytes] = {}
    many, pos = read_tag_count(buf, pos, limit)
    for _ in range(many):
        tag, pos, end = read_tag(buf, pos, limit)
        if tag == 0:
            count, pos = read_compact_nullable_count(buf, pos, end, 4)
            if count < 0:
                m.assignment_epochs = None
            else:
                m.assignment_epochs, pos = read_numbers(buf, pos, count, "i", 4)
        else:
            unknown[tag] = bytes(buf[pos:end])
            pos = end
        if pos != end:
            raise tag_of_other_size(m, tag)
    m.unknown_tags = unknown or NO_TAGS
    return pos


def _write_topic_partitions(out: bytearray, m: TopicPartitions, version: int) -> None:
    put_uuid(out, m.topic_id)
    put_compact_count(out, len(m.partitions))
    put_numbers(out, m.partitions, "i")
    tags: list[tuple[int, bytearray]] = []
    if m.assignment_epochs != []:
        tag = bytearray()
        if m.assignment_epochs is None:
            tag.append(0)
        else:
            put_compact_count(tag, len(m.assignment_epochs))
            put_numbers(tag, m.assignment_epochs, "i")
        tags.append((0, tag))
    if tags or m.unknown_tags:
        put_tags(out, tags, m.unknown_tags, _TAGS_TOPIC_PARTITIONS)
    else:
        out.append(0)


def _read_consumer_group_current_member_assignment_value(buf: Buffer, pos: int, limit: int, version: int) -> tuple[ConsumerGroupCurrentMemberAssignmentValue, int]:
    m = object.__new__(ConsumerGroupCurrentMemberAssignmentValue)
    m.member_epoch, m.previous_member_epoch, m.state = _unpack_iib(buf, pos)
    pos += 9
    count, pos = read_compact_count(buf, pos, limit, 18)
    assigned_partitions_: list[TopicPartitions] = []
    for _ in range(count):
        assigned_partitions_item, pos = _read_topic_partitions(buf, pos, limit, version)
        assigned_partitions_.append(assigned_partitions_item)
    m.assigned_partitions = assigned_partitions_
    count, pos = read_compact_count(buf, pos, limit, 18)
    partitions_pending_revocation_: list[TopicPartitions] = []
    for _ in range(count):
        partitions_pending_revocation_item, pos = _read_topic_partitions(buf, pos, limit, version)
        partitions_pending_revocation_.append(partitions_pending_revocation_item)
    m.partitions_pending_revocation = partitions_pending_revocation_
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
    return m, pos


def _write_consumer_group_current_member_assignment_value(out: bytearray, m: ConsumerGroupCurrentMemberAssignmentValue, version: int) -> None:
    out += _pack_iib(m.member_epoch, m.previous_member_epoch, m.state)
    put_compact_count(out, len(m.assigned_partitions))
    for assigned_partitions_item in m.assigned_partitions:
        _write_topic_partitions(out, assigned_partitions_item, version)
    put_compact_count(out, len(m.partitions_pending_revocation))
    for partitions_pending_revocation_item in m.partitions_pending_revocation:
        _write_topic_partitions(out, partitions_pending_revocation_item, version)
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)
