"""Which partitions a member of a classic consumer group has: the assignment in SyncGroup.

In steps; made from schemas/consumer_protocol_assignment.schema by `python -m ottla.protocol.compile`.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct
from sys import getsizeof
from typing import Any

from ottla.protocol.generated.consumer_protocol_assignment import (
    AssignedPartitions,
    ConsumerProtocolAssignment,
)
from ottla.protocol.message import Message, not_tagged
from ottla.protocol.primitives import (
    Buffer,
    NO_TAGS,
    put_count,
    put_nullable_bytes,
    put_numbers,
    put_string,
    read_count,
    read_nullable_bytes,
    read_numbers,
    read_string,
)
from ottla.protocol.stepping import (
    DecodingAllowance,
    NUMBERS_A_PIECE,
    PIECE,
    Pace,
    read_many_numbers,
    write_many_numbers,
)
from ottla.steps import Steps


def _read_assigned_partitions_held(buf: Buffer, pos: int, limit: int, version: int, allowance: DecodingAllowance) -> Steps[tuple[AssignedPartitions, int]]:
    m = object.__new__(AssignedPartitions)
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


def _write_assigned_partitions_steps(out: bytearray, m: AssignedPartitions, version: int, pace: Pace) -> Steps[None]:
    put_string(out, m.topic)
    put_count(out, len(m.partitions))
    if len(m.partitions) > NUMBERS_A_PIECE:
        yield from write_many_numbers(out, m.partitions, "i", pace)
    else:
        put_numbers(out, m.partitions, "i")
        pace.work -= len(m.partitions) // PIECE
    if m.unknown_tags:
        raise not_tagged(m, version)


def _read_consumer_protocol_assignment_held(buf: Buffer, pos: int, limit: int, version: int, allowance: DecodingAllowance) -> Steps[tuple[ConsumerProtocolAssignment, int]]:
    m = object.__new__(ConsumerProtocolAssignment)
    count, pos = read_count(buf, pos, limit, 6)
    allowance.take_array(count, 224)
    assigned_partitions_: list[AssignedPartitions] = []
    for _ in range(count):
        assigned_partitions_item, pos = yield from _read_assigned_partitions_held(buf, pos, limit, version, allowance)
        assigned_partitions_.append(assigned_partitions_item)
        if allowance.due(pos):
            yield
    m.assigned_partitions = assigned_partitions_
    m.user_data, pos = read_nullable_bytes(buf, pos, limit)
    allowance.left -= getsizeof(m.user_data)
    m.unknown_tags = NO_TAGS
    return m, pos


def _write_consumer_protocol_assignment_steps(out: bytearray, m: ConsumerProtocolAssignment, version: int, pace: Pace) -> Steps[None]:
    put_count(out, len(m.assigned_partitions))
    for assigned_partitions_item in m.assigned_partitions:
        yield from _write_assigned_partitions_steps(out, assigned_partitions_item, version, pace)
        if pace.due():
            yield
    put_nullable_bytes(out, m.user_data)
    if m.unknown_tags:
        raise not_tagged(m, version)


READERS: dict[type[Message], Callable[..., Steps[Any]]] = {
    ConsumerProtocolAssignment: _read_consumer_protocol_assignment_held,
}

WRITERS: dict[type[Message], Callable[..., Steps[Any]]] = {
    ConsumerProtocolAssignment: _write_consumer_protocol_assignment_steps,
}
