"""The one request of a streams group's members: join, report, leave, be assigned tasks.

Made from schemas/streams_group_heartbeat.schema by `python -m ottla.protocol.compile`: change that file.
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
_pack_b = Struct(">b").pack
_pack_i = Struct(">i").pack
_pack_ih = Struct(">ih").pack
_pack_ii = Struct(">ii").pack
_pack_iiii = Struct(">iiii").pack
_pack_iq = Struct(">iq").pack
_unpack_H = Struct(">H").unpack_from
_unpack_b = Struct(">b").unpack_from
_unpack_i = Struct(">i").unpack_from
_unpack_ih = Struct(">ih").unpack_from
_unpack_ii = Struct(">ii").unpack_from
_unpack_iiii = Struct(">iiii").unpack_from
_unpack_iq = Struct(">iq").unpack_from

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


class CopartitionGroup(Structure):
    __slots__ = ("source_topics", "source_topic_regex", "repartition_source_topics", "unknown_tags",)

    def __init__(
        self,
        *,
        source_topics: list[int] = EMPTY_LIST,
        source_topic_regex: list[int] = EMPTY_LIST,
        repartition_source_topics: list[int] = EMPTY_LIST,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.source_topics = [] if source_topics is EMPTY_LIST else source_topics
        self.source_topic_regex = [] if source_topic_regex is EMPTY_LIST else source_topic_regex
        self.repartition_source_topics = [] if repartition_source_topics is EMPTY_LIST else repartition_source_topics
        self.unknown_tags = unknown_tags


class Subtopology(Structure):
    __slots__ = ("subtopology_id", "source_topics", "source_topic_regex", "state_changelog_topics", "repartition_sink_topics", "repartition_source_topics", "copartition_groups", "unknown_tags",)

    def __init__(
        self,
        *,
        subtopology_id: str = "",
        source_topics: list[str] = EMPTY_LIST,
        source_topic_regex: list[str] = EMPTY_LIST,
        state_changelog_topics: list[TopicInfo] = EMPTY_LIST,
        repartition_sink_topics: list[str] = EMPTY_LIST,
        repartition_source_topics: list[TopicInfo] = EMPTY_LIST,
        copartition_groups: list[CopartitionGroup] = EMPTY_LIST,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.subtopology_id = subtopology_id
        self.source_topics = [] if source_topics is EMPTY_LIST else source_topics
        self.source_topic_regex = [] if source_topic_regex is EMPTY_LIST else source_topic_regex
        self.state_changelog_topics = [] if state_changelog_topics is EMPTY_LIST else state_changelog_topics
        self.repartition_sink_topics = [] if repartition_sink_topics is EMPTY_LIST else repartition_sink_topics
        self.repartition_source_topics = [] if repartition_source_topics is EMPTY_LIST else repartition_source_topics
        self.copartition_groups = [] if copartition_groups is EMPTY_LIST else copartition_groups
        self.unknown_tags = unknown_tags


class Topology(Structure):
    __slots__ = ("epoch", "subtopologies", "unknown_tags",)

    def __init__(
        self,
        *,
        epoch: int = 0,
        subtopologies: list[Subtopology] = EMPTY_LIST,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.epoch = epoch
        self.subtopologies = [] if subtopologies is EMPTY_LIST else subtopologies
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


class StreamsGroupHeartbeatRequest(Message):
    __slots__ = ("group_id", "member_id", "member_epoch", "endpoint_information_epoch", "instance_id", "rack_id", "rebalance_timeout_ms", "topology", "active_tasks", "standby_tasks", "warmup_tasks", "process_id", "user_endpoint", "client_tags", "task_offsets", "task_end_offsets", "shutdown_application", "unknown_tags",)
    API_KEY = 88
    MIN_VERSION = 0
    MAX_VERSION = 0
    FLEXIBLE_FROM = 0
    HAS_ARRAYS = True

    def __init__(
        self,
        *,
        group_id: str = "",
        member_id: str = "",
        member_epoch: int = 0,
        endpoint_information_epoch: int = 0,
        instance_id: str | None = None,
        rack_id: str | None = None,
        rebalance_timeout_ms: int = -1,
        topology: Topology | None = None,
        active_tasks: list[TaskIds] | None = None,
        standby_tasks: list[TaskIds] | None = None,
        warmup_tasks: list[TaskIds] | None = None,
        process_id: str | None = None,
        user_endpoint: Endpoint | None = None,
        client_tags: list[KeyValue] | None = None,
        task_offsets: list[TaskOffset] | None = None,
        task_end_offsets: list[TaskOffset] | None = None,
        shutdown_application: bool = False,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.group_id = group_id
        self.member_id = member_id
        self.member_epoch = member_epoch
        self.endpoint_information_epoch = endpoint_information_epoch
        self.instance_id = instance_id
        self.rack_id = rack_id
        self.rebalance_timeout_ms = rebalance_timeout_ms
        self.topology = topology
        self.active_tasks = active_tasks
        self.standby_tasks = standby_tasks
        self.warmup_tasks = warmup_tasks
        self.process_id = process_id
        self.user_endpoint = user_endpoint
        self.client_tags = client_tags
        self.task_offsets = task_offsets
        self.task_end_offsets = task_end_offsets
        self.shutdown_application = shutdown_application
        self.unknown_tags = unknown_tags

    def encode_into(self, out: bytearray, version: int) -> None:
        if not 0 <= version <= 0:
            raise unencodable(StreamsGroupHeartbeatRequest, version)
        try:
            _write_streams_group_heartbeat_request(out, self, version)
        except ENCODE_FAULTS as fault:
            raise bad_value(StreamsGroupHeartbeatRequest, version, fault) from fault

    @classmethod
    def decode(cls, buf: Buffer, version: int, pos: int = 0) -> tuple[StreamsGroupHeartbeatRequest, int]:
        if not 0 <= version <= 0:
            raise undecodable(StreamsGroupHeartbeatRequest, version)
        try:
            return _read_streams_group_heartbeat_request(buf, pos, len(buf), version)
        except DECODE_FAULTS as fault:
            raise bad_bytes(StreamsGroupHeartbeatRequest, version, fault) from fault


class Status(Structure):
    __slots__ = ("status_code", "status_detail", "unknown_tags",)

    def __init__(
        self,
        *,
        status_code: int = 0,
        status_detail: str = "",
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.status_code = status_code
        self.status_detail = status_detail
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


class TopicPartition(Structure):
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


class EndpointToPartitions(Structure):
    __slots__ = ("user_endpoint", "active_partitions", "standby_partitions", "unknown_tags",)

    def __init__(
        self,
        *,
        user_endpoint: Endpoint | None = None,
        active_partitions: list[TopicPartition] = EMPTY_LIST,
        standby_partitions: list[TopicPartition] = EMPTY_LIST,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.user_endpoint = Endpoint() if user_endpoint is None else user_endpoint
        self.active_partitions = [] if active_partitions is EMPTY_LIST else active_partitions
        self.standby_partitions = [] if standby_partitions is EMPTY_LIST else standby_partitions
        self.unknown_tags = unknown_tags


class StreamsGroupHeartbeatResponse(Message):
    __slots__ = ("throttle_time_ms", "error_code", "error_message", "member_id", "member_epoch", "heartbeat_interval_ms", "acceptable_recovery_lag", "task_offset_interval_ms", "status", "active_tasks", "standby_tasks", "warmup_tasks", "endpoint_information_epoch", "partitions_by_user_endpoint", "unknown_tags",)
    API_KEY = 88
    MIN_VERSION = 0
    MAX_VERSION = 0
    FLEXIBLE_FROM = 0
    HAS_ARRAYS = True

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        member_id: str = "",
        member_epoch: int = 0,
        heartbeat_interval_ms: int = 0,
        acceptable_recovery_lag: int = 0,
        task_offset_interval_ms: int = 0,
        status: list[Status] | None = EMPTY_LIST,
        active_tasks: list[TaskIds] | None = None,
        standby_tasks: list[TaskIds] | None = None,
        warmup_tasks: list[TaskIds] | None = None,
        endpoint_information_epoch: int = 0,
        partitions_by_user_endpoint: list[EndpointToPartitions] | None = None,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
        self.member_id = member_id
        self.member_epoch = member_epoch
        self.heartbeat_interval_ms = heartbeat_interval_ms
        self.acceptable_recovery_lag = acceptable_recovery_lag
        self.task_offset_interval_ms = task_offset_interval_ms
        self.status = [] if status is EMPTY_LIST else status
        self.active_tasks = active_tasks
        self.standby_tasks = standby_tasks
        self.warmup_tasks = warmup_tasks
        self.endpoint_information_epoch = endpoint_information_epoch
        self.partitions_by_user_endpoint = partitions_by_user_endpoint
        self.unknown_tags = unknown_tags

    def encode_into(self, out: bytearray, version: int) -> None:
        if not 0 <= version <= 0:
            raise unencodable(StreamsGroupHeartbeatResponse, version)
        try:
            _write_streams_group_heartbeat_response(out, self, version)
        except ENCODE_FAULTS as fault:
            raise bad_value(StreamsGroupHeartbeatResponse, version, fault) from fault

    @classmethod
    def decode(cls, buf: Buffer, version: int, pos: int = 0) -> tuple[StreamsGroupHeartbeatResponse, int]:
        if not 0 <= version <= 0:
            raise undecodable(StreamsGroupHeartbeatResponse, version)
        try:
            return _read_streams_group_heartbeat_response(buf, pos, len(buf), version)
        except DECODE_FAULTS as fault:
            raise bad_bytes(StreamsGroupHeartbeatResponse, version, fault) from fault


_DEFAULT_ENDPOINT = Endpoint()


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


def _read_copartition_group(buf: Buffer, pos: int, limit: int, version: int) -> tuple[CopartitionGroup, int]:
    m = object.__new__(CopartitionGroup)
    count, pos = read_compact_count(buf, pos, limit, 2)
    m.source_topics, pos = read_numbers(buf, pos, count, "h", 2)
    count, pos = read_compact_count(buf, pos, limit, 2)
    m.source_topic_regex, pos = read_numbers(buf, pos, count, "h", 2)
    count, pos = read_compact_count(buf, pos, limit, 2)
    m.repartition_source_topics, pos = read_numbers(buf, pos, count, "h", 2)
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
    return m, pos


def _write_copartition_group(out: bytearray, m: CopartitionGroup, version: int) -> None:
    put_compact_count(out, len(m.source_topics))
    put_numbers(out, m.source_topics, "h")
    put_compact_count(out, len(m.source_topic_regex))
    put_numbers(out, m.source_topic_regex, "h")
    put_compact_count(out, len(m.repartition_source_topics))
    put_numbers(out, m.repartition_source_topics, "h")
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
    read_source_topic_regex = read_compact_string
    source_topic_regex_: list[str] = []
    for _ in range(count):
        source_topic_regex_item, pos = read_source_topic_regex(buf, pos, limit)
        source_topic_regex_.append(source_topic_regex_item)
    m.source_topic_regex = source_topic_regex_
    count, pos = read_compact_count(buf, pos, limit, 9)
    state_changelog_topics_: list[TopicInfo] = []
    for _ in range(count):
        state_changelog_topics_item, pos = _read_topic_info(buf, pos, limit, version)
        state_changelog_topics_.append(state_changelog_topics_item)
    m.state_changelog_topics = state_changelog_topics_
    count, pos = read_compact_count(buf, pos, limit, 1)
    read_repartition_sink_topics = read_compact_string
    repartition_sink_topics_: list[str] = []
    for _ in range(count):
        repartition_sink_topics_item, pos = read_repartition_sink_topics(buf, pos, limit)
        repartition_sink_topics_.append(repartition_sink_topics_item)
    m.repartition_sink_topics = repartition_sink_topics_
    count, pos = read_compact_count(buf, pos, limit, 9)
    repartition_source_topics_: list[TopicInfo] = []
    for _ in range(count):
        repartition_source_topics_item, pos = _read_topic_info(buf, pos, limit, version)
        repartition_source_topics_.append(repartition_source_topics_item)
    m.repartition_source_topics = repartition_source_topics_
    count, pos = read_compact_count(buf, pos, limit, 4)
    copartition_groups_: list[CopartitionGroup] = []
    for _ in range(count):
        copartition_groups_item, pos = _read_copartition_group(buf, pos, limit, version)
        copartition_groups_.append(copartition_groups_item)
    m.copartition_groups = copartition_groups_
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
    put_compact_count(out, len(m.source_topic_regex))
    put_source_topic_regex = put_compact_string
    for source_topic_regex_item in m.source_topic_regex:
        put_source_topic_regex(out, source_topic_regex_item)
    put_compact_count(out, len(m.state_changelog_topics))
    for state_changelog_topics_item in m.state_changelog_topics:
        _write_topic_info(out, state_changelog_topics_item, version)
    put_compact_count(out, len(m.repartition_sink_topics))
    put_repartition_sink_topics = put_compact_string
    for repartition_sink_topics_item in m.repartition_sink_topics:
        put_repartition_sink_topics(out, repartition_sink_topics_item)
    put_compact_count(out, len(m.repartition_source_topics))
    for repartition_source_topics_item in m.repartition_source_topics:
        _write_topic_info(out, repartition_source_topics_item, version)
    put_compact_count(out, len(m.copartition_groups))
    for copartition_groups_item in m.copartition_groups:
        _write_copartition_group(out, copartition_groups_item, version)
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)


def _read_topology(buf: Buffer, pos: int, limit: int, version: int) -> tuple[Topology, int]:
    m = object.__new__(Topology)
    (m.epoch,) = _unpack_i(buf, pos)
    pos += 4
    count, pos = read_compact_count(buf, pos, limit, 8)
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
    put_compact_count(out, len(m.subtopologies))
    for subtopologies_item in m.subtopologies:
        _write_subtopology(out, subtopologies_item, version)
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


def _read_streams_group_heartbeat_request(buf: Buffer, pos: int, limit: int, version: int) -> tuple[StreamsGroupHeartbeatRequest, int]:
    m = object.__new__(StreamsGroupHeartbeatRequest)
    m.group_id, pos = read_compact_string(buf, pos, limit)
    m.member_id, pos = read_compact_string(buf, pos, limit)
    m.member_epoch, m.endpoint_information_epoch = _unpack_ii(buf, pos)
    pos += 8
    m.instance_id, pos = read_compact_nullable_string(buf, pos, limit)
    m.rack_id, pos = read_compact_nullable_string(buf, pos, limit)
    (m.rebalance_timeout_ms,) = _unpack_i(buf, pos)
    pos += 4
    pos += 1
    if buf[pos - 1] > 0x7F:
        m.topology = None
    else:
        m.topology, pos = _read_topology(buf, pos, limit, version)
    count, pos = read_compact_nullable_count(buf, pos, limit, 3)
    if count < 0:
        m.active_tasks = None
    else:
        active_tasks_: list[TaskIds] = []
        for _ in range(count):
            active_tasks_item, pos = _read_task_ids(buf, pos, limit, version)
            active_tasks_.append(active_tasks_item)
        m.active_tasks = active_tasks_
    count, pos = read_compact_nullable_count(buf, pos, limit, 3)
    if count < 0:
        m.standby_tasks = None
    else:
        standby_tasks_: list[TaskIds] = []
        for _ in range(count):
            standby_tasks_item, pos = _read_task_ids(buf, pos, limit, version)
            standby_tasks_.append(standby_tasks_item)
        m.standby_tasks = standby_tasks_
    count, pos = read_compact_nullable_count(buf, pos, limit, 3)
    if count < 0:
        m.warmup_tasks = None
    else:
        warmup_tasks_: list[TaskIds] = []
        for _ in range(count):
            warmup_tasks_item, pos = _read_task_ids(buf, pos, limit, version)
            warmup_tasks_.append(warmup_tasks_item)
        m.warmup_tasks = warmup_tasks_
    m.process_id, pos = read_compact_nullable_string(buf, pos, limit)
    pos += 1
    if buf[pos - 1] > 0x7F:
        m.user_endpoint = None
    else:
        m.user_endpoint, pos = _read_endpoint(buf, pos, limit, version)
    count, pos = read_compact_nullable_count(buf, pos, limit, 3)
    if count < 0:
        m.client_tags = None
    else:
        client_tags_: list[KeyValue] = []
        for _ in range(count):
            client_tags_item, pos = _read_key_value(buf, pos, limit, version)
            client_tags_.append(client_tags_item)
        m.client_tags = client_tags_
    count, pos = read_compact_nullable_count(buf, pos, limit, 14)
    if count < 0:
        m.task_offsets = None
    else:
        task_offsets_: list[TaskOffset] = []
        for _ in range(count):
            task_offsets_item, pos = _read_task_offset(buf, pos, limit, version)
            task_offsets_.append(task_offsets_item)
        m.task_offsets = task_offsets_
    count, pos = read_compact_nullable_count(buf, pos, limit, 14)
    if count < 0:
        m.task_end_offsets = None
    else:
        task_end_offsets_: list[TaskOffset] = []
        for _ in range(count):
            task_end_offsets_item, pos = _read_task_offset(buf, pos, limit, version)
            task_end_offsets_.append(task_end_offsets_item)
        m.task_end_offsets = task_end_offsets_
    m.shutdown_application = buf[pos] != 0
    pos += 1
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
    return m, pos


def _write_streams_group_heartbeat_request(out: bytearray, m: StreamsGroupHeartbeatRequest, version: int) -> None:
    put_compact_string(out, m.group_id)
    put_compact_string(out, m.member_id)
    out += _pack_ii(m.member_epoch, m.endpoint_information_epoch)
    put_compact_nullable_string(out, m.instance_id)
    put_compact_nullable_string(out, m.rack_id)
    out += _pack_i(m.rebalance_timeout_ms)
    if m.topology is None:
        out.append(0xFF)
    else:
        out.append(1)
        _write_topology(out, m.topology, version)
    if m.active_tasks is None:
        out.append(0)
    else:
        put_compact_count(out, len(m.active_tasks))
        for active_tasks_item in m.active_tasks:
            _write_task_ids(out, active_tasks_item, version)
    if m.standby_tasks is None:
        out.append(0)
    else:
        put_compact_count(out, len(m.standby_tasks))
        for standby_tasks_item in m.standby_tasks:
            _write_task_ids(out, standby_tasks_item, version)
    if m.warmup_tasks is None:
        out.append(0)
    else:
        put_compact_count(out, len(m.warmup_tasks))
        for warmup_tasks_item in m.warmup_tasks:
            _write_task_ids(out, warmup_tasks_item, version)
    put_compact_nullable_string(out, m.process_id)
    if m.user_endpoint is None:
        out.append(0xFF)
    else:
        out.append(1)
        _write_endpoint(out, m.user_endpoint, version)
    if m.client_tags is None:
        out.append(0)
    else:
        put_compact_count(out, len(m.client_tags))
        for client_tags_item in m.client_tags:
            _write_key_value(out, client_tags_item, version)
    if m.task_offsets is None:
        out.append(0)
    else:
        put_compact_count(out, len(m.task_offsets))
        for task_offsets_item in m.task_offsets:
            _write_task_offset(out, task_offsets_item, version)
    if m.task_end_offsets is None:
        out.append(0)
    else:
        put_compact_count(out, len(m.task_end_offsets))
        for task_end_offsets_item in m.task_end_offsets:
            _write_task_offset(out, task_end_offsets_item, version)
    out.append(1 if m.shutdown_application else 0)
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)


def _read_status(buf: Buffer, pos: int, limit: int, version: int) -> tuple[Status, int]:
    m = object.__new__(Status)
    (m.status_code,) = _unpack_b(buf, pos)
    pos += 1
    m.status_detail, pos = read_compact_string(buf, pos, limit)
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
    return m, pos


def _write_status(out: bytearray, m: Status, version: int) -> None:
    out += _pack_b(m.status_code)
    put_compact_string(out, m.status_detail)
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


def _read_topic_partition(buf: Buffer, pos: int, limit: int, version: int) -> tuple[TopicPartition, int]:
    m = object.__new__(TopicPartition)
    m.topic, pos = read_compact_string(buf, pos, limit)
    count, pos = read_compact_count(buf, pos, limit, 4)
    m.partitions, pos = read_numbers(buf, pos, count, "i", 4)
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
    return m, pos


def _write_topic_partition(out: bytearray, m: TopicPartition, version: int) -> None:
    put_compact_string(out, m.topic)
    put_compact_count(out, len(m.partitions))
    put_numbers(out, m.partitions, "i")
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)


def _read_endpoint_to_partitions(buf: Buffer, pos: int, limit: int, version: int) -> tuple[EndpointToPartitions, int]:
    m = object.__new__(EndpointToPartitions)
    m.user_endpoint, pos = _read_endpoint(buf, pos, limit, version)
    count, pos = read_compact_count(buf, pos, limit, 3)
    active_partitions_: list[TopicPartition] = []
    for _ in range(count):
        active_partitions_item, pos = _read_topic_partition(buf, pos, limit, version)
        active_partitions_.append(active_partitions_item)
    m.active_partitions = active_partitions_
    count, pos = read_compact_count(buf, pos, limit, 3)
    standby_partitions_: list[TopicPartition] = []
    for _ in range(count):
        standby_partitions_item, pos = _read_topic_partition(buf, pos, limit, version)
        standby_partitions_.append(standby_partitions_item)
    m.standby_partitions = standby_partitions_
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
    return m, pos


def _write_endpoint_to_partitions(out: bytearray, m: EndpointToPartitions, version: int) -> None:
    _write_endpoint(out, m.user_endpoint, version)
    put_compact_count(out, len(m.active_partitions))
    for active_partitions_item in m.active_partitions:
        _write_topic_partition(out, active_partitions_item, version)
    put_compact_count(out, len(m.standby_partitions))
    for standby_partitions_item in m.standby_partitions:
        _write_topic_partition(out, standby_partitions_item, version)
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)


def _read_streams_group_heartbeat_response(buf: Buffer, pos: int, limit: int, version: int) -> tuple[StreamsGroupHeartbeatResponse, int]:
    m = object.__new__(StreamsGroupHeartbeatResponse)
    m.throttle_time_ms, m.error_code = _unpack_ih(buf, pos)
    pos += 6
    m.error_message, pos = read_compact_nullable_string(buf, pos, limit)
    m.member_id, pos = read_compact_string(buf, pos, limit)
    m.member_epoch, m.heartbeat_interval_ms, m.acceptable_recovery_lag, m.task_offset_interval_ms = _unpack_iiii(buf, pos)
    pos += 16
    count, pos = read_compact_nullable_count(buf, pos, limit, 3)
    if count < 0:
        m.status = None
    else:
        status_: list[Status] = []
        for _ in range(count):
            status_item, pos = _read_status(buf, pos, limit, version)
            status_.append(status_item)
        m.status = status_
    count, pos = read_compact_nullable_count(buf, pos, limit, 3)
    if count < 0:
        m.active_tasks = None
    else:
        active_tasks_: list[TaskIds] = []
        for _ in range(count):
            active_tasks_item, pos = _read_task_ids(buf, pos, limit, version)
            active_tasks_.append(active_tasks_item)
        m.active_tasks = active_tasks_
    count, pos = read_compact_nullable_count(buf, pos, limit, 3)
    if count < 0:
        m.standby_tasks = None
    else:
        standby_tasks_: list[TaskIds] = []
        for _ in range(count):
            standby_tasks_item, pos = _read_task_ids(buf, pos, limit, version)
            standby_tasks_.append(standby_tasks_item)
        m.standby_tasks = standby_tasks_
    count, pos = read_compact_nullable_count(buf, pos, limit, 3)
    if count < 0:
        m.warmup_tasks = None
    else:
        warmup_tasks_: list[TaskIds] = []
        for _ in range(count):
            warmup_tasks_item, pos = _read_task_ids(buf, pos, limit, version)
            warmup_tasks_.append(warmup_tasks_item)
        m.warmup_tasks = warmup_tasks_
    (m.endpoint_information_epoch,) = _unpack_i(buf, pos)
    pos += 4
    count, pos = read_compact_nullable_count(buf, pos, limit, 7)
    if count < 0:
        m.partitions_by_user_endpoint = None
    else:
        partitions_by_user_endpoint_: list[EndpointToPartitions] = []
        for _ in range(count):
            partitions_by_user_endpoint_item, pos = _read_endpoint_to_partitions(buf, pos, limit, version)
            partitions_by_user_endpoint_.append(partitions_by_user_endpoint_item)
        m.partitions_by_user_endpoint = partitions_by_user_endpoint_
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
    return m, pos


def _write_streams_group_heartbeat_response(out: bytearray, m: StreamsGroupHeartbeatResponse, version: int) -> None:
    out += _pack_ih(m.throttle_time_ms, m.error_code)
    put_compact_nullable_string(out, shortened(m.error_message))
    put_compact_string(out, m.member_id)
    out += _pack_iiii(m.member_epoch, m.heartbeat_interval_ms, m.acceptable_recovery_lag, m.task_offset_interval_ms)
    if m.status is None:
        out.append(0)
    else:
        put_compact_count(out, len(m.status))
        for status_item in m.status:
            _write_status(out, status_item, version)
    if m.active_tasks is None:
        out.append(0)
    else:
        put_compact_count(out, len(m.active_tasks))
        for active_tasks_item in m.active_tasks:
            _write_task_ids(out, active_tasks_item, version)
    if m.standby_tasks is None:
        out.append(0)
    else:
        put_compact_count(out, len(m.standby_tasks))
        for standby_tasks_item in m.standby_tasks:
            _write_task_ids(out, standby_tasks_item, version)
    if m.warmup_tasks is None:
        out.append(0)
    else:
        put_compact_count(out, len(m.warmup_tasks))
        for warmup_tasks_item in m.warmup_tasks:
            _write_task_ids(out, warmup_tasks_item, version)
    out += _pack_i(m.endpoint_information_epoch)
    if m.partitions_by_user_endpoint is None:
        out.append(0)
    else:
        put_compact_count(out, len(m.partitions_by_user_endpoint))
        for partitions_by_user_endpoint_item in m.partitions_by_user_endpoint:
            _write_endpoint_to_partitions(out, partitions_by_user_endpoint_item, version)
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)
