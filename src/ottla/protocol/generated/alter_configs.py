"""Replaces all settings of a resource.

Made from schemas/alter_configs.schema by `python -m ottla.protocol.compile`: change that file.
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
    put_compact_count,
    put_compact_nullable_string,
    put_compact_string,
    put_count,
    put_nullable_string,
    put_string,
    put_tags,
    read_compact_count,
    read_compact_nullable_string,
    read_compact_string,
    read_count,
    read_nullable_string,
    read_string,
    read_tags,
    shortened,
)

_pack_b = Struct(">b").pack
_pack_h = Struct(">h").pack
_pack_i = Struct(">i").pack
_unpack_b = Struct(">b").unpack_from
_unpack_h = Struct(">h").unpack_from
_unpack_i = Struct(">i").unpack_from

class AlterableConfig(Structure):
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


class AlterConfigsResource(Structure):
    __slots__ = ("resource_type", "resource_name", "configs", "unknown_tags",)

    def __init__(
        self,
        *,
        resource_type: int = 0,
        resource_name: str = "",
        configs: list[AlterableConfig] = EMPTY_LIST,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.resource_type = resource_type
        self.resource_name = resource_name
        self.configs = [] if configs is EMPTY_LIST else configs
        self.unknown_tags = unknown_tags


class AlterConfigsRequest(Message):
    __slots__ = ("resources", "validate_only", "unknown_tags",)
    API_KEY = 33
    MIN_VERSION = 0
    MAX_VERSION = 2
    FLEXIBLE_FROM = 2
    HAS_ARRAYS = True

    def __init__(
        self,
        *,
        resources: list[AlterConfigsResource] = EMPTY_LIST,
        validate_only: bool = False,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.resources = [] if resources is EMPTY_LIST else resources
        self.validate_only = validate_only
        self.unknown_tags = unknown_tags

    def encode_into(self, out: bytearray, version: int) -> None:
        if not 0 <= version <= 2:
            raise unencodable(AlterConfigsRequest, version)
        try:
            _write_alter_configs_request(out, self, version)
        except ENCODE_FAULTS as fault:
            raise bad_value(AlterConfigsRequest, version, fault) from fault

    @classmethod
    def decode(cls, buf: Buffer, version: int, pos: int = 0) -> tuple[AlterConfigsRequest, int]:
        if not 0 <= version <= 2:
            raise undecodable(AlterConfigsRequest, version)
        try:
            return _read_alter_configs_request(buf, pos, len(buf), version)
        except DECODE_FAULTS as fault:
            raise bad_bytes(AlterConfigsRequest, version, fault) from fault


class AlterConfigsResourceResponse(Structure):
    __slots__ = ("error_code", "error_message", "resource_type", "resource_name", "unknown_tags",)

    def __init__(
        self,
        *,
        error_code: int = 0,
        error_message: str | None = "",
        resource_type: int = 0,
        resource_name: str = "",
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.error_code = error_code
        self.error_message = error_message
        self.resource_type = resource_type
        self.resource_name = resource_name
        self.unknown_tags = unknown_tags


class AlterConfigsResponse(Message):
    __slots__ = ("throttle_time_ms", "responses", "unknown_tags",)
    API_KEY = 33
    MIN_VERSION = 0
    MAX_VERSION = 2
    FLEXIBLE_FROM = 2
    HAS_ARRAYS = True

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        responses: list[AlterConfigsResourceResponse] = EMPTY_LIST,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.responses = [] if responses is EMPTY_LIST else responses
        self.unknown_tags = unknown_tags

    def encode_into(self, out: bytearray, version: int) -> None:
        if not 0 <= version <= 2:
            raise unencodable(AlterConfigsResponse, version)
        try:
            _write_alter_configs_response(out, self, version)
        except ENCODE_FAULTS as fault:
            raise bad_value(AlterConfigsResponse, version, fault) from fault

    @classmethod
    def decode(cls, buf: Buffer, version: int, pos: int = 0) -> tuple[AlterConfigsResponse, int]:
        if not 0 <= version <= 2:
            raise undecodable(AlterConfigsResponse, version)
        try:
            return _read_alter_configs_response(buf, pos, len(buf), version)
        except DECODE_FAULTS as fault:
            raise bad_bytes(AlterConfigsResponse, version, fault) from fault


def _read_alterable_config(buf: Buffer, pos: int, limit: int, version: int) -> tuple[AlterableConfig, int]:
    m = object.__new__(AlterableConfig)
    if version >= 2:
        m.name, pos = read_compact_string(buf, pos, limit)
        m.value, pos = read_compact_nullable_string(buf, pos, limit)
    else:
        m.name, pos = read_string(buf, pos, limit)
        m.value, pos = read_nullable_string(buf, pos, limit)
    if version >= 2:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            m.unknown_tags, pos = read_tags(buf, pos, limit)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _write_alterable_config(out: bytearray, m: AlterableConfig, version: int) -> None:
    if version >= 2:
        put_compact_string(out, m.name)
        put_compact_nullable_string(out, m.value)
    else:
        put_string(out, m.name)
        put_nullable_string(out, m.value)
    if version >= 2:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)


def _read_alter_configs_resource(buf: Buffer, pos: int, limit: int, version: int) -> tuple[AlterConfigsResource, int]:
    m = object.__new__(AlterConfigsResource)
    (m.resource_type,) = _unpack_b(buf, pos)
    pos += 1
    if version >= 2:
        m.resource_name, pos = read_compact_string(buf, pos, limit)
    else:
        m.resource_name, pos = read_string(buf, pos, limit)
    count, pos = read_compact_count(buf, pos, limit, 3) if version >= 2 else read_count(buf, pos, limit, 3)
    configs_: list[AlterableConfig] = []
    for _ in range(count):
        configs_item, pos = _read_alterable_config(buf, pos, limit, version)
        configs_.append(configs_item)
    m.configs = configs_
    if version >= 2:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            m.unknown_tags, pos = read_tags(buf, pos, limit)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _write_alter_configs_resource(out: bytearray, m: AlterConfigsResource, version: int) -> None:
    out += _pack_b(m.resource_type)
    if version >= 2:
        put_compact_string(out, m.resource_name)
    else:
        put_string(out, m.resource_name)
    if version >= 2:
        put_compact_count(out, len(m.configs))
    else:
        put_count(out, len(m.configs))
    for configs_item in m.configs:
        _write_alterable_config(out, configs_item, version)
    if version >= 2:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)


def _read_alter_configs_request(buf: Buffer, pos: int, limit: int, version: int) -> tuple[AlterConfigsRequest, int]:
    m = object.__new__(AlterConfigsRequest)
    count, pos = read_compact_count(buf, pos, limit, 4) if version >= 2 else read_count(buf, pos, limit, 4)
    resources_: list[AlterConfigsResource] = []
    for _ in range(count):
        resources_item, pos = _read_alter_configs_resource(buf, pos, limit, version)
        resources_.append(resources_item)
    m.resources = resources_
    m.validate_only = buf[pos] != 0
    pos += 1
    if version >= 2:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            m.unknown_tags, pos = read_tags(buf, pos, limit)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _write_alter_configs_request(out: bytearray, m: AlterConfigsRequest, version: int) -> None:
    if version >= 2:
        put_compact_count(out, len(m.resources))
    else:
        put_count(out, len(m.resources))
    for resources_item in m.resources:
        _write_alter_configs_resource(out, resources_item, version)
    out.append(1 if m.validate_only else 0)
    if version >= 2:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)


def _read_alter_configs_resource_response(buf: Buffer, pos: int, limit: int, version: int) -> tuple[AlterConfigsResourceResponse, int]:
    m = object.__new__(AlterConfigsResourceResponse)
    (m.error_code,) = _unpack_h(buf, pos)
    pos += 2
    if version >= 2:
        m.error_message, pos = read_compact_nullable_string(buf, pos, limit)
    else:
        m.error_message, pos = read_nullable_string(buf, pos, limit)
    (m.resource_type,) = _unpack_b(buf, pos)
    pos += 1
    if version >= 2:
        m.resource_name, pos = read_compact_string(buf, pos, limit)
    else:
        m.resource_name, pos = read_string(buf, pos, limit)
    if version >= 2:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            m.unknown_tags, pos = read_tags(buf, pos, limit)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _write_alter_configs_resource_response(out: bytearray, m: AlterConfigsResourceResponse, version: int) -> None:
    out += _pack_h(m.error_code)
    if version >= 2:
        put_compact_nullable_string(out, shortened(m.error_message))
    else:
        put_nullable_string(out, shortened(m.error_message))
    out += _pack_b(m.resource_type)
    if version >= 2:
        put_compact_string(out, m.resource_name)
    else:
        put_string(out, m.resource_name)
    if version >= 2:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)


def _read_alter_configs_response(buf: Buffer, pos: int, limit: int, version: int) -> tuple[AlterConfigsResponse, int]:
    m = object.__new__(AlterConfigsResponse)
    (m.throttle_time_ms,) = _unpack_i(buf, pos)
    pos += 4
    count, pos = read_compact_count(buf, pos, limit, 6) if version >= 2 else read_count(buf, pos, limit, 6)
    responses_: list[AlterConfigsResourceResponse] = []
    for _ in range(count):
        responses_item, pos = _read_alter_configs_resource_response(buf, pos, limit, version)
        responses_.append(responses_item)
    m.responses = responses_
    if version >= 2:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            m.unknown_tags, pos = read_tags(buf, pos, limit)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _write_alter_configs_response(out: bytearray, m: AlterConfigsResponse, version: int) -> None:
    out += _pack_i(m.throttle_time_ms)
    if version >= 2:
        put_compact_count(out, len(m.responses))
    else:
        put_count(out, len(m.responses))
    for responses_item in m.responses:
        _write_alter_configs_resource_response(out, responses_item, version)
    if version >= 2:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)
