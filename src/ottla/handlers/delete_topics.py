"""DeleteTopics (20), versions 1 to 6: deletes topics by name, or from version 6 on by id as well."""

from __future__ import annotations

from collections import Counter

from ottla.controller.interface import DeletedTopic, TopicRef
from ottla.handlers.call import Call
from ottla.model import ZERO_TOPIC_ID, ErrorCode, TopicId
from ottla.protocol.generated.delete_topics import DeletableTopicResult, DeleteTopicsRequest, DeleteTopicsResponse
from ottla.security.authorizer import Operation
from ottla.security.quotas import Use

_BY_REF = 6


async def handle(call: Call, request: DeleteTopicsRequest) -> DeleteTopicsResponse:
    if call.version >= _BY_REF:
        refs = [TopicRef(topic.name, TopicId(topic.topic_id)) for topic in request.topics]
    else:
        refs = [TopicRef(name) for name in request.topic_names]
    allowed, refused = _sorted_out(call, refs)
    partitions = _partitions(call, allowed)
    deleted = await call.services.controller.delete_topics(allowed, timeout_ms=request.timeout_ms)
    changes = sum(partitions.get(result.name, 0) for result in deleted if result.error == ErrorCode.NONE)
    return DeleteTopicsResponse(
        throttle_time_ms=call.throttle_ms(Use.PARTITION_CHANGES, changes),
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


def _sorted_out(call: Call, refs: list[TopicRef]) -> tuple[list[TopicRef], list[DeletedTopic]]:
    """What is to be deleted, and answers to the rest. What is named twice is meant otherwise: it is not deleted."""
    allowed: list[TopicRef] = []
    refused: list[DeletedTopic] = []
    for ref, times in Counter(refs).items():
        refusal = _refusal(call, ref, times)
        if refusal is None:
            allowed.append(ref)
        else:
            refused.append(refusal)
    topic_name = call.services.metadata.topic_name
    ids = {topic_name(ref.id): ref for ref in allowed if ref.name is None}
    for ref in [ref for ref in allowed if ref.name is not None and ref.name in ids]:
        message = "The provided topic name maps to an ID that was already supplied."
        by_id = ids[ref.name]
        refused.append(DeletedTopic(ref.name, by_id.id, ErrorCode.INVALID_REQUEST, message))
        allowed = [each for each in allowed if each not in (ref, by_id)]
    return allowed, refused


def _partitions(call: Call, refs: list[TopicRef]) -> dict[str | None, int]:
    """How many partitions each of the topics has."""
    metadata = call.services.metadata
    topics = [metadata.topic_by_id(ref.id) if ref.name is None else metadata.topic(ref.name) for ref in refs]
    return {topic.name: len(topic.partitions) for topic in topics if topic is not None}


def _refusal(call: Call, ref: TopicRef, times: int) -> DeletedTopic | None:
    by_id = ref.name is None
    if by_id and ref.id == ZERO_TOPIC_ID:
        return DeletedTopic(None, ref.id, ErrorCode.INVALID_REQUEST, "Neither topic name nor id were specified.")
    if not by_id and ref.id != ZERO_TOPIC_ID:
        return DeletedTopic(
            ref.name, ref.id, ErrorCode.INVALID_REQUEST, "You may not specify both topic name and topic id."
        )
    if times > 1:
        message = "Duplicate topic id." if by_id else "Duplicate topic name."
        return DeletedTopic(ref.name, ref.id, ErrorCode.INVALID_REQUEST, message)
    name = call.services.metadata.topic_name(ref.id) if by_id else ref.name
    if name is not None and not call.allowed_on_topic(Operation.DELETE, name):
        # Who may not even describe it is not told the name that belongs to an id.
        shown = name if not by_id or call.allowed_on_topic(Operation.DESCRIBE, name) else None
        return DeletedTopic(shown, ref.id, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    return None
