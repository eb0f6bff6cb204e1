"""Adds partitions to topics.

Made from schemas/create_partitions.schema by `python -m ottla.protocol.compile`: change that file.
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
    NULL_COUNT,
    put_compact_count,
    put_compact_nullable_string,
    put_compact_string,
    put_count,
    put_nullable_string,
    put_numbers,
    put_string,
    put_tags,
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
    shortened,
)

_pack_h = Struct(">h").pack
_pack_i = Struct(">i").pack
_pack_it = Struct(">i?").pack
_unpack_h = Struct(">h").unpack_from
_unpack_i = Struct(">i").unpack_from
_unpack_it = Struct(">i?").unpack_from

class CreatePartitionsAssignment(Structure):
    __slots__ = ("broker_ids", "unknown_tags",)

    def __init__(
        self,
        *,
        broker_ids: list[int] = EMPTY_LIST,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.broker_ids = [] if broker_ids is EMPTY_LIST else broker_ids
        self.unknown_tags = unknown_tags


class CreatePartitionsTopic(Structure):
    __slots__ = ("name", "count", "assignments", "unknown_tags",)

    def __init__(
        self,
        *,
        name: str = "",
        count: int = 0,
        assignments: list[CreatePartitionsAssignment] | None = EMPTY_LIST,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.name = name
        self.count = count
        self.assignments = [] if assignments is EMPTY_LIST else assignments
        self.unknown_tags = unknown_tags


class CreatePartitionsRequest(Message):
    __slots__ = ("topics", "timeout_ms", "validate_only", "unknown_tags",)
    API_KEY = 37
    MIN_VERSION = 0
    MAX_VERSION = 3
    FLEXIBLE_FROM = 2
    HAS_ARRAYS = True

    def __init__(
        self,
        *,
        topics: list[CreatePartitionsTopic] = EMPTY_LIST,
        timeout_ms: int = 0,
        validate_only: bool = False,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.topics = [] if topics is EMPTY_LIST else topics
        self.timeout_ms = timeout_ms
        self.validate_only = validate_only
        self.unknown_tags = unknown_tags

    def encode_into(self, out: bytearray, version: int) -> None:
        if not 0 <= version <= 3:
            raise unencodable(CreatePartitionsRequest, version)
        try:
            _write_create_partitions_request(out, self, version)
        except ENCODE_FAULTS as fault:
            raise bad_value(CreatePartitionsRequest, version, fault) from fault

    @classmethod
    def decode(cls, buf: Buffer, version: int, pos: int = 0) -> tuple[CreatePartitionsRequest, int]:
        if not 0 <= version <= 3:
            raise undecodable(CreatePartitionsRequest, version)
        try:
            return _read_create_partitions_request(buf, pos, len(buf), version)
        except DECODE_FAULTS as fault:
            raise bad_bytes(CreatePartitionsRequest, version, fault) from fault


class CreatePartitionsTopicResult(Structure):
    __slots__ = ("name", "error_code", "error_message", "unknown_tags",)

    def __init__(
        self,
        *,
        name: str = "",
        error_code: int = 0,
        error_message: str | None = None,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.name = name
        self.error_code = error_code
        self.error_message = error_message
        self.unknown_tags = unknown_tags


class CreatePartitionsResponse(Message):
    __slots__ = ("throttle_time_ms", "results", "unknown_tags",)
    API_KEY = 37
    MIN_VERSION = 0
    MAX_VERSION = 3
    FLEXIBLE_FROM = 2
    HAS_ARRAYS = True

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        results: list[CreatePartitionsTopicResult] = EMPTY_LIST,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.results = [] if results is EMPTY_LIST else results
        self.unknown_tags = unknown_tags

    def encode_into(self, out: bytearray, version: int) -> None:
        if not 0 <= version <= 3:
            raise unencodable(CreatePartitionsResponse, version)
        try:
            _write_create_partitions_response(out, self, version)
        except ENCODE_FAULTS as fault:
            raise bad_value(CreatePartitionsResponse, version, fault) from fault

    @classmethod
    def decode(cls, buf: Buffer, version: int, pos: int = 0) -> tuple[CreatePartitionsResponse, int]:
        if not 0 <= version <= 3:
            raise undecodable(CreatePartitionsResponse, version)
        try:
            return _read_create_partitions_response(buf, pos, len(buf), version)
        except DECODE_FAULTS as fault:
            raise bad_bytes(CreatePartitionsResponse, version, fault) from fault


def _read_create_partitions_assignment(buf: Buffer, pos: int, limit: int, version: int) -> tuple[CreatePartitionsAssignment, int]:
    m = object.__new__(CreatePartitionsAssignment)
    count, pos = read_compact_count(buf, pos, limit, 4) if version >= 2 else read_count(buf, pos, limit, 4)
    m.broker_ids, pos = read_numbers(buf, pos, count, "i", 4)
    if version >= 2:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            m.unknown_tags, pos = read_tags(buf, pos, limit)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _write_create_partitions_assignment(out: bytearray, m: CreatePartitionsAssignment, version: int) -> None:
    if version >= 2:
        put_compact_count(out, len(m.broker_ids))
    else:
        put_count(out, len(m.broker_ids))
    put_numbers(out, m.broker_ids, "i")
    if version >= 2:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)


def _read_create_partitions_topic(buf: Buffer, pos: int, limit: int, version: int) -> tuple[CreatePartitionsTopic, int]:
    m = object.__new__(CreatePartitionsTopic)
    if version >= 2:
        m.name, pos = read_compact_string(buf, pos, limit)
    else:
        m.name, pos = read_string(buf, pos, limit)
    (m.count,) = _unpack_i(buf, pos)
    pos += 4
    count, pos = read_compact_nullable_count(buf, pos, limit, 2) if version >= 2 else read_nullable_count(buf, pos, limit, 2)
    if count < 0:
        m.assignments = None
    else:
        assignments_: list[CreatePartitionsAssignment] = []
        for _ in range(count):
            assignments_item, pos = _read_create_partitions_assignment(buf, pos, limit, version)
            assignments_.append(assignments_item)
        m.assignments = assignments_
    if version >= 2:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            m.unknown_tags, pos = read_tags(buf, pos, limit)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _write_create_partitions_topic(out: bytearray, m: CreatePartitionsTopic, version: int) -> None:
    if version >= 2:
        put_compact_string(out, m.name)
    else:
        put_string(out, m.name)
    out += _pack_i(m.count)
    if m.assignments is None:
        out += b"\0" if version >= 2 else NULL_COUNT
    else:
        if version >= 2:
            put_compact_count(out, len(m.assignments))
        else:
            put_count(out, len(m.assignments))
        for assignments_item in m.assignments:
            _write_create_partitions_assignment(out, assignments_item, version)
    if version >= 2:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)


def _read_create_partitions_request(buf: Buffer, pos: int, limit: int, version: int) -> tuple[CreatePartitionsRequest, int]:
    m = object.__new__(CreatePartitionsRequest)
    count, pos = read_compact_count(buf, pos, limit, 7) if version >= 2 else read_count(buf, pos, limit, 7)
    topics_: list[CreatePartitionsTopic] = []
    for _ in range(count):
        topics_item, pos = _read_create_partitions_topic(buf, pos, limit, version)
        topics_.append(topics_item)
    m.topics = topics_
    m.timeout_ms, m.validate_only = _unpack_it(buf, pos)
    pos += 5
    if version >= 2:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            m.unknown_tags, pos = read_tags(buf, pos, limit)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _write_create_partitions_request(out: bytearray, m: CreatePartitionsRequest, version: int) -> None:
    if version >= 2:
        put_compact_count(out, len(m.topics))
    else:
        put_count(out, len(m.topics))
    for topics_item in m.topics:
        _write_create_partitions_topic(out, topics_item, version)
    out += _pack_it(m.timeout_ms, m.validate_only)
    if version >= 2:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)


def _read_create_partitions_topic_result(buf: Buffer, pos: int, limit: int, version: int) -> tuple[CreatePartitionsTopicResult, int]:
    m = object.__new__(CreatePartitionsTopicResult)
    if version >= 2:
        m.name, pos = read_compact_string(buf, pos, limit)
    else:
        m.name, pos = read_string(buf, pos, limit)
    (m.error_code,) = _unpack_h(buf, pos)
    pos += 2
    if version >= 2:
        m.error_message, pos = read_compact_nullable_string(buf, pos, limit)
    else:
        m.error_message, pos = read_nullable_string(buf, pos, limit)
    if version >= 2:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            m.unknown_tags, pos = read_tags(buf, pos, limit)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _write_create_partitions_topic_result(out: bytearray, m: CreatePartitionsTopicResult, version: int) -> None:
    if version >= 2:
        put_compact_string(out, m.name)
    else:
        put_string(out, m.name)
    out += _pack_h(m.error_code)
    if version >= 2:
        put_compact_nullable_string(out, shortened(m.error_message))
    else:
        put_nullable_string(out, shortened(m.error_message))
    if version >= 2:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)


def _read_create_partitions_response(buf: Buffer, pos: int, limit: int, version: int) -> tuple[CreatePartitionsResponse, int]:
    m = object.__new__(CreatePartitionsResponse)
    (m.throttle_time_ms,) = _unpack_i(buf, pos)
    pos += 4
    count, pos = read_compact_count(buf, pos, limit, 5) if version >= 2 else read_count(buf, pos, limit, 5)
    results_: list[CreatePartitionsTopicResult] = []
    for _ in range(count):
        results_item, pos = _read_create_partitions_topic_result(buf, pos, limit, version)
        results_.append(results_item)
    m.results = results_
    if version >= 2:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            m.unknown_tags, pos = read_tags(buf, pos, limit)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _write_create_partitions_response(out: bytearray, m: CreatePartitionsResponse, version: int) -> None:
    out += _pack_i(m.throttle_time_ms)
    if version >= 2:
        put_compact_count(out, len(m.results))
    else:
        put_count(out, len(m.results))
    for results_item in m.results:
        _write_create_partitions_topic_result(out, results_item, version)
    if version >= 2:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)
