"""Starts the kept state of share partitions.

Made from schemas/initialize_share_group_state.schema by `python -m ottla.protocol.compile`: change that file.
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
    put_tags,
    put_uuid,
    read_compact_count,
    read_compact_nullable_string,
    read_compact_string,
    read_tags,
    shortened,
)

_pack_ih = Struct(">ih").pack
_pack_iiq = Struct(">iiq").pack
_unpack_ih = Struct(">ih").unpack_from
_unpack_iiq = Struct(">iiq").unpack_from
_unpack_u = Struct(">16s").unpack_from

class PartitionData(Structure):
    __slots__ = ("partition", "state_epoch", "start_offset", "unknown_tags",)

    def __init__(
        self,
        *,
        partition: int = 0,
        state_epoch: int = 0,
        start_offset: int = 0,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.partition = partition
        self.state_epoch = state_epoch
        self.start_offset = start_offset
        self.unknown_tags = unknown_tags


class InitializeStateData(Structure):
    __slots__ = ("topic_id", "partitions", "unknown_tags",)

    def __init__(
        self,
        *,
        topic_id: bytes = ZERO_UUID,
        partitions: list[PartitionData] = EMPTY_LIST,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.topic_id = topic_id
        self.partitions = [] if partitions is EMPTY_LIST else partitions
        self.unknown_tags = unknown_tags


class InitializeShareGroupStateRequest(Message):
    __slots__ = ("group_id", "topics", "unknown_tags",)
    API_KEY = 83
    MIN_VERSION = 0
    MAX_VERSION = 0
    FLEXIBLE_FROM = 0
    HAS_ARRAYS = True

    def __init__(
        self,
        *,
        group_id: str = "",
        topics: list[InitializeStateData] = EMPTY_LIST,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.group_id = group_id
        self.topics = [] if topics is EMPTY_LIST else topics
        self.unknown_tags = unknown_tags

    def encode_into(self, out: bytearray, version: int) -> None:
        if not 0 <= version <= 0:
            raise unencodable(InitializeShareGroupStateRequest, version)
        try:
            _write_initialize_share_group_state_request(out, self, version)
        except ENCODE_FAULTS as fault:
            raise bad_value(InitializeShareGroupStateRequest, version, fault) from fault

    @classmethod
    def decode(cls, buf: Buffer, version: int, pos: int = 0) -> tuple[InitializeShareGroupStateRequest, int]:
        if not 0 <= version <= 0:
            raise undecodable(InitializeShareGroupStateRequest, version)
        try:
            return _read_initialize_share_group_state_request(buf, pos, len(buf), version)
        except DECODE_FAULTS as fault:
            raise bad_bytes(InitializeShareGroupStateRequest, version, fault) from fault


class PartitionResult(Structure):
    __slots__ = ("partition", "error_code", "error_message", "unknown_tags",)

    def __init__(
        self,
        *,
        partition: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.partition = partition
        self.error_code = error_code
        self.error_message = error_message
        self.unknown_tags = unknown_tags


class InitializeStateResult(Structure):
    __slots__ = ("topic_id", "partitions", "unknown_tags",)

    def __init__(
        self,
        *,
        topic_id: bytes = ZERO_UUID,
        partitions: list[PartitionResult] = EMPTY_LIST,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.topic_id = topic_id
        self.partitions = [] if partitions is EMPTY_LIST else partitions
        self.unknown_tags = unknown_tags


class InitializeShareGroupStateResponse(Message):
    __slots__ = ("results", "unknown_tags",)
    API_KEY = 83
    MIN_VERSION = 0
    MAX_VERSION = 0
    FLEXIBLE_FROM = 0
    HAS_ARRAYS = True

    def __init__(
        self,
        *,
        results: list[InitializeStateResult] = EMPTY_LIST,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.results = [] if results is EMPTY_LIST else results
        self.unknown_tags = unknown_tags

    def encode_into(self, out: bytearray, version: int) -> None:
        if not 0 <= version <= 0:
            raise unencodable(InitializeShareGroupStateResponse, version)
        try:
            _write_initialize_share_group_state_response(out, self, version)
        except ENCODE_FAULTS as fault:
            raise bad_value(InitializeShareGroupStateResponse, version, fault) from fault

    @classmethod
    def decode(cls, buf: Buffer, version: int, pos: int = 0) -> tuple[InitializeShareGroupStateResponse, int]:
        if not 0 <= version <= 0:
            raise undecodable(InitializeShareGroupStateResponse, version)
        try:
            return _read_initialize_share_group_state_response(buf, pos, len(buf), version)
        except DECODE_FAULTS as fault:
            raise bad_bytes(InitializeShareGroupStateResponse, version, fault) from fault


def _read_partition_data(buf: Buffer, pos: int, limit: int, version: int) -> tuple[PartitionData, int]:
    m = object.__new__(PartitionData)
    m.partition, m.state_epoch, m.start_offset = _unpack_iiq(buf, pos)
    pos += 16
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
    return m, pos


def _write_partition_data(out: bytearray, m: PartitionData, version: int) -> None:
    out += _pack_iiq(m.partition, m.state_epoch, m.start_offset)
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)


def _read_initialize_state_data(buf: Buffer, pos: int, limit: int, version: int) -> tuple[InitializeStateData, int]:
    m = object.__new__(InitializeStateData)
    (m.topic_id,) = _unpack_u(buf, pos)
    pos += 16
    count, pos = read_compact_count(buf, pos, limit, 17)
    partitions_: list[PartitionData] = []
    for _ in range(count):
        partitions_item, pos = _read_partition_data(buf, pos, limit, version)
        partitions_.append(partitions_item)
    m.partitions = partitions_
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
    return m, pos


def _write_initialize_state_data(out: bytearray, m: InitializeStateData, version: int) -> None:
    put_uuid(out, m.topic_id)
    put_compact_count(out, len(m.partitions))
    for partitions_item in m.partitions:
        _write_partition_data(out, partitions_item, version)
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)


def _read_initialize_share_group_state_request(buf: Buffer, pos: int, limit: int, version: int) -> tuple[InitializeShareGroupStateRequest, int]:
    m = object.__new__(InitializeShareGroupStateRequest)
    m.group_id, pos = read_compact_string(buf, pos, limit)
    count, pos = read_compact_count(buf, pos, limit, 18)
    topics_: list[InitializeStateData] = []
    for _ in range(count):
        topics_item, pos = _read_initialize_state_data(buf, pos, limit, version)
        topics_.append(topics_item)
    m.topics = topics_
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
    return m, pos


def _write_initialize_share_group_state_request(out: bytearray, m: InitializeShareGroupStateRequest, version: int) -> None:
    put_compact_string(out, m.group_id)
    put_compact_count(out, len(m.topics))
    for topics_item in m.topics:
        _write_initialize_state_data(out, topics_item, version)
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)


def _read_partition_result(buf: Buffer, pos: int, limit: int, version: int) -> tuple[PartitionResult, int]:
    m = object.__new__(PartitionResult)
    m.partition, m.error_code = _unpack_ih(buf, pos)
    pos += 6
    m.error_message, pos = read_compact_nullable_string(buf, pos, limit)
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
    return m, pos


def _write_partition_result(out: bytearray, m: PartitionResult, version: int) -> None:
    out += _pack_ih(m.partition, m.error_code)
    put_compact_nullable_string(out, shortened(m.error_message))
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)


def _read_initialize_state_result(buf: Buffer, pos: int, limit: int, version: int) -> tuple[InitializeStateResult, int]:
    m = object.__new__(InitializeStateResult)
    (m.topic_id,) = _unpack_u(buf, pos)
    pos += 16
    count, pos = read_compact_count(buf, pos, limit, 8)
    partitions_: list[PartitionResult] = []
    for _ in range(count):
        partitions_item, pos = _read_partition_result(buf, pos, limit, version)
        partitions_.append(partitions_item)
    m.partitions = partitions_
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
    return m, pos


def _write_initialize_state_result(out: bytearray, m: InitializeStateResult, version: int) -> None:
    put_uuid(out, m.topic_id)
    put_compact_count(out, len(m.partitions))
    for partitions_item in m.partitions:
        _write_partition_result(out, partitions_item, version)
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)


def _read_initialize_share_group_state_response(buf: Buffer, pos: int, limit: int, version: int) -> tuple[InitializeShareGroupStateResponse, int]:
    m = object.__new__(InitializeShareGroupStateResponse)
    count, pos = read_compact_count(buf, pos, limit, 18)
    results_: list[InitializeStateResult] = []
    for _ in range(count):
        results_item, pos = _read_initialize_state_result(buf, pos, limit, version)
        results_.append(results_item)
    m.results = results_
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
    return m, pos


def _write_initialize_share_group_state_response(out: bytearray, m: InitializeShareGroupStateResponse, version: int) -> None:
    put_compact_count(out, len(m.results))
    for results_item in m.results:
        _write_initialize_state_result(out, results_item, version)
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)
