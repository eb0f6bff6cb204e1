"""This broker as a controller: it stands for election with its session, and is one or not.

    stand ──> another one is it ──(its node goes)──> compete again
      │                                                 │
      └──────> won: a tenure begins <───────────────────┘
                      │ its node is gone, its session is over, another epoch is in the tree
                      └──> the tenure ends at once; with a session that lives the broker competes again

One broker alone wins at once. A session that has ended is not taken up again: the owner of sessions opens another one,
registers the broker with it, and has it stand.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

from ottla.controller.core import log
from ottla.controller.deciding.context import ClusterContext, Memory
from ottla.controller.deciding.rules import ControllerSettings
from ottla.controller.electing.controllership import ControllerClaim, compete, holds
from ottla.controller.interface import (
    ConfigChanges,
    ConfigOverrides,
    ConfigResult,
    DeletedTopic,
    ElectionKind,
    FeatureUpdate,
    IsrChange,
    IsrResult,
    NewPartitions,
    OngoingReassignment,
    PartitionResult,
    ProducerIdRange,
    Reassignment,
    ShutdownAnswer,
    TopicCreation,
    TopicRef,
    TopicResult,
    TopicToCreate,
)
from ottla.controller.loading import OnDamage, leave_alone, refuse
from ottla.controller.numbers import ControllerNumbers
from ottla.controller.requests import ControllerRequests
from ottla.controller.tenure import Tenure
from ottla.controller.turns.brokers import Receivers
from ottla.coordination.errors import SessionClosed, SessionExpired
from ottla.coordination.interface import Coordination, SessionEvent, WatchEvent
from ottla.model import BrokerId, ErrorCode, TopicId, TopicPartition
from ottla.ports.clock import Clock
from ottla.ports.entropy import Entropy
from ottla.steps import is_stray

#: Between two tries to become the controller, where the tree does not answer, or what it holds cannot be read.
_AGAIN_S: Final = 1.0


class ClusterController:
    """Implements `Controller`."""

    def __init__(
        self,
        coordination: Coordination,
        clock: Clock,
        entropy: Entropy,
        receivers: Receivers,
        settings: ControllerSettings,
        memory: Memory,
    ) -> None:
        """`memory` is what this broker knows: a new tenure has nothing else for nodes that it cannot read."""
        self._coordination = coordination
        self._clock = clock
        self._entropy = entropy
        self._receivers = receivers
        self._settings = settings
        self._memory = memory
        self.numbers = ControllerNumbers()
        #: Something has happened to the controller's node, or to the tenure.
        self._changed = asyncio.Event()
        self._standing: asyncio.Task[None] | None = None
        #: Tenures that have ended, whose last turns and calls go on.
        self._ending: set[asyncio.Task[None]] = set()
        self.tenure = self._new_tenure()
        self._requests = ControllerRequests(self.tenure)

    @property
    def active(self) -> bool:
        return self.tenure.active

    @property
    def context(self) -> ClusterContext:
        """For metrics and tests; it is the controller's own."""
        return self.tenure.core.context

    def topic_name(self, topic_id: TopicId) -> str | None:
        return self.context.names.get(topic_id)

    def broker_epoch(self, broker: BrokerId) -> int | None:
        known = self.context.brokers.get(broker)
        return None if known is None else known.epoch

    def _new_tenure(self) -> Tenure:
        return Tenure(
            self._coordination,
            self._clock,
            self._entropy,
            self._receivers,
            self._settings,
            self.numbers,
            self._memory,
            lambda: self._changed.set(),
        )

    # Standing for election.

    async def stand(self, coordination: Coordination | None = None) -> None:
        """Stands for election from now on, with this session in the place of an earlier one.

        Returns when the broker is the controller and has taken on what it was announced, or when another one is. What
        hinders the first of these is raised; from then on it is tried again for as long as the session lasts.
        """
        await self._stand_down("the broker has another session")
        if coordination is not None:
            self._coordination = coordination
        session = self._coordination
        session.listen(lambda event: self._session_event(session, event))
        await self._compete(refuse)
        if self.tenure.lost is None:
            await self.tenure.confirmed()
        self._standing = asyncio.get_running_loop().create_task(self._stand())

    async def stop(self) -> None:
        """Lets the turn and the calls under way finish. What the broker put into the tree goes with its session."""
        await self._stand_down(None)
        await self.tenure.stop()

    async def _stand_down(self, why: str | None) -> None:
        standing, self._standing = self._standing, None
        if standing is not None:
            standing.cancel()
            await asyncio.wait([standing])
        if why is not None:
            self.tenure.resign(why)
        if self._ending:
            await asyncio.wait(self._ending)

    def _session_event(self, session: Coordination, event: SessionEvent) -> None:
        if event is SessionEvent.EXPIRED and session is self._coordination:
            self.tenure.resign("the session with the coordination tree is over")
            self._changed.set()

    def _node_changed(self, _: WatchEvent) -> None:
        self._changed.set()

    async def _stand(self) -> None:
        """Until the session is over."""
        while True:
            await self._changed.wait()
            try:
                await self._look()
            except (SessionExpired, SessionClosed):
                return
            except (Exception, asyncio.CancelledError) as fault:
                if isinstance(fault, asyncio.CancelledError) and not is_stray(fault):
                    raise
                # A tree that does not answer, or holds what this broker cannot read: another one may.
                log.error(
                    "this broker could not stand for controller, and tries again", fault=str(fault) or repr(fault)
                )
                self._changed.set()
                await asyncio.sleep(_AGAIN_S)

    async def _look(self) -> None:
        self._changed.clear()
        if self.tenure.lost is None:
            if await holds(self._coordination, self._node_changed):
                return
            self.tenure.resign("another broker is the controller, or nobody")
        await self._compete(leave_alone)

    async def _compete(self, on_damage: OnDamage) -> None:
        self._changed.clear()
        session = self._coordination
        claim = await compete(session, self._settings.broker_id, self._clock.wall_ms(), self._node_changed)
        if claim is None:
            return
        # What this has done itself has called the watch.
        self._changed.clear()
        if not await holds(session, self._node_changed):
            self._changed.set()
            return
        await self._begin(claim, on_damage)

    async def _begin(self, claim: ControllerClaim, on_damage: OnDamage) -> None:
        self._bury(self.tenure)
        tenure = self.tenure = self._new_tenure()
        self._requests = ControllerRequests(tenure)
        try:
            await tenure.begin(claim, on_damage)
        except BaseException as fault:
            tenure.resign(f"it could not begin: {fault}")
            raise

    def _bury(self, tenure: Tenure) -> None:
        """Its last turn ends without anybody waiting for it: what it writes is refused."""
        ending = asyncio.get_running_loop().create_task(tenure.stop())
        self._ending.add(ending)
        ending.add_done_callback(self._ending.discard)

    # What may be asked for, of the tenure that there is.

    async def create_topics(
        self, topics: Sequence[TopicToCreate], *, validate_only: bool = False, timeout_ms: int | None = None
    ) -> list[TopicCreation]:
        return await self._requests.create_topics(topics, validate_only=validate_only, timeout_ms=timeout_ms)

    async def delete_topics(self, topics: Sequence[TopicRef], *, timeout_ms: int | None = None) -> list[DeletedTopic]:
        return await self._requests.delete_topics(topics, timeout_ms=timeout_ms)

    async def create_partitions(
        self, topics: Sequence[NewPartitions], *, validate_only: bool = False, timeout_ms: int | None = None
    ) -> list[TopicResult]:
        return await self._requests.create_partitions(topics, validate_only=validate_only, timeout_ms=timeout_ms)

    async def alter_configs(
        self, resources: Sequence[ConfigChanges | ConfigOverrides], *, validate_only: bool = False
    ) -> list[ConfigResult]:
        return await self._requests.alter_configs(resources, validate_only=validate_only)

    async def allocate_producer_ids(self, broker_id: BrokerId) -> ProducerIdRange:
        return await self._requests.allocate_producer_ids(broker_id)

    async def alter_isr(
        self, broker_id: BrokerId, changes: Sequence[IsrChange], *, broker_epoch: int = -1
    ) -> list[IsrResult]:
        return await self._requests.alter_isr(broker_id, changes, broker_epoch=broker_epoch)

    async def shut_down(self, broker_id: BrokerId, broker_epoch: int) -> ShutdownAnswer:
        return await self._requests.shut_down(broker_id, broker_epoch)

    async def elect_leaders(
        self, kind: ElectionKind, partitions: Sequence[TopicPartition] | None, *, timeout_ms: int | None = None
    ) -> tuple[ErrorCode, list[PartitionResult]]:
        return await self._requests.elect_leaders(kind, partitions, timeout_ms=timeout_ms)

    async def alter_reassignments(
        self, changes: Sequence[Reassignment], *, timeout_ms: int | None = None
    ) -> tuple[ErrorCode, list[PartitionResult]]:
        return await self._requests.alter_reassignments(changes, timeout_ms=timeout_ms)

    async def reassignments(
        self, partitions: Sequence[TopicPartition] | None
    ) -> tuple[ErrorCode, list[OngoingReassignment]]:
        return await self._requests.reassignments(partitions)

    async def update_features(
        self, updates: Sequence[FeatureUpdate], *, validate_only: bool = False, timeout_ms: int | None = None
    ) -> tuple[ErrorCode, str | None]:
        return await self._requests.update_features(updates, validate_only=validate_only, timeout_ms=timeout_ms)

    async def replicas_failed(self, broker_id: BrokerId, partitions: Sequence[TopicPartition]) -> ErrorCode:
        return await self._requests.replicas_failed(broker_id, partitions)

    async def replicas_recovered(self, broker_id: BrokerId, partitions: Sequence[TopicPartition]) -> ErrorCode:
        return await self._requests.replicas_recovered(broker_id, partitions)
