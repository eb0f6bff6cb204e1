"""Metadata (3), versions 0 to 13: brokers, controller, topics and who leads their partitions.

A topic's part of the answer is encoded once and kept until anything in the metadata changes: clients with a thousand
partitions ask for all of them, and ask often. A topic without a leader stays in the answer, with all its partitions,
so that a producer never maps a key to another one. A topic that does not exist is answered as unknown, also where this
has it created (`topics_on_demand`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ottla.handlers.calls.call import Call
from ottla.handlers.calls.topic_partitions import leader_shown
from ottla.metadata import PartitionState
from ottla.metadata.cache import TopicMetadata
from ottla.model import (
    CLUSTER_METADATA_TOPIC,
    INTERNAL_TOPICS,
    NO_BROKER,
    ZERO_TOPIC_ID,
    BrokerId,
    ErrorCode,
    topic_name_fault,
)
from ottla.protocol.generated.metadata import MetadataRequest
from ottla.protocol.hot.metadata import (
    OPERATIONS_UNKNOWN,
    Partition,
    encode_metadata_response,
    encode_metadata_topic,
)
from ottla.security.authorizer import CLUSTER_NAME, Operation, Resource
from ottla.steps import Steps, pieces

#: Versions 10 and 11 have room for ids, and Kafka refuses them there all the same.
_ID_SINCE: Final = 12
#: Before it clients know no error for a leader that lacks their listener.
_LISTENERS_SINCE: Final = 6
#: Before it clients take each replica for one that they can reach: one that is away is left out, and said to be away.
_ABSENT_SINCE: Final = 1
#: Topics that are answered in one step: most are encoded already, and few are long.
_TOPICS_AT_ONCE: Final = 16
#: Encoded topics that are kept; over it they are all forgotten.
_ENCODED_MAX: Final = 20_000


def handle(call: Call, request: MetadataRequest) -> Steps[bytes]:
    if call.version < _ID_SINCE and (yield from _has_ids(request)):
        return (yield from _refused(call, request))
    return (yield from _answer(call, request))


def _has_ids(request: MetadataRequest) -> Steps[bool]:
    for piece in pieces(request.topics or ()):
        if any(topic.name is None or topic.topic_id != ZERO_TOPIC_ID for topic in piece):
            return True
        yield
    return False


def _refused(call: Call, request: MetadataRequest) -> Steps[bytes]:
    """The whole request is refused, and its answer says nothing about the cluster."""
    topics = _EncodedTopics()
    for piece in pieces(request.topics or ()):
        topics.add(
            [
                encode_metadata_topic(call.version, ErrorCode.INVALID_REQUEST, topic.name or "", topic.topic_id, [])
                for topic in piece
            ]
        )
        yield
    return encode_metadata_response(
        call.version,
        [],
        None,
        NO_BROKER,
        topics.encoded,
        throttle_ms=call.throttle_ms(),
        correlation_id=call.correlation_id,
        topic_count=topics.count,
    )


class _EncodedTopics:
    """Encoded topics, a piece of them in each byte string: a million small ones would take their time to be joined."""

    __slots__ = ("count", "encoded")

    def __init__(self) -> None:
        self.count = 0
        self.encoded: list[bytes] = []

    def add(self, piece: Sequence[bytes]) -> None:
        self.count += len(piece)
        self.encoded.append(b"".join(piece))


def _answer(call: Call, request: MetadataRequest) -> Steps[bytes]:
    metadata = call.services.metadata
    wants_operations = bool(request.include_topic_authorized_operations)
    if request.topics is None or (call.version == 0 and not request.topics):
        topics = yield from _all(call, wants_operations=wants_operations)
    else:
        topics = yield from _some(call, request, wants_operations=wants_operations)
    operations = OPERATIONS_UNKNOWN
    if request.include_cluster_authorized_operations and call.allowed_on_cluster(Operation.DESCRIBE):
        operations = call.authorized_operations(Resource.CLUSTER, CLUSTER_NAME)
    unnamed = call.services.broker_id if (yield from _is_no_place(call, request)) else NO_BROKER
    brokers = [
        (broker.id, endpoint.host, endpoint.port, broker.rack)
        for broker in metadata.brokers.values()
        if broker.id != unnamed and (endpoint := broker.endpoint(call.listener)) is not None
    ]
    return encode_metadata_response(
        call.version,
        brokers,
        metadata.cluster_id,
        metadata.controller_id,
        topics.encoded,
        throttle_ms=call.throttle_ms(),
        operations=operations,
        correlation_id=call.correlation_id,
        topic_count=topics.count,
    )


def _is_no_place(call: Call, request: MetadataRequest) -> Steps[bool]:
    """Whether this broker is to leave itself out: it stands aside, and leads nothing of what is asked for.

    A client that is connected to it alone would ask it for the leaders again and again, and never another broker.
    """
    replicas, metadata = call.services.replicas, call.services.metadata
    if not replicas.aside:
        return False
    led = {tp.topic for tp in replicas.leaders}
    if request.topics is None or (call.version == 0 and not request.topics):
        return not led
    for piece in pieces(request.topics):
        if not led.isdisjoint(topic.name or metadata.topic_name(topic.topic_id) for topic in piece):
            return False
        yield
    return True


def _all(call: Call, *, wants_operations: bool) -> Steps[_EncodedTopics]:
    topics = _EncodedTopics()
    # As they are now: each is replaced and never changed.
    for piece in pieces(list(call.services.metadata.topics.values()), _TOPICS_AT_ONCE):
        topics.add(
            [
                _topic(call, topic, wants_operations=wants_operations)
                for topic in piece
                if call.allowed_on_topic(Operation.DESCRIBE, topic.name)
            ]
        )
        yield
    return topics


def _some(call: Call, request: MetadataRequest, *, wants_operations: bool) -> Steps[_EncodedTopics]:
    """Each once, however often it is asked for."""
    ids: dict[bytes, None] = {}
    names: dict[str | None, None] = {}
    for piece in pieces(request.topics or ()):
        ids.update((topic.topic_id, None) for topic in piece if topic.topic_id != ZERO_TOPIC_ID)
        if not ids:
            names.update((topic.name, None) for topic in piece)
        yield
    creates = bool(request.allow_auto_topic_creation and call.services.config.broker.auto_create_topics)
    topics = _EncodedTopics()
    # Where ids are asked for Kafka passes over those that come by their names alone.
    for some_ids in pieces(ids, _TOPICS_AT_ONCE):
        topics.add([_asked(call, None, each, creates=False, wants_operations=wants_operations) for each in some_ids])
        yield
    for some_names in pieces(() if ids else names, _TOPICS_AT_ONCE):
        topics.add(
            [
                _asked(call, name, ZERO_TOPIC_ID, creates=creates, wants_operations=wants_operations)
                for name in some_names
            ]
        )
        yield
    return topics


def _asked(call: Call, name: str | None, topic_id: bytes, *, creates: bool, wants_operations: bool) -> bytes:
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
    topic = metadata.topic(name)
    if topic is not None:
        return _topic(call, topic, wants_operations=wants_operations)
    # What the client may do is said of topics that do not exist yet, too.
    operations = call.authorized_operations(Resource.TOPIC, name) if wants_operations else OPERATIONS_UNKNOWN
    return _fault(call, _unknown(call, name, creates=creates), name, ZERO_TOPIC_ID, operations)


def _unknown(call: Call, name: str, *, creates: bool) -> ErrorCode:
    """What stands for a topic that does not exist yet; this may have it created."""
    if creates and not (call.allowed_on_cluster(Operation.CREATE) or call.allowed_on_topic(Operation.CREATE, name)):
        return ErrorCode.TOPIC_AUTHORIZATION_FAILED
    if topic_name_fault(name) is not None:
        return ErrorCode.INVALID_TOPIC_EXCEPTION
    if creates and name != CLUSTER_METADATA_TOPIC:
        call.services.topics_on_demand.ask(name)
    return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def _fault(
    call: Call, error: ErrorCode, name: str | None, topic_id: bytes, operations: int = OPERATIONS_UNKNOWN
) -> bytes:
    if name is None and call.version < 12:
        name = ""
    return encode_metadata_topic(
        call.version, error, name, topic_id, [], internal=name in INTERNAL_TOPICS, operations=operations
    )


def _partition(call: Call, state: PartitionState) -> Partition:
    error, leader = leader_shown(call, state)
    if error is ErrorCode.LISTENER_NOT_FOUND and call.version < _LISTENERS_SINCE:
        error = ErrorCode.LEADER_NOT_AVAILABLE
    replicas: Sequence[int] = state.replicas
    in_sync: Sequence[int] = state.isr
    if call.version < _ABSENT_SINCE:
        replicas, in_sync = _that_are_there(call, replicas), _that_are_there(call, in_sync)
        if error is ErrorCode.NONE and (len(replicas) < len(state.replicas) or len(in_sync) < len(state.isr)):
            error = ErrorCode.REPLICA_NOT_AVAILABLE
    return error, state.partition, leader, state.leader_epoch, replicas, in_sync, state.offline_replicas


def _that_are_there(call: Call, ids: Sequence[int]) -> list[int]:
    brokers, listener = call.services.metadata.brokers, call.listener
    return [each for each in ids if (known := brokers.get(BrokerId(each))) is not None and known.endpoint(listener)]


def _topic(call: Call, topic: TopicMetadata, *, wants_operations: bool) -> bytes:
    remembers = call.services.authorizer.allows_all
    kept = call.services.metadata.derived
    key = ("Metadata", call.version, topic.name, wants_operations, call.listener)
    encoded: bytes | None = kept.get(key) if remembers else None
    if encoded is not None:
        return encoded
    partitions = [_partition(call, partition) for partition in topic.partitions]
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
