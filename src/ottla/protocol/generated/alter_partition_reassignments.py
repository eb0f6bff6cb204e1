"""Moves partitions to other brokers, or calls a move off.

Made from schemas/alter_partition_reassignments.schema by `python -m ottla.protocol.compile`: change that file.
"""

from __future__ import annotations

from collections.abc import Mapping
from struct import Struct

from ottla.protocol.message import Message, Structure, bad_bytes, bad_value, not_in_version, undecodable, unencodable
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

_pack_h = Struct(">h").pack
_pack_i = Struct(">i").pack
_pack_ih = Struct(">ih").pack
_unpack_h = Struct(">h").unpack_from
_unpack_i = Struct(">i").unpack_from
_unpack_ih = Struct(">ih").unpack_from

class ReassignablePartition(Structure):
    __slots__ = ("partition_index", "replicas", "unknown_tags",)

    def __init__(
        self,
        *,
        partition_index: int = 0,
        replicas: list[int] | None = None,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.partition_index = partition_index
        self.replicas = replicas
        self.unknown_tags = unknown_tags


class ReassignableTopic(Structure):
    __slots__ = ("name", "partitions", "unknown_tags",)

    def __init__(
        self,
        *,
        name: str = "",
        partitions: list[ReassignablePartition] = EMPTY_LIST,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.name = name
        self.partitions = [] if partitions is EMPTY_LIST else partitions
        self.unknown_tags = unknown_tags


class AlterPartitionReassignmentsRequest(Message):
    __slots__ = ("timeout_ms", "allow_replication_factor_change", "topics", "unknown_tags",)
    API_KEY = 45
    MIN_VERSION = 0
    MAX_VERSION = 1
    FLEXIBLE_FROM = 0
    HAS_ARRAYS = True

    def __init__(
        self,
        *,
        timeout_ms: int = 60000,
        allow_replication_factor_change: bool = True,
        topics: list[ReassignableTopic] = EMPTY_LIST,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.timeout_ms = timeout_ms
        self.allow_replication_factor_change = allow_replication_factor_change
        self.topics = [] if topics is EMPTY_LIST else topics
        self.unknown_tags = unknown_tags

    def encode_into(self, out: bytearray, version: int) -> None:
        if not 0 <= version <= 1:
            raise unencodable(AlterPartitionReassignmentsRequest, version)
        try:
            _write_alter_partition_reassignments_request(out, self, version)
        except ENCODE_FAULTS as fault:
            raise bad_value(AlterPartitionReassignmentsRequest, version, fault) from fault

    @classmethod
    def decode(cls, buf: Buffer, version: int, pos: int = 0) -> tuple[AlterPartitionReassignmentsRequest, int]:
        if not 0 <= version <= 1:
            raise undecodable(AlterPartitionReassignmentsRequest, version)
        try:
            return _read_alter_partition_reassignments_request(buf, pos, len(buf), version)
        except DECODE_FAULTS as fault:
            raise bad_bytes(AlterPartitionReassignmentsRequest, version, fault) from fault


class ReassignablePartitionResponse(Structure):
    __slots__ = ("partition_index", "error_code", "error_message", "unknown_tags",)

    def __init__(
        self,
        *,
        partition_index: int = 0,
        error_code: int = 0,
        error_message: str | None = "",
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.partition_index = partition_index
        self.error_code = error_code
        self.error_message = error_message
        self.unknown_tags = unknown_tags


class ReassignableTopicResponse(Structure):
    __slots__ = ("name", "partitions", "unknown_tags",)

    def __init__(
        self,
        *,
        name: str = "",
        partitions: list[ReassignablePartitionResponse] = EMPTY_LIST,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.name = name
        self.partitions = [] if partitions is EMPTY_LIST else partitions
        self.unknown_tags = unknown_tags


class AlterPartitionReassignmentsResponse(Message):
    __slots__ = ("throttle_time_ms", "allow_replication_factor_change", "error_code", "error_message", "responses", "unknown_tags",)
    API_KEY = 45
    MIN_VERSION = 0
    MAX_VERSION = 1
    FLEXIBLE_FROM = 0
    HAS_ARRAYS = True

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        allow_replication_factor_change: bool = True,
        error_code: int = 0,
        error_message: str | None = "",
        responses: list[ReassignableTopicResponse] = EMPTY_LIST,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.allow_replication_factor_change = allow_replication_factor_change
        self.error_code = error_code
        self.error_message = error_message
        self.responses = [] if responses is EMPTY_LIST else responses
        self.unknown_tags = unknown_tags

    def encode_into(self, out: bytearray, version: int) -> None:
        if not 0 <= version <= 1:
            raise unencodable(AlterPartitionReassignmentsResponse, version)
        try:
            _write_alter_partition_reassignments_response(out, self, version)
        except ENCODE_FAULTS as fault:
            raise bad_value(AlterPartitionReassignmentsResponse, version, fault) from fault

    @classmethod
    def decode(cls, buf: Buffer, version: int, pos: int = 0) -> tuple[AlterPartitionReassignmentsResponse, int]:
        if not 0 <= version <= 1:
            raise undecodable(AlterPartitionReassignmentsResponse, version)
        try:
            return _read_alter_partition_reassignments_response(buf, pos, len(buf), version)
        except DECODE_FAULTS as fault:
            raise bad_bytes(AlterPartitionReassignmentsResponse, version, fault) from fault


def _read_reassignable_partition(buf: Buffer, pos: int, limit: int, version: int) -> tuple[ReassignablePartition, int]:
    m = object.__new__(ReassignablePartition)
    (m.partition_index,) = _unpack_i(buf, pos)
    pos += 4
    count, pos = read_compact_nullable_count(buf, pos, limit, 4)
    if count < 0:
        m.replicas = None
    else:
        m.replicas, pos = read_numbers(buf, pos, count, "i", 4)
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
    return m, pos


def _write_reassignable_partition(out: bytearray, m: ReassignablePartition, version: int) -> None:
    out += _pack_i(m.partition_index)
    if m.replicas is None:
        out.append(0)
    else:
        put_compact_count(out, len(m.replicas))
        put_numbers(out, m.replicas, "i")
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)


def _read_reassignable_topic(buf: Buffer, pos: int, limit: int, version: int) -> tuple[ReassignableTopic, int]:
    m = object.__new__(ReassignableTopic)
    m.name, pos = read_compact_string(buf, pos, limit)
    count, pos = read_compact_count(buf, pos, limit, 6)
    partitions_: list[ReassignablePartition] = []
    for _ in range(count):
        partitions_item, pos = _read_reassignable_partition(buf, pos, limit, version)
        partitions_.append(partitions_item)
    m.partitions = partitions_
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
    return m, pos


def _write_reassignable_topic(out: bytearray, m: ReassignableTopic, version: int) -> None:
    put_compact_string(out, m.name)
    put_compact_count(out, len(m.partitions))
    for partitions_item in m.partitions:
        _write_reassignable_partition(out, partitions_item, version)
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)


def _read_alter_partition_reassignments_request(buf: Buffer, pos: int, limit: int, version: int) -> tuple[AlterPartitionReassignmentsRequest, int]:
    m = object.__new__(AlterPartitionReassignmentsRequest)
    (m.timeout_ms,) = _unpack_i(buf, pos)
    pos += 4
    if version >= 1:
        m.allow_replication_factor_change = buf[pos] != 0
        pos += 1
    else:
        m.allow_replication_factor_change = True
    count, pos = read_compact_count(buf, pos, limit, 3)
    topics_: list[ReassignableTopic] = []
    for _ in range(count):
        topics_item, pos = _read_reassignable_topic(buf, pos, limit, version)
        topics_.append(topics_item)
    m.topics = topics_
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
    return m, pos


def _write_alter_partition_reassignments_request(out: bytearray, m: AlterPartitionReassignmentsRequest, version: int) -> None:
    out += _pack_i(m.timeout_ms)
    if version >= 1:
        out.append(1 if m.allow_replication_factor_change else 0)
    else:
        if m.allow_replication_factor_change != True:
            raise not_in_version(m, "allow_replication_factor_change", version)
    put_compact_count(out, len(m.topics))
    for topics_item in m.topics:
        _write_reassignable_topic(out, topics_item, version)
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)


def _read_reassignable_partition_response(buf: Buffer, pos: int, limit: int, version: int) -> tuple[ReassignablePartitionResponse, int]:
    m = object.__new__(ReassignablePartitionResponse)
    m.partition_index, m.error_code = _unpack_ih(buf, pos)
    pos += 6
    m.error_message, pos = read_compact_nullable_string(buf, pos, limit)
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
    return m, pos


def _write_reassignable_partition_response(out: bytearray, m: ReassignablePartitionResponse, version: int) -> None:
    out += _pack_ih(m.partition_index, m.error_code)
    put_compact_nullable_string(out, shortened(m.error_message))
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)


def _read_reassignable_topic_response(buf: Buffer, pos: int, limit: int, version: int) -> tuple[ReassignableTopicResponse, int]:
    m = object.__new__(ReassignableTopicResponse)
    m.name, pos = read_compact_string(buf, pos, limit)
    count, pos = read_compact_count(buf, pos, limit, 8)
    partitions_: list[ReassignablePartitionResponse] = []
    for _ in range(count):
        partitions_item, pos = _read_reassignable_partition_response(buf, pos, limit, version)
        partitions_.append(partitions_item)
    m.partitions = partitions_
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
    return m, pos


def _write_reassignable_topic_response(out: bytearray, m: ReassignableTopicResponse, version: int) -> None:
    put_compact_string(out, m.name)
    put_compact_count(out, len(m.partitions))
    for partitions_item in m.partitions:
        _write_reassignable_partition_response(out, partitions_item, version)
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)


