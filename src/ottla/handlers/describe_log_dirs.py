"""DescribeLogDirs (35), versions 1 to 5: log directories, and the size of each replica in them."""

from __future__ import annotations

from ottla.handlers.call import Call
from ottla.model import ErrorCode, TopicPartition
from ottla.protocol.generated.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)
from ottla.security.authorizer import Operation
from ottla.storage.directory_status import DirectoryStatus


def handle(call: Call, request: DescribeLogDirsRequest) -> DescribeLogDirsResponse:
    if not call.allowed_on_cluster(Operation.DESCRIBE):
        return DescribeLogDirsResponse(
            throttle_time_ms=call.throttle_ms(), error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED, results=[]
        )
    wanted = None
    if request.topics is not None:
        wanted = {TopicPartition(topic.topic, p) for topic in request.topics for p in topic.partitions}
    replicas = call.services.replicas
    statuses = replicas.directories.describe(replicas.high_watermarks())
    return DescribeLogDirsResponse(
        throttle_time_ms=call.throttle_ms(), results=[_result(status, wanted) for status in statuses]
    )


def _result(status: DirectoryStatus, wanted: set[TopicPartition] | None) -> DescribeLogDirsResult:
    by_topic: dict[str, list[DescribeLogDirsPartition]] = {}
    for replica in status.replicas:
        if wanted is None or replica.partition in wanted:
            partition = DescribeLogDirsPartition(
                partition_index=replica.partition.partition,
                partition_size=replica.size_bytes,
                offset_lag=replica.offset_lag,
                is_future_key=replica.is_future,
            )
            by_topic.setdefault(replica.partition.topic, []).append(partition)
    return DescribeLogDirsResult(
        error_code=ErrorCode.NONE if status.failure is None else ErrorCode.KAFKA_STORAGE_ERROR,
        log_dir=status.path,
        topics=[DescribeLogDirsTopic(name=name, partitions=partitions) for name, partitions in by_topic.items()],
        total_bytes=status.total_bytes,
        usable_bytes=status.usable_bytes,
        is_cordoned=status.is_cordoned,
    )
