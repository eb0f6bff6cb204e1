"""OffsetForLeaderEpoch (23), versions 2 to 4: where a leader epoch ended in this leader's log (KIP-101, KIP-320).

A follower cuts its log there, a consumer learns from it that the log it read was cut.
"""

from __future__ import annotations

from typing import Final

from ottla.handlers.calls.call import Call
from ottla.handlers.calls.topic_partitions import leader_for
from ottla.model import ErrorCode
from ottla.protocol.generated.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopicResult,
)
from ottla.security.authorizer import Operation
from ottla.steps import Steps, taken
from ottla.storage.errors import StorageFault

#: Each takes some microseconds.
_PARTITIONS_A_STEP: Final = 16
#: Each takes a microsecond, its partitions aside.
_TOPICS_A_STEP: Final = 32


def handle(call: Call, request: OffsetForLeaderEpochRequest) -> Steps[OffsetForLeaderEpochResponse]:
    topics: list[OffsetForLeaderTopicResult] = []
    for some in taken(request.topics, _TOPICS_A_STEP):
        for topic in some:
            partitions: list[EpochEndOffset] = []
            for piece in taken(topic.partitions, _PARTITIONS_A_STEP):
                partitions += [_partition(call, topic.topic, asked) for asked in piece]
                yield
            topics.append(OffsetForLeaderTopicResult(topic=topic.topic, partitions=partitions))
        yield
    return OffsetForLeaderEpochResponse(throttle_time_ms=call.throttle_ms(), topics=topics)


def _partition(call: Call, topic: str, asked: OffsetForLeaderPartition) -> EpochEndOffset:
    leader = leader_for(call, topic, asked.partition, Operation.DESCRIBE, asked.current_leader_epoch)
    if isinstance(leader, ErrorCode):
        return EpochEndOffset(error_code=leader, partition=asked.partition)
    log = leader.log
    try:
        # The latest leader epoch is the leader's own, records or none, and ends where its log ends now.
        found = log.epochs.end_offset_for(asked.leader_epoch, log.end_offset)
    except StorageFault:
        return EpochEndOffset(error_code=ErrorCode.KAFKA_STORAGE_ERROR, partition=asked.partition)
    epoch, end_offset = (-1, -1) if found is None else found
    return EpochEndOffset(partition=asked.partition, leader_epoch=epoch, end_offset=end_offset)
