"""OffsetDelete, and the deletion of a group with all that it has committed."""

from __future__ import annotations

from typing import Final, NamedTuple

from ottla.groups.caller import Now
from ottla.groups.group import Group
from ottla.groups.journal import JournalRecord
from ottla.groups.records.offset_records import offset_key
from ottla.groups.state import Reply, ShardState
from ottla.model import ErrorCode
from ottla.protocol.generated.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)

#: Tombstones that are written together: some hundred kilobytes, where a batch may be a megabyte.
TOMBSTONES_AT_ONCE_MAX: Final = 1_000


class Place(NamedTuple):
    group_id: str
    topic: str
    partition: int


def tombstone(place: Place) -> JournalRecord:
    return JournalRecord(offset_key(*place), None)


def delete_offsets(
    state: ShardState, now: Now, request: OffsetDeleteRequest, reply: Reply[OffsetDeleteResponse]
) -> None:
    group = state.groups.get(request.group_id)
    error = ErrorCode.GROUP_ID_NOT_FOUND if group is None else group.check_offset_delete()
    if group is None or error:
        reply(OffsetDeleteResponse(error_code=error))
        return
    places: list[Place] = []
    topics = []
    for topic in request.topics:
        code = ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC if group.is_subscribed(topic.name) else ErrorCode.NONE
        if not code:
            named = (Place(group.id, topic.name, partition.partition_index) for partition in topic.partitions)
            places += [place for place in named if _is_kept(state, place)]
        topics.append(
            OffsetDeleteResponseTopic(
                name=topic.name,
                partitions=[
                    OffsetDeleteResponsePartition(partition_index=partition.partition_index, error_code=code)
                    for partition in topic.partitions
                ],
            )
        )
    response = OffsetDeleteResponse(topics=topics)

    def done(error: ErrorCode) -> None:
        reply(OffsetDeleteResponse(error_code=error) if error else response)

    if not places:
        reply(response)
    elif error := remove_offsets(state, places, now, done):
        done(error)


def remove_offsets(state: ShardState, places: list[Place], now: Now, done: Reply[ErrorCode]) -> ErrorCode:
    """Writes tombstones, a piece at a time; `done` is told of the last. An error: a part may be gone, `done` is not
    told.
    """
    for start in range(0, len(places), TOMBSTONES_AT_ONCE_MAX):
        piece = places[start : start + TOMBSTONES_AT_ONCE_MAX]
        is_last = start + TOMBSTONES_AT_ONCE_MAX >= len(places)
        error = state.write([tombstone(place) for place in piece], now, done if is_last else _not_told)
        if error:
            return error
        for place in piece:
            state.offsets.remove(*place)
        state.counts.deletions += len(piece)
    return ErrorCode.NONE


def delete_group(state: ShardState, group: Group, now: Now, reply: Reply[ErrorCode]) -> ErrorCode:
    """The group and its offsets, once its timers are stopped. An error: a part of the offsets may be gone, the group is
    there, and `reply` is not called.
    """
    places = [
        Place(group.id, topic, partition)
        for topic, partitions in state.offsets.of_group(group.id).items()
        for partition in partitions
    ]
    known = {place[1:] for place in places}
    places += [Place(group.id, *where) for where in state.offsets.open_partitions(group.id) if where not in known]
    if places and (error := remove_offsets(state, places, now, _not_told)):
        return error
    if error := state.write(group.tombstones(), now, reply):
        return error
    del state.groups[group.id]
    return ErrorCode.NONE


def _is_kept(state: ShardState, place: Place) -> bool:
    return state.offsets.get(*place) is not None or state.offsets.is_open(*place)


def _not_told(_: ErrorCode) -> None:
    """Whoever waits is told of the last piece: they are committed in their order."""
