"""LeaderAndIsr (4), versions 0 to 7: the controller's word on which partitions this broker leads and follows.

From another broker's controller, of Kafka 3.9 or of ours; the one in this process goes the same way from
`AnnouncedBroker` on. A request of a controller that was replaced, or for an earlier life of this broker, is refused
as a whole; else each partition has an answer of its own, from version 5 on under its topic's id. Left out: KRaft
controllers that move a cluster out of ZooKeeper, and what the type FULL means to those (strays are looked for when an
UpdateMetadata names everything); recovery states of leaders are no concern of ours, as in Kafka's ZooKeeper mode.
"""

from __future__ import annotations

from collections.abc import Awaitable, Mapping, Sequence
from typing import Final

from ottla.controller.announcing.announced import Refused
from ottla.controller.announcing.origin import Origin
from ottla.coordination.errors import CoordinationError
from ottla.handlers.calls.call import Call
from ottla.handlers.calls.from_brokers import broker_ids, from_broker, tree_is_away
from ottla.metadata import PartitionState
from ottla.model import ZERO_TOPIC_ID, BrokerId, Epoch, ErrorCode, TopicId, TopicPartition
from ottla.protocol.generated.leader_and_isr import (
    LeaderAndIsrPartitionError,
    LeaderAndIsrPartitionState,
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    LeaderAndIsrTopicError,
)
from ottla.steps import PIECE, Steps, pieces

_BY_TOPIC_SINCE: Final = 2
_IDS_SINCE: Final = 5
#: Each takes some microseconds.
_PARTITIONS_A_STEP: Final = 16


def handle(call: Call, request: LeaderAndIsrRequest) -> Steps[LeaderAndIsrResponse | Awaitable[LeaderAndIsrResponse]]:
    states = yield from _states(call, request)
    refusal = from_broker(call, is_kraft=request.is_kraft_controller)
    if refusal is not ErrorCode.NONE:
        return (yield from _answer(call, states, refusal))
    return _carry_out(call, request, states)


async def _carry_out(
    call: Call, request: LeaderAndIsrRequest, states: Sequence[PartitionState]
) -> LeaderAndIsrResponse:
    origin = Origin(BrokerId(request.controller_id), Epoch(request.controller_epoch), request.broker_epoch)
    refused: Refused
    try:
        refused = await call.services.announced.take_roles(origin, states)
    except CoordinationError as fault:
        refused = tree_is_away("LeaderAndIsr", fault)
    return await call.services.turns.to_end(_answer(call, states, refused), is_first=True)


def _states(call: Call, request: LeaderAndIsrRequest) -> Steps[list[PartitionState]]:
    states: list[PartitionState] = []
    if call.version < _BY_TOPIC_SINCE:
        for piece in pieces(request.ungrouped_partition_states, _PARTITIONS_A_STEP):
            states += [_state(each.topic_name, ZERO_TOPIC_ID, each) for each in piece]
            yield
        return states
    for place, topic in enumerate(request.topic_states):
        if place % PIECE == 0:
            yield  # also where they name no partition
        topic_id = TopicId(bytes(topic.topic_id))
        for piece in pieces(topic.partition_states, _PARTITIONS_A_STEP):
            states += [_state(topic.topic_name, topic_id, each) for each in piece]
            yield
    return states


def _state(topic: str, topic_id: TopicId, sent: LeaderAndIsrPartitionState) -> PartitionState:
    return PartitionState(
        topic,
        sent.partition_index,
        topic_id,
        Epoch(sent.controller_epoch),
        BrokerId(sent.leader),
        Epoch(sent.leader_epoch),
        broker_ids(sent.isr),
        broker_ids(sent.replicas),
        sent.partition_epoch,
        adding_replicas=broker_ids(sent.adding_replicas),
        removing_replicas=broker_ids(sent.removing_replicas),
        is_new=sent.is_new,
    )


def _answer(call: Call, states: Sequence[PartitionState], refused: Refused) -> Steps[LeaderAndIsrResponse]:
    whole = refused if isinstance(refused, ErrorCode) else ErrorCode.NONE
    errors: Mapping[TopicPartition, ErrorCode] = {} if isinstance(refused, ErrorCode) else refused
    response = LeaderAndIsrResponse(error_code=whole, partition_errors=[], topics=[])
    topics: dict[TopicId, LeaderAndIsrTopicError] = {}
    for piece in pieces(states):
        for state in piece:
            error = errors.get(TopicPartition(state.topic, state.partition), whole)
            found = LeaderAndIsrPartitionError(
                topic_name=state.topic, partition_index=state.partition, error_code=error
            )
            if call.version < _IDS_SINCE:
                response.partition_errors.append(found)
                continue
            topic = topics.get(state.topic_id)
            if topic is None:
                topic = topics[state.topic_id] = LeaderAndIsrTopicError(topic_id=state.topic_id, partition_errors=[])
            found.topic_name = ""
            topic.partition_errors.append(found)
        yield
    response.topics = list(topics.values())
    return response
