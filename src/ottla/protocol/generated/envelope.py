"""A broker forwards a client's request to the controller.

Made from schemas/envelope.schema by `python -m ottla.protocol.compile`: change that file.
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
    put_compact_bytes,
    put_compact_nullable_bytes,
    put_tags,
    read_compact_bytes,
    read_compact_nullable_bytes,
    read_tags,
)

_pack_h = Struct(">h").pack
_unpack_h = Struct(">h").unpack_from

class EnvelopeRequest(Message):
    __slots__ = ("request_data", "request_principal", "client_host_address", "unknown_tags",)
    API_KEY = 58
    MIN_VERSION = 0
    MAX_VERSION = 0
    FLEXIBLE_FROM = 0

    def __init__(
        self,
        *,
        request_data: Buffer = b"",
        request_principal: Buffer | None = b"",
        client_host_address: Buffer = b"",
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.request_data = request_data
        self.request_principal = request_principal
        self.client_host_address = client_host_address
        self.unknown_tags = unknown_tags

    def encode_into(self, out: bytearray, version: int) -> None:
        if not 0 <= version <= 0:
            raise unencodable(EnvelopeRequest, version)
        try:
            _write_envelope_request(out, self, version)
        except ENCODE_FAULTS as fault:
            raise bad_value(EnvelopeRequest, version, fault) from fault

    @classmethod
    def decode(cls, buf: Buffer, version: int, pos: int = 0) -> tuple[EnvelopeRequest, int]:
        if not 0 <= version <= 0:
            raise undecodable(EnvelopeRequest, version)
        try:
            return _read_envelope_request(buf, pos, len(buf), version)
        except DECODE_FAULTS as fault:
            raise bad_bytes(EnvelopeRequest, version, fault) from fault


class EnvelopeResponse(Message):
    __slots__ = ("response_data", "error_code", "unknown_tags",)
    API_KEY = 58
    MIN_VERSION = 0
    MAX_VERSION = 0
    FLEXIBLE_FROM = 0

    def __init__(
        self,
        *,
        response_data: Buffer | None = None,
        error_code: int = 0,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.response_data = response_data
        self.error_code = error_code
        self.unknown_tags = unknown_tags

    def encode_into(self, out: bytearray, version: int) -> None:
        if not 0 <= version <= 0:
            raise unencodable(EnvelopeResponse, version)
        try:
            _write_envelope_response(out, self, version)
        except ENCODE_FAULTS as fault:
            raise bad_value(EnvelopeResponse, version, fault) from fault

    @classmethod
    def decode(cls, buf: Buffer, version: int, pos: int = 0) -> tuple[EnvelopeResponse, int]:
        if not 0 <= version <= 0:
            raise undecodable(EnvelopeResponse, version)
        try:
            return _read_envelope_response(buf, pos, len(buf), version)
        except DECODE_FAULTS as fault:
            raise bad_bytes(EnvelopeResponse, version, fault) from fault


def _read_envelope_request(buf: Buffer, pos: int, limit: int, version: int) -> tuple[EnvelopeRequest, int]:
    m = object.__new__(EnvelopeRequest)
    m.request_data, pos = read_compact_bytes(buf, pos, limit)
    m.request_principal, pos = read_compact_nullable_bytes(buf, pos, limit)
    m.client_host_address, pos = read_compact_bytes(buf, pos, limit)
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
    return m, pos


def _write_envelope_request(out: bytearray, m: EnvelopeRequest, version: int) -> None:
    put_compact_bytes(out, m.request_data)
    put_compact_nullable_bytes(out, m.request_principal)
    put_compact_bytes(out, m.client_host_address)
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)


def _read_envelope_response(buf: Buffer, pos: int, limit: int, version: int) -> tuple[EnvelopeResponse, int]:
    m = object.__new__(EnvelopeResponse)
    m.response_data, pos = read_compact_nullable_bytes(buf, pos, limit)
    (m.error_code,) = _unpack_h(buf, pos)
    pos += 2
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
    return m, pos


def _write_envelope_response(out: bytearray, m: EnvelopeResponse, version: int) -> None:
    put_compact_nullable_bytes(out, m.response_data)
    out += _pack_h(m.error_code)
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)
