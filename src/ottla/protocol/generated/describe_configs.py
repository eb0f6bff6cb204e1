"""Settings of topics, brokers and others, with their sources.

Made from schemas/describe_configs.schema by `python -m ottla.protocol.compile`: change that file.
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
    NULL_COUNT,
    put_compact_count,
    put_compact_nullable_string,
    put_compact_string,
    put_count,
    put_nullable_string,
    put_string,
    put_tags,
    read_compact_count,
    read_compact_nullable_count,
    read_compact_nullable_string,
    read_compact_string,
    read_count,
    read_nullable_count,
    read_nullable_string,
    read_string,
    read_tags,
    shortened,
)

_pack_b = Struct(">b").pack
_pack_h = Struct(">h").pack
_pack_i = Struct(">i").pack
_pack_tbt = Struct(">?b?").pack
_unpack_b = Struct(">b").unpack_from
_unpack_h = Struct(">h").unpack_from
_unpack_i = Struct(">i").unpack_from
_unpack_tbt = Struct(">?b?").unpack_from

class DescribeConfigsResource(Structure):
    __slots__ = ("resource_type", "resource_name", "configuration_keys", "unknown_tags",)

    def __init__(
        self,
        *,
        resource_type: int = 0,
        resource_name: str = "",
        configuration_keys: list[str] | None = EMPTY_LIST,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.resource_type = resource_type
        self.resource_name = resource_name
        self.configuration_keys = [] if configuration_keys is EMPTY_LIST else configuration_keys
        self.unknown_tags = unknown_tags


class DescribeConfigsRequest(Message):
    __slots__ = ("resources", "include_synonyms", "include_documentation", "unknown_tags",)
    API_KEY = 32
    MIN_VERSION = 1
    MAX_VERSION = 4
    FLEXIBLE_FROM = 4
    HAS_ARRAYS = True

    def __init__(
        self,
        *,
        resources: list[DescribeConfigsResource] = EMPTY_LIST,
        include_synonyms: bool = False,
        include_documentation: bool = False,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.resources = [] if resources is EMPTY_LIST else resources
        self.include_synonyms = include_synonyms
        self.include_documentation = include_documentation
        self.unknown_tags = unknown_tags

    def encode_into(self, out: bytearray, version: int) -> None:
        if not 1 <= version <= 4:
            raise unencodable(DescribeConfigsRequest, version)
        try:
            _write_describe_configs_request(out, self, version)
        except ENCODE_FAULTS as fault:
            raise bad_value(DescribeConfigsRequest, version, fault) from fault

    @classmethod
    def decode(cls, buf: Buffer, version: int, pos: int = 0) -> tuple[DescribeConfigsRequest, int]:
        if not 1 <= version <= 4:
            raise undecodable(DescribeConfigsRequest, version)
        try:
            return _read_describe_configs_request(buf, pos, len(buf), version)
        except DECODE_FAULTS as fault:
            raise bad_bytes(DescribeConfigsRequest, version, fault) from fault


class DescribeConfigsSynonym(Structure):
    __slots__ = ("name", "value", "source", "unknown_tags",)

    def __init__(
        self,
        *,
        name: str = "",
        value: str | None = "",
        source: int = 0,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.name = name
        self.value = value
        self.source = source
        self.unknown_tags = unknown_tags


class DescribeConfigsResourceResult(Structure):
    __slots__ = ("name", "value", "read_only", "config_source", "is_sensitive", "synonyms", "config_type", "documentation", "unknown_tags",)

    def __init__(
        self,
        *,
        name: str = "",
        value: str | None = "",
        read_only: bool = False,
        config_source: int = -1,
        is_sensitive: bool = False,
        synonyms: list[DescribeConfigsSynonym] = EMPTY_LIST,
        config_type: int = 0,
        documentation: str | None = "",
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.name = name
        self.value = value
        self.read_only = read_only
        self.config_source = config_source
        self.is_sensitive = is_sensitive
        self.synonyms = [] if synonyms is EMPTY_LIST else synonyms
        self.config_type = config_type
        self.documentation = documentation
        self.unknown_tags = unknown_tags


class DescribeConfigsResult(Structure):
    __slots__ = ("error_code", "error_message", "resource_type", "resource_name", "configs", "unknown_tags",)

    def __init__(
        self,
        *,
        error_code: int = 0,
        error_message: str | None = "",
        resource_type: int = 0,
        resource_name: str = "",
        configs: list[DescribeConfigsResourceResult] = EMPTY_LIST,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.error_code = error_code
        self.error_message = error_message
        self.resource_type = resource_type
        self.resource_name = resource_name
        self.configs = [] if configs is EMPTY_LIST else configs
        self.unknown_tags = unknown_tags


class DescribeConfigsResponse(Message):
    __slots__ = ("throttle_time_ms", "results", "unknown_tags",)
    API_KEY = 32
    MIN_VERSION = 1
    MAX_VERSION = 4
    FLEXIBLE_FROM = 4
    HAS_ARRAYS = True

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        results: list[DescribeConfigsResult] = EMPTY_LIST,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.results = [] if results is EMPTY_LIST else results
        self.unknown_tags = unknown_tags

    def encode_into(self, out: bytearray, version: int) -> None:
        if not 1 <= version <= 4:
            raise unencodable(DescribeConfigsResponse, version)
        try:
            _write_describe_configs_response(out, self, version)
        except ENCODE_FAULTS as fault:
            raise bad_value(DescribeConfigsResponse, version, fault) from fault

    @classmethod
    def decode(cls, buf: Buffer, version: int, pos: int = 0) -> tuple[DescribeConfigsResponse, int]:
        if not 1 <= version <= 4:
            raise undecodable(DescribeConfigsResponse, version)
        try:
            return _read_describe_configs_response(buf, pos, len(buf), version)
        except DECODE_FAULTS as fault:
            raise bad_bytes(DescribeConfigsResponse, version, fault) from fault


def _read_describe_configs_resource(buf: Buffer, pos: int, limit: int, version: int) -> tuple[DescribeConfigsResource, int]:
    m = object.__new__(DescribeConfigsResource)
    (m.resource_type,) = _unpack_b(buf, pos)
    pos += 1
    if version >= 4:
        m.resource_name, pos = read_compact_string(buf, pos, limit)
    else:
        m.resource_name, pos = read_string(buf, pos, limit)
    count, pos = read_compact_nullable_count(buf, pos, limit, 1) if version >= 4 else read_nullable_count(buf, pos, limit, 1)
    if count < 0:
        m.configuration_keys = None
    else:
        read_configuration_keys = read_compact_string if version >= 4 else read_string
        configuration_keys_: list[str] = []
        for _ in range(count):
            configuration_keys_item, pos = read_configuration_keys(buf, pos, limit)
            configuration_keys_.append(configuration_keys_item)
        m.configuration_keys = configuration_keys_
    if version >= 4:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            m.unknown_tags, pos = read_tags(buf, pos, limit)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _write_describe_configs_resource(out: bytearray, m: DescribeConfigsResource, version: int) -> None:
    out += _pack_b(m.resource_type)
    if version >= 4:
        put_compact_string(out, m.resource_name)
    else:
        put_string(out, m.resource_name)
    if m.configuration_keys is None:
        out += b"\0" if version >= 4 else NULL_COUNT
    else:
        if version >= 4:
            put_compact_count(out, len(m.configuration_keys))
        else:
            put_count(out, len(m.configuration_keys))
        put_configuration_keys = put_compact_string if version >= 4 else put_string
        for configuration_keys_item in m.configuration_keys:
            put_configuration_keys(out, configuration_keys_item)
    if version >= 4:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)


def _read_describe_configs_request(buf: Buffer, pos: int, limit: int, version: int) -> tuple[DescribeConfigsRequest, int]:
    m = object.__new__(DescribeConfigsRequest)
    count, pos = read_compact_count(buf, pos, limit, 4) if version >= 4 else read_count(buf, pos, limit, 4)
    resources_: list[DescribeConfigsResource] = []
    for _ in range(count):
        resources_item, pos = _read_describe_configs_resource(buf, pos, limit, version)
        resources_.append(resources_item)
    m.resources = resources_
    m.include_synonyms = buf[pos] != 0
    pos += 1
    if version >= 3:
        m.include_documentation = buf[pos] != 0
        pos += 1
    else:
        m.include_documentation = False
    if version >= 4:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            m.unknown_tags, pos = read_tags(buf, pos, limit)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _write_describe_configs_request(out: bytearray, m: DescribeConfigsRequest, version: int) -> None:
    if version >= 4:
        put_compact_count(out, len(m.resources))
    else:
        put_count(out, len(m.resources))
    for resources_item in m.resources:
        _write_describe_configs_resource(out, resources_item, version)
    out.append(1 if m.include_synonyms else 0)
    if version >= 3:
        out.append(1 if m.include_documentation else 0)
    else:
        if m.include_documentation:
            raise not_in_version(m, "include_documentation", version)
    if version >= 4:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)


def _read_describe_configs_synonym(buf: Buffer, pos: int, limit: int, version: int) -> tuple[DescribeConfigsSynonym, int]:
    m = object.__new__(DescribeConfigsSynonym)
    if version >= 4:
        m.name, pos = read_compact_string(buf, pos, limit)
        m.value, pos = read_compact_nullable_string(buf, pos, limit)
    else:
        m.name, pos = read_string(buf, pos, limit)
        m.value, pos = read_nullable_string(buf, pos, limit)
    (m.source,) = _unpack_b(buf, pos)
    pos += 1
    if version >= 4:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            m.unknown_tags, pos = read_tags(buf, pos, limit)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _write_describe_configs_synonym(out: bytearray, m: DescribeConfigsSynonym, version: int) -> None:
    if version >= 4:
        put_compact_string(out, m.name)
        put_compact_nullable_string(out, m.value)
    else:
        put_string(out, m.name)
        put_nullable_string(out, m.value)
    out += _pack_b(m.source)
    if version >= 4:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)


def _read_describe_configs_resource_result(buf: Buffer, pos: int, limit: int, version: int) -> tuple[DescribeConfigsResourceResult, int]:
    m = object.__new__(DescribeConfigsResourceResult)
    if version >= 4:
        m.name, pos = read_compact_string(buf, pos, limit)
        m.value, pos = read_compact_nullable_string(buf, pos, limit)
    else:
        m.name, pos = read_string(buf, pos, limit)
        m.value, pos = read_nullable_string(buf, pos, limit)
    m.read_only, m.config_source, m.is_sensitive = _unpack_tbt(buf, pos)
    pos += 3
    count, pos = read_compact_count(buf, pos, limit, 4) if version >= 4 else read_count(buf, pos, limit, 4)
    synonyms_: list[DescribeConfigsSynonym] = []
    for _ in range(count):
        synonyms_item, pos = _read_describe_configs_synonym(buf, pos, limit, version)
        synonyms_.append(synonyms_item)
    m.synonyms = synonyms_
    if version >= 3:
        (m.config_type,) = _unpack_b(buf, pos)
        pos += 1
    else:
        m.config_type = 0
    if version >= 4:
        m.documentation, pos = read_compact_nullable_string(buf, pos, limit)
    elif version >= 3:
        m.documentation, pos = read_nullable_string(buf, pos, limit)
    else:
        m.documentation = ""
    if version >= 4:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            m.unknown_tags, pos = read_tags(buf, pos, limit)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _write_describe_configs_resource_result(out: bytearray, m: DescribeConfigsResourceResult, version: int) -> None:
    if version >= 4:
        put_compact_string(out, m.name)
        put_compact_nullable_string(out, m.value)
    else:
        put_string(out, m.name)
        put_nullable_string(out, m.value)
    out += _pack_tbt(m.read_only, m.config_source, m.is_sensitive)
    if version >= 4:
        put_compact_count(out, len(m.synonyms))
    else:
        put_count(out, len(m.synonyms))
    for synonyms_item in m.synonyms:
        _write_describe_configs_synonym(out, synonyms_item, version)
    if version >= 3:
        out += _pack_b(m.config_type)
    if version >= 4:
        put_compact_nullable_string(out, m.documentation)
    elif version >= 3:
        put_nullable_string(out, m.documentation)
    if version >= 4:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)


def _read_describe_configs_result(buf: Buffer, pos: int, limit: int, version: int) -> tuple[DescribeConfigsResult, int]:
    m = object.__new__(DescribeConfigsResult)
    (m.error_code,) = _unpack_h(buf, pos)
    pos += 2
    if version >= 4:
        m.error_message, pos = read_compact_nullable_string(buf, pos, limit)
    else:
        m.error_message, pos = read_nullable_string(buf, pos, limit)
    (m.resource_type,) = _unpack_b(buf, pos)
    pos += 1
    if version >= 4:
        m.resource_name, pos = read_compact_string(buf, pos, limit)
    else:
        m.resource_name, pos = read_string(buf, pos, limit)
    count, pos = read_compact_count(buf, pos, limit, 9) if version >= 4 else read_count(buf, pos, limit, 9)
    configs_: list[DescribeConfigsResourceResult] = []
    for _ in range(count):
        configs_item, pos = _read_describe_configs_resource_result(buf, pos, limit, version)
        configs_.append(configs_item)
    m.configs = configs_
    if version >= 4:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            m.unknown_tags, pos = read_tags(buf, pos, limit)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _write_describe_configs_result(out: bytearray, m: DescribeConfigsResult, version: int) -> None:
    out += _pack_h(m.error_code)
    if version >= 4:
        put_compact_nullable_string(out, shortened(m.error_message))
    else:
        put_nullable_string(out, shortened(m.error_message))
    out += _pack_b(m.resource_type)
    if version >= 4:
        put_compact_string(out, m.resource_name)
    else:
        put_string(out, m.resource_name)
    if version >= 4:
        put_compact_count(out, len(m.configs))
    else:
        put_count(out, len(m.configs))
    for configs_item in m.configs:
        _write_describe_configs_resource_result(out, configs_item, version)
    if version >= 4:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)


def _read_describe_configs_response(buf: Buffer, pos: int, limit: int, version: int) -> tuple[DescribeConfigsResponse, int]:
    m = object.__new__(DescribeConfigsResponse)
    (m.throttle_time_ms,) = _unpack_i(buf, pos)
    pos += 4
    count, pos = read_compact_count(buf, pos, limit, 7) if version >= 4 else read_count(buf, pos, limit, 7)
    results_: list[DescribeConfigsResult] = []
    for _ in range(count):
        results_item, pos = _read_describe_configs_result(buf, pos, limit, version)
        results_.append(results_item)
    m.results = results_
    if version >= 4:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            m.unknown_tags, pos = read_tags(buf, pos, limit)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _write_describe_configs_response(out: bytearray, m: DescribeConfigsResponse, version: int) -> None:
    out += _pack_i(m.throttle_time_ms)
    if version >= 4:
        put_compact_count(out, len(m.results))
    else:
        put_count(out, len(m.results))
    for results_item in m.results:
        _write_describe_configs_result(out, results_item, version)
    if version >= 4:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)
