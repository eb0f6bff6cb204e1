"""A member of a consumer group and what it subscribed to.

In steps; made from schemas/consumer_group_member_metadata_value.schema by `python -m ottla.protocol.compile`.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct
from sys import getsizeof
from typing import Any

from ottla.protocol.generated.consumer_group_member_metadata_value import (
    ConsumerGroupMemberMetadataValue,
)
from ottla.protocol.message import Message
from ottla.protocol.primitives import (
    Buffer,
    NO_TAGS,
    put_compact_count,
    put_compact_nullable_string,
    put_compact_string,
    put_tags,
    read_compact_count,
    read_compact_nullable_string,
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

_pack_i = Struct(">i").pack
_unpack_i = Struct(">i").unpack_from


def _read_consumer_group_member_metadata_value_held(buf: Buffer, pos: int, limit: int, version: int, allowance: DecodingAllowance) -> Steps[tuple[ConsumerGroupMemberMetadataValue, int]]:
    m = object.__new__(ConsumerGroupMemberMetadataValue)
    m.instance_id, pos = read_compact_nullable_string(buf, pos, limit)
    allowance.left -= getsizeof(m.instance_id)
    m.rack_id, pos = read_compact_nullable_string(buf, pos, limit)
    allowance.left -= getsizeof(m.rack_id)
    m.client_id, pos = read_compact_string(buf, pos, limit)
    allowance.left -= getsizeof(m.client_id)
    m.client_host, pos = read_compact_string(buf, pos, limit)
    allowance.left -= getsizeof(m.client_host)
    count, pos = read_compact_count(buf, pos, limit, 1)
    allowance.take_array(count, 304)
    m.subscribed_topic_names, pos = yield from read_strings(read_compact_string, buf, pos, limit, count, allowance)
    m.subscribed_topic_regex, pos = read_compact_nullable_string(buf, pos, limit)
    allowance.left -= getsizeof(m.subscribed_topic_regex)
    (m.rebalance_timeout_ms,) = _unpack_i(buf, pos)
    pos += 4
    m.server_assignor, pos = read_compact_nullable_string(buf, pos, limit)
    allowance.left -= getsizeof(m.server_assignor)
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
        allowance.take_tags(m.unknown_tags)
    return m, pos


def _write_consumer_group_member_metadata_value_steps(out: bytearray, m: ConsumerGroupMemberMetadataValue, version: int, pace: Pace) -> Steps[None]:
    put_compact_nullable_string(out, m.instance_id)
    put_compact_nullable_string(out, m.rack_id)
    put_compact_string(out, m.client_id)
    put_compact_string(out, m.client_host)
    put_compact_count(out, len(m.subscribed_topic_names))
    yield from write_strings(out, m.subscribed_topic_names, put_compact_string, pace)
    put_compact_nullable_string(out, m.subscribed_topic_regex)
    out += _pack_i(m.rebalance_timeout_ms)
    put_compact_nullable_string(out, m.server_assignor)
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)


READERS: dict[type[Message], Callable[..., Steps[Any]]] = {
    ConsumerGroupMemberMetadataValue: _read_consumer_group_member_metadata_value_held,
}

WRITERS: dict[type[Message], Callable[..., Steps[Any]]] = {
    ConsumerGroupMemberMetadataValue: _write_consumer_group_member_metadata_value_steps,
}
