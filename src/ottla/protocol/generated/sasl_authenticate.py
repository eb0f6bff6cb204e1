"""Carries a SASL mechanism's tokens.

Made from schemas/sasl_authenticate.schema by `python -m ottla.protocol.compile`: change that file.
"""

from __future__ import annotations

from collections.abc import Mapping
from struct import Struct

from ottla.protocol.message import Message, bad_bytes, bad_value, not_tagged, undecodable, unencodable
from ottla.protocol.primitives import (
    Buffer,
    DECODE_FAULTS,
    ENCODE_FAULTS,
    NO_TAGS,
    put_bytes,
    put_compact_bytes,
    put_compact_nullable_string,
    put_nullable_string,
    put_tags,
    read_bytes,
    read_compact_bytes,
    read_compact_nullable_string,
    read_nullable_string,
    read_tags,
    shortened,
)

_pack_h = Struct(">h").pack
_pack_q = Struct(">q").pack
_unpack_h = Struct(">h").unpack_from
_unpack_q = Struct(">q").unpack_from

class SaslAuthenticateRequest(Message):
    __slots__ = ("auth_bytes", "unknown_tags",)
    API_KEY = 36
    MIN_VERSION = 0
    MAX_VERSION = 2
    FLEXIBLE_FROM = 2

    def __init__(
        self,
        *,
        auth_bytes: Buffer = b"",
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.auth_bytes = auth_bytes
        self.unknown_tags = unknown_tags

    def encode_into(self, out: bytearray, version: int) -> None:
        if not 0 <= version <= 2:
            raise unencodable(SaslAuthenticateRequest, version)
        try:
            _write_sasl_authenticate_request(out, self, version)
        except ENCODE_FAULTS as fault:
            raise bad_value(SaslAuthenticateRequest, version, fault) from fault

    @classmethod
    def decode(cls, buf: Buffer, version: int, pos: int = 0) -> tuple[SaslAuthenticateRequest, int]:
        if not 0 <= version <= 2:
            raise undecodable(SaslAuthenticateRequest, version)
        try:
            return _read_sasl_authenticate_request(buf, pos, len(buf), version)
        except DECODE_FAULTS as fault:
            raise bad_bytes(SaslAuthenticateRequest, version, fault) from fault


class SaslAuthenticateResponse(Message):
    __slots__ = ("error_code", "error_message", "auth_bytes", "session_lifetime_ms", "unknown_tags",)
    API_KEY = 36
    MIN_VERSION = 0
    MAX_VERSION = 2
    FLEXIBLE_FROM = 2

    def __init__(
        self,
        *,
        error_code: int = 0,
        error_message: str | None = "",
        auth_bytes: Buffer = b"",
        session_lifetime_ms: int = 0,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.error_code = error_code
        self.error_message = error_message
        self.auth_bytes = auth_bytes
        self.session_lifetime_ms = session_lifetime_ms
        self.unknown_tags = unknown_tags

    def encode_into(self, out: bytearray, version: int) -> None:
        if not 0 <= version <= 2:
            raise unencodable(SaslAuthenticateResponse, version)
        try:
            _write_sasl_authenticate_response(out, self, version)
        except ENCODE_FAULTS as fault:
            raise bad_value(SaslAuthenticateResponse, version, fault) from fault

    @classmethod
    def decode(cls, buf: Buffer, version: int, pos: int = 0) -> tuple[SaslAuthenticateResponse, int]:
        if not 0 <= version <= 2:
            raise undecodable(SaslAuthenticateResponse, version)
        try:
            return _read_sasl_authenticate_response(buf, pos, len(buf), version)
        except DECODE_FAULTS as fault:
            raise bad_bytes(SaslAuthenticateResponse, version, fault) from fault


def _read_sasl_authenticate_request(buf: Buffer, pos: int, limit: int, version: int) -> tuple[SaslAuthenticateRequest, int]:
    m = object.__new__(SaslAuthenticateRequest)
    if version >= 2:
        m.auth_bytes, pos = read_compact_bytes(buf, pos, limit)
    else:
        m.auth_bytes, pos = read_bytes(buf, pos, limit)
    if version >= 2:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            m.unknown_tags, pos = read_tags(buf, pos, limit)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _write_sasl_authenticate_request(out: bytearray, m: SaslAuthenticateRequest, version: int) -> None:
    if version >= 2:
        put_compact_bytes(out, m.auth_bytes)
    else:
        put_bytes(out, m.auth_bytes)
    if version >= 2:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)


def _read_sasl_authenticate_response(buf: Buffer, pos: int, limit: int, version: int) -> tuple[SaslAuthenticateResponse, int]:
    m = object.__new__(SaslAuthenticateResponse)
    (m.error_code,) = _unpack_h(buf, pos)
    pos += 2
    if version >= 2:
        m.error_message, pos = read_compact_nullable_string(buf, pos, limit)
        m.auth_bytes, pos = read_compact_bytes(buf, pos, limit)
    else:
        m.error_message, pos = read_nullable_string(buf, pos, limit)
        m.auth_bytes, pos = read_bytes(buf, pos, limit)
    if version >= 1:
        (m.session_lifetime_ms,) = _unpack_q(buf, pos)
        pos += 8
    else:
        m.session_lifetime_ms = 0
    if version >= 2:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            m.unknown_tags, pos = read_tags(buf, pos, limit)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _write_sasl_authenticate_response(out: bytearray, m: SaslAuthenticateResponse, version: int) -> None:
    out += _pack_h(m.error_code)
    if version >= 2:
        put_compact_nullable_string(out, shortened(m.error_message))
        put_compact_bytes(out, m.auth_bytes)
    else:
        put_nullable_string(out, shortened(m.error_message))
        put_bytes(out, m.auth_bytes)
    if version >= 1:
        out += _pack_q(m.session_lifetime_ms)
    if version >= 2:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)
