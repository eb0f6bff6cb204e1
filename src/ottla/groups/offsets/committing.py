"""OffsetCommit, for members of both kinds of group and for consumers without membership; and TxnOffsetCommit, whose
offsets wait for the end of their transaction.

The shortest path of a coordinator, and the one that is taken most: twenty thousand times a second. It makes the bytes
of each record once, and keeps those as the group's state.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from functools import partial
from itertools import count as counting
from itertools import repeat
from typing import Final, NamedTuple

from ottla.coordinators.caller import Caller, Now
from ottla.coordinators.journal import JournalRecord, TransactionalProducer
from ottla.groups.classic.group import ClassicGroup
from ottla.groups.group import Group
from ottla.groups.state import Done, Reply, ShardState, session_key
from ottla.model import ErrorCode
from ottla.protocol.errors import EncodeError
from ottla.protocol.fields import INT32
from ottla.protocol.generated.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from ottla.protocol.hot.offset_records import NO_EXPIRY, group_prefix, offset_value, topic_prefix
from ottla.steps import PIECE, Steps, at_once, pieces
from ottla.storage.log.producers.verifying import Verification

#: From this version on a group that does not exist has an error of its own.
NOT_FOUND_SINCE: Final = 9

#: In one request. Kafka writes what is committed together as one batch, and more do not fit into the largest one that
#: the offsets topic takes by default, of a megabyte: the error is that of a batch that is too large. A transaction that
#: holds more takes no further ones: its marker has all of them take effect in one piece, some tens of milliseconds.
PARTITIONS_COMMITTED_MAX: Final = 16_384

#: The answer where all that was asked for is committed. It stands for `committed` of the request: the caller that
#: sends it may have the bytes ready.
ALL_COMMITTED: Final = OffsetCommitResponse()

#: Written, and taken over into memory, without a pause: two milliseconds, and as much when the round's batch is made.
WRITTEN_AT_ONCE_MAX: Final = 1_024

_Place = tuple[str, int]


class TransactionalWriter(NamedTuple):
    producer: TransactionalProducer
    #: What its coordinator was asked by, and which a marker makes void; None where nobody asks.
    verification: Verification | None = None


_pack_partition: Final = INT32.pack
_NONE: Final = int(ErrorCode.NONE)
_TOO_LARGE: Final = int(ErrorCode.OFFSET_METADATA_TOO_LARGE)


def commit_offsets(
    state: ShardState, caller: Caller, request: OffsetCommitRequest, reply: Reply[OffsetCommitResponse]
) -> Steps[None]:
    """All at once for what is small: then it does not yield."""
    # Where there are too many, none of them is looked at by itself.
    count = _count(request)
    if count < PIECE and len(request.topics) < PIECE:
        commit_few(state, caller, request, reply)
        return
    yield from commit_many(state, caller, request, reply)


def commit_many(
    state: ShardState,
    caller: Caller,
    request: OffsetCommitRequest,
    reply: Reply[OffsetCommitResponse],
    writer: TransactionalWriter | None = None,
) -> Steps[None]:
    """The same, of any number of offsets. With a `writer`: as a part of its transaction."""
    too_much = _count(request) > PARTITIONS_COMMITTED_MAX
    if writer is not None and state.offsets.count_of(writer.producer.producer_id) > PARTITIONS_COMMITTED_MAX:
        too_much = True
    error = _check(state, caller, request, () if too_much else request.topics, writer)
    if not error and too_much:
        error = ErrorCode.UNKNOWN_SERVER_ERROR
    if error:
        reply((yield from commit_refused(request, error)))
        return
    try:
        made = _Records(state, request, caller.now.wall_ms)
        yield from made.make_all(request.topics)
    except EncodeError:
        reply((yield from commit_refused(request, ErrorCode.INVALID_GROUP_ID)))
        return
    records, places, refused = made.records, made.places, made.refused
    response = (yield from committed(request, refused)) if refused else ALL_COMMITTED
    if len(records) > WRITTEN_AT_ONCE_MAX:
        yield from _written_in_pieces(state, caller, request, reply, response, records, places, writer)
        return
    # From here to the end nothing happens in between.
    error = _check(state, caller, request, request.topics, writer)
    error = error or _written_at_once(state, caller, request, reply, response, records, places, writer)
    if error:
        reply((yield from commit_refused(request, error)))


def commit_few(
    state: ShardState, caller: Caller, request: OffsetCommitRequest, reply: Reply[OffsetCommitResponse]
) -> None:
    """The same for a request that names fewer than `PIECE` topics and partitions: nearly every one."""
    error = _check(state, caller, request, request.topics)
    if not error:
        try:
            made = _Records(state, request, caller.now.wall_ms)
            for topic in request.topics:
                made.make(topic, topic.partitions)
        except EncodeError:
            error = ErrorCode.INVALID_GROUP_ID
        else:
            response = at_once(committed(request, made.refused)) if made.refused else ALL_COMMITTED
            error = _written_at_once(state, caller, request, reply, response, made.records, made.places)
    if error:
        reply(at_once(commit_refused(request, error)))


def _written_at_once(
    state: ShardState,
    caller: Caller,
    request: OffsetCommitRequest,
    reply: Reply[OffsetCommitResponse],
    response: OffsetCommitResponse,
    records: Sequence[JournalRecord],
    places: Sequence[_Place],
    writer: TransactionalWriter | None = None,
) -> ErrorCode:
    """All of a checked request, answered with `response` once it is written. An error: it is not, nor answered."""
    if request.member_id and writer is None:
        heard_from(state, request.group_id, request.member_id, caller.now)
    if not records:
        reply(response)
        return ErrorCode.NONE
    return _write(state, caller, request, records, places, partial(_written, request, response, reply), writer)


def heard_from(state: ShardState, group_id: str, member_id: str, now: Now) -> None:
    """A member that commits is alive."""
    group = state.groups.get(group_id)
    if group is not None:
        until_ms = group.heard_from(member_id, now.monotonic_ms)
        if until_ms is not None:
            state.timers.put_off(session_key(group_id, member_id), until_ms)


def _write(
    state: ShardState,
    caller: Caller,
    request: OffsetCommitRequest,
    records: Sequence[JournalRecord],
    places: Sequence[_Place],
    written: Done,
    writer: TransactionalWriter | None = None,
) -> ErrorCode:
    """Writes these and takes them over. An error: nothing has happened, and `written` is not called."""
    group_id = request.group_id
    error = state.write(records, caller.now, written, None, None if writer is None else writer.producer)
    if error:
        return error
    if group_id not in state.groups:
        # It keeps offsets, and has no members: what Kafka calls a simple group.
        state.groups[group_id] = ClassicGroup(group_id, caller.now.wall_ms)
    put = state.offsets.put
    if writer is not None:
        put = partial(state.offsets.put_pending, writer.producer.producer_id)
    for (topic, partition), (_, value) in zip(places, records, strict=True):
        assert value is not None
        put(group_id, topic, partition, value)
    state.counts.commits += len(records)
    return ErrorCode.NONE


def _written_in_pieces(
    state: ShardState,
    caller: Caller,
    request: OffsetCommitRequest,
    reply: Reply[OffsetCommitResponse],
    response: OffsetCommitResponse,
    records: Sequence[JournalRecord],
    places: Sequence[_Place],
    writer: TransactionalWriter | None,
) -> Steps[None]:
    """A long commit becomes several batches, and others are served between them.

    Whether the member may still commit is looked at before each. What was written before it lost that right, or before
    the journal refused more, stays; the answer says the error, and the client commits again.
    """
    parts = _Parts(partial(_written, request, response, reply))
    if request.member_id and writer is None:
        heard_from(state, request.group_id, request.member_id, caller.now)
    for first in range(0, len(records), WRITTEN_AT_ONCE_MAX):
        if first:
            yield
        end = first + WRITTEN_AT_ONCE_MAX
        error = _check(state, caller, request, request.topics, writer)
        parts.begun()
        error = error or _write(state, caller, request, records[first:end], places[first:end], parts.written, writer)
        if error:
            parts.written(error)
            break
    parts.written(ErrorCode.NONE)


class _Parts:
    """Writes that are answered together: when all have ended, with the first error."""

    __slots__ = ("_done", "_error", "_missing")

    def __init__(self, done: Done) -> None:
        self._done = done
        self._error = ErrorCode.NONE
        #: One for the caller that hands them in, and has not handed in all.
        self._missing = 1

    def begun(self) -> None:
        self._missing += 1

    def written(self, error: ErrorCode) -> None:
        self._error = self._error or error
        self._missing -= 1
        if not self._missing:
            self._done(self._error)


def _count(request: OffsetCommitRequest) -> int:
    """Partitions, or topics where those are too many."""
    topics = request.topics
    if len(topics) > PARTITIONS_COMMITTED_MAX:
        return len(topics)
    count = 0
    for topic in topics:
        count += len(topic.partitions)
    return count


def _check(
    state: ShardState,
    caller: Caller,
    request: OffsetCommitRequest,
    topics: Sequence[OffsetCommitRequestTopic],
    writer: TransactionalWriter | None = None,
) -> ErrorCode:
    if state.is_over:
        return ErrorCode.NOT_COORDINATOR
    group = state.groups.get(request.group_id)
    generation = request.generation_id_or_member_epoch
    if writer is not None:
        error = _check_in_transaction(group, caller, request, topics)
        return error or (ErrorCode.NONE if _may_write(state, writer) else ErrorCode.INVALID_TXN_STATE)
    if group is None:
        return _without_group(caller, request)
    return group.check_commit(request.member_id, request.group_instance_id, generation, caller.version, topics)


def _check_in_transaction(
    group: Group | None, caller: Caller, request: OffsetCommitRequest, topics: Sequence[OffsetCommitRequestTopic]
) -> ErrorCode:
    """Producers know nothing of member epochs: one that is over is a generation that is over to them."""
    generation = request.generation_id_or_member_epoch
    if group is None:
        return ErrorCode.ILLEGAL_GENERATION if generation >= 0 else ErrorCode.NONE
    error = group.check_commit(
        request.member_id, request.group_instance_id, generation, caller.version, topics, transactional=True
    )
    return ErrorCode.ILLEGAL_GENERATION if error is ErrorCode.STALE_MEMBER_EPOCH else error


def _may_write(state: ShardState, writer: TransactionalWriter) -> bool:
    """False where its transaction has had a marker since: what came behind that would never be ended."""
    verification = writer.verification
    return verification is None or state.journal.is_verified(writer.producer, verification)


class _Records:
    """What is to be written, and of which partitions; and which entries of the request, counted through, have too much
    metadata. EncodeError where a name is too long.
    """

    __slots__ = ("_expire_ms", "_metadata_max", "_now_ms", "_number", "_prefix", "places", "records", "refused")

    def __init__(self, state: ShardState, request: OffsetCommitRequest, now_ms: int) -> None:
        self._metadata_max = state.settings().offsets.metadata_bytes_max
        retention_ms = request.retention_time_ms
        self._now_ms = now_ms
        self._expire_ms = NO_EXPIRY if retention_ms == -1 else max(0, now_ms + retention_ms)
        self._prefix = group_prefix(request.group_id)
        self._number = 0
        self.records: list[JournalRecord] = []
        self.places: list[_Place] = []
        self.refused: set[int] = set()

    def make(self, topic: OffsetCommitRequestTopic, partitions: Iterable[OffsetCommitRequestPartition]) -> None:
        name, topic_id = topic.name, topic.topic_id
        key = topic_prefix(self._prefix, name)
        for partition in partitions:
            index = partition.partition_index
            metadata = partition.committed_metadata or ""
            if metadata and metadata_length(metadata) > self._metadata_max:
                self.refused.add(self._number)
            else:
                value = offset_value(
                    partition.committed_offset,
                    partition.committed_leader_epoch,
                    metadata,
                    self._now_ms,
                    self._expire_ms,
                    topic_id,
                )
                self.records.append(JournalRecord(key + _pack_partition(index), value))
                self.places.append((name, index))
            self._number += 1

    def make_all(self, topics: Sequence[OffsetCommitRequestTopic]) -> Steps[None]:
        for topic in topics:
            for piece in pieces(topic.partitions):
                self.make(topic, piece)
                yield


def _written(
    request: OffsetCommitRequest, response: OffsetCommitResponse, reply: Reply[OffsetCommitResponse], error: ErrorCode
) -> None:
    # What was written is at most one batch: it does not take long.
    reply(at_once(commit_refused(request, error)) if error else response)


def _without_group(caller: Caller, request: OffsetCommitRequest) -> ErrorCode:
    if request.generation_id_or_member_epoch < 0:
        return ErrorCode.NONE
    return ErrorCode.GROUP_ID_NOT_FOUND if caller.version >= NOT_FOUND_SINCE else ErrorCode.ILLEGAL_GENERATION


def metadata_length(metadata: str) -> int:
    """In UTF-16 units, as Kafka counts it against offset.metadata.max.bytes."""
    return len(metadata) if metadata.isascii() else len(metadata.encode("utf-16-le", "surrogatepass")) // 2


def committed(request: OffsetCommitRequest, refused: AbstractSet[int] = frozenset()) -> Steps[OffsetCommitResponse]:
    """All of it, but for the entries, counted through the request, that have too much metadata."""
    number = 0
    response = OffsetCommitResponse()
    for place, topic in enumerate(request.topics, 1):
        if topic.partitions:
            errors = (_TOO_LARGE if index in refused else _NONE for index in counting(number))
            number += len(topic.partitions)
            response.topics.append((yield from answered_topic(topic, errors)))
        if place % PIECE == 0:
            yield
    return response


def commit_refused(request: OffsetCommitRequest, error: ErrorCode) -> Steps[OffsetCommitResponse]:
    response = OffsetCommitResponse()
    for place, topic in enumerate(request.topics, 1):
        response.topics.append((yield from answered_topic(topic, repeat(int(error)))))
        if place % PIECE == 0:
            yield
    return response


def answered_topic(topic: OffsetCommitRequestTopic, errors: Iterator[int]) -> Steps[OffsetCommitResponseTopic]:
    """One error for each of its partitions."""
    answered: list[OffsetCommitResponsePartition] = []
    for piece in pieces(topic.partitions):
        if answered:
            yield
        answered += [
            OffsetCommitResponsePartition(partition_index=partition.partition_index, error_code=next(errors))
            for partition in piece
        ]
    return OffsetCommitResponseTopic(name=topic.name, topic_id=topic.topic_id, partitions=answered)
