"""The moves under way.

Made from schemas/list_partition_reassignments.schema by `python -m ottla.protocol.compile`: change that file.
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
    put_compact_count,
    put_compact_nullable_string,
    put_compact_string,
    put_numbers,
    put_tags,
    read_compact_count,
    read_compact_nullable_count,
    read_compact_nullable_string,
    read_compact_string,
    read_numbers,
    read_tags,
    shortened,
)

_pack_i = Struct(">i").pack
_pack_ih = Struct(">ih").pack
_unpack_i = Struct(">i").unpack_from
_unpack_ih = Struct(">ih").unpack_from

class ListPartitionReassignmentsTopics(Structure):
    __slots__ = ("name", "partition_indexes", "unknown_tags",)

    def __init__(
        self,
        *,
        name: str = "",
        partition_indexes: list[int] = EMPTY_LIST,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.name = name
        self.partition_indexes = [] if partition_indexes is EMPTY_LIST else partition_indexes
        self.unknown_tags = unknown_tags


class ListPartitionReassignmentsRequest(Message):
    __slots__ = ("timeout_ms", "topics", "unknown_tags",)
    API_KEY = 46
    MIN_VERSION = 0
    MAX_VERSION = 0
    FLEXIBLE_FROM = 0
    HAS_ARRAYS = True

    def __init__(
        self,
        *,
        timeout_ms: int = 60000,
        topics: list[ListPartitionReassignmentsTopics] | None = None,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.timeout_ms = timeout_ms
        self.topics = topics
        self.unknown_tags = unknown_tags

    def encode_into(self, out: bytearray, version: int) -> None:
        if not 0 <= version <= 0:
            raise unencodable(ListPartitionReassignmentsRequest, version)
        try:
            _write_list_partition_reassignments_request(out, self, version)
        except ENCODE_FAULTS as fault:
            raise bad_value(ListPartitionReassignmentsRequest, version, fault) from fault

    @classmethod
    def decode(cls, buf: Buffer, version: int, pos: int = 0) -> tuple[ListPartitionReassignmentsRequest, int]:
        if not 0 <= version <= 0:
            raise undecodable(ListPartitionReassignmentsRequest, version)
        try:
            return _read_list_partition_reassignments_request(buf, pos, len(buf), version)
        except DECODE_FAULTS as fault:
            raise bad_bytes(ListPartitionReassignmentsRequest, version, fault) from fault


class OngoingPartitionReassignment(Structure):
    __slots__ = ("partition_index", "replicas", "adding_replicas", "removing_replicas", "unknown_tags",)

    def __init__(
        self,
        *,
        partition_index: int = 0,
        replicas: list[int] = EMPTY_LIST,
        adding_replicas: list[int] = EMPTY_LIST,
        removing_replicas: list[int] = EMPTY_LIST,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.partition_index = partition_index
        self.replicas = [] if replicas is EMPTY_LIST else replicas
        self.adding_replicas = [] if adding_replicas is EMPTY_LIST else adding_replicas
        self.removing_replicas = [] if removing_replicas is EMPTY_LIST else removing_replicas
        self.unknown_tags = unknown_tags


class OngoingTopicReassignment(Structure):
    __slots__ = ("name", "partitions", "unknown_tags",)

    def __init__(
        self,
        *,
        name: str = "",
        partitions: list[OngoingPartitionReassignment] = EMPTY_LIST,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.name = name
        self.partitions = [] if partitions is EMPTY_LIST else partitions
        self.unknown_tags = unknown_tags


class ListPartitionReassignmentsResponse(Message):
    __slots__ = ("throttle_time_ms", "error_code", "error_message", "topics", "unknown_tags",)
    API_KEY = 46
    MIN_VERSION = 0
    MAX_VERSION = 0
    FLEXIBLE_FROM = 0
    HAS_ARRAYS = True

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = "",
        topics: list[OngoingTopicReassignment] = EMPTY_LIST,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
        self.topics = [] if topics is EMPTY_LIST else topics
        self.unknown_tags = unknown_tags

    def encode_into(self, out: bytearray, version: int) -> None:
        if not 0 <= version <= 0:
            raise unencodable(ListPartitionReassignmentsResponse, version)
        try:
            _write_list_partition_reassignments_response(out, self, version)
        except ENCODE_FAULTS as fault:
            raise bad_value(ListPartitionReassignmentsResponse, version, fault) from fault

    @classmethod
    def decode(cls, buf: Buffer, version: int, pos: int = 0) -> tuple[ListPartitionReassignmentsResponse, int]:
        if not 0 <= version <= 0:
            raise undecodable(ListPartitionReassignmentsResponse, version)
        try:
            return _read_list_partition_reassignments_response(buf, pos, len(buf), version)
        except DECODE_FAULTS as fault:
            raise bad_bytes(ListPartitionReassignmentsResponse, version, fault) from fault


def _read_list_partition_reassignments_topics(buf: Buffer, pos: int, limit: int, version: int) -> tuple[ListPartitionReassignmentsTopics, int]:
    m = object.__new__(ListPartitionReassignmentsTopics)
    m.name, pos = read_compact_string(buf, pos, limit)
    count, pos = read_compact_count(buf, pos, limit, 4)
    m.partition_indexes, pos = read_numbers(buf, pos, count, "i", 4)
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
    return m, pos


def _write_list_partition_reassignments_topics(out: bytearray, m: ListPartitionReassignmentsTopics, version: int) -> None:
    put_compact_string(out, m.name)
    put_compact_count(out, len(m.partition_indexes))
    put_numbers(out, m.partition_indexes, "i")
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)


def _read_list_partition_reassignments_request(buf: Buffer, pos: int, limit: int, version: int) -> tuple[ListPartitionReassignmentsRequest, int]:
    m = object.__new__(ListPartitionReassignmentsRequest)
    (m.timeout_ms,) = _unpack_i(buf, pos)
    pos += 4
    count, pos = read_compact_nullable_count(buf, pos, limit, 3)
    if count < 0:
        m.topics = None
    else:
        topics_: list[ListPartitionReassignmentsTopics] = []
        for _ in range(count):
            topics_item, pos = _read_list_partition_reassignments_topics(buf, pos, limit, version)
            topics_.append(topics_item)
        m.topics = topics_
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
    return m, pos


def _write_list_partition_reassignments_request(out: bytearray, m: ListPartitionReassignmentsRequest, version: int) -> None:
    out += _pack_i(m.timeout_ms)
    if m.topics is None:
        out.append(0)
    else:
        put_compact_count(out, len(m.topics))
        for topics_item in m.topics:
            _write_list_partition_reassignments_topics(out, topics_item, version)
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)


def _read_ongoing_partition_reassignment(buf: Buffer, pos: int, limit: int, version: int) -> tuple[OngoingPartitionReassignment, int]:
    m = object.__new__(OngoingPartitionReassignment)
    (m.partition_index,) = _unpack_i(buf, pos)
    pos += 4
    count, pos = read_compact_count(buf, pos, limit, 4)
    m.replicas, pos = read_numbers(buf, pos, count, "i", 4)
    count, pos = read_compact_count(buf, pos, limit, 4)
    m.adding_replicas, pos = read_numbers(buf, pos, count, "i", 4)
    count, pos = read_compact_count(buf, pos, limit, 4)
    m.removing_replicas, pos = read_numbers(buf, pos, count, "i", 4)
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
    return m, pos


def _write_ongoing_partition_reassignment(out: bytearray, m: OngoingPartitionReassignment, version: int) -> None:
    out += _pack_i(m.partition_index)
    put_compact_count(out, len(m.replicas))
    put_numbers(out, m.replicas, "i")
    put_compact_count(out, len(m.adding_replicas))
    put_numbers(out, m.adding_replicas, "i")
    put_compact_count(out, len(m.removing_replicas))
    put_numbers(out, m.removing_replicas, "i")
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)


def _read_ongoing_topic_reassignment(buf: Buffer, pos: int, limit: int, version: int) -> tuple[OngoingTopicReassignment, int]:
    m = object.__new__(OngoingTopicReassignment)
    m.name, pos = read_compact_string(buf, pos, limit)
    count, pos = read_compact_count(buf, pos, limit, 8)
    partitions_: list[OngoingPartitionReassignment] = []
    for _ in range(count):
        partitions_item, pos = _read_ongoing_partition_reassignment(buf, pos, limit, version)
        partitions_.append(partitions_item)
    m.partitions = partitions_
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
    return m, pos


def _write_ongoing_topic_reassignment(out: bytearray, m: OngoingTopicReassignment, version: int) -> None:
    put_compact_string(out, m.name)
    put_compact_count(out, len(m.partitions))
    for partitions_item in m.partitions:
        _write_ongoing_partition_reassignment(out, partitions_item, version)
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)


def _read_list_partition_reassignments_response(buf: Buffer, pos: int, limit: int, version: int) -> tuple[ListPartitionReassignmentsResponse, int]:
    m = object.__new__(ListPartitionReassignmentsResponse)
    m.throttle_time_ms, m.error_code = _unpack_ih(buf, pos)
    pos += 6
    m.error_message, pos = read_compact_nullable_string(buf, pos, limit)
    count, pos = read_compact_count(buf, pos, limit, 3)
    topics_: list[OngoingTopicReassignment] = []
    for _ in range(count):
        topics_item, pos = _read_ongoing_topic_reassignment(buf, pos, limit, version)
        topics_.append(topics_item)
    m.topics = topics_
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
    return m, pos


def _write_list_partition_reassignments_response(out: bytearray, m: ListPartitionReassignmentsResponse, version: int) -> None:
    out += _pack_ih(m.throttle_time_ms, m.error_code)
    put_compact_nullable_string(out, shortened(m.error_message))
    put_compact_count(out, len(m.topics))
    for topics_item in m.topics:
        _write_ongoing_topic_reassignment(out, topics_item, version)
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)
