"""OffsetCommit, for members of both kinds of group and for consumers without membership.

The shortest path of a coordinator, and the one that is taken most: twenty thousand times a second. It makes the bytes
of each record once, and keeps those as the group's state.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import partial
from itertools import count
from struct import Struct
from typing import Final

from ottla.groups.caller import Caller
from ottla.groups.classic.group import ClassicGroup
from ottla.groups.journal import JournalRecord
from ottla.groups.records.offset_records import NO_EXPIRY, group_prefix, offset_value, topic_prefix
from ottla.groups.state import Reply, ShardState
from ottla.groups.timers import session_key
from ottla.model import ErrorCode
from ottla.protocol.errors import EncodeError
from ottla.protocol.generated.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)

#: From this version on a group that does not exist has an error of its own.
NOT_FOUND_SINCE: Final = 9

#: The answer where all that was asked for is committed. It stands for `committed` of the request: whoever sends it may
#: have the bytes ready.
ALL_COMMITTED: Final = OffsetCommitResponse()

_Place = tuple[str, int]
_NOTHING_REFUSED: Final[frozenset[int]] = frozenset()
_pack_partition: Final = Struct(">i").pack
_NONE: Final = int(ErrorCode.NONE)
_TOO_LARGE: Final = int(ErrorCode.OFFSET_METADATA_TOO_LARGE)


def commit_offsets(
    state: ShardState, caller: Caller, request: OffsetCommitRequest, reply: Reply[OffsetCommitResponse]
) -> None:
    group_id, member_id = request.group_id, request.member_id
    group = state.groups.get(group_id)
    if group is not None:
        error = group.check_commit(
            member_id, request.group_instance_id, request.generation_id_or_member_epoch, caller.version, request.topics
        )
    else:
        error = _without_group(caller, request)
    if error:
        reply(commit_refused(request, error))
        return
    now = caller.now
    if group is not None and member_id:
        until_ms = group.heard_from(member_id, now.monotonic_ms)
        if until_ms is not None:
            state.timers.put_off(session_key(group_id, member_id), until_ms)
    try:
        records, places, refused = _records(state, request, now.wall_ms)
    except EncodeError:
        reply(commit_refused(request, ErrorCode.INVALID_GROUP_ID))
        return
    response = committed(request, refused) if refused else ALL_COMMITTED
    if not records:
        reply(response)
        return
    error = state.write(records, now, partial(_written, request, response, reply))
    if error:
        reply(commit_refused(request, error))
        return
    if group is None:
        # It keeps offsets, and has no members: what Kafka calls a simple group.
        state.groups[group_id] = ClassicGroup(group_id, now.wall_ms)
    put = state.offsets.put
    for (topic, partition), (_, value) in zip(places, records, strict=True):
        assert value is not None
        put(group_id, topic, partition, value)
    state.counts.commits += len(records)


def _records(
    state: ShardState, request: OffsetCommitRequest, now_ms: int
) -> tuple[list[JournalRecord], list[_Place], frozenset[int]]:
    """What is to be written, and of which partitions; and which entries of the request, counted through, have too much
    metadata. EncodeError where a name is too long.
    """
    metadata_max = state.settings().offsets.metadata_bytes_max
    retention_ms = request.retention_time_ms
    expire_ms = NO_EXPIRY if retention_ms == -1 else max(0, now_ms + retention_ms)
    prefix = group_prefix(request.group_id)
    records: list[JournalRecord] = []
    places: list[_Place] = []
    refused = _NOTHING_REFUSED
    for topic in request.topics:
        name, topic_id = topic.name, topic.topic_id
        key = topic_prefix(prefix, name)
        for partition in topic.partitions:
            index = partition.partition_index
            metadata = partition.committed_metadata or ""
            if metadata and _length(metadata) > metadata_max:
                refused |= {len(records) + len(refused)}
                continue
            value = offset_value(
                partition.committed_offset, partition.committed_leader_epoch, metadata, now_ms, expire_ms, topic_id
            )
            records.append(JournalRecord(key + _pack_partition(index), value))
            places.append((name, index))
    return records, places, refused


def _written(
    request: OffsetCommitRequest, response: OffsetCommitResponse, reply: Reply[OffsetCommitResponse], error: ErrorCode
) -> None:
    reply(commit_refused(request, error) if error else response)


def _without_group(caller: Caller, request: OffsetCommitRequest) -> ErrorCode:
    if request.generation_id_or_member_epoch < 0:
        return ErrorCode.NONE
    return ErrorCode.GROUP_ID_NOT_FOUND if caller.version >= NOT_FOUND_SINCE else ErrorCode.ILLEGAL_GENERATION


def _length(metadata: str) -> int:
    """In UTF-16 units, as Kafka counts it against offset.metadata.max.bytes."""
    return len(metadata) if metadata.isascii() else len(metadata.encode("utf-16-le", "surrogatepass")) // 2


def committed(request: OffsetCommitRequest, refused: Collection[int] = ()) -> OffsetCommitResponse:
    """All of it, but for the entries, counted through the request, that have too much metadata."""
    number = count()
    return OffsetCommitResponse(
        topics=[
            OffsetCommitResponseTopic(
                name=topic.name,
                topic_id=topic.topic_id,
                partitions=[
                    OffsetCommitResponsePartition(
                        partition_index=partition.partition_index,
                        error_code=_TOO_LARGE if next(number) in refused else _NONE,
                    )
                    for partition in topic.partitions
                ],
            )
            for topic in request.topics
            if topic.partitions
        ]
    )


def commit_refused(request: OffsetCommitRequest, error: ErrorCode) -> OffsetCommitResponse:
    return OffsetCommitResponse(
        topics=[
            OffsetCommitResponseTopic(
                name=topic.name,
                topic_id=topic.topic_id,
                partitions=[
                    OffsetCommitResponsePartition(partition_index=partition.partition_index, error_code=error)
                    for partition in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )
