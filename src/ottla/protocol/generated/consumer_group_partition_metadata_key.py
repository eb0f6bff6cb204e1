"""Names the consumer group whose topics an older coordinator kept.

Made from schemas/consumer_group_partition_metadata_key.schema by `python -m ottla.protocol.compile`: change that file.
"""

from __future__ import annotations

from collections.abc import Mapping
from struct import Struct

from ottla.protocol.message import Message, bad_bytes, bad_value, not_tagged, undecodable, unencodable
from ottla.protocol.primitives import (
    Buffer,
    DECODE_FAULTS,
    ENCODE_FAULTS,
    NO_TAGS,
    put_string,
    read_string,
)


class ConsumerGroupPartitionMetadataKey(Message):
    __slots__ = ("group_id", "unknown_tags",)
    API_KEY = -1
    MIN_VERSION = 0
    MAX_VERSION = 0
    FLEXIBLE_FROM = None

    def __init__(
        self,
        *,
        group_id: str = "",
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.group_id = group_id
        self.unknown_tags = unknown_tags

    def encode_into(self, out: bytearray, version: int) -> None:
        if not 0 <= version <= 0:
            raise unencodable(ConsumerGroupPartitionMetadataKey, version)
        try:
            _write_consumer_group_partition_metadata_key(out, self, version)
        except ENCODE_FAULTS as fault:
            raise bad_value(ConsumerGroupPartitionMetadataKey, version, fault) from fault

    @classmethod
    def decode(cls, buf: Buffer, version: int, pos: int = 0) -> tuple[ConsumerGroupPartitionMetadataKey, int]:
        if not 0 <= version <= 0:
            raise undecodable(ConsumerGroupPartitionMetadataKey, version)
        try:
            return _read_consumer_group_partition_metadata_key(buf, pos, len(buf), version)
        except DECODE_FAULTS as fault:
            raise bad_bytes(ConsumerGroupPartitionMetadataKey, version, fault) from fault


def _read_consumer_group_partition_metadata_key(buf: Buffer, pos: int, limit: int, version: int) -> tuple[ConsumerGroupPartitionMetadataKey, int]:
    m = object.__new__(ConsumerGroupPartitionMetadataKey)
    m.group_id, pos = read_string(buf, pos, limit)
    m.unknown_tags = NO_TAGS
    return m, pos


def _write_consumer_group_partition_metadata_key(out: bytearray, m: ConsumerGroupPartitionMetadataKey, version: int) -> None:
    put_string(out, m.group_id)
    if m.unknown_tags:
        raise not_tagged(m, version)
