"""The controller's turns that brokers ask for: changes of the ISR, failed replicas, blocks of producer ids."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ottla.controller.core import ControllerCore, log
from ottla.controller.deciding.context import TopicContext, VersionedState
from ottla.controller.interface import PRODUCER_ID_BLOCK_SIZE, IsrChange, IsrResult, ProducerIdRange
from ottla.controller.turns.answers import AnswerTurns
from ottla.coordination.interface import SetData
from ottla.coordination.znodes import (
    PRODUCER_ID_BLOCK,
    LeaderAndIsr,
    ProducerIdBlock,
    decode_producer_ids,
    encode_producer_ids,
    encode_state,
    state_path,
)
from ottla.model import BrokerId, ErrorCode, TopicPartition

_PRODUCER_ID_MAX: Final = 2**63 - 1


class ReplicaTurns:
    def __init__(self, core: ControllerCore, answers: AnswerTurns) -> None:
        self._core = core
        self._answers = answers

    async def alter_isr(self, broker_id: BrokerId, changes: Sequence[IsrChange]) -> list[IsrResult]:
        core, context = self._core, self._core.context
        errors = [self._isr_error(broker_id, change) for change in changes]
        good = [change for change, error in zip(changes, errors, strict=True) if error is ErrorCode.NONE]
        planned: list[tuple[TopicContext, IsrChange, LeaderAndIsr]] = []
        for change in good:
            topic = context.topics[change.tp.topic]
            state = topic.states[change.tp.partition].state
            planned.append((topic, change, state._replace(isr=change.isr, controller_epoch=context.controller_epoch)))
        groups = [
            [SetData(state_path(*change.tp), encode_state(state), change.partition_epoch)]
            for _, change, state in planned
        ]
        written: set[TopicPartition] = set()
        for (topic, change, state), fault in zip(planned, await core.writes.write(groups), strict=True):
            if fault is None:
                topic.states[change.tp.partition] = VersionedState(state, change.partition_epoch + 1)
                written.add(change.tp)
            else:
                core.stale = True
        if written:
            states = [context.partition_state(context.topics[tp.topic], tp.partition) for tp in sorted(written)]
            core.show_states(states)
        results: list[IsrResult] = []
        for change, error in zip(changes, errors, strict=True):
            found = error
            if error is ErrorCode.NONE and change.tp not in written:
                found = ErrorCode.INVALID_UPDATE_VERSION
            known = context.topics.get(change.tp.topic)
            state_now = None
            if known is not None and change.tp.partition in known.states:
                state_now = context.partition_state(known, change.tp.partition)
            results.append(IsrResult(change.tp, found, state_now))
        return results

    def _isr_error(self, broker_id: BrokerId, change: IsrChange) -> ErrorCode:
        context = self._core.context
        topic = context.topics.get(change.tp.topic)
        known = topic.states.get(change.tp.partition) if topic and topic.name not in context.deleting else None
        if topic is None or known is None:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if broker_id not in context.brokers:
            return ErrorCode.STALE_BROKER_EPOCH
        if change.leader_epoch > known.state.leader_epoch or change.partition_epoch > known.version:
            # A broker that knows more than the controller has heard from a newer controller.
            return ErrorCode.NOT_CONTROLLER
        if change.leader_epoch < known.state.leader_epoch:
            return ErrorCode.FENCED_LEADER_EPOCH
        if broker_id != known.state.leader:
            return ErrorCode.INVALID_REQUEST
        if change.partition_epoch < known.version:
            return ErrorCode.INVALID_UPDATE_VERSION
        replicas = topic.replicas[change.tp.partition]
        if (
            broker_id not in change.isr
            or not set(change.isr) <= set(replicas)
            or len(set(change.isr)) < len(change.isr)
        ):
            return ErrorCode.INVALID_REQUEST
        if not all(context.is_live(topic.name, change.tp.partition, broker) for broker in change.isr):
            return ErrorCode.INELIGIBLE_REPLICA
        return ErrorCode.NONE

    async def replicas_failed(self, broker_id: BrokerId, partitions: Sequence[TopicPartition]) -> None:
        topics = self._core.context.topics
        known = [
            tp
            for tp in partitions
            if tp.topic in topics and broker_id in topics[tp.topic].replicas.get(tp.partition, ())
        ]
        await self._answers.replicas_failed(broker_id, known)

    async def replicas_recovered(self, broker_id: BrokerId, partitions: Sequence[TopicPartition]) -> None:
        core, context = self._core, self._core.context
        known = [
            (context.topics[tp.topic], [tp.partition])
            for tp in partitions
            if (tp.topic, tp.partition, broker_id) in context.failed_replicas
            and tp.topic in context.topics
            and tp.topic not in context.deleting
        ]
        context.failed_replicas.difference_update(
            (topic.name, partition, broker_id) for topic, numbers in known for partition in numbers
        )
        await self._answers.elect(known)
        # Where others lead, the replica follows again.
        await core.lead(known)
        if known:
            first = TopicPartition(known[0][0].name, known[0][1][0])
            log.info("replicas are there after all", count=len(known), first=str(first))

    async def allocate_producer_ids(self, broker_id: BrokerId) -> ProducerIdRange:
        core = self._core
        data, stat = await core.coordination.get(PRODUCER_ID_BLOCK)
        first = decode_producer_ids(PRODUCER_ID_BLOCK, data).last + 1 if data else 0
        last = first + PRODUCER_ID_BLOCK_SIZE - 1
        if last > _PRODUCER_ID_MAX:
            log.error("producer ids are exhausted", block_end=first - 1)
            return ProducerIdRange(0, 0, ErrorCode.UNKNOWN_SERVER_ERROR, "Producer ids are exhausted.")
        block = encode_producer_ids(ProducerIdBlock(broker_id, first, last))
        (fault,) = await core.writes.write([[SetData(PRODUCER_ID_BLOCK, block, stat.version)]])
        if fault is not None:
            return ProducerIdRange(0, 0, ErrorCode.UNKNOWN_SERVER_ERROR, str(fault))
        return ProducerIdRange(first, PRODUCER_ID_BLOCK_SIZE)
