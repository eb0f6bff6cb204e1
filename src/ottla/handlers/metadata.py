"""Metadata (3), versions 0 to 13: brokers, controller, topics and who leads their partitions.

A topic's part of the answer is encoded once and kept until anything in the metadata changes: clients with a thousand
partitions ask for all of them, and ask often. A topic without a leader stays in the answer, with all its partitions,
so that a producer never maps a key to another one.
"""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from typing import Final

from ottla.controller.interface import NewTopic
from ottla.handlers.call import Call
from ottla.handlers.offsets_topic import new_offsets_topic
from ottla.metadata.cache import TopicMetadata
from ottla.model import (
    CLUSTER_METADATA_TOPIC,
    INTERNAL_TOPICS,
    NO_BROKER,
    OFFSETS_TOPIC,
    ZERO_TOPIC_ID,
    ErrorCode,
    topic_name_fault,
)
from ottla.protocol.generated.metadata import MetadataRequest
from ottla.protocol.hot.metadata import OPERATIONS_UNKNOWN, encode_metadata_response, encode_metadata_topic
from ottla.security.authorizer import CLUSTER_NAME, Operation, Resource

#: Versions 10 and 11 have room for ids, and Kafka refuses them there all the same.
_ID_SINCE: Final = 12
_CREATE_TIMEOUT_MS: Final = 30_000
#: Encoded topics that are kept; over it they are all forgotten.
_ENCODED_MAX: Final = 20_000


def handle(call: Call, request: MetadataRequest) -> bytes | Awaitable[bytes]:
    if call.version < _ID_SINCE and any(
        topic.name is None or topic.topic_id != ZERO_TOPIC_ID for topic in request.topics or ()
    ):
        return _refused(call, request)
    if request.allow_auto_topic_creation and call.services.config.broker.auto_create_topics:
        missing = _missing(call, request)
        if missing:
            return _create_and_answer(call, request, missing)
    return _answer(call, request, {})


def _missing(call: Call, request: MetadataRequest) -> list[str]:
    """The named topics that do not exist, could, and that this client may create."""
    topics = call.services.metadata.topics
    return [
        topic.name
        for topic in request.topics or ()
        if topic.name is not None
        and topic.topic_id == ZERO_TOPIC_ID
        and topic.name not in topics
        and topic.name != CLUSTER_METADATA_TOPIC
        and topic_name_fault(topic.name) is None
        and (call.allowed_on_cluster(Operation.CREATE) or call.allowed_on_topic(Operation.CREATE, topic.name))
    ]


async def _create_and_answer(call: Call, request: MetadataRequest, missing: list[str]) -> bytes:
    offsets = call.services.config.groups.offsets
    new = [new_offsets_topic(offsets) if name == OFFSETS_TOPIC else NewTopic(name) for name in dict.fromkeys(missing)]
    results = await call.services.controller.create_topics(new, timeout_ms=_CREATE_TIMEOUT_MS)
    faults = {
        result.name: result.error
        for result in results
        if result.error not in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS)
    }
    return _answer(call, request, faults)


def _answer(call: Call, request: MetadataRequest, faults: Mapping[str, ErrorCode]) -> bytes:
    metadata = call.services.metadata
    wants_operations = bool(request.include_topic_authorized_operations)
    if request.topics is None or (call.version == 0 and not request.topics):
        topics = [
            _topic(call, topic, wants_operations=wants_operations)
            for topic in metadata.topics.values()
            if call.allowed_on_topic(Operation.DESCRIBE, topic.name)
        ]
    else:
        # Where ids are asked for Kafka passes over those that come by their names alone.
        asked: dict[tuple[str | None, bytes], None]
        asked = {(None, topic.topic_id): None for topic in request.topics if topic.topic_id != ZERO_TOPIC_ID}
        asked = asked or {(topic.name, ZERO_TOPIC_ID): None for topic in request.topics}
        topics = [_asked(call, *one, faults, wants_operations=wants_operations) for one in asked]
    operations = OPERATIONS_UNKNOWN
    if request.include_cluster_authorized_operations and call.allowed_on_cluster(Operation.DESCRIBE):
        operations = call.authorized_operations(Resource.CLUSTER, CLUSTER_NAME)
    brokers = [
        (broker.id, endpoint.host, endpoint.port, broker.rack)
        for broker in metadata.brokers.values()
        if (endpoint := broker.endpoint(call.listener)) is not None
    ]
    return encode_metadata_response(
        call.version,
        brokers,
        metadata.cluster_id,
        metadata.controller_id,
        topics,
        throttle_ms=call.throttle_ms(),
        operations=operations,
        correlation_id=call.correlation_id,
    )


