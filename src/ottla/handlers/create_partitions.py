"""CreatePartitions (37), versions 0 to 3: adds partitions to topics; there is no way to take one away.

Whether there is such a topic the controller decides: this broker may not have heard of it yet.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable

from ottla.controller.interface import NewPartitions, TopicResult
from ottla.handlers.calls.call import Call
from ottla.handlers.calls.from_brokers import broker_ids_of_client, controller_for
from ottla.model import BrokerId, ErrorCode
from ottla.protocol.generated.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)
from ottla.security.authorizer import Operation
from ottla.security.quotas import Use
from ottla.steps import Steps, pieces


def handle(call: Call, request: CreatePartitionsRequest) -> Steps[Awaitable[CreatePartitionsResponse]]:
    refused, wanted = yield from _sorted_out(call, request)
    return _carry_out(call, request, refused, wanted)


def _sorted_out(call: Call, request: CreatePartitionsRequest) -> Steps[tuple[list[TopicResult], list[NewPartitions]]]:
    times: Counter[str] = Counter()
    for piece in pieces(request.topics):
        times.update(topic.name for topic in piece)
        yield
    refused: list[TopicResult] = []
    wanted: list[NewPartitions] = []
    for topic in request.topics:
        # Where a topic stands several times, only once for all.
        count = times.pop(topic.name, 0)
        if count > 1:
            refused.append(TopicResult(topic.name, ErrorCode.INVALID_REQUEST, "Duplicate topic name."))
        elif count == 1 and not call.allowed_on_topic(Operation.ALTER, topic.name):
            refused.append(
                TopicResult(topic.name, ErrorCode.TOPIC_AUTHORIZATION_FAILED, "The topic authorization failed.")
            )
        elif count == 1:
            wanted.append((yield from _new_partitions(topic)))
        yield
    return refused, wanted


def _new_partitions(topic: CreatePartitionsTopic) -> Steps[NewPartitions]:
    if topic.assignments is None:
        return NewPartitions(topic.name, topic.count)
    assignments: list[tuple[BrokerId, ...]] = []
    for piece in pieces(topic.assignments):
        assignments.extend(broker_ids_of_client(each.broker_ids) for each in piece)
        yield
    return NewPartitions(topic.name, topic.count, tuple(assignments))


async def _carry_out(
    call: Call, request: CreatePartitionsRequest, refused: list[TopicResult], wanted: list[NewPartitions]
) -> CreatePartitionsResponse:
    topics = call.services.metadata.topics
    before = {topic.topic: len(topics[topic.topic].partitions) for topic in wanted if topic.topic in topics}
    results = await controller_for(call).create_partitions(
        wanted, validate_only=request.validate_only, timeout_ms=request.timeout_ms
    )
    made = {result.topic for result in results if result.error == ErrorCode.NONE}
    changes = sum(topic.total - before.get(topic.topic, 0) for topic in wanted if topic.topic in made)
    throttle_ms = call.throttle_ms(Use.PARTITION_CHANGES, changes)
    return await call.services.turns.to_end(_response(throttle_ms, [*refused, *results]))


def _response(throttle_ms: int, results: list[TopicResult]) -> Steps[CreatePartitionsResponse]:
    response = CreatePartitionsResponse(throttle_time_ms=throttle_ms, results=[])
    for piece in pieces(results):
        response.results.extend(
            CreatePartitionsTopicResult(name=result.topic, error_code=result.error, error_message=result.message)
            for result in piece
        )
        yield
    return response
