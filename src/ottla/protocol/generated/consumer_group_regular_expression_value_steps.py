"""The topics that a regular expression stood for when it was last looked at.

In steps; made from schemas/consumer_group_regular_expression_value.schema by `python -m ottla.protocol.compile`.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct
from typing import Any

from ottla.protocol.generated.consumer_group_regular_expression_value import (
    ConsumerGroupRegularExpressionValue,
)
from ottla.protocol.message import Message
from ottla.protocol.primitives import (
    Buffer,
    NO_TAGS,
    put_compact_count,
    put_compact_string,
    put_tags,
    read_compact_count,
    read_compact_string,
    read_tags,
)
from ottla.protocol.stepping import (
    DecodingAllowance,
    Pace,
    read_strings,
    write_strings,
)
from ottla.steps import Steps

_pack_qq = Struct(">qq").pack
_unpack_qq = Struct(">qq").unpack_from


def _read_consumer_group_regular_expression_value_held(buf: Buffer, pos: int, limit: int, version: int, allowance: DecodingAllowance) -> Steps[tuple[ConsumerGroupRegularExpressionValue, int]]:
    m = object.__new__(ConsumerGroupRegularExpressionValue)
    count, pos = read_compact_count(buf, pos, limit, 1)
    allowance.take_array(count, 304)
    m.topics, pos = yield from read_strings(read_compact_string, buf, pos, limit, count, allowance)
    m.version, m.timestamp = _unpack_qq(buf, pos)
    pos += 16
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
        allowance.take_tags(m.unknown_tags)
    return m, pos


def _write_consumer_group_regular_expression_value_steps(out: bytearray, m: ConsumerGroupRegularExpressionValue, version: int, pace: Pace) -> Steps[None]:
    put_compact_count(out, len(m.topics))
    yield from write_strings(out, m.topics, put_compact_string, pace)
    out += _pack_qq(m.version, m.timestamp)
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)


READERS: dict[type[Message], Callable[..., Steps[Any]]] = {
    ConsumerGroupRegularExpressionValue: _read_consumer_group_regular_expression_value_held,
}

WRITERS: dict[type[Message], Callable[..., Steps[Any]]] = {
    ConsumerGroupRegularExpressionValue: _write_consumer_group_regular_expression_value_steps,
}
