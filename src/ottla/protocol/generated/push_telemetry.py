"""A client's metrics.

Made from schemas/push_telemetry.schema by `python -m ottla.protocol.compile`: change that file.
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
    ZERO_UUID,
    put_compact_bytes,
    put_tags,
    read_compact_bytes,
    read_tags,
    uuid_bytes,
)

_pack_ih = Struct(">ih").pack
_pack_uitb = Struct(">16si?b").pack
_unpack_ih = Struct(">ih").unpack_from
_unpack_uitb = Struct(">16si?b").unpack_from

class PushTelemetryRequest(Message):
    __slots__ = ("client_instance_id", "subscription_id", "terminating", "compression_type", "metrics", "unknown_tags",)
    API_KEY = 72
    MIN_VERSION = 0
    MAX_VERSION = 0
    FLEXIBLE_FROM = 0

    def __init__(
        self,
        *,
        client_instance_id: bytes = ZERO_UUID,
        subscription_id: int = 0,
        terminating: bool = False,
        compression_type: int = 0,
        metrics: Buffer = b"",
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.client_instance_id = client_instance_id
        self.subscription_id = subscription_id
        self.terminating = terminating
        self.compression_type = compression_type
        self.metrics = metrics
        self.unknown_tags = unknown_tags

    def encode_into(self, out: bytearray, version: int) -> None:
        if not 0 <= version <= 0:
            raise unencodable(PushTelemetryRequest, version)
        try:
            _write_push_telemetry_request(out, self, version)
        except ENCODE_FAULTS as fault:
            raise bad_value(PushTelemetryRequest, version, fault) from fault

    @classmethod
    def decode(cls, buf: Buffer, version: int, pos: int = 0) -> tuple[PushTelemetryRequest, int]:
        if not 0 <= version <= 0:
            raise undecodable(PushTelemetryRequest, version)
        try:
            return _read_push_telemetry_request(buf, pos, len(buf), version)
        except DECODE_FAULTS as fault:
            raise bad_bytes(PushTelemetryRequest, version, fault) from fault


class PushTelemetryResponse(Message):
    __slots__ = ("throttle_time_ms", "error_code", "unknown_tags",)
    API_KEY = 72
    MIN_VERSION = 0
    MAX_VERSION = 0
    FLEXIBLE_FROM = 0

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.unknown_tags = unknown_tags

    def encode_into(self, out: bytearray, version: int) -> None:
        if not 0 <= version <= 0:
            raise unencodable(PushTelemetryResponse, version)
        try:
            _write_push_telemetry_response(out, self, version)
        except ENCODE_FAULTS as fault:
            raise bad_value(PushTelemetryResponse, version, fault) from fault

    @classmethod
    def decode(cls, buf: Buffer, version: int, pos: int = 0) -> tuple[PushTelemetryResponse, int]:
        if not 0 <= version <= 0:
            raise undecodable(PushTelemetryResponse, version)
        try:
            return _read_push_telemetry_response(buf, pos, len(buf), version)
        except DECODE_FAULTS as fault:
            raise bad_bytes(PushTelemetryResponse, version, fault) from fault


def _read_push_telemetry_request(buf: Buffer, pos: int, limit: int, version: int) -> tuple[PushTelemetryRequest, int]:
    m = object.__new__(PushTelemetryRequest)
    m.client_instance_id, m.subscription_id, m.terminating, m.compression_type = _unpack_uitb(buf, pos)
    pos += 22
    m.metrics, pos = read_compact_bytes(buf, pos, limit)
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
    return m, pos


def _write_push_telemetry_request(out: bytearray, m: PushTelemetryRequest, version: int) -> None:
    out += _pack_uitb(uuid_bytes(m.client_instance_id), m.subscription_id, m.terminating, m.compression_type)
    put_compact_bytes(out, m.metrics)
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)


def _read_push_telemetry_response(buf: Buffer, pos: int, limit: int, version: int) -> tuple[PushTelemetryResponse, int]:
    m = object.__new__(PushTelemetryResponse)
    m.throttle_time_ms, m.error_code = _unpack_ih(buf, pos)
    pos += 6
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
    return m, pos


def _write_push_telemetry_response(out: bytearray, m: PushTelemetryResponse, version: int) -> None:
    out += _pack_ih(m.throttle_time_ms, m.error_code)
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)
