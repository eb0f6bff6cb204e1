"""Another broker as the controller reaches it: announcements in requests, on a link of their own.

One receiver is for one registration of a broker and one epoch of a controller: with either it begins anew. Requests
follow one another, each behind the answer to the one before. What is not answered raises, and the announcer calls
again: a broker takes the same state twice without harm.

Settings do not travel this way. Each broker reads them from the tree (`broker/settings.py`), and so does Kafka's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, Protocol, TypeVar, cast

from ottla import logs
from ottla.controller.announcing import requests
from ottla.controller.announcing.origin import AnnouncementRefused, BrokerNotReached, Origin
from ottla.controller.announcing.requests import PARTITIONS_A_REQUEST, ShownTopic
from ottla.controller.deciding.orders import ReplicaStop
from ottla.interbroker.links import LinkFault
from ottla.metadata.updates import BrokerEndpoints, MetadataUpdate, PartitionState
from ottla.model import BrokerId, ErrorCode, TopicPartition
from ottla.protocol.generated.leader_and_isr import LeaderAndIsrResponse
from ottla.protocol.generated.stop_replica import StopReplicaResponse
from ottla.protocol.generated.update_metadata import UpdateMetadataResponse
from ottla.protocol.message import Message
from ottla.steps import Steps, in_turns, pieces

log = logs.logger("controller")

T = TypeVar("T")

#: Kafka's default of controller.socket.timeout.ms: a broker that makes a thousand logs on a slow disk takes seconds.
ANSWER_MS_MAX: Final = 30_000


class Link(Protocol):
    """A link to the broker (`interbroker.links.BrokerLink`)."""

    async def call(self, request: Message, version: int, *, timeout_ms: int) -> Message: ...


class RemoteReceiver:
    """Implements `Receiver`."""

    def __init__(
        self,
        link: Link,
        origin: Origin,
        listener: str,
        now_ms: Callable[[], int],
        answer_ms_max: int = ANSWER_MS_MAX,
    ) -> None:
        """`listener` is the one that brokers use among themselves."""
        self._link = link
        #: `controller.socket.timeout.ms`.
        self._answer_ms_max = answer_ms_max
        self._origin = origin
        self._listener = listener
        self._now_ms = now_ms
        #: Live brokers, which every UpdateMetadata names; None: the broker has heard of none yet.
        self._brokers: Mapping[BrokerId, BrokerEndpoints] | None = None
        #: What the broker was sent: a deletion names all partitions of its topic, and a whole update names all topics.
        self._shown: dict[str, ShownTopic] = {}

    async def on_new_replicas(self, states: Sequence[PartitionState]) -> bool:
        """Over the wire there is no log without a role. Nobody is shown these partitions before all have theirs."""
        return not await self.on_leader_and_isr(states)

    async def on_leader_and_isr(self, states: Sequence[PartitionState]) -> Mapping[TopicPartition, ErrorCode]:
        """Of the errors only that of a failed directory counts, as in Kafka: a state that the broker knows already is
        answered with an error as well, by Kafka's brokers."""
        brokers = self._brokers or {}
        failed: dict[TopicPartition, ErrorCode] = {}
        for some in pieces(states, PARTITIONS_A_REQUEST):
            leaders = await self._do(requests.live_leaders(some, brokers, self._listener))
            request = await self._do(requests.leader_and_isr(self._origin, some, leaders))
            answer = cast("LeaderAndIsrResponse", await self._ask(request))
            self._check(answer.error_code, "LeaderAndIsr")
            refused = await self._do(requests.refused_roles(answer, requests.names_of(some)))
            for tp, error in refused.items():
                if error is ErrorCode.KAFKA_STORAGE_ERROR:
                    failed[tp] = error
                elif error is not ErrorCode.STALE_CONTROLLER_EPOCH:
                    log.warning_limited(
                        "a broker did not take a role on", key=error.name, partition=tp, error=error.name
                    )
        return failed

    async def on_metadata_update(self, update: MetadataUpdate) -> None:
        if update.brokers is not None:
            self._brokers = {broker.id: broker for broker in update.brokers}
        if self._brokers is None:
            return  # everything comes with the whole update, which is still to come
        if not update.whole:
            await self._delete(update.topics_deleted)
        else:
            # What is not named is gone; what was to be said of deletions went before it.
            self._shown = {}
        await self._do(self._note(update.partitions))
        if update.partitions or update.whole or update.brokers is not None or update.controller_id is not None:
            await self._show(update.partitions, whole=update.whole)

    async def _delete(self, topics: Sequence[str]) -> None:
        gone = [name for name in topics if name in self._shown]
        if gone:
            states = await self._do(requests.deleted_topics(self._origin, {name: self._shown[name] for name in gone}))
            await self._show(states, whole=False)
            for name in gone:
                del self._shown[name]

    async def _show(self, states: Sequence[PartitionState], *, whole: bool) -> None:
        assert self._brokers is not None
        brokers = requests.live_brokers(self._brokers.values())
        parts = list(pieces(states, PARTITIONS_A_REQUEST)) or [()]
        for number, some in enumerate(parts, 1):
            is_last = whole and number == len(parts)
            request = await self._do(
                requests.update_metadata(self._origin, some, brokers, dict(self._shown) if is_last else None)
            )
            answer = cast("UpdateMetadataResponse", await self._ask(request))
            self._check(answer.error_code, "UpdateMetadata")

    async def on_stop_replicas(self, stops: Sequence[ReplicaStop]) -> Mapping[TopicPartition, ErrorCode]:
        failed: dict[TopicPartition, ErrorCode] = {}
        for some in pieces(stops, PARTITIONS_A_REQUEST):
            request = await self._do(requests.stop_replica(self._origin, some))
            answer = cast("StopReplicaResponse", await self._ask(request))
            self._check(answer.error_code, "StopReplica")
            failed |= await self._do(requests.refused_stops(answer))
        return failed

    def _note(self, states: Sequence[PartitionState]) -> Steps[None]:
        """What the broker will have been shown when the update was taken."""
        shown = self._shown
        for piece in pieces(states):
            for state in piece:
                known = shown.get(state.topic)
                count = known.partitions if known is not None and known.id == state.topic_id else 0
                if state.partition >= count:
                    shown[state.topic] = ShownTopic(state.topic_id, state.partition + 1)
            yield

    async def _ask(self, request: Message) -> Message:
        """In the newest version, which brokers of Kafka 3.9 and ours serve; older ones belong to no cluster of ours."""
        try:
            return await self._link.call(request, request.MAX_VERSION, timeout_ms=self._answer_ms_max)
        except LinkFault as fault:
            raise BrokerNotReached(str(fault)) from fault

    @staticmethod
    def _check(number: int, name: str) -> None:
        if number != ErrorCode.NONE:
            raise AnnouncementRefused(f"{name} was answered with {requests.error_code(number).name}")

    async def _do(self, steps: Steps[T]) -> T:
        return await in_turns(steps, self._now_ms)
