"""DeleteTopics (20), versions 1 to 6: deletes topics by name, or from version 6 on by id as well."""

from __future__ import annotations

from ottla.controller.interface import DeletedTopic, TopicRef
from ottla.handlers.call import Call
from ottla.model import ZERO_TOPIC_ID, ErrorCode, TopicId
from ottla.protocol.generated.delete_topics import DeletableTopicResult, DeleteTopicsRequest, DeleteTopicsResponse
from ottla.security.authorizer import Operation

_BY_REF = 6


async def handle(call: Call, request: DeleteTopicsRequest) -> DeleteTopicsResponse:
    if call.version >= _BY_REF:
        refs = [TopicRef(topic.name, TopicId(topic.topic_id)) for topic in request.topics]
    else:
        refs = [TopicRef(name) for name in request.topic_names]
    allowed: list[TopicRef] = []
    refused: list[DeletedTopic] = []
    for ref in dict.fromkeys(refs):
        refusal = _refusal(call, ref)
        if refusal is None:
            allowed.append(ref)
        else:
            refused.append(refusal)
    deleted = await call.services.controller.delete_topics(allowed, timeout_ms=request.timeout_ms)
    return DeleteTopicsResponse(
        throttle_time_ms=call.throttle_ms(),
        responses=[
            DeletableTopicResult(
                name=result.name if call.version >= _BY_REF or result.name is not None else "",
                topic_id=result.id,
                error_code=result.error,
                error_message=result.message,
            )
            for result in (*refused, *deleted)
        ],
    )


def _refusal(call: Call, ref: TopicRef) -> DeletedTopic | None:
    by_id = ref.name is None
    if by_id and ref.id == ZERO_TOPIC_ID:
        return DeletedTopic(None, ref.id, ErrorCode.INVALID_REQUEST, "Neither topic name nor id were specified.")
    if not by_id and ref.id != ZERO_TOPIC_ID:
        return DeletedTopic(
            ref.name, ref.id, ErrorCode.INVALID_REQUEST, "You may not specify both topic name and topic id."
        )
    name = call.services.metadata.topic_name(ref.id) if by_id else ref.name
    if name is not None and not call.allowed_on_topic(Operation.DELETE, name):
        # Who may not even describe it is not told the name that belongs to an id.
        shown = name if not by_id or call.allowed_on_topic(Operation.DESCRIBE, name) else None
        return DeletedTopic(shown, ref.id, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    return None
