"""The resources that have settings, of given kinds.

In steps; made from schemas/list_config_resources.schema by `python -m ottla.protocol.compile`.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct
from typing import Any

from ottla.protocol.generated.list_config_resources import (
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
    _write_config_resource,
)
from ottla.protocol.message import Message
from ottla.protocol.primitives import (
    Buffer,
    NO_TAGS,
    put_compact_count,
    put_tags,
    read_compact_count,
    read_numbers,
    read_tags,
)
from ottla.protocol.stepping import (
    DecodingAllowance,
    FEW,
    NUMBERS_A_PIECE,
    PIECE,
    Pace,
    read_many_numbers,
    write_structs,
)
from ottla.steps import Steps

_pack_ih = Struct(">ih").pack


def _read_list_config_resources_request_held(buf: Buffer, pos: int, limit: int, version: int, allowance: DecodingAllowance) -> Steps[tuple[ListConfigResourcesRequest, int]]:
    m = object.__new__(ListConfigResourcesRequest)
    if version >= 1:
        count, pos = read_compact_count(buf, pos, limit, 1)
        if count > NUMBERS_A_PIECE:
            allowance.take_array(count, 40)
            m.resource_types, pos = yield from read_many_numbers(buf, pos, count, "b", 1, allowance)
        else:
            m.resource_types, pos = read_numbers(buf, pos, count, "b", 1)
            allowance.left -= count * 40
            allowance.work -= count // PIECE
    else:
        m.resource_types = []
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
        allowance.take_tags(m.unknown_tags)
    return m, pos


def _write_list_config_resources_response_steps(out: bytearray, m: ListConfigResourcesResponse, version: int, pace: Pace) -> Steps[None]:
    out += _pack_ih(m.throttle_time_ms, m.error_code)
    put_compact_count(out, len(m.config_resources))
    if len(m.config_resources) > FEW:
        yield from write_structs(out, m.config_resources, _write_config_resource, version, pace)
    else:
        for config_resources_item in m.config_resources:
            _write_config_resource(out, config_resources_item, version)
        pace.work -= len(m.config_resources)
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)


READERS: dict[type[Message], Callable[..., Steps[Any]]] = {
    ListConfigResourcesRequest: _read_list_config_resources_request_held,
}

WRITERS: dict[type[Message], Callable[..., Steps[Any]]] = {
    ListConfigResourcesResponse: _write_list_config_resources_response_steps,
}
