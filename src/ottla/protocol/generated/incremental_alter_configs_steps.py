"""Changes single settings of a resource.

In steps; made from schemas/incremental_alter_configs.schema by `python -m ottla.protocol.compile`.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct
from sys import getsizeof
from typing import Any

from ottla.protocol.generated.incremental_alter_configs import (
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
    _read_alterable_config,
    _write_alter_configs_resource_response,
)
from ottla.protocol.message import Message, not_tagged
from ottla.protocol.primitives import (
    Buffer,
    NO_TAGS,
    put_compact_count,
    put_count,
    put_tags,
    read_compact_count,
    read_compact_string,
    read_count,
    read_string,
    read_tags,
)
from ottla.protocol.stepping import (
    DecodingAllowance,
    FEW,
    Pace,
    read_few,
    read_structs,
    write_structs,
)
from ottla.steps import Steps

_pack_i = Struct(">i").pack
_unpack_b = Struct(">b").unpack_from


def _read_alter_configs_resource_held(buf: Buffer, pos: int, limit: int, version: int, allowance: DecodingAllowance) -> Steps[tuple[AlterConfigsResource, int]]:
    m = object.__new__(AlterConfigsResource)
    (m.resource_type,) = _unpack_b(buf, pos)
    pos += 1
    if version >= 1:
        m.resource_name, pos = read_compact_string(buf, pos, limit)
        allowance.left -= getsizeof(m.resource_name)
    else:
        m.resource_name, pos = read_string(buf, pos, limit)
        allowance.left -= getsizeof(m.resource_name)
    count, pos = read_compact_count(buf, pos, limit, 4) if version >= 1 else read_count(buf, pos, limit, 4)
    if count > FEW:
        allowance.take_array(count, 272)
        m.configs, pos = yield from read_structs(_read_alterable_config, buf, pos, limit, version, count, allowance, text=True)
    else:
        allowance.left -= count * 272
        m.configs, pos = read_few(_read_alterable_config, buf, pos, limit, version, count, allowance, text=True)
    if version >= 1:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            m.unknown_tags, pos = read_tags(buf, pos, limit)
            allowance.take_tags(m.unknown_tags)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _read_incremental_alter_configs_request_held(buf: Buffer, pos: int, limit: int, version: int, allowance: DecodingAllowance) -> Steps[tuple[IncrementalAlterConfigsRequest, int]]:
    m = object.__new__(IncrementalAlterConfigsRequest)
    count, pos = read_compact_count(buf, pos, limit, 4) if version >= 1 else read_count(buf, pos, limit, 4)
    allowance.take_array(count, 224)
    resources_: list[AlterConfigsResource] = []
    for _ in range(count):
        resources_item, pos = yield from _read_alter_configs_resource_held(buf, pos, limit, version, allowance)
        resources_.append(resources_item)
        if allowance.due(pos):
            yield
    m.resources = resources_
    m.validate_only = buf[pos] != 0
    pos += 1
    if version >= 1:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            m.unknown_tags, pos = read_tags(buf, pos, limit)
            allowance.take_tags(m.unknown_tags)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _write_incremental_alter_configs_response_steps(out: bytearray, m: IncrementalAlterConfigsResponse, version: int, pace: Pace) -> Steps[None]:
    out += _pack_i(m.throttle_time_ms)
    if version >= 1:
        put_compact_count(out, len(m.responses))
    else:
        put_count(out, len(m.responses))
    if len(m.responses) > FEW:
        yield from write_structs(out, m.responses, _write_alter_configs_resource_response, version, pace)
    else:
        for responses_item in m.responses:
            _write_alter_configs_resource_response(out, responses_item, version)
        pace.work -= len(m.responses)
    if version >= 1:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)


READERS: dict[type[Message], Callable[..., Steps[Any]]] = {
    IncrementalAlterConfigsRequest: _read_incremental_alter_configs_request_held,
}

WRITERS: dict[type[Message], Callable[..., Steps[Any]]] = {
    IncrementalAlterConfigsResponse: _write_incremental_alter_configs_response_steps,
}
