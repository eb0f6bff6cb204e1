"""DeleteTopics (20), versions 1 to 6: deletes topics by name, or from version 6 on by id as well."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ottla.controller.interface import DeletedTopic, TopicRef
from ottla.handlers.calls.call import Call
from ottla.handlers.calls.from_brokers import controller_for
from ottla.model import ZERO_TOPIC_ID, ErrorCode, TopicId
from ottla.protocol.generated.delete_topics import DeletableTopicResult, DeleteTopicsRequest, DeleteTopicsResponse
from ottla.security.authorizer import Operation
from ottla.security.quotas import Use
from ottla.steps import Steps, counted, pieces

_BY_REF = 6
#: Before it clients take TOPIC_DELETION_DISABLED for an error that they do not know.
_DISABLED_SINCE = 3


async def handle(call: Call, request: DeleteTopicsRequest) -> DeleteTopicsResponse:
    turns = call.services.turns
    allowed, refused = await turns.to_end(_sorted_out(call, request))
    partitions = await turns.to_end(_partitions(call, allowed))
    deleted = await controller_for(call).delete_topics(allowed, timeout_ms=request.timeout_ms)
    changes = sum(partitions.get(result.name, 0) for result in deleted if result.error == ErrorCode.NONE)
    return DeleteTopicsResponse(
        throttle_time_ms=call.throttle_ms(Use.PARTITION_CHANGES, changes),
        responses=await turns.to_end(_results(call, [*refused, *deleted])),
    )


def _results(call: Call, deleted: Sequence[DeletedTopic]) -> Steps[list[DeletableTopicResult]]:
    results: list[DeletableTopicResult] = []
    for piece in pieces(deleted):
        results += [
            DeletableTopicResult(
                name=result.name if call.version >= _BY_REF or result.name is not None else "",
                topic_id=result.id,
                error_code=_known_to(call.version, result.error),
                error_message=result.message,
            )
            for result in piece
        ]
        yield
    return results


def _known_to(version: int, error: ErrorCode) -> ErrorCode:
    if version < _DISABLED_SINCE and error is ErrorCode.TOPIC_DELETION_DISABLED:
        return ErrorCode.INVALID_REQUEST
    return error


def _refs(call: Call, request: DeleteTopicsRequest) -> Iterator[TopicRef]:
    if call.version >= _BY_REF:
        return (TopicRef(topic.name, TopicId(topic.topic_id)) for topic in request.topics)
    return (TopicRef(name) for name in request.topic_names)


def _sorted_out(call: Call, request: DeleteTopicsRequest) -> Steps[tuple[list[TopicRef], list[DeletedTopic]]]:
    """What is to be deleted, and answers to the rest. What is named twice is meant otherwise: it is not deleted."""
    #: In order, as a set of which something may be taken.
    allowed: dict[TopicRef, None] = {}
    refused: list[DeletedTopic] = []
    topic_name = call.services.metadata.topic_name
    #: Also those that are refused: what they stand for is meant otherwise as well.
    ids: dict[str, TopicRef] = {}
    times = yield from counted(_refs(call, request))
    for piece in pieces(times.items()):
        for ref, mentions in piece:
            name = topic_name(ref.id) if ref.name is None else None
            if name is not None:
                ids[name] = ref
            refusal = _refusal(call, ref, mentions)
            if refusal is not None:
                refused.append(refusal)
                continue
            allowed[ref] = None
        yield
    for piece_ in pieces(list(allowed)):
        for ref in piece_:
            by_id = ids.get(ref.name) if ref.name is not None else None
            if by_id is not None:
                message = "The provided topic name maps to an ID that was already supplied."
                refused.append(DeletedTopic(ref.name, by_id.id, ErrorCode.INVALID_REQUEST, message))
                allowed.pop(ref)
                allowed.pop(by_id, None)
        yield
    return list(allowed), refused


def _partitions(call: Call, refs: Sequence[TopicRef]) -> Steps[dict[str | None, int]]:
    """How many partitions each of the topics has."""
    metadata = call.services.metadata
    found: dict[str | None, int] = {}
    for piece in pieces(refs):
        for ref in piece:
            topic = metadata.topic_by_id(ref.id) if ref.name is None else metadata.topic(ref.name)
            if topic is not None:
                found[topic.name] = len(topic.partitions)
        yield
    return found


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
    name = _name_of(call, ref.id) if by_id else ref.name
    if name is None and not call.services.authorizer.allows_all:
        # The controller may know it, and takes this broker's word for what its client may do.
        return DeletedTopic(None, ref.id, ErrorCode.UNKNOWN_TOPIC_ID, "This server does not host this topic ID.")
    if name is not None and not call.allowed_on_topic(Operation.DELETE, name):
        # A client that may not even describe it does not learn the name that belongs to an id.
        shown = name if not by_id or call.allowed_on_topic(Operation.DESCRIBE, name) else None
        return DeletedTopic(shown, ref.id, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    return None


def _name_of(call: Call, topic_id: TopicId) -> str | None:
    """As this broker has heard of it, or knows it as the controller."""
    services = call.services
    name = services.metadata.topic_name(topic_id)
    return services.own_controller.topic_name(topic_id) if name is None and services.own_controller.active else name
