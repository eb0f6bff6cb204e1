"""Fetch, 4 to 18: the request as light tuples, the answer as pieces with gaps where `sendfile` puts the records.

A version's differences: the log's start from 5, sessions from 7, the leader's epoch from 9, the rack from 11, compact
lengths, tagged fields and the last fetched epoch from 12, topic ids instead of names from 13, the replica's state as
a tagged field from 15, its directory from 17, its high watermark from 18.
"""

from __future__ import annotations

from struct import Struct

from ottla.protocol.errors import DecodeError
from ottla.protocol.primitives import (
    DECODE_FAULTS,
    HotBuffer,
    read_compact_count,
    read_compact_nullable_string,
    read_compact_string,
    read_count,
    read_numbers,
    read_string,
    read_tag,
    read_tag_count,
    skip_tags,
)

#: (partition, current leader epoch, fetch offset, last fetched epoch, log start offset, partition max bytes)
FetchPartition = tuple[int, int, int, int, int, int]

HEAD_4 = Struct(">iiiib").unpack_from
HEAD_7 = Struct(">iiiibii").unpack_from
HEAD_15 = Struct(">iiibii").unpack_from
_REPLICA_STATE = Struct(">iq").unpack_from
INT32 = Struct(">i").unpack_from
_INT64 = Struct(">q").unpack_from
PARTITION_4 = Struct(">iqi")
PARTITION_5 = Struct(">iqqi")
PARTITION_9 = Struct(">iiqqi")
#: One more byte: the partition's tagged fields, nearly always none.
PARTITION_12 = Struct(">iiqiqix")
PARTITION_12_SIZE = PARTITION_12.size


class FetchRequest:
    """One request; topics are (name, or id from version 13 on; partitions)."""

    __slots__ = (
        "cluster_id",
        "directories",
        "end",
        "forgotten",
        "high_watermarks",
        "isolation_level",
        "max_bytes",
        "max_wait_ms",
        "min_bytes",
        "rack_id",
        "replica_epoch",
        "replica_id",
        "session_epoch",
        "session_id",
        "topics",
    )

    #: -1 for a consumer.
    replica_id: int
    replica_epoch: int
    max_wait_ms: int
    min_bytes: int
    max_bytes: int
    isolation_level: int
    session_id: int
    #: -1: no session; 0: a new one.
    session_epoch: int

    def __init__(self) -> None:
        # The fields above are set by the parser, each once.
        self.cluster_id: str | None = None
        #: Where it ends; bytes behind it are passed over. -1: nobody knows.
        self.end = -1
        self.replica_epoch = -1
        self.topics: list[tuple[str | bytes, list[FetchPartition]]] = []
        self.forgotten: list[tuple[str | bytes, list[int]]] = []
        self.rack_id = ""
        #: What followers add from versions 17 and 18 on, by (topic, partition); None where there is nothing.
        self.directories: dict[tuple[str | bytes, int], bytes] | None = None
        self.high_watermarks: dict[tuple[str | bytes, int], int] | None = None


def parse_fetch(buf: HotBuffer, pos: int, version: int, end: int | None = None) -> FetchRequest:
    """Reads a request's body, which begins at `pos` and ends at `end` (or with `buf`); the rest is passed over."""
    if not 4 <= version <= 18:
        raise DecodeError(f"FetchRequest has no version {version}")
    if end is None:
        end = len(buf)
    request = FetchRequest()
    try:
        pos = _flexible(request, buf, pos, version, end) if version >= 12 else _plain(request, buf, pos, version, end)
    except DECODE_FAULTS as fault:
        raise DecodeError(f"these bytes are no FetchRequest of version {version}: {fault}") from fault
    if pos > end:
        raise DecodeError(f"a FetchRequest that ends at {pos} in a frame that ends at {end}")
    request.end = pos
    return request


def _plain(request: FetchRequest, buf: HotBuffer, pos: int, version: int, end: int) -> int:
    if version >= 7:
        (
            request.replica_id,
            request.max_wait_ms,
            request.min_bytes,
            request.max_bytes,
            request.isolation_level,
            request.session_id,
            request.session_epoch,
        ) = HEAD_7(buf, pos)
        pos += 25
    else:
        (
            request.replica_id,
            request.max_wait_ms,
            request.min_bytes,
            request.max_bytes,
            request.isolation_level,
        ) = HEAD_4(buf, pos)
        request.session_id = 0
        request.session_epoch = -1
        pos += 17
    layout = PARTITION_9 if version >= 9 else PARTITION_5 if version >= 5 else PARTITION_4
    topic_count, pos = read_count(buf, pos, end, 6)
    for _ in range(topic_count):
        topic, pos = read_string(buf, pos, end)
        count, pos = read_count(buf, pos, end, layout.size)
        start = pos
        pos += count * layout.size
        rows = layout.iter_unpack(buf[start:pos])
        if version >= 9:
            partitions = [(part, epoch, offset, -1, first, most) for part, epoch, offset, first, most in rows]
        elif version >= 5:
            partitions = [(part, -1, offset, -1, first, most) for part, offset, first, most in rows]
        else:
            partitions = [(part, -1, offset, -1, -1, most) for part, offset, most in rows]
        request.topics.append((topic, partitions))
    if version >= 7:
        forgotten_count, pos = read_count(buf, pos, end, 6)
        for _ in range(forgotten_count):
            topic, pos = read_string(buf, pos, end)
            count, pos = read_count(buf, pos, end, 4)
            forgotten, pos = read_numbers(buf, pos, count, "i", 4)
            request.forgotten.append((topic, forgotten))
    if version >= 11:
        request.rack_id, pos = read_string(buf, pos, end)
    return pos


