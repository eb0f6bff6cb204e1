"""The one request of a share group's members: join, report, leave, be assigned.

Made from schemas/share_group_heartbeat.schema by `python -m ottla.protocol.compile`: change that file.
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
    put_compact_nullable_string,
    put_compact_string,
    put_numbers,
    put_tags,
    put_uuid,
    read_compact_count,
    read_compact_nullable_count,
    read_compact_nullable_string,
    read_compact_string,
    read_numbers,
    read_tags,
    shortened,
)

_pack_i = Struct(">i").pack
_pack_ih = Struct(">ih").pack
_pack_ii = Struct(">ii").pack
_unpack_i = Struct(">i").unpack_from
_unpack_ih = Struct(">ih").unpack_from
_unpack_ii = Struct(">ii").unpack_from
_unpack_u = Struct(">16s").unpack_from

class ShareGroupHeartbeatRequest(Message):
    __slots__ = ("group_id", "member_id", "member_epoch", "rack_id", "subscribed_topic_names", "unknown_tags",)
    API_KEY = 76
    MIN_VERSION = 1
    MAX_VERSION = 1
    FLEXIBLE_FROM = 0
    HAS_ARRAYS = True

    def __init__(
        self,
        *,
        group_id: str = "",
        member_id: str = "",
        member_epoch: int = 0,
        rack_id: str | None = None,
        subscribed_topic_names: list[str] | None = None,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.group_id = group_id
        self.member_id = member_id
        self.member_epoch = member_epoch
        self.rack_id = rack_id
        self.subscribed_topic_names = subscribed_topic_names
        self.unknown_tags = unknown_tags

    def encode_into(self, out: bytearray, version: int) -> None:
        if not 1 <= version <= 1:
            raise unencodable(ShareGroupHeartbeatRequest, version)
        try:
            _write_share_group_heartbeat_request(out, self, version)
        except ENCODE_FAULTS as fault:
            raise bad_value(ShareGroupHeartbeatRequest, version, fault) from fault

    @classmethod
    def decode(cls, buf: Buffer, version: int, pos: int = 0) -> tuple[ShareGroupHeartbeatRequest, int]:
        if not 1 <= version <= 1:
            raise undecodable(ShareGroupHeartbeatRequest, version)
        try:
            return _read_share_group_heartbeat_request(buf, pos, len(buf), version)
        except DECODE_FAULTS as fault:
            raise bad_bytes(ShareGroupHeartbeatRequest, version, fault) from fault


class TopicPartitions(Structure):
    __slots__ = ("topic_id", "partitions", "unknown_tags",)

    def __init__(
        self,
        *,
        topic_id: bytes = ZERO_UUID,
        partitions: list[int] = EMPTY_LIST,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.topic_id = topic_id
        self.partitions = [] if partitions is EMPTY_LIST else partitions
        self.unknown_tags = unknown_tags


class Assignment(Structure):
    __slots__ = ("topic_partitions", "unknown_tags",)

    def __init__(
        self,
        *,
        topic_partitions: list[TopicPartitions] = EMPTY_LIST,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.topic_partitions = [] if topic_partitions is EMPTY_LIST else topic_partitions
        self.unknown_tags = unknown_tags


class ShareGroupHeartbeatResponse(Message):
    __slots__ = ("throttle_time_ms", "error_code", "error_message", "member_id", "member_epoch", "heartbeat_interval_ms", "assignment", "unknown_tags",)
    API_KEY = 76
    MIN_VERSION = 1
    MAX_VERSION = 1
    FLEXIBLE_FROM = 0
    HAS_ARRAYS = True

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        member_id: str | None = None,
        member_epoch: int = 0,
        heartbeat_interval_ms: int = 0,
        assignment: Assignment | None = None,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
        self.member_id = member_id
        self.member_epoch = member_epoch
        self.heartbeat_interval_ms = heartbeat_interval_ms
        self.assignment = assignment
        self.unknown_tags = unknown_tags

    def encode_into(self, out: bytearray, version: int) -> None:
        if not 1 <= version <= 1:
            raise unencodable(ShareGroupHeartbeatResponse, version)
        try:
            _write_share_group_heartbeat_response(out, self, version)
        except ENCODE_FAULTS as fault:
            raise bad_value(ShareGroupHeartbeatResponse, version, fault) from fault

    @classmethod
    def decode(cls, buf: Buffer, version: int, pos: int = 0) -> tuple[ShareGroupHeartbeatResponse, int]:
        if not 1 <= version <= 1:
            raise undecodable(ShareGroupHeartbeatResponse, version)
        try:
            return _read_share_group_heartbeat_response(buf, pos, len(buf), version)
        except DECODE_FAULTS as fault:
            raise bad_bytes(ShareGroupHeartbeatResponse, version, fault) from fault


def _read_share_group_heartbeat_request(buf: Buffer, pos: int, limit: int, version: int) -> tuple[ShareGroupHeartbeatRequest, int]:
    m = object.__new__(ShareGroupHeartbeatRequest)
    m.group_id, pos = read_compact_string(buf, pos, limit)
    m.member_id, pos = read_compact_string(buf, pos, limit)
    (m.member_epoch,) = _unpack_i(buf, pos)
    pos += 4
    m.rack_id, pos = read_compact_nullable_string(buf, pos, limit)
    count, pos = read_compact_nullable_count(buf, pos, limit, 1)
    if count < 0:
        m.subscribed_topic_names = None
    else:
        read_subscribed_topic_names = read_compact_string
        subscribed_topic_names_: list[str] = []
        for _ in range(count):
            subscribed_topic_names_item, pos = read_subscribed_topic_names(buf, pos, limit)
            subscribed_topic_names_.append(subscribed_topic_names_item)
        m.subscribed_topic_names = subscribed_topic_names_
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
    return m, pos


def _write_share_group_heartbeat_request(out: bytearray, m: ShareGroupHeartbeatRequest, version: int) -> None:
    put_compact_string(out, m.group_id)
    put_compact_string(out, m.member_id)
    out += _pack_i(m.member_epoch)
    put_compact_nullable_string(out, m.rack_id)
    if m.subscribed_topic_names is None:
        out.append(0)
    else:
        put_compact_count(out, len(m.subscribed_topic_names))
        put_subscribed_topic_names = put_compact_string
        for subscribed_topic_names_item in m.subscribed_topic_names:
            put_subscribed_topic_names(out, subscribed_topic_names_item)
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)


def _read_topic_partitions(buf: Buffer, pos: int, limit: int, version: int) -> tuple[TopicPartitions, int]:
    m = object.__new__(TopicPartitions)
    (m.topic_id,) = _unpack_u(buf, pos)
    pos += 16
    count, pos = read_compact_count(buf, pos, limit, 4)
    m.partitions, pos = read_numbers(buf, pos, count, "i", 4)
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
    return m, pos


def _write_topic_partitions(out: bytearray, m: TopicPartitions, version: int) -> None:
    put_uuid(out, m.topic_id)
    put_compact_count(out, len(m.partitions))
    put_numbers(out, m.partitions, "i")
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)


def _read_assignment(buf: Buffer, pos: int, limit: int, version: int) -> tuple[Assignment, int]:
    m = object.__new__(Assignment)
    count, pos = read_compact_count(buf, pos, limit, 18)
    topic_partitions_: list[TopicPartitions] = []
    for _ in range(count):
        topic_partitions_item, pos = _read_topic_partitions(buf, pos, limit, version)
        topic_partitions_.append(topic_partitions_item)
    m.topic_partitions = topic_partitions_
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
    return m, pos


def _write_assignment(out: bytearray, m: Assignment, version: int) -> None:
    put_compact_count(out, len(m.topic_partitions))
    for topic_partitions_item in m.topic_partitions:
        _write_topic_partitions(out, topic_partitions_item, version)
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)


def _read_share_group_heartbeat_response(buf: Buffer, pos: int, limit: int, version: int) -> tuple[ShareGroupHeartbeatResponse, int]:
    m = object.__new__(ShareGroupHeartbeatResponse)
    m.throttle_time_ms, m.error_code = _unpack_ih(buf, pos)
    pos += 6
    m.error_message, pos = read_compact_nullable_string(buf, pos, limit)
    m.member_id, pos = read_compact_nullable_string(buf, pos, limit)
    m.member_epoch, m.heartbeat_interval_ms = _unpack_ii(buf, pos)
    pos += 8
    pos += 1
    if buf[pos - 1] > 0x7F:
        m.assignment = None
    else:
        m.assignment, pos = _read_assignment(buf, pos, limit, version)
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
    return m, pos


def _write_share_group_heartbeat_response(out: bytearray, m: ShareGroupHeartbeatResponse, version: int) -> None:
    out += _pack_ih(m.throttle_time_ms, m.error_code)
    put_compact_nullable_string(out, shortened(m.error_message))
    put_compact_nullable_string(out, m.member_id)
    out += _pack_ii(m.member_epoch, m.heartbeat_interval_ms)
    if m.assignment is None:
        out.append(0xFF)
    else:
        out.append(1)
        _write_assignment(out, m.assignment, version)
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)
