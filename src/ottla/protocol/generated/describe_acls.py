"""The access rules that match a filter.

Made from schemas/describe_acls.schema by `python -m ottla.protocol.compile`: change that file.
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
_pack_ih = Struct(">ih").pack
_unpack_b = Struct(">b").unpack_from
_unpack_bb = Struct(">bb").unpack_from
_unpack_ih = Struct(">ih").unpack_from

class DescribeAclsRequest(Message):
    __slots__ = ("resource_type_filter", "resource_name_filter", "pattern_type_filter", "principal_filter", "host_filter", "operation", "permission_type", "unknown_tags",)
    API_KEY = 29
    MIN_VERSION = 1
    MAX_VERSION = 3
    FLEXIBLE_FROM = 2

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

    def encode_into(self, out: bytearray, version: int) -> None:
        if not 1 <= version <= 3:
            raise unencodable(DescribeAclsRequest, version)
        try:
            _write_describe_acls_request(out, self, version)
        except ENCODE_FAULTS as fault:
            raise bad_value(DescribeAclsRequest, version, fault) from fault

    @classmethod
    def decode(cls, buf: Buffer, version: int, pos: int = 0) -> tuple[DescribeAclsRequest, int]:
        if not 1 <= version <= 3:
            raise undecodable(DescribeAclsRequest, version)
        try:
            return _read_describe_acls_request(buf, pos, len(buf), version)
        except DECODE_FAULTS as fault:
            raise bad_bytes(DescribeAclsRequest, version, fault) from fault


class AclDescription(Structure):
    __slots__ = ("principal", "host", "operation", "permission_type", "unknown_tags",)

    def __init__(
        self,
        *,
        principal: str = "",
        host: str = "",
        operation: int = 0,
        permission_type: int = 0,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.principal = principal
        self.host = host
        self.operation = operation
        self.permission_type = permission_type
        self.unknown_tags = unknown_tags


class DescribeAclsResource(Structure):
    __slots__ = ("resource_type", "resource_name", "pattern_type", "acls", "unknown_tags",)

    def __init__(
        self,
        *,
        resource_type: int = 0,
        resource_name: str = "",
        pattern_type: int = 3,
        acls: list[AclDescription] = EMPTY_LIST,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.resource_type = resource_type
        self.resource_name = resource_name
        self.pattern_type = pattern_type
        self.acls = [] if acls is EMPTY_LIST else acls
        self.unknown_tags = unknown_tags


class DescribeAclsResponse(Message):
    __slots__ = ("throttle_time_ms", "error_code", "error_message", "resources", "unknown_tags",)
    API_KEY = 29
    MIN_VERSION = 1
    MAX_VERSION = 3
    FLEXIBLE_FROM = 2
    HAS_ARRAYS = True

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = "",
        resources: list[DescribeAclsResource] = EMPTY_LIST,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
        self.resources = [] if resources is EMPTY_LIST else resources
        self.unknown_tags = unknown_tags

    def encode_into(self, out: bytearray, version: int) -> None:
        if not 1 <= version <= 3:
            raise unencodable(DescribeAclsResponse, version)
        try:
            _write_describe_acls_response(out, self, version)
        except ENCODE_FAULTS as fault:
            raise bad_value(DescribeAclsResponse, version, fault) from fault

    @classmethod
    def decode(cls, buf: Buffer, version: int, pos: int = 0) -> tuple[DescribeAclsResponse, int]:
        if not 1 <= version <= 3:
            raise undecodable(DescribeAclsResponse, version)
        try:
            return _read_describe_acls_response(buf, pos, len(buf), version)
        except DECODE_FAULTS as fault:
            raise bad_bytes(DescribeAclsResponse, version, fault) from fault


def _read_describe_acls_request(buf: Buffer, pos: int, limit: int, version: int) -> tuple[DescribeAclsRequest, int]:
    m = object.__new__(DescribeAclsRequest)
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


def _write_describe_acls_request(out: bytearray, m: DescribeAclsRequest, version: int) -> None:
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


def _read_acl_description(buf: Buffer, pos: int, limit: int, version: int) -> tuple[AclDescription, int]:
    m = object.__new__(AclDescription)
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


def _write_acl_description(out: bytearray, m: AclDescription, version: int) -> None:
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


def _read_describe_acls_resource(buf: Buffer, pos: int, limit: int, version: int) -> tuple[DescribeAclsResource, int]:
    m = object.__new__(DescribeAclsResource)
    (m.resource_type,) = _unpack_b(buf, pos)
    pos += 1
    if version >= 2:
        m.resource_name, pos = read_compact_string(buf, pos, limit)
    else:
        m.resource_name, pos = read_string(buf, pos, limit)
    (m.pattern_type,) = _unpack_b(buf, pos)
    pos += 1
    count, pos = read_compact_count(buf, pos, limit, 5) if version >= 2 else read_count(buf, pos, limit, 5)
    acls_: list[AclDescription] = []
    for _ in range(count):
        acls_item, pos = _read_acl_description(buf, pos, limit, version)
        acls_.append(acls_item)
    m.acls = acls_
    if version >= 2:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            m.unknown_tags, pos = read_tags(buf, pos, limit)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _write_describe_acls_resource(out: bytearray, m: DescribeAclsResource, version: int) -> None:
    out += _pack_b(m.resource_type)
    if version >= 2:
        put_compact_string(out, m.resource_name)
    else:
        put_string(out, m.resource_name)
    out += _pack_b(m.pattern_type)
    if version >= 2:
        put_compact_count(out, len(m.acls))
    else:
        put_count(out, len(m.acls))
    for acls_item in m.acls:
        _write_acl_description(out, acls_item, version)
    if version >= 2:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)


def _read_describe_acls_response(buf: Buffer, pos: int, limit: int, version: int) -> tuple[DescribeAclsResponse, int]:
    m = object.__new__(DescribeAclsResponse)
    m.throttle_time_ms, m.error_code = _unpack_ih(buf, pos)
    pos += 6
    if version >= 2:
        m.error_message, pos = read_compact_nullable_string(buf, pos, limit)
    else:
        m.error_message, pos = read_nullable_string(buf, pos, limit)
    count, pos = read_compact_count(buf, pos, limit, 5) if version >= 2 else read_count(buf, pos, limit, 5)
    resources_: list[DescribeAclsResource] = []
    for _ in range(count):
        resources_item, pos = _read_describe_acls_resource(buf, pos, limit, version)
        resources_.append(resources_item)
    m.resources = resources_
    if version >= 2:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            m.unknown_tags, pos = read_tags(buf, pos, limit)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _write_describe_acls_response(out: bytearray, m: DescribeAclsResponse, version: int) -> None:
    out += _pack_ih(m.throttle_time_ms, m.error_code)
    if version >= 2:
        put_compact_nullable_string(out, shortened(m.error_message))
    else:
        put_nullable_string(out, shortened(m.error_message))
    if version >= 2:
        put_compact_count(out, len(m.resources))
    else:
        put_count(out, len(m.resources))
    for resources_item in m.resources:
        _write_describe_acls_resource(out, resources_item, version)
    if version >= 2:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)
