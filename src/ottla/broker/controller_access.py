"""The controller as this broker's handlers hold it: the one in this process while it is the active one, or over a link.

Which it is may change at any time. A request whose controller has moved is made again, as long as its time allows:

    answered NOT_CONTROLLER, or never sent      again, to the broker that is the controller by then
    sent, and the link lost                     again where a second time does no harm; else REQUEST_TIMED_OUT
    begun, and the controller was replaced      REQUEST_TIMED_OUT, as the controller says itself

since nobody knows then whether topics were created, deleted or grown: a second CreateTopics would be answered that they
exist, a second DeleteTopics might delete what was created meanwhile, and a second unclean election might give up what
the first one's leader has taken since. Settings, other elections, reassignments, ISRs, producer ids and feature levels
may be asked for twice.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Final, Protocol, TypeVar

from ottla import logs
from ottla.controller.interface import (
    ConfigChanges,
    ConfigOverrides,
    ConfigResult,
    Controller,
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
from ottla.coordination.errors import CoordinationError
from ottla.coordination.notifications import LOG_DIR_EVENT_PREFIX, encode_log_dir_failure
from ottla.model import BrokerId, ErrorCode, TopicPartition
from ottla.ports import Clock

if TYPE_CHECKING:
    from ottla.broker.controller_link import RemoteController

log_event = logs.logger("server")

T = TypeVar("T")

#: Where a request names no time: Kafka's request.timeout.ms.
TIMEOUT_MS: Final = 30_000
#: Between two tries. A new controller is there some ten milliseconds after the old one's session.
_PAUSE_S: Final = 0.05
_NO_CONTROLLER: Final = "No controller was found in time."
_UNKNOWN_OUTCOME: Final = (
    "The controller did not answer: whether it has carried the request out is not known. Look before trying again."
)


class NotAsked(Exception):
    """Nothing was done: nobody was reached, or the broker that was asked is not the active controller."""


class OutcomeUnknown(Exception):
    """The controller was asked and has not answered."""


Question = Callable[["Controller | RemoteController", int], Awaitable[T]]
Failure = Callable[[ErrorCode, str], T]


class ControllerPlace(Protocol):
    """Where the active controller is (`membership.py`)."""

    @property
    def lost(self) -> str | None:
        """Why there will be none for this broker any more; None while there may be."""
        ...

    def own(self) -> Controller | None:
        """The one in this process, while it is the active one."""
        ...

    def remote(self, left_ms: int) -> RemoteController | None:
        """Another broker's, for one try; None while nobody knows of one."""
        ...

    async def leave_note(self, path: str, data: bytes) -> None:
        """Creates a sequential node in the tree. Raises CoordinationError."""
        ...


