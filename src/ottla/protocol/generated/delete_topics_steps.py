"""Deletes topics by name or by id.

In steps; made from schemas/delete_topics.schema by `python -m ottla.protocol.compile`.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct
from typing import Any

from ottla.protocol.generated.delete_topics import (
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    _read_delete_topic_state,
    _write_deletable_topic_result,
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
    read_strings,
    read_structs,
    write_structs,
)
from ottla.steps import Steps

_pack_i = Struct(">i").pack
_unpack_i = Struct(">i").unpack_from


def _read_delete_topics_request_held(buf: Buffer, pos: int, limit: int, version: int, allowance: DecodingAllowance) -> Steps[tuple[DeleteTopicsRequest, int]]:
    m = object.__new__(DeleteTopicsRequest)
    if version >= 6:
        count, pos = read_compact_count(buf, pos, limit, 18)
        if count > FEW:
            allowance.take_array(count, 224)
            m.topics, pos = yield from read_structs(_read_delete_topic_state, buf, pos, limit, version, count, allowance, text=True)
        else:
            allowance.left -= count * 224
            m.topics, pos = read_few(_read_delete_topic_state, buf, pos, limit, version, count, allowance, text=True)
        m.topic_names = []
    else:
        m.topics = []
        count, pos = read_compact_count(buf, pos, limit, 1) if version >= 4 else read_count(buf, pos, limit, 1)
        allowance.take_array(count, 304)
        m.topic_names, pos = yield from read_strings(read_compact_string if version >= 4 else read_string, buf, pos, limit, count, allowance)
    (m.timeout_ms,) = _unpack_i(buf, pos)
    pos += 4
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


def _write_delete_topics_response_steps(out: bytearray, m: DeleteTopicsResponse, version: int, pace: Pace) -> Steps[None]:
    out += _pack_i(m.throttle_time_ms)
    if version >= 4:
        put_compact_count(out, len(m.responses))
    else:
        put_count(out, len(m.responses))
    if len(m.responses) > FEW:
        yield from write_structs(out, m.responses, _write_deletable_topic_result, version, pace)
    else:
        for responses_item in m.responses:
            _write_deletable_topic_result(out, responses_item, version)
        pace.work -= len(m.responses)
    if version >= 4:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)


READERS: dict[type[Message], Callable[..., Steps[Any]]] = {
    DeleteTopicsRequest: _read_delete_topics_request_held,
}

WRITERS: dict[type[Message], Callable[..., Steps[Any]]] = {
    DeleteTopicsResponse: _write_delete_topics_response_steps,
}
