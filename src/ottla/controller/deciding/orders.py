"""What brokers are to do, as data: a decision says it, and `announcing` carries it to them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from ottla.metadata.updates import MetadataUpdate, PartitionState
from ottla.model import BrokerId, TopicPartition

#: Kafka's marks in the place of a leader epoch: of a controller that does not say one; of a deletion, which ends every
#: role.
NO_STOP_EPOCH: Final = -1
EPOCH_DURING_DELETE: Final = -2


class RoleOrder(NamedTuple):
    """One broker takes on roles (LeaderAndIsr)."""

    broker: BrokerId
    states: Sequence[PartitionState]
    #: Of one request that makes partitions: all of them are new, and they are announced together.
    is_new: bool = False


class ReplicaStop(NamedTuple):
    tp: TopicPartition
    #: The role that is to end, or an earlier one: a stop that was overtaken leaves the later role alone. Negative:
    #: whatever it is.
    leader_epoch: int = NO_STOP_EPOCH
    delete: bool = False


class StopOrder(NamedTuple):
    """One broker gives replicas up and deletes their logs (StopReplica)."""

    broker: BrokerId
    stops: Sequence[ReplicaStop]


class MetadataOrder(NamedTuple):
    """Brokers know something else from now on (UpdateMetadata)."""

    update: MetadataUpdate
    #: None: all of them.
    brokers: Sequence[BrokerId] | None = None


Order = RoleOrder | StopOrder | MetadataOrder
