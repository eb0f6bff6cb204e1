"""ElectLeaders (43), versions 0 to 2: the preferred leaders of partitions lead again, or anybody that is left does.

Before version 1 only preferred leaders can be asked for, and there is no error of the request as a whole. Where no
partitions are named all of them are meant, and those that needed no election are not in the answer.
"""

from __future__ import annotations

from collections.abc import Awaitable, Iterable

from ottla.controller.interface import ElectionKind
from ottla.controller.interface import PartitionResult as Elected
from ottla.handlers.calls.call import Call
from ottla.handlers.calls.from_brokers import controller_for
from ottla.model import ErrorCode, TopicPartition
from ottla.protocol.generated.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
)
from ottla.security.authorizer import Operation
from ottla.steps import PIECE, Steps, pieces


def handle(call: Call, request: ElectLeadersRequest) -> Steps[Awaitable[ElectLeadersResponse]]:
    named = yield from _named(request)
    if not call.allowed_on_cluster(Operation.ALTER):
        return _refused(call, named, ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "Cluster authorization failed.")
    try:
        kind = ElectionKind(request.election_type)
    except ValueError:
        message = f"Unknown election type {request.election_type}"
        return _refused(call, named, ErrorCode.INVALID_REQUEST, message)
    return _carry_out(call, request, kind, named)


def _named(request: ElectLeadersRequest) -> Steps[list[TopicPartition] | None]:
    """None: all of them."""
    if request.topic_partitions is None:
        return None
    found: list[TopicPartition] = []
    for place, topic in enumerate(request.topic_partitions):
        if place % PIECE == 0:
            yield  # also where they name no partition
        for piece in pieces(topic.partitions):
            found += [TopicPartition(topic.topic, partition) for partition in piece]
            yield
    return found


async def _refused(
    call: Call, named: list[TopicPartition] | None, error: ErrorCode, message: str | None
) -> ElectLeadersResponse:
    """The request as a whole, and so each partition of it."""
    refused = (Elected(tp, error, message) for tp in named or ())
    return await call.services.turns.to_end(_response(call, error, refused))


async def _carry_out(
    call: Call, request: ElectLeadersRequest, kind: ElectionKind, named: list[TopicPartition] | None
) -> ElectLeadersResponse:
    error, results = await controller_for(call).elect_leaders(kind, named, timeout_ms=request.timeout_ms)
    if error is not ErrorCode.NONE:
        return await _refused(call, named, error, next((result.message for result in results), None))
    return await call.services.turns.to_end(_response(call, error, results))


def _response(call: Call, error: ErrorCode, results: Iterable[Elected]) -> Steps[ElectLeadersResponse]:
    by_topic: dict[str, ReplicaElectionResult] = {}
    for piece in pieces(results):
        for result in piece:
            topic = by_topic.get(result.tp.topic)
            if topic is None:
                topic = by_topic[result.tp.topic] = ReplicaElectionResult(topic=result.tp.topic, partition_result=[])
            topic.partition_result.append(
                PartitionResult(partition_id=result.tp.partition, error_code=result.error, error_message=result.message)
            )
        yield
    return ElectLeadersResponse(
        throttle_time_ms=call.throttle_ms(),
        error_code=error if call.version > 0 else ErrorCode.NONE,
        replica_election_results=list(by_topic.values()),
    )
