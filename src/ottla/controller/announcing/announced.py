"""A broker as announcements reach it, with their sender: in requests of another broker's controller, or in a call.

There is one way in for both. What comes of a controller that was replaced, or was meant for an earlier life of the
broker, is refused as a whole and changes nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from ottla.controller.announcing.origin import Origin
from ottla.controller.deciding.orders import ReplicaStop
from ottla.metadata.updates import MetadataUpdate, PartitionState
from ottla.model import ErrorCode, TopicPartition

#: The partitions that it could not be done for, or why nothing was done at all.
Refused = Mapping[TopicPartition, ErrorCode] | ErrorCode


class AnnouncedBroker(Protocol):
    def check(self, origin: Origin) -> ErrorCode:
        """STALE_CONTROLLER_EPOCH, STALE_BROKER_EPOCH or NONE. From a controller that is obeyed, its epoch is noted."""
        ...

    async def take_roles(self, origin: Origin, states: Sequence[PartitionState]) -> Refused: ...

    async def take_metadata(
        self,
        origin: Origin,
        update: MetadataUpdate,
        *,
        all_topics: Collection[str] | None = None,
        informs: bool = False,
    ) -> ErrorCode:
        """`all_topics`: there are no others, where that is said. `informs`: with it the broker knows everything; so
        it does with a whole update, and where all topics are named."""
        ...

    async def stop_replicas(self, origin: Origin, stops: Sequence[ReplicaStop]) -> Refused: ...
