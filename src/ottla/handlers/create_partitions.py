"""CreatePartitions (37), versions 0 to 3: adds partitions to topics; there is no way to take one away."""

from __future__ import annotations

from collections import Counter

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


async def handle(call: Call, request: CreatePartitionsRequest) -> CreatePartitionsResponse:
    times = Counter(topic.name for topic in request.topics)
    refused: list[TopicResult] = []
    wanted: list[NewPartitions] = []
    for topic in {topic.name: topic for topic in request.topics}.values():
        if times[topic.name] > 1:
            refused.append(TopicResult(topic.name, ErrorCode.INVALID_REQUEST, "Duplicate topic in request."))
        elif not call.allowed_on_topic(Operation.ALTER, topic.name):
            refused.append(
                TopicResult(topic.name, ErrorCode.TOPIC_AUTHORIZATION_FAILED, "The topic authorization failed.")
            )
        else:
            wanted.append(_new_partitions(topic))
    topics = call.services.metadata.topics
    before = {topic.topic: len(topics[topic.topic].partitions) for topic in wanted if topic.topic in topics}
    results = await call.services.controller.create_partitions(
        wanted, validate_only=request.validate_only, timeout_ms=request.timeout_ms
    )
    made = {result.topic for result in results if result.error == ErrorCode.NONE}
    changes = sum(topic.total - before.get(topic.topic, 0) for topic in wanted if topic.topic in made)
    return CreatePartitionsResponse(
        throttle_time_ms=call.throttle_ms(Use.PARTITION_CHANGES, changes),
        results=[
            CreatePartitionsTopicResult(name=result.topic, error_code=result.error, error_message=result.message)
            for result in (*refused, *results)
        ],
    )


def _new_partitions(topic: CreatePartitionsTopic) -> NewPartitions:
    assignments = None
    if topic.assignments is not None:
        assignments = tuple(tuple(BrokerId(broker) for broker in each.broker_ids) for each in topic.assignments)
    return NewPartitions(topic.name, topic.count, assignments)
