"""The quotas that match a filter.

Made from schemas/describe_client_quotas.schema by `python -m ottla.protocol.compile`: change that file.
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
_pack_d = Struct(">d").pack
_pack_ih = Struct(">ih").pack
_unpack_b = Struct(">b").unpack_from
_unpack_d = Struct(">d").unpack_from
_unpack_ih = Struct(">ih").unpack_from

class ComponentData(Structure):
    __slots__ = ("entity_type", "match_type", "match", "unknown_tags",)

    def __init__(
        self,
        *,
        entity_type: str = "",
        match_type: int = 0,
        match: str | None = "",
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.entity_type = entity_type
        self.match_type = match_type
        self.match = match
        self.unknown_tags = unknown_tags


class DescribeClientQuotasRequest(Message):
    __slots__ = ("components", "strict", "unknown_tags",)
    API_KEY = 48
    MIN_VERSION = 0
    MAX_VERSION = 1
    FLEXIBLE_FROM = 1
    HAS_ARRAYS = True

    def __init__(
        self,
        *,
        components: list[ComponentData] = EMPTY_LIST,
        strict: bool = False,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.components = [] if components is EMPTY_LIST else components
        self.strict = strict
        self.unknown_tags = unknown_tags

    def encode_into(self, out: bytearray, version: int) -> None:
        if not 0 <= version <= 1:
            raise unencodable(DescribeClientQuotasRequest, version)
        try:
            _write_describe_client_quotas_request(out, self, version)
        except ENCODE_FAULTS as fault:
            raise bad_value(DescribeClientQuotasRequest, version, fault) from fault

    @classmethod
    def decode(cls, buf: Buffer, version: int, pos: int = 0) -> tuple[DescribeClientQuotasRequest, int]:
        if not 0 <= version <= 1:
            raise undecodable(DescribeClientQuotasRequest, version)
        try:
            return _read_describe_client_quotas_request(buf, pos, len(buf), version)
        except DECODE_FAULTS as fault:
            raise bad_bytes(DescribeClientQuotasRequest, version, fault) from fault


class EntityData(Structure):
    __slots__ = ("entity_type", "entity_name", "unknown_tags",)

    def __init__(
        self,
        *,
        entity_type: str = "",
        entity_name: str | None = "",
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.entity_type = entity_type
        self.entity_name = entity_name
        self.unknown_tags = unknown_tags


class ValueData(Structure):
    __slots__ = ("key", "value", "unknown_tags",)

    def __init__(
        self,
        *,
        key: str = "",
        value: float = 0.0,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.key = key
        self.value = value
        self.unknown_tags = unknown_tags


class EntryData(Structure):
    __slots__ = ("entity", "values", "unknown_tags",)

    def __init__(
        self,
        *,
        entity: list[EntityData] = EMPTY_LIST,
        values: list[ValueData] = EMPTY_LIST,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.entity = [] if entity is EMPTY_LIST else entity
        self.values = [] if values is EMPTY_LIST else values
        self.unknown_tags = unknown_tags


class DescribeClientQuotasResponse(Message):
    __slots__ = ("throttle_time_ms", "error_code", "error_message", "entries", "unknown_tags",)
    API_KEY = 48
    MIN_VERSION = 0
    MAX_VERSION = 1
    FLEXIBLE_FROM = 1
    HAS_ARRAYS = True

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = "",
        entries: list[EntryData] | None = EMPTY_LIST,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
        self.entries = [] if entries is EMPTY_LIST else entries
        self.unknown_tags = unknown_tags

    def encode_into(self, out: bytearray, version: int) -> None:
        if not 0 <= version <= 1:
            raise unencodable(DescribeClientQuotasResponse, version)
        try:
            _write_describe_client_quotas_response(out, self, version)
        except ENCODE_FAULTS as fault:
            raise bad_value(DescribeClientQuotasResponse, version, fault) from fault

    @classmethod
    def decode(cls, buf: Buffer, version: int, pos: int = 0) -> tuple[DescribeClientQuotasResponse, int]:
        if not 0 <= version <= 1:
            raise undecodable(DescribeClientQuotasResponse, version)
        try:
            return _read_describe_client_quotas_response(buf, pos, len(buf), version)
        except DECODE_FAULTS as fault:
            raise bad_bytes(DescribeClientQuotasResponse, version, fault) from fault


def _read_component_data(buf: Buffer, pos: int, limit: int, version: int) -> tuple[ComponentData, int]:
    m = object.__new__(ComponentData)
    if version >= 1:
        m.entity_type, pos = read_compact_string(buf, pos, limit)
    else:
        m.entity_type, pos = read_string(buf, pos, limit)
    (m.match_type,) = _unpack_b(buf, pos)
    pos += 1
    if version >= 1:
        m.match, pos = read_compact_nullable_string(buf, pos, limit)
    else:
        m.match, pos = read_nullable_string(buf, pos, limit)
    if version >= 1:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            m.unknown_tags, pos = read_tags(buf, pos, limit)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _write_component_data(out: bytearray, m: ComponentData, version: int) -> None:
    if version >= 1:
        put_compact_string(out, m.entity_type)
    else:
        put_string(out, m.entity_type)
    out += _pack_b(m.match_type)
    if version >= 1:
        put_compact_nullable_string(out, m.match)
    else:
        put_nullable_string(out, m.match)
    if version >= 1:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)


def _read_describe_client_quotas_request(buf: Buffer, pos: int, limit: int, version: int) -> tuple[DescribeClientQuotasRequest, int]:
    m = object.__new__(DescribeClientQuotasRequest)
    count, pos = read_compact_count(buf, pos, limit, 4) if version >= 1 else read_count(buf, pos, limit, 4)
    components_: list[ComponentData] = []
    for _ in range(count):
        components_item, pos = _read_component_data(buf, pos, limit, version)
        components_.append(components_item)
    m.components = components_
    m.strict = buf[pos] != 0
    pos += 1
    if version >= 1:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            m.unknown_tags, pos = read_tags(buf, pos, limit)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _write_describe_client_quotas_request(out: bytearray, m: DescribeClientQuotasRequest, version: int) -> None:
    if version >= 1:
        put_compact_count(out, len(m.components))
    else:
        put_count(out, len(m.components))
    for components_item in m.components:
        _write_component_data(out, components_item, version)
    out.append(1 if m.strict else 0)
    if version >= 1:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)


def _read_entity_data(buf: Buffer, pos: int, limit: int, version: int) -> tuple[EntityData, int]:
    m = object.__new__(EntityData)
    if version >= 1:
        m.entity_type, pos = read_compact_string(buf, pos, limit)
        m.entity_name, pos = read_compact_nullable_string(buf, pos, limit)
    else:
        m.entity_type, pos = read_string(buf, pos, limit)
        m.entity_name, pos = read_nullable_string(buf, pos, limit)
    if version >= 1:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            m.unknown_tags, pos = read_tags(buf, pos, limit)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _write_entity_data(out: bytearray, m: EntityData, version: int) -> None:
    if version >= 1:
        put_compact_string(out, m.entity_type)
        put_compact_nullable_string(out, m.entity_name)
    else:
        put_string(out, m.entity_type)
        put_nullable_string(out, m.entity_name)
    if version >= 1:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)


def _read_value_data(buf: Buffer, pos: int, limit: int, version: int) -> tuple[ValueData, int]:
    m = object.__new__(ValueData)
    if version >= 1:
        m.key, pos = read_compact_string(buf, pos, limit)
    else:
        m.key, pos = read_string(buf, pos, limit)
    (m.value,) = _unpack_d(buf, pos)
    pos += 8
    if version >= 1:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            m.unknown_tags, pos = read_tags(buf, pos, limit)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _write_value_data(out: bytearray, m: ValueData, version: int) -> None:
    if version >= 1:
        put_compact_string(out, m.key)
    else:
        put_string(out, m.key)
    out += _pack_d(m.value)
    if version >= 1:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)


def _read_entry_data(buf: Buffer, pos: int, limit: int, version: int) -> tuple[EntryData, int]:
    m = object.__new__(EntryData)
    count, pos = read_compact_count(buf, pos, limit, 3) if version >= 1 else read_count(buf, pos, limit, 3)
    entity_: list[EntityData] = []
    for _ in range(count):
        entity_item, pos = _read_entity_data(buf, pos, limit, version)
        entity_.append(entity_item)
    m.entity = entity_
    count, pos = read_compact_count(buf, pos, limit, 10) if version >= 1 else read_count(buf, pos, limit, 10)
    values_: list[ValueData] = []
    for _ in range(count):
        values_item, pos = _read_value_data(buf, pos, limit, version)
        values_.append(values_item)
    m.values = values_
    if version >= 1:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            m.unknown_tags, pos = read_tags(buf, pos, limit)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _write_entry_data(out: bytearray, m: EntryData, version: int) -> None:
    if version >= 1:
        put_compact_count(out, len(m.entity))
    else:
        put_count(out, len(m.entity))
    for entity_item in m.entity:
        _write_entity_data(out, entity_item, version)
    if version >= 1:
        put_compact_count(out, len(m.values))
    else:
        put_count(out, len(m.values))
    for values_item in m.values:
        _write_value_data(out, values_item, version)
    if version >= 1:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)


def _read_describe_client_quotas_response(buf: Buffer, pos: int, limit: int, version: int) -> tuple[DescribeClientQuotasResponse, int]:
    m = object.__new__(DescribeClientQuotasResponse)
    m.throttle_time_ms, m.error_code = _unpack_ih(buf, pos)
    pos += 6
    if version >= 1:
        m.error_message, pos = read_compact_nullable_string(buf, pos, limit)
    else:
        m.error_message, pos = read_nullable_string(buf, pos, limit)
    count, pos = read_compact_nullable_count(buf, pos, limit, 3) if version >= 1 else read_nullable_count(buf, pos, limit, 3)
    if count < 0:
        m.entries = None
    else:
        entries_: list[EntryData] = []
        for _ in range(count):
            entries_item, pos = _read_entry_data(buf, pos, limit, version)
            entries_.append(entries_item)
        m.entries = entries_
    if version >= 1:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            m.unknown_tags, pos = read_tags(buf, pos, limit)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _write_describe_client_quotas_response(out: bytearray, m: DescribeClientQuotasResponse, version: int) -> None:
    out += _pack_ih(m.throttle_time_ms, m.error_code)
    if version >= 1:
        put_compact_nullable_string(out, shortened(m.error_message))
    else:
        put_nullable_string(out, shortened(m.error_message))
    if m.entries is None:
        out += b"\0" if version >= 1 else NULL_COUNT
    else:
        if version >= 1:
            put_compact_count(out, len(m.entries))
        else:
            put_count(out, len(m.entries))
        for entries_item in m.entries:
            _write_entry_data(out, entries_item, version)
    if version >= 1:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)
