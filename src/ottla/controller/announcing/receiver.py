"""The broker's end of an announcement: in this process a call, from one broker to another a request."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from ottla.controller.deciding.orders import ReplicaStop
from ottla.metadata.updates import MetadataUpdate, PartitionState
from ottla.model import ErrorCode, TopicPartition


class Receiver(Protocol):
    """One broker, as the controller reaches it; the tree has what is announced before. Calls come one at a time.

    What a call raises means that it was not carried out, or not whole: it comes again, with what was decided meanwhile.
    For new leaders there are three calls: an update with the overrides that govern their logs, `on_leader_and_isr`,
    and when the leaders are ready the update that shows them to clients. Where they are many, calls of
    `on_new_replicas` come before the second.
    """

    async def on_new_replicas(self, states: Sequence[PartitionState]) -> bool:
        """Makes their logs, which nobody is served from yet. Returns whether all of them are there."""
        ...

    async def on_leader_and_isr(self, states: Sequence[PartitionState]) -> Mapping[TopicPartition, ErrorCode]:
        """Takes roles on. Returns the partitions that it could not do that for (with or without those it could)."""
        ...

    async def on_metadata_update(self, update: MetadataUpdate) -> None:
        """The metadata cache's `apply`, and nothing before it."""
        ...

    async def on_stop_replicas(self, stops: Sequence[ReplicaStop]) -> Mapping[TopicPartition, ErrorCode]:
        """Gives roles up; with `delete` the logs go too, for certain when this returns. Fine for what is not there.
        A role of a later leader epoch stays, and is FENCED_LEADER_EPOCH."""
        ...
