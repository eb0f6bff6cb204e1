"""Finds offsets by timestamp, or a partition's first, last and special ones.

Made from schemas/list_offsets.schema by `python -m ottla.protocol.compile`: change that file.
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

_pack_b = Struct(">b").pack
_pack_i = Struct(">i").pack
_pack_ihqq = Struct(">ihqq").pack
_pack_q = Struct(">q").pack
_unpack_b = Struct(">b").unpack_from
_unpack_i = Struct(">i").unpack_from
_unpack_ihqq = Struct(">ihqq").unpack_from
_unpack_q = Struct(">q").unpack_from

class ListOffsetsPartition(Structure):
    __slots__ = ("partition_index", "current_leader_epoch", "timestamp", "unknown_tags",)

    def __init__(
        self,
        *,
        partition_index: int = 0,
        current_leader_epoch: int = -1,
        timestamp: int = 0,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.partition_index = partition_index
        self.current_leader_epoch = current_leader_epoch
        self.timestamp = timestamp
        self.unknown_tags = unknown_tags


class ListOffsetsTopic(Structure):
    __slots__ = ("name", "partitions", "unknown_tags",)

    def __init__(
        self,
        *,
        name: str = "",
        partitions: list[ListOffsetsPartition] = EMPTY_LIST,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.name = name
        self.partitions = [] if partitions is EMPTY_LIST else partitions
        self.unknown_tags = unknown_tags


class ListOffsetsRequest(Message):
    __slots__ = ("replica_id", "isolation_level", "topics", "timeout_ms", "unknown_tags",)
    API_KEY = 2
    MIN_VERSION = 1
    MAX_VERSION = 11
    FLEXIBLE_FROM = 6
    HAS_ARRAYS = True

    def __init__(
        self,
        *,
        replica_id: int = 0,
        isolation_level: int = 0,
        topics: list[ListOffsetsTopic] = EMPTY_LIST,
        timeout_ms: int = 0,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.replica_id = replica_id
        self.isolation_level = isolation_level
        self.topics = [] if topics is EMPTY_LIST else topics
        self.timeout_ms = timeout_ms
        self.unknown_tags = unknown_tags

    def encode_into(self, out: bytearray, version: int) -> None:
        if not 1 <= version <= 11:
            raise unencodable(ListOffsetsRequest, version)
        try:
            _write_list_offsets_request(out, self, version)
        except ENCODE_FAULTS as fault:
            raise bad_value(ListOffsetsRequest, version, fault) from fault

    @classmethod
    def decode(cls, buf: Buffer, version: int, pos: int = 0) -> tuple[ListOffsetsRequest, int]:
        if not 1 <= version <= 11:
            raise undecodable(ListOffsetsRequest, version)
        try:
            return _read_list_offsets_request(buf, pos, len(buf), version)
        except DECODE_FAULTS as fault:
            raise bad_bytes(ListOffsetsRequest, version, fault) from fault


class ListOffsetsPartitionResponse(Structure):
    __slots__ = ("partition_index", "error_code", "timestamp", "offset", "leader_epoch", "unknown_tags",)

    def __init__(
        self,
        *,
        partition_index: int = 0,
        error_code: int = 0,
        timestamp: int = -1,
        offset: int = -1,
        leader_epoch: int = -1,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.partition_index = partition_index
        self.error_code = error_code
        self.timestamp = timestamp
        self.offset = offset
        self.leader_epoch = leader_epoch
        self.unknown_tags = unknown_tags


class ListOffsetsTopicResponse(Structure):
    __slots__ = ("name", "partitions", "unknown_tags",)

    def __init__(
        self,
        *,
        name: str = "",
        partitions: list[ListOffsetsPartitionResponse] = EMPTY_LIST,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.name = name
        self.partitions = [] if partitions is EMPTY_LIST else partitions
        self.unknown_tags = unknown_tags


class ListOffsetsResponse(Message):
    __slots__ = ("throttle_time_ms", "topics", "unknown_tags",)
    API_KEY = 2
    MIN_VERSION = 1
    MAX_VERSION = 11
    FLEXIBLE_FROM = 6
    HAS_ARRAYS = True

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        topics: list[ListOffsetsTopicResponse] = EMPTY_LIST,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.topics = [] if topics is EMPTY_LIST else topics
        self.unknown_tags = unknown_tags

    def encode_into(self, out: bytearray, version: int) -> None:
        if not 1 <= version <= 11:
            raise unencodable(ListOffsetsResponse, version)
        try:
            _write_list_offsets_response(out, self, version)
        except ENCODE_FAULTS as fault:
            raise bad_value(ListOffsetsResponse, version, fault) from fault

    @classmethod
    def decode(cls, buf: Buffer, version: int, pos: int = 0) -> tuple[ListOffsetsResponse, int]:
        if not 1 <= version <= 11:
            raise undecodable(ListOffsetsResponse, version)
        try:
            return _read_list_offsets_response(buf, pos, len(buf), version)
        except DECODE_FAULTS as fault:
            raise bad_bytes(ListOffsetsResponse, version, fault) from fault


def _read_list_offsets_partition(buf: Buffer, pos: int, limit: int, version: int) -> tuple[ListOffsetsPartition, int]:
    m = object.__new__(ListOffsetsPartition)
    (m.partition_index,) = _unpack_i(buf, pos)
    pos += 4
    if version >= 4:
        (m.current_leader_epoch,) = _unpack_i(buf, pos)
        pos += 4
    else:
        m.current_leader_epoch = -1
    (m.timestamp,) = _unpack_q(buf, pos)
    pos += 8
    if version >= 6:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            m.unknown_tags, pos = read_tags(buf, pos, limit)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _write_list_offsets_partition(out: bytearray, m: ListOffsetsPartition, version: int) -> None:
    out += _pack_i(m.partition_index)
    if version >= 4:
        out += _pack_i(m.current_leader_epoch)
    out += _pack_q(m.timestamp)
    if version >= 6:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)


def _read_list_offsets_topic(buf: Buffer, pos: int, limit: int, version: int) -> tuple[ListOffsetsTopic, int]:
    m = object.__new__(ListOffsetsTopic)
    if version >= 6:
        m.name, pos = read_compact_string(buf, pos, limit)
    else:
        m.name, pos = read_string(buf, pos, limit)
    count, pos = read_compact_count(buf, pos, limit, 12) if version >= 6 else read_count(buf, pos, limit, 12)
    partitions_: list[ListOffsetsPartition] = []
    for _ in range(count):
        partitions_item, pos = _read_list_offsets_partition(buf, pos, limit, version)
        partitions_.append(partitions_item)
    m.partitions = partitions_
    if version >= 6:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            m.unknown_tags, pos = read_tags(buf, pos, limit)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _write_list_offsets_topic(out: bytearray, m: ListOffsetsTopic, version: int) -> None:
    if version >= 6:
        put_compact_string(out, m.name)
    else:
        put_string(out, m.name)
    if version >= 6:
        put_compact_count(out, len(m.partitions))
    else:
        put_count(out, len(m.partitions))
    for partitions_item in m.partitions:
        _write_list_offsets_partition(out, partitions_item, version)
    if version >= 6:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)


def _read_list_offsets_request(buf: Buffer, pos: int, limit: int, version: int) -> tuple[ListOffsetsRequest, int]:
    m = object.__new__(ListOffsetsRequest)
    (m.replica_id,) = _unpack_i(buf, pos)
    pos += 4
    if version >= 2:
        (m.isolation_level,) = _unpack_b(buf, pos)
        pos += 1
    else:
        m.isolation_level = 0
    count, pos = read_compact_count(buf, pos, limit, 3) if version >= 6 else read_count(buf, pos, limit, 3)
    topics_: list[ListOffsetsTopic] = []
    for _ in range(count):
        topics_item, pos = _read_list_offsets_topic(buf, pos, limit, version)
        topics_.append(topics_item)
    m.topics = topics_
    if version >= 10:
        (m.timeout_ms,) = _unpack_i(buf, pos)
        pos += 4
    else:
        m.timeout_ms = 0
    if version >= 6:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            m.unknown_tags, pos = read_tags(buf, pos, limit)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _write_list_offsets_request(out: bytearray, m: ListOffsetsRequest, version: int) -> None:
    out += _pack_i(m.replica_id)
    if version >= 2:
        out += _pack_b(m.isolation_level)
    else:
        if m.isolation_level != 0:
            raise not_in_version(m, "isolation_level", version)
    if version >= 6:
        put_compact_count(out, len(m.topics))
    else:
        put_count(out, len(m.topics))
    for topics_item in m.topics:
        _write_list_offsets_topic(out, topics_item, version)
    if version >= 10:
        out += _pack_i(m.timeout_ms)
    if version >= 6:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)


def _read_list_offsets_partition_response(buf: Buffer, pos: int, limit: int, version: int) -> tuple[ListOffsetsPartitionResponse, int]:
    m = object.__new__(ListOffsetsPartitionResponse)
    m.partition_index, m.error_code, m.timestamp, m.offset = _unpack_ihqq(buf, pos)
    pos += 22
    if version >= 4:
        (m.leader_epoch,) = _unpack_i(buf, pos)
        pos += 4
    else:
        m.leader_epoch = -1
    if version >= 6:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            m.unknown_tags, pos = read_tags(buf, pos, limit)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _write_list_offsets_partition_response(out: bytearray, m: ListOffsetsPartitionResponse, version: int) -> None:
    out += _pack_ihqq(m.partition_index, m.error_code, m.timestamp, m.offset)
    if version >= 4:
        out += _pack_i(m.leader_epoch)
    else:
        if m.leader_epoch != -1:
            raise not_in_version(m, "leader_epoch", version)
    if version >= 6:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)


def _read_list_offsets_topic_response(buf: Buffer, pos: int, limit: int, version: int) -> tuple[ListOffsetsTopicResponse, int]:
    m = object.__new__(ListOffsetsTopicResponse)
    if version >= 6:
        m.name, pos = read_compact_string(buf, pos, limit)
    else:
        m.name, pos = read_string(buf, pos, limit)
    count, pos = read_compact_count(buf, pos, limit, 22) if version >= 6 else read_count(buf, pos, limit, 22)
    partitions_: list[ListOffsetsPartitionResponse] = []
    for _ in range(count):
        partitions_item, pos = _read_list_offsets_partition_response(buf, pos, limit, version)
        partitions_.append(partitions_item)
    m.partitions = partitions_
    if version >= 6:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            m.unknown_tags, pos = read_tags(buf, pos, limit)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _write_list_offsets_topic_response(out: bytearray, m: ListOffsetsTopicResponse, version: int) -> None:
    if version >= 6:
        put_compact_string(out, m.name)
    else:
        put_string(out, m.name)
    if version >= 6:
        put_compact_count(out, len(m.partitions))
    else:
        put_count(out, len(m.partitions))
    for partitions_item in m.partitions:
        _write_list_offsets_partition_response(out, partitions_item, version)
    if version >= 6:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)


def _read_list_offsets_response(buf: Buffer, pos: int, limit: int, version: int) -> tuple[ListOffsetsResponse, int]:
    m = object.__new__(ListOffsetsResponse)
    if version >= 2:
        (m.throttle_time_ms,) = _unpack_i(buf, pos)
        pos += 4
    else:
        m.throttle_time_ms = 0
    count, pos = read_compact_count(buf, pos, limit, 3) if version >= 6 else read_count(buf, pos, limit, 3)
    topics_: list[ListOffsetsTopicResponse] = []
    for _ in range(count):
        topics_item, pos = _read_list_offsets_topic_response(buf, pos, limit, version)
        topics_.append(topics_item)
    m.topics = topics_
    if version >= 6:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            m.unknown_tags, pos = read_tags(buf, pos, limit)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _write_list_offsets_response(out: bytearray, m: ListOffsetsResponse, version: int) -> None:
    if version >= 2:
        out += _pack_i(m.throttle_time_ms)
    if version >= 6:
        put_compact_count(out, len(m.topics))
    else:
        put_count(out, len(m.topics))
    for topics_item in m.topics:
        _write_list_offsets_topic_response(out, topics_item, version)
    if version >= 6:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)
