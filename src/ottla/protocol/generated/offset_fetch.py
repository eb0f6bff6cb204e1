"""Reads the positions that groups have committed.

Made from schemas/offset_fetch.schema by `python -m ottla.protocol.compile`: change that file.
"""

from __future__ import annotations

from collections.abc import Mapping
from struct import Struct

from ottla.protocol.message import Message, Structure, bad_bytes, bad_value, not_in_version, not_nullable, not_tagged, undecodable, unencodable
from ottla.protocol.primitives import (
    Buffer,
    DECODE_FAULTS,
    EMPTY_LIST,
    ENCODE_FAULTS,
    NO_TAGS,
    NULL_COUNT,
    ZERO_UUID,
    put_compact_count,
    put_compact_nullable_string,
    put_compact_string,
    put_count,
    put_nullable_string,
    put_numbers,
    put_string,
    put_tags,
    put_uuid,
    read_compact_count,
    read_compact_nullable_count,
    read_compact_nullable_string,
    read_compact_string,
    read_count,
    read_nullable_count,
    read_nullable_string,
    read_numbers,
    read_string,
    read_tags,
)

_pack_h = Struct(">h").pack
_pack_i = Struct(">i").pack
_pack_iq = Struct(">iq").pack
_pack_iqi = Struct(">iqi").pack
_unpack_h = Struct(">h").unpack_from
_unpack_i = Struct(">i").unpack_from
_unpack_iq = Struct(">iq").unpack_from
_unpack_iqi = Struct(">iqi").unpack_from
_unpack_u = Struct(">16s").unpack_from

class OffsetFetchRequestTopic(Structure):
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


