"""The quotas that match a filter.

In steps; made from schemas/describe_client_quotas.schema by `python -m ottla.protocol.compile`.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct
from typing import Any

from ottla.protocol.generated.describe_client_quotas import (
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
    EntryData,
    _read_component_data,
    _write_entity_data,
    _write_value_data,
)
from ottla.protocol.message import Message, not_tagged
from ottla.protocol.primitives import (
    Buffer,
    NO_TAGS,
    NULL_COUNT,
    put_compact_count,
    put_compact_nullable_string,
    put_count,
    put_nullable_string,
    put_tags,
    read_compact_count,
    read_count,
    read_tags,
    shortened,
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

_pack_ih = Struct(">ih").pack


def _read_describe_client_quotas_request_held(buf: Buffer, pos: int, limit: int, version: int, allowance: DecodingAllowance) -> Steps[tuple[DescribeClientQuotasRequest, int]]:
    m = object.__new__(DescribeClientQuotasRequest)
    count, pos = read_compact_count(buf, pos, limit, 4) if version >= 1 else read_count(buf, pos, limit, 4)
    if count > FEW:
        allowance.take_array(count, 272)
        m.components, pos = yield from read_structs(_read_component_data, buf, pos, limit, version, count, allowance, text=True)
    else:
        allowance.left -= count * 272
        m.components, pos = read_few(_read_component_data, buf, pos, limit, version, count, allowance, text=True)
    m.strict = buf[pos] != 0
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


def _write_entry_data_steps(out: bytearray, m: EntryData, version: int, pace: Pace) -> Steps[None]:
    if version >= 1:
        put_compact_count(out, len(m.entity))
    else:
        put_count(out, len(m.entity))
    if len(m.entity) > FEW:
        yield from write_structs(out, m.entity, _write_entity_data, version, pace)
    else:
        for entity_item in m.entity:
            _write_entity_data(out, entity_item, version)
        pace.work -= len(m.entity)
    if version >= 1:
        put_compact_count(out, len(m.values))
    else:
        put_count(out, len(m.values))
    if len(m.values) > FEW:
        yield from write_structs(out, m.values, _write_value_data, version, pace)
    else:
        for values_item in m.values:
            _write_value_data(out, values_item, version)
        pace.work -= len(m.values)
    if version >= 1:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)


def _write_describe_client_quotas_response_steps(out: bytearray, m: DescribeClientQuotasResponse, version: int, pace: Pace) -> Steps[None]:
    out += _pack_ih(m.throttle_time_ms, m.error_code)
    if version >= 1:
        put_compact_nullable_string(out, shortened(m.error_message))
    else:
        put_nullable_string(out, shortened(m.error_message))
    if m.entries is None:
        out += b"\0" if version >= 1 else NULL_COUNT
    else:
        if version >= 1:
            put_compact_count(out, len(m.entries))
        else:
            put_count(out, len(m.entries))
        for entries_item in m.entries:
            yield from _write_entry_data_steps(out, entries_item, version, pace)
            if pace.due():
                yield
    if version >= 1:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)


READERS: dict[type[Message], Callable[..., Steps[Any]]] = {
    DescribeClientQuotasRequest: _read_describe_client_quotas_request_held,
}

WRITERS: dict[type[Message], Callable[..., Steps[Any]]] = {
    DescribeClientQuotasResponse: _write_describe_client_quotas_response_steps,
}
