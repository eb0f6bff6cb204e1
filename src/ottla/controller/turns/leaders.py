"""The controller's turns that move leaders: on demand, because a broker wants to stop, and to even their load out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ottla.controller.core import ControllerCore, log
from ottla.controller.deciding.context import TopicContext
from ottla.controller.deciding.elections import leave, prefer, take_anybody
from ottla.controller.interface import ElectionKind, PartitionResult, ShutdownAnswer
from ottla.controller.turns.answers import AnswerTurns
from ottla.coordination.errors import NoNode
from ottla.coordination.interface import Delete, Watch
from ottla.coordination.notifications import PREFERRED_REPLICA_ELECTION, decode_partitions
from ottla.coordination.znode_json import DamagedZnode
from ottla.model import BrokerId, ErrorCode, TopicPartition
from ottla.steps import Steps, pieces

_STRATEGIES: Final = {ElectionKind.PREFERRED: prefer, ElectionKind.UNCLEAN: take_anybody}
#: Of partitions that nobody has ever led.
_NOBODY: Final = {
    ElectionKind.PREFERRED: ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE,
    ElectionKind.UNCLEAN: ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE,
}
#: What people read, in Kafka's words.
_MESSAGES: Final = {
    ErrorCode.ELECTION_NOT_NEEDED: "Leader election not needed for topic partition.",
    ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE: "The preferred leader was not available.",
    ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE: "Eligible topic partition leaders are not available.",
    ErrorCode.UNKNOWN_SERVER_ERROR: "The election could not be written.",
}

_Partitions = list[tuple[TopicContext, list[int]]]


class LeaderTurns:
    def __init__(self, core: ControllerCore, answers: AnswerTurns) -> None:
        self._core = core
        self._answers = answers

    # On demand.

    async def elect(self, kind: ElectionKind, partitions: Sequence[TopicPartition] | None) -> list[PartitionResult]:
        """Of all partitions where none are named: then those that needed no election are not answered."""
        core = self._core
        unknown: dict[TopicPartition, PartitionResult] = {}
        if partitions is None:
            found = [(topic, list(topic.replicas)) for topic in core.context.served_topics()]
        else:
            found, unknown = await core.do(self._named(partitions))
        refused = await self._answers.elect(found, _STRATEGIES[kind])
        for topic, numbers in found:
            for number in numbers:
                if number not in topic.states:
                    refused[TopicPartition(topic.name, number)] = _NOBODY[kind]
        if partitions is not None:
            return await core.do(_in_their_order(partitions, unknown, refused))
        asked = (TopicPartition(topic.name, number) for topic, numbers in found for number in numbers)
        return [_result(tp, refused) for tp in asked if refused.get(tp) is not ErrorCode.ELECTION_NOT_NEEDED]

    def _named(
        self, partitions: Sequence[TopicPartition]
    ) -> Steps[tuple[_Partitions, dict[TopicPartition, PartitionResult]]]:
        context = self._core.context
        by_topic: dict[str, dict[int, None]] = {}
        unknown: dict[TopicPartition, PartitionResult] = {}
        for piece in pieces(partitions):
            for tp in piece:
                topic = context.topics.get(tp.topic)
                message = None
                if topic is None or tp.topic in context.deleting:
                    message = f"No such topic as {tp.topic}"
                elif tp.partition not in topic.replicas:
                    message = f"No such partition as {tp}"
                if message is None:
                    by_topic.setdefault(tp.topic, {})[tp.partition] = None
                else:
                    unknown[tp] = PartitionResult(tp, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, message)
            yield
        return [(context.topics[name], list(numbers)) for name, numbers in by_topic.items()], unknown

    # A broker that wants to stop.

    async def shut_down(self, broker_id: BrokerId, broker_epoch: int) -> ShutdownAnswer:
        core, context = self._core, self._core.context
        broker = context.brokers.get(broker_id)
        if broker is None:
            return ShutdownAnswer(ErrorCode.BROKER_NOT_AVAILABLE)
        if broker_epoch >= 0 and broker_epoch != broker.epoch:
            return ShutdownAnswer(ErrorCode.STALE_BROKER_EPOCH)
        if broker_id not in context.shutting_down:
            log.info("a broker wants to stop", broker=broker_id)
            context.shutting_down.add(broker_id)
        replicated = await core.do(self._replicated_on(broker_id))
        changed, _ = await core.elect(replicated, leave)
        await self._answers.announce(replicated, changed)
        remaining = tuple(
            TopicPartition(topic.name, number)
            for topic, numbers in replicated
            for number in numbers
            if number in topic.states and topic.states[number].state.leader == broker_id
        )
        log.info("others lead the partitions of a broker that wants to stop", broker=broker_id, left=len(remaining))
        return ShutdownAnswer(ErrorCode.NONE, remaining)

    def _replicated_on(self, broker: BrokerId) -> Steps[_Partitions]:
        """Of those that it is the only replica of nobody else could take anything over."""
        found: _Partitions = []
        for topic in self._core.context.served_topics():
            numbers: list[int] = []
            for piece in pieces(topic.replicas.items()):
                numbers += [number for number, held in piece if len(held) > 1 and broker in held]
                yield
            if numbers:
                found.append((topic, numbers))
        return found

    # Evening the load out.

    async def rebalance(self) -> None:
        """Gives brokers back what they are the preferred leader of, where they lead too little of it."""
        due = await self._core.do(self._imbalanced())
        if due:
            partitions = sum(len(numbers) for _, numbers in due)
            log.info("giving partitions back to their preferred leaders", partitions=partitions)
            await self._answers.elect(due, prefer)

    def _imbalanced(self) -> Steps[_Partitions]:
        context = self._core.context
        all_of: dict[BrokerId, int] = {}
        elsewhere: dict[BrokerId, list[tuple[TopicContext, int]]] = {}
        for topic in context.served_topics():
            for piece in pieces(topic.replicas.items()):
                for number, replicas in piece:
                    known = topic.states.get(number)
                    if known is None or not replicas:
                        continue
                    all_of[replicas[0]] = all_of.get(replicas[0], 0) + 1
                    if known.state.leader != replicas[0]:
                        elsewhere.setdefault(replicas[0], []).append((topic, number))
                yield
        due: dict[str, tuple[TopicContext, list[int]]] = {}
        for broker, partitions in elsewhere.items():
            if len(partitions) / all_of[broker] * 100 <= self._core.settings.leader_imbalance_percentage:
                continue
            for topic, number in partitions:
                isr = topic.states[number].state.isr
                moves = number in topic.adding or number in topic.removing
                if not moves and broker in isr and context.is_live(topic.name, number, broker):
                    due.setdefault(topic.name, (topic, []))[1].append(number)
            yield
        return list(due.values())

    # What an older tool asks for.

    async def found(self, watch: Watch) -> None:
        """Does what `/admin/preferred_replica_election` asks for, and takes the node away."""
        core = self._core
        try:
            data, stat = await core.coordination.get(PREFERRED_REPLICA_ELECTION, watch)
        except NoNode:
            if await core.coordination.exists(PREFERRED_REPLICA_ELECTION, watch) is not None:
                await self.found(watch)
            return
        try:
            wanted = decode_partitions(PREFERRED_REPLICA_ELECTION, data)
        except DamagedZnode as damaged:
            log.error("a request for preferred leaders is left alone", fault=str(damaged))
            return
        for result in await self.elect(ElectionKind.PREFERRED, wanted):
            if result.error not in (ErrorCode.NONE, ErrorCode.ELECTION_NOT_NEEDED):
                log.warning("a preferred leader was not elected", partition=str(result.tp), fault=result.message)
        await core.writes.write([[Delete(PREFERRED_REPLICA_ELECTION, stat.version)]])


def _in_their_order(
    partitions: Sequence[TopicPartition],
    unknown: dict[TopicPartition, PartitionResult],
    refused: dict[TopicPartition, ErrorCode],
) -> Steps[list[PartitionResult]]:
    """One result each, however often it is named."""
    found: dict[TopicPartition, PartitionResult] = {}
    for piece in pieces(partitions):
        for tp in piece:
            if tp not in found:
                found[tp] = unknown.get(tp) or _result(tp, refused)
        yield
    return list(found.values())


def _result(tp: TopicPartition, refused: dict[TopicPartition, ErrorCode]) -> PartitionResult:
    error = refused.get(tp, ErrorCode.NONE)
    return PartitionResult(tp, error, _MESSAGES.get(error))
