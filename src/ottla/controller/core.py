"""What the controller's turns share: the context, the way into the tree, and the way out to brokers.

The order is the same everywhere: the tree first, then the context, then those whose work it is, then the metadata that
clients see. A turn that fails on the way leaves `stale` set, and the next one begins by reading the tree again.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Final, NamedTuple, TypeVar

from ottla import logs
from ottla.controller.context import ClusterContext, TopicContext, VersionedState
from ottla.controller.elections import after_change
from ottla.controller.interface import Announcements
from ottla.controller.rules import ControllerSettings
from ottla.controller.writing import ControllerWrites
from ottla.coordination.interface import Coordination, Op, SetData
from ottla.coordination.znodes import LeaderAndIsr, encode_state, state_path
from ottla.metadata.updates import MetadataUpdate, PartitionState
from ottla.model import Epoch, ErrorCode, TopicPartition
from ottla.ports.clock import Clock
from ottla.ports.entropy import Entropy
from ottla.steps import Steps, in_turns, pieces

log = logs.logger("controller")

T = TypeVar("T")


#: Logs that are made before others are let pass: some 50 ms, or a second where the disk is slow.
REPLICAS_AT_ONCE: Final = 250


async def _nobody_waits() -> None:
    pass


class _Election(NamedTuple):
    topic: TopicContext
    partition: int
    #: With the version of the state before.
    after: VersionedState
    ops: list[Op]


class ControllerCore:
    def __init__(
        self,
        coordination: Coordination,
        clock: Clock,
        entropy: Entropy,
        announcements: Announcements,
        settings: ControllerSettings,
    ) -> None:
        self.coordination = coordination
        self._clock = clock
        self.entropy = entropy
        self.announcements = announcements
        self.settings = settings
        self.context = ClusterContext()
        #: Until the controller is claimed nothing gets through.
        self.writes = ControllerWrites(coordination, -2)
        #: The context may not be what the tree holds.
        self.stale = True
        #: Has small creations done that wait: for the middle of a long turn.
        self.let_pass: Callable[[], Awaitable[None]] = _nobody_waits
        #: Topics that were refused when they were in the tree already, and are to go from there.
        self.undone: set[str] = set()

    async def do(self, steps: Steps[T]) -> T:
        """Long work of a turn. Nothing else changes the context meanwhile: there is one turn at a time."""
        return await in_turns(steps, self._clock.monotonic_ms)

    # Announcing to brokers.

    async def update(
        self,
        *,
        partitions: Sequence[PartitionState] = (),
        topics_deleted: Sequence[str] = (),
        topic_configs: Mapping[str, Mapping[str, str]] | None = None,
        broker_configs: Mapping[str, Mapping[str, str]] | None = None,
        group_configs: Mapping[str, Mapping[str, str]] | None = None,
    ) -> None:
        await self.announcements.on_metadata_update(
            MetadataUpdate(
                controller_epoch=self.context.controller_epoch,
                partitions=partitions,
                topics_deleted=topics_deleted,
                topic_configs=topic_configs or {},
                broker_configs=broker_configs or {},
                group_configs=group_configs or {},
            )
        )

    async def announce_all(self) -> None:
        """Everything, to a broker that knows nothing, or something older."""
        context = self.context
        topics = list(context.served_topics())
        whole = {
            "controller_epoch": context.controller_epoch,
            "cluster_id": context.cluster_id,
            "controller_id": self.settings.broker_id,
            "brokers": list(context.brokers.values()),
            "topic_configs": {topic.name: dict(topic.configs) for topic in topics},
            "broker_configs": {broker: dict(overrides) for broker, overrides in context.broker_configs.items()},
            "group_configs": {group: dict(overrides) for group, overrides in context.group_configs.items()},
        }
        await self.announcements.on_metadata_update(MetadataUpdate(**whole))  # type: ignore[arg-type]
        await self.lead([(topic, list(topic.replicas)) for topic in topics])
        states = await self.do(context.states_of((topic, topic.replicas) for topic in topics))
        update = MetadataUpdate(**whole, whole=True, partitions=states)  # type: ignore[arg-type]
        await self.announcements.on_metadata_update(update)

    async def lead(
        self, partitions: Sequence[tuple[TopicContext, Iterable[int]]], *, is_new: bool = False
    ) -> list[TopicPartition]:
        """Has this broker take on the roles of its replicas; what it cannot is led by others, or by nobody.

        Returns what nobody can lead. Of what is new that is not in the tree yet: the caller decides what becomes of it.
        """
        context, broker_id = self.context, self.settings.broker_id
        here = (
            (
                topic,
                [
                    partition
                    for partition in numbers
                    if context.is_live(topic.name, partition, broker_id) and broker_id in topic.replicas[partition]
                ],
            )
            for topic, numbers in partitions
        )
        states = await self.do(context.states_of(here, is_new=is_new))
        if not states:
            return []
        if is_new and len(states) > REPLICAS_AT_ONCE:
            await self._make_logs(states)
        answers = await self.announcements.on_leader_and_isr(states)
        failed = [tp for tp, error in answers.items() if error is not ErrorCode.NONE]
        if failed:
            log.warning("replicas could not be opened", count=len(failed), first=str(failed[0]))
            context.failed_replicas.update((tp.topic, tp.partition, broker_id) for tp in failed)
            failed = [tp for tp in failed if tp.topic in context.topics]
        dead = [tp for tp in failed if not context.live_replicas(*tp, context.topics[tp.topic].replicas[tp.partition])]
        others = [tp for tp in failed if not is_new or tp not in dead]
        await self.elect((context.topics[tp.topic], [tp.partition]) for tp in others)
        return dead

    async def _make_logs(self, states: Sequence[PartitionState]) -> None:
        """In pieces with others between, since it may take the disk seconds. What fails, fails again with its role."""
        for piece in pieces(states, REPLICAS_AT_ONCE):
            if not await self.announcements.on_new_replicas(piece):
                return
            await self.let_pass()

    # Elections.

    async def elect(
        self, partitions: Iterable[tuple[TopicContext, Iterable[int]]], *, new_epochs: bool = False
    ) -> list[tuple[TopicContext, int]]:
        """Gives partitions whose leader is gone another one, or none; returns those that changed.

        With `new_epochs` leaders stay, under a new epoch.
        """
        changes = await self.do(self._elections(partitions, new_epochs=new_epochs))
        outcomes = await self.writes.write([change.ops for change in changes])
        changed: list[tuple[TopicContext, int]] = []
        for (topic, partition, after, _), fault in zip(changes, outcomes, strict=True):
            if fault is None:
                topic.states[partition] = VersionedState(after.state, after.version + 1)
                changed.append((topic, partition))
            else:
                log.warning("an election was not written", topic=topic.name, partition=partition, fault=str(fault))
                self.stale = True
        return changed

    def _elections(
        self, partitions: Iterable[tuple[TopicContext, Iterable[int]]], *, new_epochs: bool
    ) -> Steps[list[_Election]]:
        epoch = self.context.controller_epoch
        found: list[_Election] = []
        for topic, numbers in partitions:
            for partition in numbers:
                known = topic.states.get(partition)
                if known is None:
                    continue
                after = self._elected(topic, partition, known.state)
                if after is None and new_epochs:
                    after = known.state._replace(
                        leader_epoch=Epoch(known.state.leader_epoch + 1), controller_epoch=epoch
                    )
                if after is not None:
                    op = SetData(state_path(topic.name, partition), encode_state(after), known.version)
                    found.append(_Election(topic, partition, VersionedState(after, known.version), [op]))
                yield
        return found

    def _elected(self, topic: TopicContext, partition: int, state: LeaderAndIsr) -> LeaderAndIsr | None:
        replicas = topic.replicas[partition]
        live = self.context.live_replicas(topic.name, partition, {*replicas, *state.isr})
        default = "true" if self.settings.unclean_leader_election else "false"
        unclean = topic.configs.get("unclean.leader.election.enable", default).strip().lower() == "true"
        return after_change(state, replicas, live, self.context.controller_epoch, unclean=unclean)