def _flexible(request: FetchRequest, buf: HotBuffer, pos: int, version: int, end: int) -> int:
    if version < 15:
        (request.replica_id,) = INT32(buf, pos)
        pos += 4
    else:
        request.replica_id = -1
    (
        request.max_wait_ms,
        request.min_bytes,
        request.max_bytes,
        request.isolation_level,
        request.session_id,
        request.session_epoch,
    ) = HEAD_15(buf, pos)
    topic_count, pos = read_compact_count(buf, pos + 21, end, 3)
    for _ in range(topic_count):
        topic: str | bytes
        if version >= 13:
            topic = bytes(buf[pos : pos + 16])
            pos += 16
        else:
            topic, pos = read_compact_string(buf, pos, end)
        if buf[pos] == 2 and buf[pos + PARTITION_12_SIZE] == 0:
            request.topics.append((topic, [PARTITION_12.unpack_from(buf, pos + 1)]))
            pos = skip_tags(buf, pos + PARTITION_12_SIZE + 1, end)
            continue
        count, pos = read_compact_count(buf, pos, end, PARTITION_12_SIZE)
        stop = pos + count * PARTITION_12_SIZE
        # Where no partition has tagged fields, which is the rule, all are read at once.
        if not any(buf[pos + PARTITION_12_SIZE - 1 : stop : PARTITION_12_SIZE]):
            partitions: list[FetchPartition] = list(PARTITION_12.iter_unpack(buf[pos:stop]))
            pos = stop
        else:
            partitions = []
            for _ in range(count):
                row = PARTITION_12.unpack_from(buf, pos)
                partitions.append(row)
                pos = read_partition_tags(
                    request, (topic, row[0]), buf, pos + PARTITION_12_SIZE - 1, version=version, end=end
                )
        pos = skip_tags(buf, pos, end)
        request.topics.append((topic, partitions))
    pos = pos + 1 if buf[pos] == 1 else _forgotten(request, buf, pos, version, end)
    if buf[pos] == 1:
        pos += 1
    else:
        request.rack_id, pos = read_compact_string(buf, pos, end)
    return pos + 1 if buf[pos] == 0 else read_request_tags(request, buf, pos, version, end)


def _forgotten(request: FetchRequest, buf: HotBuffer, pos: int, version: int, end: int) -> int:
    topic_count, pos = read_compact_count(buf, pos, end, 3)
    for _ in range(topic_count):
        topic: str | bytes
        if version >= 13:
            topic = bytes(buf[pos : pos + 16])
            pos += 16
        else:
            topic, pos = read_compact_string(buf, pos, end)
        count, pos = read_compact_count(buf, pos, end, 4)
        forgotten, pos = read_numbers(buf, pos, count, "i", 4)
        request.forgotten.append((topic, forgotten))
        pos = skip_tags(buf, pos, end)
    return pos


def read_partition_tags(
    request: FetchRequest, where: tuple[str | bytes, int], buf: HotBuffer, pos: int, *, version: int, end: int
) -> int:
    count, pos = read_tag_count(buf, pos, end)
    for _ in range(count):
        tag, start, pos = read_tag(buf, pos, end)
        if tag == 0:
            if version < 17 or pos - start != 16:
                raise DecodeError(f"a directory id of {pos - start} bytes in version {version}")
            if request.directories is None:
                request.directories = {}
            request.directories[where] = bytes(buf[start:pos])
        elif tag == 1:
            if version < 18 or pos - start != 8:
                raise DecodeError(f"a high watermark of {pos - start} bytes in version {version}")
            if request.high_watermarks is None:
                request.high_watermarks = {}
            (request.high_watermarks[where],) = _INT64(buf, start)
    return pos


def read_request_tags(request: FetchRequest, buf: HotBuffer, pos: int, version: int, end: int) -> int:
    count, pos = read_tag_count(buf, pos, end)
    for _ in range(count):
        tag, start, pos = read_tag(buf, pos, end)
        if tag == 0:
            request.cluster_id, stop = read_compact_nullable_string(buf, start, pos)
            if stop != pos:
                raise DecodeError("a cluster id has another size than its tag says")
        elif tag == 1:
            if version < 15:
                raise DecodeError(f"version {version} has no replica state")
            request.replica_id, request.replica_epoch = _REPLICA_STATE(buf, start)
            if skip_tags(buf, start + 12, pos) != pos:
                raise DecodeError("a replica state has another size than its tag says")
    return pos
