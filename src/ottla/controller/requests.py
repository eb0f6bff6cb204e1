"""What may be asked of the active controller: each request has its turn, and often waits for what goes on behind it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Final, TypeVar

from ottla.controller.core import log
from ottla.controller.deciding.refusal import Refusal
from ottla.controller.events import EVENTS_MAX
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
from ottla.controller.turns.creating import created
from ottla.controller.waiting import Work, refused
from ottla.model import BrokerId, ErrorCode, TopicPartition

if TYPE_CHECKING:
    from ottla.controller.tenure import Tenure

T = TypeVar("T")

_TOO_LATE: Final = Refusal(ErrorCode.REQUEST_TIMED_OUT, "The brokers have not finished in time; the change goes on.")
_TOO_MANY: Final = Refusal(ErrorCode.REQUEST_TIMED_OUT, f"{EVENTS_MAX} requests wait for others already.")
#: A request without a time of its own waits so long for what is done to its topics before it.
_WAIT_MS: Final = 30_000
#: How long a broker that wants to stop waits until the others know who leads in its place: some milliseconds, unless
#: one of them is dead and the tree has not noticed yet.
KNOWN_MS_MAX: Final = 1_000


class ControllerRequests:
    """Implements `Controller`, for one tenure."""

    def __init__(self, tenure: Tenure) -> None:
        self._tenure = tenure
        #: Requests that wait for what makes or deletes their topics: EVENTS_MAX at most.
        self._behind_others = 0

    async def _run(self, work: Callable[[], Awaitable[T]], timeout_ms: int | None = None) -> T | Refusal:
        try:
            return await self._tenure.run(work, timeout_ms)
        except Refusal as refusal:
            return refusal

    # Waiting outside of turns.

    def _deadline(self, timeout_ms: int | None) -> int | None:
        return None if timeout_ms is None else self._tenure.core.clock.monotonic_ms() + timeout_ms

    def _left(self, deadline_ms: int | None) -> int | None:
        return None if deadline_ms is None else max(0, deadline_ms - self._tenure.core.clock.monotonic_ms())

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
            core = self._tenure.core
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
                queued.set_result(self._tenure.add(lambda: self._tenure.asked(turn)))
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
            work.forget(ended)
            self._behind_others -= 1
        try:
            return await asyncio.shield(event)
        except Refusal as refusal:
            return refusal

    async def _until_known_here(self, timeout_ms: int | None) -> None:
        """The tree has it: a broker that does not take it now takes it later."""
        await self._until_known([self._tenure.core.settings.broker_id], timeout_ms)

    async def _until_known(self, brokers: Iterable[BrokerId], timeout_ms: int | None) -> None:
        confirmed = self._tenure.announcer.when_confirmed(brokers)
        await asyncio.wait([confirmed], timeout=None if timeout_ms is None else timeout_ms / 1000)

    # What may be asked for.

    async def create_topics(
        self, topics: Sequence[TopicToCreate], *, validate_only: bool = False, timeout_ms: int | None = None
    ) -> list[TopicCreation]:
        deadline_ms = self._deadline(timeout_ms)
        done = await self._run_alone(
            lambda: (topic.name for topic in topics),
            lambda: self._tenure.creations.create(topics, validate_only=validate_only),
            deadline_ms,
            makings=False,
        )
        if isinstance(done, Refusal):
            return [TopicCreation(topic.name, done.error, done.message) for topic in topics]
        late = await self._until(done.work, deadline_ms)
        results = await self._tenure.core.do(created(topics, done, validate_only=validate_only))
        return refused(results, late)

    async def delete_topics(self, topics: Sequence[TopicRef], *, timeout_ms: int | None = None) -> list[DeletedTopic]:
        deadline_ms = self._deadline(timeout_ms)
        done = await self._run_alone(
            lambda: self._tenure.deletions.names_of(topics), lambda: self._tenure.deletions.delete(topics), deadline_ms
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
            lambda: self._tenure.creations.grow(topics, validate_only=validate_only),
            deadline_ms,
        )
        if isinstance(done, Refusal):
            return [TopicResult(topic.topic, done.error, done.message) for topic in topics]
        return refused(list(done.results), await self._until(done.work, deadline_ms))

    async def alter_configs(
        self, resources: Sequence[ConfigChanges | ConfigOverrides], *, validate_only: bool = False
    ) -> list[ConfigResult]:
        done = await self._run(lambda: self._tenure.overrides.alter(resources, validate_only=validate_only))
        if isinstance(done, Refusal):
            return [ConfigResult(request.resource, done.error, done.message) for request in resources]
        # It is written: a broker that does not take it now takes it later.
        await self._until_known_here(_WAIT_MS)
        return done

    async def allocate_producer_ids(self, broker_id: BrokerId) -> ProducerIdRange:
        done = await self._run(lambda: self._tenure.replicas.allocate_producer_ids(broker_id))
        return ProducerIdRange(0, 0, done.error, done.message) if isinstance(done, Refusal) else done

    async def alter_isr(
        self, broker_id: BrokerId, changes: Sequence[IsrChange], *, broker_epoch: int = -1
    ) -> list[IsrResult]:
        done = await self._run(lambda: self._tenure.replicas.alter_isr(broker_id, broker_epoch, changes))
        return [IsrResult(change.tp, done.error) for change in changes] if isinstance(done, Refusal) else done

    async def shut_down(self, broker_id: BrokerId, broker_epoch: int) -> ShutdownAnswer:
        done = await self._run(lambda: self._tenure.leaders.shut_down(broker_id, broker_epoch))
        if isinstance(done, Refusal):
            return ShutdownAnswer(done.error)
        # Clients whose connections it closes ask another broker at once: one that still sends them here would make them
        # wait out their pauses. Where this controller is what stops, its orders would even go with it.
        await self._until_known(list(self._tenure.announcer.brokers), KNOWN_MS_MAX)
        return done

    async def elect_leaders(
        self, kind: ElectionKind, partitions: Sequence[TopicPartition] | None, *, timeout_ms: int | None = None
    ) -> tuple[ErrorCode, list[PartitionResult]]:
        deadline_ms = self._deadline(timeout_ms)
        done = await self._run(lambda: self._tenure.leaders.elect(kind, partitions), timeout_ms)
        if isinstance(done, Refusal):
            return done.error, [PartitionResult(tp, done.error, done.message) for tp in (partitions or ())[:1]]
        await self._until_known_here(self._left(deadline_ms))
        return ErrorCode.NONE, done

    async def alter_reassignments(
        self, changes: Sequence[Reassignment], *, timeout_ms: int | None = None
    ) -> tuple[ErrorCode, list[PartitionResult]]:
        done = await self._run_alone(
            lambda: (change.tp.topic for change in changes),
            lambda: self._tenure.reassignments.alter(changes),
            self._deadline(timeout_ms),
        )
        if isinstance(done, Refusal):
            return done.error, [PartitionResult(change.tp, done.error, done.message) for change in changes[:1]]
        return ErrorCode.NONE, done

    async def reassignments(
        self, partitions: Sequence[TopicPartition] | None
    ) -> tuple[ErrorCode, list[OngoingReassignment]]:
        async def listed() -> list[OngoingReassignment]:
            return self._tenure.reassignments.described(partitions)

        done = await self._run(listed)
        return (done.error, []) if isinstance(done, Refusal) else (ErrorCode.NONE, done)

    async def update_features(
        self, updates: Sequence[FeatureUpdate], *, validate_only: bool = False, timeout_ms: int | None = None
    ) -> tuple[ErrorCode, str | None]:
        done = await self._run(lambda: self._tenure.features.update(updates, validate_only=validate_only), timeout_ms)
        return (done.error, done.message) if isinstance(done, Refusal) else done

    async def replicas_failed(self, broker_id: BrokerId, partitions: Sequence[TopicPartition]) -> ErrorCode:
        return await self._report(lambda: self._tenure.replicas.replicas_failed(broker_id, partitions), "failed")

    async def replicas_recovered(self, broker_id: BrokerId, partitions: Sequence[TopicPartition]) -> ErrorCode:
        return await self._report(lambda: self._tenure.replicas.replicas_recovered(broker_id, partitions), "recovered")

    async def _report(self, work: Callable[[], Awaitable[None]], what: str) -> ErrorCode:
        done = await self._run(work)
        if isinstance(done, Refusal):
            log.warning("a report of replicas could not be recorded", replicas=what, fault=done.message)
            return done.error
        return ErrorCode.NONE
