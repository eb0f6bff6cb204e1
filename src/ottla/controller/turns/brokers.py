"""The controller's turns over which brokers live, and over the tree as a whole."""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Set as AbstractSet

from ottla.controller.announcing.receiver import Receiver
from ottla.controller.core import ControllerCore, log
from ottla.controller.deciding.audience import live_brokers
from ottla.controller.deciding.context import ClusterContext, TopicContext
from ottla.controller.loading import load_broker_configs, load_brokers, load_group_configs, load_topics
from ottla.controller.turns.answers import AnswerTurns
from ottla.controller.turns.creating import CreationTurns
from ottla.controller.turns.deleting import DeletionTurns
from ottla.metadata.updates import BrokerEndpoints
from ottla.model import BrokerId
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
        receivers: Receivers,
    ) -> None:
        self._core = core
        self._creations = creations
        self._deletions = deletions
        self._answers = answers
        self._receivers = receivers

    async def take_over(self, *, new_epochs: bool = False) -> None:
        """Reads the tree, brings it in order, and announces to brokers what it holds."""
        core, coordination = self._core, self._core.coordination
        before = core.context
        context = ClusterContext(before.cluster_id, before.controller_epoch, failed_replicas=before.failed_replicas)
        context.brokers = await load_brokers(coordination)
        context.broker_configs = await load_broker_configs(coordination)
        context.group_configs = await load_group_configs(coordination)
        await load_topics(coordination, context)
        core.context = context
        core.stale = False
        self._connect()
        await self._deletions.mark_undone()
        self._deletions.go_on()
        await self._creations.complete()
        served = [(topic, list(topic.replicas)) for topic in context.served_topics()]
        await core.elect(served, new_epochs=new_epochs)
        self._creations.reloaded()
        await core.announce_all(list(context.brokers))
        await self._creations.finish_settled()
        await self._deletions.finish()

    async def brokers_changed(self) -> None:
        """Some came, or are gone, or came back under another registration: these know nothing any more."""
        core, context = self._core, self._core.context
        before, context.brokers = context.brokers, await load_brokers(core.coordination)
        new, gone = self._connect()
        if not new and not gone:
            return
        log.info("brokers have changed", new=sorted(new), gone=sorted(gone), live=len(context.brokers))
        context.failed_replicas = {replica for replica in context.failed_replicas if replica[2] not in new | gone}
        core.announcer.announce([live_brokers(context)])
        lost = before.keys() - context.brokers.keys()
        await self._answers.elect(await core.do(_concerned(context, lost | new)))
        await core.announce_all(sorted(new))
        await self._creations.finish_settled()
        await self._deletions.finish()

    def _connect(self) -> tuple[set[BrokerId], set[BrokerId]]:
        """Announces to live brokers from now on, and to the others no more. Returns who is new, and who is gone."""
        announcer, live = self._core.announcer, self._core.context.brokers
        known = dict(announcer.brokers)
        gone = {broker for broker, epoch in known.items() if broker not in live or live[broker].epoch != epoch}
        for broker in sorted(gone):
            announcer.disconnect(broker)
            self._deletions.broker_gone(broker)
        new = {broker for broker in live if broker not in known or broker in gone}
        for broker in sorted(new):
            announcer.connect(broker, live[broker].epoch, self._receivers(live[broker]))
        return new, gone


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
