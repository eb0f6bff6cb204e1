"""Metadata, 0 to 13. A topic is encoded by itself, so that a broker keeps its bytes until the topic changes.

A version's differences, in the request: null instead of an empty list asks for all topics from 1, auto-creation from
4, authorized operations from 8 (the cluster's until 10), topic ids from 10. In the answer: controller, racks and
internal topics from 1, the cluster's id from 2, a throttle time from 3, offline replicas from 5, leader epochs from 7,
authorized operations from 8, compact lengths from 9, topic ids from 10, a null name from 12, an error from 13.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from struct import Struct

from ottla.protocol.errors import DecodeError, EncodeError
from ottla.protocol.hot.framing import begin_answer, finish_answer, skip_tags
from ottla.protocol.primitives import (
    DECODE_FAULTS,
    ENCODE_FAULTS,
    ZERO_UUID,
    HotBuffer,
    put_compact_nullable_string,
    put_compact_string,
    put_count,
    put_nullable_string,
    put_string,
    put_uvarint,
    read_compact_nullable_count,
    read_compact_nullable_string,
    read_compact_string,
    read_count,
    read_nullable_count,
    read_string,
    uuid_bytes,
)

#: What stands for "not asked" in the authorized operations.
OPERATIONS_UNKNOWN = -(1 << 31)

#: (node id, host, port, rack)
Broker = tuple[int, str, int, str | None]
#: (error code, partition, leader id, leader epoch, replicas, in-sync replicas, offline replicas)
Partition = tuple[int, int, int, int, Sequence[int], Sequence[int], Sequence[int]]

_INT16 = Struct(">h").pack
_INT32 = Struct(">i").pack
_PAIR = Struct(">ii").pack
_PARTITION_0 = Struct(">hii").pack
_PARTITION_7 = Struct(">hiii").pack


class MetadataRequest:
    """One request; each topic is (id or None, name or None), and `topics` is None where all are asked for."""

    __slots__ = (
        "allow_auto_topic_creation",
        "include_cluster_authorized_operations",
        "include_topic_authorized_operations",
        "topics",
    )

    def __init__(self) -> None:
        self.topics: list[tuple[bytes | None, str | None]] | None = None
        self.allow_auto_topic_creation = True
        self.include_cluster_authorized_operations = False
        self.include_topic_authorized_operations = False


def parse_metadata(buf: HotBuffer, pos: int, version: int, end: int | None = None) -> MetadataRequest:
    """Reads a request's body, which begins at `pos` and ends at `end` (or with `buf`); the rest is passed over."""
    if not 0 <= version <= 13:
        raise DecodeError(f"MetadataRequest has no version {version}")
    if end is None:
        end = len(buf)
    request = MetadataRequest()
    try:
        pos = _flexible(request, buf, pos, version, end) if version >= 9 else _plain(request, buf, pos, version, end)
        if version >= 4:
            request.allow_auto_topic_creation = buf[pos] != 0
            pos += 1
        if 8 <= version <= 10:
            request.include_cluster_authorized_operations = buf[pos] != 0
            pos += 1
        if version >= 8:
            request.include_topic_authorized_operations = buf[pos] != 0
            pos += 1
        if version >= 9:
            pos = skip_tags(buf, pos, end)
    except DECODE_FAULTS as fault:
        raise DecodeError(f"these bytes are no MetadataRequest of version {version}: {fault}") from fault
    if pos > end:
        raise DecodeError(f"a MetadataRequest that ends at {pos} in a frame that ends at {end}")
    return request


def _plain(request: MetadataRequest, buf: HotBuffer, pos: int, version: int, end: int) -> int:
    if version == 0:
        count, pos = read_count(buf, pos, end, 2)
    else:
        count, pos = read_nullable_count(buf, pos, end, 2)
    # In version 0, which knows no null, an empty list asks for all.
    if count < 0 or (count == 0 and version == 0):
        return pos
    request.topics = topics = []
    for _ in range(count):
        name, pos = read_string(buf, pos, end)
        topics.append((None, name))
    return pos


def _flexible(request: MetadataRequest, buf: HotBuffer, pos: int, version: int, end: int) -> int:
    count, pos = read_compact_nullable_count(buf, pos, end, 2)
    if count < 0:
        return pos
    request.topics = topics = []
    name: str | None
    for _ in range(count):
        topic_id = None
        if version >= 10:
            if pos + 16 > end:
                raise DecodeError("a topic id is cut short")
            topic_id = bytes(buf[pos : pos + 16])
            if topic_id == ZERO_UUID:
                topic_id = None
            name, pos = read_compact_nullable_string(buf, pos + 16, end)
        else:
            name, pos = read_compact_string(buf, pos, end)
        pos = skip_tags(buf, pos, end)
        topics.append((topic_id, name))
    return pos


