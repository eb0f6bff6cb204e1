"""Which broker coordinates a group, a transactional id or a share partition.

Made from schemas/find_coordinator.schema by `python -m ottla.protocol.compile`: change that file.
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
    put_compact_count,
    put_compact_nullable_string,
    put_compact_string,
    put_nullable_string,
    put_string,
    put_tags,
    read_compact_count,
    read_compact_nullable_string,
    read_compact_string,
    read_nullable_string,
    read_string,
    read_tags,
    shortened,
)

_pack_b = Struct(">b").pack
_pack_h = Struct(">h").pack
_pack_i = Struct(">i").pack
_pack_ih = Struct(">ih").pack
_unpack_b = Struct(">b").unpack_from
_unpack_h = Struct(">h").unpack_from
_unpack_i = Struct(">i").unpack_from
_unpack_ih = Struct(">ih").unpack_from

class FindCoordinatorRequest(Message):
    __slots__ = ("key", "key_type", "coordinator_keys", "unknown_tags",)
    API_KEY = 10
    MIN_VERSION = 0
    MAX_VERSION = 6
    FLEXIBLE_FROM = 3
    HAS_ARRAYS = True

    def __init__(
        self,
        *,
        key: str = "",
        key_type: int = 0,
        coordinator_keys: list[str] = EMPTY_LIST,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.key = key
        self.key_type = key_type
        self.coordinator_keys = [] if coordinator_keys is EMPTY_LIST else coordinator_keys
        self.unknown_tags = unknown_tags

    def encode_into(self, out: bytearray, version: int) -> None:
        if not 0 <= version <= 6:
            raise unencodable(FindCoordinatorRequest, version)
        try:
            _write_find_coordinator_request(out, self, version)
        except ENCODE_FAULTS as fault:
            raise bad_value(FindCoordinatorRequest, version, fault) from fault

    @classmethod
    def decode(cls, buf: Buffer, version: int, pos: int = 0) -> tuple[FindCoordinatorRequest, int]:
        if not 0 <= version <= 6:
            raise undecodable(FindCoordinatorRequest, version)
        try:
            return _read_find_coordinator_request(buf, pos, len(buf), version)
        except DECODE_FAULTS as fault:
            raise bad_bytes(FindCoordinatorRequest, version, fault) from fault


class Coordinator(Structure):
    __slots__ = ("key", "node_id", "host", "port", "error_code", "error_message", "unknown_tags",)

    def __init__(
        self,
        *,
        key: str = "",
        node_id: int = 0,
        host: str = "",
        port: int = 0,
        error_code: int = 0,
        error_message: str | None = "",
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.key = key
        self.node_id = node_id
        self.host = host
        self.port = port
        self.error_code = error_code
        self.error_message = error_message
        self.unknown_tags = unknown_tags


class FindCoordinatorResponse(Message):
    __slots__ = ("throttle_time_ms", "error_code", "error_message", "node_id", "host", "port", "coordinators", "unknown_tags",)
    API_KEY = 10
    MIN_VERSION = 0
    MAX_VERSION = 6
    FLEXIBLE_FROM = 3
    HAS_ARRAYS = True

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = "",
        node_id: int = 0,
        host: str = "",
        port: int = 0,
        coordinators: list[Coordinator] = EMPTY_LIST,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
        self.node_id = node_id
        self.host = host
        self.port = port
        self.coordinators = [] if coordinators is EMPTY_LIST else coordinators
        self.unknown_tags = unknown_tags

    def encode_into(self, out: bytearray, version: int) -> None:
        if not 0 <= version <= 6:
            raise unencodable(FindCoordinatorResponse, version)
        try:
            _write_find_coordinator_response(out, self, version)
        except ENCODE_FAULTS as fault:
            raise bad_value(FindCoordinatorResponse, version, fault) from fault

    @classmethod
    def decode(cls, buf: Buffer, version: int, pos: int = 0) -> tuple[FindCoordinatorResponse, int]:
        if not 0 <= version <= 6:
            raise undecodable(FindCoordinatorResponse, version)
        try:
            return _read_find_coordinator_response(buf, pos, len(buf), version)
        except DECODE_FAULTS as fault:
            raise bad_bytes(FindCoordinatorResponse, version, fault) from fault


def _read_find_coordinator_request(buf: Buffer, pos: int, limit: int, version: int) -> tuple[FindCoordinatorRequest, int]:
    m = object.__new__(FindCoordinatorRequest)
    if version >= 4:
        m.key = ""
    elif version >= 3:
        m.key, pos = read_compact_string(buf, pos, limit)
    else:
        m.key, pos = read_string(buf, pos, limit)
    if version >= 1:
        (m.key_type,) = _unpack_b(buf, pos)
        pos += 1
    else:
        m.key_type = 0
    if version >= 4:
        count, pos = read_compact_count(buf, pos, limit, 1)
        read_coordinator_keys = read_compact_string
        coordinator_keys_: list[str] = []
        for _ in range(count):
            coordinator_keys_item, pos = read_coordinator_keys(buf, pos, limit)
            coordinator_keys_.append(coordinator_keys_item)
        m.coordinator_keys = coordinator_keys_
    else:
        m.coordinator_keys = []
    if version >= 3:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            m.unknown_tags, pos = read_tags(buf, pos, limit)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _write_find_coordinator_request(out: bytearray, m: FindCoordinatorRequest, version: int) -> None:
    if version >= 4:
        if m.key != "":
            raise not_in_version(m, "key", version)
    elif version >= 3:
        put_compact_string(out, m.key)
    else:
        put_string(out, m.key)
    if version >= 1:
        out += _pack_b(m.key_type)
    else:
        if m.key_type != 0:
            raise not_in_version(m, "key_type", version)
    if version >= 4:
        put_compact_count(out, len(m.coordinator_keys))
        put_coordinator_keys = put_compact_string
        for coordinator_keys_item in m.coordinator_keys:
            put_coordinator_keys(out, coordinator_keys_item)
    else:
        if m.coordinator_keys != []:
            raise not_in_version(m, "coordinator_keys", version)
    if version >= 3:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)


def _read_coordinator(buf: Buffer, pos: int, limit: int, version: int) -> tuple[Coordinator, int]:
    m = object.__new__(Coordinator)
    m.key, pos = read_compact_string(buf, pos, limit)
    (m.node_id,) = _unpack_i(buf, pos)
    pos += 4
    m.host, pos = read_compact_string(buf, pos, limit)
    m.port, m.error_code = _unpack_ih(buf, pos)
    pos += 6
    m.error_message, pos = read_compact_nullable_string(buf, pos, limit)
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
    return m, pos


def _write_coordinator(out: bytearray, m: Coordinator, version: int) -> None:
    put_compact_string(out, m.key)
    out += _pack_i(m.node_id)
    put_compact_string(out, m.host)
    out += _pack_ih(m.port, m.error_code)
    put_compact_nullable_string(out, shortened(m.error_message))
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)


def _read_find_coordinator_response(buf: Buffer, pos: int, limit: int, version: int) -> tuple[FindCoordinatorResponse, int]:
    m = object.__new__(FindCoordinatorResponse)
    if version >= 1:
        (m.throttle_time_ms,) = _unpack_i(buf, pos)
        pos += 4
    else:
        m.throttle_time_ms = 0
    if version >= 4:
        m.error_code = 0
    else:
        (m.error_code,) = _unpack_h(buf, pos)
        pos += 2
    if version >= 4:
        m.error_message = ""
    elif version >= 3:
        m.error_message, pos = read_compact_nullable_string(buf, pos, limit)
    elif version >= 1:
        m.error_message, pos = read_nullable_string(buf, pos, limit)
    else:
        m.error_message = ""
    if version >= 4:
        m.node_id = 0
    else:
        (m.node_id,) = _unpack_i(buf, pos)
        pos += 4
    if version >= 4:
        m.host = ""
    elif version >= 3:
        m.host, pos = read_compact_string(buf, pos, limit)
    else:
        m.host, pos = read_string(buf, pos, limit)
    if version >= 4:
        m.port = 0
        count, pos = read_compact_count(buf, pos, limit, 14)
        coordinators_: list[Coordinator] = []
        for _ in range(count):
            coordinators_item, pos = _read_coordinator(buf, pos, limit, version)
            coordinators_.append(coordinators_item)
        m.coordinators = coordinators_
    else:
        (m.port,) = _unpack_i(buf, pos)
        pos += 4
        m.coordinators = []
    if version >= 3:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            m.unknown_tags, pos = read_tags(buf, pos, limit)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _write_find_coordinator_response(out: bytearray, m: FindCoordinatorResponse, version: int) -> None:
    if version >= 1:
        out += _pack_i(m.throttle_time_ms)
    if version >= 4:
        if m.error_code != 0:
            raise not_in_version(m, "error_code", version)
    else:
        out += _pack_h(m.error_code)
    if version >= 4:
        pass
    elif version >= 3:
        put_compact_nullable_string(out, shortened(m.error_message))
    elif version >= 1:
        put_nullable_string(out, shortened(m.error_message))
    if version >= 4:
        if m.node_id != 0:
            raise not_in_version(m, "node_id", version)
    else:
        out += _pack_i(m.node_id)
    if version >= 4:
        if m.host != "":
            raise not_in_version(m, "host", version)
    elif version >= 3:
        put_compact_string(out, m.host)
    else:
        put_string(out, m.host)
    if version >= 4:
        if m.port != 0:
            raise not_in_version(m, "port", version)
        put_compact_count(out, len(m.coordinators))
        for coordinators_item in m.coordinators:
            _write_coordinator(out, coordinators_item, version)
    else:
        out += _pack_i(m.port)
        if m.coordinators != []:
            raise not_in_version(m, "coordinators", version)
    if version >= 3:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)
