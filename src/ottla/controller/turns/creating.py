"""The controller's turns that make partitions: creation of topics, and growth.

The turn ends when the tree has them and their roles are announced. From then on they are *being made*
(`deciding/makings.py`): answers of brokers settle them one after the other, and when the last one is settled they are
shown to clients, or taken back where nobody has room for a log of a topic that is new.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from ottla.controller.core import ControllerCore, log
from ottla.controller.deciding.context import TopicContext
from ottla.controller.deciding.creation import (
    GrowthPlan,
    TopicPlan,
    check_name_is_free,
    check_not_repeated,
    check_whole_request,
    first_states,
    fold,
    plan_growth,
    plan_topic,
)
from ottla.controller.deciding.makings import Making
from ottla.controller.deciding.refusal import Refusal
from ottla.controller.identity import random_id
from ottla.controller.interface import NewPartitions, TopicCreation, TopicResult, TopicToCreate
from ottla.controller.turns.deleting import DeletionTurns
from ottla.controller.waiting import Work
from ottla.coordination.errors import CoordinationError, NodeExists
from ottla.coordination.interface import Create, Op, SetData
from ottla.coordination.znodes import (
    encode_topic,
    partitions_path,
    topic_config_path,
    topic_path,
)
from ottla.model import NO_BROKER, ZERO_TOPIC_ID, ErrorCode
from ottla.steps import Steps, pieces

#: Of one request that adds partitions to many.
_TOPICS_LOGGED_MAX: Final = 100
_NO_ROOM: Final = "The topic was not created: there is no room for its logs, or no log directory that works."
_VANISHED: Final = "The topic was deleted before it was made."


class Creation(NamedTuple):
    """A request that made topics: what its turn found, and what goes on behind it."""

    plans: Sequence[TopicPlan | Refusal]
    #: None: nothing is made.
    work: Work | None


class Growth(NamedTuple):
    results: Sequence[TopicResult]
    work: Work | None


class CreationTurns:
    def __init__(self, core: ControllerCore, deletions: DeletionTurns) -> None:
        self._core = core
        self._deletions = deletions
        self._works: dict[Making, Work] = {}

    # Creation.

    async def create(self, topics: Sequence[TopicToCreate], *, validate_only: bool) -> Creation:
        core = self._core
        await core.do(check_whole_request(topics, core.settings))
        plans = await core.do(self._plan(topics))
        return Creation(plans, None if validate_only else await self._carry_out(plans))

    def _plan(self, topics: Sequence[TopicToCreate]) -> Steps[list[TopicPlan | Refusal]]:
        core = self._core
        mentions = Counter(topic.name for topic in topics)
        yield
        folded: dict[str, str] = {}
        for piece in pieces(core.context.topics):
            folded.update((fold(name), name) for name in piece)
            yield
        plans: list[TopicPlan | Refusal] = []
        for topic in topics:
            try:
                check_not_repeated(mentions[topic.name])
                check_name_is_free(topic.name, folded, core.context.deleting)
                topic_id = random_id(core.entropy)
                plan = yield from plan_topic(core.context, topic, core.settings, core.entropy, topic_id)
            except Refusal as refusal:
                plans.append(refusal)
                yield
            else:
                folded[fold(topic.name)] = topic.name
                plans.append(plan)
        return plans

    async def _carry_out(self, plans: list[TopicPlan | Refusal]) -> Work | None:
        """Creates what was planned; what the tree refuses becomes a refusal in its place."""
        core = self._core
        indexes = [index for index, plan in enumerate(plans) if isinstance(plan, TopicPlan)]
        outcomes = await core.writes.write([plan.ops for plan in plans if isinstance(plan, TopicPlan)])
        made: list[tuple[TopicContext, list[int]]] = []
        for index, fault in zip(indexes, outcomes, strict=True):
            plan = plans[index]
            assert isinstance(plan, TopicPlan)
            if fault is None:
                core.context.add_topic(plan.topic)
                made.append((plan.topic, list(plan.topic.replicas)))
            else:
                # Somebody else made it: the tree knows more than the context.
                core.stale = True
                plans[index] = _as_refusal(plan.topic.name, fault)
        if not made:
            return None
        core.update(topic_configs={topic.name: dict(topic.configs) for topic, _ in made})
        return await self._begin(made, is_creation=True)

    # What is being made.

    async def _begin(self, made: Sequence[tuple[TopicContext, list[int]]], *, is_creation: bool) -> Work:
        core = self._core
        making = Making({topic.name: numbers for topic, numbers in made}, is_creation=is_creation)
        work = self._works[making] = Work()
        core.makings.begin(making)
        core.under_way.making(making.partitions, work)
        for topic, numbers in made:
            for partition in numbers:
                if partition not in topic.states:
                    making.settle(topic.name, partition)
        await core.lead(made, is_new=True)
        if making.is_settled:
            await self._finish(making)
        return work

    async def finish_settled(self) -> None:
        """Shows what was made to clients, and answers those who wait for it."""
        for making in self._core.makings.all():
            if making.is_settled:
                await self._finish(making)

    async def _finish(self, making: Making) -> None:
        core = self._core
        core.makings.end(making)
        work = self._works.pop(making)
        try:
            await self._show(making, work)
        except BaseException as fault:
            work.end(Refusal(ErrorCode.UNKNOWN_SERVER_ERROR, repr(fault)))
            raise
        work.end()

    async def _show(self, making: Making, work: Work) -> None:
        core = self._core
        lost = making.without_room | making.vanished
        led = [
            (core.context.topics[name], sorted(numbers))
            for name, numbers in making.partitions.items()
            if name not in lost and name in core.context.topics
        ]
        states = await core.do(core.context.states_of(led))
        core.show_states(states)
        leaders = {state.leader for state in states} - {NO_BROKER}
        work.following.append(core.announcer.when_confirmed(leaders | {core.settings.broker_id}))
        work.refused = {name: Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, _VANISHED) for name in making.vanished}
        _log_what_was_made(led, is_creation=making.is_creation)
        undone = sorted(making.without_room & core.context.topics.keys())
        if undone:
            work.refused |= dict.fromkeys(undone, Refusal(ErrorCode.KAFKA_STORAGE_ERROR, _NO_ROOM))
            following = await self._deletions.undo(undone)
            if following is not None:
                work.following.append(following)

    def give_up(self, fault: Refusal) -> None:
        """Answers all that wait: the turn that was to see to them has failed."""
        for making, work in list(self._works.items()):
            self._core.makings.end(making)
            work.end(fault)
        self._works.clear()

    def leaders_changed(self, changed: Sequence[tuple[TopicContext, list[int]]]) -> None:
        """Of partitions that are being made: with nobody to lead them they are not waited for."""
        for topic, numbers in changed:
            for partition in numbers:
                making = self._core.makings.of(topic.name, partition)
                if making is not None and topic.states[partition].state.leader == NO_BROKER:
                    making.settle(topic.name, partition)

    def reloaded(self) -> None:
        """The context was read anew: some of what is being made may be gone."""
        topics = self._core.context.topics
        deleting = self._core.context.deleting
        for making in self._core.makings.all():
            for name, numbers in making.partitions.items():
                if name not in topics or name in deleting:
                    making.vanish(name)
                else:
                    left = topics[name]
                    self.leaders_changed([(left, [number for number in numbers if number in left.states])])

    # Growth.

    async def grow(self, requests: Sequence[NewPartitions], *, validate_only: bool) -> Growth:
        plans = await self._core.do(self._plan_growth(requests))
        work = None if validate_only else await self._carry_out_growth(plans)
        results = [
            TopicResult(request.topic, plan.error, plan.message)
            if isinstance(plan, Refusal)
            else TopicResult(request.topic)
            for request, plan in zip(requests, plans, strict=True)
        ]
        return Growth(results, work)

    def _plan_growth(self, requests: Sequence[NewPartitions]) -> Steps[list[GrowthPlan | Refusal]]:
        mentions = Counter(request.topic for request in requests)
        yield
        plans: list[GrowthPlan | Refusal] = []
        for request in requests:
            try:
                check_not_repeated(mentions[request.topic])
                plans.append((yield from plan_growth(self._core.context, request)))
            except Refusal as refusal:
                plans.append(refusal)
            yield
        return plans

    async def _carry_out_growth(self, plans: list[GrowthPlan | Refusal]) -> Work | None:
        """Adds what was planned; what the tree refuses becomes a refusal in its place."""
        core = self._core
        indexes = [index for index, plan in enumerate(plans) if isinstance(plan, GrowthPlan)]
        outcomes = await core.writes.write([plan.ops for plan in plans if isinstance(plan, GrowthPlan)])
        grown: list[tuple[TopicContext, list[int]]] = []
        for index, fault in zip(indexes, outcomes, strict=True):
            plan = plans[index]
            assert isinstance(plan, GrowthPlan)
            if fault is not None:
                core.stale = True
                plans[index] = _as_refusal(plan.topic, fault)
                continue
            topic = core.context.topics[plan.topic]
            topic.replicas |= plan.replicas
            topic.states |= plan.states
            topic.version += 1
            grown.append((topic, list(plan.replicas)))
        return await self._begin(grown, is_creation=False) if grown else None

    async def complete(self, topics: Iterable[TopicContext]) -> None:
        """What a crash cut short, an old Kafka left out, or nobody lived for, gets into the tree as if it were new."""
        core = self._core
        groups: list[list[Op]] = []
        for topic in list(topics):
            if topic.id == ZERO_TOPIC_ID:
                # Made before topics had ids.
                topic.id = random_id(core.entropy)
                core.context.names[topic.id] = topic.name
                groups.append([SetData(topic_path(topic.name), encode_topic(topic.assignment), topic.version)])
                topic.version += 1
            known = topic.states.keys() | topic.damaged
            missing = {number: replicas for number, replicas in topic.replicas.items() if number not in known}
            if not missing:
                continue
            states, ops = await core.do(first_states(core.context, topic, missing))
            creations = [Create(partitions_path(topic.name)), *ops]
            paths = [op.path for op in creations if isinstance(op, Create)]
            there = await core.coordination.get_many(paths)
            lacking: list[Op] = [op for op, node in zip(creations, there, strict=True) if node is None]
            if states:
                log.info("completing a topic: partitions had no state", topic=topic.name, partitions=len(states))
            topic.states |= states
            groups.append(lacking)
        faults = [fault for fault in await core.writes.write(groups) if fault is not None]
        if faults:
            raise faults[0]

    async def found(self, topics: Sequence[tuple[TopicContext, list[int]]]) -> None:
        """Partitions that somebody else has put into the tree: they are made as if they had been asked for."""
        core = self._core
        await self.complete([topic for topic, _ in topics])
        for topic, numbers in topics:
            log.info("found partitions in the tree", topic=topic.name, partitions=len(numbers))
        core.update(topic_configs={topic.name: dict(topic.configs) for topic, _ in topics})
        idle = [(topic, numbers) for topic, numbers in topics if not core.makings.hidden(topic.name)]
        if idle:
            await self._begin(idle, is_creation=False)
        # Of a topic that is being made they are shown as their leaders are announced.
        rest = [found for found in topics if found not in idle]
        await core.lead(rest)
        await core.show(rest)


def created(topics: Sequence[TopicToCreate], creation: Creation, *, validate_only: bool) -> Steps[list[TopicCreation]]:
    """The request's results, once what goes on behind its turn has ended."""
    refused = creation.work.refused if creation.work is not None else {}
    results: list[TopicCreation] = []
    for piece in pieces(zip(topics, creation.plans, strict=True)):
        for topic, plan in piece:
            refusal = plan if isinstance(plan, Refusal) else refused.get(topic.name)
            if refusal is not None:
                results.append(TopicCreation(topic.name, refusal.error, refusal.message))
                continue
            assert isinstance(plan, TopicPlan)
            results.append(
                TopicCreation(
                    topic.name,
                    topic_id=ZERO_TOPIC_ID if validate_only else plan.topic.id,
                    partitions=len(plan.topic.replicas),
                    replication_factor=len(plan.topic.replicas[0]),
                    configs=plan.topic.configs,
                )
            )
        yield
    return results


def _log_what_was_made(made: Sequence[tuple[TopicContext, list[int]]], *, is_creation: bool) -> None:
    if is_creation and made:
        partitions = sum(len(numbers) for _, numbers in made)
        log.info("created topics", count=len(made), first=made[0][0].name, partitions=partitions)
    elif made:
        for topic, _ in made[:_TOPICS_LOGGED_MAX]:
            log.info("added partitions", topic=topic.name, partitions=len(topic.replicas))


def _as_refusal(topic: str, fault: CoordinationError) -> Refusal:
    if isinstance(fault, NodeExists) and fault.path in (topic_path(topic), topic_config_path(topic)):
        return Refusal(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{topic}' already exists.")
    return Refusal(ErrorCode.UNKNOWN_SERVER_ERROR, str(fault))