class OffsetFetchRequestTopics(Structure):
    __slots__ = ("name", "topic_id", "partition_indexes", "unknown_tags",)

    def __init__(
        self,
        *,
        name: str = "",
        topic_id: bytes = ZERO_UUID,
        partition_indexes: list[int] = EMPTY_LIST,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.name = name
        self.topic_id = topic_id
        self.partition_indexes = [] if partition_indexes is EMPTY_LIST else partition_indexes
        self.unknown_tags = unknown_tags


class OffsetFetchRequestGroup(Structure):
    __slots__ = ("group_id", "member_id", "member_epoch", "topics", "unknown_tags",)

    def __init__(
        self,
        *,
        group_id: str = "",
        member_id: str | None = None,
        member_epoch: int = -1,
        topics: list[OffsetFetchRequestTopics] | None = EMPTY_LIST,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.group_id = group_id
        self.member_id = member_id
        self.member_epoch = member_epoch
        self.topics = [] if topics is EMPTY_LIST else topics
        self.unknown_tags = unknown_tags


class OffsetFetchRequest(Message):
    __slots__ = ("group_id", "topics", "groups", "require_stable", "unknown_tags",)
    API_KEY = 9
    MIN_VERSION = 1
    MAX_VERSION = 10
    FLEXIBLE_FROM = 6
    HAS_ARRAYS = True

    def __init__(
        self,
        *,
        group_id: str = "",
        topics: list[OffsetFetchRequestTopic] | None = EMPTY_LIST,
        groups: list[OffsetFetchRequestGroup] = EMPTY_LIST,
        require_stable: bool = False,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.group_id = group_id
        self.topics = [] if topics is EMPTY_LIST else topics
        self.groups = [] if groups is EMPTY_LIST else groups
        self.require_stable = require_stable
        self.unknown_tags = unknown_tags

    def encode_into(self, out: bytearray, version: int) -> None:
        if not 1 <= version <= 10:
            raise unencodable(OffsetFetchRequest, version)
        try:
            _write_offset_fetch_request(out, self, version)
        except ENCODE_FAULTS as fault:
            raise bad_value(OffsetFetchRequest, version, fault) from fault

    @classmethod
    def decode(cls, buf: Buffer, version: int, pos: int = 0) -> tuple[OffsetFetchRequest, int]:
        if not 1 <= version <= 10:
            raise undecodable(OffsetFetchRequest, version)
        try:
            return _read_offset_fetch_request(buf, pos, len(buf), version)
        except DECODE_FAULTS as fault:
            raise bad_bytes(OffsetFetchRequest, version, fault) from fault


class OffsetFetchResponsePartition(Structure):
    __slots__ = ("partition_index", "committed_offset", "committed_leader_epoch", "metadata", "error_code", "unknown_tags",)

    def __init__(
        self,
        *,
        partition_index: int = 0,
        committed_offset: int = 0,
        committed_leader_epoch: int = -1,
        metadata: str | None = "",
        error_code: int = 0,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.partition_index = partition_index
        self.committed_offset = committed_offset
        self.committed_leader_epoch = committed_leader_epoch
        self.metadata = metadata
        self.error_code = error_code
        self.unknown_tags = unknown_tags


class OffsetFetchResponseTopic(Structure):
    __slots__ = ("name", "partitions", "unknown_tags",)

    def __init__(
        self,
        *,
        name: str = "",
        partitions: list[OffsetFetchResponsePartition] = EMPTY_LIST,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.name = name
        self.partitions = [] if partitions is EMPTY_LIST else partitions
        self.unknown_tags = unknown_tags


class OffsetFetchResponsePartitions(Structure):
    __slots__ = ("partition_index", "committed_offset", "committed_leader_epoch", "metadata", "error_code", "unknown_tags",)

    def __init__(
        self,
        *,
        partition_index: int = 0,
        committed_offset: int = 0,
        committed_leader_epoch: int = -1,
        metadata: str | None = "",
        error_code: int = 0,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.partition_index = partition_index
        self.committed_offset = committed_offset
        self.committed_leader_epoch = committed_leader_epoch
        self.metadata = metadata
        self.error_code = error_code
        self.unknown_tags = unknown_tags


class OffsetFetchResponseTopics(Structure):
    __slots__ = ("name", "topic_id", "partitions", "unknown_tags",)

    def __init__(
        self,
        *,
        name: str = "",
        topic_id: bytes = ZERO_UUID,
        partitions: list[OffsetFetchResponsePartitions] = EMPTY_LIST,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.name = name
        self.topic_id = topic_id
        self.partitions = [] if partitions is EMPTY_LIST else partitions
        self.unknown_tags = unknown_tags


class OffsetFetchResponseGroup(Structure):
    __slots__ = ("group_id", "topics", "error_code", "unknown_tags",)

    def __init__(
        self,
        *,
        group_id: str = "",
        topics: list[OffsetFetchResponseTopics] = EMPTY_LIST,
        error_code: int = 0,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.group_id = group_id
        self.topics = [] if topics is EMPTY_LIST else topics
        self.error_code = error_code
        self.unknown_tags = unknown_tags


class OffsetFetchResponse(Message):
    __slots__ = ("throttle_time_ms", "topics", "error_code", "groups", "unknown_tags",)
    API_KEY = 9
    MIN_VERSION = 1
    MAX_VERSION = 10
    FLEXIBLE_FROM = 6
    HAS_ARRAYS = True

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        topics: list[OffsetFetchResponseTopic] = EMPTY_LIST,
        error_code: int = 0,
        groups: list[OffsetFetchResponseGroup] = EMPTY_LIST,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.topics = [] if topics is EMPTY_LIST else topics
        self.error_code = error_code
        self.groups = [] if groups is EMPTY_LIST else groups
        self.unknown_tags = unknown_tags

    def encode_into(self, out: bytearray, version: int) -> None:
        if not 1 <= version <= 10:
            raise unencodable(OffsetFetchResponse, version)
        try:
            _write_offset_fetch_response(out, self, version)
        except ENCODE_FAULTS as fault:
            raise bad_value(OffsetFetchResponse, version, fault) from fault

    @classmethod
    def decode(cls, buf: Buffer, version: int, pos: int = 0) -> tuple[OffsetFetchResponse, int]:
        if not 1 <= version <= 10:
            raise undecodable(OffsetFetchResponse, version)
        try:
            return _read_offset_fetch_response(buf, pos, len(buf), version)
        except DECODE_FAULTS as fault:
            raise bad_bytes(OffsetFetchResponse, version, fault) from fault


def _read_offset_fetch_request_topic(buf: Buffer, pos: int, limit: int, version: int) -> tuple[OffsetFetchRequestTopic, int]:
    m = object.__new__(OffsetFetchRequestTopic)
    if version >= 6:
        m.name, pos = read_compact_string(buf, pos, limit)
    else:
        m.name, pos = read_string(buf, pos, limit)
    count, pos = read_compact_count(buf, pos, limit, 4) if version >= 6 else read_count(buf, pos, limit, 4)
    m.partition_indexes, pos = read_numbers(buf, pos, count, "i", 4)
    if version >= 6:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            m.unknown_tags, pos = read_tags(buf, pos, limit)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _write_offset_fetch_request_topic(out: bytearray, m: OffsetFetchRequestTopic, version: int) -> None:
    if version >= 6:
        put_compact_string(out, m.name)
    else:
        put_string(out, m.name)
    if version >= 6:
        put_compact_count(out, len(m.partition_indexes))
    else:
        put_count(out, len(m.partition_indexes))
    put_numbers(out, m.partition_indexes, "i")
    if version >= 6:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)


def _read_offset_fetch_request_topics(buf: Buffer, pos: int, limit: int, version: int) -> tuple[OffsetFetchRequestTopics, int]:
    m = object.__new__(OffsetFetchRequestTopics)
    if version >= 10:
        m.name = ""
        (m.topic_id,) = _unpack_u(buf, pos)
        pos += 16
    else:
        m.name, pos = read_compact_string(buf, pos, limit)
        m.topic_id = ZERO_UUID
    count, pos = read_compact_count(buf, pos, limit, 4)
    m.partition_indexes, pos = read_numbers(buf, pos, count, "i", 4)
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
    return m, pos


def _write_offset_fetch_request_topics(out: bytearray, m: OffsetFetchRequestTopics, version: int) -> None:
    if version >= 10:
        put_uuid(out, m.topic_id)
    else:
        put_compact_string(out, m.name)
    put_compact_count(out, len(m.partition_indexes))
    put_numbers(out, m.partition_indexes, "i")
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)


def _read_offset_fetch_request_group(buf: Buffer, pos: int, limit: int, version: int) -> tuple[OffsetFetchRequestGroup, int]:
    m = object.__new__(OffsetFetchRequestGroup)
    m.group_id, pos = read_compact_string(buf, pos, limit)
    if version >= 9:
        m.member_id, pos = read_compact_nullable_string(buf, pos, limit)
        (m.member_epoch,) = _unpack_i(buf, pos)
        pos += 4
    else:
        m.member_id = None
        m.member_epoch = -1
    count, pos = read_compact_nullable_count(buf, pos, limit, 3)
    if count < 0:
        m.topics = None
    else:
        topics_: list[OffsetFetchRequestTopics] = []
        for _ in range(count):
            topics_item, pos = _read_offset_fetch_request_topics(buf, pos, limit, version)
            topics_.append(topics_item)
        m.topics = topics_
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
    return m, pos


def _write_offset_fetch_request_group(out: bytearray, m: OffsetFetchRequestGroup, version: int) -> None:
    put_compact_string(out, m.group_id)
    if version >= 9:
        put_compact_nullable_string(out, m.member_id)
        out += _pack_i(m.member_epoch)
    if m.topics is None:
        out.append(0)
    else:
        put_compact_count(out, len(m.topics))
        for topics_item in m.topics:
            _write_offset_fetch_request_topics(out, topics_item, version)
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)


def _read_offset_fetch_request(buf: Buffer, pos: int, limit: int, version: int) -> tuple[OffsetFetchRequest, int]:
    m = object.__new__(OffsetFetchRequest)
    if version >= 8:
        m.group_id = ""
    elif version >= 6:
        m.group_id, pos = read_compact_string(buf, pos, limit)
    else:
        m.group_id, pos = read_string(buf, pos, limit)
    if version >= 8:
        m.topics = []
    elif version >= 2:
        count, pos = read_compact_nullable_count(buf, pos, limit, 3) if version >= 6 else read_nullable_count(buf, pos, limit, 3)
        if count < 0:
            m.topics = None
        else:
            topics_or_null_: list[OffsetFetchRequestTopic] = []
            for _ in range(count):
                topics_or_null_item, pos = _read_offset_fetch_request_topic(buf, pos, limit, version)
                topics_or_null_.append(topics_or_null_item)
            m.topics = topics_or_null_
    else:
        count, pos = read_count(buf, pos, limit, 3)
        topics_: list[OffsetFetchRequestTopic] = []
        for _ in range(count):
            topics_item, pos = _read_offset_fetch_request_topic(buf, pos, limit, version)
            topics_.append(topics_item)
        m.topics = topics_
    if version >= 8:
        count, pos = read_compact_count(buf, pos, limit, 3)
        groups_: list[OffsetFetchRequestGroup] = []
        for _ in range(count):
            groups_item, pos = _read_offset_fetch_request_group(buf, pos, limit, version)
            groups_.append(groups_item)
        m.groups = groups_
    else:
        m.groups = []
    if version >= 7:
        m.require_stable = buf[pos] != 0
        pos += 1
    else:
        m.require_stable = False
    if version >= 6:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            m.unknown_tags, pos = read_tags(buf, pos, limit)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _write_offset_fetch_request(out: bytearray, m: OffsetFetchRequest, version: int) -> None:
    if version >= 8:
        if m.group_id != "":
            raise not_in_version(m, "group_id", version)
    elif version >= 6:
        put_compact_string(out, m.group_id)
    else:
        put_string(out, m.group_id)
    if version >= 8:
        if m.topics != []:
            raise not_in_version(m, "topics", version)
    elif version >= 2:
        if m.topics is None:
            out += b"\0" if version >= 6 else NULL_COUNT
        else:
            if version >= 6:
                put_compact_count(out, len(m.topics))
            else:
                put_count(out, len(m.topics))
            for topics_item in m.topics:
                _write_offset_fetch_request_topic(out, topics_item, version)
    else:
        if m.topics is None:
            raise not_nullable(m, "topics", version)
        put_count(out, len(m.topics))
        for topics_item in m.topics:
            _write_offset_fetch_request_topic(out, topics_item, version)
    if version >= 8:
        put_compact_count(out, len(m.groups))
        for groups_item in m.groups:
            _write_offset_fetch_request_group(out, groups_item, version)
    else:
        if m.groups != []:
            raise not_in_version(m, "groups", version)
    if version >= 7:
        out.append(1 if m.require_stable else 0)
    else:
        if m.require_stable:
            raise not_in_version(m, "require_stable", version)
    if version >= 6:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)


def _read_offset_fetch_response_partition(buf: Buffer, pos: int, limit: int, version: int) -> tuple[OffsetFetchResponsePartition, int]:
    m = object.__new__(OffsetFetchResponsePartition)
    m.partition_index, m.committed_offset = _unpack_iq(buf, pos)
    pos += 12
    if version >= 5:
        (m.committed_leader_epoch,) = _unpack_i(buf, pos)
        pos += 4
    else:
        m.committed_leader_epoch = -1
    if version >= 6:
        m.metadata, pos = read_compact_nullable_string(buf, pos, limit)
    else:
        m.metadata, pos = read_nullable_string(buf, pos, limit)
    (m.error_code,) = _unpack_h(buf, pos)
    pos += 2
    if version >= 6:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            m.unknown_tags, pos = read_tags(buf, pos, limit)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _write_offset_fetch_response_partition(out: bytearray, m: OffsetFetchResponsePartition, version: int) -> None:
    out += _pack_iq(m.partition_index, m.committed_offset)
    if version >= 5:
        out += _pack_i(m.committed_leader_epoch)
    if version >= 6:
        put_compact_nullable_string(out, m.metadata)
    else:
        put_nullable_string(out, m.metadata)
    out += _pack_h(m.error_code)
    if version >= 6:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)


def _read_offset_fetch_response_topic(buf: Buffer, pos: int, limit: int, version: int) -> tuple[OffsetFetchResponseTopic, int]:
    m = object.__new__(OffsetFetchResponseTopic)
    if version >= 6:
        m.name, pos = read_compact_string(buf, pos, limit)
    else:
        m.name, pos = read_string(buf, pos, limit)
    count, pos = read_compact_count(buf, pos, limit, 16) if version >= 6 else read_count(buf, pos, limit, 16)
    partitions_: list[OffsetFetchResponsePartition] = []
    for _ in range(count):
        partitions_item, pos = _read_offset_fetch_response_partition(buf, pos, limit, version)
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


def _write_offset_fetch_response_topic(out: bytearray, m: OffsetFetchResponseTopic, version: int) -> None:
    if version >= 6:
        put_compact_string(out, m.name)
    else:
        put_string(out, m.name)
    if version >= 6:
        put_compact_count(out, len(m.partitions))
    else:
        put_count(out, len(m.partitions))
    for partitions_item in m.partitions:
        _write_offset_fetch_response_partition(out, partitions_item, version)
    if version >= 6:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)


def _read_offset_fetch_response_partitions(buf: Buffer, pos: int, limit: int, version: int) -> tuple[OffsetFetchResponsePartitions, int]:
    m = object.__new__(OffsetFetchResponsePartitions)
    m.partition_index, m.committed_offset, m.committed_leader_epoch = _unpack_iqi(buf, pos)
    pos += 16
    m.metadata, pos = read_compact_nullable_string(buf, pos, limit)
    (m.error_code,) = _unpack_h(buf, pos)
    pos += 2
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
    return m, pos


def _write_offset_fetch_response_partitions(out: bytearray, m: OffsetFetchResponsePartitions, version: int) -> None:
    out += _pack_iqi(m.partition_index, m.committed_offset, m.committed_leader_epoch)
    put_compact_nullable_string(out, m.metadata)
    out += _pack_h(m.error_code)
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)


def _read_offset_fetch_response_topics(buf: Buffer, pos: int, limit: int, version: int) -> tuple[OffsetFetchResponseTopics, int]:
    m = object.__new__(OffsetFetchResponseTopics)
    if version >= 10:
        m.name = ""
        (m.topic_id,) = _unpack_u(buf, pos)
        pos += 16
    else:
        m.name, pos = read_compact_string(buf, pos, limit)
        m.topic_id = ZERO_UUID
    count, pos = read_compact_count(buf, pos, limit, 20)
    partitions_: list[OffsetFetchResponsePartitions] = []
    for _ in range(count):
        partitions_item, pos = _read_offset_fetch_response_partitions(buf, pos, limit, version)
        partitions_.append(partitions_item)
    m.partitions = partitions_
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
    return m, pos


def _write_offset_fetch_response_topics(out: bytearray, m: OffsetFetchResponseTopics, version: int) -> None:
    if version >= 10:
        put_uuid(out, m.topic_id)
    else:
        put_compact_string(out, m.name)
    put_compact_count(out, len(m.partitions))
    for partitions_item in m.partitions:
        _write_offset_fetch_response_partitions(out, partitions_item, version)
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)


