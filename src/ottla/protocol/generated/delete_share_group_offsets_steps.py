"""Forgets where share groups start in topics.

In steps; made from schemas/delete_share_group_offsets.schema by `python -m ottla.protocol.compile`.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct
from sys import getsizeof
from typing import Any

from ottla.protocol.generated.delete_share_group_offsets import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsResponse,
    _read_delete_share_group_offsets_request_topic,
    _write_delete_share_group_offsets_response_topic,
)
from ottla.protocol.message import Message
from ottla.protocol.primitives import (
    Buffer,
    NO_TAGS,
    put_compact_count,
    put_compact_nullable_string,
    put_tags,
    read_compact_count,
    read_compact_string,
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


def _read_delete_share_group_offsets_request_held(buf: Buffer, pos: int, limit: int, version: int, allowance: DecodingAllowance) -> Steps[tuple[DeleteShareGroupOffsetsRequest, int]]:
    m = object.__new__(DeleteShareGroupOffsetsRequest)
    m.group_id, pos = read_compact_string(buf, pos, limit)
    allowance.left -= getsizeof(m.group_id)
    count, pos = read_compact_count(buf, pos, limit, 2)
    if count > FEW:
        allowance.take_array(count, 224)
        m.topics, pos = yield from read_structs(_read_delete_share_group_offsets_request_topic, buf, pos, limit, version, count, allowance, text=True)
    else:
        allowance.left -= count * 224
        m.topics, pos = read_few(_read_delete_share_group_offsets_request_topic, buf, pos, limit, version, count, allowance, text=True)
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
        allowance.take_tags(m.unknown_tags)
    return m, pos


def _write_delete_share_group_offsets_response_steps(out: bytearray, m: DeleteShareGroupOffsetsResponse, version: int, pace: Pace) -> Steps[None]:
    out += _pack_ih(m.throttle_time_ms, m.error_code)
    put_compact_nullable_string(out, shortened(m.error_message))
    put_compact_count(out, len(m.responses))
    if len(m.responses) > FEW:
        yield from write_structs(out, m.responses, _write_delete_share_group_offsets_response_topic, version, pace)
    else:
        for responses_item in m.responses:
            _write_delete_share_group_offsets_response_topic(out, responses_item, version)
        pace.work -= len(m.responses)
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)


READERS: dict[type[Message], Callable[..., Steps[Any]]] = {
    DeleteShareGroupOffsetsRequest: _read_delete_share_group_offsets_request_held,
}

WRITERS: dict[type[Message], Callable[..., Steps[Any]]] = {
    DeleteShareGroupOffsetsResponse: _write_delete_share_group_offsets_response_steps,
}
