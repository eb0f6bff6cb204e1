"""The controller's turns that delete topics, and what follows when brokers have deleted the logs.

A mark in the tree begins a deletion, and from there it goes on whoever is the controller: topics that are marked leave
the metadata, brokers delete what they have of them, then the topic's nodes go, and the mark goes with them. The
client is answered when live brokers are done. Where others have replicas too, the nodes and the mark stay until these
have come back and deleted them: a broker whose replica no tree names any more would keep it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import chain

from ottla.controller.announcing.announcements import StopsAnswer
from ottla.controller.core import ControllerCore, log
from ottla.controller.deciding.audience import stop_orders
from ottla.controller.deciding.context import ClusterContext
from ottla.controller.deciding.refusal import Refusal
from ottla.controller.interface import DeletedTopic, TopicRef
from ottla.controller.loading import below
from ottla.controller.waiting import Work
from ottla.coordination.errors import CoordinationError, NodeExists, WriteRefused
from ottla.coordination.interface import Create, Delete, Op
from ottla.coordination.znodes import delete_topic_path, topic_config_path, topic_path
from ottla.model import ZERO_TOPIC_ID, BrokerId, ErrorCode
from ottla.steps import Steps, pieces


class _Deletion:
    """A topic that is marked: brokers are deleting its logs."""

    def __init__(self, work: Work, holders: set[BrokerId], away: set[BrokerId]) -> None:
        self.work = work
        #: Live brokers that have not answered yet.
        self.waits_for = holders
        #: Brokers with replicas that are not there, or could not delete them: they will when they start again.
        self.away = away


class DeletionTurns:
    def __init__(self, core: ControllerCore) -> None:
        self._core = core
        self._deletions: dict[str, _Deletion] = {}

    # What is asked for.

    async def delete(self, topics: Sequence[TopicRef]) -> tuple[list[DeletedTopic], Work | None]:
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
                refusal = _refusal_of(fault)
                results[found[name]] = results[found[name]]._replace(error=refusal.error, message=refusal.message)
        if not begun:
            return results, None
        return results, await self._begin(begun)

    def names_of(self, refs: Sequence[TopicRef]) -> Iterator[str]:
        """Of those that there are."""
        ids = self._core.context.names
        for ref in refs:
            name = ref.name if ref.name is not None else ids.get(ref.id)
            if name is not None:
                yield name

    def _resolve_all(self, refs: Sequence[TopicRef]) -> Steps[tuple[list[DeletedTopic], dict[str, int]]]:
        """A result for each, and of those that are to be deleted where it stands."""
        results: list[DeletedTopic] = []
        found: dict[str, int] = {}
        places: dict[str, int] = {}
        for piece in pieces(refs):
            for ref in piece:
                result = self._resolve(ref)
                name = result.name
                if result.error is ErrorCode.NONE and name is not None:
                    first = places.setdefault(name, len(results))
                    if first == len(results):
                        found[name] = first
                    else:  # by its name and by its id, which the broker that was asked did not know
                        result = _meant_twice(result)
                        if found.pop(name, None) is not None:
                            results[first] = _meant_twice(results[first])
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

    # What the controller takes back itself.

    async def undo(self, names: Sequence[str]) -> Work | None:
        """Takes topics back that no broker could make all logs of. Nobody has heard of them yet."""
        core = self._core
        core.undone.update(names)
        log.warning("topics could not be created: there is no room for their logs", count=len(names), first=names[0])
        try:
            return await self._begin(await self.mark_undone())
        except WriteRefused as full:
            # Not even for this: the next turn begins with it.
            core.stale = True
            log.warning("their removal from the tree waits", fault=str(full))
            return None

    async def mark_undone(self) -> list[str]:
        """Marks what is to be undone, from where a deletion goes on."""
        core = self._core
        names = sorted(core.undone & core.context.topics.keys())
        marks = [[Create(delete_topic_path(name))] for name in names]
        for name, fault in zip(names, await core.writes.write(marks), strict=True):
            if fault is not None and not isinstance(fault, NodeExists):
                raise fault
            core.undone.discard(name)
        core.context.deleting.update(names)
        core.undone.clear()
        return names

    # What goes on behind the turn.

    async def found(self, marks: Sequence[str]) -> None:
        """Topics that somebody else has marked: those that are not there lose their mark."""
        core = self._core
        known = [name for name in marks if name in core.context.topics and name not in core.context.deleting]
        unknown = [name for name in marks if name not in core.context.topics]
        if known and not core.settings.delete_topics:
            log.warning("topics are marked for deletion, which is disabled", count=len(known), first=known[0])
            unknown, known = [*unknown, *known], []
        await core.writes.write([[Delete(delete_topic_path(name))] for name in unknown])
        if known:
            log.info("found topics that are marked for deletion", count=len(known), first=known[0])
            await self._begin(known)

    async def refuse_marks(self, context: ClusterContext) -> None:
        """After the tree was read, where deletion is disabled: topics stay, and lose their marks.

        What the controller is taking back itself goes on.
        """
        if self._core.settings.delete_topics:
            return
        marks = sorted(context.deleting - self._deletions.keys())
        if marks:
            log.warning("topics are marked for deletion, which is disabled", count=len(marks), first=marks[0])
            await self._core.writes.write([[Delete(delete_topic_path(name))] for name in marks])
            context.deleting.difference_update(marks)

    async def _begin(self, names: Sequence[str]) -> Work:
        """Of topics that are marked in the tree."""
        core = self._core
        core.context.deleting.update(names)
        core.update(topics_deleted=names)
        orders = await core.do(stop_orders(core.context, names))
        work = self._track(names)
        core.announcer.announce(orders)
        work.following.append(core.announcer.when_confirmed([core.settings.broker_id]))
        await self.finish()
        return work

    def _track(self, names: Sequence[str]) -> Work:
        work = Work()
        for name in names:
            self._deletions[name] = _Deletion(work, *self._holders(name))
        self._core.under_way.deletion(names, work)
        return work

    def go_on(self) -> None:
        """After the tree was read: what is marked in it is tracked. Brokers hear of it with everything else."""
        context = self._core.context
        self._end([name for name in self._deletions if name not in context.deleting])
        new = sorted(name for name in context.deleting if name not in self._deletions)
        if new:
            self._track(new)
        for name, deletion in self._deletions.items():
            deletion.waits_for, deletion.away = self._holders(name)

    def _holders(self, name: str) -> tuple[set[BrokerId], set[BrokerId]]:
        """Brokers that have a replica of it: those that live, and the others."""
        context = self._core.context
        topic = context.topics.get(name)
        held = set(chain.from_iterable(topic.replicas.values())) if topic is not None else set()
        return held & context.brokers.keys(), held - context.brokers.keys()

    def stopped(self, answer: StopsAnswer) -> None:
        """A broker has deleted what it has, or could not."""
        stopped: dict[str, set[int]] = {}
        for tp in answer.partitions:
            stopped.setdefault(tp.topic, set()).add(tp.partition)
        for name, numbers in stopped.items():
            deletion, topic = self._deletions.get(name), self._core.context.topics.get(name)
            # A partition that has moved away was stopped there as well: that is not the topic's deletion.
            if deletion is not None and (
                topic is None
                or all(number in numbers for number, held in topic.replicas.items() if answer.broker in held)
            ):
                deletion.waits_for.discard(answer.broker)
        for name in sorted({tp.topic for tp in answer.failed}):
            if name in self._deletions:
                log.warning(
                    "a topic's deletion waits: not all of its logs could be deleted", topic=name, broker=answer.broker
                )
                self._deletions[name].away.add(answer.broker)

    def broker_gone(self, broker: BrokerId) -> None:
        """The caller waits for it no more."""
        for deletion in self._deletions.values():
            if broker in deletion.waits_for:
                deletion.waits_for.discard(broker)
                deletion.away.add(broker)

    def broker_is_back(self, broker: BrokerId) -> None:
        """It hears of deletions with everything else."""
        for deletion in self._deletions.values():
            if broker in deletion.away:
                deletion.away.discard(broker)
                deletion.waits_for.add(broker)

    async def finish(self) -> None:
        """Takes the nodes of those away whose logs are gone everywhere."""
        core = self._core
        ready = [name for name, deletion in self._deletions.items() if not deletion.waits_for]
        away = [name for name in ready if self._deletions[name].away]
        for name in away:
            deletion = self._deletions[name]
            if not deletion.work.has_ended:
                log.info("a topic's deletion waits for brokers", topic=name, brokers=sorted(deletion.away))
        gone = [name for name in ready if not self._deletions[name].away]
        outcomes = await core.writes.write([await self._removal(name) for name in gone])
        removed = 0
        for name, fault in zip(gone, outcomes, strict=True):
            if fault is None:
                core.context.remove_topic(name)
                removed += 1
            else:
                core.stale = True
                log.warning("a topic's deletion waits", topic=name, fault=str(fault))
        self._end(gone)
        self._answer(away)
        if removed:
            log.info("deleted topics", count=removed, first=gone[0])

    def _end(self, names: Collection[str]) -> None:
        """A request's work ends with the last of its topics."""
        works = [self._deletions.pop(name).work for name in names]
        for work in set(works) - {deletion.work for deletion in self._deletions.values()}:
            work.end()

    def _answer(self, names: Collection[str]) -> None:
        """Of topics that wait for brokers which are away: their callers have waited long enough."""
        for work in {self._deletions[name].work for name in names}:
            if all(not deletion.waits_for for deletion in self._deletions.values() if deletion.work is work):
                work.end()

    def give_up(self, fault: Refusal) -> None:
        """Answers all that wait: the turn that was to see to them has failed. The marks stay in the tree."""
        deletions, self._deletions = self._deletions, {}
        if not self._core.settings.delete_topics:
            # What goes all the same the controller takes back: `refuse_marks` is not to give it back.
            self._core.undone.update(deletions)
        for deletion in deletions.values():
            deletion.work.end(fault)

    async def _removal(self, name: str) -> list[Op]:
        core = self._core
        paths: list[str] = []
        if name in core.context.topics:
            paths += await below(core.coordination, topic_path(name))
        if name in core.context.config_nodes:
            paths.append(topic_config_path(name))
        return [Delete(path) for path in (*paths, delete_topic_path(name))]


def _meant_twice(topic: DeletedTopic) -> DeletedTopic:
    return topic._replace(error=ErrorCode.INVALID_REQUEST, message="Duplicate topic name.")


def _refusal_of(fault: CoordinationError) -> Refusal:
    return Refusal(ErrorCode.UNKNOWN_SERVER_ERROR, str(fault))
