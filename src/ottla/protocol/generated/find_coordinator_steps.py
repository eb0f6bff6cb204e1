"""Which broker coordinates a group, a transactional id or a share partition.

In steps; made from schemas/find_coordinator.schema by `python -m ottla.protocol.compile`.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct
from sys import getsizeof
from typing import Any

from ottla.protocol.generated.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    _write_coordinator,
)
from ottla.protocol.message import Message, not_in_version, not_tagged
from ottla.protocol.primitives import (
    Buffer,
    NO_TAGS,
    put_compact_count,
    put_compact_nullable_string,
    put_compact_string,
    put_nullable_string,
    put_string,
    put_tags,
    read_compact_count,
    read_compact_string,
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

_pack_h = Struct(">h").pack
_pack_i = Struct(">i").pack
_unpack_b = Struct(">b").unpack_from


def _read_find_coordinator_request_held(buf: Buffer, pos: int, limit: int, version: int, allowance: DecodingAllowance) -> Steps[tuple[FindCoordinatorRequest, int]]:
    m = object.__new__(FindCoordinatorRequest)
    if version >= 4:
        m.key = ""
    elif version >= 3:
        m.key, pos = read_compact_string(buf, pos, limit)
        allowance.left -= getsizeof(m.key)
    else:
        m.key, pos = read_string(buf, pos, limit)
        allowance.left -= getsizeof(m.key)
    if version >= 1:
        (m.key_type,) = _unpack_b(buf, pos)
        pos += 1
    else:
        m.key_type = 0
    if version >= 4:
        count, pos = read_compact_count(buf, pos, limit, 1)
        allowance.take_array(count, 304)
        m.coordinator_keys, pos = yield from read_strings(read_compact_string, buf, pos, limit, count, allowance)
    else:
        m.coordinator_keys = []
    if version >= 3:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            m.unknown_tags, pos = read_tags(buf, pos, limit)
            allowance.take_tags(m.unknown_tags)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _write_find_coordinator_response_steps(out: bytearray, m: FindCoordinatorResponse, version: int, pace: Pace) -> Steps[None]:
    if version >= 1:
        out += _pack_i(m.throttle_time_ms)
    if version >= 4:
        if m.error_code != 0:
            raise not_in_version(m, "error_code", version)
    else:
        out += _pack_h(m.error_code)
    if version >= 4:
        pass
    elif version >= 3:
        put_compact_nullable_string(out, shortened(m.error_message))
    elif version >= 1:
        put_nullable_string(out, shortened(m.error_message))
    if version >= 4:
        if m.node_id != 0:
            raise not_in_version(m, "node_id", version)
    else:
        out += _pack_i(m.node_id)
    if version >= 4:
        if m.host != "":
            raise not_in_version(m, "host", version)
    elif version >= 3:
        put_compact_string(out, m.host)
    else:
        put_string(out, m.host)
    if version >= 4:
        if m.port != 0:
            raise not_in_version(m, "port", version)
        put_compact_count(out, len(m.coordinators))
        if len(m.coordinators) > FEW:
            yield from write_structs(out, m.coordinators, _write_coordinator, version, pace)
        else:
            for coordinators_item in m.coordinators:
                _write_coordinator(out, coordinators_item, version)
            pace.work -= len(m.coordinators)
    else:
        out += _pack_i(m.port)
        if m.coordinators != []:
            raise not_in_version(m, "coordinators", version)
    if version >= 3:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)


READERS: dict[type[Message], Callable[..., Steps[Any]]] = {
    FindCoordinatorRequest: _read_find_coordinator_request_held,
}

WRITERS: dict[type[Message], Callable[..., Steps[Any]]] = {
    FindCoordinatorResponse: _write_find_coordinator_response_steps,
}