def encode_metadata_topic(
    version: int,
    error: int,
    name: str | None,
    topic_id: bytes,
    partitions: Iterable[Partition],
    *,
    internal: bool = False,
    operations: int = OPERATIONS_UNKNOWN,
) -> bytes:
    """One topic's part of the answer."""
    out = bytearray(_INT16(error))
    rows = list(partitions)
    try:
        if version >= 9:
            _topic_head_flexible(out, version, name, topic_id, internal=internal)
            put_uvarint(out, len(rows) + 1)
            for code, partition, leader, epoch, replicas, in_sync, offline in rows:
                out += _PARTITION_7(code, partition, leader, epoch)
                for nodes in (replicas, in_sync, offline):
                    put_uvarint(out, len(nodes) + 1)
                    for node in nodes:
                        out += _INT32(node)
                out.append(0)
            out += _INT32(operations)
            out.append(0)
            return bytes(out)
        if name is None:
            raise EncodeError(f"version {version} of MetadataResponse needs a topic's name")
        put_string(out, name)
        if version >= 1:
            out.append(1 if internal else 0)
        put_count(out, len(rows))
        for code, partition, leader, epoch, replicas, in_sync, offline in rows:
            out += (
                _PARTITION_7(code, partition, leader, epoch) if version >= 7 else _PARTITION_0(code, partition, leader)
            )
            for nodes in (replicas, in_sync, offline) if version >= 5 else (replicas, in_sync):
                put_count(out, len(nodes))
                for node in nodes:
                    out += _INT32(node)
        if version >= 8:
            out += _INT32(operations)
    except ENCODE_FAULTS as fault:
        raise EncodeError(f"a topic that version {version} of MetadataResponse cannot say: {fault}") from fault
    return bytes(out)


def _topic_head_flexible(out: bytearray, version: int, name: str | None, topic_id: bytes, *, internal: bool) -> None:
    if version >= 12:
        put_compact_nullable_string(out, name)
    elif name is None:
        raise EncodeError(f"version {version} of MetadataResponse needs a topic's name")
    else:
        put_compact_string(out, name)
    if version >= 10:
        out += uuid_bytes(topic_id)
    out.append(1 if internal else 0)


def encode_metadata_response(
    version: int,
    brokers: Sequence[Broker],
    cluster_id: str | None,
    controller_id: int,
    topics: Sequence[bytes],
    *,
    throttle_ms: int = 0,
    operations: int = OPERATIONS_UNKNOWN,
    error: int = 0,
    correlation_id: int | None = None,
    topic_count: int | None = None,
) -> bytes:
    """The answer's body from topics as `encode_metadata_topic` made them; with a correlation id the whole frame.

    Several topics may be in one byte string: then `topic_count` says how many there are in all.
    """
    if not 0 <= version <= 13:
        raise EncodeError(f"MetadataResponse has no version {version}")
    flexible = version >= 9
    out = begin_answer(correlation_id, flexible=flexible)
    try:
        if version >= 3:
            out += _INT32(throttle_ms)
        _put_brokers(out, version, brokers)
        if flexible:
            put_compact_nullable_string(out, cluster_id)
        elif version >= 2:
            put_nullable_string(out, cluster_id)
        if version >= 1:
            out += _INT32(controller_id)
        count = len(topics) if topic_count is None else topic_count
        if flexible:
            put_uvarint(out, count + 1)
        else:
            put_count(out, count)
        out += b"".join(topics)
        if 8 <= version <= 10:
            out += _INT32(operations)
        if version >= 13:
            out += _INT16(error)
        if flexible:
            out.append(0)
    except ENCODE_FAULTS as fault:
        raise EncodeError(f"an answer that version {version} of MetadataResponse cannot say: {fault}") from fault
    return finish_answer(out, correlation_id)


def _put_brokers(out: bytearray, version: int, brokers: Sequence[Broker]) -> None:
    if version >= 9:
        put_uvarint(out, len(brokers) + 1)
    else:
        put_count(out, len(brokers))
    for node_id, host, port, rack in brokers:
        out += _INT32(node_id)
        if version >= 9:
            put_compact_string(out, host)
            out += _INT32(port)
            put_compact_nullable_string(out, rack)
            out.append(0)
        else:
            put_string(out, host)
            out += _INT32(port)
            if version >= 1:
                put_nullable_string(out, rack)
