"""The controller's turn over what brokers have answered: what is being made is settled, what has failed is elected."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ottla.controller.announcing.announcements import LostTrack, RolesAnswer, StopsAnswer
from ottla.controller.core import ControllerCore, log
from ottla.controller.deciding.context import TopicContext
from ottla.controller.deciding.elections import Strategy
from ottla.controller.turns.creating import CreationTurns
from ottla.controller.turns.deleting import DeletionTurns
from ottla.model import NO_BROKER, BrokerId, ErrorCode, TopicPartition
from ottla.steps import Steps, pieces


class AnswerTurns:
    def __init__(self, core: ControllerCore, creations: CreationTurns, deletions: DeletionTurns) -> None:
        self._core = core
        self._creations = creations
        self._deletions = deletions

    async def take(self) -> None:
        core = self._core
        for answer in core.announcer.take_answers():
            if isinstance(answer, RolesAnswer):
                await self._roles(answer)
            elif isinstance(answer, StopsAnswer):
                self._deletions.stopped(answer)
            else:
                assert isinstance(answer, LostTrack)
                await core.announce_all([answer.broker])
        await self._creations.finish_settled()
        await self._deletions.finish()

    async def _roles(self, answer: RolesAnswer) -> None:
        failed, back = await self._core.do(self._settle(answer))
        if failed:
            log.warning("replicas could not be opened", count=len(failed), first=str(failed[0]))
            await self.replicas_failed(answer.broker, failed)
        if back:
            await self.replicas_back(answer.broker, back)

    def _settle(self, answer: RolesAnswer) -> Steps[tuple[list[TopicPartition], list[TopicPartition]]]:
        """The leaders among them are known to serve now. Returns those that failed, as far as that is not obsolete, and
        those that had and are back."""
        context, makings = self._core.context, self._core.makings
        failed: list[TopicPartition] = []
        back: list[TopicPartition] = []
        # The broker of this process has said by a call what has failed, and says so what is back.
        had_failed = context.failed_replicas if answer.broker != self._core.settings.broker_id else frozenset()
        for piece in pieces(answer.states if len(makings) or answer.failed or had_failed else ()):
            for state in piece:
                topic = context.topics.get(state.topic)
                known = topic.states.get(state.partition) if topic is not None and topic.id == state.topic_id else None
                if known is None or state.topic in context.deleting:
                    continue
                tp = TopicPartition(state.topic, state.partition)
                if had_failed and (*tp, answer.broker) in had_failed and tp not in answer.failed:
                    back.append(tp)  # of whichever state that is: of later ones it has not heard
                if known.state.leader_epoch != state.leader_epoch:
                    continue  # decided on anew, and announced anew
                if tp in answer.failed:
                    if (*tp, answer.broker) not in had_failed:
                        failed.append(tp)
                    continue
                if state.leader == answer.broker and (making := makings.of(state.topic, state.partition)) is not None:
                    making.settle(state.topic, state.partition)
            yield
        return failed, back

    async def replicas_failed(self, broker: BrokerId, partitions: Iterable[TopicPartition]) -> None:
        """Others lead from now on, or nobody. What was to be new and has no place anywhere is taken back instead."""
        core, context = self._core, self._core.context
        lost = list(partitions)
        context.failed_replicas.update((tp.topic, tp.partition, broker) for tp in lost)
        others: list[tuple[TopicContext, list[int]]] = []
        for tp in lost:
            topic = context.topics[tp.topic]
            making = core.makings.of(*tp)
            if making is None or not making.is_creation or context.live_replicas(*tp, topic.replicas[tp.partition]):
                others.append((topic, [tp.partition]))
            else:
                making.without_room.add(tp.topic)
                making.settle(*tp)
        await self.elect(others)

    async def replicas_back(self, broker: BrokerId, partitions: Iterable[TopicPartition]) -> None:
        """There is room for them again. They may lead, where nobody does, and follow where others lead."""
        core, context = self._core, self._core.context
        known = [
            (context.topics[tp.topic], [tp.partition])
            for tp in partitions
            if (*tp, broker) in context.failed_replicas and tp.topic in context.topics
            if tp.topic not in context.deleting
        ]
        context.failed_replicas.difference_update(
            (topic.name, partition, broker) for topic, numbers in known for partition in numbers
        )
        await self.elect(known)
        await core.lead(known)
        if known:
            first = TopicPartition(known[0][0].name, known[0][1][0])
            log.info("replicas are there after all", broker=broker, count=len(known), first=str(first))

    async def elect(
        self, partitions: Iterable[tuple[TopicContext, list[int]]], strategy: Strategy | None = None
    ) -> dict[TopicPartition, ErrorCode]:
        """Elects where it is due, and announces what is so from now on. Returns those that were asked for in vain."""
        core = self._core
        concerned = list(partitions)
        changed, refused = await core.elect(concerned, strategy)
        # With brokers their replicas have changed too, in what clients see.
        await self.announce(concerned if strategy is None else changed, changed)
        return refused

    async def look_at_unreadable(self) -> None:
        """Somebody may have put states right that could not be read, and what was due then is due still: no watch
        tells it."""
        core, topics = self._core, self._core.context.topics
        due, core.unreadable = core.unreadable, set()
        there = sorted(tp for tp in due if tp.topic in topics and tp.partition in topics[tp.topic].replicas)
        mended = sorted(await core.read_again(there))
        if mended:
            log.info("states of partitions can be read again", count=len(mended), first=str(mended[0]))
            partitions = [(topics[tp.topic], [tp.partition]) for tp in mended]
            await core.elect(partitions)
            # Who put it right has made another version of it, which leaders name when they ask for a change.
            await self.announce(partitions, partitions)

    async def elect_leaderless(self) -> None:
        """Where it has changed which elections are allowed."""
        found: list[tuple[TopicContext, list[int]]] = []
        for topic in self._core.context.served_topics():
            numbers = [number for number, known in topic.states.items() if known.state.leader == NO_BROKER]
            if numbers:
                found.append((topic, numbers))
        if found:
            await self.elect(found)

    async def announce(
        self, concerned: Sequence[tuple[TopicContext, list[int]]], changed: Sequence[tuple[TopicContext, list[int]]]
    ) -> None:
        """New states to their replicas, and then to everybody."""
        core = self._core
        self._creations.leaders_changed(changed)
        for is_new in (True, False):
            parts = [
                (topic, [number for number in numbers if (core.makings.of(topic.name, number) is not None) == is_new])
                for topic, numbers in changed
            ]
            await core.lead(parts, is_new=is_new)
        await core.show(concerned)
