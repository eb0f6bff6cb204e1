"""The topics of a consumer group, as coordinators before Kafka 4.1 kept them.

In steps; made from schemas/consumer_group_partition_metadata_value.schema by `python -m ottla.protocol.compile`.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct
from sys import getsizeof
from typing import Any

from ottla.protocol.generated.consumer_group_partition_metadata_value import (
    ConsumerGroupPartitionMetadataValue,
    PartitionMetadata,
    TopicMetadata,
)
from ottla.protocol.message import Message
from ottla.protocol.primitives import (
    Buffer,
    NO_TAGS,
    put_compact_count,
    put_compact_string,
    put_tags,
    put_uuid,
    read_compact_count,
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
_unpack_u = Struct(">16s").unpack_from


def _read_partition_metadata_held(buf: Buffer, pos: int, limit: int, version: int, allowance: DecodingAllowance) -> Steps[tuple[PartitionMetadata, int]]:
    m = object.__new__(PartitionMetadata)
    (m.partition,) = _unpack_i(buf, pos)
    pos += 4
    count, pos = read_compact_count(buf, pos, limit, 1)
    allowance.take_array(count, 304)
    m.racks, pos = yield from read_strings(read_compact_string, buf, pos, limit, count, allowance)
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
        allowance.take_tags(m.unknown_tags)
    return m, pos


def _write_partition_metadata_steps(out: bytearray, m: PartitionMetadata, version: int, pace: Pace) -> Steps[None]:
    out += _pack_i(m.partition)
    put_compact_count(out, len(m.racks))
    yield from write_strings(out, m.racks, put_compact_string, pace)
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)


def _read_topic_metadata_held(buf: Buffer, pos: int, limit: int, version: int, allowance: DecodingAllowance) -> Steps[tuple[TopicMetadata, int]]:
    m = object.__new__(TopicMetadata)
    (m.topic_id,) = _unpack_u(buf, pos)
    pos += 16
    m.topic_name, pos = read_compact_string(buf, pos, limit)
    allowance.left -= getsizeof(m.topic_name)
    (m.num_partitions,) = _unpack_i(buf, pos)
    pos += 4
    count, pos = read_compact_count(buf, pos, limit, 6)
    allowance.take_array(count, 224)
    partition_metadata_: list[PartitionMetadata] = []
    for _ in range(count):
        partition_metadata_item, pos = yield from _read_partition_metadata_held(buf, pos, limit, version, allowance)
        partition_metadata_.append(partition_metadata_item)
        if allowance.due(pos):
            yield
    m.partition_metadata = partition_metadata_
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
        allowance.take_tags(m.unknown_tags)
    return m, pos


def _write_topic_metadata_steps(out: bytearray, m: TopicMetadata, version: int, pace: Pace) -> Steps[None]:
    put_uuid(out, m.topic_id)
    put_compact_string(out, m.topic_name)
    out += _pack_i(m.num_partitions)
    put_compact_count(out, len(m.partition_metadata))
    for partition_metadata_item in m.partition_metadata:
        yield from _write_partition_metadata_steps(out, partition_metadata_item, version, pace)
        if pace.due():
            yield
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)


def _read_consumer_group_partition_metadata_value_held(buf: Buffer, pos: int, limit: int, version: int, allowance: DecodingAllowance) -> Steps[tuple[ConsumerGroupPartitionMetadataValue, int]]:
    m = object.__new__(ConsumerGroupPartitionMetadataValue)
    count, pos = read_compact_count(buf, pos, limit, 23)
    allowance.take_array(count, 256)
    topics_: list[TopicMetadata] = []
    for _ in range(count):
        topics_item, pos = yield from _read_topic_metadata_held(buf, pos, limit, version, allowance)
        topics_.append(topics_item)
        if allowance.due(pos):
            yield
    m.topics = topics_
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
        allowance.take_tags(m.unknown_tags)
    return m, pos


def _write_consumer_group_partition_metadata_value_steps(out: bytearray, m: ConsumerGroupPartitionMetadataValue, version: int, pace: Pace) -> Steps[None]:
    put_compact_count(out, len(m.topics))
    for topics_item in m.topics:
        yield from _write_topic_metadata_steps(out, topics_item, version, pace)
        if pace.due():
            yield
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)


READERS: dict[type[Message], Callable[..., Steps[Any]]] = {
    ConsumerGroupPartitionMetadataValue: _read_consumer_group_partition_metadata_value_held,
}

WRITERS: dict[type[Message], Callable[..., Steps[Any]]] = {
    ConsumerGroupPartitionMetadataValue: _write_consumer_group_partition_metadata_value_steps,
}