def _refused(call: Call, request: MetadataRequest) -> bytes:
    """The whole request is, and is told nothing of the cluster."""
    topics = [
        encode_metadata_topic(call.version, ErrorCode.INVALID_REQUEST, topic.name or "", topic.topic_id, [])
        for topic in request.topics or ()
    ]
    return encode_metadata_response(
        call.version,
        [],
        None,
        NO_BROKER,
        topics,
        throttle_ms=call.throttle_ms(),
        correlation_id=call.correlation_id,
    )


def _asked(
    call: Call, name: str | None, topic_id: bytes, faults: Mapping[str, ErrorCode], *, wants_operations: bool
) -> bytes:
    """One topic that was asked for by name or id, or the error that it is answered with."""
    metadata = call.services.metadata
    if topic_id != ZERO_TOPIC_ID:
        known = metadata.topic_name(topic_id)
        if known is None or not call.allowed_on_topic(Operation.DESCRIBE, known):
            return _fault(call, ErrorCode.UNKNOWN_TOPIC_ID, None, topic_id)
        name = known
    if name is None:
        return _fault(call, ErrorCode.INVALID_TOPIC_EXCEPTION, name, topic_id)
    if not call.allowed_on_topic(Operation.DESCRIBE, name):
        return _fault(call, ErrorCode.TOPIC_AUTHORIZATION_FAILED, name, ZERO_TOPIC_ID)
    topic = metadata.topics.get(name)
    if topic is not None:
        return _topic(call, topic, wants_operations=wants_operations)
    if name in faults:
        return _fault(call, faults[name], name, ZERO_TOPIC_ID)
    bad_name = topic_name_fault(name) is not None
    error = ErrorCode.INVALID_TOPIC_EXCEPTION if bad_name else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return _fault(call, error, name, ZERO_TOPIC_ID)


def _fault(call: Call, error: ErrorCode, name: str | None, topic_id: bytes) -> bytes:
    if name is None and call.version < 12:
        name = ""
    return encode_metadata_topic(call.version, error, name, topic_id, [], internal=name in INTERNAL_TOPICS)


def _topic(call: Call, topic: TopicMetadata, *, wants_operations: bool) -> bytes:
    remembers = call.services.authorizer.allows_all
    kept = call.services.metadata.derived
    key = ("Metadata", call.version, topic.name, wants_operations)
    encoded: bytes | None = kept.get(key) if remembers else None
    if encoded is not None:
        return encoded
    partitions = [
        (
            ErrorCode.NONE if partition.leader >= 0 else ErrorCode.LEADER_NOT_AVAILABLE,
            partition.partition,
            partition.leader,
            partition.leader_epoch,
            partition.replicas,
            partition.isr,
            partition.offline_replicas,
        )
        for partition in topic.partitions
    ]
    operations = call.authorized_operations(Resource.TOPIC, topic.name) if wants_operations else OPERATIONS_UNKNOWN
    encoded = encode_metadata_topic(
        call.version,
        ErrorCode.NONE,
        topic.name,
        topic.id,
        partitions,
        internal=topic.is_internal,
        operations=operations,
    )
    if remembers:
        if len(kept) > _ENCODED_MAX:
            kept.clear()
        kept[key] = encoded
    return encoded
