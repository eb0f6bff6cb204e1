"""CreatePartitions (37), versions 0 to 3: adds partitions to topics; there is no way to take one away."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ottla.controller.interface import NewPartitions, TopicResult
from ottla.handlers.call import Call
from ottla.model import BrokerId, ErrorCode
from ottla.protocol.generated.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)
from ottla.security.authorizer import Operation
from ottla.security.quotas import Use
from ottla.steps import PIECE, Steps, counted, pieces


async def handle(call: Call, request: CreatePartitionsRequest) -> CreatePartitionsResponse:
    turns = call.services.turns
    wanted, refused, before = await turns.to_end(_sorted_out(call, request))
    results = await call.services.controller.create_partitions(
        wanted, validate_only=request.validate_only, timeout_ms=request.timeout_ms
    )
    return await turns.to_end(_answered(call, wanted, [*refused, *results], before))


def _sorted_out(
    call: Call, request: CreatePartitionsRequest
) -> Steps[tuple[list[NewPartitions], list[TopicResult], dict[str, int]]]:
    """What is to be done, answers to the rest, and how many partitions there are now."""
    refused: list[TopicResult] = []
    wanted: list[NewPartitions] = []
    before: dict[str, int] = {}
    times = yield from counted(topic.name for topic in request.topics)
    left = dict(times)
    for topic in request.topics:
        left[topic.name] -= 1
        if left[topic.name]:
            continue
        if times[topic.name] > 1:
            refused.append(TopicResult(topic.name, ErrorCode.INVALID_REQUEST, "Duplicate topic in request."))
        elif not call.allowed_on_topic(Operation.ALTER, topic.name):
            refused.append(
                TopicResult(topic.name, ErrorCode.TOPIC_AUTHORIZATION_FAILED, "The topic authorization failed.")
            )
        else:
            wanted.append((yield from _new_partitions(topic)))
            known = call.services.metadata.topic(topic.name)
            before[topic.name] = 0 if known is None else len(known.partitions)
        yield
    return wanted, refused, before


def _answered(
    call: Call, wanted: Sequence[NewPartitions], results: Sequence[TopicResult], before: Mapping[str, int]
) -> Steps[CreatePartitionsResponse]:
    totals = {topic.topic: topic.total for topic in wanted}
    yield
    changes = 0
    answers: list[CreatePartitionsTopicResult] = []
    for piece in pieces(results):
        for result in piece:
            if result.error == ErrorCode.NONE:
                changes += totals[result.topic] - before[result.topic]
            answers.append(
                CreatePartitionsTopicResult(name=result.topic, error_code=result.error, error_message=result.message)
            )
        yield
    return CreatePartitionsResponse(throttle_time_ms=call.throttle_ms(Use.PARTITION_CHANGES, changes), results=answers)


def _new_partitions(topic: CreatePartitionsTopic) -> Steps[NewPartitions]:
    if topic.assignments is None:
        return NewPartitions(topic.name, topic.count, None)
    assignments: list[tuple[BrokerId, ...]] = []
    for each in topic.assignments:
        assignments.append(tuple(map(BrokerId, each.broker_ids)))
        if len(assignments) % PIECE == 0:
            yield
    return NewPartitions(topic.name, topic.count, tuple(assignments))
