"""Sets where share groups start in partitions.

Made from schemas/alter_share_group_offsets.schema by `python -m ottla.protocol.compile`: change that file.
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
_pack_iq = Struct(">iq").pack
_unpack_ih = Struct(">ih").unpack_from
_unpack_iq = Struct(">iq").unpack_from
_unpack_u = Struct(">16s").unpack_from

class AlterShareGroupOffsetsRequestPartition(Structure):
    __slots__ = ("partition_index", "start_offset", "unknown_tags",)

    def __init__(
        self,
        *,
        partition_index: int = 0,
        start_offset: int = 0,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.partition_index = partition_index
        self.start_offset = start_offset
        self.unknown_tags = unknown_tags


class AlterShareGroupOffsetsRequestTopic(Structure):
    __slots__ = ("topic_name", "partitions", "unknown_tags",)

    def __init__(
        self,
        *,
        topic_name: str = "",
        partitions: list[AlterShareGroupOffsetsRequestPartition] = EMPTY_LIST,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.topic_name = topic_name
        self.partitions = [] if partitions is EMPTY_LIST else partitions
        self.unknown_tags = unknown_tags


class AlterShareGroupOffsetsRequest(Message):
    __slots__ = ("group_id", "topics", "unknown_tags",)
    API_KEY = 91
    MIN_VERSION = 0
    MAX_VERSION = 0
    FLEXIBLE_FROM = 0
    HAS_ARRAYS = True

    def __init__(
        self,
        *,
        group_id: str = "",
        topics: list[AlterShareGroupOffsetsRequestTopic] = EMPTY_LIST,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.group_id = group_id
        self.topics = [] if topics is EMPTY_LIST else topics
        self.unknown_tags = unknown_tags

    def encode_into(self, out: bytearray, version: int) -> None:
        if not 0 <= version <= 0:
            raise unencodable(AlterShareGroupOffsetsRequest, version)
        try:
            _write_alter_share_group_offsets_request(out, self, version)
        except ENCODE_FAULTS as fault:
            raise bad_value(AlterShareGroupOffsetsRequest, version, fault) from fault

    @classmethod
    def decode(cls, buf: Buffer, version: int, pos: int = 0) -> tuple[AlterShareGroupOffsetsRequest, int]:
        if not 0 <= version <= 0:
            raise undecodable(AlterShareGroupOffsetsRequest, version)
        try:
            return _read_alter_share_group_offsets_request(buf, pos, len(buf), version)
        except DECODE_FAULTS as fault:
            raise bad_bytes(AlterShareGroupOffsetsRequest, version, fault) from fault


class AlterShareGroupOffsetsResponsePartition(Structure):
    __slots__ = ("partition_index", "error_code", "error_message", "unknown_tags",)

    def __init__(
        self,
        *,
        partition_index: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.partition_index = partition_index
        self.error_code = error_code
        self.error_message = error_message
        self.unknown_tags = unknown_tags


class AlterShareGroupOffsetsResponseTopic(Structure):
    __slots__ = ("topic_name", "topic_id", "partitions", "unknown_tags",)

    def __init__(
        self,
        *,
        topic_name: str = "",
        topic_id: bytes = ZERO_UUID,
        partitions: list[AlterShareGroupOffsetsResponsePartition] = EMPTY_LIST,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.topic_name = topic_name
        self.topic_id = topic_id
        self.partitions = [] if partitions is EMPTY_LIST else partitions
        self.unknown_tags = unknown_tags


class AlterShareGroupOffsetsResponse(Message):
    __slots__ = ("throttle_time_ms", "error_code", "error_message", "responses", "unknown_tags",)
    API_KEY = 91
    MIN_VERSION = 0
    MAX_VERSION = 0
    FLEXIBLE_FROM = 0
    HAS_ARRAYS = True

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        responses: list[AlterShareGroupOffsetsResponseTopic] = EMPTY_LIST,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
        self.responses = [] if responses is EMPTY_LIST else responses
        self.unknown_tags = unknown_tags

    def encode_into(self, out: bytearray, version: int) -> None:
        if not 0 <= version <= 0:
            raise unencodable(AlterShareGroupOffsetsResponse, version)
        try:
            _write_alter_share_group_offsets_response(out, self, version)
        except ENCODE_FAULTS as fault:
            raise bad_value(AlterShareGroupOffsetsResponse, version, fault) from fault

    @classmethod
    def decode(cls, buf: Buffer, version: int, pos: int = 0) -> tuple[AlterShareGroupOffsetsResponse, int]:
        if not 0 <= version <= 0:
            raise undecodable(AlterShareGroupOffsetsResponse, version)
        try:
            return _read_alter_share_group_offsets_response(buf, pos, len(buf), version)
        except DECODE_FAULTS as fault:
            raise bad_bytes(AlterShareGroupOffsetsResponse, version, fault) from fault


def _read_alter_share_group_offsets_request_partition(buf: Buffer, pos: int, limit: int, version: int) -> tuple[AlterShareGroupOffsetsRequestPartition, int]:
    m = object.__new__(AlterShareGroupOffsetsRequestPartition)
    m.partition_index, m.start_offset = _unpack_iq(buf, pos)
    pos += 12
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
    return m, pos


def _write_alter_share_group_offsets_request_partition(out: bytearray, m: AlterShareGroupOffsetsRequestPartition, version: int) -> None:
    out += _pack_iq(m.partition_index, m.start_offset)
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)


def _read_alter_share_group_offsets_request_topic(buf: Buffer, pos: int, limit: int, version: int) -> tuple[AlterShareGroupOffsetsRequestTopic, int]:
    m = object.__new__(AlterShareGroupOffsetsRequestTopic)
    m.topic_name, pos = read_compact_string(buf, pos, limit)
    count, pos = read_compact_count(buf, pos, limit, 13)
    partitions_: list[AlterShareGroupOffsetsRequestPartition] = []
    for _ in range(count):
        partitions_item, pos = _read_alter_share_group_offsets_request_partition(buf, pos, limit, version)
        partitions_.append(partitions_item)
    m.partitions = partitions_
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
    return m, pos


def _write_alter_share_group_offsets_request_topic(out: bytearray, m: AlterShareGroupOffsetsRequestTopic, version: int) -> None:
    put_compact_string(out, m.topic_name)
    put_compact_count(out, len(m.partitions))
    for partitions_item in m.partitions:
        _write_alter_share_group_offsets_request_partition(out, partitions_item, version)
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)


def _read_alter_share_group_offsets_request(buf: Buffer, pos: int, limit: int, version: int) -> tuple[AlterShareGroupOffsetsRequest, int]:
    m = object.__new__(AlterShareGroupOffsetsRequest)
    m.group_id, pos = read_compact_string(buf, pos, limit)
    count, pos = read_compact_count(buf, pos, limit, 3)
    topics_: list[AlterShareGroupOffsetsRequestTopic] = []
    for _ in range(count):
        topics_item, pos = _read_alter_share_group_offsets_request_topic(buf, pos, limit, version)
        topics_.append(topics_item)
    m.topics = topics_
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
    return m, pos


def _write_alter_share_group_offsets_request(out: bytearray, m: AlterShareGroupOffsetsRequest, version: int) -> None:
    put_compact_string(out, m.group_id)
    put_compact_count(out, len(m.topics))
    for topics_item in m.topics:
        _write_alter_share_group_offsets_request_topic(out, topics_item, version)
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)


def _read_alter_share_group_offsets_response_partition(buf: Buffer, pos: int, limit: int, version: int) -> tuple[AlterShareGroupOffsetsResponsePartition, int]:
    m = object.__new__(AlterShareGroupOffsetsResponsePartition)
    m.partition_index, m.error_code = _unpack_ih(buf, pos)
    pos += 6
    m.error_message, pos = read_compact_nullable_string(buf, pos, limit)
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
    return m, pos


def _write_alter_share_group_offsets_response_partition(out: bytearray, m: AlterShareGroupOffsetsResponsePartition, version: int) -> None:
    out += _pack_ih(m.partition_index, m.error_code)
    put_compact_nullable_string(out, shortened(m.error_message))
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)


def _read_alter_share_group_offsets_response_topic(buf: Buffer, pos: int, limit: int, version: int) -> tuple[AlterShareGroupOffsetsResponseTopic, int]:
    m = object.__new__(AlterShareGroupOffsetsResponseTopic)
    m.topic_name, pos = read_compact_string(buf, pos, limit)
    (m.topic_id,) = _unpack_u(buf, pos)
    pos += 16
    count, pos = read_compact_count(buf, pos, limit, 8)
    partitions_: list[AlterShareGroupOffsetsResponsePartition] = []
    for _ in range(count):
        partitions_item, pos = _read_alter_share_group_offsets_response_partition(buf, pos, limit, version)
        partitions_.append(partitions_item)
    m.partitions = partitions_
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
    return m, pos


def _write_alter_share_group_offsets_response_topic(out: bytearray, m: AlterShareGroupOffsetsResponseTopic, version: int) -> None:
    put_compact_string(out, m.topic_name)
    put_uuid(out, m.topic_id)
    put_compact_count(out, len(m.partitions))
    for partitions_item in m.partitions:
        _write_alter_share_group_offsets_response_partition(out, partitions_item, version)
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)


def _read_alter_share_group_offsets_response(buf: Buffer, pos: int, limit: int, version: int) -> tuple[AlterShareGroupOffsetsResponse, int]:
    m = object.__new__(AlterShareGroupOffsetsResponse)
    m.throttle_time_ms, m.error_code = _unpack_ih(buf, pos)
    pos += 6
    m.error_message, pos = read_compact_nullable_string(buf, pos, limit)
    count, pos = read_compact_count(buf, pos, limit, 19)
    responses_: list[AlterShareGroupOffsetsResponseTopic] = []
    for _ in range(count):
        responses_item, pos = _read_alter_share_group_offsets_response_topic(buf, pos, limit, version)
        responses_.append(responses_item)
    m.responses = responses_
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
    return m, pos


def _write_alter_share_group_offsets_response(out: bytearray, m: AlterShareGroupOffsetsResponse, version: int) -> None:
    out += _pack_ih(m.throttle_time_ms, m.error_code)
    put_compact_nullable_string(out, shortened(m.error_message))
    put_compact_count(out, len(m.responses))
    for responses_item in m.responses:
        _write_alter_share_group_offsets_response_topic(out, responses_item, version)
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)
