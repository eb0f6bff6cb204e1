"""Topics and their partitions, page by page.

Made from schemas/describe_topic_partitions.schema by `python -m ottla.protocol.compile`: change that file.
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
    uuid_bytes,
)

_pack_h = Struct(">h").pack
_pack_hiii = Struct(">hiii").pack
_pack_i = Struct(">i").pack
_pack_ut = Struct(">16s?").pack
_unpack_h = Struct(">h").unpack_from
_unpack_hiii = Struct(">hiii").unpack_from
_unpack_i = Struct(">i").unpack_from
_unpack_ut = Struct(">16s?").unpack_from

class TopicRequest(Structure):
    __slots__ = ("name", "unknown_tags",)

    def __init__(
        self,
        *,
        name: str = "",
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.name = name
        self.unknown_tags = unknown_tags


class DescribeTopicPartitionsRequest(Message):
    __slots__ = ("topics", "response_partition_limit", "cursor", "unknown_tags",)
    API_KEY = 75
    MIN_VERSION = 0
    MAX_VERSION = 0
    FLEXIBLE_FROM = 0
    HAS_ARRAYS = True

    def __init__(
        self,
        *,
        topics: list[TopicRequest] = EMPTY_LIST,
        response_partition_limit: int = 2000,
        cursor: Cursor | None = None,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.topics = [] if topics is EMPTY_LIST else topics
        self.response_partition_limit = response_partition_limit
        self.cursor = cursor
        self.unknown_tags = unknown_tags

    def encode_into(self, out: bytearray, version: int) -> None:
        if not 0 <= version <= 0:
            raise unencodable(DescribeTopicPartitionsRequest, version)
        try:
            _write_describe_topic_partitions_request(out, self, version)
        except ENCODE_FAULTS as fault:
            raise bad_value(DescribeTopicPartitionsRequest, version, fault) from fault

    @classmethod
    def decode(cls, buf: Buffer, version: int, pos: int = 0) -> tuple[DescribeTopicPartitionsRequest, int]:
        if not 0 <= version <= 0:
            raise undecodable(DescribeTopicPartitionsRequest, version)
        try:
            return _read_describe_topic_partitions_request(buf, pos, len(buf), version)
        except DECODE_FAULTS as fault:
            raise bad_bytes(DescribeTopicPartitionsRequest, version, fault) from fault


class DescribeTopicPartitionsResponsePartition(Structure):
    __slots__ = ("error_code", "partition_index", "leader_id", "leader_epoch", "replica_nodes", "isr_nodes", "eligible_leader_replicas", "last_known_elr", "offline_replicas", "unknown_tags",)

    def __init__(
        self,
        *,
        error_code: int = 0,
        partition_index: int = 0,
        leader_id: int = 0,
        leader_epoch: int = -1,
        replica_nodes: list[int] = EMPTY_LIST,
        isr_nodes: list[int] = EMPTY_LIST,
        eligible_leader_replicas: list[int] | None = None,
        last_known_elr: list[int] | None = None,
        offline_replicas: list[int] = EMPTY_LIST,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.error_code = error_code
        self.partition_index = partition_index
        self.leader_id = leader_id
        self.leader_epoch = leader_epoch
        self.replica_nodes = [] if replica_nodes is EMPTY_LIST else replica_nodes
        self.isr_nodes = [] if isr_nodes is EMPTY_LIST else isr_nodes
        self.eligible_leader_replicas = eligible_leader_replicas
        self.last_known_elr = last_known_elr
        self.offline_replicas = [] if offline_replicas is EMPTY_LIST else offline_replicas
        self.unknown_tags = unknown_tags


class DescribeTopicPartitionsResponseTopic(Structure):
    __slots__ = ("error_code", "name", "topic_id", "is_internal", "partitions", "topic_authorized_operations", "unknown_tags",)

    def __init__(
        self,
        *,
        error_code: int = 0,
        name: str | None = "",
        topic_id: bytes = ZERO_UUID,
        is_internal: bool = False,
        partitions: list[DescribeTopicPartitionsResponsePartition] = EMPTY_LIST,
        topic_authorized_operations: int = -2147483648,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.error_code = error_code
        self.name = name
        self.topic_id = topic_id
        self.is_internal = is_internal
        self.partitions = [] if partitions is EMPTY_LIST else partitions
        self.topic_authorized_operations = topic_authorized_operations
        self.unknown_tags = unknown_tags


class Cursor(Structure):
    __slots__ = ("topic_name", "partition_index", "unknown_tags",)

    def __init__(
        self,
        *,
        topic_name: str = "",
        partition_index: int = 0,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.topic_name = topic_name
        self.partition_index = partition_index
        self.unknown_tags = unknown_tags


class DescribeTopicPartitionsResponse(Message):
    __slots__ = ("throttle_time_ms", "topics", "next_cursor", "unknown_tags",)
    API_KEY = 75
    MIN_VERSION = 0
    MAX_VERSION = 0
    FLEXIBLE_FROM = 0
    HAS_ARRAYS = True

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        topics: list[DescribeTopicPartitionsResponseTopic] = EMPTY_LIST,
        next_cursor: Cursor | None = None,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.topics = [] if topics is EMPTY_LIST else topics
        self.next_cursor = next_cursor
        self.unknown_tags = unknown_tags

    def encode_into(self, out: bytearray, version: int) -> None:
        if not 0 <= version <= 0:
            raise unencodable(DescribeTopicPartitionsResponse, version)
        try:
            _write_describe_topic_partitions_response(out, self, version)
        except ENCODE_FAULTS as fault:
            raise bad_value(DescribeTopicPartitionsResponse, version, fault) from fault

    @classmethod
    def decode(cls, buf: Buffer, version: int, pos: int = 0) -> tuple[DescribeTopicPartitionsResponse, int]:
        if not 0 <= version <= 0:
            raise undecodable(DescribeTopicPartitionsResponse, version)
        try:
            return _read_describe_topic_partitions_response(buf, pos, len(buf), version)
        except DECODE_FAULTS as fault:
            raise bad_bytes(DescribeTopicPartitionsResponse, version, fault) from fault


def _read_topic_request(buf: Buffer, pos: int, limit: int, version: int) -> tuple[TopicRequest, int]:
    m = object.__new__(TopicRequest)
    m.name, pos = read_compact_string(buf, pos, limit)
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
    return m, pos


def _write_topic_request(out: bytearray, m: TopicRequest, version: int) -> None:
    put_compact_string(out, m.name)
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)


def _read_describe_topic_partitions_request(buf: Buffer, pos: int, limit: int, version: int) -> tuple[DescribeTopicPartitionsRequest, int]:
    m = object.__new__(DescribeTopicPartitionsRequest)
    count, pos = read_compact_count(buf, pos, limit, 2)
    topics_: list[TopicRequest] = []
    for _ in range(count):
        topics_item, pos = _read_topic_request(buf, pos, limit, version)
        topics_.append(topics_item)
    m.topics = topics_
    (m.response_partition_limit,) = _unpack_i(buf, pos)
    pos += 4
    pos += 1
    if buf[pos - 1] > 0x7F:
        m.cursor = None
    else:
        m.cursor, pos = _read_cursor(buf, pos, limit, version)
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
    return m, pos


def _write_describe_topic_partitions_request(out: bytearray, m: DescribeTopicPartitionsRequest, version: int) -> None:
    put_compact_count(out, len(m.topics))
    for topics_item in m.topics:
        _write_topic_request(out, topics_item, version)
    out += _pack_i(m.response_partition_limit)
    if m.cursor is None:
        out.append(0xFF)
    else:
        out.append(1)
        _write_cursor(out, m.cursor, version)
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)


def _read_describe_topic_partitions_response_partition(buf: Buffer, pos: int, limit: int, version: int) -> tuple[DescribeTopicPartitionsResponsePartition, int]:
    m = object.__new__(DescribeTopicPartitionsResponsePartition)
    m.error_code, m.partition_index, m.leader_id, m.leader_epoch = _unpack_hiii(buf, pos)
    pos += 14
    count, pos = read_compact_count(buf, pos, limit, 4)
    m.replica_nodes, pos = read_numbers(buf, pos, count, "i", 4)
    count, pos = read_compact_count(buf, pos, limit, 4)
    m.isr_nodes, pos = read_numbers(buf, pos, count, "i", 4)
    count, pos = read_compact_nullable_count(buf, pos, limit, 4)
    if count < 0:
        m.eligible_leader_replicas = None
    else:
        m.eligible_leader_replicas, pos = read_numbers(buf, pos, count, "i", 4)
    count, pos = read_compact_nullable_count(buf, pos, limit, 4)
    if count < 0:
        m.last_known_elr = None
    else:
        m.last_known_elr, pos = read_numbers(buf, pos, count, "i", 4)
    count, pos = read_compact_count(buf, pos, limit, 4)
    m.offline_replicas, pos = read_numbers(buf, pos, count, "i", 4)
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
    return m, pos


def _write_describe_topic_partitions_response_partition(out: bytearray, m: DescribeTopicPartitionsResponsePartition, version: int) -> None:
    out += _pack_hiii(m.error_code, m.partition_index, m.leader_id, m.leader_epoch)
    put_compact_count(out, len(m.replica_nodes))
    put_numbers(out, m.replica_nodes, "i")
    put_compact_count(out, len(m.isr_nodes))
    put_numbers(out, m.isr_nodes, "i")
    if m.eligible_leader_replicas is None:
        out.append(0)
    else:
        put_compact_count(out, len(m.eligible_leader_replicas))
        put_numbers(out, m.eligible_leader_replicas, "i")
    if m.last_known_elr is None:
        out.append(0)
    else:
        put_compact_count(out, len(m.last_known_elr))
        put_numbers(out, m.last_known_elr, "i")
    put_compact_count(out, len(m.offline_replicas))
    put_numbers(out, m.offline_replicas, "i")
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)


def _read_describe_topic_partitions_response_topic(buf: Buffer, pos: int, limit: int, version: int) -> tuple[DescribeTopicPartitionsResponseTopic, int]:
    m = object.__new__(DescribeTopicPartitionsResponseTopic)
    (m.error_code,) = _unpack_h(buf, pos)
    pos += 2
    m.name, pos = read_compact_nullable_string(buf, pos, limit)
    m.topic_id, m.is_internal = _unpack_ut(buf, pos)
    pos += 17
    count, pos = read_compact_count(buf, pos, limit, 20)
    partitions_: list[DescribeTopicPartitionsResponsePartition] = []
    for _ in range(count):
        partitions_item, pos = _read_describe_topic_partitions_response_partition(buf, pos, limit, version)
        partitions_.append(partitions_item)
    m.partitions = partitions_
    (m.topic_authorized_operations,) = _unpack_i(buf, pos)
    pos += 4
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
    return m, pos


def _write_describe_topic_partitions_response_topic(out: bytearray, m: DescribeTopicPartitionsResponseTopic, version: int) -> None:
    out += _pack_h(m.error_code)
    put_compact_nullable_string(out, m.name)
    out += _pack_ut(uuid_bytes(m.topic_id), m.is_internal)
    put_compact_count(out, len(m.partitions))
    for partitions_item in m.partitions:
        _write_describe_topic_partitions_response_partition(out, partitions_item, version)
    out += _pack_i(m.topic_authorized_operations)
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)


def _read_cursor(buf: Buffer, pos: int, limit: int, version: int) -> tuple[Cursor, int]:
    m = object.__new__(Cursor)
    m.topic_name, pos = read_compact_string(buf, pos, limit)
    (m.partition_index,) = _unpack_i(buf, pos)
    pos += 4
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
    return m, pos


def _write_cursor(out: bytearray, m: Cursor, version: int) -> None:
    put_compact_string(out, m.topic_name)
    out += _pack_i(m.partition_index)
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)


def _read_describe_topic_partitions_response(buf: Buffer, pos: int, limit: int, version: int) -> tuple[DescribeTopicPartitionsResponse, int]:
    m = object.__new__(DescribeTopicPartitionsResponse)
    (m.throttle_time_ms,) = _unpack_i(buf, pos)
    pos += 4
    count, pos = read_compact_count(buf, pos, limit, 26)
    topics_: list[DescribeTopicPartitionsResponseTopic] = []
    for _ in range(count):
        topics_item, pos = _read_describe_topic_partitions_response_topic(buf, pos, limit, version)
        topics_.append(topics_item)
    m.topics = topics_
    pos += 1
    if buf[pos - 1] > 0x7F:
        m.next_cursor = None
    else:
        m.next_cursor, pos = _read_cursor(buf, pos, limit, version)
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
    return m, pos


def _write_describe_topic_partitions_response(out: bytearray, m: DescribeTopicPartitionsResponse, version: int) -> None:
    out += _pack_i(m.throttle_time_ms)
    put_compact_count(out, len(m.topics))
    for topics_item in m.topics:
        _write_describe_topic_partitions_response_topic(out, topics_item, version)
    if m.next_cursor is None:
        out.append(0xFF)
    else:
        out.append(1)
        _write_cursor(out, m.next_cursor, version)
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)
