"""UpdateMetadata (6), versions 0 to 8: the controller's word on the cluster: brokers, topics, and who leads what.

Live brokers are all named in each request; of topics only those that have changed. A partition whose leader is -2 is
being deleted, and its topic with it: partitions are not deleted singly. A request of the type FULL names all topics
(one of ours without the partitions that requests before it brought), so that what it does not name is gone. Controllers
of Kafka do not say a type: the first request of such a one brings everything that it knows. Settings are not in it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from typing import Final, NamedTuple

from ottla.controller.announcing.origin import Origin
from ottla.controller.announcing.requests import LEADER_DURING_DELETE, SECURITY_PROTOCOLS, RequestType
from ottla.coordination.errors import CoordinationError
from ottla.handlers.calls.call import Call
from ottla.handlers.calls.from_brokers import BROKERS_MAX, broker_ids, from_broker, tree_is_away
from ottla.metadata import BrokerEndpoints, Endpoint, MetadataUpdate, PartitionState
from ottla.model import ZERO_TOPIC_ID, BrokerId, Epoch, ErrorCode, TopicId, topic_name_fault
from ottla.protocol.generated.update_metadata import (
    UpdateMetadataBroker,
    UpdateMetadataPartitionState,
    UpdateMetadataRequest,
    UpdateMetadataResponse,
)
from ottla.steps import Steps, pieces

_ENDPOINTS_SINCE: Final = 1
_LISTENERS_SINCE: Final = 3
_BY_TOPIC_SINCE: Final = 5
#: Each takes some microseconds.
_PARTITIONS_A_STEP: Final = 16
#: What UpdateMetadata does not say of a live broker.
_UNKNOWN_EPOCH: Final = -1
#: Listeners of one broker.
_ENDPOINTS_MAX: Final = 100
_PROTOCOL_NAMES: Final = {number: name for name, number in SECURITY_PROTOCOLS.items()}


class _Said(NamedTuple):
    """What a request says of topics."""

    states: list[PartitionState]
    deleted: dict[str, None]
    #: All that are named.
    topics: dict[str, None]


def handle(
    call: Call, request: UpdateMetadataRequest
) -> Steps[UpdateMetadataResponse | Awaitable[UpdateMetadataResponse]]:
    refusal = from_broker(call, is_kraft=request.is_kraft_controller)
    if refusal is ErrorCode.NONE and len(request.live_brokers) > BROKERS_MAX:
        refusal = ErrorCode.INVALID_REQUEST
    if refusal is not ErrorCode.NONE:
        return UpdateMetadataResponse(error_code=refusal)
    said = yield from _said(call, request)
    brokers: list[BrokerEndpoints] = []
    for piece in pieces(request.live_brokers, _PARTITIONS_A_STEP):
        if any(len(broker.endpoints) > _ENDPOINTS_MAX for broker in piece):
            return UpdateMetadataResponse(error_code=ErrorCode.INVALID_REQUEST)
        brokers += [_broker(call.version, broker) for broker in piece]
        yield
    return _carry_out(call, request, said, brokers)


async def _carry_out(
    call: Call, request: UpdateMetadataRequest, said: _Said, brokers: Sequence[BrokerEndpoints]
) -> UpdateMetadataResponse:
    origin = Origin(BrokerId(request.controller_id), Epoch(request.controller_epoch), request.broker_epoch)
    update = MetadataUpdate(
        controller_epoch=origin.controller_epoch,
        controller_id=origin.controller_id,
        brokers=brokers,
        partitions=said.states,
        topics_deleted=list(said.deleted),
    )
    try:
        error = await call.services.announced.take_metadata(
            origin,
            update,
            all_topics=said.topics if request.type == RequestType.FULL else None,
            informs=request.type == RequestType.UNKNOWN,
        )
    except CoordinationError as fault:
        error = tree_is_away("UpdateMetadata", fault)
    return UpdateMetadataResponse(error_code=error)


def _said(call: Call, request: UpdateMetadataRequest) -> Steps[_Said]:
    said = _Said([], {}, {})
    if call.version < _BY_TOPIC_SINCE:
        for piece in pieces(request.ungrouped_partition_states, _PARTITIONS_A_STEP):
            for each in piece:
                _take(call, said, each.topic_name, ZERO_TOPIC_ID, (each,))
            yield
        return said
    for topic in request.topic_states:
        topic_id = TopicId(bytes(topic.topic_id))
        said.topics[topic.topic_name] = None
        for piece in pieces(topic.partition_states, _PARTITIONS_A_STEP):
            _take(call, said, topic.topic_name, topic_id, piece)
            yield
        yield
    return said


def _take(
    call: Call, said: _Said, topic: str, topic_id: TopicId, partitions: Sequence[UpdateMetadataPartitionState]
) -> None:
    said.topics[topic] = None
    if topic_name_fault(topic) is not None:
        return
    known = call.services.metadata.topic(topic)
    for each in partitions:
        if each.leader != LEADER_DURING_DELETE:
            said.states.append(_state(topic, topic_id, each))
        elif known is None or ZERO_TOPIC_ID in (topic_id, known.id) or known.id == topic_id:
            # Else it was made anew since, and the deletion of the former one comes late.
            said.deleted[topic] = None


def _state(topic: str, topic_id: TopicId, sent: UpdateMetadataPartitionState) -> PartitionState:
    return PartitionState(
        topic,
        sent.partition_index,
        topic_id,
        Epoch(sent.controller_epoch),
        BrokerId(sent.leader),
        Epoch(sent.leader_epoch),
        broker_ids(sent.isr),
        broker_ids(sent.replicas),
        sent.zk_version,
        broker_ids(sent.offline_replicas),
    )


def _broker(version: int, sent: UpdateMetadataBroker) -> BrokerEndpoints:
    if version < _ENDPOINTS_SINCE:
        endpoints: tuple[Endpoint, ...] = (Endpoint("PLAINTEXT", "PLAINTEXT", sent.v0_host, sent.v0_port),)
    else:
        endpoints = tuple(
            Endpoint(
                # A listener is named after its protocol where it has no name of its own.
                each.listener if version >= _LISTENERS_SINCE else _protocol(each.security_protocol),
                _protocol(each.security_protocol),
                each.host,
                each.port,
            )
            for each in sent.endpoints
        )
    return BrokerEndpoints(BrokerId(sent.id), endpoints, sent.rack or None, _UNKNOWN_EPOCH)


def _protocol(number: int) -> str:
    return _PROTOCOL_NAMES.get(number, "PLAINTEXT")
