"""AlterPartitionReassignments (45), versions 0 and 1: moves partitions to other brokers, or calls a move off.

From version 1 on a client may ask that no partition gets another number of replicas than it has. An answer without an
error means that the move is under way, not that it has ended.
"""

from __future__ import annotations

from collections.abc import Awaitable, Iterable

from ottla.controller.interface import PartitionResult, Reassignment
from ottla.handlers.calls.call import Call
from ottla.handlers.calls.from_brokers import broker_ids_of_client, controller_for
from ottla.model import ErrorCode, TopicPartition
from ottla.protocol.generated.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)
from ottla.security.authorizer import Operation
from ottla.steps import PIECE, Steps, pieces


def handle(
    call: Call, request: AlterPartitionReassignmentsRequest
) -> Steps[Awaitable[AlterPartitionReassignmentsResponse]]:
    changes = yield from _changes(request)
    return _carry_out(call, request, changes)


def _changes(request: AlterPartitionReassignmentsRequest) -> Steps[list[Reassignment]]:
    keeps_factor = not request.allow_replication_factor_change
    changes: list[Reassignment] = []
    for place, topic in enumerate(request.topics):
        if place % PIECE == 0:
            yield  # also where they name no partition
        for piece in pieces(topic.partitions):
            for partition in piece:
                target = None if partition.replicas is None else broker_ids_of_client(partition.replicas)
                tp = TopicPartition(topic.name, partition.partition_index)
                changes.append(Reassignment(tp, target, keeps_factor))
            yield
    return changes


async def _carry_out(
    call: Call, request: AlterPartitionReassignmentsRequest, changes: list[Reassignment]
) -> AlterPartitionReassignmentsResponse:
    message: str | None = None
    results: Iterable[PartitionResult] = ()
    if call.allowed_on_cluster(Operation.ALTER):
        controller = controller_for(call)
        error, results = await controller.alter_reassignments(changes, timeout_ms=request.timeout_ms)
        if error is not ErrorCode.NONE:
            message = next((result.message for result in results), None)
    else:
        error, message = ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "Cluster authorization failed."
    if error is not ErrorCode.NONE:
        results = (PartitionResult(change.tp, error, message) for change in changes)
    response = AlterPartitionReassignmentsResponse(
        throttle_time_ms=call.throttle_ms(),
        allow_replication_factor_change=request.allow_replication_factor_change,
        error_code=error,
        error_message=message,
    )
    return await call.services.turns.to_end(_filled_in(response, results))


def _filled_in(
    response: AlterPartitionReassignmentsResponse, results: Iterable[PartitionResult]
) -> Steps[AlterPartitionReassignmentsResponse]:
    by_topic: dict[str, ReassignableTopicResponse] = {}
    for piece in pieces(results):
        for result in piece:
            name = result.tp.topic
            topic = by_topic.get(name)
            if topic is None:
                topic = by_topic[name] = ReassignableTopicResponse(name=name, partitions=[])
                response.responses.append(topic)
            topic.partitions.append(
                ReassignablePartitionResponse(
                    partition_index=result.tp.partition, error_code=result.error, error_message=result.message
                )
            )
        yield
    return response
