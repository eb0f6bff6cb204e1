"""Sets and removes quotas.

Made from schemas/alter_client_quotas.schema by `python -m ottla.protocol.compile`: change that file.
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

_pack_dt = Struct(">d?").pack
_pack_h = Struct(">h").pack
_pack_i = Struct(">i").pack
_unpack_dt = Struct(">d?").unpack_from
_unpack_h = Struct(">h").unpack_from
_unpack_i = Struct(">i").unpack_from

class OpData(Structure):
    __slots__ = ("key", "value", "remove", "unknown_tags",)

    def __init__(
        self,
        *,
        key: str = "",
        value: float = 0.0,
        remove: bool = False,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.key = key
        self.value = value
        self.remove = remove
        self.unknown_tags = unknown_tags


class RequestEntryData(Structure):
    __slots__ = ("entity", "ops", "unknown_tags",)

    def __init__(
        self,
        *,
        entity: list[EntityData] = EMPTY_LIST,
        ops: list[OpData] = EMPTY_LIST,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.entity = [] if entity is EMPTY_LIST else entity
        self.ops = [] if ops is EMPTY_LIST else ops
        self.unknown_tags = unknown_tags


class AlterClientQuotasRequest(Message):
    __slots__ = ("entries", "validate_only", "unknown_tags",)
    API_KEY = 49
    MIN_VERSION = 0
    MAX_VERSION = 1
    FLEXIBLE_FROM = 1
    HAS_ARRAYS = True

    def __init__(
        self,
        *,
        entries: list[RequestEntryData] = EMPTY_LIST,
        validate_only: bool = False,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.entries = [] if entries is EMPTY_LIST else entries
        self.validate_only = validate_only
        self.unknown_tags = unknown_tags

    def encode_into(self, out: bytearray, version: int) -> None:
        if not 0 <= version <= 1:
            raise unencodable(AlterClientQuotasRequest, version)
        try:
            _write_alter_client_quotas_request(out, self, version)
        except ENCODE_FAULTS as fault:
            raise bad_value(AlterClientQuotasRequest, version, fault) from fault

    @classmethod
    def decode(cls, buf: Buffer, version: int, pos: int = 0) -> tuple[AlterClientQuotasRequest, int]:
        if not 0 <= version <= 1:
            raise undecodable(AlterClientQuotasRequest, version)
        try:
            return _read_alter_client_quotas_request(buf, pos, len(buf), version)
        except DECODE_FAULTS as fault:
            raise bad_bytes(AlterClientQuotasRequest, version, fault) from fault


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


class ResponseEntryData(Structure):
    __slots__ = ("error_code", "error_message", "entity", "unknown_tags",)

    def __init__(
        self,
        *,
        error_code: int = 0,
        error_message: str | None = "",
        entity: list[EntityData] = EMPTY_LIST,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.error_code = error_code
        self.error_message = error_message
        self.entity = [] if entity is EMPTY_LIST else entity
        self.unknown_tags = unknown_tags


class AlterClientQuotasResponse(Message):
    __slots__ = ("throttle_time_ms", "entries", "unknown_tags",)
    API_KEY = 49
    MIN_VERSION = 0
    MAX_VERSION = 1
    FLEXIBLE_FROM = 1
    HAS_ARRAYS = True

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        entries: list[ResponseEntryData] = EMPTY_LIST,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.entries = [] if entries is EMPTY_LIST else entries
        self.unknown_tags = unknown_tags

    def encode_into(self, out: bytearray, version: int) -> None:
        if not 0 <= version <= 1:
            raise unencodable(AlterClientQuotasResponse, version)
        try:
            _write_alter_client_quotas_response(out, self, version)
        except ENCODE_FAULTS as fault:
            raise bad_value(AlterClientQuotasResponse, version, fault) from fault

    @classmethod
    def decode(cls, buf: Buffer, version: int, pos: int = 0) -> tuple[AlterClientQuotasResponse, int]:
        if not 0 <= version <= 1:
            raise undecodable(AlterClientQuotasResponse, version)
        try:
            return _read_alter_client_quotas_response(buf, pos, len(buf), version)
        except DECODE_FAULTS as fault:
            raise bad_bytes(AlterClientQuotasResponse, version, fault) from fault


def _read_op_data(buf: Buffer, pos: int, limit: int, version: int) -> tuple[OpData, int]:
    m = object.__new__(OpData)
    if version >= 1:
        m.key, pos = read_compact_string(buf, pos, limit)
    else:
        m.key, pos = read_string(buf, pos, limit)
    m.value, m.remove = _unpack_dt(buf, pos)
    pos += 9
    if version >= 1:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            m.unknown_tags, pos = read_tags(buf, pos, limit)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _write_op_data(out: bytearray, m: OpData, version: int) -> None:
    if version >= 1:
        put_compact_string(out, m.key)
    else:
        put_string(out, m.key)
    out += _pack_dt(m.value, m.remove)
    if version >= 1:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)


def _read_request_entry_data(buf: Buffer, pos: int, limit: int, version: int) -> tuple[RequestEntryData, int]:
    m = object.__new__(RequestEntryData)
    count, pos = read_compact_count(buf, pos, limit, 3) if version >= 1 else read_count(buf, pos, limit, 3)
    entity_: list[EntityData] = []
    for _ in range(count):
        entity_item, pos = _read_entity_data(buf, pos, limit, version)
        entity_.append(entity_item)
    m.entity = entity_
    count, pos = read_compact_count(buf, pos, limit, 11) if version >= 1 else read_count(buf, pos, limit, 11)
    ops_: list[OpData] = []
    for _ in range(count):
        ops_item, pos = _read_op_data(buf, pos, limit, version)
        ops_.append(ops_item)
    m.ops = ops_
    if version >= 1:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            m.unknown_tags, pos = read_tags(buf, pos, limit)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _write_request_entry_data(out: bytearray, m: RequestEntryData, version: int) -> None:
    if version >= 1:
        put_compact_count(out, len(m.entity))
    else:
        put_count(out, len(m.entity))
    for entity_item in m.entity:
        _write_entity_data(out, entity_item, version)
    if version >= 1:
        put_compact_count(out, len(m.ops))
    else:
        put_count(out, len(m.ops))
    for ops_item in m.ops:
        _write_op_data(out, ops_item, version)
    if version >= 1:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)


def _read_alter_client_quotas_request(buf: Buffer, pos: int, limit: int, version: int) -> tuple[AlterClientQuotasRequest, int]:
    m = object.__new__(AlterClientQuotasRequest)
    count, pos = read_compact_count(buf, pos, limit, 3) if version >= 1 else read_count(buf, pos, limit, 3)
    entries_: list[RequestEntryData] = []
    for _ in range(count):
        entries_item, pos = _read_request_entry_data(buf, pos, limit, version)
        entries_.append(entries_item)
    m.entries = entries_
    m.validate_only = buf[pos] != 0
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


def _write_alter_client_quotas_request(out: bytearray, m: AlterClientQuotasRequest, version: int) -> None:
    if version >= 1:
        put_compact_count(out, len(m.entries))
    else:
        put_count(out, len(m.entries))
    for entries_item in m.entries:
        _write_request_entry_data(out, entries_item, version)
    out.append(1 if m.validate_only else 0)
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


def _read_response_entry_data(buf: Buffer, pos: int, limit: int, version: int) -> tuple[ResponseEntryData, int]:
    m = object.__new__(ResponseEntryData)
    (m.error_code,) = _unpack_h(buf, pos)
    pos += 2
    if version >= 1:
        m.error_message, pos = read_compact_nullable_string(buf, pos, limit)
    else:
        m.error_message, pos = read_nullable_string(buf, pos, limit)
    count, pos = read_compact_count(buf, pos, limit, 3) if version >= 1 else read_count(buf, pos, limit, 3)
    entity_: list[EntityData] = []
    for _ in range(count):
        entity_item, pos = _read_entity_data(buf, pos, limit, version)
        entity_.append(entity_item)
    m.entity = entity_
    if version >= 1:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            m.unknown_tags, pos = read_tags(buf, pos, limit)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _write_response_entry_data(out: bytearray, m: ResponseEntryData, version: int) -> None:
    out += _pack_h(m.error_code)
    if version >= 1:
        put_compact_nullable_string(out, shortened(m.error_message))
    else:
        put_nullable_string(out, shortened(m.error_message))
    if version >= 1:
        put_compact_count(out, len(m.entity))
    else:
        put_count(out, len(m.entity))
    for entity_item in m.entity:
        _write_entity_data(out, entity_item, version)
    if version >= 1:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)


def _read_alter_client_quotas_response(buf: Buffer, pos: int, limit: int, version: int) -> tuple[AlterClientQuotasResponse, int]:
    m = object.__new__(AlterClientQuotasResponse)
    (m.throttle_time_ms,) = _unpack_i(buf, pos)
    pos += 4
    count, pos = read_compact_count(buf, pos, limit, 5) if version >= 1 else read_count(buf, pos, limit, 5)
    entries_: list[ResponseEntryData] = []
    for _ in range(count):
        entries_item, pos = _read_response_entry_data(buf, pos, limit, version)
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


def _write_alter_client_quotas_response(out: bytearray, m: AlterClientQuotasResponse, version: int) -> None:
    out += _pack_i(m.throttle_time_ms)
    if version >= 1:
        put_compact_count(out, len(m.entries))
    else:
        put_count(out, len(m.entries))
    for entries_item in m.entries:
        _write_response_entry_data(out, entries_item, version)
    if version >= 1:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)
