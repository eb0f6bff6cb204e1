"""The access rules that match a filter.

In steps; made from schemas/describe_acls.schema by `python -m ottla.protocol.compile`.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct
from typing import Any

from ottla.protocol.generated.describe_acls import (
    DescribeAclsResource,
    DescribeAclsResponse,
    _write_acl_description,
)
from ottla.protocol.message import Message, not_tagged
from ottla.protocol.primitives import (
    NO_TAGS,
    put_compact_count,
    put_compact_nullable_string,
    put_compact_string,
    put_count,
    put_nullable_string,
    put_string,
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
_pack_ih = Struct(">ih").pack


def _write_describe_acls_resource_steps(out: bytearray, m: DescribeAclsResource, version: int, pace: Pace) -> Steps[None]:
    out += _pack_b(m.resource_type)
    if version >= 2:
        put_compact_string(out, m.resource_name)
    else:
        put_string(out, m.resource_name)
    out += _pack_b(m.pattern_type)
    if version >= 2:
        put_compact_count(out, len(m.acls))
    else:
        put_count(out, len(m.acls))
    if len(m.acls) > FEW:
        yield from write_structs(out, m.acls, _write_acl_description, version, pace)
    else:
        for acls_item in m.acls:
            _write_acl_description(out, acls_item, version)
        pace.work -= len(m.acls)
    if version >= 2:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)


def _write_describe_acls_response_steps(out: bytearray, m: DescribeAclsResponse, version: int, pace: Pace) -> Steps[None]:
    out += _pack_ih(m.throttle_time_ms, m.error_code)
    if version >= 2:
        put_compact_nullable_string(out, shortened(m.error_message))
    else:
        put_nullable_string(out, shortened(m.error_message))
    if version >= 2:
        put_compact_count(out, len(m.resources))
    else:
        put_count(out, len(m.resources))
    for resources_item in m.resources:
        yield from _write_describe_acls_resource_steps(out, resources_item, version, pace)
        if pace.due():
            yield
    if version >= 2:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)


READERS: dict[type[Message], Callable[..., Steps[Any]]] = {
}

WRITERS: dict[type[Message], Callable[..., Steps[Any]]] = {
    DescribeAclsResponse: _write_describe_acls_response_steps,
}
