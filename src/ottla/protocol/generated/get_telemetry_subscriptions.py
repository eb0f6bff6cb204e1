"""Which metrics a client should push.

Made from schemas/get_telemetry_subscriptions.schema by `python -m ottla.protocol.compile`: change that file.
"""

from __future__ import annotations

from collections.abc import Mapping
from struct import Struct

from ottla.protocol.message import Message, bad_bytes, bad_value, undecodable, unencodable
from ottla.protocol.primitives import (
    Buffer,
    DECODE_FAULTS,
    EMPTY_LIST,
    ENCODE_FAULTS,
    NO_TAGS,
    ZERO_UUID,
    put_compact_count,
    put_compact_string,
    put_numbers,
    put_tags,
    put_uuid,
    read_compact_count,
    read_compact_string,
    read_numbers,
    read_tags,
    uuid_bytes,
)

_pack_ihui = Struct(">ih16si").pack
_pack_iit = Struct(">ii?").pack
_unpack_ihui = Struct(">ih16si").unpack_from
_unpack_iit = Struct(">ii?").unpack_from
_unpack_u = Struct(">16s").unpack_from

class GetTelemetrySubscriptionsRequest(Message):
    __slots__ = ("client_instance_id", "unknown_tags",)
    API_KEY = 71
    MIN_VERSION = 0
    MAX_VERSION = 0
    FLEXIBLE_FROM = 0

    def __init__(
        self,
        *,
        client_instance_id: bytes = ZERO_UUID,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.client_instance_id = client_instance_id
        self.unknown_tags = unknown_tags

    def encode_into(self, out: bytearray, version: int) -> None:
        if not 0 <= version <= 0:
            raise unencodable(GetTelemetrySubscriptionsRequest, version)
        try:
            _write_get_telemetry_subscriptions_request(out, self, version)
        except ENCODE_FAULTS as fault:
            raise bad_value(GetTelemetrySubscriptionsRequest, version, fault) from fault

    @classmethod
    def decode(cls, buf: Buffer, version: int, pos: int = 0) -> tuple[GetTelemetrySubscriptionsRequest, int]:
        if not 0 <= version <= 0:
            raise undecodable(GetTelemetrySubscriptionsRequest, version)
        try:
            return _read_get_telemetry_subscriptions_request(buf, pos, len(buf), version)
        except DECODE_FAULTS as fault:
            raise bad_bytes(GetTelemetrySubscriptionsRequest, version, fault) from fault


class GetTelemetrySubscriptionsResponse(Message):
    __slots__ = ("throttle_time_ms", "error_code", "client_instance_id", "subscription_id", "accepted_compression_types", "push_interval_ms", "telemetry_max_bytes", "delta_temporality", "requested_metrics", "unknown_tags",)
    API_KEY = 71
    MIN_VERSION = 0
    MAX_VERSION = 0
    FLEXIBLE_FROM = 0
    HAS_ARRAYS = True

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        client_instance_id: bytes = ZERO_UUID,
        subscription_id: int = 0,
        accepted_compression_types: list[int] = EMPTY_LIST,
        push_interval_ms: int = 0,
        telemetry_max_bytes: int = 0,
        delta_temporality: bool = False,
        requested_metrics: list[str] = EMPTY_LIST,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.client_instance_id = client_instance_id
        self.subscription_id = subscription_id
        self.accepted_compression_types = [] if accepted_compression_types is EMPTY_LIST else accepted_compression_types
        self.push_interval_ms = push_interval_ms
        self.telemetry_max_bytes = telemetry_max_bytes
        self.delta_temporality = delta_temporality
        self.requested_metrics = [] if requested_metrics is EMPTY_LIST else requested_metrics
        self.unknown_tags = unknown_tags

    def encode_into(self, out: bytearray, version: int) -> None:
        if not 0 <= version <= 0:
            raise unencodable(GetTelemetrySubscriptionsResponse, version)
        try:
            _write_get_telemetry_subscriptions_response(out, self, version)
        except ENCODE_FAULTS as fault:
            raise bad_value(GetTelemetrySubscriptionsResponse, version, fault) from fault

    @classmethod
    def decode(cls, buf: Buffer, version: int, pos: int = 0) -> tuple[GetTelemetrySubscriptionsResponse, int]:
        if not 0 <= version <= 0:
            raise undecodable(GetTelemetrySubscriptionsResponse, version)
        try:
            return _read_get_telemetry_subscriptions_response(buf, pos, len(buf), version)
        except DECODE_FAULTS as fault:
            raise bad_bytes(GetTelemetrySubscriptionsResponse, version, fault) from fault


def _read_get_telemetry_subscriptions_request(buf: Buffer, pos: int, limit: int, version: int) -> tuple[GetTelemetrySubscriptionsRequest, int]:
    m = object.__new__(GetTelemetrySubscriptionsRequest)
    (m.client_instance_id,) = _unpack_u(buf, pos)
    pos += 16
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
    return m, pos


def _write_get_telemetry_subscriptions_request(out: bytearray, m: GetTelemetrySubscriptionsRequest, version: int) -> None:
    put_uuid(out, m.client_instance_id)
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)


def _read_get_telemetry_subscriptions_response(buf: Buffer, pos: int, limit: int, version: int) -> tuple[GetTelemetrySubscriptionsResponse, int]:
    m = object.__new__(GetTelemetrySubscriptionsResponse)
    m.throttle_time_ms, m.error_code, m.client_instance_id, m.subscription_id = _unpack_ihui(buf, pos)
    pos += 26
    count, pos = read_compact_count(buf, pos, limit, 1)
    m.accepted_compression_types, pos = read_numbers(buf, pos, count, "b", 1)
    m.push_interval_ms, m.telemetry_max_bytes, m.delta_temporality = _unpack_iit(buf, pos)
    pos += 9
    count, pos = read_compact_count(buf, pos, limit, 1)
    read_requested_metrics = read_compact_string
    requested_metrics_: list[str] = []
    for _ in range(count):
        requested_metrics_item, pos = read_requested_metrics(buf, pos, limit)
        requested_metrics_.append(requested_metrics_item)
    m.requested_metrics = requested_metrics_
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
    return m, pos


def _write_get_telemetry_subscriptions_response(out: bytearray, m: GetTelemetrySubscriptionsResponse, version: int) -> None:
    out += _pack_ihui(m.throttle_time_ms, m.error_code, uuid_bytes(m.client_instance_id), m.subscription_id)
    put_compact_count(out, len(m.accepted_compression_types))
    put_numbers(out, m.accepted_compression_types, "b")
    out += _pack_iit(m.push_interval_ms, m.telemetry_max_bytes, m.delta_temporality)
    put_compact_count(out, len(m.requested_metrics))
    put_requested_metrics = put_compact_string
    for requested_metrics_item in m.requested_metrics:
        put_requested_metrics(out, requested_metrics_item)
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)
