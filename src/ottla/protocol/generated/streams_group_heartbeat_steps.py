"""The one request of a streams group's members: join, report, leave, be assigned tasks.

In steps; made from schemas/streams_group_heartbeat.schema by `python -m ottla.protocol.compile`.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct
from sys import getsizeof
from typing import Any

from ottla.protocol.generated.streams_group_heartbeat import (
    CopartitionGroup,
    Endpoint,
    EndpointToPartitions,
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
    Subtopology,
    TaskIds,
    TopicInfo,
    TopicPartition,
    Topology,
    _read_key_value,
    _read_task_offset,
    _write_endpoint,
    _write_status,
)
from ottla.protocol.message import Message
from ottla.protocol.primitives import (
    Buffer,
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
from ottla.protocol.stepping import (
    DecodingAllowance,
    FEW,
    NUMBERS_A_PIECE,
    PIECE,
    Pace,
    read_few,
    read_many_numbers,
    read_strings,
    read_structs,
    write_many_numbers,
    write_structs,
)
from ottla.steps import Steps

_pack_i = Struct(">i").pack
_pack_ih = Struct(">ih").pack
_pack_iiii = Struct(">iiii").pack
_unpack_H = Struct(">H").unpack_from
_unpack_i = Struct(">i").unpack_from
_unpack_ih = Struct(">ih").unpack_from
_unpack_ii = Struct(">ii").unpack_from


def _read_topic_info_held(buf: Buffer, pos: int, limit: int, version: int, allowance: DecodingAllowance) -> Steps[tuple[TopicInfo, int]]:
    m = object.__new__(TopicInfo)
    m.name, pos = read_compact_string(buf, pos, limit)
    allowance.left -= getsizeof(m.name)
    m.partitions, m.replication_factor = _unpack_ih(buf, pos)
    pos += 6
    count, pos = read_compact_count(buf, pos, limit, 3)
    if count > FEW:
        allowance.take_array(count, 232)
        m.topic_configs, pos = yield from read_structs(_read_key_value, buf, pos, limit, version, count, allowance, text=True)
    else:
        allowance.left -= count * 232
        m.topic_configs, pos = read_few(_read_key_value, buf, pos, limit, version, count, allowance, text=True)
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
        allowance.take_tags(m.unknown_tags)
    return m, pos


def _read_copartition_group_held(buf: Buffer, pos: int, limit: int, version: int, allowance: DecodingAllowance) -> Steps[tuple[CopartitionGroup, int]]:
    m = object.__new__(CopartitionGroup)
    count, pos = read_compact_count(buf, pos, limit, 2)
    if count > NUMBERS_A_PIECE:
        allowance.take_array(count, 40)
        m.source_topics, pos = yield from read_many_numbers(buf, pos, count, "h", 2, allowance)
    else:
        m.source_topics, pos = read_numbers(buf, pos, count, "h", 2)
        allowance.left -= count * 40
        allowance.work -= count // PIECE
    count, pos = read_compact_count(buf, pos, limit, 2)
    if count > NUMBERS_A_PIECE:
        allowance.take_array(count, 40)
        m.source_topic_regex, pos = yield from read_many_numbers(buf, pos, count, "h", 2, allowance)
    else:
        m.source_topic_regex, pos = read_numbers(buf, pos, count, "h", 2)
        allowance.left -= count * 40
        allowance.work -= count // PIECE
    count, pos = read_compact_count(buf, pos, limit, 2)
    if count > NUMBERS_A_PIECE:
        allowance.take_array(count, 40)
        m.repartition_source_topics, pos = yield from read_many_numbers(buf, pos, count, "h", 2, allowance)
    else:
        m.repartition_source_topics, pos = read_numbers(buf, pos, count, "h", 2)
        allowance.left -= count * 40
        allowance.work -= count // PIECE
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
        allowance.take_tags(m.unknown_tags)
    return m, pos


def _read_subtopology_held(buf: Buffer, pos: int, limit: int, version: int, allowance: DecodingAllowance) -> Steps[tuple[Subtopology, int]]:
    m = object.__new__(Subtopology)
    m.subtopology_id, pos = read_compact_string(buf, pos, limit)
    allowance.left -= getsizeof(m.subtopology_id)
    count, pos = read_compact_count(buf, pos, limit, 1)
    allowance.take_array(count, 304)
    m.source_topics, pos = yield from read_strings(read_compact_string, buf, pos, limit, count, allowance)
    count, pos = read_compact_count(buf, pos, limit, 1)
    allowance.take_array(count, 304)
    m.source_topic_regex, pos = yield from read_strings(read_compact_string, buf, pos, limit, count, allowance)
    count, pos = read_compact_count(buf, pos, limit, 9)
    allowance.take_array(count, 224)
    state_changelog_topics_: list[TopicInfo] = []
    for _ in range(count):
        state_changelog_topics_item, pos = yield from _read_topic_info_held(buf, pos, limit, version, allowance)
        state_changelog_topics_.append(state_changelog_topics_item)
        if allowance.due(pos):
            yield
    m.state_changelog_topics = state_changelog_topics_
    count, pos = read_compact_count(buf, pos, limit, 1)
    allowance.take_array(count, 304)
    m.repartition_sink_topics, pos = yield from read_strings(read_compact_string, buf, pos, limit, count, allowance)
    count, pos = read_compact_count(buf, pos, limit, 9)
    allowance.take_array(count, 224)
    repartition_source_topics_: list[TopicInfo] = []
    for _ in range(count):
        repartition_source_topics_item, pos = yield from _read_topic_info_held(buf, pos, limit, version, allowance)
        repartition_source_topics_.append(repartition_source_topics_item)
        if allowance.due(pos):
            yield
    m.repartition_source_topics = repartition_source_topics_
    count, pos = read_compact_count(buf, pos, limit, 4)
    allowance.take_array(count, 296)
    copartition_groups_: list[CopartitionGroup] = []
    for _ in range(count):
        copartition_groups_item, pos = yield from _read_copartition_group_held(buf, pos, limit, version, allowance)
        copartition_groups_.append(copartition_groups_item)
        if allowance.due(pos):
            yield
    m.copartition_groups = copartition_groups_
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
        allowance.take_tags(m.unknown_tags)
    return m, pos


def _read_topology_held(buf: Buffer, pos: int, limit: int, version: int, allowance: DecodingAllowance) -> Steps[tuple[Topology, int]]:
    m = object.__new__(Topology)
    (m.epoch,) = _unpack_i(buf, pos)
    pos += 4
    count, pos = read_compact_count(buf, pos, limit, 8)
    allowance.take_array(count, 544)
    subtopologies_: list[Subtopology] = []
    for _ in range(count):
        subtopologies_item, pos = yield from _read_subtopology_held(buf, pos, limit, version, allowance)
        subtopologies_.append(subtopologies_item)
        if allowance.due(pos):
            yield
    m.subtopologies = subtopologies_
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
        allowance.take_tags(m.unknown_tags)
    return m, pos


def _read_streams_group_heartbeat_request_held(buf: Buffer, pos: int, limit: int, version: int, allowance: DecodingAllowance) -> Steps[tuple[StreamsGroupHeartbeatRequest, int]]:
    m = object.__new__(StreamsGroupHeartbeatRequest)
    m.group_id, pos = read_compact_string(buf, pos, limit)
    allowance.left -= getsizeof(m.group_id)
    m.member_id, pos = read_compact_string(buf, pos, limit)
    allowance.left -= getsizeof(m.member_id)
    m.member_epoch, m.endpoint_information_epoch = _unpack_ii(buf, pos)
    pos += 8
    m.instance_id, pos = read_compact_nullable_string(buf, pos, limit)
    allowance.left -= getsizeof(m.instance_id)
    m.rack_id, pos = read_compact_nullable_string(buf, pos, limit)
    allowance.left -= getsizeof(m.rack_id)
    (m.rebalance_timeout_ms,) = _unpack_i(buf, pos)
    pos += 4
    pos += 1
    if buf[pos - 1] > 0x7F:
        m.topology = None
    else:
        m.topology, pos = yield from _read_topology_held(buf, pos, limit, version, allowance)
    count, pos = read_compact_nullable_count(buf, pos, limit, 3)
    if count < 0:
        m.active_tasks = None
    else:
        allowance.take_array(count, 224)
        active_tasks_: list[TaskIds] = []
        for _ in range(count):
            active_tasks_item, pos = yield from _read_task_ids_held(buf, pos, limit, version, allowance)
            active_tasks_.append(active_tasks_item)
            if allowance.due(pos):
                yield
        m.active_tasks = active_tasks_
    count, pos = read_compact_nullable_count(buf, pos, limit, 3)
    if count < 0:
        m.standby_tasks = None
    else:
        allowance.take_array(count, 224)
        standby_tasks_: list[TaskIds] = []
        for _ in range(count):
            standby_tasks_item, pos = yield from _read_task_ids_held(buf, pos, limit, version, allowance)
            standby_tasks_.append(standby_tasks_item)
            if allowance.due(pos):
                yield
        m.standby_tasks = standby_tasks_
    count, pos = read_compact_nullable_count(buf, pos, limit, 3)
    if count < 0:
        m.warmup_tasks = None
    else:
        allowance.take_array(count, 224)
        warmup_tasks_: list[TaskIds] = []
        for _ in range(count):
            warmup_tasks_item, pos = yield from _read_task_ids_held(buf, pos, limit, version, allowance)
            warmup_tasks_.append(warmup_tasks_item)
            if allowance.due(pos):
                yield
        m.warmup_tasks = warmup_tasks_
    m.process_id, pos = read_compact_nullable_string(buf, pos, limit)
    allowance.left -= getsizeof(m.process_id)
    pos += 1
    if buf[pos - 1] > 0x7F:
        m.user_endpoint = None
    else:
        m.user_endpoint, pos = _read_endpoint_held(buf, pos, limit, version, allowance)
    count, pos = read_compact_nullable_count(buf, pos, limit, 3)
    if count < 0:
        m.client_tags = None
    else:
        if count > FEW:
            allowance.take_array(count, 232)
            m.client_tags, pos = yield from read_structs(_read_key_value, buf, pos, limit, version, count, allowance, text=True)
        else:
            allowance.left -= count * 232
            m.client_tags, pos = read_few(_read_key_value, buf, pos, limit, version, count, allowance, text=True)
    count, pos = read_compact_nullable_count(buf, pos, limit, 14)
    if count < 0:
        m.task_offsets = None
    else:
        if count > FEW:
            allowance.take_array(count, 224)
            m.task_offsets, pos = yield from read_structs(_read_task_offset, buf, pos, limit, version, count, allowance, text=True)
        else:
            allowance.left -= count * 224
            m.task_offsets, pos = read_few(_read_task_offset, buf, pos, limit, version, count, allowance, text=True)
    count, pos = read_compact_nullable_count(buf, pos, limit, 14)
    if count < 0:
        m.task_end_offsets = None
    else:
        if count > FEW:
            allowance.take_array(count, 224)
            m.task_end_offsets, pos = yield from read_structs(_read_task_offset, buf, pos, limit, version, count, allowance, text=True)
        else:
            allowance.left -= count * 224
            m.task_end_offsets, pos = read_few(_read_task_offset, buf, pos, limit, version, count, allowance, text=True)
    m.shutdown_application = buf[pos] != 0
    pos += 1
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
        allowance.take_tags(m.unknown_tags)
    return m, pos


def _read_task_ids_held(buf: Buffer, pos: int, limit: int, version: int, allowance: DecodingAllowance) -> Steps[tuple[TaskIds, int]]:
    m = object.__new__(TaskIds)
    m.subtopology_id, pos = read_compact_string(buf, pos, limit)
    allowance.left -= getsizeof(m.subtopology_id)
    count, pos = read_compact_count(buf, pos, limit, 4)
    if count > NUMBERS_A_PIECE:
        allowance.take_array(count, 304)
        m.partitions, pos = yield from read_many_numbers(buf, pos, count, "i", 4, allowance)
    else:
        m.partitions, pos = read_numbers(buf, pos, count, "i", 4)
        allowance.left -= count * 304
        allowance.work -= count // PIECE
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
        allowance.take_tags(m.unknown_tags)
    return m, pos


def _write_task_ids_steps(out: bytearray, m: TaskIds, version: int, pace: Pace) -> Steps[None]:
    put_compact_string(out, m.subtopology_id)
    put_compact_count(out, len(m.partitions))
    if len(m.partitions) > NUMBERS_A_PIECE:
        yield from write_many_numbers(out, m.partitions, "i", pace)
    else:
        put_numbers(out, m.partitions, "i")
        pace.work -= len(m.partitions) // PIECE
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)


def _read_endpoint_held(buf: Buffer, pos: int, limit: int, version: int, allowance: DecodingAllowance) -> tuple[Endpoint, int]:
    m = object.__new__(Endpoint)
    m.host, pos = read_compact_string(buf, pos, limit)
    allowance.left -= getsizeof(m.host)
    (m.port,) = _unpack_H(buf, pos)
    pos += 2
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
        allowance.take_tags(m.unknown_tags)
    return m, pos


def _write_topic_partition_steps(out: bytearray, m: TopicPartition, version: int, pace: Pace) -> Steps[None]:
    put_compact_string(out, m.topic)
    put_compact_count(out, len(m.partitions))
    if len(m.partitions) > NUMBERS_A_PIECE:
        yield from write_many_numbers(out, m.partitions, "i", pace)
    else:
        put_numbers(out, m.partitions, "i")
        pace.work -= len(m.partitions) // PIECE
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)


def _write_endpoint_to_partitions_steps(out: bytearray, m: EndpointToPartitions, version: int, pace: Pace) -> Steps[None]:
    _write_endpoint(out, m.user_endpoint, version)
    put_compact_count(out, len(m.active_partitions))
    for active_partitions_item in m.active_partitions:
        yield from _write_topic_partition_steps(out, active_partitions_item, version, pace)
        if pace.due():
            yield
    put_compact_count(out, len(m.standby_partitions))
    for standby_partitions_item in m.standby_partitions:
        yield from _write_topic_partition_steps(out, standby_partitions_item, version, pace)
        if pace.due():
            yield
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)


def _write_streams_group_heartbeat_response_steps(out: bytearray, m: StreamsGroupHeartbeatResponse, version: int, pace: Pace) -> Steps[None]:
    out += _pack_ih(m.throttle_time_ms, m.error_code)
    put_compact_nullable_string(out, shortened(m.error_message))
    put_compact_string(out, m.member_id)
    out += _pack_iiii(m.member_epoch, m.heartbeat_interval_ms, m.acceptable_recovery_lag, m.task_offset_interval_ms)
    if m.status is None:
        out.append(0)
    else:
        put_compact_count(out, len(m.status))
        if len(m.status) > FEW:
            yield from write_structs(out, m.status, _write_status, version, pace)
        else:
            for status_item in m.status:
                _write_status(out, status_item, version)
            pace.work -= len(m.status)
    if m.active_tasks is None:
        out.append(0)
    else:
        put_compact_count(out, len(m.active_tasks))
        for active_tasks_item in m.active_tasks:
            yield from _write_task_ids_steps(out, active_tasks_item, version, pace)
            if pace.due():
                yield
    if m.standby_tasks is None:
        out.append(0)
    else:
        put_compact_count(out, len(m.standby_tasks))
        for standby_tasks_item in m.standby_tasks:
            yield from _write_task_ids_steps(out, standby_tasks_item, version, pace)
            if pace.due():
                yield
    if m.warmup_tasks is None:
        out.append(0)
    else:
        put_compact_count(out, len(m.warmup_tasks))
        for warmup_tasks_item in m.warmup_tasks:
            yield from _write_task_ids_steps(out, warmup_tasks_item, version, pace)
            if pace.due():
                yield
    out += _pack_i(m.endpoint_information_epoch)
    if m.partitions_by_user_endpoint is None:
        out.append(0)
    else:
        put_compact_count(out, len(m.partitions_by_user_endpoint))
        for partitions_by_user_endpoint_item in m.partitions_by_user_endpoint:
            yield from _write_endpoint_to_partitions_steps(out, partitions_by_user_endpoint_item, version, pace)
            if pace.due():
                yield
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)


READERS: dict[type[Message], Callable[..., Steps[Any]]] = {
    StreamsGroupHeartbeatRequest: _read_streams_group_heartbeat_request_held,
}

WRITERS: dict[type[Message], Callable[..., Steps[Any]]] = {
    StreamsGroupHeartbeatResponse: _write_streams_group_heartbeat_response_steps,
}
