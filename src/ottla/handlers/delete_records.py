"""DeleteRecords (21), versions 0 to 2: moves a partition's start forward; -1 means up to the high watermark.

What lies below the new start is gone for readers at once. Whole segments below it are removed by the next retention.
The request is answered when the replicas on all live brokers have moved their logs' starts, which they do with their
next fetch, or with REQUEST_TIMED_OUT. A partition that is named again is asked about once, with its last offset, as by
Kafka.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final, NamedTuple

from ottla import logs
from ottla.handlers.calls.call import Call
from ottla.handlers.calls.topic_partitions import leader_for
from ottla.model import INTERNAL_TOPICS, BrokerId, ErrorCode
from ottla.protocol.generated.delete_records import (
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)
from ottla.replication.leader import Leader
from ottla.security.authorizer import Operation
from ottla.steps import Steps, pieces, taken
from ottla.storage.errors import OffsetOutsideLog, StorageFault

log_event = logs.logger("handlers")

TO_HIGH_WATERMARK: Final = -1
#: That nobody deletes from the topics of coordinators is said wherever they are led, but of what there is only.
_SAID_BEFORE_RULES: Final = frozenset({ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION})
#: Each takes some microseconds.
_PARTITIONS_A_STEP: Final = 16
#: Each takes a microsecond, its partitions aside.
_TOPICS_A_STEP: Final = 32


def handle(
    call: Call, request: DeleteRecordsRequest
) -> Steps[DeleteRecordsResponse | Awaitable[DeleteRecordsResponse]]:
    offsets = yield from _asked(request)
    topics: list[DeleteRecordsTopicResult] = []
    deletions: list[PendingDeletion] = []
    for some in pieces(offsets.items(), _TOPICS_A_STEP):
        for name, asked in some:
            partitions: list[DeleteRecordsPartitionResult] = []
            for piece in pieces(asked.items(), _PARTITIONS_A_STEP):
                partitions += [_partition(call, name, partition, offset, deletions) for partition, offset in piece]
                yield
            topics.append(DeleteRecordsTopicResult(name=name, partitions=partitions))
        yield
    response = DeleteRecordsResponse(throttle_time_ms=call.throttle_ms(), topics=topics)
    if not deletions:
        return response
    return _answered(call, deletions, response, request.timeout_ms)


def _asked(request: DeleteRecordsRequest) -> Steps[dict[str, dict[int, int]]]:
    """Offsets by topic and partition."""
    offsets: dict[str, dict[int, int]] = {}
    for some in taken(request.topics, _TOPICS_A_STEP):
        for topic in some:
            asked = offsets.setdefault(topic.name, {})
            for piece in taken(topic.partitions):
                asked.update((each.partition_index, each.offset) for each in piece)
                yield
        yield
    return offsets


async def _answered(
    call: Call, deletions: list[PendingDeletion], response: DeleteRecordsResponse, timeout_ms: int
) -> DeleteRecordsResponse:
    """When the followers have moved their logs' starts as well, or the time is up."""
    waiters, now_ms = call.services.replicas.waiters, call.services.clock.monotonic_ms()
    deadline_ms = now_ms + max(0, timeout_ms)
    waits: list[DeletionWait] = []
    try:
        for piece in pieces(deletions):
            wait = DeletionWait(list(piece), partial(_is_alive, call))
            if not wait.try_complete(now_ms):
                waits.append(wait)
                waiters.park(wait, wait.partitions, deadline_ms)
                # One that is parked outside of a round has no other to see to its deadline.
                call.services.round.soon()
            await asyncio.sleep(0)
        for wait in waits:
            await wait.done
    finally:
        for wait in waits:
            waiters.forget(wait)
    return response


def _is_alive(call: Call, broker: int) -> bool:
    return BrokerId(broker) in call.services.metadata.brokers


class PendingDeletion(NamedTuple):
    """Records that this broker has deleted, and some follower may have yet to."""

    leader: Leader
    #: The offset that no replica is to have anything below.
    start: int
    result: DeleteRecordsPartitionResult


class DeletionWait:
    """Waits for the followers' log starts (Kafka's DelayedDeleteRecords).

    It has some partitions of a request only: whenever one of them changes, all that it has left are looked at, and a
    request may have ten thousand, of which each fetch of a follower changes some.
    """

    def __init__(self, deletions: list[PendingDeletion], is_alive: Callable[[int], bool]) -> None:
        self._left = deletions
        self._is_alive = is_alive
        self.partitions = [each.leader.tp for each in deletions]
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def try_complete(self, now_ms: int) -> bool:
        self._left = [each for each in self._left if not self._is_decided(each)]
        if not self._left:
            self._end()
        return not self._left

    def _is_decided(self, deletion: PendingDeletion) -> bool:
        leader, result = deletion.leader.present, deletion.result
        if not leader.active:
            result.error_code, result.low_watermark = leader.end_error, -1
            return True
        result.low_watermark = leader.low_watermark(self._is_alive)
        result.error_code = ErrorCode.NONE
        return result.low_watermark >= deletion.start

    def expire(self, now_ms: int) -> None:
        for deletion in self._left:
            deletion.result.error_code = ErrorCode.REQUEST_TIMED_OUT
        self._end()

    def failed(self, fault: Exception) -> None:
        if not self.done.done():
            self.done.set_exception(fault)

    def _end(self) -> None:
        if not self.done.done():
            self.done.set_result(None)


def _partition(
    call: Call, topic: str, partition: int, asked_offset: int, deletions: list[PendingDeletion]
) -> DeleteRecordsPartitionResult:
    def failed(error: ErrorCode) -> DeleteRecordsPartitionResult:
        return DeleteRecordsPartitionResult(partition_index=partition, low_watermark=-1, error_code=error)

    leader = leader_for(call, topic, partition, Operation.DELETE)
    if topic in INTERNAL_TOPICS and leader not in _SAID_BEFORE_RULES:
        return failed(ErrorCode.INVALID_TOPIC_EXCEPTION)
    if isinstance(leader, ErrorCode):
        return failed(leader)
    log = leader.log
    policy = log.config.cleanup_policy
    if "compact" in policy and "delete" not in policy:
        # A compacted topic promises the newest record of each key: Kafka refuses to delete below an offset.
        return failed(ErrorCode.POLICY_VIOLATION)
    offset = leader.high_watermark if asked_offset == TO_HIGH_WATERMARK else asked_offset
    if offset < 0 or offset > leader.high_watermark:
        return failed(ErrorCode.OFFSET_OUT_OF_RANGE)
    try:
        log.advance_start(offset)
    except OffsetOutsideLog:
        return failed(ErrorCode.OFFSET_OUT_OF_RANGE)
    except StorageFault as fault:
        log_event.error("records could not be deleted", partition=leader.tp, reason=fault)
        return failed(ErrorCode.KAFKA_STORAGE_ERROR)
    call.services.replicas.waiters.changed(leader.tp)
    result = DeleteRecordsPartitionResult(partition_index=partition, low_watermark=log.start_offset)
    if leader.isr.followers:
        deletions.append(PendingDeletion(leader, offset, result))
    return result
