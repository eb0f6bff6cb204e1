"""What a member of a classic consumer group says of itself when it joins: the metadata of each protocol in JoinGroup.

In steps; made from schemas/consumer_protocol_subscription.schema by `python -m ottla.protocol.compile`.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct
from sys import getsizeof
from typing import Any

from ottla.protocol.generated.consumer_protocol_subscription import (
    ConsumerProtocolSubscription,
    OwnedPartitions,
)
from ottla.protocol.message import Message, not_tagged
from ottla.protocol.primitives import (
    Buffer,
    NO_TAGS,
    put_count,
    put_nullable_bytes,
    put_nullable_string,
    put_numbers,
    put_string,
    read_count,
    read_nullable_bytes,
    read_nullable_string,
    read_numbers,
    read_string,
)
from ottla.protocol.stepping import (
    DecodingAllowance,
    NUMBERS_A_PIECE,
    PIECE,
    Pace,
    read_many_numbers,
    read_strings,
    write_many_numbers,
    write_strings,
)
from ottla.steps import Steps

_pack_i = Struct(">i").pack
_unpack_i = Struct(">i").unpack_from


def _read_owned_partitions_held(buf: Buffer, pos: int, limit: int, version: int, allowance: DecodingAllowance) -> Steps[tuple[OwnedPartitions, int]]:
    m = object.__new__(OwnedPartitions)
    m.topic, pos = read_string(buf, pos, limit)
    allowance.left -= getsizeof(m.topic)
    count, pos = read_count(buf, pos, limit, 4)
    if count > NUMBERS_A_PIECE:
        allowance.take_array(count, 304)
        m.partitions, pos = yield from read_many_numbers(buf, pos, count, "i", 4, allowance)
    else:
        m.partitions, pos = read_numbers(buf, pos, count, "i", 4)
        allowance.left -= count * 304
        allowance.work -= count // PIECE
    m.unknown_tags = NO_TAGS
    return m, pos


def _write_owned_partitions_steps(out: bytearray, m: OwnedPartitions, version: int, pace: Pace) -> Steps[None]:
    put_string(out, m.topic)
    put_count(out, len(m.partitions))
    if len(m.partitions) > NUMBERS_A_PIECE:
        yield from write_many_numbers(out, m.partitions, "i", pace)
    else:
        put_numbers(out, m.partitions, "i")
        pace.work -= len(m.partitions) // PIECE
    if m.unknown_tags:
        raise not_tagged(m, version)


def _read_consumer_protocol_subscription_held(buf: Buffer, pos: int, limit: int, version: int, allowance: DecodingAllowance) -> Steps[tuple[ConsumerProtocolSubscription, int]]:
    m = object.__new__(ConsumerProtocolSubscription)
    count, pos = read_count(buf, pos, limit, 1)
    allowance.take_array(count, 304)
    m.topics, pos = yield from read_strings(read_string, buf, pos, limit, count, allowance)
    m.user_data, pos = read_nullable_bytes(buf, pos, limit)
    allowance.left -= getsizeof(m.user_data)
    if version >= 1:
        count, pos = read_count(buf, pos, limit, 6)
        allowance.take_array(count, 224)
        owned_partitions_: list[OwnedPartitions] = []
        for _ in range(count):
            owned_partitions_item, pos = yield from _read_owned_partitions_held(buf, pos, limit, version, allowance)
            owned_partitions_.append(owned_partitions_item)
            if allowance.due(pos):
                yield
        m.owned_partitions = owned_partitions_
    else:
        m.owned_partitions = []
    if version >= 2:
        (m.generation_id,) = _unpack_i(buf, pos)
        pos += 4
    else:
        m.generation_id = -1
    if version >= 3:
        m.rack_id, pos = read_nullable_string(buf, pos, limit)
        allowance.left -= getsizeof(m.rack_id)
    else:
        m.rack_id = None
    m.unknown_tags = NO_TAGS
    return m, pos


def _write_consumer_protocol_subscription_steps(out: bytearray, m: ConsumerProtocolSubscription, version: int, pace: Pace) -> Steps[None]:
    put_count(out, len(m.topics))
    yield from write_strings(out, m.topics, put_string, pace)
    put_nullable_bytes(out, m.user_data)
    if version >= 1:
        put_count(out, len(m.owned_partitions))
        for owned_partitions_item in m.owned_partitions:
            yield from _write_owned_partitions_steps(out, owned_partitions_item, version, pace)
            if pace.due():
                yield
    if version >= 2:
        out += _pack_i(m.generation_id)
    if version >= 3:
        put_nullable_string(out, m.rack_id)
    if m.unknown_tags:
        raise not_tagged(m, version)


READERS: dict[type[Message], Callable[..., Steps[Any]]] = {
    ConsumerProtocolSubscription: _read_consumer_protocol_subscription_held,
}

WRITERS: dict[type[Message], Callable[..., Steps[Any]]] = {
    ConsumerProtocolSubscription: _write_consumer_protocol_subscription_steps,
}
