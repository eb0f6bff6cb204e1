"""Forgets a group's positions in topics it does not subscribe to.

Made from schemas/offset_delete.schema by `python -m ottla.protocol.compile`: change that file.
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
    put_string,
    read_count,
    read_string,
)

_pack_hi = Struct(">hi").pack
_pack_i = Struct(">i").pack
_pack_ih = Struct(">ih").pack
_unpack_hi = Struct(">hi").unpack_from
_unpack_i = Struct(">i").unpack_from
_unpack_ih = Struct(">ih").unpack_from

class OffsetDeleteRequestPartition(Structure):
    __slots__ = ("partition_index", "unknown_tags",)

    def __init__(
        self,
        *,
        partition_index: int = 0,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.partition_index = partition_index
        self.unknown_tags = unknown_tags


class OffsetDeleteRequestTopic(Structure):
    __slots__ = ("name", "partitions", "unknown_tags",)

    def __init__(
        self,
        *,
        name: str = "",
        partitions: list[OffsetDeleteRequestPartition] = EMPTY_LIST,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.name = name
        self.partitions = [] if partitions is EMPTY_LIST else partitions
        self.unknown_tags = unknown_tags


class OffsetDeleteRequest(Message):
    __slots__ = ("group_id", "topics", "unknown_tags",)
    API_KEY = 47
    MIN_VERSION = 0
    MAX_VERSION = 0
    FLEXIBLE_FROM = None
    HAS_ARRAYS = True

    def __init__(
        self,
        *,
        group_id: str = "",
        topics: list[OffsetDeleteRequestTopic] = EMPTY_LIST,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.group_id = group_id
        self.topics = [] if topics is EMPTY_LIST else topics
        self.unknown_tags = unknown_tags

    def encode_into(self, out: bytearray, version: int) -> None:
        if not 0 <= version <= 0:
            raise unencodable(OffsetDeleteRequest, version)
        try:
            _write_offset_delete_request(out, self, version)
        except ENCODE_FAULTS as fault:
            raise bad_value(OffsetDeleteRequest, version, fault) from fault

    @classmethod
    def decode(cls, buf: Buffer, version: int, pos: int = 0) -> tuple[OffsetDeleteRequest, int]:
        if not 0 <= version <= 0:
            raise undecodable(OffsetDeleteRequest, version)
        try:
            return _read_offset_delete_request(buf, pos, len(buf), version)
        except DECODE_FAULTS as fault:
            raise bad_bytes(OffsetDeleteRequest, version, fault) from fault


class OffsetDeleteResponsePartition(Structure):
    __slots__ = ("partition_index", "error_code", "unknown_tags",)

    def __init__(
        self,
        *,
        partition_index: int = 0,
        error_code: int = 0,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.partition_index = partition_index
        self.error_code = error_code
        self.unknown_tags = unknown_tags


class OffsetDeleteResponseTopic(Structure):
    __slots__ = ("name", "partitions", "unknown_tags",)

    def __init__(
        self,
        *,
        name: str = "",
        partitions: list[OffsetDeleteResponsePartition] = EMPTY_LIST,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.name = name
        self.partitions = [] if partitions is EMPTY_LIST else partitions
        self.unknown_tags = unknown_tags


class OffsetDeleteResponse(Message):
    __slots__ = ("error_code", "throttle_time_ms", "topics", "unknown_tags",)
    API_KEY = 47
    MIN_VERSION = 0
    MAX_VERSION = 0
    FLEXIBLE_FROM = None
    HAS_ARRAYS = True

    def __init__(
        self,
        *,
        error_code: int = 0,
        throttle_time_ms: int = 0,
        topics: list[OffsetDeleteResponseTopic] = EMPTY_LIST,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.error_code = error_code
        self.throttle_time_ms = throttle_time_ms
        self.topics = [] if topics is EMPTY_LIST else topics
        self.unknown_tags = unknown_tags

    def encode_into(self, out: bytearray, version: int) -> None:
        if not 0 <= version <= 0:
            raise unencodable(OffsetDeleteResponse, version)
        try:
            _write_offset_delete_response(out, self, version)
        except ENCODE_FAULTS as fault:
            raise bad_value(OffsetDeleteResponse, version, fault) from fault

    @classmethod
    def decode(cls, buf: Buffer, version: int, pos: int = 0) -> tuple[OffsetDeleteResponse, int]:
        if not 0 <= version <= 0:
            raise undecodable(OffsetDeleteResponse, version)
        try:
            return _read_offset_delete_response(buf, pos, len(buf), version)
        except DECODE_FAULTS as fault:
            raise bad_bytes(OffsetDeleteResponse, version, fault) from fault


def _read_offset_delete_request_partition(buf: Buffer, pos: int, limit: int, version: int) -> tuple[OffsetDeleteRequestPartition, int]:
    m = object.__new__(OffsetDeleteRequestPartition)
    (m.partition_index,) = _unpack_i(buf, pos)
    pos += 4
    m.unknown_tags = NO_TAGS
    return m, pos


def _write_offset_delete_request_partition(out: bytearray, m: OffsetDeleteRequestPartition, version: int) -> None:
    out += _pack_i(m.partition_index)
    if m.unknown_tags:
        raise not_tagged(m, version)


def _read_offset_delete_request_topic(buf: Buffer, pos: int, limit: int, version: int) -> tuple[OffsetDeleteRequestTopic, int]:
    m = object.__new__(OffsetDeleteRequestTopic)
    m.name, pos = read_string(buf, pos, limit)
    count, pos = read_count(buf, pos, limit, 4)
    partitions_: list[OffsetDeleteRequestPartition] = []
    for _ in range(count):
        partitions_item, pos = _read_offset_delete_request_partition(buf, pos, limit, version)
        partitions_.append(partitions_item)
    m.partitions = partitions_
    m.unknown_tags = NO_TAGS
    return m, pos


def _write_offset_delete_request_topic(out: bytearray, m: OffsetDeleteRequestTopic, version: int) -> None:
    put_string(out, m.name)
    put_count(out, len(m.partitions))
    for partitions_item in m.partitions:
        _write_offset_delete_request_partition(out, partitions_item, version)
    if m.unknown_tags:
        raise not_tagged(m, version)


def _read_offset_delete_request(buf: Buffer, pos: int, limit: int, version: int) -> tuple[OffsetDeleteRequest, int]:
    m = object.__new__(OffsetDeleteRequest)
    m.group_id, pos = read_string(buf, pos, limit)
    count, pos = read_count(buf, pos, limit, 6)
    topics_: list[OffsetDeleteRequestTopic] = []
    for _ in range(count):
        topics_item, pos = _read_offset_delete_request_topic(buf, pos, limit, version)
        topics_.append(topics_item)
    m.topics = topics_
    m.unknown_tags = NO_TAGS
    return m, pos


def _write_offset_delete_request(out: bytearray, m: OffsetDeleteRequest, version: int) -> None:
    put_string(out, m.group_id)
    put_count(out, len(m.topics))
    for topics_item in m.topics:
        _write_offset_delete_request_topic(out, topics_item, version)
    if m.unknown_tags:
        raise not_tagged(m, version)


def _read_offset_delete_response_partition(buf: Buffer, pos: int, limit: int, version: int) -> tuple[OffsetDeleteResponsePartition, int]:
    m = object.__new__(OffsetDeleteResponsePartition)
    m.partition_index, m.error_code = _unpack_ih(buf, pos)
    pos += 6
    m.unknown_tags = NO_TAGS
    return m, pos


def _write_offset_delete_response_partition(out: bytearray, m: OffsetDeleteResponsePartition, version: int) -> None:
    out += _pack_ih(m.partition_index, m.error_code)
    if m.unknown_tags:
        raise not_tagged(m, version)


def _read_offset_delete_response_topic(buf: Buffer, pos: int, limit: int, version: int) -> tuple[OffsetDeleteResponseTopic, int]:
    m = object.__new__(OffsetDeleteResponseTopic)
    m.name, pos = read_string(buf, pos, limit)
    count, pos = read_count(buf, pos, limit, 6)
    partitions_: list[OffsetDeleteResponsePartition] = []
    for _ in range(count):
        partitions_item, pos = _read_offset_delete_response_partition(buf, pos, limit, version)
        partitions_.append(partitions_item)
    m.partitions = partitions_
    m.unknown_tags = NO_TAGS
    return m, pos


def _write_offset_delete_response_topic(out: bytearray, m: OffsetDeleteResponseTopic, version: int) -> None:
    put_string(out, m.name)
    put_count(out, len(m.partitions))
    for partitions_item in m.partitions:
        _write_offset_delete_response_partition(out, partitions_item, version)
    if m.unknown_tags:
        raise not_tagged(m, version)


def _read_offset_delete_response(buf: Buffer, pos: int, limit: int, version: int) -> tuple[OffsetDeleteResponse, int]:
    m = object.__new__(OffsetDeleteResponse)
    m.error_code, m.throttle_time_ms = _unpack_hi(buf, pos)
    pos += 6
    count, pos = read_count(buf, pos, limit, 6)
    topics_: list[OffsetDeleteResponseTopic] = []
    for _ in range(count):
        topics_item, pos = _read_offset_delete_response_topic(buf, pos, limit, version)
        topics_.append(topics_item)
    m.topics = topics_
    m.unknown_tags = NO_TAGS
    return m, pos


def _write_offset_delete_response(out: bytearray, m: OffsetDeleteResponse, version: int) -> None:
    out += _pack_hi(m.error_code, m.throttle_time_ms)
    put_count(out, len(m.topics))
    for topics_item in m.topics:
        _write_offset_delete_response_topic(out, topics_item, version)
    if m.unknown_tags:
        raise not_tagged(m, version)
