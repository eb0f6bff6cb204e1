"""OffsetDelete, and the deletion of a group with all that it has committed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
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

#: Tombstones that are written together. A batch may be a megabyte, unless an administrator wants it smaller, and a
#: group's name alone can have 32 KiB.
TOMBSTONES_AT_ONCE_MAX: Final = 1_000
KEY_BYTES_AT_ONCE_MAX: Final = 128 * 1024


class Place(NamedTuple):
    group_id: str
    topic: str
    partition: int


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
    else:
        state.counts.deletions += len(places)


def remove_offsets(state: ShardState, places: list[Place], now: Now, done: Reply[ErrorCode]) -> ErrorCode:
    """Writes tombstones, a piece at a time; `done` is told of the last. An error: a part may be gone, `done` is not
    told.
    """
    pieces = list(_pieces(places))
    for piece in pieces:
        error = state.write([record for _, record in piece], now, done if piece is pieces[-1] else _not_told)
        if error:
            return error
        for place, _ in piece:
            state.offsets.remove(*place)
    return ErrorCode.NONE


def _pieces(places: Iterable[Place]) -> Iterator[list[tuple[Place, JournalRecord]]]:
    """Tombstones, as many at a time as can be written together."""
    piece: list[tuple[Place, JournalRecord]] = []
    size = 0
    for place in places:
        key = offset_key(*place)
        if piece and (len(piece) == TOMBSTONES_AT_ONCE_MAX or size + len(key) > KEY_BYTES_AT_ONCE_MAX):
            yield piece
            piece, size = [], 0
        piece.append((place, JournalRecord(key, None)))
        size += len(key)
    if piece:
        yield piece


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
    state.counts.deletions += len(places)
    if error := state.write(group.tombstones(), now, reply):
        return error
    del state.groups[group.id]
    return ErrorCode.NONE


def _is_kept(state: ShardState, place: Place) -> bool:
    return state.offsets.get(*place) is not None or state.offsets.is_open(*place)


def _not_told(_: ErrorCode) -> None:
    """Whoever waits is told of the last piece: they are committed in their order."""
