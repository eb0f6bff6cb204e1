"""The producers that are active in partitions.

Made from schemas/describe_producers.schema by `python -m ottla.protocol.compile`: change that file.
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
    read_compact_nullable_string,
    read_compact_string,
    read_numbers,
    read_tags,
    shortened,
)

_pack_i = Struct(">i").pack
_pack_ih = Struct(">ih").pack
_pack_qiiqiq = Struct(">qiiqiq").pack
_unpack_i = Struct(">i").unpack_from
_unpack_ih = Struct(">ih").unpack_from
_unpack_qiiqiq = Struct(">qiiqiq").unpack_from

class TopicRequest(Structure):
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


class DescribeProducersRequest(Message):
    __slots__ = ("topics", "unknown_tags",)
    API_KEY = 61
    MIN_VERSION = 0
    MAX_VERSION = 0
    FLEXIBLE_FROM = 0
    HAS_ARRAYS = True

    def __init__(
        self,
        *,
        topics: list[TopicRequest] = EMPTY_LIST,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.topics = [] if topics is EMPTY_LIST else topics
        self.unknown_tags = unknown_tags

    def encode_into(self, out: bytearray, version: int) -> None:
        if not 0 <= version <= 0:
            raise unencodable(DescribeProducersRequest, version)
        try:
            _write_describe_producers_request(out, self, version)
        except ENCODE_FAULTS as fault:
            raise bad_value(DescribeProducersRequest, version, fault) from fault

    @classmethod
    def decode(cls, buf: Buffer, version: int, pos: int = 0) -> tuple[DescribeProducersRequest, int]:
        if not 0 <= version <= 0:
            raise undecodable(DescribeProducersRequest, version)
        try:
            return _read_describe_producers_request(buf, pos, len(buf), version)
        except DECODE_FAULTS as fault:
            raise bad_bytes(DescribeProducersRequest, version, fault) from fault


class ProducerState(Structure):
    __slots__ = ("producer_id", "producer_epoch", "last_sequence", "last_timestamp", "coordinator_epoch", "current_txn_start_offset", "unknown_tags",)

    def __init__(
        self,
        *,
        producer_id: int = 0,
        producer_epoch: int = 0,
        last_sequence: int = -1,
        last_timestamp: int = -1,
        coordinator_epoch: int = 0,
        current_txn_start_offset: int = -1,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.last_sequence = last_sequence
        self.last_timestamp = last_timestamp
        self.coordinator_epoch = coordinator_epoch
        self.current_txn_start_offset = current_txn_start_offset
        self.unknown_tags = unknown_tags


class PartitionResponse(Structure):
    __slots__ = ("partition_index", "error_code", "error_message", "active_producers", "unknown_tags",)

    def __init__(
        self,
        *,
        partition_index: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        active_producers: list[ProducerState] = EMPTY_LIST,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.partition_index = partition_index
        self.error_code = error_code
        self.error_message = error_message
        self.active_producers = [] if active_producers is EMPTY_LIST else active_producers
        self.unknown_tags = unknown_tags


class TopicResponse(Structure):
    __slots__ = ("name", "partitions", "unknown_tags",)

    def __init__(
        self,
        *,
        name: str = "",
        partitions: list[PartitionResponse] = EMPTY_LIST,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.name = name
        self.partitions = [] if partitions is EMPTY_LIST else partitions
        self.unknown_tags = unknown_tags


class DescribeProducersResponse(Message):
    __slots__ = ("throttle_time_ms", "topics", "unknown_tags",)
    API_KEY = 61
    MIN_VERSION = 0
    MAX_VERSION = 0
    FLEXIBLE_FROM = 0
    HAS_ARRAYS = True

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        topics: list[TopicResponse] = EMPTY_LIST,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.topics = [] if topics is EMPTY_LIST else topics
        self.unknown_tags = unknown_tags

    def encode_into(self, out: bytearray, version: int) -> None:
        if not 0 <= version <= 0:
            raise unencodable(DescribeProducersResponse, version)
        try:
            _write_describe_producers_response(out, self, version)
        except ENCODE_FAULTS as fault:
            raise bad_value(DescribeProducersResponse, version, fault) from fault

    @classmethod
    def decode(cls, buf: Buffer, version: int, pos: int = 0) -> tuple[DescribeProducersResponse, int]:
        if not 0 <= version <= 0:
            raise undecodable(DescribeProducersResponse, version)
        try:
            return _read_describe_producers_response(buf, pos, len(buf), version)
        except DECODE_FAULTS as fault:
            raise bad_bytes(DescribeProducersResponse, version, fault) from fault


def _read_topic_request(buf: Buffer, pos: int, limit: int, version: int) -> tuple[TopicRequest, int]:
    m = object.__new__(TopicRequest)
    m.name, pos = read_compact_string(buf, pos, limit)
    count, pos = read_compact_count(buf, pos, limit, 4)
    m.partition_indexes, pos = read_numbers(buf, pos, count, "i", 4)
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
    return m, pos


def _write_topic_request(out: bytearray, m: TopicRequest, version: int) -> None:
    put_compact_string(out, m.name)
    put_compact_count(out, len(m.partition_indexes))
    put_numbers(out, m.partition_indexes, "i")
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)


def _read_describe_producers_request(buf: Buffer, pos: int, limit: int, version: int) -> tuple[DescribeProducersRequest, int]:
    m = object.__new__(DescribeProducersRequest)
    count, pos = read_compact_count(buf, pos, limit, 3)
    topics_: list[TopicRequest] = []
    for _ in range(count):
        topics_item, pos = _read_topic_request(buf, pos, limit, version)
        topics_.append(topics_item)
    m.topics = topics_
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
    return m, pos


def _write_describe_producers_request(out: bytearray, m: DescribeProducersRequest, version: int) -> None:
    put_compact_count(out, len(m.topics))
    for topics_item in m.topics:
        _write_topic_request(out, topics_item, version)
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)


def _read_producer_state(buf: Buffer, pos: int, limit: int, version: int) -> tuple[ProducerState, int]:
    m = object.__new__(ProducerState)
    m.producer_id, m.producer_epoch, m.last_sequence, m.last_timestamp, m.coordinator_epoch, m.current_txn_start_offset = _unpack_qiiqiq(buf, pos)
    pos += 36
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
    return m, pos


def _write_producer_state(out: bytearray, m: ProducerState, version: int) -> None:
    out += _pack_qiiqiq(m.producer_id, m.producer_epoch, m.last_sequence, m.last_timestamp, m.coordinator_epoch, m.current_txn_start_offset)
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)


def _read_partition_response(buf: Buffer, pos: int, limit: int, version: int) -> tuple[PartitionResponse, int]:
    m = object.__new__(PartitionResponse)
    m.partition_index, m.error_code = _unpack_ih(buf, pos)
    pos += 6
    m.error_message, pos = read_compact_nullable_string(buf, pos, limit)
    count, pos = read_compact_count(buf, pos, limit, 37)
    active_producers_: list[ProducerState] = []
    for _ in range(count):
        active_producers_item, pos = _read_producer_state(buf, pos, limit, version)
        active_producers_.append(active_producers_item)
    m.active_producers = active_producers_
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
    return m, pos


def _write_partition_response(out: bytearray, m: PartitionResponse, version: int) -> None:
    out += _pack_ih(m.partition_index, m.error_code)
    put_compact_nullable_string(out, shortened(m.error_message))
    put_compact_count(out, len(m.active_producers))
    for active_producers_item in m.active_producers:
        _write_producer_state(out, active_producers_item, version)
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)


def _read_topic_response(buf: Buffer, pos: int, limit: int, version: int) -> tuple[TopicResponse, int]:
    m = object.__new__(TopicResponse)
    m.name, pos = read_compact_string(buf, pos, limit)
    count, pos = read_compact_count(buf, pos, limit, 9)
    partitions_: list[PartitionResponse] = []
    for _ in range(count):
        partitions_item, pos = _read_partition_response(buf, pos, limit, version)
        partitions_.append(partitions_item)
    m.partitions = partitions_
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
    return m, pos


def _write_topic_response(out: bytearray, m: TopicResponse, version: int) -> None:
    put_compact_string(out, m.name)
    put_compact_count(out, len(m.partitions))
    for partitions_item in m.partitions:
        _write_partition_response(out, partitions_item, version)
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)


def _read_describe_producers_response(buf: Buffer, pos: int, limit: int, version: int) -> tuple[DescribeProducersResponse, int]:
    m = object.__new__(DescribeProducersResponse)
    (m.throttle_time_ms,) = _unpack_i(buf, pos)
    pos += 4
    count, pos = read_compact_count(buf, pos, limit, 3)
    topics_: list[TopicResponse] = []
    for _ in range(count):
        topics_item, pos = _read_topic_response(buf, pos, limit, version)
        topics_.append(topics_item)
    m.topics = topics_
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
    return m, pos


def _write_describe_producers_response(out: bytearray, m: DescribeProducersResponse, version: int) -> None:
    out += _pack_i(m.throttle_time_ms)
    put_compact_count(out, len(m.topics))
    for topics_item in m.topics:
        _write_topic_response(out, topics_item, version)
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)
