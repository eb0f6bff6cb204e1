"""OffsetDelete (47), version 0: forgets a group's positions in topics that it does not subscribe to."""

from __future__ import annotations

from ottla.handlers.call import Call
from ottla.handlers.group_calls import allowed_on_group, caller_of
from ottla.handlers.later import Later
from ottla.model import ErrorCode
from ottla.protocol.generated.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)
from ottla.security.authorizer import Operation


def handle(call: Call, request: OffsetDeleteRequest) -> OffsetDeleteResponse | Later:
    if not allowed_on_group(call, Operation.DELETE, request.group_id):
        return OffsetDeleteResponse(
            error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED, throttle_time_ms=call.throttle_ms()
        )
    refused: list[OffsetDeleteResponseTopic] = []
    sound: list[OffsetDeleteRequestTopic] = []
    for topic in request.topics:
        if not call.allowed_on_topic(Operation.READ, topic.name):
            refused.append(_refused(topic, ErrorCode.TOPIC_AUTHORIZATION_FAILED))
        elif call.services.metadata.topic(topic.name) is None:
            refused.append(_refused(topic, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
        else:
            sound.append(topic)
    request.topics = sound
    answer = Later()

    def reply(response: OffsetDeleteResponse) -> None:
        response.throttle_time_ms = call.throttle_ms()
        if response.error_code == ErrorCode.NONE:
            response.topics = [*refused, *response.topics]
        answer.set(response)

    call.services.groups.offset_delete(caller_of(call), request, reply)
    return answer


def _refused(topic: OffsetDeleteRequestTopic, error: ErrorCode) -> OffsetDeleteResponseTopic:
    partitions = [
        OffsetDeleteResponsePartition(partition_index=partition.partition_index, error_code=error)
        for partition in topic.partitions
    ]
    return OffsetDeleteResponseTopic(name=topic.name, partitions=partitions)
