"""What a member of a classic consumer group says of itself when it joins: the metadata of each protocol in JoinGroup.

Made from schemas/consumer_protocol_subscription.schema by `python -m ottla.protocol.compile`: change that file.
"""

from __future__ import annotations

from collections.abc import Mapping
from struct import Struct

from ottla.protocol.message import Message, Structure, bad_bytes, bad_value, not_tagged, undecodable, unencodable
from ottla.protocol.primitives import (
    Buffer,
    DECODE_FAULTS,
    EMPTY_LIST,
    ENCODE_FAULTS,
    NO_TAGS,
    put_count,
    put_nullable_bytes,
    put_nullable_string,
    put_numbers,
    put_string,
    read_count,
    read_nullable_bytes,
    read_nullable_string,
    read_numbers,
    read_string,
)

_pack_i = Struct(">i").pack
_unpack_i = Struct(">i").unpack_from

class OwnedPartitions(Structure):
    __slots__ = ("topic", "partitions", "unknown_tags",)

    def __init__(
        self,
        *,
        topic: str = "",
        partitions: list[int] = EMPTY_LIST,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.topic = topic
        self.partitions = [] if partitions is EMPTY_LIST else partitions
        self.unknown_tags = unknown_tags


class ConsumerProtocolSubscription(Message):
    __slots__ = ("topics", "user_data", "owned_partitions", "generation_id", "rack_id", "unknown_tags",)
    API_KEY = -1
    MIN_VERSION = 0
    MAX_VERSION = 3
    FLEXIBLE_FROM = None
    HAS_ARRAYS = True

    def __init__(
        self,
        *,
        topics: list[str] = EMPTY_LIST,
        user_data: Buffer | None = None,
        owned_partitions: list[OwnedPartitions] = EMPTY_LIST,
        generation_id: int = -1,
        rack_id: str | None = None,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.topics = [] if topics is EMPTY_LIST else topics
        self.user_data = user_data
        self.owned_partitions = [] if owned_partitions is EMPTY_LIST else owned_partitions
        self.generation_id = generation_id
        self.rack_id = rack_id
        self.unknown_tags = unknown_tags

    def encode_into(self, out: bytearray, version: int) -> None:
        if not 0 <= version <= 3:
            raise unencodable(ConsumerProtocolSubscription, version)
        try:
            _write_consumer_protocol_subscription(out, self, version)
        except ENCODE_FAULTS as fault:
            raise bad_value(ConsumerProtocolSubscription, version, fault) from fault

    @classmethod
    def decode(cls, buf: Buffer, version: int, pos: int = 0) -> tuple[ConsumerProtocolSubscription, int]:
        if not 0 <= version <= 3:
            raise undecodable(ConsumerProtocolSubscription, version)
        try:
            return _read_consumer_protocol_subscription(buf, pos, len(buf), version)
        except DECODE_FAULTS as fault:
            raise bad_bytes(ConsumerProtocolSubscription, version, fault) from fault


def _read_owned_partitions(buf: Buffer, pos: int, limit: int, version: int) -> tuple[OwnedPartitions, int]:
    m = object.__new__(OwnedPartitions)
    m.topic, pos = read_string(buf, pos, limit)
    count, pos = read_count(buf, pos, limit, 4)
    m.partitions, pos = read_numbers(buf, pos, count, "i", 4)
    m.unknown_tags = NO_TAGS
    return m, pos


def _write_owned_partitions(out: bytearray, m: OwnedPartitions, version: int) -> None:
    put_string(out, m.topic)
    put_count(out, len(m.partitions))
    put_numbers(out, m.partitions, "i")
    if m.unknown_tags:
        raise not_tagged(m, version)


def _read_consumer_protocol_subscription(buf: Buffer, pos: int, limit: int, version: int) -> tuple[ConsumerProtocolSubscription, int]:
    m = object.__new__(ConsumerProtocolSubscription)
    count, pos = read_count(buf, pos, limit, 1)
    read_topics = read_string
    topics_: list[str] = []
    for _ in range(count):
        topics_item, pos = read_topics(buf, pos, limit)
        topics_.append(topics_item)
    m.topics = topics_
    m.user_data, pos = read_nullable_bytes(buf, pos, limit)
    if version >= 1:
        count, pos = read_count(buf, pos, limit, 6)
        owned_partitions_: list[OwnedPartitions] = []
        for _ in range(count):
            owned_partitions_item, pos = _read_owned_partitions(buf, pos, limit, version)
            owned_partitions_.append(owned_partitions_item)
        m.owned_partitions = owned_partitions_
    else:
        m.owned_partitions = []
    if version >= 2:
        (m.generation_id,) = _unpack_i(buf, pos)
        pos += 4
    else:
        m.generation_id = -1
    if version >= 3:
        m.rack_id, pos = read_nullable_string(buf, pos, limit)
    else:
        m.rack_id = None
    m.unknown_tags = NO_TAGS
    return m, pos


def _write_consumer_protocol_subscription(out: bytearray, m: ConsumerProtocolSubscription, version: int) -> None:
    put_count(out, len(m.topics))
    put_topics = put_string
    for topics_item in m.topics:
        put_topics(out, topics_item)
    put_nullable_bytes(out, m.user_data)
    if version >= 1:
        put_count(out, len(m.owned_partitions))
        for owned_partitions_item in m.owned_partitions:
            _write_owned_partitions(out, owned_partitions_item, version)
    if version >= 2:
        out += _pack_i(m.generation_id)
    if version >= 3:
        put_nullable_string(out, m.rack_id)
    if m.unknown_tags:
        raise not_tagged(m, version)
