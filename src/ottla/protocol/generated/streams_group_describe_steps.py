"""State, members and topology of streams groups.

In steps; made from schemas/streams_group_describe.schema by `python -m ottla.protocol.compile`.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct
from typing import Any

from ottla.protocol.generated.streams_group_describe import (
    Assignment,
    DescribedGroup,
    Member,
    StreamsGroupDescribeRequest,
    StreamsGroupDescribeResponse,
    Subtopology,
    TaskIds,
    TopicInfo,
    Topology,
    _write_endpoint,
    _write_key_value,
    _write_task_offset,
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
    read_compact_string,
    read_tags,
    shortened,
)
from ottla.protocol.stepping import (
    DecodingAllowance,
    FEW,
    NUMBERS_A_PIECE,
    PIECE,
    Pace,
    read_strings,
    write_many_numbers,
    write_strings,
    write_structs,
)
from ottla.steps import Steps

_pack_h = Struct(">h").pack
_pack_i = Struct(">i").pack
_pack_ih = Struct(">ih").pack
_pack_ii = Struct(">ii").pack


def _read_streams_group_describe_request_held(buf: Buffer, pos: int, limit: int, version: int, allowance: DecodingAllowance) -> Steps[tuple[StreamsGroupDescribeRequest, int]]:
    m = object.__new__(StreamsGroupDescribeRequest)
    count, pos = read_compact_count(buf, pos, limit, 1)
    allowance.take_array(count, 304)
    m.group_ids, pos = yield from read_strings(read_compact_string, buf, pos, limit, count, allowance)
    m.include_authorized_operations = buf[pos] != 0
    pos += 1
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
        allowance.take_tags(m.unknown_tags)
    return m, pos


def _write_topic_info_steps(out: bytearray, m: TopicInfo, version: int, pace: Pace) -> Steps[None]:
    put_compact_string(out, m.name)
    out += _pack_ih(m.partitions, m.replication_factor)
    put_compact_count(out, len(m.topic_configs))
    if len(m.topic_configs) > FEW:
        yield from write_structs(out, m.topic_configs, _write_key_value, version, pace)
    else:
        for topic_configs_item in m.topic_configs:
            _write_key_value(out, topic_configs_item, version)
        pace.work -= len(m.topic_configs)
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)


def _write_subtopology_steps(out: bytearray, m: Subtopology, version: int, pace: Pace) -> Steps[None]:
    put_compact_string(out, m.subtopology_id)
    put_compact_count(out, len(m.source_topics))
    yield from write_strings(out, m.source_topics, put_compact_string, pace)
    put_compact_count(out, len(m.repartition_sink_topics))
    yield from write_strings(out, m.repartition_sink_topics, put_compact_string, pace)
    put_compact_count(out, len(m.state_changelog_topics))
    for state_changelog_topics_item in m.state_changelog_topics:
        yield from _write_topic_info_steps(out, state_changelog_topics_item, version, pace)
        if pace.due():
            yield
    put_compact_count(out, len(m.repartition_source_topics))
    for repartition_source_topics_item in m.repartition_source_topics:
        yield from _write_topic_info_steps(out, repartition_source_topics_item, version, pace)
        if pace.due():
            yield
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)


def _write_topology_steps(out: bytearray, m: Topology, version: int, pace: Pace) -> Steps[None]:
    out += _pack_i(m.epoch)
    if m.subtopologies is None:
        out.append(0)
    else:
        put_compact_count(out, len(m.subtopologies))
        for subtopologies_item in m.subtopologies:
            yield from _write_subtopology_steps(out, subtopologies_item, version, pace)
            if pace.due():
                yield
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)


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


def _write_assignment_steps(out: bytearray, m: Assignment, version: int, pace: Pace) -> Steps[None]:
    put_compact_count(out, len(m.active_tasks))
    for active_tasks_item in m.active_tasks:
        yield from _write_task_ids_steps(out, active_tasks_item, version, pace)
        if pace.due():
            yield
    put_compact_count(out, len(m.standby_tasks))
    for standby_tasks_item in m.standby_tasks:
        yield from _write_task_ids_steps(out, standby_tasks_item, version, pace)
        if pace.due():
            yield
    put_compact_count(out, len(m.warmup_tasks))
    for warmup_tasks_item in m.warmup_tasks:
        yield from _write_task_ids_steps(out, warmup_tasks_item, version, pace)
        if pace.due():
            yield
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)


def _write_member_steps(out: bytearray, m: Member, version: int, pace: Pace) -> Steps[None]:
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
    if len(m.client_tags) > FEW:
        yield from write_structs(out, m.client_tags, _write_key_value, version, pace)
    else:
        for client_tags_item in m.client_tags:
            _write_key_value(out, client_tags_item, version)
        pace.work -= len(m.client_tags)
    put_compact_count(out, len(m.task_offsets))
    if len(m.task_offsets) > FEW:
        yield from write_structs(out, m.task_offsets, _write_task_offset, version, pace)
    else:
        for task_offsets_item in m.task_offsets:
            _write_task_offset(out, task_offsets_item, version)
        pace.work -= len(m.task_offsets)
    put_compact_count(out, len(m.task_end_offsets))
    if len(m.task_end_offsets) > FEW:
        yield from write_structs(out, m.task_end_offsets, _write_task_offset, version, pace)
    else:
        for task_end_offsets_item in m.task_end_offsets:
            _write_task_offset(out, task_end_offsets_item, version)
        pace.work -= len(m.task_end_offsets)
    yield from _write_assignment_steps(out, m.assignment, version, pace)
    yield from _write_assignment_steps(out, m.target_assignment, version, pace)
    out.append(1 if m.is_classic else 0)
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)


def _write_described_group_steps(out: bytearray, m: DescribedGroup, version: int, pace: Pace) -> Steps[None]:
    out += _pack_h(m.error_code)
    put_compact_nullable_string(out, shortened(m.error_message))
    put_compact_string(out, m.group_id)
    put_compact_string(out, m.group_state)
    out += _pack_ii(m.group_epoch, m.assignment_epoch)
    if m.topology is None:
        out.append(0xFF)
    else:
        out.append(1)
        yield from _write_topology_steps(out, m.topology, version, pace)
    put_compact_count(out, len(m.members))
    for members_item in m.members:
        yield from _write_member_steps(out, members_item, version, pace)
        if pace.due():
            yield
    out += _pack_i(m.authorized_operations)
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)


def _write_streams_group_describe_response_steps(out: bytearray, m: StreamsGroupDescribeResponse, version: int, pace: Pace) -> Steps[None]:
    out += _pack_i(m.throttle_time_ms)
    put_compact_count(out, len(m.groups))
    for groups_item in m.groups:
        yield from _write_described_group_steps(out, groups_item, version, pace)
        if pace.due():
            yield
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)


READERS: dict[type[Message], Callable[..., Steps[Any]]] = {
    StreamsGroupDescribeRequest: _read_streams_group_describe_request_held,
}

WRITERS: dict[type[Message], Callable[..., Steps[Any]]] = {
    StreamsGroupDescribeResponse: _write_streams_group_describe_response_steps,
}
