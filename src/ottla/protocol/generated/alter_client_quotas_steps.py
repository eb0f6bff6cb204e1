"""Sets and removes quotas.

In steps; made from schemas/alter_client_quotas.schema by `python -m ottla.protocol.compile`.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct
from typing import Any

from ottla.protocol.generated.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    RequestEntryData,
    ResponseEntryData,
    _read_entity_data,
    _read_op_data,
    _write_entity_data,
)
from ottla.protocol.message import Message, not_tagged
from ottla.protocol.primitives import (
    Buffer,
    NO_TAGS,
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

_pack_h = Struct(">h").pack
_pack_i = Struct(">i").pack


def _read_request_entry_data_held(buf: Buffer, pos: int, limit: int, version: int, allowance: DecodingAllowance) -> Steps[tuple[RequestEntryData, int]]:
    m = object.__new__(RequestEntryData)
    count, pos = read_compact_count(buf, pos, limit, 3) if version >= 1 else read_count(buf, pos, limit, 3)
    if count > FEW:
        allowance.take_array(count, 232)
        m.entity, pos = yield from read_structs(_read_entity_data, buf, pos, limit, version, count, allowance, text=True)
    else:
        allowance.left -= count * 232
        m.entity, pos = read_few(_read_entity_data, buf, pos, limit, version, count, allowance, text=True)
    count, pos = read_compact_count(buf, pos, limit, 11) if version >= 1 else read_count(buf, pos, limit, 11)
    if count > FEW:
        allowance.take_array(count, 224)
        m.ops, pos = yield from read_structs(_read_op_data, buf, pos, limit, version, count, allowance, text=True)
    else:
        allowance.left -= count * 224
        m.ops, pos = read_few(_read_op_data, buf, pos, limit, version, count, allowance, text=True)
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


def _read_alter_client_quotas_request_held(buf: Buffer, pos: int, limit: int, version: int, allowance: DecodingAllowance) -> Steps[tuple[AlterClientQuotasRequest, int]]:
    m = object.__new__(AlterClientQuotasRequest)
    count, pos = read_compact_count(buf, pos, limit, 3) if version >= 1 else read_count(buf, pos, limit, 3)
    allowance.take_array(count, 224)
    entries_: list[RequestEntryData] = []
    for _ in range(count):
        entries_item, pos = yield from _read_request_entry_data_held(buf, pos, limit, version, allowance)
        entries_.append(entries_item)
        if allowance.due(pos):
            yield
    m.entries = entries_
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


def _write_response_entry_data_steps(out: bytearray, m: ResponseEntryData, version: int, pace: Pace) -> Steps[None]:
    out += _pack_h(m.error_code)
    if version >= 1:
        put_compact_nullable_string(out, shortened(m.error_message))
    else:
        put_nullable_string(out, shortened(m.error_message))
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
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)


def _write_alter_client_quotas_response_steps(out: bytearray, m: AlterClientQuotasResponse, version: int, pace: Pace) -> Steps[None]:
    out += _pack_i(m.throttle_time_ms)
    if version >= 1:
        put_compact_count(out, len(m.entries))
    else:
        put_count(out, len(m.entries))
    for entries_item in m.entries:
        yield from _write_response_entry_data_steps(out, entries_item, version, pace)
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
    AlterClientQuotasRequest: _read_alter_client_quotas_request_held,
}

WRITERS: dict[type[Message], Callable[..., Steps[Any]]] = {
    AlterClientQuotasResponse: _write_alter_client_quotas_response_steps,
}
