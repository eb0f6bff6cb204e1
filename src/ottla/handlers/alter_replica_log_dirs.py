"""AlterReplicaLogDirs (34), versions 1 and 2: moves replicas between this broker's log directories.

A replica that is not here yet is remembered, and created in that directory when it comes (KIP-113). One that is here
is copied in the background and changes over when the copy is level.
"""

from __future__ import annotations

import asyncio
from typing import Final

from ottla.handlers.call import Call
from ottla.model import ErrorCode, TopicPartition
from ottla.protocol.generated.alter_replica_log_dirs import (
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopicResult,
)
from ottla.security.authorizer import Operation
from ottla.steps import pieces
from ottla.storage.directory_errors import DirectoryNotFound, DirectoryOffline, MoveRefused, PartitionOffline
from ottla.storage.errors import StorageFault

#: Looked at in one turn of the loop: each takes some microseconds, unless it is moved.
_PARTITIONS_A_TURN: Final = 256


async def handle(call: Call, request: AlterReplicaLogDirsRequest) -> AlterReplicaLogDirsResponse:
    results: dict[str, list[AlterReplicaLogDirPartitionResult]] = {}
    allowed = call.allowed_on_cluster(Operation.ALTER)
    for directory in request.dirs:
        for topic in directory.topics:
            for piece in pieces(topic.partitions, _PARTITIONS_A_TURN):
                for partition in piece:
                    error = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
                    if allowed:
                        error = await _move(call, TopicPartition(topic.name, partition), directory.path)
                    result = AlterReplicaLogDirPartitionResult(partition_index=partition, error_code=error)
                    results.setdefault(topic.name, []).append(result)
                await asyncio.sleep(0)
    return AlterReplicaLogDirsResponse(
        throttle_time_ms=call.throttle_ms(),
        results=[
            AlterReplicaLogDirTopicResult(topic_name=name, partitions=partitions)
            for name, partitions in results.items()
        ],
    )


async def _move(call: Call, tp: TopicPartition, path: str) -> ErrorCode:
    replicas = call.services.replicas
    try:
        if replicas.directories.get(tp) is None and tp not in replicas.directories.offline:
            replicas.directories.prefer(tp, path)
            # Noted, but the replica is not here yet; or there is none, anywhere.
            known = call.services.metadata.partition(tp.topic, tp.partition) is not None
            return ErrorCode.REPLICA_NOT_AVAILABLE if known else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
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
