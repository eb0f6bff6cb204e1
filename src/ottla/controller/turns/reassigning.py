"""The controller's turns that move partitions to other brokers.

All of it stands in the topics' assignments, so that whoever is the controller goes on with it. What an older tool asks
for stands under `/admin/reassign_partitions`, from where each partition is taken when it has moved.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Final, NamedTuple

from ottla.controller.core import ControllerCore, log
from ottla.controller.deciding.context import TopicContext, VersionedState
from ottla.controller.deciding.elections import allows_unclean
from ottla.controller.deciding.orders import NO_STOP_EPOCH, ReplicaStop, StopOrder
from ottla.controller.deciding.reassigning import (
    PartitionAssignment,
    assignment_of,
    check_target,
    known_topic,
    take,
    with_assignments,
)
from ottla.controller.deciding.refusal import Refusal
from ottla.controller.electing.partitions import led_by, moved
from ottla.controller.interface import OngoingReassignment, PartitionResult, Reassignment
from ottla.controller.loading import leave_alone, load_assignments
from ottla.controller.turns.answers import AnswerTurns
from ottla.controller.turns.creating import CreationTurns
from ottla.coordination.errors import BadVersion, NoNode
from ottla.coordination.interface import Delete, Op, SetData, Watch
from ottla.coordination.notifications import REASSIGN_PARTITIONS, decode_reassignments, encode_reassignments
from ottla.coordination.znode_json import DamagedZnode
from ottla.coordination.znodes import LeaderAndIsr, encode_state, encoding_topic, state_path, topic_path
from ottla.model import NO_BROKER, ZERO_TOPIC_ID, BrokerId, ErrorCode, TopicPartition
from ottla.steps import Steps, pieces

#: How often a move is decided anew on what somebody else wrote meanwhile.
_TRIES_MAX: Final = 5
#: Of one topic in one write: with their states they fit one multi.
_PARTITIONS_AT_ONCE: Final = 1_000

#: Each takes some microseconds.
_CHANGES_A_STEP: Final = 16

_Partitions = Iterable[tuple[TopicContext, Iterable[int]]]


class _Step(NamedTuple):
    """What becomes of one partition now."""

    assignment: PartitionAssignment
    #: None: it was never led.
    state: LeaderAndIsr | None


class ReassignmentTurns:
    def __init__(self, core: ControllerCore, creations: CreationTurns, answers: AnswerTurns) -> None:
        self._core = core
        self._creations = creations
        self._answers = answers
        #: What an older tool has asked for, and has not moved yet.
        self._asked: dict[TopicPartition, tuple[BrokerId, ...]] = {}

    # What is asked for.

    async def alter(self, changes: Sequence[Reassignment]) -> list[PartitionResult]:
        by_topic, refused = await self._core.do(self._sorted_out(changes))
        for name, wanted in by_topic.items():
            numbers = list(wanted)
            for start in range(0, len(numbers), _PARTITIONS_AT_ONCE):
                some = {number: wanted[number] for number in numbers[start : start + _PARTITIONS_AT_ONCE]}
                refused |= await self._begin(name, some)
        await self.tidy()
        return await self._core.do(_results(changes, refused))

    def _sorted_out(
        self, changes: Sequence[Reassignment]
    ) -> Steps[tuple[dict[str, dict[int, Reassignment]], dict[TopicPartition, Refusal]]]:
        """Of two that name one partition the later one is done."""
        by_topic: dict[str, dict[int, Reassignment]] = {}
        refused: dict[TopicPartition, Refusal] = {}
        for piece in pieces(changes, _CHANGES_A_STEP):
            for change in piece:
                try:
                    self._check(change)
                except Refusal as refusal:
                    refused[change.tp] = refusal
                else:
                    by_topic.setdefault(change.tp.topic, {})[change.tp.partition] = change
            yield
        return by_topic, refused

    def ongoing(self, partitions: Sequence[TopicPartition] | None = None) -> list[tuple[TopicContext, list[int]]]:
        """Those under way, of all or of these."""
        wanted = None if partitions is None else set(partitions)
        found: list[tuple[TopicContext, list[int]]] = []
        for topic in self._core.context.served_topics():
            numbers = sorted(topic.adding.keys() | topic.removing.keys())
            if wanted is not None:
                numbers = [number for number in numbers if (topic.name, number) in wanted]
            if numbers:
                found.append((topic, numbers))
        return found

    def described(self, partitions: Sequence[TopicPartition] | None) -> list[OngoingReassignment]:
        return [
            OngoingReassignment(TopicPartition(topic.name, number), *assignment_of(topic, number))
            for topic, numbers in self.ongoing(partitions)
            for number in numbers
        ]

    def _check(self, change: Reassignment) -> None:
        """Raises Refusal."""
        context = self._core.context
        topic = known_topic(context, *change.tp)
        current = assignment_of(topic, change.tp.partition)
        if change.replicas is None:
            if not current.moves:
                message = "No partition reassignment is in progress."
                raise Refusal(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, message)
            return
        check_target(context, current, change.replicas, keeps_factor=change.keeps_factor)

    async def _begin(self, name: str, wanted: Mapping[int, Reassignment]) -> dict[TopicPartition, Refusal]:
        """Sends partitions of one topic on their way, or back."""
        refused: dict[TopicPartition, Refusal] = {}

        def steps(topic: TopicContext) -> Steps[dict[int, _Step]]:
            refused.clear()
            found: dict[int, _Step] = {}
            for number, change in wanted.items():
                try:
                    self._check(change)
                    step = self._first_step(topic, number, change)
                except Refusal as refusal:
                    refused[change.tp] = refusal
                else:
                    if step is not None:
                        found[number] = step
                yield
            return found

        topic = self._core.context.topics[name]
        done = await self._carry_out(topic, steps)
        if done is None:
            fault = Refusal(ErrorCode.UNKNOWN_SERVER_ERROR, "The topic changes all the time: nothing was changed.")
            return {change.tp: fault for change in wanted.values()}
        if done:
            log.info("reassigning partitions", topic=name, partitions=len(done), first=done[0])
        await self.go_on([(topic, [number for number in wanted if number in topic.replicas])])
        return refused

    def _first_step(self, topic: TopicContext, number: int, change: Reassignment) -> _Step | None:
        """None: it is under way there already. Raises Refusal."""
        context, current = self._core.context, assignment_of(topic, number)
        after = PartitionAssignment(current.origin) if change.replicas is None else current.to(change.replicas)
        if after == current:
            return None
        known = topic.states.get(number)
        if known is None:
            return _Step(after, None)
        live = context.live_replicas(topic.name, number, {*after.replicas, *known.state.isr})
        state = moved(known.state, after.replicas, live, context.controller_epoch)
        if state is None:
            isr = tuple(broker for broker in known.state.isr if broker in after.replicas)
            if not isr and not self._allows_unclean(topic):
                message = (
                    f"Unable to revert partition assignment for {topic.name}:{number} because it would require an "
                    f"unclean leader election."
                )
                raise Refusal(ErrorCode.INVALID_REPLICA_ASSIGNMENT, message)
            eligible = [broker for broker in after.replicas if broker in live]
            if isr:
                # Nobody that is left can lead it now.
                state = led_by(known.state, NO_BROKER, isr, context.controller_epoch)
            elif eligible:
                state = led_by(known.state, eligible[0], (eligible[0],), context.controller_epoch)
            else:
                message = "None of the replicas that it would go back to is there."
                raise Refusal(ErrorCode.INVALID_REPLICA_ASSIGNMENT, message)
        return _Step(after, state)

    def _allows_unclean(self, topic: TopicContext) -> bool:
        settings = self._core.settings
        default = settings.unclean_leader_election
        return allows_unclean(self._core.context, topic, settings.broker_id, static_default=default)

    # What goes on by itself.

    async def go_on(self, partitions: _Partitions) -> set[TopicPartition]:
        """Ends the moves of those whose whole target is in sync. Returns partitions that another broker leads now."""
        core = self._core
        led_anew: set[TopicPartition] = set()
        for topic, numbers in partitions:
            if topic.name in core.context.deleting or not (topic.adding or topic.removing):
                continue
            moving = [number for number in numbers if number in topic.adding or number in topic.removing]
            for start in range(0, len(moving), _PARTITIONS_AT_ONCE):
                some = moving[start : start + _PARTITIONS_AT_ONCE]
                before = {number: topic.states[number].state.leader for number in some if number in topic.states}
                done = await self._carry_out(topic, lambda topic, some=some: self._last_steps(topic, some))  # type: ignore[misc]
                if done:
                    log.info("partitions have moved", topic=topic.name, partitions=len(done), first=done[0])
                    tps = [TopicPartition(topic.name, number) for number in done]
                    led_anew.update(tp for tp in tps if topic.states[tp.partition].state.leader != before[tp.partition])
                    await self._forget(tps)
        return led_anew

    def _last_steps(self, topic: TopicContext, numbers: Sequence[int]) -> Steps[dict[int, _Step]]:
        context = self._core.context
        found: dict[int, _Step] = {}
        for number in numbers:
            current = assignment_of(topic, number) if number in topic.replicas else None
            known = topic.states.get(number)
            if current is None or known is None or not current.moves or not current.target:
                continue
            if set(current.target) <= set(known.state.isr):
                live = context.live_replicas(topic.name, number, current.target)
                state = moved(known.state, current.target, live, context.controller_epoch)
                if state is not None:
                    found[number] = _Step(PartitionAssignment(current.target), state)
            yield
        return found

    async def _carry_out(
        self, topic: TopicContext, steps: Callable[[TopicContext], Steps[dict[int, _Step]]]
    ) -> list[int] | None:
        """Writes assignment and states together, and announces them. None: somebody else writes there all the time."""
        core = self._core
        for _ in range(_TRIES_MAX):
            due = await core.do(steps(topic))
            if not due:
                return []
            after = with_assignments(topic, {number: step.assignment for number, step in due.items()})
            ops: list[Op] = [SetData(topic_path(topic.name), await core.do(encoding_topic(after)), topic.version)]
            for number, step in due.items():
                if step.state is not None:
                    path = state_path(topic.name, number)
                    ops.append(SetData(path, encode_state(step.state), topic.states[number].version))
            (fault,) = await core.writes.write([ops])
            if fault is None:
                stops = self._stops(topic, due)
                self._forget_failed(topic, due)
                take(topic, after)
                for number, step in due.items():
                    if step.state is not None:
                        topic.states[number] = VersionedState(step.state, topic.states[number].version + 1)
                concerned = [(topic, list(due))]
                await self._answers.announce(concerned, concerned)
                core.announcer.announce(stops)
                return list(due)
            if not isinstance(fault, BadVersion) or not await self._read_again(topic):
                core.stale = True
                return None
        core.stale = True
        return None

    def _stops(self, topic: TopicContext, due: Mapping[int, _Step]) -> list[StopOrder]:
        """Brokers that have had a replica and have none any more delete it: that of this state or an earlier one, since
        the partition may be back there before the stop is."""
        by_broker: dict[BrokerId, list[ReplicaStop]] = {}
        for number, step in due.items():
            epoch = NO_STOP_EPOCH if step.state is None else step.state.leader_epoch
            stop = ReplicaStop(TopicPartition(topic.name, number), epoch, delete=True)
            for broker in topic.replicas[number]:
                if broker not in step.assignment.replicas and broker in self._core.context.brokers:
                    by_broker.setdefault(broker, []).append(stop)
        return [StopOrder(broker, found) for broker, found in sorted(by_broker.items())]

    def _forget_failed(self, topic: TopicContext, due: Mapping[int, _Step]) -> None:
        """Replicas that had failed, and are none any more: where one comes there again it is a new one."""
        context = self._core.context
        context.failed_replicas.difference_update(
            (topic.name, number, broker)
            for number, step in due.items()
            for broker in topic.replicas[number]
            if broker not in step.assignment.replicas
        )

    async def _read_again(self, topic: TopicContext) -> bool:
        """Takes over what somebody else wrote into one topic."""
        core = self._core
        found = await load_assignments(core.coordination, [topic.name], on_damage=leave_alone)
        if not found or found[0].id not in (topic.id, ZERO_TOPIC_ID):
            return False
        new = found[0]
        added = [number for number in new.replicas if number not in topic.replicas]
        topic.replicas, topic.adding, topic.removing, topic.version = (
            new.replicas,
            new.adding,
            new.removing,
            new.version,
        )
        await core.read_again([TopicPartition(topic.name, number) for number in topic.states])
        if added:
            await self._creations.found([(topic, added)])
        return True

    # What an older tool asks for.

    async def found(self, watch: Watch) -> None:
        """Reads `/admin/reassign_partitions`, and begins what is new in it."""
        core = self._core
        try:
            data, stat = await core.coordination.get(REASSIGN_PARTITIONS, watch)
        except NoNode:
            self._asked.clear()
            if await core.coordination.exists(REASSIGN_PARTITIONS, watch) is not None:
                await self.found(watch)
            return
        try:
            wanted = decode_reassignments(REASSIGN_PARTITIONS, data)
        except DamagedZnode as damaged:
            log.error("a request for reassignments is left alone", fault=str(damaged))
            return
        new = {tp: target for tp, target in wanted.items() if self._asked.get(tp) != target}
        self._asked = wanted
        try:
            results = await self.alter([Reassignment(tp, target) for tp, target in new.items()])
        except BaseException:
            # Nobody knows what of it was begun: to the next look it is new, and none of it is taken for moved.
            for tp in new:
                self._asked.pop(tp, None)
            raise
        for result in results:
            if result.error is not ErrorCode.NONE:
                log.warning("a partition is not reassigned", partition=str(result.tp), fault=result.message)
        if not wanted:
            await core.writes.write([[Delete(REASSIGN_PARTITIONS, stat.version)]])
        await self.tidy()

    async def tidy(self) -> None:
        """Takes from the node what is not on its way: it has moved, was refused or sent elsewhere, or is deleted."""
        topics, deleting = self._core.context.topics, self._core.context.deleting

        def is_under_way(tp: TopicPartition, target: tuple[BrokerId, ...]) -> bool:
            topic = topics.get(tp.topic)
            if topic is None or tp.topic in deleting or tp.partition not in topic.replicas:
                return False
            assignment = assignment_of(topic, tp.partition)
            return assignment.moves and assignment.target == target

        await self._forget([tp for tp, target in self._asked.items() if not is_under_way(tp, target)])

    async def _forget(self, partitions: Sequence[TopicPartition]) -> None:
        """They have moved, or never will. What raises leaves them to the next `tidy`."""
        gone = {tp for tp in partitions if tp in self._asked}
        if gone:
            await self._take_from_node(gone)
            for tp in gone:
                del self._asked[tp]

    async def _take_from_node(self, gone: AbstractSet[TopicPartition]) -> None:
        core = self._core
        try:
            data, stat = await core.coordination.get(REASSIGN_PARTITIONS)
            wanted = decode_reassignments(REASSIGN_PARTITIONS, data)
        except (NoNode, DamagedZnode):
            return
        left = {tp: target for tp, target in wanted.items() if tp not in gone}
        op: Op = Delete(REASSIGN_PARTITIONS, stat.version)
        if left:
            op = SetData(REASSIGN_PARTITIONS, encode_reassignments(left), stat.version)
        # Where somebody writes it just now, it is looked at again.
        await core.writes.write([[op]])


def _results(
    changes: Sequence[Reassignment], refused: Mapping[TopicPartition, Refusal]
) -> Steps[list[PartitionResult]]:
    results: list[PartitionResult] = []
    for piece in pieces(changes):
        for change in piece:
            fault = refused.get(change.tp)
            result = PartitionResult(change.tp)
            results.append(result if fault is None else result._replace(error=fault.error, message=fault.message))
        yield
    return results
