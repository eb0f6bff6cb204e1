"""The topics that a regular expression stood for when it was last looked at.

Made from schemas/consumer_group_regular_expression_value.schema by `python -m ottla.protocol.compile`: change that file.
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
    put_compact_string,
    put_tags,
    read_compact_count,
    read_compact_string,
    read_tags,
)

_pack_qq = Struct(">qq").pack
_unpack_qq = Struct(">qq").unpack_from

class ConsumerGroupRegularExpressionValue(Message):
    __slots__ = ("topics", "version", "timestamp", "unknown_tags",)
    API_KEY = -1
    MIN_VERSION = 0
    MAX_VERSION = 0
    FLEXIBLE_FROM = 0
    HAS_ARRAYS = True

    def __init__(
        self,
        *,
        topics: list[str] = EMPTY_LIST,
        version: int = 0,
        timestamp: int = 0,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.topics = [] if topics is EMPTY_LIST else topics
        self.version = version
        self.timestamp = timestamp
        self.unknown_tags = unknown_tags

    def encode_into(self, out: bytearray, version: int) -> None:
        if not 0 <= version <= 0:
            raise unencodable(ConsumerGroupRegularExpressionValue, version)
        try:
            _write_consumer_group_regular_expression_value(out, self, version)
        except ENCODE_FAULTS as fault:
            raise bad_value(ConsumerGroupRegularExpressionValue, version, fault) from fault

    @classmethod
    def decode(cls, buf: Buffer, version: int, pos: int = 0) -> tuple[ConsumerGroupRegularExpressionValue, int]:
        if not 0 <= version <= 0:
            raise undecodable(ConsumerGroupRegularExpressionValue, version)
        try:
            return _read_consumer_group_regular_expression_value(buf, pos, len(buf), version)
        except DECODE_FAULTS as fault:
            raise bad_bytes(ConsumerGroupRegularExpressionValue, version, fault) from fault


def _read_consumer_group_regular_expression_value(buf: Buffer, pos: int, limit: int, version: int) -> tuple[ConsumerGroupRegularExpressionValue, int]:
    m = object.__new__(ConsumerGroupRegularExpressionValue)
    count, pos = read_compact_count(buf, pos, limit, 1)
    read_topics = read_compact_string
    topics_: list[str] = []
    for _ in range(count):
        topics_item, pos = read_topics(buf, pos, limit)
        topics_.append(topics_item)
    m.topics = topics_
    m.version, m.timestamp = _unpack_qq(buf, pos)
    pos += 16
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
    return m, pos


def _write_consumer_group_regular_expression_value(out: bytearray, m: ConsumerGroupRegularExpressionValue, version: int) -> None:
    put_compact_count(out, len(m.topics))
    put_topics = put_compact_string
    for topics_item in m.topics:
        put_topics(out, topics_item)
    out += _pack_qq(m.version, m.timestamp)
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)
