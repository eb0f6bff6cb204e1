"""The topics of a consumer group, as coordinators before Kafka 4.1 kept them.

Made from schemas/consumer_group_partition_metadata_value.schema by `python -m ottla.protocol.compile`: change that file.
"""

from __future__ import annotations

from collections.abc import Mapping
from struct import Struct

from ottla.protocol.message import Message, Structure, bad_bytes, bad_value, undecodable, unencodable
from ottla.protocol.primitives import (
    Buffer,
    DECODE_FAULTS,
    EMPTY_LIST,
    ENCODE_FAULTS,
    NO_TAGS,
    ZERO_UUID,
    put_compact_count,
    put_compact_string,
    put_tags,
    put_uuid,
    read_compact_count,
    read_compact_string,
    read_tags,
)

_pack_i = Struct(">i").pack
_unpack_i = Struct(">i").unpack_from
_unpack_u = Struct(">16s").unpack_from

class PartitionMetadata(Structure):
    __slots__ = ("partition", "racks", "unknown_tags",)

    def __init__(
        self,
        *,
        partition: int = 0,
        racks: list[str] = EMPTY_LIST,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.partition = partition
        self.racks = [] if racks is EMPTY_LIST else racks
        self.unknown_tags = unknown_tags


class TopicMetadata(Structure):
    __slots__ = ("topic_id", "topic_name", "num_partitions", "partition_metadata", "unknown_tags",)

    def __init__(
        self,
        *,
        topic_id: bytes = ZERO_UUID,
        topic_name: str = "",
        num_partitions: int = 0,
        partition_metadata: list[PartitionMetadata] = EMPTY_LIST,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.topic_id = topic_id
        self.topic_name = topic_name
        self.num_partitions = num_partitions
        self.partition_metadata = [] if partition_metadata is EMPTY_LIST else partition_metadata
        self.unknown_tags = unknown_tags


class ConsumerGroupPartitionMetadataValue(Message):
    __slots__ = ("topics", "unknown_tags",)
    API_KEY = -1
    MIN_VERSION = 0
    MAX_VERSION = 0
    FLEXIBLE_FROM = 0
    HAS_ARRAYS = True

    def __init__(
        self,
        *,
        topics: list[TopicMetadata] = EMPTY_LIST,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.topics = [] if topics is EMPTY_LIST else topics
        self.unknown_tags = unknown_tags

    def encode_into(self, out: bytearray, version: int) -> None:
        if not 0 <= version <= 0:
            raise unencodable(ConsumerGroupPartitionMetadataValue, version)
        try:
            _write_consumer_group_partition_metadata_value(out, self, version)
        except ENCODE_FAULTS as fault:
            raise bad_value(ConsumerGroupPartitionMetadataValue, version, fault) from fault

    @classmethod
    def decode(cls, buf: Buffer, version: int, pos: int = 0) -> tuple[ConsumerGroupPartitionMetadataValue, int]:
        if not 0 <= version <= 0:
            raise undecodable(ConsumerGroupPartitionMetadataValue, version)
        try:
            return _read_consumer_group_partition_metadata_value(buf, pos, len(buf), version)
        except DECODE_FAULTS as fault:
            raise bad_bytes(ConsumerGroupPartitionMetadataValue, version, fault) from fault


def _read_partition_metadata(buf: Buffer, pos: int, limit: int, version: int) -> tuple[PartitionMetadata, int]:
    m = object.__new__(PartitionMetadata)
    (m.partition,) = _unpack_i(buf, pos)
    pos += 4
    count, pos = read_compact_count(buf, pos, limit, 1)
    read_racks = read_compact_string
    racks_: list[str] = []
    for _ in range(count):
        racks_item, pos = read_racks(buf, pos, limit)
        racks_.append(racks_item)
    m.racks = racks_
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
    return m, pos


def _write_partition_metadata(out: bytearray, m: PartitionMetadata, version: int) -> None:
    out += _pack_i(m.partition)
    put_compact_count(out, len(m.racks))
    put_racks = put_compact_string
    for racks_item in m.racks:
        put_racks(out, racks_item)
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)


def _read_topic_metadata(buf: Buffer, pos: int, limit: int, version: int) -> tuple[TopicMetadata, int]:
    m = object.__new__(TopicMetadata)
    (m.topic_id,) = _unpack_u(buf, pos)
    pos += 16
    m.topic_name, pos = read_compact_string(buf, pos, limit)
    (m.num_partitions,) = _unpack_i(buf, pos)
    pos += 4
    count, pos = read_compact_count(buf, pos, limit, 6)
    partition_metadata_: list[PartitionMetadata] = []
    for _ in range(count):
        partition_metadata_item, pos = _read_partition_metadata(buf, pos, limit, version)
        partition_metadata_.append(partition_metadata_item)
    m.partition_metadata = partition_metadata_
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
    return m, pos


def _write_topic_metadata(out: bytearray, m: TopicMetadata, version: int) -> None:
    put_uuid(out, m.topic_id)
    put_compact_string(out, m.topic_name)
    out += _pack_i(m.num_partitions)
    put_compact_count(out, len(m.partition_metadata))
    for partition_metadata_item in m.partition_metadata:
        _write_partition_metadata(out, partition_metadata_item, version)
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)


def _read_consumer_group_partition_metadata_value(buf: Buffer, pos: int, limit: int, version: int) -> tuple[ConsumerGroupPartitionMetadataValue, int]:
    m = object.__new__(ConsumerGroupPartitionMetadataValue)
    count, pos = read_compact_count(buf, pos, limit, 23)
    topics_: list[TopicMetadata] = []
    for _ in range(count):
        topics_item, pos = _read_topic_metadata(buf, pos, limit, version)
        topics_.append(topics_item)
    m.topics = topics_
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
    return m, pos


def _write_consumer_group_partition_metadata_value(out: bytearray, m: ConsumerGroupPartitionMetadataValue, version: int) -> None:
    put_compact_count(out, len(m.topics))
    for topics_item in m.topics:
        _write_topic_metadata(out, topics_item, version)
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)
