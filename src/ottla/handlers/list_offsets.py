"""ListOffsets (2), versions 1 to 11: the first, the last and special offsets of a partition, or one by timestamp.

Special timestamps: -1 latest, -2 earliest, -3 of the largest timestamp (version 7), -4 earliest local (8), -5 latest
tiered (9), -6 earliest pending upload (11). Without tiered storage the earliest local offset is the earliest, and
nothing is tiered or pending, which is said with offset -1.

A leader that does not know yet what was committed before it led (KIP-207) names no latest offset, nor that of a
timestamp which it does not find below its high watermark: a client that got an offset before might see it go back.

A look-up by timestamp opens batches. What is more than a little work is done by another process, and the connection
waits (docs/decisions/record-checks.md).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Generator
from functools import partial
from typing import Any, Final, NamedTuple

from ottla.handlers.calls.call import Call
from ottla.handlers.calls.checks import CheckFailed
from ottla.handlers.calls.topic_partitions import leader_for
from ottla.model import ErrorCode
from ottla.protocol.generated.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
    ListOffsetsTopicResponse,
)
from ottla.records.errors import RecordError
from ottla.replication.leader import Leader
from ottla.security.authorizer import Operation
from ottla.steps import Steps, pieces, taken
from ottla.storage.errors import BadBatch, StorageFault
from ottla.storage.log.cold_reads import missing_producers
from ottla.storage.log.indexes.time_lookup import FromDisk, Lookup, LookupPause, LookupStep, TimestampOffset

LATEST: Final = -1
EARLIEST: Final = -2
MAX_TIMESTAMP: Final = -3
EARLIEST_LOCAL: Final = -4
LATEST_TIERED: Final = -5
EARLIEST_PENDING_UPLOAD: Final = -6

#: The version from which each special timestamp may be asked for.
_SINCE: Final = {
    LATEST: 0,
    EARLIEST: 0,
    MAX_TIMESTAMP: 7,
    EARLIEST_LOCAL: 8,
    LATEST_TIERED: 9,
    EARLIEST_PENDING_UPLOAD: 11,
}
#: Nothing is tiered here.
_NEVER_THERE: Final = frozenset({LATEST_TIERED, EARLIEST_PENDING_UPLOAD})
_READ_UNCOMMITTED: Final = 0
_READ_COMMITTED: Final = 1
#: Earlier versions have no room for the leader's epoch.
_EPOCH_SINCE: Final = 4
#: Earlier versions do not say how long the client waits.
_TIMEOUT_SINCE: Final = 10
#: Earlier versions know another error for a leader that is not ready.
_NOT_AVAILABLE_SINCE: Final = 5
#: What an ordinary client gives as its replica id.
_CONSUMER: Final = -1

#: (timestamp, offset, leader epoch)
Found = tuple[int, int, int]
_NOTHING: Final[Found] = (-1, -1, -1)


#: Each takes some microseconds, unless it is looked up by its timestamp.
_PARTITIONS_A_STEP: Final = 16
#: Each takes a microsecond, its partitions aside.
_TOPICS_A_STEP: Final = 32
#: Look-ups end after so long, or after the request's own time-out (version 10): what they walk has no other bound.
SECONDS_MAX: Final = 30
#: Look-ups of one request that are begun at once; each may take a millisecond. Others have their turns between more.
AT_ONCE_MAX: Final = 16


class _UnfinishedLookup(NamedTuple):
    """A look-up with more to do than fits between two requests."""

    leader: Leader
    lookup: Lookup
    step: LookupStep
    #: Where the answer is to stand.
    answers: list[ListOffsetsPartitionResponse]
    place: int


class _Lookups:
    """Those of one request."""

    __slots__ = ("begun", "unfinished")

    def __init__(self) -> None:
        self.begun = 0
        self.unfinished: list[_UnfinishedLookup] = []

    def begin(self, leader: Leader, lookup: Lookup, answers: list[ListOffsetsPartitionResponse]) -> Found | None:
        """What it finds at once; None where the next one of `answers` is to be filled in later."""
        self.begun += 1
        step: LookupStep = LookupPause()
        if self.begun <= AT_ONCE_MAX:
            try:
                step = next(lookup)
            except StopIteration as end:
                return _found(end.value)
        self.unfinished.append(_UnfinishedLookup(leader, lookup, step, answers, len(answers)))
        return None


def handle(
    call: Call, request: ListOffsetsRequest
) -> Steps[ListOffsetsResponse | Coroutine[Any, Any, ListOffsetsResponse]]:
    twice = yield from _asked_twice(request.topics)
    topics: list[ListOffsetsTopicResponse] = []
    lookups = _Lookups()
    for some in taken(request.topics, _TOPICS_A_STEP):
        for topic in some:
            answers: list[ListOffsetsPartitionResponse] = []
            for piece in taken(topic.partitions, _PARTITIONS_A_STEP):
                for partition in piece:
                    begun = lookups.begun
                    if (topic.name, partition.partition_index) in twice:
                        answers.append(_failed(partition, ErrorCode.INVALID_REQUEST))
                    else:
                        answers.append(_partition(call, request, topic.name, partition, answers, lookups))
                    if begun < lookups.begun:
                        yield
                yield
            topics.append(ListOffsetsTopicResponse(name=topic.name, partitions=answers))
        yield
    response = ListOffsetsResponse(throttle_time_ms=call.throttle_ms(), topics=topics)
    return _finished(call, request, response, lookups.unfinished) if lookups.unfinished else response


def _asked_twice(topics: list[ListOffsetsTopic]) -> Steps[set[tuple[str, int]]]:
    """The partitions that are asked for more than once."""
    asked: set[tuple[str, int]] = set()
    twice: set[tuple[str, int]] = set()
    for some in pieces(topics):
        for topic in some:
            for piece in pieces(topic.partitions):
                for partition in piece:
                    key = (topic.name, partition.partition_index)
                    (twice if key in asked else asked).add(key)
                yield
        yield
    return twice


async def _finished(
    call: Call, request: ListOffsetsRequest, response: ListOffsetsResponse, unfinished: list[_UnfinishedLookup]
) -> ListOffsetsResponse:
    timeout_ms = SECONDS_MAX * 1000
    if call.version >= _TIMEOUT_SINCE and request.timeout_ms > 0:
        timeout_ms = min(timeout_ms, request.timeout_ms)
    deadline_ms = call.services.clock.monotonic_ms() + timeout_ms
    for each in unfinished:
        answer = each.answers[each.place]
        try:
            found = await _driven(call, each.lookup, each.step, deadline_ms)
        except StorageFault:
            answer.error_code = ErrorCode.KAFKA_STORAGE_ERROR
        except (CheckFailed, TimeoutError):
            answer.error_code = ErrorCode.REQUEST_TIMED_OUT
        else:
            _fill(answer, found, call.version, is_consumer=request.replica_id == _CONSUMER, leader=each.leader)
        leader = each.leader.present
        if not leader.active:
            # What was looked into may have been cut off meanwhile.
            each.answers[each.place] = ListOffsetsPartitionResponse(
                partition_index=answer.partition_index, error_code=leader.end_error
            )
    return response


async def _driven(call: Call, lookup: Lookup, step: LookupStep, deadline_ms: int) -> Found:
    """Takes a look-up to its end; raises TimeoutError where that is too far."""
    services = call.services
    owner = object() if call.connection is None else call.connection
    try:
        while True:
            if services.clock.monotonic_ms() >= deadline_ms:
                raise TimeoutError
            if isinstance(step, LookupPause):
                await asyncio.sleep(0)
                step = lookup.send(None)
                continue
            if isinstance(step, FromDisk):
                try:
                    await services.workers.thread(step.work)
                except (OSError, BadBatch) as error:
                    step = lookup.throw(error)
                else:
                    step = lookup.send(None)
                continue
            try:
                result = await services.checks.run(owner, step.work, step.arguments)
            except (RecordError, OSError) as error:
                step = lookup.throw(error)
            else:
                step = lookup.send(result)
    except StopIteration as end:
        return _found(end.value)
    finally:
        lookup.close()


def _failed(partition: ListOffsetsPartition, error: ErrorCode) -> ListOffsetsPartitionResponse:
    return ListOffsetsPartitionResponse(partition_index=partition.partition_index, error_code=error)


def _partition(
    call: Call,
    request: ListOffsetsRequest,
    topic: str,
    partition: ListOffsetsPartition,
    answers: list[ListOffsetsPartitionResponse],
    lookups: _Lookups,
) -> ListOffsetsPartitionResponse:
    """The partition's answer, the next one of `answers`; `lookups` says whether it is to be filled in later."""
    if request.isolation_level not in (_READ_UNCOMMITTED, _READ_COMMITTED):
        return _failed(partition, ErrorCode.UNKNOWN_SERVER_ERROR)
    if partition.timestamp < 0 and call.version < _SINCE.get(partition.timestamp, 2**15):
        return _failed(partition, ErrorCode.UNSUPPORTED_VERSION)
    leader = leader_for(call, topic, partition.partition_index, Operation.DESCRIBE, partition.current_leader_epoch)
    if isinstance(leader, ErrorCode):
        return _failed(partition, leader)
    committed = request.isolation_level == _READ_COMMITTED
    answer = ListOffsetsPartitionResponse(partition_index=partition.partition_index)
    try:
        find = partial(_find_as, leader, partition.timestamp, committed, is_consumer=request.replica_id == _CONSUMER)
        is_cold = committed and missing_producers(leader.log) is not None
        found = _behind(leader, partition.timestamp, find) if is_cold else find()
        if isinstance(found, Generator):
            found = lookups.begin(leader, found, answers)
    except StorageFault:
        return _failed(partition, ErrorCode.KAFKA_STORAGE_ERROR)
    if found is not None:
        is_consumer = request.replica_id == _CONSUMER and partition.timestamp not in _NEVER_THERE
        if is_consumer and partition.timestamp == LATEST and not leader.knows_watermark:
            found = _NOTHING
        _fill(answer, found, call.version, is_consumer=is_consumer, leader=leader)
    return answer


