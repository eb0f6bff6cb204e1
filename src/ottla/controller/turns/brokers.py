"""The controller's turns over which brokers live, and over the tree as a whole.

A broker that registered again has another epoch. Where nobody saw it gone between, it has died all the same, and is
treated as a death and a birth: what it was sent before it knows no more, and records may be gone that no flush had made
certain. A new controller knows nobody's former epochs; for it the tree's transactions say it: a broker that registered
after a partition's state was written is not the one whom that state counts on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from typing import NamedTuple

from ottla.controller.announcing.receiver import Receiver
from ottla.controller.core import ControllerCore, log
from ottla.controller.deciding.audience import live_brokers
from ottla.controller.deciding.context import ClusterContext, Memory, TopicContext
from ottla.controller.deciding.elections import AfterChange, lead_anew
from ottla.controller.loading import (
    OnDamage,
    leave_alone,
    load_broker_configs,
    load_brokers,
    load_group_configs,
    load_topics,
)
from ottla.controller.turns.answers import AnswerTurns
from ottla.controller.turns.creating import CreationTurns
from ottla.controller.turns.deleting import DeletionTurns
from ottla.controller.turns.reassigning import ReassignmentTurns
from ottla.coordination.interface import Watch
from ottla.metadata.updates import BrokerEndpoints
from ottla.model import BrokerId, TopicPartition
from ottla.steps import Steps, pieces

#: How a broker is reached.
Receivers = Callable[[BrokerEndpoints], Receiver]


class BrokerTurns:
    def __init__(
        self,
        core: ControllerCore,
        creations: CreationTurns,
        deletions: DeletionTurns,
        answers: AnswerTurns,
        reassignments: ReassignmentTurns,
        receivers: Receivers,
        memory: Memory,
    ) -> None:
        self._core = core
        self._creations = creations
        self._deletions = deletions
        self._answers = answers
        self._reassignments = reassignments
        self._receivers = receivers
        #: What nodes said that cannot be read any more. Each reading of the tree renews it; until the first one it is
        #: what former controllers told this broker.
        self._memory = memory
        #: Brokers as they were when they were last connected to.
        self._reached: dict[BrokerId, BrokerEndpoints] = {}
        #: Brokers that were seen dead, and whose partitions may not all be led without them yet: one of them that is
        #: back is not what it was, whatever the tree says of when its partitions' states were written.
        self._dead: set[BrokerId] = set()
        #: Left on registrations, and on topics and their list.
        self.broker_watch: Watch | None = None
        self.topic_watch: Watch | None = None

    async def take_over(self, *, new_epochs: bool = False, on_damage: OnDamage = leave_alone) -> None:
        """Reads the tree, brings it in order, and announces to brokers what it holds."""
        core, coordination = self._core, self._core.coordination
        before = core.context
        context = ClusterContext(
            before.cluster_id,
            before.controller_epoch,
            shutting_down=before.shutting_down,
            failed_replicas=before.failed_replicas,
        )
        found = await load_brokers(coordination, self.broker_watch, on_damage)
        memory = self._memory
        context.broker_configs = await load_broker_configs(coordination, on_damage, memory)
        context.group_configs = await load_group_configs(coordination, on_damage, memory)
        await load_topics(coordination, context, self.topic_watch, on_damage, memory)
        await self._deletions.refuse_marks(context)
        core.context = self._memory = context
        core.stale = False
        core.unreadable = {
            TopicPartition(topic.name, number) for topic in context.served_topics() for number in topic.damaged
        }
        bounced = _bounced(core.announcer.brokers, found) | (self._dead & found.keys())
        served = [(topic, list(topic.replicas)) for topic in context.served_topics()]
        if bounced:
            context.brokers = {broker: known for broker, known in found.items() if broker not in bounced}
            await core.elect(served)
        context.brokers = found
        await self._elect_without_reborn()
        self._connect()
        await self._deletions.mark_undone()
        self._deletions.go_on()
        await self._creations.complete(context.served_topics())
        settings = core.settings
        unclean = settings.unclean_leader_election
        await core.elect(served, AfterChange(settings.broker_id, unclean_default=unclean, new_epochs=new_epochs))
        self._dead.clear()
        self._creations.reloaded()
        await core.announce_all(list(context.brokers))
        await self._reassignments.go_on(self._reassignments.ongoing())
        await self._reassignments.tidy()
        await self._creations.finish_settled()
        await self._deletions.finish()

    async def _elect_without_reborn(self) -> None:
        """Takes those out of in-sync sets that have come back since, and whom no controller has seen go.

        Where nobody else is left of a set, they are all that there is. Its leader leads on in the next leader epoch:
        what it wrote in this one, and lost with its power, other brokers may have, which find out by that.
        """
        core, failed = self._core, self._core.context.failed_replicas
        reborn, leaders = await core.do(_reborn(core.context))
        reborn -= failed
        if reborn:
            log.warning(
                "brokers have registered again unseen", replicas=len(reborn), brokers=sorted({r[2] for r in reborn})
            )
            failed |= reborn
            topics = core.context.topics
            try:
                await core.elect([(topics[name], [number]) for name, number in sorted({each[:2] for each in reborn})])
            finally:
                failed -= reborn
        if leaders:
            await core.elect(leaders, lead_anew)

    async def brokers_changed(self) -> None:
        """Some came, or are gone, or came back under another registration: these know nothing any more."""
        core, context = self._core, self._core.context
        found = await load_brokers(core.coordination, self.broker_watch, leave_alone)
        before = context.brokers
        dead = {broker for broker, known in before.items() if broker not in found} | _bounced(
            {broker: known.epoch for broker, known in before.items()}, found
        )
        context.brokers = {broker: found[broker] for broker in before if broker not in dead}
        self._dead |= dead
        if dead:
            log.info("brokers are gone", brokers=sorted(dead), live=len(context.brokers))
            self._connect()
            core.announcer.announce([live_brokers(context)])
            await self._answers.elect(await core.do(_concerned(context, dead)))
        if not core.stale:
            self._dead.clear()
        context.brokers = found
        new, _ = self._connect()
        moved = {broker for broker in new & before.keys() if broker not in dead}
        if new:
            log.info("brokers have come", brokers=sorted(new), live=len(context.brokers))
            core.announcer.announce([live_brokers(context)])
            concerned = await core.do(_concerned(context, new - moved))
            await self._creations.complete([topic for topic, _ in concerned])
            await self._answers.elect(concerned)
            await core.announce_all(sorted(new))
            await self._reassignments.go_on(concerned)
        await self._creations.finish_settled()
        await self._deletions.finish()

    def _connect(self) -> tuple[set[BrokerId], set[BrokerId]]:
        """Announces to live brokers from now on, and to the others no more. Returns who is new, and who is gone."""
        core, context = self._core, self._core.context
        announcer, live = core.announcer, context.brokers
        known = dict(announcer.brokers)
        gone = {broker for broker in known if broker not in live} | _bounced(known, live)
        # At the same place, and under the same registration, with other listeners.
        moved = {broker for broker in known.keys() - gone if self._reached.get(broker) != live[broker]}
        for broker in sorted(gone | moved):
            announcer.disconnect(broker)
        for broker in sorted(gone):
            self._deletions.broker_gone(broker)
        new = {broker for broker in live if broker not in known} | (gone & live.keys()) | moved
        for broker in sorted(new):
            self._deletions.broker_is_back(broker)
            announcer.connect(broker, live[broker].epoch, self._receivers(live[broker]))
        self._reached = dict(live)
        if gone or new - moved:
            changed = gone | new - moved
            context.shutting_down -= changed
            context.failed_replicas = {replica for replica in context.failed_replicas if replica[2] not in changed}
        return new, gone


def _bounced(known: Mapping[BrokerId, int], found: Mapping[BrokerId, BrokerEndpoints]) -> set[BrokerId]:
    """Brokers that have registered again."""
    return {broker for broker, epoch in known.items() if broker in found and found[broker].epoch != epoch}


class _Reborn(NamedTuple):
    """Who registered after a partition's state was written."""

    #: Members of in-sync sets, where others of the set did not.
    members: set[tuple[str, int, BrokerId]]
    #: Partitions whose leaders did, and all others that are left of the set.
    leaders: list[tuple[TopicContext, list[int]]]


def _reborn(context: ClusterContext) -> Steps[_Reborn]:
    found = _Reborn(set(), [])
    for topic in context.served_topics():
        for piece in pieces(topic.states.items()):
            for number, known in piece:
                written = topic.written.get(number)
                if written is None:
                    continue
                live = context.live_replicas(topic.name, number, known.state.isr)
                younger = [broker for broker in live if context.brokers[broker].epoch > written]
                if younger and len(younger) < len(live):
                    found.members.update((topic.name, number, broker) for broker in younger)
                elif known.state.leader in younger and len(topic.replicas[number]) > 1:
                    found.leaders.append((topic, [number]))
            yield
    return found


def _concerned(context: ClusterContext, brokers: AbstractSet[BrokerId]) -> Steps[list[tuple[TopicContext, list[int]]]]:
    """Partitions with a replica there."""
    found: list[tuple[TopicContext, list[int]]] = []
    for topic in context.served_topics():
        numbers: list[int] = []
        for piece in pieces(topic.replicas.items()):
            numbers += [number for number, replicas in piece if not brokers.isdisjoint(replicas)]
            yield
        if numbers:
            found.append((topic, numbers))
    return found
