"""Brokers, controller and id of the cluster.

Made from schemas/describe_cluster.schema by `python -m ottla.protocol.compile`: change that file.
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
    put_compact_nullable_string,
    put_compact_string,
    put_tags,
    read_compact_count,
    read_compact_nullable_string,
    read_compact_string,
    read_tags,
    shortened,
)

_pack_b = Struct(">b").pack
_pack_i = Struct(">i").pack
_pack_ih = Struct(">ih").pack
_unpack_b = Struct(">b").unpack_from
_unpack_i = Struct(">i").unpack_from
_unpack_ih = Struct(">ih").unpack_from

class DescribeClusterRequest(Message):
    __slots__ = ("include_cluster_authorized_operations", "endpoint_type", "include_fenced_brokers", "unknown_tags",)
    API_KEY = 60
    MIN_VERSION = 0
    MAX_VERSION = 2
    FLEXIBLE_FROM = 0

    def __init__(
        self,
        *,
        include_cluster_authorized_operations: bool = False,
        endpoint_type: int = 1,
        include_fenced_brokers: bool = False,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.include_cluster_authorized_operations = include_cluster_authorized_operations
        self.endpoint_type = endpoint_type
        self.include_fenced_brokers = include_fenced_brokers
        self.unknown_tags = unknown_tags

    def encode_into(self, out: bytearray, version: int) -> None:
        if not 0 <= version <= 2:
            raise unencodable(DescribeClusterRequest, version)
        try:
            _write_describe_cluster_request(out, self, version)
        except ENCODE_FAULTS as fault:
            raise bad_value(DescribeClusterRequest, version, fault) from fault

    @classmethod
    def decode(cls, buf: Buffer, version: int, pos: int = 0) -> tuple[DescribeClusterRequest, int]:
        if not 0 <= version <= 2:
            raise undecodable(DescribeClusterRequest, version)
        try:
            return _read_describe_cluster_request(buf, pos, len(buf), version)
        except DECODE_FAULTS as fault:
            raise bad_bytes(DescribeClusterRequest, version, fault) from fault


class DescribeClusterBroker(Structure):
    __slots__ = ("broker_id", "host", "port", "rack", "is_fenced", "unknown_tags",)

    def __init__(
        self,
        *,
        broker_id: int = 0,
        host: str = "",
        port: int = 0,
        rack: str | None = None,
        is_fenced: bool = False,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.broker_id = broker_id
        self.host = host
        self.port = port
        self.rack = rack
        self.is_fenced = is_fenced
        self.unknown_tags = unknown_tags


class DescribeClusterResponse(Message):
    __slots__ = ("throttle_time_ms", "error_code", "error_message", "endpoint_type", "cluster_id", "controller_id", "brokers", "cluster_authorized_operations", "unknown_tags",)
    API_KEY = 60
    MIN_VERSION = 0
    MAX_VERSION = 2
    FLEXIBLE_FROM = 0
    HAS_ARRAYS = True

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        endpoint_type: int = 1,
        cluster_id: str = "",
        controller_id: int = -1,
        brokers: list[DescribeClusterBroker] = EMPTY_LIST,
        cluster_authorized_operations: int = -2147483648,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
        self.endpoint_type = endpoint_type
        self.cluster_id = cluster_id
        self.controller_id = controller_id
        self.brokers = [] if brokers is EMPTY_LIST else brokers
        self.cluster_authorized_operations = cluster_authorized_operations
        self.unknown_tags = unknown_tags

    def encode_into(self, out: bytearray, version: int) -> None:
        if not 0 <= version <= 2:
            raise unencodable(DescribeClusterResponse, version)
        try:
            _write_describe_cluster_response(out, self, version)
        except ENCODE_FAULTS as fault:
            raise bad_value(DescribeClusterResponse, version, fault) from fault

    @classmethod
    def decode(cls, buf: Buffer, version: int, pos: int = 0) -> tuple[DescribeClusterResponse, int]:
        if not 0 <= version <= 2:
            raise undecodable(DescribeClusterResponse, version)
        try:
            return _read_describe_cluster_response(buf, pos, len(buf), version)
        except DECODE_FAULTS as fault:
            raise bad_bytes(DescribeClusterResponse, version, fault) from fault


def _read_describe_cluster_request(buf: Buffer, pos: int, limit: int, version: int) -> tuple[DescribeClusterRequest, int]:
    m = object.__new__(DescribeClusterRequest)
    m.include_cluster_authorized_operations = buf[pos] != 0
    pos += 1
    if version >= 1:
        (m.endpoint_type,) = _unpack_b(buf, pos)
        pos += 1
    else:
        m.endpoint_type = 1
    if version >= 2:
        m.include_fenced_brokers = buf[pos] != 0
        pos += 1
    else:
        m.include_fenced_brokers = False
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
    return m, pos


def _write_describe_cluster_request(out: bytearray, m: DescribeClusterRequest, version: int) -> None:
    out.append(1 if m.include_cluster_authorized_operations else 0)
    if version >= 1:
        out += _pack_b(m.endpoint_type)
    else:
        if m.endpoint_type != 1:
            raise not_in_version(m, "endpoint_type", version)
    if version >= 2:
        out.append(1 if m.include_fenced_brokers else 0)
    else:
        if m.include_fenced_brokers:
            raise not_in_version(m, "include_fenced_brokers", version)
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)


def _read_describe_cluster_broker(buf: Buffer, pos: int, limit: int, version: int) -> tuple[DescribeClusterBroker, int]:
    m = object.__new__(DescribeClusterBroker)
    (m.broker_id,) = _unpack_i(buf, pos)
    pos += 4
    m.host, pos = read_compact_string(buf, pos, limit)
    (m.port,) = _unpack_i(buf, pos)
    pos += 4
    m.rack, pos = read_compact_nullable_string(buf, pos, limit)
    if version >= 2:
        m.is_fenced = buf[pos] != 0
        pos += 1
    else:
        m.is_fenced = False
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
    return m, pos


def _write_describe_cluster_broker(out: bytearray, m: DescribeClusterBroker, version: int) -> None:
    out += _pack_i(m.broker_id)
    put_compact_string(out, m.host)
    out += _pack_i(m.port)
    put_compact_nullable_string(out, m.rack)
    if version >= 2:
        out.append(1 if m.is_fenced else 0)
    else:
        if m.is_fenced:
            raise not_in_version(m, "is_fenced", version)
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)


def _read_describe_cluster_response(buf: Buffer, pos: int, limit: int, version: int) -> tuple[DescribeClusterResponse, int]:
    m = object.__new__(DescribeClusterResponse)
    m.throttle_time_ms, m.error_code = _unpack_ih(buf, pos)
    pos += 6
    m.error_message, pos = read_compact_nullable_string(buf, pos, limit)
    if version >= 1:
        (m.endpoint_type,) = _unpack_b(buf, pos)
        pos += 1
    else:
        m.endpoint_type = 1
    m.cluster_id, pos = read_compact_string(buf, pos, limit)
    (m.controller_id,) = _unpack_i(buf, pos)
    pos += 4
    count, pos = read_compact_count(buf, pos, limit, 11)
    brokers_: list[DescribeClusterBroker] = []
    for _ in range(count):
        brokers_item, pos = _read_describe_cluster_broker(buf, pos, limit, version)
        brokers_.append(brokers_item)
    m.brokers = brokers_
    (m.cluster_authorized_operations,) = _unpack_i(buf, pos)
    pos += 4
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
    return m, pos


def _write_describe_cluster_response(out: bytearray, m: DescribeClusterResponse, version: int) -> None:
    out += _pack_ih(m.throttle_time_ms, m.error_code)
    put_compact_nullable_string(out, shortened(m.error_message))
    if version >= 1:
        out += _pack_b(m.endpoint_type)
    else:
        if m.endpoint_type != 1:
            raise not_in_version(m, "endpoint_type", version)
    put_compact_string(out, m.cluster_id)
    out += _pack_i(m.controller_id)
    put_compact_count(out, len(m.brokers))
    for brokers_item in m.brokers:
        _write_describe_cluster_broker(out, brokers_item, version)
    out += _pack_i(m.cluster_authorized_operations)
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)
