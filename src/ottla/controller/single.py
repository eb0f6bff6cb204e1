"""The controller of one broker that is alone: it claims the cluster at start, and decides by itself.

It is the cluster's controller in everything but elections of controllers: same tree, same order of writes, same
announcements, and every write is conditional on its epoch. What cannot be known after a failed write is read again.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from ottla.controller import identity
from ottla.controller.context import ClusterContext
from ottla.controller.core import ControllerCore, log
from ottla.controller.creation import is_small
from ottla.controller.events import EventQueue
from ottla.controller.interface import (
    Announcements,
    ConfigChanges,
    ConfigOverrides,
    ConfigResult,
    DeletedTopic,
    IsrChange,
    IsrResult,
    NewPartitions,
    ProducerIdRange,
    TopicCreation,
    TopicRef,
    TopicResult,
    TopicToCreate,
)
from ottla.controller.leadership import LeadershipTurns
from ottla.controller.loading import load_broker_configs, load_brokers, load_group_configs, load_topics
from ottla.controller.overrides import OverrideTurns
from ottla.controller.refusal import Refusal
from ottla.controller.registration import claim_controller, register_broker
from ottla.controller.rules import ControllerSettings
from ottla.controller.topics import TopicTurns
from ottla.controller.writing import ControllerMoved, ControllerWrites
from ottla.coordination.errors import ConnectionLoss, CoordinationError, SessionClosed, SessionExpired, WriteRefused
from ottla.coordination.interface import Coordination
from ottla.coordination.znodes import BrokerRegistration
from ottla.model import BrokerId, ErrorCode, TopicPartition
from ottla.ports.clock import Clock
from ottla.ports.entropy import Entropy

T = TypeVar("T")


class SingleController:
    """Implements `Controller`."""

    def __init__(
        self,
        coordination: Coordination,
        clock: Clock,
        entropy: Entropy,
        announcements: Announcements,
        settings: ControllerSettings,
    ) -> None:
        self._coordination = coordination
        self._clock = clock
        self._settings = settings
        self._core = ControllerCore(coordination, clock, entropy, announcements, settings)
        self._topics = TopicTurns(self._core)
        self._overrides = OverrideTurns(self._core)
        self._leadership = LeadershipTurns(self._core)
        self._events = EventQueue(clock.monotonic_ms)
        self._core.let_pass = self._let_pass
        #: Why this broker is no controller any more.
        self._lost: str | None = None

    @property
    def active(self) -> bool:
        return self._lost is None and not self._core.stale

    @property
    def context(self) -> ClusterContext:
        """For metrics and tests; it is the controller's own."""
        return self._core.context

    async def start(self) -> None:
        """Registers the broker, takes the controller's place, finishes what was begun, and announces everything.

        Raises CoordinationError: BrokerIdInUse, ControllerElsewhere, DamagedZnode.
        """
        core, settings = self._core, self._settings
        now_ms = self._clock.wall_ms()
        core.context.cluster_id = await identity.cluster_id(self._coordination, core.entropy)
        registration = BrokerRegistration(settings.endpoints, settings.rack, now_ms)
        await register_broker(self._coordination, settings.broker_id, registration)
        claim = await claim_controller(self._coordination, settings.broker_id, now_ms)
        core.context.controller_epoch = claim.epoch
        core.writes = ControllerWrites(self._coordination, claim.epoch_version)
        await self._take_over(new_epochs=settings.new_leader_epochs)
        self._events.start()
        log.info("the controller is active", epoch=claim.epoch, topics=len(core.context.topics))

    async def stop(self) -> None:
        """Lets the request under way finish. What the broker put into the tree goes with its session."""
        await self._events.stop()

    async def _take_over(self, *, new_epochs: bool = False) -> None:
        """Reads the tree, brings it in order, and announces to brokers what it holds."""
        core = self._core
        before = core.context
        context = ClusterContext(before.cluster_id, before.controller_epoch, failed_replicas=before.failed_replicas)
        context.brokers = await load_brokers(self._coordination)
        context.broker_configs = await load_broker_configs(self._coordination)
        context.group_configs = await load_group_configs(self._coordination)
        await load_topics(self._coordination, context)
        core.context = context
        core.stale = False
        await self._topics.mark_undone()
        if context.deleting:
            await self._topics.finish_deletions(sorted(context.deleting))
        await self._topics.complete()
        served = [(topic, list(topic.replicas)) for topic in context.served_topics()]
        await core.elect(served, new_epochs=new_epochs)
        await core.announce_all()

    # Turns.

    async def _turn(self, work: Callable[[], Awaitable[T]]) -> T:
        if self._lost is not None:
            raise Refusal(ErrorCode.NOT_CONTROLLER, self._lost)
        try:
            if self._core.stale:
                await self._take_over()
            return await work()
        except CoordinationError as error:
            self._core.stale = True
            raise self._refusal(error) from error
        except Refusal:
            raise
        except Exception as error:
            # A fault of ours: the caller gets an error, and the next turn starts from the tree.
            self._core.stale = True
            log.error("a turn of the controller failed", fault=repr(error))
            raise Refusal(ErrorCode.UNKNOWN_SERVER_ERROR, repr(error)) from error
        except BaseException:
            # The turn ended in its middle: something that it waited for was cancelled.
            self._core.stale = True
            raise

    def _refusal(self, error: CoordinationError) -> Refusal:
        if isinstance(error, SessionExpired | SessionClosed | ControllerMoved):
            self._lost = str(error)
            log.error("this broker is no longer the controller", why=self._lost)
            return Refusal(ErrorCode.NOT_CONTROLLER, self._lost)
        log.warning("a write to the tree failed", fault=str(error))
        # Answers say nothing about this machine: where its files are stands in the log.
        if isinstance(error, WriteRefused):
            return Refusal(ErrorCode.KAFKA_STORAGE_ERROR, "The controller has no room to write: nothing was changed.")
        if isinstance(error, ConnectionLoss):
            message = "The controller does not know whether the change was written: look at it before trying again."
            return Refusal(ErrorCode.REQUEST_TIMED_OUT, message)
        return Refusal(ErrorCode.UNKNOWN_SERVER_ERROR, str(error))

    async def _run(
        self, work: Callable[[], Awaitable[T]], timeout_ms: int | None = None, *, may_pass: bool = False
    ) -> T | Refusal:
        try:
            return await self._events.run(lambda: self._turn(work), timeout_ms, may_pass=may_pass)
        except Refusal as refusal:
            return refusal

    async def _let_pass(self) -> None:
        # A turn that finds the context stale reads all of it again, under the feet of the one that lets it pass.
        await self._events.let_pass(lambda: not self._core.stale)

    # What may be asked for.

    async def create_topics(
        self, topics: Sequence[TopicToCreate], *, validate_only: bool = False, timeout_ms: int | None = None
    ) -> list[TopicCreation]:
        done = await self._run(
            lambda: self._topics.create(topics, validate_only=validate_only),
            timeout_ms,
            may_pass=is_small(topics, self._settings),
        )
        if isinstance(done, Refusal):
            return [TopicCreation(topic.name, done.error, done.message) for topic in topics]
        return done

    async def delete_topics(self, topics: Sequence[TopicRef], *, timeout_ms: int | None = None) -> list[DeletedTopic]:
        done = await self._run(lambda: self._topics.delete(topics), timeout_ms)
        if isinstance(done, Refusal):
            return [DeletedTopic(topic.name, topic.id, done.error, done.message) for topic in topics]
        return done

    async def create_partitions(
        self, topics: Sequence[NewPartitions], *, validate_only: bool = False, timeout_ms: int | None = None
    ) -> list[TopicResult]:
        done = await self._run(lambda: self._topics.grow(topics, validate_only=validate_only), timeout_ms)
        if isinstance(done, Refusal):
            return [TopicResult(topic.topic, done.error, done.message) for topic in topics]
        return done

    async def alter_configs(
        self, resources: Sequence[ConfigChanges | ConfigOverrides], *, validate_only: bool = False
    ) -> list[ConfigResult]:
        done = await self._run(lambda: self._overrides.alter(resources, validate_only=validate_only))
        if isinstance(done, Refusal):
            return [ConfigResult(request.resource, done.error, done.message) for request in resources]
        return done

    async def allocate_producer_ids(self, broker_id: BrokerId) -> ProducerIdRange:
        done = await self._run(lambda: self._leadership.allocate_producer_ids(broker_id))
        return ProducerIdRange(0, 0, done.error, done.message) if isinstance(done, Refusal) else done

    async def alter_isr(self, broker_id: BrokerId, changes: Sequence[IsrChange]) -> list[IsrResult]:
        done = await self._run(lambda: self._leadership.alter_isr(broker_id, changes))
        return [IsrResult(change.tp, done.error) for change in changes] if isinstance(done, Refusal) else done

    async def replicas_failed(self, broker_id: BrokerId, partitions: Sequence[TopicPartition]) -> ErrorCode:
        done = await self._run(lambda: self._leadership.replicas_failed(broker_id, partitions))
        if isinstance(done, Refusal):
            log.warning("failed replicas could not be recorded", count=len(partitions), fault=done.message)
            return done.error
        return ErrorCode.NONE

    async def replicas_recovered(self, broker_id: BrokerId, partitions: Sequence[TopicPartition]) -> ErrorCode:
        done = await self._run(lambda: self._leadership.replicas_recovered(broker_id, partitions))
        if isinstance(done, Refusal):
            log.warning("recovered replicas could not be recorded", count=len(partitions), fault=done.message)
            return done.error
        return ErrorCode.NONE
