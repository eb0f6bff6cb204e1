"""OffsetDelete, and the deletion of a group with all that it has committed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Final, NamedTuple

from ottla.coordinators.caller import Now
from ottla.coordinators.journal import JournalRecord
from ottla.groups.group import Group
from ottla.groups.state import Reply, ShardState
from ottla.model import ErrorCode
from ottla.protocol.generated.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)
from ottla.protocol.hot.offset_records import offset_key
from ottla.steps import PIECE, Steps, pieces

#: Tombstones that are written together. A batch may be a megabyte, unless an administrator wants it smaller, and a
#: group's name alone can have 32 KiB.
TOMBSTONES_AT_ONCE_MAX: Final = 1_000
KEY_BYTES_AT_ONCE_MAX: Final = 128 * 1024
#: Offsets of a group that is deleted, a step: each takes a microsecond or two.
OFFSETS_A_STEP: Final = 64


class GroupPartition(NamedTuple):
    group_id: str
    topic: str
    partition: int


def delete_offsets(
    state: ShardState, now: Now, request: OffsetDeleteRequest, reply: Reply[OffsetDeleteResponse]
) -> Steps[None]:
    """What an error leaves open: a part of the offsets may be gone by then."""
    response = OffsetDeleteResponse()
    for place, topic in enumerate(request.topics, 1):
        answered = OffsetDeleteResponseTopic(name=topic.name)
        response.topics.append(answered)
        if place % PIECE == 0:
            yield
        for piece in pieces(topic.partitions):
            # Looked at again for each piece: somebody may have joined, or have subscribed.
            group = state.groups.get(request.group_id)
            error = ErrorCode.NOT_COORDINATOR if state.is_over else _delete_piece(state, group, answered, piece, now)
            if error:
                reply(OffsetDeleteResponse(error_code=error))
                return
            yield
    error = ErrorCode.NOT_COORDINATOR if state.is_over else _refusal(state.groups.get(request.group_id))
    if error:
        reply(OffsetDeleteResponse(error_code=error))
        return
    state.when_settled(lambda error: reply(OffsetDeleteResponse(error_code=error) if error else response))


def _refusal(group: Group | None) -> ErrorCode:
    return ErrorCode.GROUP_ID_NOT_FOUND if group is None else group.check_offset_delete()


def _delete_piece(
    state: ShardState,
    group: Group | None,
    answered: OffsetDeleteResponseTopic,
    piece: Sequence[OffsetDeleteRequestPartition],
    now: Now,
) -> ErrorCode:
    error = _refusal(group)
    if group is None or error:
        return error
    code = ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC if group.is_subscribed(answered.name) else ErrorCode.NONE
    if not code:
        named = dict.fromkeys(GroupPartition(group.id, answered.name, partition.partition_index) for partition in piece)
        places = [place for place in named if _is_kept(state, place)]
        if error := remove_offsets(state, places, now, _not_told):
            return error
        state.counts.deletions += len(places)
    answered.partitions += [
        OffsetDeleteResponsePartition(partition_index=partition.partition_index, error_code=code) for partition in piece
    ]
    return ErrorCode.NONE


def remove_offsets(state: ShardState, places: list[GroupPartition], now: Now, done: Reply[ErrorCode]) -> ErrorCode:
    """Writes tombstones, a piece at a time; `done` is called at the last. An error: a part may be gone, `done` is not
    called.
    """
    pieces = list(_pieces(places))
    for piece in pieces:
        error = state.write([record for _, record in piece], now, done if piece is pieces[-1] else _not_told)
        if error:
            return error
        for place, _ in piece:
            state.offsets.remove(*place)
    return ErrorCode.NONE


def _pieces(places: Iterable[GroupPartition]) -> Iterator[list[tuple[GroupPartition, JournalRecord]]]:
    """Tombstones, as many at a time as can be written together."""
    piece: list[tuple[GroupPartition, JournalRecord]] = []
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


def delete_group(state: ShardState, group: Group, now: Now, reply: Reply[ErrorCode]) -> Steps[ErrorCode]:
    """The group and its offsets, once its timers are stopped. An error: a part of the offsets may be gone, the group is
    there, and `reply` is not called.
    """
    while True:
        if state.is_over:
            return ErrorCode.NOT_COORDINATOR
        if state.groups.get(group.id) is not group:
            return ErrorCode.GROUP_ID_NOT_FOUND  # Somebody else has deleted it meanwhile, or changed its protocol.
        if error := group.check_delete():
            return error
        places = _some_offsets(state, group.id)
        if not places:
            break
        if error := remove_offsets(state, places, now, _not_told):
            return error
        state.counts.deletions += len(places)
        if len(places) == OFFSETS_A_STEP:
            yield
    if error := state.write(group.tombstones(), now, reply):
        return error
    del state.groups[group.id]
    return ErrorCode.NONE


def _some_offsets(state: ShardState, group_id: str) -> list[GroupPartition]:
    """Some of the group's offsets, as many as are deleted in one step: those kept, and those of open transactions."""
    kept = (
        GroupPartition(group_id, topic, partition)
        for topic, partitions in state.offsets.of_group(group_id).items()
        for partition in partitions
    )
    found = list(islice(kept, OFFSETS_A_STEP))
    waiting = (GroupPartition(group_id, *where) for where in state.offsets.open_partitions(group_id))
    return found or list(islice(waiting, OFFSETS_A_STEP))


def _is_kept(state: ShardState, place: GroupPartition) -> bool:
    return state.offsets.get(*place) is not None or state.offsets.is_open(*place)


def _not_told(_: ErrorCode) -> None:
    """The waiting request is answered after the last piece: pieces are committed in their order."""
