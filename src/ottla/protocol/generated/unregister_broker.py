"""Forgets a broker.

Made from schemas/unregister_broker.schema by `python -m ottla.protocol.compile`: change that file.
"""

from __future__ import annotations

from collections.abc import Mapping
from struct import Struct

from ottla.protocol.message import Message, bad_bytes, bad_value, undecodable, unencodable
from ottla.protocol.primitives import (
    Buffer,
    DECODE_FAULTS,
    ENCODE_FAULTS,
    NO_TAGS,
    put_compact_nullable_string,
    put_tags,
    read_compact_nullable_string,
    read_tags,
    shortened,
)

_pack_i = Struct(">i").pack
_pack_ih = Struct(">ih").pack
_unpack_i = Struct(">i").unpack_from
_unpack_ih = Struct(">ih").unpack_from

class UnregisterBrokerRequest(Message):
    __slots__ = ("broker_id", "unknown_tags",)
    API_KEY = 64
    MIN_VERSION = 0
    MAX_VERSION = 0
    FLEXIBLE_FROM = 0

    def __init__(
        self,
        *,
        broker_id: int = 0,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.broker_id = broker_id
        self.unknown_tags = unknown_tags

    def encode_into(self, out: bytearray, version: int) -> None:
        if not 0 <= version <= 0:
            raise unencodable(UnregisterBrokerRequest, version)
        try:
            _write_unregister_broker_request(out, self, version)
        except ENCODE_FAULTS as fault:
            raise bad_value(UnregisterBrokerRequest, version, fault) from fault

    @classmethod
    def decode(cls, buf: Buffer, version: int, pos: int = 0) -> tuple[UnregisterBrokerRequest, int]:
        if not 0 <= version <= 0:
            raise undecodable(UnregisterBrokerRequest, version)
        try:
            return _read_unregister_broker_request(buf, pos, len(buf), version)
        except DECODE_FAULTS as fault:
            raise bad_bytes(UnregisterBrokerRequest, version, fault) from fault


class UnregisterBrokerResponse(Message):
    __slots__ = ("throttle_time_ms", "error_code", "error_message", "unknown_tags",)
    API_KEY = 64
    MIN_VERSION = 0
    MAX_VERSION = 0
    FLEXIBLE_FROM = 0

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = "",
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
        self.unknown_tags = unknown_tags

    def encode_into(self, out: bytearray, version: int) -> None:
        if not 0 <= version <= 0:
            raise unencodable(UnregisterBrokerResponse, version)
        try:
            _write_unregister_broker_response(out, self, version)
        except ENCODE_FAULTS as fault:
            raise bad_value(UnregisterBrokerResponse, version, fault) from fault

    @classmethod
    def decode(cls, buf: Buffer, version: int, pos: int = 0) -> tuple[UnregisterBrokerResponse, int]:
        if not 0 <= version <= 0:
            raise undecodable(UnregisterBrokerResponse, version)
        try:
            return _read_unregister_broker_response(buf, pos, len(buf), version)
        except DECODE_FAULTS as fault:
            raise bad_bytes(UnregisterBrokerResponse, version, fault) from fault


def _read_unregister_broker_request(buf: Buffer, pos: int, limit: int, version: int) -> tuple[UnregisterBrokerRequest, int]:
    m = object.__new__(UnregisterBrokerRequest)
    (m.broker_id,) = _unpack_i(buf, pos)
    pos += 4
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
    return m, pos


def _write_unregister_broker_request(out: bytearray, m: UnregisterBrokerRequest, version: int) -> None:
    out += _pack_i(m.broker_id)
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)


def _read_unregister_broker_response(buf: Buffer, pos: int, limit: int, version: int) -> tuple[UnregisterBrokerResponse, int]:
    m = object.__new__(UnregisterBrokerResponse)
    m.throttle_time_ms, m.error_code = _unpack_ih(buf, pos)
    pos += 6
    m.error_message, pos = read_compact_nullable_string(buf, pos, limit)
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
    return m, pos


def _write_unregister_broker_response(out: bytearray, m: UnregisterBrokerResponse, version: int) -> None:
    out += _pack_ih(m.throttle_time_ms, m.error_code)
    put_compact_nullable_string(out, shortened(m.error_message))
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)
