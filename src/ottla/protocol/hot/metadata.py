"""The answer to Metadata, 0 to 13. A topic is encoded by itself, so that its bytes can be kept until it changes.

A version's differences: controller, racks and internal topics from 1, the cluster's id from 2, a throttle time from
3, offline replicas from 5, leader epochs from 7, authorized operations from 8, compact lengths from 9, topic ids from
10, a null name from 12, an error from 13.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from struct import Struct

from ottla.protocol.errors import EncodeError
from ottla.protocol.hot.framing import begin_answer, finish_answer
from ottla.protocol.primitives import (
    ENCODE_FAULTS,
    put_compact_nullable_string,
    put_compact_string,
    put_count,
    put_nullable_string,
    put_string,
    put_uvarint,
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
