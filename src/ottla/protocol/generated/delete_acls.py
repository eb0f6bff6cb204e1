"""Removes the access rules that match filters.

Made from schemas/delete_acls.schema by `python -m ottla.protocol.compile`: change that file.
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

class DeleteAclsFilter(Structure):
    __slots__ = ("resource_type_filter", "resource_name_filter", "pattern_type_filter", "principal_filter", "host_filter", "operation", "permission_type", "unknown_tags",)

    def __init__(
        self,
        *,
        resource_type_filter: int = 0,
        resource_name_filter: str | None = "",
        pattern_type_filter: int = 3,
        principal_filter: str | None = "",
        host_filter: str | None = "",
        operation: int = 0,
        permission_type: int = 0,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.resource_type_filter = resource_type_filter
        self.resource_name_filter = resource_name_filter
        self.pattern_type_filter = pattern_type_filter
        self.principal_filter = principal_filter
        self.host_filter = host_filter
        self.operation = operation
        self.permission_type = permission_type
        self.unknown_tags = unknown_tags


class DeleteAclsRequest(Message):
    __slots__ = ("filters", "unknown_tags",)
    API_KEY = 31
    MIN_VERSION = 1
    MAX_VERSION = 3
    FLEXIBLE_FROM = 2
    HAS_ARRAYS = True

    def __init__(
        self,
        *,
        filters: list[DeleteAclsFilter] = EMPTY_LIST,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.filters = [] if filters is EMPTY_LIST else filters
        self.unknown_tags = unknown_tags

    def encode_into(self, out: bytearray, version: int) -> None:
        if not 1 <= version <= 3:
            raise unencodable(DeleteAclsRequest, version)
        try:
            _write_delete_acls_request(out, self, version)
        except ENCODE_FAULTS as fault:
            raise bad_value(DeleteAclsRequest, version, fault) from fault

    @classmethod
    def decode(cls, buf: Buffer, version: int, pos: int = 0) -> tuple[DeleteAclsRequest, int]:
        if not 1 <= version <= 3:
            raise undecodable(DeleteAclsRequest, version)
        try:
            return _read_delete_acls_request(buf, pos, len(buf), version)
        except DECODE_FAULTS as fault:
            raise bad_bytes(DeleteAclsRequest, version, fault) from fault


class DeleteAclsMatchingAcl(Structure):
    __slots__ = ("error_code", "error_message", "resource_type", "resource_name", "pattern_type", "principal", "host", "operation", "permission_type", "unknown_tags",)

    def __init__(
        self,
        *,
        error_code: int = 0,
        error_message: str | None = "",
        resource_type: int = 0,
        resource_name: str = "",
        pattern_type: int = 3,
        principal: str = "",
        host: str = "",
        operation: int = 0,
        permission_type: int = 0,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.error_code = error_code
        self.error_message = error_message
        self.resource_type = resource_type
        self.resource_name = resource_name
        self.pattern_type = pattern_type
        self.principal = principal
        self.host = host
        self.operation = operation
        self.permission_type = permission_type
        self.unknown_tags = unknown_tags


class DeleteAclsFilterResult(Structure):
    __slots__ = ("error_code", "error_message", "matching_acls", "unknown_tags",)

    def __init__(
        self,
        *,
        error_code: int = 0,
        error_message: str | None = "",
        matching_acls: list[DeleteAclsMatchingAcl] = EMPTY_LIST,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.error_code = error_code
        self.error_message = error_message
        self.matching_acls = [] if matching_acls is EMPTY_LIST else matching_acls
        self.unknown_tags = unknown_tags


class DeleteAclsResponse(Message):
    __slots__ = ("throttle_time_ms", "filter_results", "unknown_tags",)
    API_KEY = 31
    MIN_VERSION = 1
    MAX_VERSION = 3
    FLEXIBLE_FROM = 2
    HAS_ARRAYS = True

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        filter_results: list[DeleteAclsFilterResult] = EMPTY_LIST,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.filter_results = [] if filter_results is EMPTY_LIST else filter_results
        self.unknown_tags = unknown_tags

    def encode_into(self, out: bytearray, version: int) -> None:
        if not 1 <= version <= 3:
            raise unencodable(DeleteAclsResponse, version)
        try:
            _write_delete_acls_response(out, self, version)
        except ENCODE_FAULTS as fault:
            raise bad_value(DeleteAclsResponse, version, fault) from fault

    @classmethod
    def decode(cls, buf: Buffer, version: int, pos: int = 0) -> tuple[DeleteAclsResponse, int]:
        if not 1 <= version <= 3:
            raise undecodable(DeleteAclsResponse, version)
        try:
            return _read_delete_acls_response(buf, pos, len(buf), version)
        except DECODE_FAULTS as fault:
            raise bad_bytes(DeleteAclsResponse, version, fault) from fault


def _read_delete_acls_filter(buf: Buffer, pos: int, limit: int, version: int) -> tuple[DeleteAclsFilter, int]:
    m = object.__new__(DeleteAclsFilter)
    (m.resource_type_filter,) = _unpack_b(buf, pos)
    pos += 1
    if version >= 2:
        m.resource_name_filter, pos = read_compact_nullable_string(buf, pos, limit)
    else:
        m.resource_name_filter, pos = read_nullable_string(buf, pos, limit)
    (m.pattern_type_filter,) = _unpack_b(buf, pos)
    pos += 1
    if version >= 2:
        m.principal_filter, pos = read_compact_nullable_string(buf, pos, limit)
        m.host_filter, pos = read_compact_nullable_string(buf, pos, limit)
    else:
        m.principal_filter, pos = read_nullable_string(buf, pos, limit)
        m.host_filter, pos = read_nullable_string(buf, pos, limit)
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


def _write_delete_acls_filter(out: bytearray, m: DeleteAclsFilter, version: int) -> None:
    out += _pack_b(m.resource_type_filter)
    if version >= 2:
        put_compact_nullable_string(out, m.resource_name_filter)
    else:
        put_nullable_string(out, m.resource_name_filter)
    out += _pack_b(m.pattern_type_filter)
    if version >= 2:
        put_compact_nullable_string(out, m.principal_filter)
        put_compact_nullable_string(out, m.host_filter)
    else:
        put_nullable_string(out, m.principal_filter)
        put_nullable_string(out, m.host_filter)
    out += _pack_bb(m.operation, m.permission_type)
    if version >= 2:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)


def _read_delete_acls_request(buf: Buffer, pos: int, limit: int, version: int) -> tuple[DeleteAclsRequest, int]:
    m = object.__new__(DeleteAclsRequest)
    count, pos = read_compact_count(buf, pos, limit, 8) if version >= 2 else read_count(buf, pos, limit, 8)
    filters_: list[DeleteAclsFilter] = []
    for _ in range(count):
        filters_item, pos = _read_delete_acls_filter(buf, pos, limit, version)
        filters_.append(filters_item)
    m.filters = filters_
    if version >= 2:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            m.unknown_tags, pos = read_tags(buf, pos, limit)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _write_delete_acls_request(out: bytearray, m: DeleteAclsRequest, version: int) -> None:
    if version >= 2:
        put_compact_count(out, len(m.filters))
    else:
        put_count(out, len(m.filters))
    for filters_item in m.filters:
        _write_delete_acls_filter(out, filters_item, version)
    if version >= 2:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)


def _read_delete_acls_matching_acl(buf: Buffer, pos: int, limit: int, version: int) -> tuple[DeleteAclsMatchingAcl, int]:
    m = object.__new__(DeleteAclsMatchingAcl)
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
    (m.pattern_type,) = _unpack_b(buf, pos)
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


def _write_delete_acls_matching_acl(out: bytearray, m: DeleteAclsMatchingAcl, version: int) -> None:
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
    out += _pack_b(m.pattern_type)
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


def _read_delete_acls_filter_result(buf: Buffer, pos: int, limit: int, version: int) -> tuple[DeleteAclsFilterResult, int]:
    m = object.__new__(DeleteAclsFilterResult)
    (m.error_code,) = _unpack_h(buf, pos)
    pos += 2
    if version >= 2:
        m.error_message, pos = read_compact_nullable_string(buf, pos, limit)
    else:
        m.error_message, pos = read_nullable_string(buf, pos, limit)
    count, pos = read_compact_count(buf, pos, limit, 11) if version >= 2 else read_count(buf, pos, limit, 11)
    matching_acls_: list[DeleteAclsMatchingAcl] = []
    for _ in range(count):
        matching_acls_item, pos = _read_delete_acls_matching_acl(buf, pos, limit, version)
        matching_acls_.append(matching_acls_item)
    m.matching_acls = matching_acls_
    if version >= 2:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            m.unknown_tags, pos = read_tags(buf, pos, limit)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _write_delete_acls_filter_result(out: bytearray, m: DeleteAclsFilterResult, version: int) -> None:
    out += _pack_h(m.error_code)
    if version >= 2:
        put_compact_nullable_string(out, shortened(m.error_message))
    else:
        put_nullable_string(out, shortened(m.error_message))
    if version >= 2:
        put_compact_count(out, len(m.matching_acls))
    else:
        put_count(out, len(m.matching_acls))
    for matching_acls_item in m.matching_acls:
        _write_delete_acls_matching_acl(out, matching_acls_item, version)
    if version >= 2:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)


def _read_delete_acls_response(buf: Buffer, pos: int, limit: int, version: int) -> tuple[DeleteAclsResponse, int]:
    m = object.__new__(DeleteAclsResponse)
    (m.throttle_time_ms,) = _unpack_i(buf, pos)
    pos += 4
    count, pos = read_compact_count(buf, pos, limit, 5) if version >= 2 else read_count(buf, pos, limit, 5)
    filter_results_: list[DeleteAclsFilterResult] = []
    for _ in range(count):
        filter_results_item, pos = _read_delete_acls_filter_result(buf, pos, limit, version)
        filter_results_.append(filter_results_item)
    m.filter_results = filter_results_
    if version >= 2:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            m.unknown_tags, pos = read_tags(buf, pos, limit)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _write_delete_acls_response(out: bytearray, m: DeleteAclsResponse, version: int) -> None:
    out += _pack_i(m.throttle_time_ms)
    if version >= 2:
        put_compact_count(out, len(m.filter_results))
    else:
        put_count(out, len(m.filter_results))
    for filter_results_item in m.filter_results:
        _write_delete_acls_filter_result(out, filter_results_item, version)
    if version >= 2:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)
