"""Which metrics a client should push.

In steps; made from schemas/get_telemetry_subscriptions.schema by `python -m ottla.protocol.compile`.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct
from typing import Any

from ottla.protocol.generated.get_telemetry_subscriptions import (
    GetTelemetrySubscriptionsResponse,
)
from ottla.protocol.message import Message
from ottla.protocol.primitives import (
    NO_TAGS,
    put_compact_count,
    put_compact_string,
    put_numbers,
    put_tags,
    uuid_bytes,
)
from ottla.protocol.stepping import (
    NUMBERS_A_PIECE,
    PIECE,
    Pace,
    write_many_numbers,
    write_strings,
)
from ottla.steps import Steps

_pack_ihui = Struct(">ih16si").pack
_pack_iit = Struct(">ii?").pack


def _write_get_telemetry_subscriptions_response_steps(out: bytearray, m: GetTelemetrySubscriptionsResponse, version: int, pace: Pace) -> Steps[None]:
    out += _pack_ihui(m.throttle_time_ms, m.error_code, uuid_bytes(m.client_instance_id), m.subscription_id)
    put_compact_count(out, len(m.accepted_compression_types))
    if len(m.accepted_compression_types) > NUMBERS_A_PIECE:
        yield from write_many_numbers(out, m.accepted_compression_types, "b", pace)
    else:
        put_numbers(out, m.accepted_compression_types, "b")
        pace.work -= len(m.accepted_compression_types) // PIECE
    out += _pack_iit(m.push_interval_ms, m.telemetry_max_bytes, m.delta_temporality)
    put_compact_count(out, len(m.requested_metrics))
    yield from write_strings(out, m.requested_metrics, put_compact_string, pace)
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)


READERS: dict[type[Message], Callable[..., Steps[Any]]] = {
}

WRITERS: dict[type[Message], Callable[..., Steps[Any]]] = {
    GetTelemetrySubscriptionsResponse: _write_get_telemetry_subscriptions_response_steps,
}
