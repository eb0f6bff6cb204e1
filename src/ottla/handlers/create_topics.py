"""CreateTopics (19), versions 2 to 7: creates topics, or only checks that they could be created."""

from __future__ import annotations

from collections import Counter

from ottla.config.describe import describe_topic
from ottla.controller.interface import CreatedTopic, NewTopic
from ottla.handlers.call import Call
from ottla.model import BrokerId, ErrorCode
from ottla.protocol.generated.create_topics import (
    CreatableTopic,
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from ottla.security.authorizer import Operation
from ottla.security.quotas import Use

_TWICE = "Duplicate topic name."


async def handle(call: Call, request: CreateTopicsRequest) -> CreateTopicsResponse:
    twice = {name for name, times in Counter(topic.name for topic in request.topics).items() if times > 1}
    results: dict[str, CreatedTopic] = {}
    wanted = []
    for topic in request.topics:
        if topic.name in twice:
            results[topic.name] = CreatedTopic(topic.name, ErrorCode.INVALID_REQUEST, _TWICE)
        elif not (call.allowed_on_cluster(Operation.CREATE) or call.allowed_on_topic(Operation.CREATE, topic.name)):
            results[topic.name] = CreatedTopic(
                topic.name, ErrorCode.TOPIC_AUTHORIZATION_FAILED, "Authorization failed."
            )
        else:
            wanted.append(topic)
    created = await call.services.controller.create_topics(
        [_new_topic(topic) for topic in wanted], validate_only=request.validate_only, timeout_ms=request.timeout_ms
    )
    results.update((result.name, result) for result in created)
    changes = sum(max(0, result.partitions) for result in created if result.error == ErrorCode.NONE)
    return CreateTopicsResponse(
        throttle_time_ms=call.throttle_ms(Use.PARTITION_CHANGES, changes),
        topics=[_result(call, results[name]) for name in dict.fromkeys(topic.name for topic in request.topics)],
    )


def _new_topic(topic: CreatableTopic) -> NewTopic:
    return NewTopic(
        name=topic.name,
        partitions=topic.num_partitions,
        replication_factor=topic.replication_factor,
        assignments=tuple(
            (each.partition_index, tuple(BrokerId(broker) for broker in each.broker_ids)) for each in topic.assignments
        ),
        configs={config.name: config.value for config in topic.configs},
    )


def _result(call: Call, created: CreatedTopic) -> CreatableTopicResult:
    result = CreatableTopicResult(
        name=created.name,
        topic_id=created.topic_id,
        error_code=created.error,
        error_message=created.message,
        configs=None,
    )
    if created.error != ErrorCode.NONE:
        return result
    result.num_partitions = created.partitions
    result.replication_factor = created.replication_factor
    if not call.allowed_on_topic(Operation.DESCRIBE_CONFIGS, created.name):
        result.topic_config_error_code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        result.num_partitions = result.replication_factor = -1
        return result
    result.configs = [
        CreatableTopicConfigs(
            name=entry.name,
            value=entry.value,
            read_only=entry.is_read_only,
            config_source=entry.source,
            is_sensitive=entry.is_sensitive,
        )
        for entry in describe_topic(created.configs, call.services.config)
    ]
    return result
