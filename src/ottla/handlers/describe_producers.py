"""DescribeProducers (61), version 0: the producers whose state a partition's leader keeps."""

from __future__ import annotations

from ottla.handlers.call import Call
from ottla.handlers.topic_partitions import leader_for
from ottla.model import ErrorCode, topic_name_fault
from ottla.protocol.generated.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicResponse,
)
from ottla.replication.leader import Leader
from ottla.security.authorizer import Operation
from ottla.storage.errors import StorageFault


def handle(call: Call, request: DescribeProducersRequest) -> DescribeProducersResponse:
    topics = [
        TopicResponse(name=topic.name, partitions=[_partition(call, topic.name, p) for p in topic.partition_indexes])
        for topic in request.topics
    ]
    return DescribeProducersResponse(throttle_time_ms=call.throttle_ms(), topics=topics)


def _partition(call: Call, topic: str, partition: int) -> PartitionResponse:
    if topic_name_fault(topic) is not None:
        leader: Leader | ErrorCode = ErrorCode.INVALID_TOPIC_EXCEPTION
    else:
        leader = leader_for(call, topic, partition, Operation.READ)
    if isinstance(leader, ErrorCode):
        return PartitionResponse(partition_index=partition, error_code=leader, error_message=None, active_producers=[])
    try:
        active = leader.log.describe_producers()
    except StorageFault as fault:
        return PartitionResponse(
            partition_index=partition,
            error_code=ErrorCode.KAFKA_STORAGE_ERROR,
            error_message=str(fault),
            active_producers=[],
        )
    producers = [
        ProducerState(
            producer_id=entry.producer_id,
            producer_epoch=entry.epoch,
            last_sequence=entry.last_sequence,
            last_timestamp=entry.last_timestamp,
            coordinator_epoch=entry.coordinator_epoch,
            current_txn_start_offset=entry.transaction_start_offset,
        )
        for entry in active
    ]
    return PartitionResponse(partition_index=partition, error_message=None, active_producers=producers)
