"""What brokers are to do, as data: a decision says it, and `announcing` carries it to them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ottla.metadata.updates import MetadataUpdate, PartitionState
from ottla.model import BrokerId, TopicPartition


class RoleOrder(NamedTuple):
    """One broker takes on roles (LeaderAndIsr)."""

    broker: BrokerId
    states: Sequence[PartitionState]
    #: Of one request that makes partitions: all of them are new, and they are announced together.
    is_new: bool = False


class StopOrder(NamedTuple):
    """One broker gives replicas up and deletes their logs (StopReplica)."""

    broker: BrokerId
    partitions: Sequence[TopicPartition]


class MetadataOrder(NamedTuple):
    """Brokers know something else from now on (UpdateMetadata)."""

    update: MetadataUpdate
    #: None: all of them.
    brokers: Sequence[BrokerId] | None = None


Order = RoleOrder | StopOrder | MetadataOrder
