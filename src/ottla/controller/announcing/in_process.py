"""The controller's own broker: a call takes the place of a request, and goes the same way from there."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence

from ottla.controller.announcing.announced import AnnouncedBroker, Refused
from ottla.controller.announcing.origin import AnnouncementRefused, Origin
from ottla.controller.deciding.orders import ReplicaStop
from ottla.metadata.updates import MetadataUpdate, PartitionState
from ottla.model import ErrorCode, TopicPartition

#: Makes logs ahead of their roles; returns whether all of them are there.
MakeLogs = Callable[[Sequence[PartitionState]], Awaitable[bool]]


class InProcessReceiver:
    """Implements `Receiver`."""

    def __init__(self, broker: AnnouncedBroker, origin: Origin, make_logs: MakeLogs) -> None:
        self._broker = broker
        self._origin = origin
        self._make_logs = make_logs

    async def on_new_replicas(self, states: Sequence[PartitionState]) -> bool:
        self._check(self._broker.check(self._origin))
        return await self._make_logs(states)

    async def on_leader_and_isr(self, states: Sequence[PartitionState]) -> Mapping[TopicPartition, ErrorCode]:
        """A state that the broker knows already, or a newer one of, is none that has failed: it serves the replica."""
        failed = self._failed(await self._broker.take_roles(self._origin, states))
        return {tp: error for tp, error in failed.items() if error is not ErrorCode.STALE_CONTROLLER_EPOCH}

    async def on_metadata_update(self, update: MetadataUpdate) -> None:
        self._check(await self._broker.take_metadata(self._origin, update))

    async def on_stop_replicas(self, stops: Sequence[ReplicaStop]) -> Mapping[TopicPartition, ErrorCode]:
        return self._failed(await self._broker.stop_replicas(self._origin, stops))

    def _failed(self, refused: Refused) -> Mapping[TopicPartition, ErrorCode]:
        if isinstance(refused, ErrorCode):
            self._check(refused)
            return {}
        return refused

    @staticmethod
    def _check(error: ErrorCode) -> None:
        if error is not ErrorCode.NONE:
            raise AnnouncementRefused(f"this broker answered {error.name}")
