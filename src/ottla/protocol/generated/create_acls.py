"""Adds access rules.

Made from schemas/create_acls.schema by `python -m ottla.protocol.compile`: change that file.
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
_pack_bb = Struct(">bb").pack
_pack_h = Struct(">h").pack
_pack_i = Struct(">i").pack
_unpack_b = Struct(">b").unpack_from
_unpack_bb = Struct(">bb").unpack_from
_unpack_h = Struct(">h").unpack_from
_unpack_i = Struct(">i").unpack_from

class AclCreation(Structure):
    __slots__ = ("resource_type", "resource_name", "resource_pattern_type", "principal", "host", "operation", "permission_type", "unknown_tags",)

    def __init__(
        self,
        *,
        resource_type: int = 0,
        resource_name: str = "",
        resource_pattern_type: int = 3,
        principal: str = "",
        host: str = "",
        operation: int = 0,
        permission_type: int = 0,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.resource_type = resource_type
        self.resource_name = resource_name
        self.resource_pattern_type = resource_pattern_type
        self.principal = principal
        self.host = host
        self.operation = operation
        self.permission_type = permission_type
        self.unknown_tags = unknown_tags


class CreateAclsRequest(Message):
    __slots__ = ("creations", "unknown_tags",)
    API_KEY = 30
    MIN_VERSION = 1
    MAX_VERSION = 3
    FLEXIBLE_FROM = 2
    HAS_ARRAYS = True

    def __init__(
        self,
        *,
        creations: list[AclCreation] = EMPTY_LIST,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.creations = [] if creations is EMPTY_LIST else creations
        self.unknown_tags = unknown_tags

    def encode_into(self, out: bytearray, version: int) -> None:
        if not 1 <= version <= 3:
            raise unencodable(CreateAclsRequest, version)
        try:
            _write_create_acls_request(out, self, version)
        except ENCODE_FAULTS as fault:
            raise bad_value(CreateAclsRequest, version, fault) from fault

    @classmethod
    def decode(cls, buf: Buffer, version: int, pos: int = 0) -> tuple[CreateAclsRequest, int]:
        if not 1 <= version <= 3:
            raise undecodable(CreateAclsRequest, version)
        try:
            return _read_create_acls_request(buf, pos, len(buf), version)
        except DECODE_FAULTS as fault:
            raise bad_bytes(CreateAclsRequest, version, fault) from fault


class AclCreationResult(Structure):
    __slots__ = ("error_code", "error_message", "unknown_tags",)

    def __init__(
        self,
        *,
        error_code: int = 0,
        error_message: str | None = "",
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.error_code = error_code
        self.error_message = error_message
        self.unknown_tags = unknown_tags


class CreateAclsResponse(Message):
    __slots__ = ("throttle_time_ms", "results", "unknown_tags",)
    API_KEY = 30
    MIN_VERSION = 1
    MAX_VERSION = 3
    FLEXIBLE_FROM = 2
    HAS_ARRAYS = True

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        results: list[AclCreationResult] = EMPTY_LIST,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.results = [] if results is EMPTY_LIST else results
        self.unknown_tags = unknown_tags

    def encode_into(self, out: bytearray, version: int) -> None:
        if not 1 <= version <= 3:
            raise unencodable(CreateAclsResponse, version)
        try:
            _write_create_acls_response(out, self, version)
        except ENCODE_FAULTS as fault:
            raise bad_value(CreateAclsResponse, version, fault) from fault

    @classmethod
    def decode(cls, buf: Buffer, version: int, pos: int = 0) -> tuple[CreateAclsResponse, int]:
        if not 1 <= version <= 3:
            raise undecodable(CreateAclsResponse, version)
        try:
            return _read_create_acls_response(buf, pos, len(buf), version)
        except DECODE_FAULTS as fault:
            raise bad_bytes(CreateAclsResponse, version, fault) from fault


def _read_acl_creation(buf: Buffer, pos: int, limit: int, version: int) -> tuple[AclCreation, int]:
    m = object.__new__(AclCreation)
    (m.resource_type,) = _unpack_b(buf, pos)
    pos += 1
    if version >= 2:
        m.resource_name, pos = read_compact_string(buf, pos, limit)
    else:
        m.resource_name, pos = read_string(buf, pos, limit)
    (m.resource_pattern_type,) = _unpack_b(buf, pos)
    pos += 1
    if version >= 2:
        m.principal, pos = read_compact_string(buf, pos, limit)
        m.host, pos = read_compact_string(buf, pos, limit)
    else:
        m.principal, pos = read_string(buf, pos, limit)
        m.host, pos = read_string(buf, pos, limit)
    m.operation, m.permission_type = _unpack_bb(buf, pos)
    pos += 2
    if version >= 2:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            m.unknown_tags, pos = read_tags(buf, pos, limit)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _write_acl_creation(out: bytearray, m: AclCreation, version: int) -> None:
    out += _pack_b(m.resource_type)
    if version >= 2:
        put_compact_string(out, m.resource_name)
    else:
        put_string(out, m.resource_name)
    out += _pack_b(m.resource_pattern_type)
    if version >= 2:
        put_compact_string(out, m.principal)
        put_compact_string(out, m.host)
    else:
        put_string(out, m.principal)
        put_string(out, m.host)
    out += _pack_bb(m.operation, m.permission_type)
    if version >= 2:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)


def _read_create_acls_request(buf: Buffer, pos: int, limit: int, version: int) -> tuple[CreateAclsRequest, int]:
    m = object.__new__(CreateAclsRequest)
    count, pos = read_compact_count(buf, pos, limit, 8) if version >= 2 else read_count(buf, pos, limit, 8)
    creations_: list[AclCreation] = []
    for _ in range(count):
        creations_item, pos = _read_acl_creation(buf, pos, limit, version)
        creations_.append(creations_item)
    m.creations = creations_
    if version >= 2:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            m.unknown_tags, pos = read_tags(buf, pos, limit)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _write_create_acls_request(out: bytearray, m: CreateAclsRequest, version: int) -> None:
    if version >= 2:
        put_compact_count(out, len(m.creations))
    else:
        put_count(out, len(m.creations))
    for creations_item in m.creations:
        _write_acl_creation(out, creations_item, version)
    if version >= 2:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)


def _read_acl_creation_result(buf: Buffer, pos: int, limit: int, version: int) -> tuple[AclCreationResult, int]:
    m = object.__new__(AclCreationResult)
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


def _write_acl_creation_result(out: bytearray, m: AclCreationResult, version: int) -> None:
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


def _read_create_acls_response(buf: Buffer, pos: int, limit: int, version: int) -> tuple[CreateAclsResponse, int]:
    m = object.__new__(CreateAclsResponse)
    (m.throttle_time_ms,) = _unpack_i(buf, pos)
    pos += 4
    count, pos = read_compact_count(buf, pos, limit, 4) if version >= 2 else read_count(buf, pos, limit, 4)
    results_: list[AclCreationResult] = []
    for _ in range(count):
        results_item, pos = _read_acl_creation_result(buf, pos, limit, version)
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


def _write_create_acls_response(out: bytearray, m: CreateAclsResponse, version: int) -> None:
    out += _pack_i(m.throttle_time_ms)
    if version >= 2:
        put_compact_count(out, len(m.results))
    else:
        put_count(out, len(m.results))
    for results_item in m.results:
        _write_acl_creation_result(out, results_item, version)
    if version >= 2:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)
