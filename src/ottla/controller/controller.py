"""The controller: one queue of events over the tree, and one announcer to brokers.

A request is a turn, which decides and writes, and often something that goes on behind it: topics are made, or deleted,
by brokers. The request is answered when that has ended too, and meanwhile others have their turns. What cannot be known
after a failed write is read again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Final, TypeVar

from ottla.controller import identity
from ottla.controller.announcing.announcer import Announcer
from ottla.controller.core import ControllerCore, log
from ottla.controller.deciding.context import ClusterContext
from ottla.controller.deciding.refusal import Refusal
from ottla.controller.deciding.rules import ControllerSettings
from ottla.controller.electing.controllership import Controllership
from ottla.controller.events import EVENTS_MAX, EventQueue
from ottla.controller.interface import (
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
from ottla.controller.turns.answers import AnswerTurns
from ottla.controller.turns.brokers import BrokerTurns, Receivers
from ottla.controller.turns.creating import CreationTurns, created
from ottla.controller.turns.deleting import DeletionTurns
from ottla.controller.turns.overrides import OverrideTurns
from ottla.controller.turns.replicas import ReplicaTurns
from ottla.controller.waiting import Work, refused
from ottla.controller.writing import ControllerMoved, ControllerWrites
from ottla.coordination.errors import ConnectionLoss, CoordinationError, SessionClosed, SessionExpired, WriteRefused
from ottla.coordination.interface import Coordination, WatchEvent
from ottla.coordination.znodes import BROKER_IDS
from ottla.model import BrokerId, ErrorCode, TopicPartition
from ottla.ports.clock import Clock
from ottla.ports.entropy import Entropy

T = TypeVar("T")

_TOO_LATE: Final = Refusal(ErrorCode.REQUEST_TIMED_OUT, "The brokers have not finished in time; the change goes on.")
_TOO_MANY: Final = Refusal(ErrorCode.REQUEST_TIMED_OUT, f"{EVENTS_MAX} requests wait for others already.")
#: How soon a turn is tried again that answers of brokers, or their coming and going, asked for.
_AGAIN_S: Final = 5.0
#: A request without a time of its own waits so long for what is done to its topics before it.
_WAIT_MS: Final = 30_000


class ClusterController:
    """Implements `Controller`."""

    def __init__(
        self,
        coordination: Coordination,
        clock: Clock,
        entropy: Entropy,
        receivers: Receivers,
        settings: ControllerSettings,
    ) -> None:
        self._coordination = coordination
        self._clock = clock
        self._settings = settings
        self._announcer = Announcer(self._answers_came, self._announcement_failed)
        core = self._core = ControllerCore(coordination, clock, entropy, self._announcer, settings)
        self._deletions = DeletionTurns(core)
        self._creations = CreationTurns(core, self._deletions)
        self._answers = AnswerTurns(core, self._creations, self._deletions)
        self._brokers = BrokerTurns(core, self._creations, self._deletions, self._answers, receivers)
        self._replicas = ReplicaTurns(core, self._answers)
        self._overrides = OverrideTurns(core)
        self._events = EventQueue(clock.monotonic_ms)
        self._controllership = Controllership(coordination, settings.broker_id, self._resign)
        #: Before that others decide, or nobody does.
        self._is_claimed = False
        #: Whether an event stands in the queue that takes answers, or looks for brokers.
        self._takes_answers = False
        self._looks_for_brokers = False
        #: Requests that wait for what makes or deletes their topics: EVENTS_MAX at most.
        self._behind_others = 0
        #: Until a turn is tried again that nobody waits for.
        self._again: asyncio.TimerHandle | None = None
        #: While the broker takes its first roles on: a call to it that fails ends the start.
        self._starting: asyncio.Future[None] | None = None

    @property
    def active(self) -> bool:
        """Whether this broker has the controller's place. What it is asked for before it has read the tree waits."""
        return self._is_claimed and self._controllership.lost is None

    @property
    def lost(self) -> str | None:
        """Why it is no controller any more, and never again."""
        return self._controllership.lost

    @property
    def context(self) -> ClusterContext:
        """For metrics and tests; it is the controller's own."""
        return self._core.context

    async def start(self) -> None:
        """Takes the controller's place, finishes what was begun, and announces everything. The broker is registered.

        Returns when this broker has taken on what it was announced. Raises CoordinationError: ControllerElsewhere,
        DamagedZnode.
        """
        core, settings = self._core, self._settings
        now_ms = self._clock.wall_ms()
        core.context.cluster_id = await identity.cluster_id(self._coordination, core.entropy)
        claim = await self._controllership.claim(now_ms)
        core.context.controller_epoch = claim.epoch
        core.writes = ControllerWrites(self._coordination, claim.epoch_version)
        self._is_claimed = True
        self._events.start()
        self._starting = asyncio.get_running_loop().create_future()
        await self._watch_brokers()
        await self._events.run(lambda: self._brokers.take_over(new_epochs=settings.new_leader_epochs))
        confirmed = self._announcer.when_confirmed([settings.broker_id])
        await asyncio.wait([confirmed, self._starting], return_when=asyncio.FIRST_COMPLETED)
        if self._starting.done():
            self._starting.result()
        self._starting = None
        # What it answered is seen to.
        await self._events.run(lambda: asyncio.sleep(0))
        log.info("the controller is active", epoch=claim.epoch, topics=len(core.context.topics))

    async def stop(self) -> None:
        """Lets the turn and the calls under way finish. What the broker put into the tree goes with its session."""
        await self._events.stop()
        self._give_up(Refusal(ErrorCode.NOT_CONTROLLER, "The controller is stopping."))
        await self._announcer.close()

    def _resign(self, why: str) -> None:
        """Another one is the controller, or will be: it goes on with what the tree says."""
        log.error("this broker is no longer the controller", why=why)
        self._announcer.drop()
        self._give_up(Refusal(ErrorCode.NOT_CONTROLLER, why))

    def _give_up(self, fault: Refusal) -> None:
        """Answers all that wait behind their turns, and tries nothing again."""
        if self._again is not None:
            self._again.cancel()
            self._again = None
        self._creations.give_up(fault)
        self._deletions.give_up(fault)

    # What comes by itself.

    def _answers_came(self) -> None:
        if not self._takes_answers:
            self._takes_answers = self._add(self._take_answers)

    async def _take_answers(self) -> None:
        self._takes_answers = False
        try:
            await self._turn(self._answers.take)
        except Refusal as refusal:
            # Who waits for these answers would wait for ever. The next turn reads the tree, and announces it anew.
            self._give_up(refusal)
            self._try_again_later()
        finally:
            self._announcer.go_on()

    def _try_again_later(self) -> None:
        """What no request asked for is seen to without a request."""
        if self._again is None and self._controllership.lost is None:
            self._again = asyncio.get_running_loop().call_later(_AGAIN_S, self._try_again)

    def _try_again(self) -> None:
        self._again = None
        self._answers_came()

    def _announcement_failed(self, broker: BrokerId, fault: BaseException) -> None:
        if self._starting is not None and broker == self._settings.broker_id and not self._starting.done():
            self._starting.set_exception(fault if isinstance(fault, Exception) else RuntimeError(repr(fault)))

    async def _watch_brokers(self) -> None:
        """Before they are read: a change behind that is not missed."""
        await self._coordination.children(BROKER_IDS, self._brokers_changed)

    def _brokers_changed(self, _: WatchEvent) -> None:
        if not self._looks_for_brokers:
            self._looks_for_brokers = self._add(self._look_for_brokers)

    async def _look_for_brokers(self) -> None:
        self._looks_for_brokers = False

        async def look() -> None:
            await self._watch_brokers()
            await self._brokers.brokers_changed()

        try:
            await self._turn(look)
        except Refusal as refusal:
            log.warning("changes of brokers were not seen to", fault=refusal.message)
            self._try_again_later()

    def _add(self, work: Callable[[], Awaitable[None]]) -> bool:
        """Whether the event is in the queue: it is not where the controller stops."""
        if self._controllership.lost is not None:
            return False
        try:
            self._events.add(work)
        except Refusal:
            return False
        return True

    # Turns.

    async def _turn(self, work: Callable[[], Awaitable[T]]) -> T:
        if not self.active:
            raise Refusal(ErrorCode.NOT_CONTROLLER, self._controllership.lost or "Another broker is the controller.")
        try:
            if self._core.stale:
                await self._brokers.take_over()
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
            self._controllership.lose(str(error))
            return Refusal(ErrorCode.NOT_CONTROLLER, self._controllership.lost)
        log.warning("a write to the tree failed", fault=str(error))
        # Answers say nothing about this machine: where its files are stands in the log.
        if isinstance(error, WriteRefused):
            return Refusal(ErrorCode.KAFKA_STORAGE_ERROR, "The controller has no room to write: nothing was changed.")
        if isinstance(error, ConnectionLoss):
            message = "The controller does not know whether the change was written: look at it before trying again."
            return Refusal(ErrorCode.REQUEST_TIMED_OUT, message)
        return Refusal(ErrorCode.UNKNOWN_SERVER_ERROR, str(error))

    async def _run(self, work: Callable[[], Awaitable[T]], timeout_ms: int | None = None) -> T | Refusal:
        try:
            return await self._events.run(lambda: self._turn(work), timeout_ms)
        except Refusal as refusal:
            return refusal

    # Waiting outside of turns.

    def _deadline(self, timeout_ms: int | None) -> int | None:
        return None if timeout_ms is None else self._clock.monotonic_ms() + timeout_ms

    def _left(self, deadline_ms: int | None) -> int | None:
        return None if deadline_ms is None else max(0, deadline_ms - self._clock.monotonic_ms())

    async def _until(self, work: Work | None, deadline_ms: int | None) -> Refusal | None:
        """Waits for what goes on behind a turn. Returns why it did not come to its end, or not in time."""
        if work is None:
            return None
        left_ms = self._left(deadline_ms)
        try:
            async with asyncio.timeout(None if left_ms is None else left_ms / 1000):
                await work.wait()
        except TimeoutError:
            return _TOO_LATE
        return work.fault

    async def _run_alone(
        self,
        topics: Callable[[], Iterable[str]],
        work: Callable[[], Awaitable[T]],
        deadline_ms: int | None,
        *,
        makings: bool = True,
    ) -> T | Refusal:
        """As `_run`, behind what makes or deletes these topics; without `makings` behind what deletes them."""
        wait_ms = deadline_ms if deadline_ms is not None else self._deadline(_WAIT_MS)

        async def unless_others() -> T | Work:
            core = self._core
            return await core.do(core.under_way.of(topics(), makings=makings)) or await work()

        done = await self._run(unless_others, self._left(deadline_ms))
        while isinstance(done, Work):
            done = await self._run_behind(done, unless_others, wait_ms)
        return done

    async def _run_behind(self, work: Work, turn: Callable[[], Awaitable[T]], deadline_ms: int | None) -> T | Refusal:
        """As `_run`, when the work has ended: those that wait for it have their turns as they came."""
        queued: asyncio.Future[asyncio.Future[T]] = asyncio.get_running_loop().create_future()

        def ended() -> None:
            if queued.done():
                return  # nobody waits any more
            try:
                queued.set_result(self._events.add(lambda: self._turn(turn)))
            except Refusal as refusal:
                queued.set_exception(refusal)

        if self._behind_others >= EVENTS_MAX:
            return _TOO_MANY
        work.then(ended)
        left_ms = self._left(deadline_ms)
        self._behind_others += 1
        try:
            async with asyncio.timeout(None if left_ms is None else left_ms / 1000):
                event = await queued
        except TimeoutError:
            return Refusal(ErrorCode.REQUEST_TIMED_OUT, "Another change of the topic has not ended in time.")
        except Refusal as refusal:
            return refusal
        finally:
            self._behind_others -= 1
        try:
            return await asyncio.shield(event)
        except Refusal as refusal:
            return refusal

    # What may be asked for.

    async def create_topics(
        self, topics: Sequence[TopicToCreate], *, validate_only: bool = False, timeout_ms: int | None = None
    ) -> list[TopicCreation]:
        deadline_ms = self._deadline(timeout_ms)
        done = await self._run_alone(
            lambda: (topic.name for topic in topics),
            lambda: self._creations.create(topics, validate_only=validate_only),
            deadline_ms,
            makings=False,
        )
        if isinstance(done, Refusal):
            return [TopicCreation(topic.name, done.error, done.message) for topic in topics]
        late = await self._until(done.work, deadline_ms)
        results = await self._core.do(created(topics, done, validate_only=validate_only))
        return refused(results, late)

    async def delete_topics(self, topics: Sequence[TopicRef], *, timeout_ms: int | None = None) -> list[DeletedTopic]:
        deadline_ms = self._deadline(timeout_ms)
        done = await self._run_alone(
            lambda: self._deletions.names_of(topics), lambda: self._deletions.delete(topics), deadline_ms
        )
        if isinstance(done, Refusal):
            return [DeletedTopic(topic.name, topic.id, done.error, done.message) for topic in topics]
        results, work = done
        return refused(results, await self._until(work, deadline_ms))

    async def create_partitions(
        self, topics: Sequence[NewPartitions], *, validate_only: bool = False, timeout_ms: int | None = None
    ) -> list[TopicResult]:
        deadline_ms = self._deadline(timeout_ms)
        done = await self._run_alone(
            lambda: (topic.topic for topic in topics),
            lambda: self._creations.grow(topics, validate_only=validate_only),
            deadline_ms,
        )
        if isinstance(done, Refusal):
            return [TopicResult(topic.topic, done.error, done.message) for topic in topics]
        return refused(list(done.results), await self._until(done.work, deadline_ms))

    async def alter_configs(
        self, resources: Sequence[ConfigChanges | ConfigOverrides], *, validate_only: bool = False
    ) -> list[ConfigResult]:
        done = await self._run(lambda: self._overrides.alter(resources, validate_only=validate_only))
        if isinstance(done, Refusal):
            return [ConfigResult(request.resource, done.error, done.message) for request in resources]
        # It is written: a broker that does not take it now takes it later.
        await asyncio.wait([self._announcer.when_confirmed([self._settings.broker_id])], timeout=_WAIT_MS / 1000)
        return done

    async def allocate_producer_ids(self, broker_id: BrokerId) -> ProducerIdRange:
        done = await self._run(lambda: self._replicas.allocate_producer_ids(broker_id))
        return ProducerIdRange(0, 0, done.error, done.message) if isinstance(done, Refusal) else done

    async def alter_isr(self, broker_id: BrokerId, changes: Sequence[IsrChange]) -> list[IsrResult]:
        done = await self._run(lambda: self._replicas.alter_isr(broker_id, changes))
        return [IsrResult(change.tp, done.error) for change in changes] if isinstance(done, Refusal) else done

    async def replicas_failed(self, broker_id: BrokerId, partitions: Sequence[TopicPartition]) -> ErrorCode:
        return await self._report(lambda: self._replicas.replicas_failed(broker_id, partitions), "failed")

    async def replicas_recovered(self, broker_id: BrokerId, partitions: Sequence[TopicPartition]) -> ErrorCode:
        return await self._report(lambda: self._replicas.replicas_recovered(broker_id, partitions), "recovered")

    async def _report(self, work: Callable[[], Awaitable[None]], what: str) -> ErrorCode:
        done = await self._run(work)
        if isinstance(done, Refusal):
            log.warning("a report of replicas could not be recorded", replicas=what, fault=done.message)
            return done.error
        return ErrorCode.NONE
