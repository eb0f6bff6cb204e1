"""Creates topics, or only checks that they could be created.

Made from schemas/create_topics.schema by `python -m ottla.protocol.compile`: change that file.
"""

from __future__ import annotations

from collections.abc import Mapping
from struct import Struct

from ottla.protocol.message import Message, Structure, bad_bytes, bad_value, not_tagged, tag_of_other_size, undecodable, unencodable
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
    put_numbers,
    put_string,
    put_tags,
    put_uuid,
    read_compact_count,
    read_compact_nullable_count,
    read_compact_nullable_string,
    read_compact_string,
    read_count,
    read_nullable_string,
    read_numbers,
    read_string,
    read_tag,
    read_tag_count,
    read_tags,
    shortened,
)

_pack_h = Struct(">h").pack
_pack_i = Struct(">i").pack
_pack_ih = Struct(">ih").pack
_pack_it = Struct(">i?").pack
_pack_tbt = Struct(">?b?").pack
_unpack_h = Struct(">h").unpack_from
_unpack_i = Struct(">i").unpack_from
_unpack_ih = Struct(">ih").unpack_from
_unpack_it = Struct(">i?").unpack_from
_unpack_tbt = Struct(">?b?").unpack_from
_unpack_u = Struct(">16s").unpack_from

class CreatableReplicaAssignment(Structure):
    __slots__ = ("partition_index", "broker_ids", "unknown_tags",)

    def __init__(
        self,
        *,
        partition_index: int = 0,
        broker_ids: list[int] = EMPTY_LIST,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.partition_index = partition_index
        self.broker_ids = [] if broker_ids is EMPTY_LIST else broker_ids
        self.unknown_tags = unknown_tags


class CreatableTopicConfig(Structure):
    __slots__ = ("name", "value", "unknown_tags",)

    def __init__(
        self,
        *,
        name: str = "",
        value: str | None = "",
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.name = name
        self.value = value
        self.unknown_tags = unknown_tags


class CreatableTopic(Structure):
    __slots__ = ("name", "num_partitions", "replication_factor", "assignments", "configs", "unknown_tags",)

    def __init__(
        self,
        *,
        name: str = "",
        num_partitions: int = 0,
        replication_factor: int = 0,
        assignments: list[CreatableReplicaAssignment] = EMPTY_LIST,
        configs: list[CreatableTopicConfig] = EMPTY_LIST,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.name = name
        self.num_partitions = num_partitions
        self.replication_factor = replication_factor
        self.assignments = [] if assignments is EMPTY_LIST else assignments
        self.configs = [] if configs is EMPTY_LIST else configs
        self.unknown_tags = unknown_tags


class CreateTopicsRequest(Message):
    __slots__ = ("topics", "timeout_ms", "validate_only", "unknown_tags",)
    API_KEY = 19
    MIN_VERSION = 2
    MAX_VERSION = 7
    FLEXIBLE_FROM = 5
    HAS_ARRAYS = True

    def __init__(
        self,
        *,
        topics: list[CreatableTopic] = EMPTY_LIST,
        timeout_ms: int = 60000,
        validate_only: bool = False,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.topics = [] if topics is EMPTY_LIST else topics
        self.timeout_ms = timeout_ms
        self.validate_only = validate_only
        self.unknown_tags = unknown_tags

    def encode_into(self, out: bytearray, version: int) -> None:
        if not 2 <= version <= 7:
            raise unencodable(CreateTopicsRequest, version)
        try:
            _write_create_topics_request(out, self, version)
        except ENCODE_FAULTS as fault:
            raise bad_value(CreateTopicsRequest, version, fault) from fault

    @classmethod
    def decode(cls, buf: Buffer, version: int, pos: int = 0) -> tuple[CreateTopicsRequest, int]:
        if not 2 <= version <= 7:
            raise undecodable(CreateTopicsRequest, version)
        try:
            return _read_create_topics_request(buf, pos, len(buf), version)
        except DECODE_FAULTS as fault:
            raise bad_bytes(CreateTopicsRequest, version, fault) from fault


class CreatableTopicConfigs(Structure):
    __slots__ = ("name", "value", "read_only", "config_source", "is_sensitive", "unknown_tags",)

    def __init__(
        self,
        *,
        name: str = "",
        value: str | None = "",
        read_only: bool = False,
        config_source: int = -1,
        is_sensitive: bool = False,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.name = name
        self.value = value
        self.read_only = read_only
        self.config_source = config_source
        self.is_sensitive = is_sensitive
        self.unknown_tags = unknown_tags


class CreatableTopicResult(Structure):
    __slots__ = ("name", "topic_id", "error_code", "error_message", "topic_config_error_code", "num_partitions", "replication_factor", "configs", "unknown_tags",)

    def __init__(
        self,
        *,
        name: str = "",
        topic_id: bytes = ZERO_UUID,
        error_code: int = 0,
        error_message: str | None = "",
        topic_config_error_code: int = 0,
        num_partitions: int = -1,
        replication_factor: int = -1,
        configs: list[CreatableTopicConfigs] | None = EMPTY_LIST,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.name = name
        self.topic_id = topic_id
        self.error_code = error_code
        self.error_message = error_message
        self.topic_config_error_code = topic_config_error_code
        self.num_partitions = num_partitions
        self.replication_factor = replication_factor
        self.configs = [] if configs is EMPTY_LIST else configs
        self.unknown_tags = unknown_tags


class CreateTopicsResponse(Message):
    __slots__ = ("throttle_time_ms", "topics", "unknown_tags",)
    API_KEY = 19
    MIN_VERSION = 2
    MAX_VERSION = 7
    FLEXIBLE_FROM = 5
    HAS_ARRAYS = True

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        topics: list[CreatableTopicResult] = EMPTY_LIST,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.topics = [] if topics is EMPTY_LIST else topics
        self.unknown_tags = unknown_tags

    def encode_into(self, out: bytearray, version: int) -> None:
        if not 2 <= version <= 7:
            raise unencodable(CreateTopicsResponse, version)
        try:
            _write_create_topics_response(out, self, version)
        except ENCODE_FAULTS as fault:
            raise bad_value(CreateTopicsResponse, version, fault) from fault

    @classmethod
    def decode(cls, buf: Buffer, version: int, pos: int = 0) -> tuple[CreateTopicsResponse, int]:
        if not 2 <= version <= 7:
            raise undecodable(CreateTopicsResponse, version)
        try:
            return _read_create_topics_response(buf, pos, len(buf), version)
        except DECODE_FAULTS as fault:
            raise bad_bytes(CreateTopicsResponse, version, fault) from fault


_TAGS_CREATABLE_TOPIC_RESULT = frozenset((0,))


def _read_creatable_replica_assignment(buf: Buffer, pos: int, limit: int, version: int) -> tuple[CreatableReplicaAssignment, int]:
    m = object.__new__(CreatableReplicaAssignment)
    (m.partition_index,) = _unpack_i(buf, pos)
    pos += 4
    count, pos = read_compact_count(buf, pos, limit, 4) if version >= 5 else read_count(buf, pos, limit, 4)
    m.broker_ids, pos = read_numbers(buf, pos, count, "i", 4)
    if version >= 5:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            m.unknown_tags, pos = read_tags(buf, pos, limit)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _write_creatable_replica_assignment(out: bytearray, m: CreatableReplicaAssignment, version: int) -> None:
    out += _pack_i(m.partition_index)
    if version >= 5:
        put_compact_count(out, len(m.broker_ids))
    else:
        put_count(out, len(m.broker_ids))
    put_numbers(out, m.broker_ids, "i")
    if version >= 5:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)


def _read_creatable_topic_config(buf: Buffer, pos: int, limit: int, version: int) -> tuple[CreatableTopicConfig, int]:
    m = object.__new__(CreatableTopicConfig)
    if version >= 5:
        m.name, pos = read_compact_string(buf, pos, limit)
        m.value, pos = read_compact_nullable_string(buf, pos, limit)
    else:
        m.name, pos = read_string(buf, pos, limit)
        m.value, pos = read_nullable_string(buf, pos, limit)
    if version >= 5:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            m.unknown_tags, pos = read_tags(buf, pos, limit)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _write_creatable_topic_config(out: bytearray, m: CreatableTopicConfig, version: int) -> None:
    if version >= 5:
        put_compact_string(out, m.name)
        put_compact_nullable_string(out, m.value)
    else:
        put_string(out, m.name)
        put_nullable_string(out, m.value)
    if version >= 5:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)


def _read_creatable_topic(buf: Buffer, pos: int, limit: int, version: int) -> tuple[CreatableTopic, int]:
    m = object.__new__(CreatableTopic)
    if version >= 5:
        m.name, pos = read_compact_string(buf, pos, limit)
    else:
        m.name, pos = read_string(buf, pos, limit)
    m.num_partitions, m.replication_factor = _unpack_ih(buf, pos)
    pos += 6
    count, pos = read_compact_count(buf, pos, limit, 6) if version >= 5 else read_count(buf, pos, limit, 6)
    assignments_: list[CreatableReplicaAssignment] = []
    for _ in range(count):
        assignments_item, pos = _read_creatable_replica_assignment(buf, pos, limit, version)
        assignments_.append(assignments_item)
    m.assignments = assignments_
    count, pos = read_compact_count(buf, pos, limit, 3) if version >= 5 else read_count(buf, pos, limit, 3)
    configs_: list[CreatableTopicConfig] = []
    for _ in range(count):
        configs_item, pos = _read_creatable_topic_config(buf, pos, limit, version)
        configs_.append(configs_item)
    m.configs = configs_
    if version >= 5:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            m.unknown_tags, pos = read_tags(buf, pos, limit)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _write_creatable_topic(out: bytearray, m: CreatableTopic, version: int) -> None:
    if version >= 5:
        put_compact_string(out, m.name)
    else:
        put_string(out, m.name)
    out += _pack_ih(m.num_partitions, m.replication_factor)
    if version >= 5:
        put_compact_count(out, len(m.assignments))
    else:
        put_count(out, len(m.assignments))
    for assignments_item in m.assignments:
        _write_creatable_replica_assignment(out, assignments_item, version)
    if version >= 5:
        put_compact_count(out, len(m.configs))
    else:
        put_count(out, len(m.configs))
    for configs_item in m.configs:
        _write_creatable_topic_config(out, configs_item, version)
    if version >= 5:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)


def _read_create_topics_request(buf: Buffer, pos: int, limit: int, version: int) -> tuple[CreateTopicsRequest, int]:
    m = object.__new__(CreateTopicsRequest)
    count, pos = read_compact_count(buf, pos, limit, 10) if version >= 5 else read_count(buf, pos, limit, 10)
    topics_: list[CreatableTopic] = []
    for _ in range(count):
        topics_item, pos = _read_creatable_topic(buf, pos, limit, version)
        topics_.append(topics_item)
    m.topics = topics_
    m.timeout_ms, m.validate_only = _unpack_it(buf, pos)
    pos += 5
    if version >= 5:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            m.unknown_tags, pos = read_tags(buf, pos, limit)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _write_create_topics_request(out: bytearray, m: CreateTopicsRequest, version: int) -> None:
    if version >= 5:
        put_compact_count(out, len(m.topics))
    else:
        put_count(out, len(m.topics))
    for topics_item in m.topics:
        _write_creatable_topic(out, topics_item, version)
    out += _pack_it(m.timeout_ms, m.validate_only)
    if version >= 5:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)


def _read_creatable_topic_configs(buf: Buffer, pos: int, limit: int, version: int) -> tuple[CreatableTopicConfigs, int]:
    m = object.__new__(CreatableTopicConfigs)
    m.name, pos = read_compact_string(buf, pos, limit)
    m.value, pos = read_compact_nullable_string(buf, pos, limit)
    m.read_only, m.config_source, m.is_sensitive = _unpack_tbt(buf, pos)
    pos += 3
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
    return m, pos


def _write_creatable_topic_configs(out: bytearray, m: CreatableTopicConfigs, version: int) -> None:
    put_compact_string(out, m.name)
    put_compact_nullable_string(out, m.value)
    out += _pack_tbt(m.read_only, m.config_source, m.is_sensitive)
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)


def _read_creatable_topic_result(buf: Buffer, pos: int, limit: int, version: int) -> tuple[CreatableTopicResult, int]:
    m = object.__new__(CreatableTopicResult)
    if version >= 5:
        m.name, pos = read_compact_string(buf, pos, limit)
    else:
        m.name, pos = read_string(buf, pos, limit)
    if version >= 7:
        (m.topic_id,) = _unpack_u(buf, pos)
        pos += 16
    else:
        m.topic_id = ZERO_UUID
    (m.error_code,) = _unpack_h(buf, pos)
    pos += 2
    if version >= 5:
        m.error_message, pos = read_compact_nullable_string(buf, pos, limit)
        m.topic_config_error_code = 0
        m.num_partitions, m.replication_factor = _unpack_ih(buf, pos)
        pos += 6
        count, pos = read_compact_nullable_count(buf, pos, limit, 6)
        if count < 0:
            m.configs = None
        else:
            configs_: list[CreatableTopicConfigs] = []
            for _ in range(count):
                configs_item, pos = _read_creatable_topic_configs(buf, pos, limit, version)
                configs_.append(configs_item)
            m.configs = configs_
    else:
        m.error_message, pos = read_nullable_string(buf, pos, limit)
        m.topic_config_error_code = 0
        m.num_partitions = -1
        m.replication_factor = -1
        m.configs = []
    if version >= 5:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            pos = _read_creatable_topic_result_tags(m, buf, pos, limit, version)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _read_creatable_topic_result_tags(m: CreatableTopicResult, buf: Buffer, pos: int, limit: int, version: int) -> int:
    unknown: dict[int, bytes] = {}
    many, pos = read_tag_count(buf, pos, limit)
    for _ in range(many):
        tag, pos, end = read_tag(buf, pos, limit)
        if tag == 0:
            (m.topic_config_error_code,) = _unpack_h(buf, pos)
            pos += 2
        else:
            unknown[tag] = bytes(buf[pos:end])
            pos = end
        if pos != end:
            raise tag_of_other_size(m, tag)
    m.unknown_tags = unknown or NO_TAGS
    return pos


def _write_creatable_topic_result(out: bytearray, m: CreatableTopicResult, version: int) -> None:
    if version >= 5:
        put_compact_string(out, m.name)
    else:
        put_string(out, m.name)
    if version >= 7:
        put_uuid(out, m.topic_id)
    out += _pack_h(m.error_code)
    if version >= 5:
        put_compact_nullable_string(out, shortened(m.error_message))
        out += _pack_ih(m.num_partitions, m.replication_factor)
        if m.configs is None:
            out.append(0)
        else:
            put_compact_count(out, len(m.configs))
            for configs_item in m.configs:
                _write_creatable_topic_configs(out, configs_item, version)
    else:
        put_nullable_string(out, shortened(m.error_message))
    if version >= 5:
        tags: list[tuple[int, bytearray]] = []
        if m.topic_config_error_code != 0:
            tag = bytearray()
            tag += _pack_h(m.topic_config_error_code)
            tags.append((0, tag))
        if tags or m.unknown_tags:
            put_tags(out, tags, m.unknown_tags, _TAGS_CREATABLE_TOPIC_RESULT)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)


def _read_create_topics_response(buf: Buffer, pos: int, limit: int, version: int) -> tuple[CreateTopicsResponse, int]:
    m = object.__new__(CreateTopicsResponse)
    (m.throttle_time_ms,) = _unpack_i(buf, pos)
    pos += 4
    count, pos = read_compact_count(buf, pos, limit, 6) if version >= 5 else read_count(buf, pos, limit, 6)
    topics_: list[CreatableTopicResult] = []
    for _ in range(count):
        topics_item, pos = _read_creatable_topic_result(buf, pos, limit, version)
        topics_.append(topics_item)
    m.topics = topics_
    if version >= 5:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            m.unknown_tags, pos = read_tags(buf, pos, limit)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _write_create_topics_response(out: bytearray, m: CreateTopicsResponse, version: int) -> None:
    out += _pack_i(m.throttle_time_ms)
    if version >= 5:
        put_compact_count(out, len(m.topics))
    else:
        put_count(out, len(m.topics))
    for topics_item in m.topics:
        _write_creatable_topic_result(out, topics_item, version)
    if version >= 5:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)
