"""Settings of topics, brokers and others, with their sources.

In steps; made from schemas/describe_configs.schema by `python -m ottla.protocol.compile`.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct
from sys import getsizeof
from typing import Any

from ottla.protocol.generated.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    _write_describe_configs_synonym,
)
from ottla.protocol.message import Message, not_tagged
from ottla.protocol.primitives import (
    Buffer,
    NO_TAGS,
    put_compact_count,
    put_compact_nullable_string,
    put_compact_string,
    put_count,
    put_nullable_string,
    put_string,
    put_tags,
    read_compact_count,
    read_compact_nullable_count,
    read_compact_string,
    read_count,
    read_nullable_count,
    read_string,
    read_tags,
    shortened,
)
from ottla.protocol.stepping import (
    DecodingAllowance,
    FEW,
    Pace,
    read_strings,
    write_structs,
)
from ottla.steps import Steps

_pack_b = Struct(">b").pack
_pack_h = Struct(">h").pack
_pack_i = Struct(">i").pack
_pack_tbt = Struct(">?b?").pack
_unpack_b = Struct(">b").unpack_from


def _read_describe_configs_resource_held(buf: Buffer, pos: int, limit: int, version: int, allowance: DecodingAllowance) -> Steps[tuple[DescribeConfigsResource, int]]:
    m = object.__new__(DescribeConfigsResource)
    (m.resource_type,) = _unpack_b(buf, pos)
    pos += 1
    if version >= 4:
        m.resource_name, pos = read_compact_string(buf, pos, limit)
        allowance.left -= getsizeof(m.resource_name)
    else:
        m.resource_name, pos = read_string(buf, pos, limit)
        allowance.left -= getsizeof(m.resource_name)
    count, pos = read_compact_nullable_count(buf, pos, limit, 1) if version >= 4 else read_nullable_count(buf, pos, limit, 1)
    if count < 0:
        m.configuration_keys = None
    else:
        allowance.take_array(count, 304)
        m.configuration_keys, pos = yield from read_strings(read_compact_string if version >= 4 else read_string, buf, pos, limit, count, allowance)
    if version >= 4:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            m.unknown_tags, pos = read_tags(buf, pos, limit)
            allowance.take_tags(m.unknown_tags)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _read_describe_configs_request_held(buf: Buffer, pos: int, limit: int, version: int, allowance: DecodingAllowance) -> Steps[tuple[DescribeConfigsRequest, int]]:
    m = object.__new__(DescribeConfigsRequest)
    count, pos = read_compact_count(buf, pos, limit, 4) if version >= 4 else read_count(buf, pos, limit, 4)
    allowance.take_array(count, 224)
    resources_: list[DescribeConfigsResource] = []
    for _ in range(count):
        resources_item, pos = yield from _read_describe_configs_resource_held(buf, pos, limit, version, allowance)
        resources_.append(resources_item)
        if allowance.due(pos):
            yield
    m.resources = resources_
    m.include_synonyms = buf[pos] != 0
    pos += 1
    if version >= 3:
        m.include_documentation = buf[pos] != 0
        pos += 1
    else:
        m.include_documentation = False
    if version >= 4:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            m.unknown_tags, pos = read_tags(buf, pos, limit)
            allowance.take_tags(m.unknown_tags)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _write_describe_configs_resource_result_steps(out: bytearray, m: DescribeConfigsResourceResult, version: int, pace: Pace) -> Steps[None]:
    if version >= 4:
        put_compact_string(out, m.name)
        put_compact_nullable_string(out, m.value)
    else:
        put_string(out, m.name)
        put_nullable_string(out, m.value)
    out += _pack_tbt(m.read_only, m.config_source, m.is_sensitive)
    if version >= 4:
        put_compact_count(out, len(m.synonyms))
    else:
        put_count(out, len(m.synonyms))
    if len(m.synonyms) > FEW:
        yield from write_structs(out, m.synonyms, _write_describe_configs_synonym, version, pace)
    else:
        for synonyms_item in m.synonyms:
            _write_describe_configs_synonym(out, synonyms_item, version)
        pace.work -= len(m.synonyms)
    if version >= 3:
        out += _pack_b(m.config_type)
    if version >= 4:
        put_compact_nullable_string(out, m.documentation)
    elif version >= 3:
        put_nullable_string(out, m.documentation)
    if version >= 4:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)


def _write_describe_configs_result_steps(out: bytearray, m: DescribeConfigsResult, version: int, pace: Pace) -> Steps[None]:
    out += _pack_h(m.error_code)
    if version >= 4:
        put_compact_nullable_string(out, shortened(m.error_message))
    else:
        put_nullable_string(out, shortened(m.error_message))
    out += _pack_b(m.resource_type)
    if version >= 4:
        put_compact_string(out, m.resource_name)
    else:
        put_string(out, m.resource_name)
    if version >= 4:
        put_compact_count(out, len(m.configs))
    else:
        put_count(out, len(m.configs))
    for configs_item in m.configs:
        yield from _write_describe_configs_resource_result_steps(out, configs_item, version, pace)
        if pace.due():
            yield
    if version >= 4:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)


def _write_describe_configs_response_steps(out: bytearray, m: DescribeConfigsResponse, version: int, pace: Pace) -> Steps[None]:
    out += _pack_i(m.throttle_time_ms)
    if version >= 4:
        put_compact_count(out, len(m.results))
    else:
        put_count(out, len(m.results))
    for results_item in m.results:
        yield from _write_describe_configs_result_steps(out, results_item, version, pace)
        if pace.due():
            yield
    if version >= 4:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)


READERS: dict[type[Message], Callable[..., Steps[Any]]] = {
    DescribeConfigsRequest: _read_describe_configs_request_held,
}

WRITERS: dict[type[Message], Callable[..., Steps[Any]]] = {
    DescribeConfigsResponse: _write_describe_configs_response_steps,
}
