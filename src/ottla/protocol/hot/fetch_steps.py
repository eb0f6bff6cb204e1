"""Fetch in steps: requests of many partitions, and the answers to them.

Same results and errors as `fetch` and `fetch_answer`. The frame may not go back to a pool before the request is parsed.
"""

from __future__ import annotations

from struct import Struct
from sys import getsizeof

from ottla.protocol.errors import DecodeError
from ottla.protocol.hot.fetch import (
    HEAD_4,
    HEAD_7,
    HEAD_15,
    INT32,
    PARTITION_4,
    PARTITION_5,
    PARTITION_9,
    PARTITION_12,
    PARTITION_12_SIZE,
    FetchPartition,
    FetchRequest,
    read_partition_tags,
    read_request_tags,
)
from ottla.protocol.primitives import (
    DECODE_FAULTS,
    HotBuffer,
    read_compact_count,
    read_compact_string,
    read_count,
    read_numbers,
    read_string,
    skip_tags,
)
from ottla.protocol.stepping import NUMBERS_A_PIECE, PIECE, DecodingAllowance, read_many_numbers
from ottla.steps import Steps

#: A tuple of six numbers, and its place in a list; a tuple of a name (whose text is taken besides) and a list; what a
#: partition with tagged fields has in the two dicts besides; a number of a list.
_PARTITION_BYTES = 304
_TOPIC_BYTES = 160
_TAGGED_BYTES = 512
_NUMBER_BYTES = 40


def parse_fetch_steps(
    buf: HotBuffer, pos: int, version: int, end: int, allowance: DecodingAllowance
) -> Steps[FetchRequest]:
    if not 4 <= version <= 18:
        raise DecodeError(f"FetchRequest has no version {version}")
    request = FetchRequest()
    try:
        if version >= 12:
            pos = yield from _flexible(request, buf, pos, version, end, allowance)
        else:
            pos = yield from _plain(request, buf, pos, version, end, allowance)
    except DECODE_FAULTS as fault:
        raise DecodeError(f"these bytes are no FetchRequest of version {version}: {fault}") from fault
    if pos > end:
        raise DecodeError(f"a FetchRequest that ends at {pos} in a frame that ends at {end}")
    request.end = pos
    return request


def _plain(
    request: FetchRequest, buf: HotBuffer, pos: int, version: int, end: int, allowance: DecodingAllowance
) -> Steps[int]:
    if version >= 7:
        head = HEAD_7(buf, pos)
        request.session_id, request.session_epoch = head[5:]
        pos += 25
    else:
        head = HEAD_4(buf, pos)
        request.session_id, request.session_epoch = 0, -1
        pos += 17
    request.replica_id, request.max_wait_ms, request.min_bytes, request.max_bytes, request.isolation_level = head[:5]
    layout = PARTITION_9 if version >= 9 else PARTITION_5 if version >= 5 else PARTITION_4
    topic_count, pos = read_count(buf, pos, end, 6)
    allowance.take_array(topic_count, _TOPIC_BYTES)
    for _ in range(topic_count):
        topic, pos = read_string(buf, pos, end)
        allowance.left -= getsizeof(topic)
        count, pos = read_count(buf, pos, end, layout.size)
        allowance.take_array(count, _PARTITION_BYTES)
        partitions: list[FetchPartition] = []
        while (left := count - len(partitions)) > 0:
            stop = pos + min(left, PIECE) * layout.size
            partitions += _rows(layout, buf, pos, stop)
            pos = stop
            if allowance.due(pos):
                yield
        request.topics.append((topic, partitions))
        if allowance.due(pos):
            yield
    if version >= 7:
        pos = yield from _forgotten(request, buf, pos, version, end, allowance)
    if version >= 11:
        request.rack_id, pos = read_string(buf, pos, end)
    return pos


def _rows(layout: Struct, buf: HotBuffer, start: int, stop: int) -> list[FetchPartition]:
    rows = layout.iter_unpack(buf[start:stop])
    if layout is PARTITION_9:
        return [(part, epoch, offset, -1, first, most) for part, epoch, offset, first, most in rows]
    if layout is PARTITION_5:
        return [(part, -1, offset, -1, first, most) for part, offset, first, most in rows]
    return [(part, -1, offset, -1, -1, most) for part, offset, most in rows]


