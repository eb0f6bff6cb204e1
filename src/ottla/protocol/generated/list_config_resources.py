"""The resources that have settings, of given kinds.

Made from schemas/list_config_resources.schema by `python -m ottla.protocol.compile`: change that file.
"""

from __future__ import annotations

from collections.abc import Mapping
from struct import Struct

from ottla.protocol.message import Message, Structure, bad_bytes, bad_value, not_in_version, undecodable, unencodable
from ottla.protocol.primitives import (
    Buffer,
    DECODE_FAULTS,
    EMPTY_LIST,
    ENCODE_FAULTS,
    NO_TAGS,
    put_compact_count,
    put_compact_string,
    put_numbers,
    put_tags,
    read_compact_count,
    read_compact_string,
    read_numbers,
    read_tags,
)

_pack_b = Struct(">b").pack
_pack_ih = Struct(">ih").pack
_unpack_b = Struct(">b").unpack_from
_unpack_ih = Struct(">ih").unpack_from

class ListConfigResourcesRequest(Message):
    __slots__ = ("resource_types", "unknown_tags",)
    API_KEY = 74
    MIN_VERSION = 0
    MAX_VERSION = 1
    FLEXIBLE_FROM = 0
    HAS_ARRAYS = True

    def __init__(
        self,
        *,
        resource_types: list[int] = EMPTY_LIST,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.resource_types = [] if resource_types is EMPTY_LIST else resource_types
        self.unknown_tags = unknown_tags

    def encode_into(self, out: bytearray, version: int) -> None:
        if not 0 <= version <= 1:
            raise unencodable(ListConfigResourcesRequest, version)
        try:
            _write_list_config_resources_request(out, self, version)
        except ENCODE_FAULTS as fault:
            raise bad_value(ListConfigResourcesRequest, version, fault) from fault

    @classmethod
    def decode(cls, buf: Buffer, version: int, pos: int = 0) -> tuple[ListConfigResourcesRequest, int]:
        if not 0 <= version <= 1:
            raise undecodable(ListConfigResourcesRequest, version)
        try:
            return _read_list_config_resources_request(buf, pos, len(buf), version)
        except DECODE_FAULTS as fault:
            raise bad_bytes(ListConfigResourcesRequest, version, fault) from fault


class ConfigResource(Structure):
    __slots__ = ("resource_name", "resource_type", "unknown_tags",)

    def __init__(
        self,
        *,
        resource_name: str = "",
        resource_type: int = 16,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.resource_name = resource_name
        self.resource_type = resource_type
        self.unknown_tags = unknown_tags


class ListConfigResourcesResponse(Message):
    __slots__ = ("throttle_time_ms", "error_code", "config_resources", "unknown_tags",)
    API_KEY = 74
    MIN_VERSION = 0
    MAX_VERSION = 1
    FLEXIBLE_FROM = 0
    HAS_ARRAYS = True

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        config_resources: list[ConfigResource] = EMPTY_LIST,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.config_resources = [] if config_resources is EMPTY_LIST else config_resources
        self.unknown_tags = unknown_tags

    def encode_into(self, out: bytearray, version: int) -> None:
        if not 0 <= version <= 1:
            raise unencodable(ListConfigResourcesResponse, version)
        try:
            _write_list_config_resources_response(out, self, version)
        except ENCODE_FAULTS as fault:
            raise bad_value(ListConfigResourcesResponse, version, fault) from fault

    @classmethod
    def decode(cls, buf: Buffer, version: int, pos: int = 0) -> tuple[ListConfigResourcesResponse, int]:
        if not 0 <= version <= 1:
            raise undecodable(ListConfigResourcesResponse, version)
        try:
            return _read_list_config_resources_response(buf, pos, len(buf), version)
        except DECODE_FAULTS as fault:
            raise bad_bytes(ListConfigResourcesResponse, version, fault) from fault


def _read_list_config_resources_request(buf: Buffer, pos: int, limit: int, version: int) -> tuple[ListConfigResourcesRequest, int]:
    m = object.__new__(ListConfigResourcesRequest)
    if version >= 1:
        count, pos = read_compact_count(buf, pos, limit, 1)
        m.resource_types, pos = read_numbers(buf, pos, count, "b", 1)
    else:
        m.resource_types = []
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
    return m, pos


def _write_list_config_resources_request(out: bytearray, m: ListConfigResourcesRequest, version: int) -> None:
    if version >= 1:
        put_compact_count(out, len(m.resource_types))
        put_numbers(out, m.resource_types, "b")
    else:
        if m.resource_types != []:
            raise not_in_version(m, "resource_types", version)
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)


def _read_config_resource(buf: Buffer, pos: int, limit: int, version: int) -> tuple[ConfigResource, int]:
    m = object.__new__(ConfigResource)
    m.resource_name, pos = read_compact_string(buf, pos, limit)
    if version >= 1:
        (m.resource_type,) = _unpack_b(buf, pos)
        pos += 1
    else:
        m.resource_type = 16
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
    return m, pos


def _write_config_resource(out: bytearray, m: ConfigResource, version: int) -> None:
    put_compact_string(out, m.resource_name)
    if version >= 1:
        out += _pack_b(m.resource_type)
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)


def _read_list_config_resources_response(buf: Buffer, pos: int, limit: int, version: int) -> tuple[ListConfigResourcesResponse, int]:
    m = object.__new__(ListConfigResourcesResponse)
    m.throttle_time_ms, m.error_code = _unpack_ih(buf, pos)
    pos += 6
    count, pos = read_compact_count(buf, pos, limit, 2)
    config_resources_: list[ConfigResource] = []
    for _ in range(count):
        config_resources_item, pos = _read_config_resource(buf, pos, limit, version)
        config_resources_.append(config_resources_item)
    m.config_resources = config_resources_
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
    return m, pos


def _write_list_config_resources_response(out: bytearray, m: ListConfigResourcesResponse, version: int) -> None:
    out += _pack_ih(m.throttle_time_ms, m.error_code)
    put_compact_count(out, len(m.config_resources))
    for config_resources_item in m.config_resources:
        _write_config_resource(out, config_resources_item, version)
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)
