"""ListPartitionReassignments (46), version 0: the moves under way, of all partitions or of those that are named."""

from __future__ import annotations

from collections.abc import Awaitable, Sequence

from ottla.controller.interface import OngoingReassignment
from ottla.handlers.calls.call import Call
from ottla.handlers.calls.from_brokers import controller_for
from ottla.model import ErrorCode, TopicPartition
from ottla.protocol.generated.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)
from ottla.security.authorizer import Operation
from ottla.steps import PIECE, Steps, pieces


def handle(
    call: Call, request: ListPartitionReassignmentsRequest
) -> Steps[Awaitable[ListPartitionReassignmentsResponse]]:
    named = yield from _named(request)
    return _carry_out(call, named)


def _named(request: ListPartitionReassignmentsRequest) -> Steps[list[TopicPartition] | None]:
    """None: all of them."""
    if request.topics is None:
        return None
    found: list[TopicPartition] = []
    for place, topic in enumerate(request.topics):
        if place % PIECE == 0:
            yield  # also where they name no partition
        for piece in pieces(topic.partition_indexes):
            found += [TopicPartition(topic.name, partition) for partition in piece]
            yield
    return found


async def _carry_out(call: Call, named: list[TopicPartition] | None) -> ListPartitionReassignmentsResponse:
    response = ListPartitionReassignmentsResponse(throttle_time_ms=call.throttle_ms(), error_message=None)
    if not call.allowed_on_cluster(Operation.DESCRIBE):
        response.error_code = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        response.error_message = "Cluster authorization failed."
        return response
    error, ongoing = await controller_for(call).reassignments(named)
    response.error_code = error
    return await call.services.turns.to_end(_filled_in(response, ongoing))


def _filled_in(
    response: ListPartitionReassignmentsResponse, ongoing: Sequence[OngoingReassignment]
) -> Steps[ListPartitionReassignmentsResponse]:
    by_topic: dict[str, OngoingTopicReassignment] = {}
    for piece in pieces(ongoing):
        for move in piece:
            topic = by_topic.get(move.tp.topic)
            if topic is None:
                topic = by_topic[move.tp.topic] = OngoingTopicReassignment(name=move.tp.topic, partitions=[])
                response.topics.append(topic)
            topic.partitions.append(
                OngoingPartitionReassignment(
                    partition_index=move.tp.partition,
                    replicas=list(move.replicas),
                    adding_replicas=list(move.adding),
                    removing_replicas=list(move.removing),
                )
            )
        yield
    return response
