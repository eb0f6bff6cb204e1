"""OffsetDelete (47), version 0: forgets a group's positions in topics that it does not subscribe to."""

from __future__ import annotations

from collections.abc import Sequence

from ottla.handlers.calls.call import Call
from ottla.handlers.calls.group_calls import allowed_on_group, caller_of
from ottla.handlers.calls.later import Later
from ottla.model import ErrorCode
from ottla.protocol.generated.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)
from ottla.security.authorizer import Operation
from ottla.steps import Steps, pieces, taken


def handle(call: Call, request: OffsetDeleteRequest) -> Steps[OffsetDeleteResponse | Later]:
    if not allowed_on_group(call, Operation.DELETE, request.group_id):
        return OffsetDeleteResponse(
            error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED, throttle_time_ms=call.throttle_ms()
        )
    refused: dict[str, OffsetDeleteResponseTopic] = {}
    sound: list[OffsetDeleteRequestTopic] = []
    for some in taken(request.topics):
        for topic in some:
            found = yield from _found(call, topic, refused)
            if found:
                sound.append(OffsetDeleteRequestTopic(name=topic.name, partitions=found))
        yield
    request.topics = sound
    answer = Later()

    def reply(response: OffsetDeleteResponse) -> None:
        response.throttle_time_ms = call.throttle_ms()
        answer.set(_joined(response, refused) if response.error_code == ErrorCode.NONE else response)

    yield from call.services.groups.shard_for_member(request.group_id).offset_delete(caller_of(call), request, reply)
    return answer


def _found(
    call: Call, topic: OffsetDeleteRequestTopic, refused: dict[str, OffsetDeleteResponseTopic]
) -> Steps[list[OffsetDeleteRequestPartition]]:
    """The topic's partitions that there are; all others are answered in `refused`."""
    known = call.services.metadata.topic(topic.name)
    error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    count = 0 if known is None else len(known.partitions)
    if not call.allowed_on_topic(Operation.READ, topic.name):
        error, count = ErrorCode.TOPIC_AUTHORIZATION_FAILED, 0
    found: list[OffsetDeleteRequestPartition] = []
    for number, piece in enumerate(taken(topic.partitions)):
        if number:
            yield
        missing = [partition for partition in piece if not 0 <= partition.partition_index < count]
        if missing:
            _refuse(refused, topic, missing, error)
        found += [partition for partition in piece if 0 <= partition.partition_index < count]
    return found


def _refuse(
    refused: dict[str, OffsetDeleteResponseTopic],
    topic: OffsetDeleteRequestTopic,
    partitions: Sequence[OffsetDeleteRequestPartition],
    error: ErrorCode,
) -> None:
    mine = refused.setdefault(topic.name, OffsetDeleteResponseTopic(name=topic.name))
    mine.partitions += [
        OffsetDeleteResponsePartition(partition_index=partition.partition_index, error_code=error)
        for partition in partitions
    ]


def _joined(
    response: OffsetDeleteResponse, refused: dict[str, OffsetDeleteResponseTopic]
) -> Steps[OffsetDeleteResponse]:
    """One entry a topic, also where some of its partitions were refused."""
    answered, response.topics = response.topics, []
    for piece in pieces(answered):
        for topic in piece:
            if mine := refused.pop(topic.name, None):
                topic.partitions += mine.partitions
        yield
    for some in pieces(refused.values()):
        response.topics += some
        yield
    response.topics += answered
    return response