def _flexible(
    request: FetchRequest, buf: HotBuffer, pos: int, version: int, end: int, allowance: DecodingAllowance
) -> Steps[int]:
    request.replica_id = -1
    if version < 15:
        (request.replica_id,) = INT32(buf, pos)
        pos += 4
    head = HEAD_15(buf, pos)
    request.max_wait_ms, request.min_bytes, request.max_bytes, request.isolation_level = head[:4]
    request.session_id, request.session_epoch = head[4:]
    topic_count, pos = read_compact_count(buf, pos + 21, end, 3)
    allowance.take_array(topic_count, _TOPIC_BYTES)
    for _ in range(topic_count):
        topic, pos = _topic(buf, pos, version, end)
        allowance.left -= getsizeof(topic)
        if buf[pos] == 2 and buf[pos + PARTITION_12_SIZE] == 0:
            allowance.left -= _PARTITION_BYTES
            partitions: list[FetchPartition] = [PARTITION_12.unpack_from(buf, pos + 1)]
            pos += PARTITION_12_SIZE + 1
        else:
            partitions, pos = yield from _partitions(request, topic, buf, pos, version, end, allowance)
        pos = skip_tags(buf, pos, end)
        request.topics.append((topic, partitions))
        if allowance.due(pos):
            yield
    # Empty ones are passed over without a look at what is left, as the plain parser does.
    pos = pos + 1 if buf[pos] == 1 else (yield from _forgotten(request, buf, pos, version, end, allowance))
    if buf[pos] == 1:
        pos += 1
    else:
        request.rack_id, pos = read_compact_string(buf, pos, end)
    return pos + 1 if buf[pos] == 0 else read_request_tags(request, buf, pos, version, end)


def _topic(buf: HotBuffer, pos: int, version: int, end: int) -> tuple[str | bytes, int]:
    if version >= 13:
        return bytes(buf[pos : pos + 16]), pos + 16
    return read_compact_string(buf, pos, end) if version >= 12 else read_string(buf, pos, end)


def _partitions(
    request: FetchRequest,
    topic: str | bytes,
    buf: HotBuffer,
    pos: int,
    version: int,
    end: int,
    allowance: DecodingAllowance,
) -> Steps[tuple[list[FetchPartition], int]]:
    count, pos = read_compact_count(buf, pos, end, PARTITION_12_SIZE)
    allowance.take_array(count, _PARTITION_BYTES)
    partitions: list[FetchPartition] = []
    while (left := count - len(partitions)) > 0:
        stop = pos + min(left, PIECE) * PARTITION_12_SIZE
        # Tagged fields before this piece may have moved it beyond the frame's end.
        if stop <= end and not any(buf[pos + PARTITION_12_SIZE - 1 : stop : PARTITION_12_SIZE]):
            partitions += PARTITION_12.iter_unpack(buf[pos:stop])
            pos = stop
        else:
            row = PARTITION_12.unpack_from(buf, pos)
            partitions.append(row)
            pos += PARTITION_12_SIZE - 1
            if buf[pos] != 0:
                allowance.take(_TAGGED_BYTES)
            pos = read_partition_tags(request, (topic, row[0]), buf, pos, version=version, end=end)
        if allowance.due(pos):
            yield
    return partitions, pos


def _forgotten(
    request: FetchRequest, buf: HotBuffer, pos: int, version: int, end: int, allowance: DecodingAllowance
) -> Steps[int]:
    flexible = version >= 12
    topic_count, pos = read_compact_count(buf, pos, end, 3) if flexible else read_count(buf, pos, end, 6)
    allowance.take_array(topic_count, _TOPIC_BYTES)
    for _ in range(topic_count):
        topic, pos = _topic(buf, pos, version, end)
        allowance.left -= getsizeof(topic)
        count, pos = read_compact_count(buf, pos, end, 4) if flexible else read_count(buf, pos, end, 4)
        allowance.take_array(count, _NUMBER_BYTES)
        if count > NUMBERS_A_PIECE:
            forgotten, pos = yield from read_many_numbers(buf, pos, count, "i", 4, allowance)
        else:
            forgotten, pos = read_numbers(buf, pos, count, "i", 4)
        request.forgotten.append((topic, forgotten))
        if flexible:
            pos = skip_tags(buf, pos, end)
        if allowance.due(pos):
            yield
    return pos
