"""Moves a partition's start forward.

Made from schemas/delete_records.schema by `python -m ottla.protocol.compile`: change that file.
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
    put_compact_count,
    put_compact_string,
    put_count,
    put_string,
    put_tags,
    read_compact_count,
    read_compact_string,
    read_count,
    read_string,
    read_tags,
)

_pack_i = Struct(">i").pack
_pack_iq = Struct(">iq").pack
_pack_iqh = Struct(">iqh").pack
_unpack_i = Struct(">i").unpack_from
_unpack_iq = Struct(">iq").unpack_from
_unpack_iqh = Struct(">iqh").unpack_from

class DeleteRecordsPartition(Structure):
    __slots__ = ("partition_index", "offset", "unknown_tags",)

    def __init__(
        self,
        *,
        partition_index: int = 0,
        offset: int = 0,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.partition_index = partition_index
        self.offset = offset
        self.unknown_tags = unknown_tags


class DeleteRecordsTopic(Structure):
    __slots__ = ("name", "partitions", "unknown_tags",)

    def __init__(
        self,
        *,
        name: str = "",
        partitions: list[DeleteRecordsPartition] = EMPTY_LIST,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.name = name
        self.partitions = [] if partitions is EMPTY_LIST else partitions
        self.unknown_tags = unknown_tags


class DeleteRecordsRequest(Message):
    __slots__ = ("topics", "timeout_ms", "unknown_tags",)
    API_KEY = 21
    MIN_VERSION = 0
    MAX_VERSION = 2
    FLEXIBLE_FROM = 2
    HAS_ARRAYS = True

    def __init__(
        self,
        *,
        topics: list[DeleteRecordsTopic] = EMPTY_LIST,
        timeout_ms: int = 0,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.topics = [] if topics is EMPTY_LIST else topics
        self.timeout_ms = timeout_ms
        self.unknown_tags = unknown_tags

    def encode_into(self, out: bytearray, version: int) -> None:
        if not 0 <= version <= 2:
            raise unencodable(DeleteRecordsRequest, version)
        try:
            _write_delete_records_request(out, self, version)
        except ENCODE_FAULTS as fault:
            raise bad_value(DeleteRecordsRequest, version, fault) from fault

    @classmethod
    def decode(cls, buf: Buffer, version: int, pos: int = 0) -> tuple[DeleteRecordsRequest, int]:
        if not 0 <= version <= 2:
            raise undecodable(DeleteRecordsRequest, version)
        try:
            return _read_delete_records_request(buf, pos, len(buf), version)
        except DECODE_FAULTS as fault:
            raise bad_bytes(DeleteRecordsRequest, version, fault) from fault


class DeleteRecordsPartitionResult(Structure):
    __slots__ = ("partition_index", "low_watermark", "error_code", "unknown_tags",)

    def __init__(
        self,
        *,
        partition_index: int = 0,
        low_watermark: int = 0,
        error_code: int = 0,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.partition_index = partition_index
        self.low_watermark = low_watermark
        self.error_code = error_code
        self.unknown_tags = unknown_tags


class DeleteRecordsTopicResult(Structure):
    __slots__ = ("name", "partitions", "unknown_tags",)

    def __init__(
        self,
        *,
        name: str = "",
        partitions: list[DeleteRecordsPartitionResult] = EMPTY_LIST,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.name = name
        self.partitions = [] if partitions is EMPTY_LIST else partitions
        self.unknown_tags = unknown_tags


class DeleteRecordsResponse(Message):
    __slots__ = ("throttle_time_ms", "topics", "unknown_tags",)
    API_KEY = 21
    MIN_VERSION = 0
    MAX_VERSION = 2
    FLEXIBLE_FROM = 2
    HAS_ARRAYS = True

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        topics: list[DeleteRecordsTopicResult] = EMPTY_LIST,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.topics = [] if topics is EMPTY_LIST else topics
        self.unknown_tags = unknown_tags

    def encode_into(self, out: bytearray, version: int) -> None:
        if not 0 <= version <= 2:
            raise unencodable(DeleteRecordsResponse, version)
        try:
            _write_delete_records_response(out, self, version)
        except ENCODE_FAULTS as fault:
            raise bad_value(DeleteRecordsResponse, version, fault) from fault

    @classmethod
    def decode(cls, buf: Buffer, version: int, pos: int = 0) -> tuple[DeleteRecordsResponse, int]:
        if not 0 <= version <= 2:
            raise undecodable(DeleteRecordsResponse, version)
        try:
            return _read_delete_records_response(buf, pos, len(buf), version)
        except DECODE_FAULTS as fault:
            raise bad_bytes(DeleteRecordsResponse, version, fault) from fault


def _read_delete_records_partition(buf: Buffer, pos: int, limit: int, version: int) -> tuple[DeleteRecordsPartition, int]:
    m = object.__new__(DeleteRecordsPartition)
    m.partition_index, m.offset = _unpack_iq(buf, pos)
    pos += 12
    if version >= 2:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            m.unknown_tags, pos = read_tags(buf, pos, limit)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _write_delete_records_partition(out: bytearray, m: DeleteRecordsPartition, version: int) -> None:
    out += _pack_iq(m.partition_index, m.offset)
    if version >= 2:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)


def _read_delete_records_topic(buf: Buffer, pos: int, limit: int, version: int) -> tuple[DeleteRecordsTopic, int]:
    m = object.__new__(DeleteRecordsTopic)
    if version >= 2:
        m.name, pos = read_compact_string(buf, pos, limit)
    else:
        m.name, pos = read_string(buf, pos, limit)
    count, pos = read_compact_count(buf, pos, limit, 12) if version >= 2 else read_count(buf, pos, limit, 12)
    partitions_: list[DeleteRecordsPartition] = []
    for _ in range(count):
        partitions_item, pos = _read_delete_records_partition(buf, pos, limit, version)
        partitions_.append(partitions_item)
    m.partitions = partitions_
    if version >= 2:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            m.unknown_tags, pos = read_tags(buf, pos, limit)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _write_delete_records_topic(out: bytearray, m: DeleteRecordsTopic, version: int) -> None:
    if version >= 2:
        put_compact_string(out, m.name)
    else:
        put_string(out, m.name)
    if version >= 2:
        put_compact_count(out, len(m.partitions))
    else:
        put_count(out, len(m.partitions))
    for partitions_item in m.partitions:
        _write_delete_records_partition(out, partitions_item, version)
    if version >= 2:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)


def _read_delete_records_request(buf: Buffer, pos: int, limit: int, version: int) -> tuple[DeleteRecordsRequest, int]:
    m = object.__new__(DeleteRecordsRequest)
    count, pos = read_compact_count(buf, pos, limit, 3) if version >= 2 else read_count(buf, pos, limit, 3)
    topics_: list[DeleteRecordsTopic] = []
    for _ in range(count):
        topics_item, pos = _read_delete_records_topic(buf, pos, limit, version)
        topics_.append(topics_item)
    m.topics = topics_
    (m.timeout_ms,) = _unpack_i(buf, pos)
    pos += 4
    if version >= 2:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            m.unknown_tags, pos = read_tags(buf, pos, limit)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _write_delete_records_request(out: bytearray, m: DeleteRecordsRequest, version: int) -> None:
    if version >= 2:
        put_compact_count(out, len(m.topics))
    else:
        put_count(out, len(m.topics))
    for topics_item in m.topics:
        _write_delete_records_topic(out, topics_item, version)
    out += _pack_i(m.timeout_ms)
    if version >= 2:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)


def _read_delete_records_partition_result(buf: Buffer, pos: int, limit: int, version: int) -> tuple[DeleteRecordsPartitionResult, int]:
    m = object.__new__(DeleteRecordsPartitionResult)
    m.partition_index, m.low_watermark, m.error_code = _unpack_iqh(buf, pos)
    pos += 14
    if version >= 2:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            m.unknown_tags, pos = read_tags(buf, pos, limit)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _write_delete_records_partition_result(out: bytearray, m: DeleteRecordsPartitionResult, version: int) -> None:
    out += _pack_iqh(m.partition_index, m.low_watermark, m.error_code)
    if version >= 2:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)


def _read_delete_records_topic_result(buf: Buffer, pos: int, limit: int, version: int) -> tuple[DeleteRecordsTopicResult, int]:
    m = object.__new__(DeleteRecordsTopicResult)
    if version >= 2:
        m.name, pos = read_compact_string(buf, pos, limit)
    else:
        m.name, pos = read_string(buf, pos, limit)
    count, pos = read_compact_count(buf, pos, limit, 14) if version >= 2 else read_count(buf, pos, limit, 14)
    partitions_: list[DeleteRecordsPartitionResult] = []
    for _ in range(count):
        partitions_item, pos = _read_delete_records_partition_result(buf, pos, limit, version)
        partitions_.append(partitions_item)
    m.partitions = partitions_
    if version >= 2:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            m.unknown_tags, pos = read_tags(buf, pos, limit)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _write_delete_records_topic_result(out: bytearray, m: DeleteRecordsTopicResult, version: int) -> None:
    if version >= 2:
        put_compact_string(out, m.name)
    else:
        put_string(out, m.name)
    if version >= 2:
        put_compact_count(out, len(m.partitions))
    else:
        put_count(out, len(m.partitions))
    for partitions_item in m.partitions:
        _write_delete_records_partition_result(out, partitions_item, version)
    if version >= 2:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)


def _read_delete_records_response(buf: Buffer, pos: int, limit: int, version: int) -> tuple[DeleteRecordsResponse, int]:
    m = object.__new__(DeleteRecordsResponse)
    (m.throttle_time_ms,) = _unpack_i(buf, pos)
    pos += 4
    count, pos = read_compact_count(buf, pos, limit, 3) if version >= 2 else read_count(buf, pos, limit, 3)
    topics_: list[DeleteRecordsTopicResult] = []
    for _ in range(count):
        topics_item, pos = _read_delete_records_topic_result(buf, pos, limit, version)
        topics_.append(topics_item)
    m.topics = topics_
    if version >= 2:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            m.unknown_tags, pos = read_tags(buf, pos, limit)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _write_delete_records_response(out: bytearray, m: DeleteRecordsResponse, version: int) -> None:
    out += _pack_i(m.throttle_time_ms)
    if version >= 2:
        put_compact_count(out, len(m.topics))
    else:
        put_count(out, len(m.topics))
    for topics_item in m.topics:
        _write_delete_records_topic_result(out, topics_item, version)
    if version >= 2:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)
