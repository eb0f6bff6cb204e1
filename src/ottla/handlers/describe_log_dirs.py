"""DescribeLogDirs (35), versions 1 to 5: log directories, and the size of each replica in them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ottla.handlers.calls.call import Call
from ottla.model import ErrorCode, TopicPartition
from ottla.protocol.generated.describe_log_dirs import (
    DescribableLogDirTopic,
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)
from ottla.replication.watermarks import CurrentWatermarks
from ottla.security.authorizer import Operation
from ottla.steps import Steps, pieces, taken
from ottla.storage.directories.status import DirectoryStatus


def handle(call: Call, request: DescribeLogDirsRequest) -> Steps[DescribeLogDirsResponse]:
    if not call.allowed_on_cluster(Operation.DESCRIBE):
        return DescribeLogDirsResponse(
            throttle_time_ms=call.throttle_ms(), error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED, results=[]
        )
    replicas = call.services.replicas
    statuses = yield from replicas.directories.describing(CurrentWatermarks(replicas.leaders, replicas.followers))
    wanted = None
    if request.topics is not None:
        held = yield from _held(statuses)
        wanted = yield from _wanted(request.topics, held)
    results = []
    for status in statuses:
        result = yield from _result(status, wanted)
        results.append(result)
    return DescribeLogDirsResponse(throttle_time_ms=call.throttle_ms(), results=results)


def _held(statuses: Sequence[DirectoryStatus]) -> Steps[dict[str, set[int]]]:
    held: dict[str, set[int]] = {}
    for status in statuses:
        for piece in pieces(status.replicas):
            for replica in piece:
                held.setdefault(replica.partition.topic, set()).add(replica.partition.partition)
            yield
    return held


def _wanted(topics: list[DescribableLogDirTopic], held: Mapping[str, set[int]]) -> Steps[set[TopicPartition]]:
    """Those of the request that are held: however many others it names, they take no memory."""
    wanted: set[TopicPartition] = set()
    for some in taken(topics):
        for topic in some:
            here = held.get(topic.topic)
            if here is None:
                continue
            for piece in taken(topic.partitions):
                wanted.update(TopicPartition(topic.topic, partition) for partition in here.intersection(piece))
                yield
        yield
    return wanted


def _result(status: DirectoryStatus, wanted: set[TopicPartition] | None) -> Steps[DescribeLogDirsResult]:
    by_topic: dict[str, list[DescribeLogDirsPartition]] = {}
    for piece in pieces(status.replicas):
        for replica in piece:
            if wanted is None or replica.partition in wanted:
                partition = DescribeLogDirsPartition(
                    partition_index=replica.partition.partition,
                    partition_size=replica.size_bytes,
                    offset_lag=replica.offset_lag,
                    is_future_key=replica.is_future,
                )
                by_topic.setdefault(replica.partition.topic, []).append(partition)
        yield
    return DescribeLogDirsResult(
        error_code=ErrorCode.NONE if status.failure is None else ErrorCode.KAFKA_STORAGE_ERROR,
        log_dir=status.path,
        topics=[DescribeLogDirsTopic(name=name, partitions=partitions) for name, partitions in by_topic.items()],
        total_bytes=status.total_bytes,
        usable_bytes=status.usable_bytes,
        is_cordoned=status.is_cordoned,
    )
