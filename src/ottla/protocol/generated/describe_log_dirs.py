"""Log directories, and the size of each replica in them.

Made from schemas/describe_log_dirs.schema by `python -m ottla.protocol.compile`: change that file.
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
    put_compact_string,
    put_count,
    put_numbers,
    put_string,
    put_tags,
    read_compact_count,
    read_compact_nullable_count,
    read_compact_string,
    read_count,
    read_nullable_count,
    read_numbers,
    read_string,
    read_tags,
)

_pack_h = Struct(">h").pack
_pack_i = Struct(">i").pack
_pack_iqqt = Struct(">iqq?").pack
_pack_qq = Struct(">qq").pack
_unpack_h = Struct(">h").unpack_from
_unpack_i = Struct(">i").unpack_from
_unpack_iqqt = Struct(">iqq?").unpack_from
_unpack_qq = Struct(">qq").unpack_from

class DescribableLogDirTopic(Structure):
    __slots__ = ("topic", "partitions", "unknown_tags",)

    def __init__(
        self,
        *,
        topic: str = "",
        partitions: list[int] = EMPTY_LIST,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.topic = topic
        self.partitions = [] if partitions is EMPTY_LIST else partitions
        self.unknown_tags = unknown_tags


class DescribeLogDirsRequest(Message):
    __slots__ = ("topics", "unknown_tags",)
    API_KEY = 35
    MIN_VERSION = 1
    MAX_VERSION = 5
    FLEXIBLE_FROM = 2
    HAS_ARRAYS = True

    def __init__(
        self,
        *,
        topics: list[DescribableLogDirTopic] | None = EMPTY_LIST,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.topics = [] if topics is EMPTY_LIST else topics
        self.unknown_tags = unknown_tags

    def encode_into(self, out: bytearray, version: int) -> None:
        if not 1 <= version <= 5:
            raise unencodable(DescribeLogDirsRequest, version)
        try:
            _write_describe_log_dirs_request(out, self, version)
        except ENCODE_FAULTS as fault:
            raise bad_value(DescribeLogDirsRequest, version, fault) from fault

    @classmethod
    def decode(cls, buf: Buffer, version: int, pos: int = 0) -> tuple[DescribeLogDirsRequest, int]:
        if not 1 <= version <= 5:
            raise undecodable(DescribeLogDirsRequest, version)
        try:
            return _read_describe_log_dirs_request(buf, pos, len(buf), version)
        except DECODE_FAULTS as fault:
            raise bad_bytes(DescribeLogDirsRequest, version, fault) from fault


class DescribeLogDirsPartition(Structure):
    __slots__ = ("partition_index", "partition_size", "offset_lag", "is_future_key", "unknown_tags",)

    def __init__(
        self,
        *,
        partition_index: int = 0,
        partition_size: int = 0,
        offset_lag: int = 0,
        is_future_key: bool = False,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.partition_index = partition_index
        self.partition_size = partition_size
        self.offset_lag = offset_lag
        self.is_future_key = is_future_key
        self.unknown_tags = unknown_tags


class DescribeLogDirsTopic(Structure):
    __slots__ = ("name", "partitions", "unknown_tags",)

    def __init__(
        self,
        *,
        name: str = "",
        partitions: list[DescribeLogDirsPartition] = EMPTY_LIST,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.name = name
        self.partitions = [] if partitions is EMPTY_LIST else partitions
        self.unknown_tags = unknown_tags


class DescribeLogDirsResult(Structure):
    __slots__ = ("error_code", "log_dir", "topics", "total_bytes", "usable_bytes", "is_cordoned", "unknown_tags",)

    def __init__(
        self,
        *,
        error_code: int = 0,
        log_dir: str = "",
        topics: list[DescribeLogDirsTopic] = EMPTY_LIST,
        total_bytes: int = -1,
        usable_bytes: int = -1,
        is_cordoned: bool = False,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.error_code = error_code
        self.log_dir = log_dir
        self.topics = [] if topics is EMPTY_LIST else topics
        self.total_bytes = total_bytes
        self.usable_bytes = usable_bytes
        self.is_cordoned = is_cordoned
        self.unknown_tags = unknown_tags


class DescribeLogDirsResponse(Message):
    __slots__ = ("throttle_time_ms", "error_code", "results", "unknown_tags",)
    API_KEY = 35
    MIN_VERSION = 1
    MAX_VERSION = 5
    FLEXIBLE_FROM = 2
    HAS_ARRAYS = True

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        results: list[DescribeLogDirsResult] = EMPTY_LIST,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.results = [] if results is EMPTY_LIST else results
        self.unknown_tags = unknown_tags

    def encode_into(self, out: bytearray, version: int) -> None:
        if not 1 <= version <= 5:
            raise unencodable(DescribeLogDirsResponse, version)
        try:
            _write_describe_log_dirs_response(out, self, version)
        except ENCODE_FAULTS as fault:
            raise bad_value(DescribeLogDirsResponse, version, fault) from fault

    @classmethod
    def decode(cls, buf: Buffer, version: int, pos: int = 0) -> tuple[DescribeLogDirsResponse, int]:
        if not 1 <= version <= 5:
            raise undecodable(DescribeLogDirsResponse, version)
        try:
            return _read_describe_log_dirs_response(buf, pos, len(buf), version)
        except DECODE_FAULTS as fault:
            raise bad_bytes(DescribeLogDirsResponse, version, fault) from fault


def _read_describable_log_dir_topic(buf: Buffer, pos: int, limit: int, version: int) -> tuple[DescribableLogDirTopic, int]:
    m = object.__new__(DescribableLogDirTopic)
    if version >= 2:
        m.topic, pos = read_compact_string(buf, pos, limit)
    else:
        m.topic, pos = read_string(buf, pos, limit)
    count, pos = read_compact_count(buf, pos, limit, 4) if version >= 2 else read_count(buf, pos, limit, 4)
    m.partitions, pos = read_numbers(buf, pos, count, "i", 4)
    if version >= 2:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            m.unknown_tags, pos = read_tags(buf, pos, limit)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _write_describable_log_dir_topic(out: bytearray, m: DescribableLogDirTopic, version: int) -> None:
    if version >= 2:
        put_compact_string(out, m.topic)
    else:
        put_string(out, m.topic)
    if version >= 2:
        put_compact_count(out, len(m.partitions))
    else:
        put_count(out, len(m.partitions))
    put_numbers(out, m.partitions, "i")
    if version >= 2:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)


def _read_describe_log_dirs_request(buf: Buffer, pos: int, limit: int, version: int) -> tuple[DescribeLogDirsRequest, int]:
    m = object.__new__(DescribeLogDirsRequest)
    count, pos = read_compact_nullable_count(buf, pos, limit, 3) if version >= 2 else read_nullable_count(buf, pos, limit, 3)
    if count < 0:
        m.topics = None
    else:
        topics_: list[DescribableLogDirTopic] = []
        for _ in range(count):
            topics_item, pos = _read_describable_log_dir_topic(buf, pos, limit, version)
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


def _write_describe_log_dirs_request(out: bytearray, m: DescribeLogDirsRequest, version: int) -> None:
    if m.topics is None:
        out += b"\0" if version >= 2 else NULL_COUNT
    else:
        if version >= 2:
            put_compact_count(out, len(m.topics))
        else:
            put_count(out, len(m.topics))
        for topics_item in m.topics:
            _write_describable_log_dir_topic(out, topics_item, version)
    if version >= 2:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)


def _read_describe_log_dirs_partition(buf: Buffer, pos: int, limit: int, version: int) -> tuple[DescribeLogDirsPartition, int]:
    m = object.__new__(DescribeLogDirsPartition)
    m.partition_index, m.partition_size, m.offset_lag, m.is_future_key = _unpack_iqqt(buf, pos)
    pos += 21
    if version >= 2:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            m.unknown_tags, pos = read_tags(buf, pos, limit)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _write_describe_log_dirs_partition(out: bytearray, m: DescribeLogDirsPartition, version: int) -> None:
    out += _pack_iqqt(m.partition_index, m.partition_size, m.offset_lag, m.is_future_key)
    if version >= 2:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)


def _read_describe_log_dirs_topic(buf: Buffer, pos: int, limit: int, version: int) -> tuple[DescribeLogDirsTopic, int]:
    m = object.__new__(DescribeLogDirsTopic)
    if version >= 2:
        m.name, pos = read_compact_string(buf, pos, limit)
    else:
        m.name, pos = read_string(buf, pos, limit)
    count, pos = read_compact_count(buf, pos, limit, 21) if version >= 2 else read_count(buf, pos, limit, 21)
    partitions_: list[DescribeLogDirsPartition] = []
    for _ in range(count):
        partitions_item, pos = _read_describe_log_dirs_partition(buf, pos, limit, version)
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


def _write_describe_log_dirs_topic(out: bytearray, m: DescribeLogDirsTopic, version: int) -> None:
    if version >= 2:
        put_compact_string(out, m.name)
    else:
        put_string(out, m.name)
    if version >= 2:
        put_compact_count(out, len(m.partitions))
    else:
        put_count(out, len(m.partitions))
    for partitions_item in m.partitions:
        _write_describe_log_dirs_partition(out, partitions_item, version)
    if version >= 2:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)


def _read_describe_log_dirs_result(buf: Buffer, pos: int, limit: int, version: int) -> tuple[DescribeLogDirsResult, int]:
    m = object.__new__(DescribeLogDirsResult)
    (m.error_code,) = _unpack_h(buf, pos)
    pos += 2
    if version >= 2:
        m.log_dir, pos = read_compact_string(buf, pos, limit)
    else:
        m.log_dir, pos = read_string(buf, pos, limit)
    count, pos = read_compact_count(buf, pos, limit, 3) if version >= 2 else read_count(buf, pos, limit, 3)
    topics_: list[DescribeLogDirsTopic] = []
    for _ in range(count):
        topics_item, pos = _read_describe_log_dirs_topic(buf, pos, limit, version)
        topics_.append(topics_item)
    m.topics = topics_
    if version >= 4:
        m.total_bytes, m.usable_bytes = _unpack_qq(buf, pos)
        pos += 16
    else:
        m.total_bytes = -1
        m.usable_bytes = -1
    if version >= 5:
        m.is_cordoned = buf[pos] != 0
        pos += 1
    else:
        m.is_cordoned = False
    if version >= 2:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            m.unknown_tags, pos = read_tags(buf, pos, limit)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _write_describe_log_dirs_result(out: bytearray, m: DescribeLogDirsResult, version: int) -> None:
    out += _pack_h(m.error_code)
    if version >= 2:
        put_compact_string(out, m.log_dir)
    else:
        put_string(out, m.log_dir)
    if version >= 2:
        put_compact_count(out, len(m.topics))
    else:
        put_count(out, len(m.topics))
    for topics_item in m.topics:
        _write_describe_log_dirs_topic(out, topics_item, version)
    if version >= 4:
        out += _pack_qq(m.total_bytes, m.usable_bytes)
    if version >= 5:
        out.append(1 if m.is_cordoned else 0)
    if version >= 2:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)


def _read_describe_log_dirs_response(buf: Buffer, pos: int, limit: int, version: int) -> tuple[DescribeLogDirsResponse, int]:
    m = object.__new__(DescribeLogDirsResponse)
    (m.throttle_time_ms,) = _unpack_i(buf, pos)
    pos += 4
    if version >= 3:
        (m.error_code,) = _unpack_h(buf, pos)
        pos += 2
    else:
        m.error_code = 0
    count, pos = read_compact_count(buf, pos, limit, 5) if version >= 2 else read_count(buf, pos, limit, 5)
    results_: list[DescribeLogDirsResult] = []
    for _ in range(count):
        results_item, pos = _read_describe_log_dirs_result(buf, pos, limit, version)
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


def _write_describe_log_dirs_response(out: bytearray, m: DescribeLogDirsResponse, version: int) -> None:
    out += _pack_i(m.throttle_time_ms)
    if version >= 3:
        out += _pack_h(m.error_code)
    if version >= 2:
        put_compact_count(out, len(m.results))
    else:
        put_count(out, len(m.results))
    for results_item in m.results:
        _write_describe_log_dirs_result(out, results_item, version)
    if version >= 2:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)
