"""Brokers, controller and id of the cluster.

In steps; made from schemas/describe_cluster.schema by `python -m ottla.protocol.compile`.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct
from typing import Any

from ottla.protocol.generated.describe_cluster import (
    DescribeClusterResponse,
    _write_describe_cluster_broker,
)
from ottla.protocol.message import Message, not_in_version
from ottla.protocol.primitives import (
    NO_TAGS,
    put_compact_count,
    put_compact_nullable_string,
    put_compact_string,
    put_tags,
    shortened,
)
from ottla.protocol.stepping import (
    FEW,
    Pace,
    write_structs,
)
from ottla.steps import Steps

_pack_b = Struct(">b").pack
_pack_i = Struct(">i").pack
_pack_ih = Struct(">ih").pack


def _write_describe_cluster_response_steps(out: bytearray, m: DescribeClusterResponse, version: int, pace: Pace) -> Steps[None]:
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
    if len(m.brokers) > FEW:
        yield from write_structs(out, m.brokers, _write_describe_cluster_broker, version, pace)
    else:
        for brokers_item in m.brokers:
            _write_describe_cluster_broker(out, brokers_item, version)
        pace.work -= len(m.brokers)
    out += _pack_i(m.cluster_authorized_operations)
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)


READERS: dict[type[Message], Callable[..., Steps[Any]]] = {
}

WRITERS: dict[type[Message], Callable[..., Steps[Any]]] = {
    DescribeClusterResponse: _write_describe_cluster_response_steps,
}
