"""State and members of new consumer groups.

Made from schemas/consumer_group_describe.schema by `python -m ottla.protocol.compile`: change that file.
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
    read_compact_nullable_string,
    read_compact_string,
    read_numbers,
    read_tags,
    shortened,
)

_pack_b = Struct(">b").pack
_pack_h = Struct(">h").pack
_pack_i = Struct(">i").pack
_pack_ii = Struct(">ii").pack
_unpack_b = Struct(">b").unpack_from
_unpack_h = Struct(">h").unpack_from
_unpack_i = Struct(">i").unpack_from
_unpack_ii = Struct(">ii").unpack_from
_unpack_u = Struct(">16s").unpack_from

class ConsumerGroupDescribeRequest(Message):
    __slots__ = ("group_ids", "include_authorized_operations", "unknown_tags",)
    API_KEY = 69
    MIN_VERSION = 0
    MAX_VERSION = 1
    FLEXIBLE_FROM = 0
    HAS_ARRAYS = True

    def __init__(
        self,
        *,
        group_ids: list[str] = EMPTY_LIST,
        include_authorized_operations: bool = False,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.group_ids = [] if group_ids is EMPTY_LIST else group_ids
        self.include_authorized_operations = include_authorized_operations
        self.unknown_tags = unknown_tags

    def encode_into(self, out: bytearray, version: int) -> None:
        if not 0 <= version <= 1:
            raise unencodable(ConsumerGroupDescribeRequest, version)
        try:
            _write_consumer_group_describe_request(out, self, version)
        except ENCODE_FAULTS as fault:
            raise bad_value(ConsumerGroupDescribeRequest, version, fault) from fault

    @classmethod
    def decode(cls, buf: Buffer, version: int, pos: int = 0) -> tuple[ConsumerGroupDescribeRequest, int]:
        if not 0 <= version <= 1:
            raise undecodable(ConsumerGroupDescribeRequest, version)
        try:
            return _read_consumer_group_describe_request(buf, pos, len(buf), version)
        except DECODE_FAULTS as fault:
            raise bad_bytes(ConsumerGroupDescribeRequest, version, fault) from fault


class TopicPartitions(Structure):
    __slots__ = ("topic_id", "topic_name", "partitions", "unknown_tags",)

    def __init__(
        self,
        *,
        topic_id: bytes = ZERO_UUID,
        topic_name: str = "",
        partitions: list[int] = EMPTY_LIST,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.topic_id = topic_id
        self.topic_name = topic_name
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


class Member(Structure):
    __slots__ = ("member_id", "instance_id", "rack_id", "member_epoch", "client_id", "client_host", "subscribed_topic_names", "subscribed_topic_regex", "assignment", "target_assignment", "member_type", "unknown_tags",)

    def __init__(
        self,
        *,
        member_id: str = "",
        instance_id: str | None = None,
        rack_id: str | None = None,
        member_epoch: int = 0,
        client_id: str = "",
        client_host: str = "",
        subscribed_topic_names: list[str] = EMPTY_LIST,
        subscribed_topic_regex: str | None = None,
        assignment: Assignment | None = None,
        target_assignment: Assignment | None = None,
        member_type: int = -1,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.member_id = member_id
        self.instance_id = instance_id
        self.rack_id = rack_id
        self.member_epoch = member_epoch
        self.client_id = client_id
        self.client_host = client_host
        self.subscribed_topic_names = [] if subscribed_topic_names is EMPTY_LIST else subscribed_topic_names
        self.subscribed_topic_regex = subscribed_topic_regex
        self.assignment = Assignment() if assignment is None else assignment
        self.target_assignment = Assignment() if target_assignment is None else target_assignment
        self.member_type = member_type
        self.unknown_tags = unknown_tags


class DescribedGroup(Structure):
    __slots__ = ("error_code", "error_message", "group_id", "group_state", "group_epoch", "assignment_epoch", "assignor_name", "members", "authorized_operations", "unknown_tags",)

    def __init__(
        self,
        *,
        error_code: int = 0,
        error_message: str | None = None,
        group_id: str = "",
        group_state: str = "",
        group_epoch: int = 0,
        assignment_epoch: int = 0,
        assignor_name: str = "",
        members: list[Member] = EMPTY_LIST,
        authorized_operations: int = -2147483648,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.error_code = error_code
        self.error_message = error_message
        self.group_id = group_id
        self.group_state = group_state
        self.group_epoch = group_epoch
        self.assignment_epoch = assignment_epoch
        self.assignor_name = assignor_name
        self.members = [] if members is EMPTY_LIST else members
        self.authorized_operations = authorized_operations
        self.unknown_tags = unknown_tags


class ConsumerGroupDescribeResponse(Message):
    __slots__ = ("throttle_time_ms", "groups", "unknown_tags",)
    API_KEY = 69
    MIN_VERSION = 0
    MAX_VERSION = 1
    FLEXIBLE_FROM = 0
    HAS_ARRAYS = True

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        groups: list[DescribedGroup] = EMPTY_LIST,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.groups = [] if groups is EMPTY_LIST else groups
        self.unknown_tags = unknown_tags

    def encode_into(self, out: bytearray, version: int) -> None:
        if not 0 <= version <= 1:
            raise unencodable(ConsumerGroupDescribeResponse, version)
        try:
            _write_consumer_group_describe_response(out, self, version)
        except ENCODE_FAULTS as fault:
            raise bad_value(ConsumerGroupDescribeResponse, version, fault) from fault

    @classmethod
    def decode(cls, buf: Buffer, version: int, pos: int = 0) -> tuple[ConsumerGroupDescribeResponse, int]:
        if not 0 <= version <= 1:
            raise undecodable(ConsumerGroupDescribeResponse, version)
        try:
            return _read_consumer_group_describe_response(buf, pos, len(buf), version)
        except DECODE_FAULTS as fault:
            raise bad_bytes(ConsumerGroupDescribeResponse, version, fault) from fault


_DEFAULT_ASSIGNMENT = Assignment()


def _read_consumer_group_describe_request(buf: Buffer, pos: int, limit: int, version: int) -> tuple[ConsumerGroupDescribeRequest, int]:
    m = object.__new__(ConsumerGroupDescribeRequest)
    count, pos = read_compact_count(buf, pos, limit, 1)
    read_group_ids = read_compact_string
    group_ids_: list[str] = []
    for _ in range(count):
        group_ids_item, pos = read_group_ids(buf, pos, limit)
        group_ids_.append(group_ids_item)
    m.group_ids = group_ids_
    m.include_authorized_operations = buf[pos] != 0
    pos += 1
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
    return m, pos


def _write_consumer_group_describe_request(out: bytearray, m: ConsumerGroupDescribeRequest, version: int) -> None:
    put_compact_count(out, len(m.group_ids))
    put_group_ids = put_compact_string
    for group_ids_item in m.group_ids:
        put_group_ids(out, group_ids_item)
    out.append(1 if m.include_authorized_operations else 0)
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)


def _read_topic_partitions(buf: Buffer, pos: int, limit: int, version: int) -> tuple[TopicPartitions, int]:
    m = object.__new__(TopicPartitions)
    (m.topic_id,) = _unpack_u(buf, pos)
    pos += 16
    m.topic_name, pos = read_compact_string(buf, pos, limit)
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
    put_compact_string(out, m.topic_name)
    put_compact_count(out, len(m.partitions))
    put_numbers(out, m.partitions, "i")
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)


def _read_assignment(buf: Buffer, pos: int, limit: int, version: int) -> tuple[Assignment, int]:
    m = object.__new__(Assignment)
    count, pos = read_compact_count(buf, pos, limit, 19)
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


def _read_member(buf: Buffer, pos: int, limit: int, version: int) -> tuple[Member, int]:
    m = object.__new__(Member)
    m.member_id, pos = read_compact_string(buf, pos, limit)
    m.instance_id, pos = read_compact_nullable_string(buf, pos, limit)
    m.rack_id, pos = read_compact_nullable_string(buf, pos, limit)
    (m.member_epoch,) = _unpack_i(buf, pos)
    pos += 4
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
    m.assignment, pos = _read_assignment(buf, pos, limit, version)
    m.target_assignment, pos = _read_assignment(buf, pos, limit, version)
    if version >= 1:
        (m.member_type,) = _unpack_b(buf, pos)
        pos += 1
    else:
        m.member_type = -1
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
    return m, pos


def _write_member(out: bytearray, m: Member, version: int) -> None:
    put_compact_string(out, m.member_id)
    put_compact_nullable_string(out, m.instance_id)
    put_compact_nullable_string(out, m.rack_id)
    out += _pack_i(m.member_epoch)
    put_compact_string(out, m.client_id)
    put_compact_string(out, m.client_host)
    put_compact_count(out, len(m.subscribed_topic_names))
    put_subscribed_topic_names = put_compact_string
    for subscribed_topic_names_item in m.subscribed_topic_names:
        put_subscribed_topic_names(out, subscribed_topic_names_item)
    put_compact_nullable_string(out, m.subscribed_topic_regex)
    _write_assignment(out, m.assignment, version)
    _write_assignment(out, m.target_assignment, version)
    if version >= 1:
        out += _pack_b(m.member_type)
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)


def _read_described_group(buf: Buffer, pos: int, limit: int, version: int) -> tuple[DescribedGroup, int]:
    m = object.__new__(DescribedGroup)
    (m.error_code,) = _unpack_h(buf, pos)
    pos += 2
    m.error_message, pos = read_compact_nullable_string(buf, pos, limit)
    m.group_id, pos = read_compact_string(buf, pos, limit)
    m.group_state, pos = read_compact_string(buf, pos, limit)
    m.group_epoch, m.assignment_epoch = _unpack_ii(buf, pos)
    pos += 8
    m.assignor_name, pos = read_compact_string(buf, pos, limit)
    count, pos = read_compact_count(buf, pos, limit, 16)
    members_: list[Member] = []
    for _ in range(count):
        members_item, pos = _read_member(buf, pos, limit, version)
        members_.append(members_item)
    m.members = members_
    (m.authorized_operations,) = _unpack_i(buf, pos)
    pos += 4
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
    return m, pos


def _write_described_group(out: bytearray, m: DescribedGroup, version: int) -> None:
    out += _pack_h(m.error_code)
    put_compact_nullable_string(out, shortened(m.error_message))
    put_compact_string(out, m.group_id)
    put_compact_string(out, m.group_state)
    out += _pack_ii(m.group_epoch, m.assignment_epoch)
    put_compact_string(out, m.assignor_name)
    put_compact_count(out, len(m.members))
    for members_item in m.members:
        _write_member(out, members_item, version)
    out += _pack_i(m.authorized_operations)
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)


def _read_consumer_group_describe_response(buf: Buffer, pos: int, limit: int, version: int) -> tuple[ConsumerGroupDescribeResponse, int]:
    m = object.__new__(ConsumerGroupDescribeResponse)
    (m.throttle_time_ms,) = _unpack_i(buf, pos)
    pos += 4
    count, pos = read_compact_count(buf, pos, limit, 20)
    groups_: list[DescribedGroup] = []
    for _ in range(count):
        groups_item, pos = _read_described_group(buf, pos, limit, version)
        groups_.append(groups_item)
    m.groups = groups_
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
    return m, pos


def _write_consumer_group_describe_response(out: bytearray, m: ConsumerGroupDescribeResponse, version: int) -> None:
    out += _pack_i(m.throttle_time_ms)
    put_compact_count(out, len(m.groups))
    for groups_item in m.groups:
        _write_described_group(out, groups_item, version)
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)
