"""AlterPartition (56), versions 0 to 3: the leader of partitions asks the controller for changes of their ISRs.

Topics go by their ids from version 2 on, and members of an ISR with their registrations from version 3 on (KIP-903).
Each partition is answered with its state as it is then, changed or not.
"""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from typing import Final

from ottla.controller.interface import IsrChange, IsrResult
from ottla.handlers.calls.call import Call, OwnController
from ottla.handlers.calls.from_brokers import broker_ids, from_broker
from ottla.model import ZERO_TOPIC_ID, BrokerId, Epoch, ErrorCode, TopicId, TopicPartition
from ottla.protocol.generated.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    RequestPartitionData,
    RequestTopicData,
    ResponsePartitionData,
    ResponseTopicData,
)
from ottla.steps import Steps, pieces

_IDS_SINCE: Final = 2
_EPOCHS_SINCE: Final = 3
#: Errors that are the request's and not of single partitions.
_OF_ALL: Final = (ErrorCode.NOT_CONTROLLER, ErrorCode.STALE_BROKER_EPOCH)
#: Each takes some microseconds.
_PARTITIONS_A_STEP: Final = 16


def handle(
    call: Call, request: AlterPartitionRequest
) -> Steps[AlterPartitionResponse | Awaitable[AlterPartitionResponse]]:
    controller = call.services.own_controller
    if not controller.active:
        return AlterPartitionResponse(error_code=ErrorCode.NOT_CONTROLLER, topics=[])
    refusal = from_broker(call)
    if refusal is not ErrorCode.NONE:
        return AlterPartitionResponse(error_code=refusal, topics=[])
    changes: list[IsrChange] = []
    #: Of the topics, in their order; empty where there is none of that id.
    names: list[str] = []
    for topic in request.topics:
        topic_id, name = ZERO_TOPIC_ID, topic.topic_name
        if call.version >= _IDS_SINCE:
            # The controller's word: this broker itself may not have heard of the topic yet.
            topic_id = TopicId(bytes(topic.topic_id))
            name = controller.topic_name(topic_id) or ""
        names.append(name)
        for piece in pieces(topic.partitions if name else (), _PARTITIONS_A_STEP):
            changes += [_change(call.version, topic_id, name, sent) for sent in piece]
            yield
        yield
    return _carry_out(call, controller, request, names, changes)


def _change(version: int, topic_id: TopicId, topic: str, sent: RequestPartitionData) -> IsrChange:
    if version >= _EPOCHS_SINCE:
        isr = tuple(BrokerId(member.broker_id) for member in sent.new_isr_with_epochs)
        epochs = tuple(member.broker_epoch for member in sent.new_isr_with_epochs)
    else:
        isr, epochs = broker_ids(sent.new_isr), ()
    tp = TopicPartition(topic, sent.partition_index)
    return IsrChange(tp, Epoch(sent.leader_epoch), sent.partition_epoch, isr, epochs, topic_id)


async def _carry_out(
    call: Call,
    controller: OwnController,
    request: AlterPartitionRequest,
    names: Sequence[str],
    changes: Sequence[IsrChange],
) -> AlterPartitionResponse:
    results: list[IsrResult] = []
    if changes:
        results = await controller.alter_isr(BrokerId(request.broker_id), changes, broker_epoch=request.broker_epoch)
    for error in _OF_ALL:
        if results and all(result.error is error for result in results):
            return AlterPartitionResponse(error_code=error, topics=[])
    return await call.services.turns.to_end(_answer(call, request, names, results))


def _answer(
    call: Call, request: AlterPartitionRequest, names: Sequence[str], results: Sequence[IsrResult]
) -> Steps[AlterPartitionResponse]:
    found = {result.tp: result for result in results}
    response = AlterPartitionResponse(topics=[])
    unknown = ErrorCode.UNKNOWN_TOPIC_ID if call.version >= _IDS_SINCE else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    for topic, name in zip(request.topics, names, strict=True):
        answered = _topic(topic)
        for piece in pieces(topic.partitions, _PARTITIONS_A_STEP):
            for sent in piece:
                result = found.get(TopicPartition(name, sent.partition_index))
                answered.partitions.append(_partition(sent.partition_index, result, unknown))
            yield
        response.topics.append(answered)
        yield
    return response


def _topic(topic: RequestTopicData) -> ResponseTopicData:
    return ResponseTopicData(topic_name=topic.topic_name, topic_id=TopicId(bytes(topic.topic_id)), partitions=[])


def _partition(index: int, result: IsrResult | None, unknown: ErrorCode) -> ResponsePartitionData:
    if result is None:
        return ResponsePartitionData(partition_index=index, error_code=unknown)
    answered = ResponsePartitionData(partition_index=index, error_code=result.error)
    state = result.state
    if state is not None:
        answered.leader_id = state.leader
        answered.leader_epoch = state.leader_epoch
        answered.isr = list(state.isr)
        answered.partition_epoch = state.partition_epoch
    return answered
