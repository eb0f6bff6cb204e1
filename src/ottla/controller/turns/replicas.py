"""The controller's turns that brokers ask for: changes of the ISR, failed replicas, blocks of producer ids."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final, NamedTuple

from ottla.controller.core import ControllerCore, log
from ottla.controller.deciding.context import TopicContext, VersionedState
from ottla.controller.interface import PRODUCER_ID_BLOCK_SIZE, IsrChange, IsrResult, ProducerIdRange
from ottla.controller.turns.answers import AnswerTurns
from ottla.controller.turns.reassigning import ReassignmentTurns
from ottla.coordination.errors import BadVersion
from ottla.coordination.interface import SetData
from ottla.coordination.znodes import (
    PRODUCER_ID_BLOCK,
    ProducerIdBlock,
    decode_producer_ids,
    encode_producer_ids,
    encode_state,
    state_path,
)
from ottla.metadata.updates import PartitionState
from ottla.model import ZERO_TOPIC_ID, BrokerId, ErrorCode, TopicPartition
from ottla.steps import pieces

_PRODUCER_ID_MAX: Final = 2**63 - 1


class _IsrPlan(NamedTuple):
    #: Of the change among those that were asked for.
    place: int
    topic: TopicContext
    #: With the version of the state before.
    after: VersionedState


class ReplicaTurns:
    def __init__(self, core: ControllerCore, answers: AnswerTurns, reassignments: ReassignmentTurns) -> None:
        self._core = core
        self._answers = answers
        self._reassignments = reassignments

    async def alter_isr(self, broker_id: BrokerId, broker_epoch: int, changes: Sequence[IsrChange]) -> list[IsrResult]:
        core, context = self._core, self._core.context
        broker = context.brokers.get(broker_id)
        if broker is None or 0 <= broker_epoch != broker.epoch:
            return [IsrResult(change.tp, ErrorCode.STALE_BROKER_EPOCH) for change in changes]
        errors: list[ErrorCode] = []
        plans: list[_IsrPlan] = []
        for piece in pieces(changes):
            for change in piece:
                planned = self._planned(broker_id, len(errors), change)
                errors.append(planned if isinstance(planned, ErrorCode) else ErrorCode.NONE)
                if isinstance(planned, _IsrPlan):
                    plans.append(planned)
            await asyncio.sleep(0)
        written = await self._write(plans, changes, errors)
        if written:
            core.show_states([context.partition_state(topic, number) for topic, number in written])
            led_anew = await self._reassignments.go_on([(topic, [number]) for topic, number in written])
            for index, change in enumerate(changes):
                if errors[index] is ErrorCode.NONE and change.tp in led_anew:
                    errors[index] = ErrorCode.NEW_LEADER_ELECTED
        answers = zip(changes, errors, strict=True)
        return [IsrResult(change.tp, error, self._state_of(change)) for change, error in answers]

    def _state_of(self, change: IsrChange) -> PartitionState | None:
        context = self._core.context
        known = context.topics.get(change.tp.topic)
        if known is None or change.tp.partition not in known.states:
            return None
        return context.partition_state(known, change.tp.partition)

    async def _write(
        self, plans: Sequence[_IsrPlan], changes: Sequence[IsrChange], errors: list[ErrorCode]
    ) -> list[tuple[TopicContext, int]]:
        """Returns the partitions that changed. Where somebody else has written the state, that one is read."""
        core = self._core
        groups = []
        for plan in plans:
            tp = changes[plan.place].tp
            groups.append([SetData(state_path(*tp), encode_state(plan.after.state), plan.after.version)])
        written: list[tuple[TopicContext, int]] = []
        late: list[TopicPartition] = []
        for plan, fault in zip(plans, await core.writes.write(groups), strict=True):
            tp = changes[plan.place].tp
            if fault is None:
                plan.topic.states[tp.partition] = VersionedState(plan.after.state, plan.after.version + 1)
                written.append((plan.topic, tp.partition))
                continue
            errors[plan.place] = ErrorCode.INVALID_UPDATE_VERSION
            if isinstance(fault, BadVersion):
                late.append(tp)
            else:
                core.stale = True
        if late:
            await core.read_again(late)
            concerned = [(core.context.topics[tp.topic], [tp.partition]) for tp in late]
            await self._answers.announce(concerned, concerned)
        return written

    def _planned(self, broker_id: BrokerId, place: int, change: IsrChange) -> _IsrPlan | ErrorCode:
        """An ErrorCode: nothing is written; NONE where it is so already."""
        context = self._core.context
        topic = context.topics.get(change.tp.topic)
        known = topic.states.get(change.tp.partition) if topic and topic.name not in context.deleting else None
        if topic is None or known is None:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if change.topic_id != topic.id and ZERO_TOPIC_ID not in {change.topic_id, topic.id}:
            return ErrorCode.UNKNOWN_TOPIC_ID
        state = known.state
        if change.leader_epoch > state.leader_epoch or change.partition_epoch > known.version:
            # A broker that knows more than the controller has heard from a newer controller.
            return ErrorCode.NOT_CONTROLLER
        if change.leader_epoch < state.leader_epoch:
            return ErrorCode.FENCED_LEADER_EPOCH
        if broker_id != state.leader:
            return ErrorCode.INVALID_REQUEST
        isr = set(change.isr)
        if isr == set(state.isr) and len(isr) == len(change.isr) and change.partition_epoch != known.version:
            # Asked for again, by a leader that did not hear the answer.
            return ErrorCode.NONE
        if change.partition_epoch < known.version:
            return ErrorCode.INVALID_UPDATE_VERSION
        replicas = topic.replicas[change.tp.partition]
        if broker_id not in isr or not isr <= set(replicas) or len(isr) < len(change.isr):
            return ErrorCode.INVALID_REQUEST
        epochs = change.isr_epochs
        if epochs and len(epochs) != len(change.isr):
            return ErrorCode.INVALID_REQUEST
        if any(
            not self._is_eligible(change, member, epochs[at] if epochs else -1, state.isr)
            for at, member in enumerate(change.isr)
        ):
            return ErrorCode.INELIGIBLE_REPLICA
        after = state._replace(isr=change.isr, controller_epoch=context.controller_epoch)
        return _IsrPlan(place, topic, VersionedState(after, known.version))

    def _is_eligible(self, change: IsrChange, member: BrokerId, epoch: int, before: Sequence[BrokerId]) -> bool:
        """Whether it may be in sync; one that is about to stop may stay and not join."""
        context = self._core.context
        if not context.is_served(*change.tp, member):
            return False
        if epoch >= 0 and epoch != context.brokers[member].epoch:
            return False
        return member not in context.shutting_down or member in before

    async def replicas_failed(self, broker_id: BrokerId, partitions: Sequence[TopicPartition]) -> None:
        topics, deleting = self._core.context.topics, self._core.context.deleting
        known = [
            tp
            for tp in partitions
            if tp.topic in topics
            and tp.topic not in deleting
            and broker_id in topics[tp.topic].replicas.get(tp.partition, ())
        ]
        await self._answers.replicas_failed(broker_id, known)

    async def replicas_recovered(self, broker_id: BrokerId, partitions: Sequence[TopicPartition]) -> None:
        await self._answers.replicas_back(broker_id, partitions)

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
