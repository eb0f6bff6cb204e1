"""Stores a group's positions.

Made from schemas/offset_commit.schema by `python -m ottla.protocol.compile`: change that file.
"""

from __future__ import annotations

from collections.abc import Mapping
from struct import Struct

from ottla.protocol.message import Message, Structure, bad_bytes, bad_value, not_in_version, not_tagged, undecodable, unencodable
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
    put_count,
    put_nullable_string,
    put_string,
    put_tags,
    put_uuid,
    read_compact_count,
    read_compact_nullable_string,
    read_compact_string,
    read_count,
    read_nullable_string,
    read_string,
    read_tags,
)

_pack_i = Struct(">i").pack
_pack_ih = Struct(">ih").pack
_pack_iq = Struct(">iq").pack
_pack_q = Struct(">q").pack
_unpack_i = Struct(">i").unpack_from
_unpack_ih = Struct(">ih").unpack_from
_unpack_iq = Struct(">iq").unpack_from
_unpack_q = Struct(">q").unpack_from
_unpack_u = Struct(">16s").unpack_from

class OffsetCommitRequestPartition(Structure):
    __slots__ = ("partition_index", "committed_offset", "committed_leader_epoch", "committed_metadata", "unknown_tags",)

    def __init__(
        self,
        *,
        partition_index: int = 0,
        committed_offset: int = 0,
        committed_leader_epoch: int = -1,
        committed_metadata: str | None = "",
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.partition_index = partition_index
        self.committed_offset = committed_offset
        self.committed_leader_epoch = committed_leader_epoch
        self.committed_metadata = committed_metadata
        self.unknown_tags = unknown_tags


class OffsetCommitRequestTopic(Structure):
    __slots__ = ("name", "topic_id", "partitions", "unknown_tags",)

    def __init__(
        self,
        *,
        name: str = "",
        topic_id: bytes = ZERO_UUID,
        partitions: list[OffsetCommitRequestPartition] = EMPTY_LIST,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.name = name
        self.topic_id = topic_id
        self.partitions = [] if partitions is EMPTY_LIST else partitions
        self.unknown_tags = unknown_tags


class OffsetCommitRequest(Message):
    __slots__ = ("group_id", "generation_id_or_member_epoch", "member_id", "group_instance_id", "retention_time_ms", "topics", "unknown_tags",)
    API_KEY = 8
    MIN_VERSION = 2
    MAX_VERSION = 10
    FLEXIBLE_FROM = 8
    HAS_ARRAYS = True

    def __init__(
        self,
        *,
        group_id: str = "",
        generation_id_or_member_epoch: int = -1,
        member_id: str = "",
        group_instance_id: str | None = None,
        retention_time_ms: int = -1,
        topics: list[OffsetCommitRequestTopic] = EMPTY_LIST,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.group_id = group_id
        self.generation_id_or_member_epoch = generation_id_or_member_epoch
        self.member_id = member_id
        self.group_instance_id = group_instance_id
        self.retention_time_ms = retention_time_ms
        self.topics = [] if topics is EMPTY_LIST else topics
        self.unknown_tags = unknown_tags

    def encode_into(self, out: bytearray, version: int) -> None:
        if not 2 <= version <= 10:
            raise unencodable(OffsetCommitRequest, version)
        try:
            _write_offset_commit_request(out, self, version)
        except ENCODE_FAULTS as fault:
            raise bad_value(OffsetCommitRequest, version, fault) from fault

    @classmethod
    def decode(cls, buf: Buffer, version: int, pos: int = 0) -> tuple[OffsetCommitRequest, int]:
        if not 2 <= version <= 10:
            raise undecodable(OffsetCommitRequest, version)
        try:
            return _read_offset_commit_request(buf, pos, len(buf), version)
        except DECODE_FAULTS as fault:
            raise bad_bytes(OffsetCommitRequest, version, fault) from fault


class OffsetCommitResponsePartition(Structure):
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


class OffsetCommitResponseTopic(Structure):
    __slots__ = ("name", "topic_id", "partitions", "unknown_tags",)

    def __init__(
        self,
        *,
        name: str = "",
        topic_id: bytes = ZERO_UUID,
        partitions: list[OffsetCommitResponsePartition] = EMPTY_LIST,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.name = name
        self.topic_id = topic_id
        self.partitions = [] if partitions is EMPTY_LIST else partitions
        self.unknown_tags = unknown_tags


class OffsetCommitResponse(Message):
    __slots__ = ("throttle_time_ms", "topics", "unknown_tags",)
    API_KEY = 8
    MIN_VERSION = 2
    MAX_VERSION = 10
    FLEXIBLE_FROM = 8
    HAS_ARRAYS = True

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        topics: list[OffsetCommitResponseTopic] = EMPTY_LIST,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.topics = [] if topics is EMPTY_LIST else topics
        self.unknown_tags = unknown_tags

    def encode_into(self, out: bytearray, version: int) -> None:
        if not 2 <= version <= 10:
            raise unencodable(OffsetCommitResponse, version)
        try:
            _write_offset_commit_response(out, self, version)
        except ENCODE_FAULTS as fault:
            raise bad_value(OffsetCommitResponse, version, fault) from fault

    @classmethod
    def decode(cls, buf: Buffer, version: int, pos: int = 0) -> tuple[OffsetCommitResponse, int]:
        if not 2 <= version <= 10:
            raise undecodable(OffsetCommitResponse, version)
        try:
            return _read_offset_commit_response(buf, pos, len(buf), version)
        except DECODE_FAULTS as fault:
            raise bad_bytes(OffsetCommitResponse, version, fault) from fault


def _read_offset_commit_request_partition(buf: Buffer, pos: int, limit: int, version: int) -> tuple[OffsetCommitRequestPartition, int]:
    m = object.__new__(OffsetCommitRequestPartition)
    m.partition_index, m.committed_offset = _unpack_iq(buf, pos)
    pos += 12
    if version >= 6:
        (m.committed_leader_epoch,) = _unpack_i(buf, pos)
        pos += 4
    else:
        m.committed_leader_epoch = -1
    if version >= 8:
        m.committed_metadata, pos = read_compact_nullable_string(buf, pos, limit)
    else:
        m.committed_metadata, pos = read_nullable_string(buf, pos, limit)
    if version >= 8:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            m.unknown_tags, pos = read_tags(buf, pos, limit)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _write_offset_commit_request_partition(out: bytearray, m: OffsetCommitRequestPartition, version: int) -> None:
    out += _pack_iq(m.partition_index, m.committed_offset)
    if version >= 6:
        out += _pack_i(m.committed_leader_epoch)
    if version >= 8:
        put_compact_nullable_string(out, m.committed_metadata)
    else:
        put_nullable_string(out, m.committed_metadata)
    if version >= 8:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)


def _read_offset_commit_request_topic(buf: Buffer, pos: int, limit: int, version: int) -> tuple[OffsetCommitRequestTopic, int]:
    m = object.__new__(OffsetCommitRequestTopic)
    if version >= 10:
        m.name = ""
    elif version >= 8:
        m.name, pos = read_compact_string(buf, pos, limit)
    else:
        m.name, pos = read_string(buf, pos, limit)
    if version >= 10:
        (m.topic_id,) = _unpack_u(buf, pos)
        pos += 16
    else:
        m.topic_id = ZERO_UUID
    count, pos = read_compact_count(buf, pos, limit, 14) if version >= 8 else read_count(buf, pos, limit, 14)
    partitions_: list[OffsetCommitRequestPartition] = []
    for _ in range(count):
        partitions_item, pos = _read_offset_commit_request_partition(buf, pos, limit, version)
        partitions_.append(partitions_item)
    m.partitions = partitions_
    if version >= 8:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            m.unknown_tags, pos = read_tags(buf, pos, limit)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _write_offset_commit_request_topic(out: bytearray, m: OffsetCommitRequestTopic, version: int) -> None:
    if version >= 10:
        pass
    elif version >= 8:
        put_compact_string(out, m.name)
    else:
        put_string(out, m.name)
    if version >= 10:
        put_uuid(out, m.topic_id)
    if version >= 8:
        put_compact_count(out, len(m.partitions))
    else:
        put_count(out, len(m.partitions))
    for partitions_item in m.partitions:
        _write_offset_commit_request_partition(out, partitions_item, version)
    if version >= 8:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)


def _read_offset_commit_request(buf: Buffer, pos: int, limit: int, version: int) -> tuple[OffsetCommitRequest, int]:
    m = object.__new__(OffsetCommitRequest)
    if version >= 8:
        m.group_id, pos = read_compact_string(buf, pos, limit)
    else:
        m.group_id, pos = read_string(buf, pos, limit)
    (m.generation_id_or_member_epoch,) = _unpack_i(buf, pos)
    pos += 4
    if version >= 8:
        m.member_id, pos = read_compact_string(buf, pos, limit)
    else:
        m.member_id, pos = read_string(buf, pos, limit)
    if version >= 8:
        m.group_instance_id, pos = read_compact_nullable_string(buf, pos, limit)
    elif version >= 7:
        m.group_instance_id, pos = read_nullable_string(buf, pos, limit)
    else:
        m.group_instance_id = None
    if version >= 5:
        m.retention_time_ms = -1
    else:
        (m.retention_time_ms,) = _unpack_q(buf, pos)
        pos += 8
    count, pos = read_compact_count(buf, pos, limit, 3) if version >= 8 else read_count(buf, pos, limit, 3)
    topics_: list[OffsetCommitRequestTopic] = []
    for _ in range(count):
        topics_item, pos = _read_offset_commit_request_topic(buf, pos, limit, version)
        topics_.append(topics_item)
    m.topics = topics_
    if version >= 8:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            m.unknown_tags, pos = read_tags(buf, pos, limit)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _write_offset_commit_request(out: bytearray, m: OffsetCommitRequest, version: int) -> None:
    if version >= 8:
        put_compact_string(out, m.group_id)
    else:
        put_string(out, m.group_id)
    out += _pack_i(m.generation_id_or_member_epoch)
    if version >= 8:
        put_compact_string(out, m.member_id)
    else:
        put_string(out, m.member_id)
    if version >= 8:
        put_compact_nullable_string(out, m.group_instance_id)
    elif version >= 7:
        put_nullable_string(out, m.group_instance_id)
    else:
        if m.group_instance_id is not None:
            raise not_in_version(m, "group_instance_id", version)
    if version < 5:
        out += _pack_q(m.retention_time_ms)
    if version >= 8:
        put_compact_count(out, len(m.topics))
    else:
        put_count(out, len(m.topics))
    for topics_item in m.topics:
        _write_offset_commit_request_topic(out, topics_item, version)
    if version >= 8:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)


def _read_offset_commit_response_partition(buf: Buffer, pos: int, limit: int, version: int) -> tuple[OffsetCommitResponsePartition, int]:
    m = object.__new__(OffsetCommitResponsePartition)
    m.partition_index, m.error_code = _unpack_ih(buf, pos)
    pos += 6
    if version >= 8:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            m.unknown_tags, pos = read_tags(buf, pos, limit)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _write_offset_commit_response_partition(out: bytearray, m: OffsetCommitResponsePartition, version: int) -> None:
    out += _pack_ih(m.partition_index, m.error_code)
    if version >= 8:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)


