"""State, members and topology of streams groups.

Made from schemas/streams_group_describe.schema by `python -m ottla.protocol.compile`: change that file.
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
    put_compact_count,
    put_compact_nullable_string,
    put_compact_string,
    put_numbers,
    put_tags,
    read_compact_count,
    read_compact_nullable_count,
    read_compact_nullable_string,
    read_compact_string,
    read_numbers,
    read_tags,
    shortened,
)

_pack_H = Struct(">H").pack
_pack_h = Struct(">h").pack
_pack_i = Struct(">i").pack
_pack_ih = Struct(">ih").pack
_pack_ii = Struct(">ii").pack
_pack_iq = Struct(">iq").pack
_unpack_H = Struct(">H").unpack_from
_unpack_h = Struct(">h").unpack_from
_unpack_i = Struct(">i").unpack_from
_unpack_ih = Struct(">ih").unpack_from
_unpack_ii = Struct(">ii").unpack_from
_unpack_iq = Struct(">iq").unpack_from

class StreamsGroupDescribeRequest(Message):
    __slots__ = ("group_ids", "include_authorized_operations", "unknown_tags",)
    API_KEY = 89
    MIN_VERSION = 0
    MAX_VERSION = 0
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
        if not 0 <= version <= 0:
            raise unencodable(StreamsGroupDescribeRequest, version)
        try:
            _write_streams_group_describe_request(out, self, version)
        except ENCODE_FAULTS as fault:
            raise bad_value(StreamsGroupDescribeRequest, version, fault) from fault

    @classmethod
    def decode(cls, buf: Buffer, version: int, pos: int = 0) -> tuple[StreamsGroupDescribeRequest, int]:
        if not 0 <= version <= 0:
            raise undecodable(StreamsGroupDescribeRequest, version)
        try:
            return _read_streams_group_describe_request(buf, pos, len(buf), version)
        except DECODE_FAULTS as fault:
            raise bad_bytes(StreamsGroupDescribeRequest, version, fault) from fault


class TopicInfo(Structure):
    __slots__ = ("name", "partitions", "replication_factor", "topic_configs", "unknown_tags",)

    def __init__(
        self,
        *,
        name: str = "",
        partitions: int = 0,
        replication_factor: int = 0,
        topic_configs: list[KeyValue] = EMPTY_LIST,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.name = name
        self.partitions = partitions
        self.replication_factor = replication_factor
        self.topic_configs = [] if topic_configs is EMPTY_LIST else topic_configs
        self.unknown_tags = unknown_tags


class Subtopology(Structure):
    __slots__ = ("subtopology_id", "source_topics", "repartition_sink_topics", "state_changelog_topics", "repartition_source_topics", "unknown_tags",)

    def __init__(
        self,
        *,
        subtopology_id: str = "",
        source_topics: list[str] = EMPTY_LIST,
        repartition_sink_topics: list[str] = EMPTY_LIST,
        state_changelog_topics: list[TopicInfo] = EMPTY_LIST,
        repartition_source_topics: list[TopicInfo] = EMPTY_LIST,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.subtopology_id = subtopology_id
        self.source_topics = [] if source_topics is EMPTY_LIST else source_topics
        self.repartition_sink_topics = [] if repartition_sink_topics is EMPTY_LIST else repartition_sink_topics
        self.state_changelog_topics = [] if state_changelog_topics is EMPTY_LIST else state_changelog_topics
        self.repartition_source_topics = [] if repartition_source_topics is EMPTY_LIST else repartition_source_topics
        self.unknown_tags = unknown_tags


class Topology(Structure):
    __slots__ = ("epoch", "subtopologies", "unknown_tags",)

    def __init__(
        self,
        *,
        epoch: int = 0,
        subtopologies: list[Subtopology] | None = None,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.epoch = epoch
        self.subtopologies = subtopologies
        self.unknown_tags = unknown_tags


class Endpoint(Structure):
    __slots__ = ("host", "port", "unknown_tags",)

    def __init__(
        self,
        *,
        host: str = "",
        port: int = 0,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.host = host
        self.port = port
        self.unknown_tags = unknown_tags


class KeyValue(Structure):
    __slots__ = ("key", "value", "unknown_tags",)

    def __init__(
        self,
        *,
        key: str = "",
        value: str = "",
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.key = key
        self.value = value
        self.unknown_tags = unknown_tags


class TaskOffset(Structure):
    __slots__ = ("subtopology_id", "partition", "offset", "unknown_tags",)

    def __init__(
        self,
        *,
        subtopology_id: str = "",
        partition: int = 0,
        offset: int = 0,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.subtopology_id = subtopology_id
        self.partition = partition
        self.offset = offset
        self.unknown_tags = unknown_tags


class TaskIds(Structure):
    __slots__ = ("subtopology_id", "partitions", "unknown_tags",)

    def __init__(
        self,
        *,
        subtopology_id: str = "",
        partitions: list[int] = EMPTY_LIST,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.subtopology_id = subtopology_id
        self.partitions = [] if partitions is EMPTY_LIST else partitions
        self.unknown_tags = unknown_tags


class Assignment(Structure):
    __slots__ = ("active_tasks", "standby_tasks", "warmup_tasks", "unknown_tags",)

    def __init__(
        self,
        *,
        active_tasks: list[TaskIds] = EMPTY_LIST,
        standby_tasks: list[TaskIds] = EMPTY_LIST,
        warmup_tasks: list[TaskIds] = EMPTY_LIST,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.active_tasks = [] if active_tasks is EMPTY_LIST else active_tasks
        self.standby_tasks = [] if standby_tasks is EMPTY_LIST else standby_tasks
        self.warmup_tasks = [] if warmup_tasks is EMPTY_LIST else warmup_tasks
        self.unknown_tags = unknown_tags


class Member(Structure):
    __slots__ = ("member_id", "member_epoch", "instance_id", "rack_id", "client_id", "client_host", "topology_epoch", "process_id", "user_endpoint", "client_tags", "task_offsets", "task_end_offsets", "assignment", "target_assignment", "is_classic", "unknown_tags",)

    def __init__(
        self,
        *,
        member_id: str = "",
        member_epoch: int = 0,
        instance_id: str | None = None,
        rack_id: str | None = None,
        client_id: str = "",
        client_host: str = "",
        topology_epoch: int = 0,
        process_id: str = "",
        user_endpoint: Endpoint | None = None,
        client_tags: list[KeyValue] = EMPTY_LIST,
        task_offsets: list[TaskOffset] = EMPTY_LIST,
        task_end_offsets: list[TaskOffset] = EMPTY_LIST,
        assignment: Assignment | None = None,
        target_assignment: Assignment | None = None,
        is_classic: bool = False,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.member_id = member_id
        self.member_epoch = member_epoch
        self.instance_id = instance_id
        self.rack_id = rack_id
        self.client_id = client_id
        self.client_host = client_host
        self.topology_epoch = topology_epoch
        self.process_id = process_id
        self.user_endpoint = user_endpoint
        self.client_tags = [] if client_tags is EMPTY_LIST else client_tags
        self.task_offsets = [] if task_offsets is EMPTY_LIST else task_offsets
        self.task_end_offsets = [] if task_end_offsets is EMPTY_LIST else task_end_offsets
        self.assignment = Assignment() if assignment is None else assignment
        self.target_assignment = Assignment() if target_assignment is None else target_assignment
        self.is_classic = is_classic
        self.unknown_tags = unknown_tags


class DescribedGroup(Structure):
    __slots__ = ("error_code", "error_message", "group_id", "group_state", "group_epoch", "assignment_epoch", "topology", "members", "authorized_operations", "unknown_tags",)

    def __init__(
        self,
        *,
        error_code: int = 0,
        error_message: str | None = None,
        group_id: str = "",
        group_state: str = "",
        group_epoch: int = 0,
        assignment_epoch: int = 0,
        topology: Topology | None = None,
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
        self.topology = topology
        self.members = [] if members is EMPTY_LIST else members
        self.authorized_operations = authorized_operations
        self.unknown_tags = unknown_tags


class StreamsGroupDescribeResponse(Message):
    __slots__ = ("throttle_time_ms", "groups", "unknown_tags",)
    API_KEY = 89
    MIN_VERSION = 0
    MAX_VERSION = 0
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
        if not 0 <= version <= 0:
            raise unencodable(StreamsGroupDescribeResponse, version)
        try:
            _write_streams_group_describe_response(out, self, version)
        except ENCODE_FAULTS as fault:
            raise bad_value(StreamsGroupDescribeResponse, version, fault) from fault

    @classmethod
    def decode(cls, buf: Buffer, version: int, pos: int = 0) -> tuple[StreamsGroupDescribeResponse, int]:
        if not 0 <= version <= 0:
            raise undecodable(StreamsGroupDescribeResponse, version)
        try:
            return _read_streams_group_describe_response(buf, pos, len(buf), version)
        except DECODE_FAULTS as fault:
            raise bad_bytes(StreamsGroupDescribeResponse, version, fault) from fault


_DEFAULT_ASSIGNMENT = Assignment()


def _read_streams_group_describe_request(buf: Buffer, pos: int, limit: int, version: int) -> tuple[StreamsGroupDescribeRequest, int]:
    m = object.__new__(StreamsGroupDescribeRequest)
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


def _write_streams_group_describe_request(out: bytearray, m: StreamsGroupDescribeRequest, version: int) -> None:
    put_compact_count(out, len(m.group_ids))
    put_group_ids = put_compact_string
    for group_ids_item in m.group_ids:
        put_group_ids(out, group_ids_item)
    out.append(1 if m.include_authorized_operations else 0)
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)


def _read_topic_info(buf: Buffer, pos: int, limit: int, version: int) -> tuple[TopicInfo, int]:
    m = object.__new__(TopicInfo)
    m.name, pos = read_compact_string(buf, pos, limit)
    m.partitions, m.replication_factor = _unpack_ih(buf, pos)
    pos += 6
    count, pos = read_compact_count(buf, pos, limit, 3)
    topic_configs_: list[KeyValue] = []
    for _ in range(count):
        topic_configs_item, pos = _read_key_value(buf, pos, limit, version)
        topic_configs_.append(topic_configs_item)
    m.topic_configs = topic_configs_
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
    return m, pos


def _write_topic_info(out: bytearray, m: TopicInfo, version: int) -> None:
    put_compact_string(out, m.name)
    out += _pack_ih(m.partitions, m.replication_factor)
    put_compact_count(out, len(m.topic_configs))
    for topic_configs_item in m.topic_configs:
        _write_key_value(out, topic_configs_item, version)
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)


def _read_subtopology(buf: Buffer, pos: int, limit: int, version: int) -> tuple[Subtopology, int]:
    m = object.__new__(Subtopology)
    m.subtopology_id, pos = read_compact_string(buf, pos, limit)
    count, pos = read_compact_count(buf, pos, limit, 1)
    read_source_topics = read_compact_string
    source_topics_: list[str] = []
    for _ in range(count):
        source_topics_item, pos = read_source_topics(buf, pos, limit)
        source_topics_.append(source_topics_item)
    m.source_topics = source_topics_
    count, pos = read_compact_count(buf, pos, limit, 1)
    read_repartition_sink_topics = read_compact_string
    repartition_sink_topics_: list[str] = []
    for _ in range(count):
        repartition_sink_topics_item, pos = read_repartition_sink_topics(buf, pos, limit)
        repartition_sink_topics_.append(repartition_sink_topics_item)
    m.repartition_sink_topics = repartition_sink_topics_
    count, pos = read_compact_count(buf, pos, limit, 9)
    state_changelog_topics_: list[TopicInfo] = []
    for _ in range(count):
        state_changelog_topics_item, pos = _read_topic_info(buf, pos, limit, version)
        state_changelog_topics_.append(state_changelog_topics_item)
    m.state_changelog_topics = state_changelog_topics_
    count, pos = read_compact_count(buf, pos, limit, 9)
    repartition_source_topics_: list[TopicInfo] = []
    for _ in range(count):
        repartition_source_topics_item, pos = _read_topic_info(buf, pos, limit, version)
        repartition_source_topics_.append(repartition_source_topics_item)
    m.repartition_source_topics = repartition_source_topics_
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
    return m, pos


def _write_subtopology(out: bytearray, m: Subtopology, version: int) -> None:
    put_compact_string(out, m.subtopology_id)
    put_compact_count(out, len(m.source_topics))
    put_source_topics = put_compact_string
    for source_topics_item in m.source_topics:
        put_source_topics(out, source_topics_item)
    put_compact_count(out, len(m.repartition_sink_topics))
    put_repartition_sink_topics = put_compact_string
    for repartition_sink_topics_item in m.repartition_sink_topics:
        put_repartition_sink_topics(out, repartition_sink_topics_item)
    put_compact_count(out, len(m.state_changelog_topics))
    for state_changelog_topics_item in m.state_changelog_topics:
        _write_topic_info(out, state_changelog_topics_item, version)
    put_compact_count(out, len(m.repartition_source_topics))
    for repartition_source_topics_item in m.repartition_source_topics:
        _write_topic_info(out, repartition_source_topics_item, version)
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)


def _read_topology(buf: Buffer, pos: int, limit: int, version: int) -> tuple[Topology, int]:
    m = object.__new__(Topology)
    (m.epoch,) = _unpack_i(buf, pos)
    pos += 4
    count, pos = read_compact_nullable_count(buf, pos, limit, 6)
    if count < 0:
        m.subtopologies = None
    else:
        subtopologies_: list[Subtopology] = []
        for _ in range(count):
            subtopologies_item, pos = _read_subtopology(buf, pos, limit, version)
            subtopologies_.append(subtopologies_item)
        m.subtopologies = subtopologies_
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
    return m, pos


def _write_topology(out: bytearray, m: Topology, version: int) -> None:
    out += _pack_i(m.epoch)
    if m.subtopologies is None:
        out.append(0)
    else:
        put_compact_count(out, len(m.subtopologies))
        for subtopologies_item in m.subtopologies:
            _write_subtopology(out, subtopologies_item, version)
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)


def _read_endpoint(buf: Buffer, pos: int, limit: int, version: int) -> tuple[Endpoint, int]:
    m = object.__new__(Endpoint)
    m.host, pos = read_compact_string(buf, pos, limit)
    (m.port,) = _unpack_H(buf, pos)
    pos += 2
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
    return m, pos


def _write_endpoint(out: bytearray, m: Endpoint, version: int) -> None:
    put_compact_string(out, m.host)
    out += _pack_H(m.port)
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)


def _read_key_value(buf: Buffer, pos: int, limit: int, version: int) -> tuple[KeyValue, int]:
    m = object.__new__(KeyValue)
    m.key, pos = read_compact_string(buf, pos, limit)
    m.value, pos = read_compact_string(buf, pos, limit)
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
    return m, pos


def _write_key_value(out: bytearray, m: KeyValue, version: int) -> None:
    put_compact_string(out, m.key)
    put_compact_string(out, m.value)
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)


def _read_task_offset(buf: Buffer, pos: int, limit: int, version: int) -> tuple[TaskOffset, int]:
    m = object.__new__(TaskOffset)
    m.subtopology_id, pos = read_compact_string(buf, pos, limit)
    m.partition, m.offset = _unpack_iq(buf, pos)
    pos += 12
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
    return m, pos


def _write_task_offset(out: bytearray, m: TaskOffset, version: int) -> None:
    put_compact_string(out, m.subtopology_id)
    out += _pack_iq(m.partition, m.offset)
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)


def _read_task_ids(buf: Buffer, pos: int, limit: int, version: int) -> tuple[TaskIds, int]:
    m = object.__new__(TaskIds)
    m.subtopology_id, pos = read_compact_string(buf, pos, limit)
    count, pos = read_compact_count(buf, pos, limit, 4)
    m.partitions, pos = read_numbers(buf, pos, count, "i", 4)
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
    return m, pos


def _write_task_ids(out: bytearray, m: TaskIds, version: int) -> None:
    put_compact_string(out, m.subtopology_id)
    put_compact_count(out, len(m.partitions))
    put_numbers(out, m.partitions, "i")
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)


def _read_assignment(buf: Buffer, pos: int, limit: int, version: int) -> tuple[Assignment, int]:
    m = object.__new__(Assignment)
    count, pos = read_compact_count(buf, pos, limit, 3)
    active_tasks_: list[TaskIds] = []
    for _ in range(count):
        active_tasks_item, pos = _read_task_ids(buf, pos, limit, version)
        active_tasks_.append(active_tasks_item)
    m.active_tasks = active_tasks_
    count, pos = read_compact_count(buf, pos, limit, 3)
    standby_tasks_: list[TaskIds] = []
    for _ in range(count):
        standby_tasks_item, pos = _read_task_ids(buf, pos, limit, version)
        standby_tasks_.append(standby_tasks_item)
    m.standby_tasks = standby_tasks_
    count, pos = read_compact_count(buf, pos, limit, 3)
    warmup_tasks_: list[TaskIds] = []
    for _ in range(count):
        warmup_tasks_item, pos = _read_task_ids(buf, pos, limit, version)
        warmup_tasks_.append(warmup_tasks_item)
    m.warmup_tasks = warmup_tasks_
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
    return m, pos


def _write_assignment(out: bytearray, m: Assignment, version: int) -> None:
    put_compact_count(out, len(m.active_tasks))
    for active_tasks_item in m.active_tasks:
        _write_task_ids(out, active_tasks_item, version)
    put_compact_count(out, len(m.standby_tasks))
    for standby_tasks_item in m.standby_tasks:
        _write_task_ids(out, standby_tasks_item, version)
    put_compact_count(out, len(m.warmup_tasks))
    for warmup_tasks_item in m.warmup_tasks:
        _write_task_ids(out, warmup_tasks_item, version)
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)


def _read_member(buf: Buffer, pos: int, limit: int, version: int) -> tuple[Member, int]:
    m = object.__new__(Member)
    m.member_id, pos = read_compact_string(buf, pos, limit)
    (m.member_epoch,) = _unpack_i(buf, pos)
    pos += 4
    m.instance_id, pos = read_compact_nullable_string(buf, pos, limit)
    m.rack_id, pos = read_compact_nullable_string(buf, pos, limit)
    m.client_id, pos = read_compact_string(buf, pos, limit)
    m.client_host, pos = read_compact_string(buf, pos, limit)
    (m.topology_epoch,) = _unpack_i(buf, pos)
    pos += 4
    m.process_id, pos = read_compact_string(buf, pos, limit)
    pos += 1
    if buf[pos - 1] > 0x7F:
        m.user_endpoint = None
    else:
        m.user_endpoint, pos = _read_endpoint(buf, pos, limit, version)
    count, pos = read_compact_count(buf, pos, limit, 3)
    client_tags_: list[KeyValue] = []
    for _ in range(count):
        client_tags_item, pos = _read_key_value(buf, pos, limit, version)
        client_tags_.append(client_tags_item)
    m.client_tags = client_tags_
    count, pos = read_compact_count(buf, pos, limit, 14)
    task_offsets_: list[TaskOffset] = []
    for _ in range(count):
        task_offsets_item, pos = _read_task_offset(buf, pos, limit, version)
        task_offsets_.append(task_offsets_item)
    m.task_offsets = task_offsets_
    count, pos = read_compact_count(buf, pos, limit, 14)
    task_end_offsets_: list[TaskOffset] = []
    for _ in range(count):
        task_end_offsets_item, pos = _read_task_offset(buf, pos, limit, version)
        task_end_offsets_.append(task_end_offsets_item)
    m.task_end_offsets = task_end_offsets_
    m.assignment, pos = _read_assignment(buf, pos, limit, version)
    m.target_assignment, pos = _read_assignment(buf, pos, limit, version)
    m.is_classic = buf[pos] != 0
    pos += 1
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
    return m, pos


def _write_member(out: bytearray, m: Member, version: int) -> None:
    put_compact_string(out, m.member_id)
    out += _pack_i(m.member_epoch)
    put_compact_nullable_string(out, m.instance_id)
    put_compact_nullable_string(out, m.rack_id)
    put_compact_string(out, m.client_id)
    put_compact_string(out, m.client_host)
    out += _pack_i(m.topology_epoch)
    put_compact_string(out, m.process_id)
    if m.user_endpoint is None:
        out.append(0xFF)
    else:
        out.append(1)
        _write_endpoint(out, m.user_endpoint, version)
    put_compact_count(out, len(m.client_tags))
    for client_tags_item in m.client_tags:
        _write_key_value(out, client_tags_item, version)
    put_compact_count(out, len(m.task_offsets))
    for task_offsets_item in m.task_offsets:
        _write_task_offset(out, task_offsets_item, version)
    put_compact_count(out, len(m.task_end_offsets))
    for task_end_offsets_item in m.task_end_offsets:
        _write_task_offset(out, task_end_offsets_item, version)
    _write_assignment(out, m.assignment, version)
    _write_assignment(out, m.target_assignment, version)
    out.append(1 if m.is_classic else 0)
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
    pos += 1
    if buf[pos - 1] > 0x7F:
        m.topology = None
    else:
        m.topology, pos = _read_topology(buf, pos, limit, version)
    count, pos = read_compact_count(buf, pos, limit, 28)
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
    if m.topology is None:
        out.append(0xFF)
    else:
        out.append(1)
        _write_topology(out, m.topology, version)
    put_compact_count(out, len(m.members))
    for members_item in m.members:
        _write_member(out, members_item, version)
    out += _pack_i(m.authorized_operations)
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)


def _read_streams_group_describe_response(buf: Buffer, pos: int, limit: int, version: int) -> tuple[StreamsGroupDescribeResponse, int]:
    m = object.__new__(StreamsGroupDescribeResponse)
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


def _write_streams_group_describe_response(out: bytearray, m: StreamsGroupDescribeResponse, version: int) -> None:
    out += _pack_i(m.throttle_time_ms)
    put_compact_count(out, len(m.groups))
    for groups_item in m.groups:
        _write_described_group(out, groups_item, version)
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)
