"""Has leaders elected for partitions: the preferred ones, or any that is left.

In steps; made from schemas/elect_leaders.schema by `python -m ottla.protocol.compile`.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct
from sys import getsizeof
from typing import Any

from ottla.protocol.generated.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    ReplicaElectionResult,
    TopicPartitions,
    _write_partition_result,
)
from ottla.protocol.message import Message, not_in_version, not_tagged
from ottla.protocol.primitives import (
    Buffer,
    NO_TAGS,
    put_compact_count,
    put_compact_string,
    put_count,
    put_string,
    put_tags,
    read_compact_count,
    read_compact_nullable_count,
    read_compact_string,
    read_count,
    read_nullable_count,
    read_numbers,
    read_string,
    read_tags,
)
from ottla.protocol.stepping import (
    DecodingAllowance,
    FEW,
    NUMBERS_A_PIECE,
    PIECE,
    Pace,
    read_many_numbers,
    write_structs,
)
from ottla.steps import Steps

_pack_h = Struct(">h").pack
_pack_i = Struct(">i").pack
_unpack_b = Struct(">b").unpack_from
_unpack_i = Struct(">i").unpack_from


def _read_topic_partitions_held(buf: Buffer, pos: int, limit: int, version: int, allowance: DecodingAllowance) -> Steps[tuple[TopicPartitions, int]]:
    m = object.__new__(TopicPartitions)
    if version >= 2:
        m.topic, pos = read_compact_string(buf, pos, limit)
        allowance.left -= getsizeof(m.topic)
    else:
        m.topic, pos = read_string(buf, pos, limit)
        allowance.left -= getsizeof(m.topic)
    count, pos = read_compact_count(buf, pos, limit, 4) if version >= 2 else read_count(buf, pos, limit, 4)
    if count > NUMBERS_A_PIECE:
        allowance.take_array(count, 304)
        m.partitions, pos = yield from read_many_numbers(buf, pos, count, "i", 4, allowance)
    else:
        m.partitions, pos = read_numbers(buf, pos, count, "i", 4)
        allowance.left -= count * 304
        allowance.work -= count // PIECE
    if version >= 2:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            m.unknown_tags, pos = read_tags(buf, pos, limit)
            allowance.take_tags(m.unknown_tags)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _read_elect_leaders_request_held(buf: Buffer, pos: int, limit: int, version: int, allowance: DecodingAllowance) -> Steps[tuple[ElectLeadersRequest, int]]:
    m = object.__new__(ElectLeadersRequest)
    if version >= 1:
        (m.election_type,) = _unpack_b(buf, pos)
        pos += 1
    else:
        m.election_type = 0
    count, pos = read_compact_nullable_count(buf, pos, limit, 3) if version >= 2 else read_nullable_count(buf, pos, limit, 3)
    if count < 0:
        m.topic_partitions = None
    else:
        allowance.take_array(count, 224)
        topic_partitions_: list[TopicPartitions] = []
        for _ in range(count):
            topic_partitions_item, pos = yield from _read_topic_partitions_held(buf, pos, limit, version, allowance)
            topic_partitions_.append(topic_partitions_item)
            if allowance.due(pos):
                yield
        m.topic_partitions = topic_partitions_
    (m.timeout_ms,) = _unpack_i(buf, pos)
    pos += 4
    if version >= 2:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            m.unknown_tags, pos = read_tags(buf, pos, limit)
            allowance.take_tags(m.unknown_tags)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _write_replica_election_result_steps(out: bytearray, m: ReplicaElectionResult, version: int, pace: Pace) -> Steps[None]:
    if version >= 2:
        put_compact_string(out, m.topic)
    else:
        put_string(out, m.topic)
    if version >= 2:
        put_compact_count(out, len(m.partition_result))
    else:
        put_count(out, len(m.partition_result))
    if len(m.partition_result) > FEW:
        yield from write_structs(out, m.partition_result, _write_partition_result, version, pace)
    else:
        for partition_result_item in m.partition_result:
            _write_partition_result(out, partition_result_item, version)
        pace.work -= len(m.partition_result)
    if version >= 2:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)


def _write_elect_leaders_response_steps(out: bytearray, m: ElectLeadersResponse, version: int, pace: Pace) -> Steps[None]:
    out += _pack_i(m.throttle_time_ms)
    if version >= 1:
        out += _pack_h(m.error_code)
    else:
        if m.error_code != 0:
            raise not_in_version(m, "error_code", version)
    if version >= 2:
        put_compact_count(out, len(m.replica_election_results))
    else:
        put_count(out, len(m.replica_election_results))
    for replica_election_results_item in m.replica_election_results:
        yield from _write_replica_election_result_steps(out, replica_election_results_item, version, pace)
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
    ElectLeadersRequest: _read_elect_leaders_request_held,
}

WRITERS: dict[type[Message], Callable[..., Steps[Any]]] = {
    ElectLeadersResponse: _write_elect_leaders_response_steps,
}
