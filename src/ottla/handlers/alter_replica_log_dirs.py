"""AlterReplicaLogDirs (34), versions 1 and 2: moves replicas between this broker's log directories.

A replica that is not here yet is remembered, and created in that directory when it comes (KIP-113). One that is here
is copied in the background and changes over when the copy is level.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, Final, NamedTuple

from ottla.handlers.calls.call import Call
from ottla.model import ErrorCode, TopicPartition
from ottla.protocol.generated.alter_replica_log_dirs import (
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopicResult,
)
from ottla.security.authorizer import Operation
from ottla.steps import Steps, pieces, taken
from ottla.storage.directories.errors import DirectoryNotFound, DirectoryOffline, MoveRefused, PartitionOffline
from ottla.storage.errors import StorageFault

#: Each takes some microseconds, unless it is moved.
_PARTITIONS_A_STEP: Final = 16
#: Each takes a microsecond, its partitions aside.
_TOPICS_A_STEP: Final = 32
#: Each takes less than a microsecond.
_NAMED_A_STEP: Final = 250

_Results = dict[str, list[AlterReplicaLogDirPartitionResult]]


class _Move(NamedTuple):
    """Of a replica that is here, with the result that says how it went."""

    tp: TopicPartition
    path: str
    result: AlterReplicaLogDirPartitionResult


def handle(
    call: Call, request: AlterReplicaLogDirsRequest
) -> Steps[AlterReplicaLogDirsResponse | Coroutine[Any, Any, AlterReplicaLogDirsResponse]]:
    paths = yield from _paths(request)
    results: _Results = {}
    moves: list[_Move] = []
    allowed = call.allowed_on_cluster(Operation.ALTER)
    for piece in pieces(paths.items(), _PARTITIONS_A_STEP):
        for tp, path in piece:
            error = _preferred(call, tp, path) if allowed else ErrorCode.CLUSTER_AUTHORIZATION_FAILED
            result = AlterReplicaLogDirPartitionResult(partition_index=tp.partition, error_code=error or ErrorCode.NONE)
            if error is None:
                moves.append(_Move(tp, path, result))
            results.setdefault(tp.topic, []).append(result)
        yield
    del paths
    response = yield from _response(call, results)
    return _moved(call, moves, response) if moves else response


def _paths(request: AlterReplicaLogDirsRequest) -> Steps[dict[TopicPartition, str]]:
    """Where each is to be. As by Kafka, one that is named more than once goes where it was named last."""
    paths: dict[TopicPartition, str] = {}
    for some in taken(request.dirs, _TOPICS_A_STEP):
        for directory in some:
            for topics in taken(directory.topics, _TOPICS_A_STEP):
                for topic in topics:
                    for piece in taken(topic.partitions, _NAMED_A_STEP):
                        paths.update((TopicPartition(topic.name, partition), directory.path) for partition in piece)
                        yield
                yield
        yield
    return paths


def _response(call: Call, results: _Results) -> Steps[AlterReplicaLogDirsResponse]:
    topics: list[AlterReplicaLogDirTopicResult] = []
    for piece in pieces(results.items()):
        topics += [AlterReplicaLogDirTopicResult(topic_name=name, partitions=partitions) for name, partitions in piece]
        yield
    return AlterReplicaLogDirsResponse(throttle_time_ms=call.throttle_ms(), results=topics)


def _preferred(call: Call, tp: TopicPartition, path: str) -> ErrorCode | None:
    """Notes the directory for a replica that is not here yet, or of which there is none, anywhere; None where it is."""
    directories = call.services.replicas.directories
    if directories.get(tp) is not None or tp in directories.offline:
        return None
    try:
        directories.prefer(tp, path)
    except DirectoryNotFound:
        return ErrorCode.LOG_DIR_NOT_FOUND
    except (DirectoryOffline, PartitionOffline, StorageFault):
        return ErrorCode.KAFKA_STORAGE_ERROR
    known = call.services.metadata.partition(tp.topic, tp.partition) is not None
    return ErrorCode.REPLICA_NOT_AVAILABLE if known else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


async def _moved(call: Call, moves: list[_Move], response: AlterReplicaLogDirsResponse) -> AlterReplicaLogDirsResponse:
    for piece in taken(moves, _PARTITIONS_A_STEP):
        for move in piece:
            move.result.error_code = await _move(call, move.tp, move.path)
        await asyncio.sleep(0)  # what is refused, or is there already, waits for nothing
    return response


async def _move(call: Call, tp: TopicPartition, path: str) -> ErrorCode:
    replicas = call.services.replicas
    try:
        # One after the other, so that changes of topics come in between.
        await replicas.change(replicas.moves.starting(tp, path))
    except DirectoryNotFound:
        return ErrorCode.LOG_DIR_NOT_FOUND
    except MoveRefused:
        # The name of a copy's folder is longer than the partition's own, and too long for a file system.
        return ErrorCode.INVALID_TOPIC_EXCEPTION
    except (DirectoryOffline, PartitionOffline, StorageFault):
        return ErrorCode.KAFKA_STORAGE_ERROR
    return ErrorCode.NONE
