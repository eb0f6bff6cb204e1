"""Which partitions a member of a classic consumer group has: the assignment in SyncGroup.

Made from schemas/consumer_protocol_assignment.schema by `python -m ottla.protocol.compile`: change that file.
"""

from __future__ import annotations

from collections.abc import Mapping
from struct import Struct

from ottla.protocol.message import Message, Structure, bad_bytes, bad_value, not_tagged, undecodable, unencodable
from ottla.protocol.primitives import (
    Buffer,
    DECODE_FAULTS,
    EMPTY_LIST,
    ENCODE_FAULTS,
    NO_TAGS,
    put_count,
    put_nullable_bytes,
    put_numbers,
    put_string,
    read_count,
    read_nullable_bytes,
    read_numbers,
    read_string,
)


class AssignedPartitions(Structure):
    __slots__ = ("topic", "partitions", "unknown_tags",)

    def __init__(
        self,
        *,
        topic: str = "",
        partitions: list[int] = EMPTY_LIST,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.topic = topic
        self.partitions = [] if partitions is EMPTY_LIST else partitions
        self.unknown_tags = unknown_tags


class ConsumerProtocolAssignment(Message):
    __slots__ = ("assigned_partitions", "user_data", "unknown_tags",)
    API_KEY = -1
    MIN_VERSION = 0
    MAX_VERSION = 3
    FLEXIBLE_FROM = None
    HAS_ARRAYS = True

    def __init__(
        self,
        *,
        assigned_partitions: list[AssignedPartitions] = EMPTY_LIST,
        user_data: Buffer | None = None,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.assigned_partitions = [] if assigned_partitions is EMPTY_LIST else assigned_partitions
        self.user_data = user_data
        self.unknown_tags = unknown_tags

    def encode_into(self, out: bytearray, version: int) -> None:
        if not 0 <= version <= 3:
            raise unencodable(ConsumerProtocolAssignment, version)
        try:
            _write_consumer_protocol_assignment(out, self, version)
        except ENCODE_FAULTS as fault:
            raise bad_value(ConsumerProtocolAssignment, version, fault) from fault

    @classmethod
    def decode(cls, buf: Buffer, version: int, pos: int = 0) -> tuple[ConsumerProtocolAssignment, int]:
        if not 0 <= version <= 3:
            raise undecodable(ConsumerProtocolAssignment, version)
        try:
            return _read_consumer_protocol_assignment(buf, pos, len(buf), version)
        except DECODE_FAULTS as fault:
            raise bad_bytes(ConsumerProtocolAssignment, version, fault) from fault


def _read_assigned_partitions(buf: Buffer, pos: int, limit: int, version: int) -> tuple[AssignedPartitions, int]:
    m = object.__new__(AssignedPartitions)
    m.topic, pos = read_string(buf, pos, limit)
    count, pos = read_count(buf, pos, limit, 4)
    m.partitions, pos = read_numbers(buf, pos, count, "i", 4)
    m.unknown_tags = NO_TAGS
    return m, pos


def _write_assigned_partitions(out: bytearray, m: AssignedPartitions, version: int) -> None:
    put_string(out, m.topic)
    put_count(out, len(m.partitions))
    put_numbers(out, m.partitions, "i")
    if m.unknown_tags:
        raise not_tagged(m, version)


def _read_consumer_protocol_assignment(buf: Buffer, pos: int, limit: int, version: int) -> tuple[ConsumerProtocolAssignment, int]:
    m = object.__new__(ConsumerProtocolAssignment)
    count, pos = read_count(buf, pos, limit, 6)
    assigned_partitions_: list[AssignedPartitions] = []
    for _ in range(count):
        assigned_partitions_item, pos = _read_assigned_partitions(buf, pos, limit, version)
        assigned_partitions_.append(assigned_partitions_item)
    m.assigned_partitions = assigned_partitions_
    m.user_data, pos = read_nullable_bytes(buf, pos, limit)
    m.unknown_tags = NO_TAGS
    return m, pos


def _write_consumer_protocol_assignment(out: bytearray, m: ConsumerProtocolAssignment, version: int) -> None:
    put_count(out, len(m.assigned_partitions))
    for assigned_partitions_item in m.assigned_partitions:
        _write_assigned_partitions(out, assigned_partitions_item, version)
    put_nullable_bytes(out, m.user_data)
    if m.unknown_tags:
        raise not_tagged(m, version)