def _fill(
    answer: ListOffsetsPartitionResponse, found: Found, version: int, *, is_consumer: bool, leader: Leader
) -> None:
    if found == _NOTHING and is_consumer and not leader.knows_watermark:
        new = version >= _NOT_AVAILABLE_SINCE
        answer.error_code = ErrorCode.OFFSET_NOT_AVAILABLE if new else ErrorCode.LEADER_NOT_AVAILABLE
        return
    answer.timestamp, answer.offset, epoch = found
    if version >= _EPOCH_SINCE:
        answer.leader_epoch = epoch


def _find_as(leader: Leader, timestamp: int, committed: bool, *, is_consumer: bool) -> Found | Lookup | None:
    """Up to where this reader's view of the log ends."""
    if not is_consumer:
        return _find(leader, timestamp, leader.log.end_offset)
    return _find(leader, timestamp, leader.last_stable_offset if committed else leader.high_watermark)


def _behind(leader: Leader, timestamp: int, find: Callable[[], Found | Lookup | None]) -> Lookup:
    """The same once a worker has read what is to be known of open transactions."""
    while (missing := missing_producers(leader.log)) is not None:
        yield FromDisk(missing.run)
        missing.take()
        if missing.fault is not None:
            raise missing.fault
    found = find()
    if isinstance(found, Generator):
        return (yield from found)
    if found is None or found == _NOTHING or (timestamp == LATEST and not leader.knows_watermark):
        return None
    return TimestampOffset(*found)


def _find(leader: Leader, timestamp: int, limit: int) -> Found | Lookup | None:
    log = leader.log
    if timestamp == LATEST:
        return -1, limit, leader.epoch
    if timestamp in (EARLIEST, EARLIEST_LOCAL):
        return -1, log.start_offset, log.epochs.epoch_at(log.start_offset)
    if timestamp in _NEVER_THERE:
        return _NOTHING
    return _below(limit, log.look_up_largest() if timestamp == MAX_TIMESTAMP else log.look_up(timestamp, limit))


def _below(limit: int, lookup: Lookup) -> Lookup:
    found = yield from lookup
    return found if found is not None and found.offset < limit else None


def _found(found: TimestampOffset | None) -> Found:
    return _NOTHING if found is None else (found.timestamp, found.offset, found.leader_epoch)
