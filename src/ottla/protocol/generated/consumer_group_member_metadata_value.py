"""A member of a consumer group and what it subscribed to.

Made from schemas/consumer_group_member_metadata_value.schema by `python -m ottla.protocol.compile`: change that file.
"""

from __future__ import annotations

from collections.abc import Mapping
from struct import Struct

from ottla.protocol.message import Message, bad_bytes, bad_value, undecodable, unencodable
from ottla.protocol.primitives import (
    Buffer,
    DECODE_FAULTS,
    EMPTY_LIST,
    ENCODE_FAULTS,
    NO_TAGS,
    put_compact_count,
    put_compact_nullable_string,
    put_compact_string,
    put_tags,
    read_compact_count,
    read_compact_nullable_string,
    read_compact_string,
    read_tags,
)

_pack_i = Struct(">i").pack
_unpack_i = Struct(">i").unpack_from

class ConsumerGroupMemberMetadataValue(Message):
    __slots__ = ("instance_id", "rack_id", "client_id", "client_host", "subscribed_topic_names", "subscribed_topic_regex", "rebalance_timeout_ms", "server_assignor", "unknown_tags",)
    API_KEY = -1
    MIN_VERSION = 0
    MAX_VERSION = 0
    FLEXIBLE_FROM = 0
    HAS_ARRAYS = True

    def __init__(
        self,
        *,
        instance_id: str | None = None,
        rack_id: str | None = None,
        client_id: str = "",
        client_host: str = "",
        subscribed_topic_names: list[str] = EMPTY_LIST,
        subscribed_topic_regex: str | None = None,
        rebalance_timeout_ms: int = -1,
        server_assignor: str | None = None,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.instance_id = instance_id
        self.rack_id = rack_id
        self.client_id = client_id
        self.client_host = client_host
        self.subscribed_topic_names = [] if subscribed_topic_names is EMPTY_LIST else subscribed_topic_names
        self.subscribed_topic_regex = subscribed_topic_regex
        self.rebalance_timeout_ms = rebalance_timeout_ms
        self.server_assignor = server_assignor
        self.unknown_tags = unknown_tags

    def encode_into(self, out: bytearray, version: int) -> None:
        if not 0 <= version <= 0:
            raise unencodable(ConsumerGroupMemberMetadataValue, version)
        try:
            _write_consumer_group_member_metadata_value(out, self, version)
        except ENCODE_FAULTS as fault:
            raise bad_value(ConsumerGroupMemberMetadataValue, version, fault) from fault

    @classmethod
    def decode(cls, buf: Buffer, version: int, pos: int = 0) -> tuple[ConsumerGroupMemberMetadataValue, int]:
        if not 0 <= version <= 0:
            raise undecodable(ConsumerGroupMemberMetadataValue, version)
        try:
            return _read_consumer_group_member_metadata_value(buf, pos, len(buf), version)
        except DECODE_FAULTS as fault:
            raise bad_bytes(ConsumerGroupMemberMetadataValue, version, fault) from fault


def _read_consumer_group_member_metadata_value(buf: Buffer, pos: int, limit: int, version: int) -> tuple[ConsumerGroupMemberMetadataValue, int]:
    m = object.__new__(ConsumerGroupMemberMetadataValue)
    m.instance_id, pos = read_compact_nullable_string(buf, pos, limit)
    m.rack_id, pos = read_compact_nullable_string(buf, pos, limit)
    m.client_id, pos = read_compact_string(buf, pos, limit)
    m.client_host, pos = read_compact_string(buf, pos, limit)
    count, pos = read_compact_count(buf, pos, limit, 1)
    read_subscribed_topic_names = read_compact_string
    subscribed_topic_names_: list[str] = []
    for _ in range(count):
        subscribed_topic_names_item, pos = read_subscribed_topic_names(buf, pos, limit)
        subscribed_topic_names_.append(subscribed_topic_names_item)
    m.subscribed_topic_names = subscribed_topic_names_
    m.subscribed_topic_regex, pos = read_compact_nullable_string(buf, pos, limit)
    (m.rebalance_timeout_ms,) = _unpack_i(buf, pos)
    pos += 4
    m.server_assignor, pos = read_compact_nullable_string(buf, pos, limit)
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
    return m, pos


def _write_consumer_group_member_metadata_value(out: bytearray, m: ConsumerGroupMemberMetadataValue, version: int) -> None:
    put_compact_nullable_string(out, m.instance_id)
    put_compact_nullable_string(out, m.rack_id)
    put_compact_string(out, m.client_id)
    put_compact_string(out, m.client_host)
    put_compact_count(out, len(m.subscribed_topic_names))
    put_subscribed_topic_names = put_compact_string
    for subscribed_topic_names_item in m.subscribed_topic_names:
        put_subscribed_topic_names(out, subscribed_topic_names_item)
    put_compact_nullable_string(out, m.subscribed_topic_regex)
    out += _pack_i(m.rebalance_timeout_ms)
    put_compact_nullable_string(out, m.server_assignor)
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)
