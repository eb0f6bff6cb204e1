"""Where share groups start in partitions.

Made from schemas/describe_share_group_offsets.schema by `python -m ottla.protocol.compile`: change that file.
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
    put_uuid,
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
_pack_iqi = Struct(">iqi").pack
_pack_q = Struct(">q").pack
_unpack_h = Struct(">h").unpack_from
_unpack_i = Struct(">i").unpack_from
_unpack_iqi = Struct(">iqi").unpack_from
_unpack_q = Struct(">q").unpack_from
_unpack_u = Struct(">16s").unpack_from

class DescribeShareGroupOffsetsRequestTopic(Structure):
    __slots__ = ("topic_name", "partitions", "unknown_tags",)

    def __init__(
        self,
        *,
        topic_name: str = "",
        partitions: list[int] = EMPTY_LIST,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.topic_name = topic_name
        self.partitions = [] if partitions is EMPTY_LIST else partitions
        self.unknown_tags = unknown_tags


class DescribeShareGroupOffsetsRequestGroup(Structure):
    __slots__ = ("group_id", "topics", "unknown_tags",)

    def __init__(
        self,
        *,
        group_id: str = "",
        topics: list[DescribeShareGroupOffsetsRequestTopic] | None = EMPTY_LIST,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.group_id = group_id
        self.topics = [] if topics is EMPTY_LIST else topics
        self.unknown_tags = unknown_tags


class DescribeShareGroupOffsetsRequest(Message):
    __slots__ = ("groups", "unknown_tags",)
    API_KEY = 90
    MIN_VERSION = 0
    MAX_VERSION = 1
    FLEXIBLE_FROM = 0
    HAS_ARRAYS = True

    def __init__(
        self,
        *,
        groups: list[DescribeShareGroupOffsetsRequestGroup] = EMPTY_LIST,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.groups = [] if groups is EMPTY_LIST else groups
        self.unknown_tags = unknown_tags

    def encode_into(self, out: bytearray, version: int) -> None:
        if not 0 <= version <= 1:
            raise unencodable(DescribeShareGroupOffsetsRequest, version)
        try:
            _write_describe_share_group_offsets_request(out, self, version)
        except ENCODE_FAULTS as fault:
            raise bad_value(DescribeShareGroupOffsetsRequest, version, fault) from fault

    @classmethod
    def decode(cls, buf: Buffer, version: int, pos: int = 0) -> tuple[DescribeShareGroupOffsetsRequest, int]:
        if not 0 <= version <= 1:
            raise undecodable(DescribeShareGroupOffsetsRequest, version)
        try:
            return _read_describe_share_group_offsets_request(buf, pos, len(buf), version)
        except DECODE_FAULTS as fault:
            raise bad_bytes(DescribeShareGroupOffsetsRequest, version, fault) from fault


class DescribeShareGroupOffsetsResponsePartition(Structure):
    __slots__ = ("partition_index", "start_offset", "leader_epoch", "lag", "error_code", "error_message", "unknown_tags",)

    def __init__(
        self,
        *,
        partition_index: int = 0,
        start_offset: int = 0,
        leader_epoch: int = 0,
        lag: int = -1,
        error_code: int = 0,
        error_message: str | None = None,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.partition_index = partition_index
        self.start_offset = start_offset
        self.leader_epoch = leader_epoch
        self.lag = lag
        self.error_code = error_code
        self.error_message = error_message
        self.unknown_tags = unknown_tags


class DescribeShareGroupOffsetsResponseTopic(Structure):
    __slots__ = ("topic_name", "topic_id", "partitions", "unknown_tags",)

    def __init__(
        self,
        *,
        topic_name: str = "",
        topic_id: bytes = ZERO_UUID,
        partitions: list[DescribeShareGroupOffsetsResponsePartition] = EMPTY_LIST,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.topic_name = topic_name
        self.topic_id = topic_id
        self.partitions = [] if partitions is EMPTY_LIST else partitions
        self.unknown_tags = unknown_tags


class DescribeShareGroupOffsetsResponseGroup(Structure):
    __slots__ = ("group_id", "topics", "error_code", "error_message", "unknown_tags",)

    def __init__(
        self,
        *,
        group_id: str = "",
        topics: list[DescribeShareGroupOffsetsResponseTopic] = EMPTY_LIST,
        error_code: int = 0,
        error_message: str | None = None,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.group_id = group_id
        self.topics = [] if topics is EMPTY_LIST else topics
        self.error_code = error_code
        self.error_message = error_message
        self.unknown_tags = unknown_tags


class DescribeShareGroupOffsetsResponse(Message):
    __slots__ = ("throttle_time_ms", "groups", "unknown_tags",)
    API_KEY = 90
    MIN_VERSION = 0
    MAX_VERSION = 1
    FLEXIBLE_FROM = 0
    HAS_ARRAYS = True

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        groups: list[DescribeShareGroupOffsetsResponseGroup] = EMPTY_LIST,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.groups = [] if groups is EMPTY_LIST else groups
        self.unknown_tags = unknown_tags

    def encode_into(self, out: bytearray, version: int) -> None:
        if not 0 <= version <= 1:
            raise unencodable(DescribeShareGroupOffsetsResponse, version)
        try:
            _write_describe_share_group_offsets_response(out, self, version)
        except ENCODE_FAULTS as fault:
            raise bad_value(DescribeShareGroupOffsetsResponse, version, fault) from fault

    @classmethod
    def decode(cls, buf: Buffer, version: int, pos: int = 0) -> tuple[DescribeShareGroupOffsetsResponse, int]:
        if not 0 <= version <= 1:
            raise undecodable(DescribeShareGroupOffsetsResponse, version)
        try:
            return _read_describe_share_group_offsets_response(buf, pos, len(buf), version)
        except DECODE_FAULTS as fault:
            raise bad_bytes(DescribeShareGroupOffsetsResponse, version, fault) from fault


def _read_describe_share_group_offsets_request_topic(buf: Buffer, pos: int, limit: int, version: int) -> tuple[DescribeShareGroupOffsetsRequestTopic, int]:
    m = object.__new__(DescribeShareGroupOffsetsRequestTopic)
    m.topic_name, pos = read_compact_string(buf, pos, limit)
    count, pos = read_compact_count(buf, pos, limit, 4)
    m.partitions, pos = read_numbers(buf, pos, count, "i", 4)
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
    return m, pos


def _write_describe_share_group_offsets_request_topic(out: bytearray, m: DescribeShareGroupOffsetsRequestTopic, version: int) -> None:
    put_compact_string(out, m.topic_name)
    put_compact_count(out, len(m.partitions))
    put_numbers(out, m.partitions, "i")
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)


def _read_describe_share_group_offsets_request_group(buf: Buffer, pos: int, limit: int, version: int) -> tuple[DescribeShareGroupOffsetsRequestGroup, int]:
    m = object.__new__(DescribeShareGroupOffsetsRequestGroup)
    m.group_id, pos = read_compact_string(buf, pos, limit)
    count, pos = read_compact_nullable_count(buf, pos, limit, 3)
    if count < 0:
        m.topics = None
    else:
        topics_: list[DescribeShareGroupOffsetsRequestTopic] = []
        for _ in range(count):
            topics_item, pos = _read_describe_share_group_offsets_request_topic(buf, pos, limit, version)
            topics_.append(topics_item)
        m.topics = topics_
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
    return m, pos


def _write_describe_share_group_offsets_request_group(out: bytearray, m: DescribeShareGroupOffsetsRequestGroup, version: int) -> None:
    put_compact_string(out, m.group_id)
    if m.topics is None:
        out.append(0)
    else:
        put_compact_count(out, len(m.topics))
        for topics_item in m.topics:
            _write_describe_share_group_offsets_request_topic(out, topics_item, version)
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)


def _read_describe_share_group_offsets_request(buf: Buffer, pos: int, limit: int, version: int) -> tuple[DescribeShareGroupOffsetsRequest, int]:
    m = object.__new__(DescribeShareGroupOffsetsRequest)
    count, pos = read_compact_count(buf, pos, limit, 3)
    groups_: list[DescribeShareGroupOffsetsRequestGroup] = []
    for _ in range(count):
        groups_item, pos = _read_describe_share_group_offsets_request_group(buf, pos, limit, version)
        groups_.append(groups_item)
    m.groups = groups_
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
    return m, pos


def _write_describe_share_group_offsets_request(out: bytearray, m: DescribeShareGroupOffsetsRequest, version: int) -> None:
    put_compact_count(out, len(m.groups))
    for groups_item in m.groups:
        _write_describe_share_group_offsets_request_group(out, groups_item, version)
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)


def _read_describe_share_group_offsets_response_partition(buf: Buffer, pos: int, limit: int, version: int) -> tuple[DescribeShareGroupOffsetsResponsePartition, int]:
    m = object.__new__(DescribeShareGroupOffsetsResponsePartition)
    m.partition_index, m.start_offset, m.leader_epoch = _unpack_iqi(buf, pos)
    pos += 16
    if version >= 1:
        (m.lag,) = _unpack_q(buf, pos)
        pos += 8
    else:
        m.lag = -1
    (m.error_code,) = _unpack_h(buf, pos)
    pos += 2
    m.error_message, pos = read_compact_nullable_string(buf, pos, limit)
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
    return m, pos


def _write_describe_share_group_offsets_response_partition(out: bytearray, m: DescribeShareGroupOffsetsResponsePartition, version: int) -> None:
    out += _pack_iqi(m.partition_index, m.start_offset, m.leader_epoch)
    if version >= 1:
        out += _pack_q(m.lag)
    out += _pack_h(m.error_code)
    put_compact_nullable_string(out, shortened(m.error_message))
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)


def _read_describe_share_group_offsets_response_topic(buf: Buffer, pos: int, limit: int, version: int) -> tuple[DescribeShareGroupOffsetsResponseTopic, int]:
    m = object.__new__(DescribeShareGroupOffsetsResponseTopic)
    m.topic_name, pos = read_compact_string(buf, pos, limit)
    (m.topic_id,) = _unpack_u(buf, pos)
    pos += 16
    count, pos = read_compact_count(buf, pos, limit, 20)
    partitions_: list[DescribeShareGroupOffsetsResponsePartition] = []
    for _ in range(count):
        partitions_item, pos = _read_describe_share_group_offsets_response_partition(buf, pos, limit, version)
        partitions_.append(partitions_item)
    m.partitions = partitions_
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
    return m, pos


def _write_describe_share_group_offsets_response_topic(out: bytearray, m: DescribeShareGroupOffsetsResponseTopic, version: int) -> None:
    put_compact_string(out, m.topic_name)
    put_uuid(out, m.topic_id)
    put_compact_count(out, len(m.partitions))
    for partitions_item in m.partitions:
        _write_describe_share_group_offsets_response_partition(out, partitions_item, version)
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)


def _read_describe_share_group_offsets_response_group(buf: Buffer, pos: int, limit: int, version: int) -> tuple[DescribeShareGroupOffsetsResponseGroup, int]:
    m = object.__new__(DescribeShareGroupOffsetsResponseGroup)
    m.group_id, pos = read_compact_string(buf, pos, limit)
    count, pos = read_compact_count(buf, pos, limit, 19)
    topics_: list[DescribeShareGroupOffsetsResponseTopic] = []
    for _ in range(count):
        topics_item, pos = _read_describe_share_group_offsets_response_topic(buf, pos, limit, version)
        topics_.append(topics_item)
    m.topics = topics_
    (m.error_code,) = _unpack_h(buf, pos)
    pos += 2
    m.error_message, pos = read_compact_nullable_string(buf, pos, limit)
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
    return m, pos


def _write_describe_share_group_offsets_response_group(out: bytearray, m: DescribeShareGroupOffsetsResponseGroup, version: int) -> None:
    put_compact_string(out, m.group_id)
    put_compact_count(out, len(m.topics))
    for topics_item in m.topics:
        _write_describe_share_group_offsets_response_topic(out, topics_item, version)
    out += _pack_h(m.error_code)
    put_compact_nullable_string(out, shortened(m.error_message))
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)


def _read_describe_share_group_offsets_response(buf: Buffer, pos: int, limit: int, version: int) -> tuple[DescribeShareGroupOffsetsResponse, int]:
    m = object.__new__(DescribeShareGroupOffsetsResponse)
    (m.throttle_time_ms,) = _unpack_i(buf, pos)
    pos += 4
    count, pos = read_compact_count(buf, pos, limit, 6)
    groups_: list[DescribeShareGroupOffsetsResponseGroup] = []
    for _ in range(count):
        groups_item, pos = _read_describe_share_group_offsets_response_group(buf, pos, limit, version)
        groups_.append(groups_item)
    m.groups = groups_
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
    return m, pos


def _write_describe_share_group_offsets_response(out: bytearray, m: DescribeShareGroupOffsetsResponse, version: int) -> None:
    out += _pack_i(m.throttle_time_ms)
    put_compact_count(out, len(m.groups))
    for groups_item in m.groups:
        _write_describe_share_group_offsets_response_group(out, groups_item, version)
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)
