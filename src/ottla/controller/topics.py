"""The controller's turns over topics: creation, growth, deletion."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from typing import Final

from ottla.controller.context import TopicContext
from ottla.controller.core import ControllerCore, log
from ottla.controller.creation import (
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
from ottla.controller.identity import random_id
from ottla.controller.interface import (
    DeletedTopic,
    NewPartitions,
    TopicCreation,
    TopicRef,
    TopicResult,
    TopicToCreate,
)
from ottla.controller.loading import below
from ottla.controller.refusal import Refusal
from ottla.coordination.errors import CoordinationError, NodeExists, WriteRefused
from ottla.coordination.interface import Create, Delete, Op, SetData
from ottla.coordination.znodes import (
    TopicAssignment,
    delete_topic_path,
    encode_topic,
    partitions_path,
    topic_config_path,
    topic_path,
)
from ottla.model import ZERO_TOPIC_ID, ErrorCode, TopicPartition
from ottla.steps import Steps, pieces

#: Of one request that adds partitions to many.
_TOPICS_LOGGED_MAX: Final = 100
_NO_ROOM: Final = "The topic was not created: there is no room for its logs, or no log directory that works."


class TopicTurns:
    def __init__(self, core: ControllerCore) -> None:
        self._core = core

    # Creation.

    async def create(self, topics: Sequence[TopicToCreate], *, validate_only: bool) -> list[TopicCreation]:
        core = self._core
        await core.do(check_whole_request(topics, core.settings))
        plans = await core.do(self._plan(topics))
        if not validate_only:
            await self._carry_out(plans)
        return await core.do(_created(topics, plans, validate_only=validate_only))

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
                check_name_is_free(topic.name, folded)
                topic_id = random_id(core.entropy)
                plan = yield from plan_topic(core.context, topic, core.settings, core.entropy, topic_id)
            except Refusal as refusal:
                plans.append(refusal)
                yield
            else:
                folded[fold(topic.name)] = topic.name
                plans.append(plan)
        return plans

    async def _carry_out(self, plans: list[TopicPlan | Refusal]) -> None:
        """Creates what was planned; what the tree refuses becomes a refusal in its place."""
        core = self._core
        indexes = [index for index, plan in enumerate(plans) if isinstance(plan, TopicPlan)]
        outcomes = await core.writes.write([plan.ops for plan in plans if isinstance(plan, TopicPlan)])
        made = []
        for index, fault in zip(indexes, outcomes, strict=True):
            plan = plans[index]
            assert isinstance(plan, TopicPlan)
            if fault is None:
                core.context.add_topic(plan.topic)
                made.append(plan.topic)
            else:
                # Somebody else made it: the tree knows more than the context.
                core.stale = True
                plans[index] = _as_refusal(plan.topic.name, fault)
        if made:
            await core.update(topic_configs={topic.name: dict(topic.configs) for topic in made})
            dead = await core.lead([(topic, list(topic.replicas)) for topic in made], is_new=True)
            undone = sorted({tp.topic for tp in dead})
            led = [topic for topic in made if topic.name not in undone]
            states = await core.do(core.context.states_of((topic, topic.replicas) for topic in led))
            await core.update(partitions=states)
            if led:
                log.info("created topics", count=len(led), first=led[0].name, partitions=len(states))
            if undone:
                for index in indexes:
                    plan = plans[index]
                    if isinstance(plan, TopicPlan) and plan.topic.name in undone:
                        plans[index] = Refusal(ErrorCode.KAFKA_STORAGE_ERROR, _NO_ROOM)
                await self._undo(undone)

    async def _undo(self, names: Sequence[str]) -> None:
        """Takes topics back that none of the brokers could make all logs of. Nobody has heard of them yet."""
        core = self._core
        core.undone.update(names)
        log.warning("topics could not be created: there is no room for their logs", count=len(names), first=names[0])
        try:
            await self.mark_undone()
            await core.update(topics_deleted=names)
            await self.finish_deletions(names)
        except WriteRefused as full:
            # Not even for this: the next turn begins with it.
            core.stale = True
            log.warning("their removal from the tree waits", fault=str(full))

    async def mark_undone(self) -> None:
        """Begins the deletion of what is to be undone, from where `finish_deletions` goes on."""
        core = self._core
        names = sorted(core.undone & core.context.topics.keys())
        core.context.deleting.update(names)
        for name, fault in zip(
            names, await core.writes.write([[Create(delete_topic_path(name))] for name in names]), strict=True
        ):
            if fault is not None and not isinstance(fault, NodeExists):
                raise fault
            core.undone.discard(name)
        core.undone.clear()

    # Growth.

    async def grow(self, requests: Sequence[NewPartitions], *, validate_only: bool) -> list[TopicResult]:
        plans = await self._core.do(self._plan_growth(requests))
        if not validate_only:
            await self._carry_out_growth(plans)
        return [
            TopicResult(request.topic, plan.error, plan.message)
            if isinstance(plan, Refusal)
            else TopicResult(request.topic)
            for request, plan in zip(requests, plans, strict=True)
        ]

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

    async def _carry_out_growth(self, plans: list[GrowthPlan | Refusal]) -> None:
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
            grown.append((topic, list(plan.replicas)))
        if not grown:
            return
        dead = await core.lead(grown, is_new=True)
        # Partitions are never taken back: these wait until there is room.
        await core.elect((core.context.topics[tp.topic], [tp.partition]) for tp in dead)
        await core.update(partitions=await core.do(core.context.states_of(grown)))
        for topic, _ in grown[:_TOPICS_LOGGED_MAX]:
            log.info("added partitions", topic=topic.name, partitions=len(topic.replicas))

    async def complete(self) -> None:
        """After a start: what a crash cut short, or an old Kafka left out, gets into the tree as if it were new."""
        core = self._core
        groups: list[list[Op]] = []
        for topic in list(core.context.served_topics()):
            if topic.id == ZERO_TOPIC_ID:
                # Made before topics had ids.
                topic.id = random_id(core.entropy)
                core.context.names[topic.id] = topic.name
                assignment = TopicAssignment(topic.id, topic.replicas, topic.adding, topic.removing)
                groups.append([SetData(topic_path(topic.name), encode_topic(assignment))])
            missing = {number: replicas for number, replicas in topic.replicas.items() if number not in topic.states}
            if not missing:
                continue
            states, ops = await core.do(first_states(core.context, topic, missing))
            creations = [Create(partitions_path(topic.name)), *ops]
            paths = [op.path for op in creations if isinstance(op, Create)]
            there = await core.coordination.get_many(paths)
            lacking: list[Op] = [op for op, node in zip(creations, there, strict=True) if node is None]
            if states:
                log.info("completing a topic that a crash cut short", topic=topic.name, partitions=len(states))
            topic.states |= states
            groups.append(lacking)
        faults = [fault for fault in await core.writes.write(groups) if fault is not None]
        if faults:
            raise faults[0]

    # Deletion.

    async def delete(self, topics: Sequence[TopicRef]) -> list[DeletedTopic]:
        core = self._core
        results, found = await core.do(self._resolve_all(topics))
        names = list(found)
        outcomes = await core.writes.write([[Create(delete_topic_path(name))] for name in names])
        begun: list[str] = []
        for name, fault in zip(names, outcomes, strict=True):
            if fault is None or isinstance(fault, NodeExists):
                begun.append(name)
            else:
                core.stale = True
                refusal = _as_refusal(name, fault)
                results[found[name]] = results[found[name]]._replace(error=refusal.error, message=refusal.message)
        if begun:
            core.context.deleting.update(begun)
            await core.update(topics_deleted=begun)
            await self.finish_deletions(begun)
        return results

    def _resolve_all(self, refs: Sequence[TopicRef]) -> Steps[tuple[list[DeletedTopic], dict[str, int]]]:
        """A result for each, and of those that are to be deleted where it stands."""
        results: list[DeletedTopic] = []
        found: dict[str, int] = {}
        for piece in pieces(refs):
            for ref in piece:
                result = self._resolve(ref)
                name = result.name
                if result.error is ErrorCode.NONE and name is not None:
                    if name in found:
                        message = "Duplicate topic name."
                        result = result._replace(error=ErrorCode.INVALID_REQUEST, message=message)
                    else:
                        found[name] = len(results)
                results.append(result)
            yield
        return results, found

    def _resolve(self, ref: TopicRef) -> DeletedTopic:
        context = self._core.context
        if not self._core.settings.delete_topics:
            return DeletedTopic(ref.name, ref.id, ErrorCode.TOPIC_DELETION_DISABLED, "Topic deletion is disabled.")
        name = ref.name if ref.name is not None else context.names.get(ref.id)
        topic = None if name is None or name in context.deleting else context.topics.get(name)
        if topic is not None:
            return DeletedTopic(topic.name, topic.id)
        if ref.name is None:
            message = "This server does not host this topic ID."
            return DeletedTopic(None, ref.id, ErrorCode.UNKNOWN_TOPIC_ID, message)
        message = "This server does not host this topic-partition."
        return DeletedTopic(ref.name, ZERO_TOPIC_ID, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, message)

    async def finish_deletions(self, names: Collection[str]) -> None:
        """Logs first, then the nodes, the mark of the deletion last: a start goes on with what was cut short."""
        core = self._core
        context = core.context
        replicas = [
            TopicPartition(name, partition)
            for name in names
            if name in context.topics
            for partition in context.topics[name].replicas
        ]
        answers = await core.announcements.on_stop_replicas(replicas, delete=True) if replicas else {}
        kept = {tp.topic for tp, error in answers.items() if error is not ErrorCode.NONE}
        for name in sorted(kept):
            log.warning("a topic's deletion waits: not all of its logs could be deleted", topic=name)
        gone = [name for name in names if name not in kept]
        outcomes = await core.writes.write([await self._removal(name) for name in gone])
        for name, fault in zip(gone, outcomes, strict=True):
            if fault is None:
                context.remove_topic(name)
            else:
                core.stale = True
                log.warning("a topic's deletion waits", topic=name, fault=str(fault))
        if gone:
            log.info("deleted topics", count=len(gone), first=gone[0])

    async def _removal(self, name: str) -> list[Op]:
        core = self._core
        paths: list[str] = []
        if name in core.context.topics:
            paths += await below(core.coordination, topic_path(name))
        if name in core.context.config_nodes:
            paths.append(topic_config_path(name))
        return [Delete(path) for path in (*paths, delete_topic_path(name))]


def _created(
    topics: Sequence[TopicToCreate], plans: Sequence[TopicPlan | Refusal], *, validate_only: bool
) -> Steps[list[TopicCreation]]:
    created: list[TopicCreation] = []
    for piece in pieces(zip(topics, plans, strict=True)):
        for topic, plan in piece:
            if isinstance(plan, Refusal):
                created.append(TopicCreation(topic.name, plan.error, plan.message))
                continue
            created.append(
                TopicCreation(
                    topic.name,
                    topic_id=ZERO_TOPIC_ID if validate_only else plan.topic.id,
                    partitions=len(plan.topic.replicas),
                    replication_factor=len(plan.topic.replicas[0]),
                    configs=plan.topic.configs,
                )
            )
        yield
    return created


def _as_refusal(topic: str, fault: CoordinationError) -> Refusal:
    if isinstance(fault, NodeExists) and fault.path in (topic_path(topic), topic_config_path(topic)):
        return Refusal(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{topic}' already exists.")
    return Refusal(ErrorCode.UNKNOWN_SERVER_ERROR, str(fault))
