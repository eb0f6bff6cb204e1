"""The transaction coordinator has markers written to partitions.

In steps; made from schemas/write_txn_markers.schema by `python -m ottla.protocol.compile`.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct
from sys import getsizeof
from typing import Any

from ottla.protocol.generated.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopic,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
    _write_writable_txn_marker_partition_result,
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
    read_numbers,
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

_pack_q = Struct(">q").pack
_unpack_b = Struct(">b").unpack_from
_unpack_i = Struct(">i").unpack_from
_unpack_qht = Struct(">qh?").unpack_from


def _read_writable_txn_marker_topic_held(buf: Buffer, pos: int, limit: int, version: int, allowance: DecodingAllowance) -> Steps[tuple[WritableTxnMarkerTopic, int]]:
    m = object.__new__(WritableTxnMarkerTopic)
    m.name, pos = read_compact_string(buf, pos, limit)
    allowance.left -= getsizeof(m.name)
    count, pos = read_compact_count(buf, pos, limit, 4)
    if count > NUMBERS_A_PIECE:
        allowance.take_array(count, 304)
        m.partition_indexes, pos = yield from read_many_numbers(buf, pos, count, "i", 4, allowance)
    else:
        m.partition_indexes, pos = read_numbers(buf, pos, count, "i", 4)
        allowance.left -= count * 304
        allowance.work -= count // PIECE
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
        allowance.take_tags(m.unknown_tags)
    return m, pos


def _read_writable_txn_marker_held(buf: Buffer, pos: int, limit: int, version: int, allowance: DecodingAllowance) -> Steps[tuple[WritableTxnMarker, int]]:
    m = object.__new__(WritableTxnMarker)
    m.producer_id, m.producer_epoch, m.transaction_result = _unpack_qht(buf, pos)
    pos += 11
    count, pos = read_compact_count(buf, pos, limit, 3)
    allowance.take_array(count, 224)
    topics_: list[WritableTxnMarkerTopic] = []
    for _ in range(count):
        topics_item, pos = yield from _read_writable_txn_marker_topic_held(buf, pos, limit, version, allowance)
        topics_.append(topics_item)
        if allowance.due(pos):
            yield
    m.topics = topics_
    (m.coordinator_epoch,) = _unpack_i(buf, pos)
    pos += 4
    if version >= 2:
        (m.transaction_version,) = _unpack_b(buf, pos)
        pos += 1
    else:
        m.transaction_version = 0
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
        allowance.take_tags(m.unknown_tags)
    return m, pos


def _read_write_txn_markers_request_held(buf: Buffer, pos: int, limit: int, version: int, allowance: DecodingAllowance) -> Steps[tuple[WriteTxnMarkersRequest, int]]:
    m = object.__new__(WriteTxnMarkersRequest)
    count, pos = read_compact_count(buf, pos, limit, 17)
    allowance.take_array(count, 304)
    markers_: list[WritableTxnMarker] = []
    for _ in range(count):
        markers_item, pos = yield from _read_writable_txn_marker_held(buf, pos, limit, version, allowance)
        markers_.append(markers_item)
        if allowance.due(pos):
            yield
    m.markers = markers_
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
        allowance.take_tags(m.unknown_tags)
    return m, pos


def _write_writable_txn_marker_topic_result_steps(out: bytearray, m: WritableTxnMarkerTopicResult, version: int, pace: Pace) -> Steps[None]:
    put_compact_string(out, m.name)
    put_compact_count(out, len(m.partitions))
    if len(m.partitions) > FEW:
        yield from write_structs(out, m.partitions, _write_writable_txn_marker_partition_result, version, pace)
    else:
        for partitions_item in m.partitions:
            _write_writable_txn_marker_partition_result(out, partitions_item, version)
        pace.work -= len(m.partitions)
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)


def _write_writable_txn_marker_result_steps(out: bytearray, m: WritableTxnMarkerResult, version: int, pace: Pace) -> Steps[None]:
    out += _pack_q(m.producer_id)
    put_compact_count(out, len(m.topics))
    for topics_item in m.topics:
        yield from _write_writable_txn_marker_topic_result_steps(out, topics_item, version, pace)
        if pace.due():
            yield
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)


def _write_write_txn_markers_response_steps(out: bytearray, m: WriteTxnMarkersResponse, version: int, pace: Pace) -> Steps[None]:
    put_compact_count(out, len(m.markers))
    for markers_item in m.markers:
        yield from _write_writable_txn_marker_result_steps(out, markers_item, version, pace)
        if pace.due():
            yield
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)


READERS: dict[type[Message], Callable[..., Steps[Any]]] = {
    WriteTxnMarkersRequest: _read_write_txn_markers_request_held,
}

WRITERS: dict[type[Message], Callable[..., Steps[Any]]] = {
    WriteTxnMarkersResponse: _write_write_txn_markers_response_steps,
}
