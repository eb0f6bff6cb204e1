"""CreateTopics (19), versions 2 to 7: creates topics, or only checks that they could be created."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ottla.config.describe import describe_topic, is_listed
from ottla.controller.interface import TopicCreation, TopicToCreate
from ottla.handlers.calls.call import Call
from ottla.handlers.calls.from_brokers import broker_ids_of_client, controller_for
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
from ottla.steps import Steps, counted, pieces

#: Each takes some microseconds.
_TOPICS_A_STEP: Final = 16

_TWICE: Final = "Duplicate topic name."


async def handle(call: Call, request: CreateTopicsRequest) -> CreateTopicsResponse:
    turns = call.services.turns
    wanted, results = await turns.to_end(_sorted_out(call, request))
    created = await controller_for(call).create_topics(
        wanted, validate_only=request.validate_only, timeout_ms=request.timeout_ms
    )
    return await turns.to_end(_answered(call, request, created, results))


def _sorted_out(
    call: Call, request: CreateTopicsRequest
) -> Steps[tuple[list[TopicToCreate], dict[str, TopicCreation]]]:
    """What is to be created, and answers to the rest."""
    times = yield from counted(topic.name for topic in request.topics)
    results: dict[str, TopicCreation] = {}
    wanted: list[TopicToCreate] = []
    for piece in pieces(request.topics, _TOPICS_A_STEP):
        for topic in piece:
            if times[topic.name] > 1:
                message = _TWICE
                results[topic.name] = TopicCreation(topic.name, ErrorCode.INVALID_REQUEST, message)
            elif not (call.allowed_on_cluster(Operation.CREATE) or call.allowed_on_topic(Operation.CREATE, topic.name)):
                results[topic.name] = TopicCreation(
                    topic.name, ErrorCode.TOPIC_AUTHORIZATION_FAILED, "Authorization failed."
                )
            else:
                wanted.append((yield from _new_topic(topic)))
        yield
    return wanted, results


def _answered(
    call: Call, request: CreateTopicsRequest, created: Sequence[TopicCreation], results: dict[str, TopicCreation]
) -> Steps[CreateTopicsResponse]:
    changes = 0
    for piece in pieces(created):
        results.update((result.name, result) for result in piece)
        changes += sum(max(0, result.partitions) for result in piece if result.error == ErrorCode.NONE)
        yield
    answers: dict[str, CreatableTopicResult] = {}
    for topic in request.topics:
        if topic.name not in answers:
            answers[topic.name] = _result(call, results[topic.name])
        yield
    return CreateTopicsResponse(
        throttle_time_ms=call.throttle_ms(Use.PARTITION_CHANGES, changes), topics=list(answers.values())
    )


def _new_topic(topic: CreatableTopic) -> Steps[TopicToCreate]:
    assignments: list[tuple[int, tuple[BrokerId, ...]]] = []
    for some in pieces(topic.assignments):
        assignments += [(each.partition_index, broker_ids_of_client(each.broker_ids)) for each in some]
        yield
    configs: dict[str, str | None] = {}
    for piece in pieces(topic.configs):
        configs.update((config.name, config.value) for config in piece)
        yield
    return TopicToCreate(topic.name, topic.num_partitions, topic.replication_factor, tuple(assignments), configs)


def _result(call: Call, created: TopicCreation) -> CreatableTopicResult:
    result = CreatableTopicResult(
        name=created.name,
        topic_id=created.topic_id,
        error_code=created.error,
        error_message=created.message,
    )
    if created.error != ErrorCode.NONE:
        return result
    result.num_partitions = created.partitions
    result.replication_factor = created.replication_factor
    if not call.allowed_on_topic(Operation.DESCRIBE_CONFIGS, created.name):
        result.topic_config_error_code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        result.num_partitions = result.replication_factor = -1
        result.configs = None
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
        if is_listed(entry)
    ]
    return result