def _read_offset_fetch_response_group(buf: Buffer, pos: int, limit: int, version: int) -> tuple[OffsetFetchResponseGroup, int]:
    m = object.__new__(OffsetFetchResponseGroup)
    m.group_id, pos = read_compact_string(buf, pos, limit)
    count, pos = read_compact_count(buf, pos, limit, 3)
    topics_: list[OffsetFetchResponseTopics] = []
    for _ in range(count):
        topics_item, pos = _read_offset_fetch_response_topics(buf, pos, limit, version)
        topics_.append(topics_item)
    m.topics = topics_
    (m.error_code,) = _unpack_h(buf, pos)
    pos += 2
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
    return m, pos


def _write_offset_fetch_response_group(out: bytearray, m: OffsetFetchResponseGroup, version: int) -> None:
    put_compact_string(out, m.group_id)
    put_compact_count(out, len(m.topics))
    for topics_item in m.topics:
        _write_offset_fetch_response_topics(out, topics_item, version)
    out += _pack_h(m.error_code)
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)


def _read_offset_fetch_response(buf: Buffer, pos: int, limit: int, version: int) -> tuple[OffsetFetchResponse, int]:
    m = object.__new__(OffsetFetchResponse)
    if version >= 3:
        (m.throttle_time_ms,) = _unpack_i(buf, pos)
        pos += 4
    else:
        m.throttle_time_ms = 0
    if version >= 8:
        m.topics = []
    else:
        count, pos = read_compact_count(buf, pos, limit, 3) if version >= 6 else read_count(buf, pos, limit, 3)
        topics_: list[OffsetFetchResponseTopic] = []
        for _ in range(count):
            topics_item, pos = _read_offset_fetch_response_topic(buf, pos, limit, version)
            topics_.append(topics_item)
        m.topics = topics_
    if version >= 8:
        m.error_code = 0
    elif version >= 2:
        (m.error_code,) = _unpack_h(buf, pos)
        pos += 2
    else:
        m.error_code = 0
    if version >= 8:
        count, pos = read_compact_count(buf, pos, limit, 5)
        groups_: list[OffsetFetchResponseGroup] = []
        for _ in range(count):
            groups_item, pos = _read_offset_fetch_response_group(buf, pos, limit, version)
            groups_.append(groups_item)
        m.groups = groups_
    else:
        m.groups = []
    if version >= 6:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            m.unknown_tags, pos = read_tags(buf, pos, limit)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _write_offset_fetch_response(out: bytearray, m: OffsetFetchResponse, version: int) -> None:
    if version >= 3:
        out += _pack_i(m.throttle_time_ms)
    if version >= 8:
        if m.topics != []:
            raise not_in_version(m, "topics", version)
    else:
        if version >= 6:
            put_compact_count(out, len(m.topics))
        else:
            put_count(out, len(m.topics))
        for topics_item in m.topics:
            _write_offset_fetch_response_topic(out, topics_item, version)
    if version >= 8:
        pass
    elif version >= 2:
        out += _pack_h(m.error_code)
    if version >= 8:
        put_compact_count(out, len(m.groups))
        for groups_item in m.groups:
            _write_offset_fetch_response_group(out, groups_item, version)
    else:
        if m.groups != []:
            raise not_in_version(m, "groups", version)
    if version >= 6:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)
