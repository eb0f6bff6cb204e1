"""Agrees on a SASL mechanism.

Made from schemas/sasl_handshake.schema by `python -m ottla.protocol.compile`: change that file.
"""

from __future__ import annotations

from collections.abc import Mapping
from struct import Struct

from ottla.protocol.message import Message, bad_bytes, bad_value, not_tagged, undecodable, unencodable
from ottla.protocol.primitives import (
    Buffer,
    DECODE_FAULTS,
    EMPTY_LIST,
    ENCODE_FAULTS,
    NO_TAGS,
    put_count,
    put_string,
    read_count,
    read_string,
)

_pack_h = Struct(">h").pack
_unpack_h = Struct(">h").unpack_from

class SaslHandshakeRequest(Message):
    __slots__ = ("mechanism", "unknown_tags",)
    API_KEY = 17
    MIN_VERSION = 0
    MAX_VERSION = 1
    FLEXIBLE_FROM = None

    def __init__(
        self,
        *,
        mechanism: str = "",
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.mechanism = mechanism
        self.unknown_tags = unknown_tags

    def encode_into(self, out: bytearray, version: int) -> None:
        if not 0 <= version <= 1:
            raise unencodable(SaslHandshakeRequest, version)
        try:
            _write_sasl_handshake_request(out, self, version)
        except ENCODE_FAULTS as fault:
            raise bad_value(SaslHandshakeRequest, version, fault) from fault

    @classmethod
    def decode(cls, buf: Buffer, version: int, pos: int = 0) -> tuple[SaslHandshakeRequest, int]:
        if not 0 <= version <= 1:
            raise undecodable(SaslHandshakeRequest, version)
        try:
            return _read_sasl_handshake_request(buf, pos, len(buf), version)
        except DECODE_FAULTS as fault:
            raise bad_bytes(SaslHandshakeRequest, version, fault) from fault


class SaslHandshakeResponse(Message):
    __slots__ = ("error_code", "mechanisms", "unknown_tags",)
    API_KEY = 17
    MIN_VERSION = 0
    MAX_VERSION = 1
    FLEXIBLE_FROM = None
    HAS_ARRAYS = True

    def __init__(
        self,
        *,
        error_code: int = 0,
        mechanisms: list[str] = EMPTY_LIST,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.error_code = error_code
        self.mechanisms = [] if mechanisms is EMPTY_LIST else mechanisms
        self.unknown_tags = unknown_tags

    def encode_into(self, out: bytearray, version: int) -> None:
        if not 0 <= version <= 1:
            raise unencodable(SaslHandshakeResponse, version)
        try:
            _write_sasl_handshake_response(out, self, version)
        except ENCODE_FAULTS as fault:
            raise bad_value(SaslHandshakeResponse, version, fault) from fault

    @classmethod
    def decode(cls, buf: Buffer, version: int, pos: int = 0) -> tuple[SaslHandshakeResponse, int]:
        if not 0 <= version <= 1:
            raise undecodable(SaslHandshakeResponse, version)
        try:
            return _read_sasl_handshake_response(buf, pos, len(buf), version)
        except DECODE_FAULTS as fault:
            raise bad_bytes(SaslHandshakeResponse, version, fault) from fault


def _read_sasl_handshake_request(buf: Buffer, pos: int, limit: int, version: int) -> tuple[SaslHandshakeRequest, int]:
    m = object.__new__(SaslHandshakeRequest)
    m.mechanism, pos = read_string(buf, pos, limit)
    m.unknown_tags = NO_TAGS
    return m, pos


def _write_sasl_handshake_request(out: bytearray, m: SaslHandshakeRequest, version: int) -> None:
    put_string(out, m.mechanism)
    if m.unknown_tags:
        raise not_tagged(m, version)


def _read_sasl_handshake_response(buf: Buffer, pos: int, limit: int, version: int) -> tuple[SaslHandshakeResponse, int]:
    m = object.__new__(SaslHandshakeResponse)
    (m.error_code,) = _unpack_h(buf, pos)
    pos += 2
    count, pos = read_count(buf, pos, limit, 1)
    read_mechanisms = read_string
    mechanisms_: list[str] = []
    for _ in range(count):
        mechanisms_item, pos = read_mechanisms(buf, pos, limit)
        mechanisms_.append(mechanisms_item)
    m.mechanisms = mechanisms_
    m.unknown_tags = NO_TAGS
    return m, pos


def _write_sasl_handshake_response(out: bytearray, m: SaslHandshakeResponse, version: int) -> None:
    out += _pack_h(m.error_code)
    put_count(out, len(m.mechanisms))
    put_mechanisms = put_string
    for mechanisms_item in m.mechanisms:
        put_mechanisms(out, mechanisms_item)
    if m.unknown_tags:
        raise not_tagged(m, version)
