"""ListOffsets (2), versions 1 to 11: the first, the last and special offsets of a partition, or one by timestamp.

Special timestamps: -1 latest, -2 earliest, -3 of the largest timestamp (version 7), -4 earliest local (8), -5 latest
tiered (9), -6 earliest pending upload (11). Without tiered storage the earliest local offset is the earliest, and
nothing is tiered or pending, which is said with offset -1.
"""

from __future__ import annotations

from typing import Final

from ottla.handlers.call import Call
from ottla.handlers.topic_partitions import leader_for
from ottla.model import ErrorCode
from ottla.protocol.generated.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from ottla.replication.leader import Leader
from ottla.security.authorizer import Operation
from ottla.storage.errors import StorageFault

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
_READ_UNCOMMITTED: Final = 0
_READ_COMMITTED: Final = 1
#: Earlier versions have no room for the leader's epoch.
_EPOCH_SINCE: Final = 4
#: What an ordinary client gives as its replica id.
_CONSUMER: Final = -1

#: (timestamp, offset, leader epoch)
Found = tuple[int, int, int]
_NOTHING: Final[Found] = (-1, -1, -1)


def handle(call: Call, request: ListOffsetsRequest) -> ListOffsetsResponse:
    asked: set[tuple[str, int]] = set()
    twice: set[tuple[str, int]] = set()
    for topic in request.topics:
        for partition in topic.partitions:
            key = (topic.name, partition.partition_index)
            (twice if key in asked else asked).add(key)
    topics = []
    for topic in request.topics:
        answers = []
        for partition in topic.partitions:
            if (topic.name, partition.partition_index) in twice:
                answers.append(_failed(partition, ErrorCode.INVALID_REQUEST))
            else:
                answers.append(_partition(call, request, topic.name, partition))
        topics.append(ListOffsetsTopicResponse(name=topic.name, partitions=answers))
    return ListOffsetsResponse(throttle_time_ms=call.throttle_ms(), topics=topics)


def _failed(partition: ListOffsetsPartition, error: ErrorCode) -> ListOffsetsPartitionResponse:
    return ListOffsetsPartitionResponse(partition_index=partition.partition_index, error_code=error)


def _partition(
    call: Call, request: ListOffsetsRequest, topic: str, partition: ListOffsetsPartition
) -> ListOffsetsPartitionResponse:
    if request.isolation_level not in (_READ_UNCOMMITTED, _READ_COMMITTED):
        return _failed(partition, ErrorCode.UNKNOWN_SERVER_ERROR)
    if partition.timestamp < 0 and call.version < _SINCE.get(partition.timestamp, 2**15):
        return _failed(partition, ErrorCode.UNSUPPORTED_VERSION)
    leader = leader_for(call, topic, partition.partition_index, Operation.DESCRIBE, partition.current_leader_epoch)
    if isinstance(leader, ErrorCode):
        return _failed(partition, leader)
    committed = request.isolation_level == _READ_COMMITTED
    try:
        if request.replica_id != _CONSUMER:
            limit = leader.log.end_offset
        else:
            limit = leader.last_stable_offset if committed else leader.high_watermark
        timestamp, offset, epoch = _find(leader, partition.timestamp, limit)
    except StorageFault:
        return _failed(partition, ErrorCode.KAFKA_STORAGE_ERROR)
    answer = ListOffsetsPartitionResponse(partition_index=partition.partition_index, timestamp=timestamp, offset=offset)
    if call.version >= _EPOCH_SINCE:
        answer.leader_epoch = epoch
    return answer


def _find(leader: Leader, timestamp: int, limit: int) -> Found:
    log = leader.log
    if timestamp == LATEST:
        return -1, limit, leader.epoch
    if timestamp in (EARLIEST, EARLIEST_LOCAL):
        return -1, log.start_offset, log.epochs.epoch_at(log.start_offset)
    if timestamp in (LATEST_TIERED, EARLIEST_PENDING_UPLOAD):
        return _NOTHING
    found = log.max_timestamp_offset() if timestamp == MAX_TIMESTAMP else log.offset_for_timestamp(timestamp, limit)
    return _NOTHING if found is None else (found.timestamp, found.offset, found.leader_epoch)
