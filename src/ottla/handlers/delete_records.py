"""DeleteRecords (21), versions 0 to 2: moves a partition's start forward; -1 means up to the high watermark.

What lies below the new start is gone for readers at once. Whole segments below it are removed by the next retention.
"""

from __future__ import annotations

from typing import Final

from ottla import logs
from ottla.handlers.calls.call import Call
from ottla.handlers.calls.topic_partitions import leader_for
from ottla.model import INTERNAL_TOPICS, ErrorCode
from ottla.protocol.generated.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)
from ottla.security.authorizer import Operation
from ottla.steps import Steps, taken
from ottla.storage.errors import OffsetOutsideLog, StorageFault

log_event = logs.logger("handlers")

TO_HIGH_WATERMARK: Final = -1
#: Each takes some microseconds.
_PARTITIONS_A_STEP: Final = 16
#: Each takes a microsecond, its partitions aside.
_TOPICS_A_STEP: Final = 32


def handle(call: Call, request: DeleteRecordsRequest) -> Steps[DeleteRecordsResponse]:
    topics: list[DeleteRecordsTopicResult] = []
    for some in taken(request.topics, _TOPICS_A_STEP):
        for topic in some:
            partitions: list[DeleteRecordsPartitionResult] = []
            for piece in taken(topic.partitions, _PARTITIONS_A_STEP):
                partitions += [_partition(call, topic.name, asked) for asked in piece]
                yield
            topics.append(DeleteRecordsTopicResult(name=topic.name, partitions=partitions))
        yield
    return DeleteRecordsResponse(throttle_time_ms=call.throttle_ms(), topics=topics)


def _partition(call: Call, topic: str, asked: DeleteRecordsPartition) -> DeleteRecordsPartitionResult:
    def failed(error: ErrorCode) -> DeleteRecordsPartitionResult:
        return DeleteRecordsPartitionResult(partition_index=asked.partition_index, low_watermark=-1, error_code=error)

    leader = leader_for(call, topic, asked.partition_index, Operation.DELETE)
    if isinstance(leader, ErrorCode):
        return failed(leader)
    if topic in INTERNAL_TOPICS:
        return failed(ErrorCode.INVALID_TOPIC_EXCEPTION)
    log = leader.log
    policy = log.config.cleanup_policy
    if "compact" in policy and "delete" not in policy:
        # A compacted topic promises the newest record of each key: Kafka refuses to delete below an offset.
        return failed(ErrorCode.POLICY_VIOLATION)
    offset = leader.high_watermark if asked.offset == TO_HIGH_WATERMARK else asked.offset
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
    return DeleteRecordsPartitionResult(partition_index=asked.partition_index, low_watermark=log.start_offset)
