"""How a partition came to be as it is, as the broker that answers saw it, and where its replicas are, as its leader knows.

In steps; made from schemas/partition_history.schema by `python -m ottla.protocol.compile`.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct
from typing import Any

from ottla.protocol.generated.partition_history import (
    PartitionChange,
    PartitionHistory,
    _read_follower_state,
    _write_follower_state,
)
from ottla.protocol.message import Message
from ottla.protocol.primitives import (
    Buffer,
    NO_TAGS,
    put_compact_count,
    put_numbers,
    put_tags,
    read_compact_count,
    read_numbers,
    read_tags,
)
from ottla.protocol.stepping import (
    DecodingAllowance,
    FEW,
    NUMBERS_A_PIECE,
    PIECE,
    Pace,
    read_few,
    read_many_numbers,
    read_structs,
    write_many_numbers,
    write_structs,
)
from ottla.steps import Steps

_pack_qiii = Struct(">qiii").pack
_pack_qq = Struct(">qq").pack
_unpack_qiii = Struct(">qiii").unpack_from
_unpack_qq = Struct(">qq").unpack_from


def _read_partition_change_held(buf: Buffer, pos: int, limit: int, version: int, allowance: DecodingAllowance) -> Steps[tuple[PartitionChange, int]]:
    m = object.__new__(PartitionChange)
    m.time_ms, m.controller_epoch, m.leader_id, m.leader_epoch = _unpack_qiii(buf, pos)
    pos += 20
    count, pos = read_compact_count(buf, pos, limit, 4)
    if count > NUMBERS_A_PIECE:
        allowance.take_array(count, 40)
        m.isr_nodes, pos = yield from read_many_numbers(buf, pos, count, "i", 4, allowance)
    else:
        m.isr_nodes, pos = read_numbers(buf, pos, count, "i", 4)
        allowance.left -= count * 40
        allowance.work -= count // PIECE
    count, pos = read_compact_count(buf, pos, limit, 4)
    if count > NUMBERS_A_PIECE:
        allowance.take_array(count, 40)
        m.replica_nodes, pos = yield from read_many_numbers(buf, pos, count, "i", 4, allowance)
    else:
        m.replica_nodes, pos = read_numbers(buf, pos, count, "i", 4)
        allowance.left -= count * 40
        allowance.work -= count // PIECE
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
        allowance.take_tags(m.unknown_tags)
    return m, pos


def _write_partition_change_steps(out: bytearray, m: PartitionChange, version: int, pace: Pace) -> Steps[None]:
    out += _pack_qiii(m.time_ms, m.controller_epoch, m.leader_id, m.leader_epoch)
    put_compact_count(out, len(m.isr_nodes))
    if len(m.isr_nodes) > NUMBERS_A_PIECE:
        yield from write_many_numbers(out, m.isr_nodes, "i", pace)
    else:
        put_numbers(out, m.isr_nodes, "i")
        pace.work -= len(m.isr_nodes) // PIECE
    put_compact_count(out, len(m.replica_nodes))
    if len(m.replica_nodes) > NUMBERS_A_PIECE:
        yield from write_many_numbers(out, m.replica_nodes, "i", pace)
    else:
        put_numbers(out, m.replica_nodes, "i")
        pace.work -= len(m.replica_nodes) // PIECE
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)


def _read_partition_history_held(buf: Buffer, pos: int, limit: int, version: int, allowance: DecodingAllowance) -> Steps[tuple[PartitionHistory, int]]:
    m = object.__new__(PartitionHistory)
    count, pos = read_compact_count(buf, pos, limit, 23)
    allowance.take_array(count, 376)
    changes_: list[PartitionChange] = []
    for _ in range(count):
        changes_item, pos = yield from _read_partition_change_held(buf, pos, limit, version, allowance)
        changes_.append(changes_item)
        if allowance.due(pos):
            yield
    m.changes = changes_
    m.high_watermark, m.log_end_offset = _unpack_qq(buf, pos)
    pos += 16
    count, pos = read_compact_count(buf, pos, limit, 29)
    if count > FEW:
        allowance.take_array(count, 224)
        m.followers, pos = yield from read_structs(_read_follower_state, buf, pos, limit, version, count, allowance, text=False)
    else:
        allowance.left -= count * 224
        m.followers, pos = read_few(_read_follower_state, buf, pos, limit, version, count, allowance, text=False)
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
        allowance.take_tags(m.unknown_tags)
    return m, pos


def _write_partition_history_steps(out: bytearray, m: PartitionHistory, version: int, pace: Pace) -> Steps[None]:
    put_compact_count(out, len(m.changes))
    for changes_item in m.changes:
        yield from _write_partition_change_steps(out, changes_item, version, pace)
        if pace.due():
            yield
    out += _pack_qq(m.high_watermark, m.log_end_offset)
    put_compact_count(out, len(m.followers))
    if len(m.followers) > FEW:
        yield from write_structs(out, m.followers, _write_follower_state, version, pace)
    else:
        for followers_item in m.followers:
            _write_follower_state(out, followers_item, version)
        pace.work -= len(m.followers)
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)


READERS: dict[type[Message], Callable[..., Steps[Any]]] = {
    PartitionHistory: _read_partition_history_held,
}

WRITERS: dict[type[Message], Callable[..., Steps[Any]]] = {
    PartitionHistory: _write_partition_history_steps,
}