def _read_alter_partition_reassignments_response(buf: Buffer, pos: int, limit: int, version: int) -> tuple[AlterPartitionReassignmentsResponse, int]:
    m = object.__new__(AlterPartitionReassignmentsResponse)
    (m.throttle_time_ms,) = _unpack_i(buf, pos)
    pos += 4
    if version >= 1:
        m.allow_replication_factor_change = buf[pos] != 0
        pos += 1
    else:
        m.allow_replication_factor_change = True
    (m.error_code,) = _unpack_h(buf, pos)
    pos += 2
    m.error_message, pos = read_compact_nullable_string(buf, pos, limit)
    count, pos = read_compact_count(buf, pos, limit, 3)
    responses_: list[ReassignableTopicResponse] = []
    for _ in range(count):
        responses_item, pos = _read_reassignable_topic_response(buf, pos, limit, version)
        responses_.append(responses_item)
    m.responses = responses_
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
    return m, pos


def _write_alter_partition_reassignments_response(out: bytearray, m: AlterPartitionReassignmentsResponse, version: int) -> None:
    out += _pack_i(m.throttle_time_ms)
    if version >= 1:
        out.append(1 if m.allow_replication_factor_change else 0)
    out += _pack_h(m.error_code)
    put_compact_nullable_string(out, shortened(m.error_message))
    put_compact_count(out, len(m.responses))
    for responses_item in m.responses:
        _write_reassignable_topic_response(out, responses_item, version)
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)