class ControllerAccess:
    """Implements `Controller`."""

    def __init__(self, place: ControllerPlace, clock: Clock, timeout_ms: int = TIMEOUT_MS) -> None:
        self._place = place
        self._clock = clock
        #: `request.timeout.ms`.
        self._timeout_ms = timeout_ms

    async def _ask(
        self,
        call: Question[T],
        failed: Failure[T],
        errors: Callable[[T], Sequence[ErrorCode]],
        *,
        timeout_ms: int | None = None,
        repeats: bool = True,
    ) -> T:
        """`errors`: of an answer. It is of no controller where they are all NOT_CONTROLLER."""
        deadline_ms = self._clock.monotonic_ms() + (self._timeout_ms if timeout_ms is None else timeout_ms)
        why = _NO_CONTROLLER
        while True:
            left_ms = max(0, deadline_ms - self._clock.monotonic_ms())
            target = self._place.own() or self._place.remote(left_ms)
            try:
                if target is not None:
                    answer = await call(target, left_ms)
                    found = errors(answer)
                    if not found or any(error is not ErrorCode.NOT_CONTROLLER for error in found):
                        return answer
            except NotAsked as fault:
                why = str(fault)
            except OutcomeUnknown as fault:
                log_event.warning_limited("the controller did not answer", fault=str(fault))
                if not repeats:
                    return failed(ErrorCode.REQUEST_TIMED_OUT, _UNKNOWN_OUTCOME)
                why = str(fault)
            if self._place.lost is not None:
                return failed(ErrorCode.NOT_CONTROLLER, self._place.lost)
            if self._clock.monotonic_ms() + _PAUSE_S * 1000 >= deadline_ms:
                log_event.warning_limited("the controller was not reached in time", why=why)
                return failed(ErrorCode.REQUEST_TIMED_OUT, _NO_CONTROLLER)
            await asyncio.sleep(_PAUSE_S)

    async def create_topics(
        self, topics: Sequence[TopicToCreate], *, validate_only: bool = False, timeout_ms: int | None = None
    ) -> list[TopicCreation]:
        if not topics:
            return []
        return await self._ask(
            lambda to, left: to.create_topics(
                topics, validate_only=validate_only, timeout_ms=None if timeout_ms is None else left
            ),
            lambda error, why: [TopicCreation(topic.name, error, why) for topic in topics],
            lambda results: [each.error for each in results],
            timeout_ms=timeout_ms,
            repeats=validate_only,
        )

    async def delete_topics(self, topics: Sequence[TopicRef], *, timeout_ms: int | None = None) -> list[DeletedTopic]:
        if not topics:
            return []
        return await self._ask(
            lambda to, left: to.delete_topics(topics, timeout_ms=None if timeout_ms is None else left),
            lambda error, why: [DeletedTopic(topic.name, topic.id, error, why) for topic in topics],
            lambda results: [each.error for each in results],
            timeout_ms=timeout_ms,
            repeats=False,
        )

    async def create_partitions(
        self, topics: Sequence[NewPartitions], *, validate_only: bool = False, timeout_ms: int | None = None
    ) -> list[TopicResult]:
        if not topics:
            return []
        return await self._ask(
            lambda to, left: to.create_partitions(
                topics, validate_only=validate_only, timeout_ms=None if timeout_ms is None else left
            ),
            lambda error, why: [TopicResult(topic.topic, error, why) for topic in topics],
            lambda results: [each.error for each in results],
            timeout_ms=timeout_ms,
            repeats=validate_only,
        )

    async def alter_configs(
        self, resources: Sequence[ConfigChanges | ConfigOverrides], *, validate_only: bool = False
    ) -> list[ConfigResult]:
        if not resources:
            return []
        return await self._ask(
            lambda to, _: to.alter_configs(resources, validate_only=validate_only),
            lambda error, why: [ConfigResult(each.resource, error, why) for each in resources],
            lambda results: [each.error for each in results],
        )

    async def allocate_producer_ids(self, broker_id: BrokerId) -> ProducerIdRange:
        return await self._ask(
            lambda to, _: to.allocate_producer_ids(broker_id),
            lambda error, why: ProducerIdRange(0, 0, error, why),
            lambda block: [block.error],
        )

    async def alter_isr(
        self, broker_id: BrokerId, changes: Sequence[IsrChange], *, broker_epoch: int = -1
    ) -> list[IsrResult]:
        return await self._ask(
            lambda to, _: to.alter_isr(broker_id, changes, broker_epoch=broker_epoch),
            lambda error, _: [IsrResult(change.tp, error) for change in changes],
            lambda results: [each.error for each in results],
        )

    async def shut_down(self, broker_id: BrokerId, broker_epoch: int) -> ShutdownAnswer:
        return await self._ask(
            lambda to, _: to.shut_down(broker_id, broker_epoch),
            lambda error, _: ShutdownAnswer(error),
            lambda answer: [answer.error],
        )

    async def elect_leaders(
        self, kind: ElectionKind, partitions: Sequence[TopicPartition] | None, *, timeout_ms: int | None = None
    ) -> tuple[ErrorCode, list[PartitionResult]]:
        return await self._ask(
            lambda to, left: to.elect_leaders(kind, partitions, timeout_ms=left),
            lambda error, why: (error, [PartitionResult(tp, error, why) for tp in (partitions or ())[:1]]),
            lambda answer: [answer[0]],
            timeout_ms=timeout_ms,
            repeats=kind is not ElectionKind.UNCLEAN,
        )

    async def alter_reassignments(
        self, changes: Sequence[Reassignment], *, timeout_ms: int | None = None
    ) -> tuple[ErrorCode, list[PartitionResult]]:
        return await self._ask(
            lambda to, left: to.alter_reassignments(changes, timeout_ms=left),
            lambda error, why: (error, [PartitionResult(change.tp, error, why) for change in changes[:1]]),
            lambda answer: [answer[0]],
            timeout_ms=timeout_ms,
        )

    async def reassignments(
        self, partitions: Sequence[TopicPartition] | None
    ) -> tuple[ErrorCode, list[OngoingReassignment]]:
        return await self._ask(
            lambda to, _: to.reassignments(partitions), lambda error, _: (error, []), lambda answer: [answer[0]]
        )

    async def update_features(
        self, updates: Sequence[FeatureUpdate], *, validate_only: bool = False, timeout_ms: int | None = None
    ) -> tuple[ErrorCode, str | None]:
        return await self._ask(
            lambda to, left: to.update_features(updates, validate_only=validate_only, timeout_ms=left),
            lambda error, why: (error, why),
            lambda answer: [answer[0]],
            timeout_ms=timeout_ms,
        )

    # A broker's own replicas: in Kafka's ZooKeeper mode a note in the tree, upon which the controller asks about all of
    # the broker's replicas.

    async def replicas_failed(self, broker_id: BrokerId, partitions: Sequence[TopicPartition]) -> ErrorCode:
        own = self._place.own()
        return await (self._note(broker_id) if own is None else own.replicas_failed(broker_id, partitions))

    async def replicas_recovered(self, broker_id: BrokerId, partitions: Sequence[TopicPartition]) -> ErrorCode:
        own = self._place.own()
        return await (self._note(broker_id) if own is None else own.replicas_recovered(broker_id, partitions))

    async def _note(self, broker_id: BrokerId) -> ErrorCode:
        try:
            await self._place.leave_note(LOG_DIR_EVENT_PREFIX, encode_log_dir_failure(broker_id))
        except CoordinationError as fault:
            log_event.warning_limited("replicas could not be noted in the tree", fault=str(fault))
            return ErrorCode.NETWORK_EXCEPTION
        return ErrorCode.NONE