def _read_offset_commit_response_topic(buf: Buffer, pos: int, limit: int, version: int) -> tuple[OffsetCommitResponseTopic, int]:
    m = object.__new__(OffsetCommitResponseTopic)
    if version >= 10:
        m.name = ""
    elif version >= 8:
        m.name, pos = read_compact_string(buf, pos, limit)
    else:
        m.name, pos = read_string(buf, pos, limit)
    if version >= 10:
        (m.topic_id,) = _unpack_u(buf, pos)
        pos += 16
    else:
        m.topic_id = ZERO_UUID
    count, pos = read_compact_count(buf, pos, limit, 6) if version >= 8 else read_count(buf, pos, limit, 6)
    partitions_: list[OffsetCommitResponsePartition] = []
    for _ in range(count):
        partitions_item, pos = _read_offset_commit_response_partition(buf, pos, limit, version)
        partitions_.append(partitions_item)
    m.partitions = partitions_
    if version >= 8:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            m.unknown_tags, pos = read_tags(buf, pos, limit)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _write_offset_commit_response_topic(out: bytearray, m: OffsetCommitResponseTopic, version: int) -> None:
    if version >= 10:
        pass
    elif version >= 8:
        put_compact_string(out, m.name)
    else:
        put_string(out, m.name)
    if version >= 10:
        put_uuid(out, m.topic_id)
    if version >= 8:
        put_compact_count(out, len(m.partitions))
    else:
        put_count(out, len(m.partitions))
    for partitions_item in m.partitions:
        _write_offset_commit_response_partition(out, partitions_item, version)
    if version >= 8:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)


def _read_offset_commit_response(buf: Buffer, pos: int, limit: int, version: int) -> tuple[OffsetCommitResponse, int]:
    m = object.__new__(OffsetCommitResponse)
    if version >= 3:
        (m.throttle_time_ms,) = _unpack_i(buf, pos)
        pos += 4
    else:
        m.throttle_time_ms = 0
    count, pos = read_compact_count(buf, pos, limit, 3) if version >= 8 else read_count(buf, pos, limit, 3)
    topics_: list[OffsetCommitResponseTopic] = []
    for _ in range(count):
        topics_item, pos = _read_offset_commit_response_topic(buf, pos, limit, version)
        topics_.append(topics_item)
    m.topics = topics_
    if version >= 8:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            m.unknown_tags, pos = read_tags(buf, pos, limit)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _write_offset_commit_response(out: bytearray, m: OffsetCommitResponse, version: int) -> None:
    if version >= 3:
        out += _pack_i(m.throttle_time_ms)
    if version >= 8:
        put_compact_count(out, len(m.topics))
    else:
        put_count(out, len(m.topics))
    for topics_item in m.topics:
        _write_offset_commit_response_topic(out, topics_item, version)
    if version >= 8:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)
