"""What Admin returns about transactions."""

from __future__ import annotations

from dataclasses import dataclass

from ottla.client.wire.metadata import Node
from ottla.model import TopicPartition


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionListing:
    """A transactional id as its coordinator lists it."""

    transactional_id: str
    producer_id: int
    #: Empty, Ongoing, PrepareCommit, PrepareAbort, CompleteCommit, CompleteAbort, PrepareEpochFence or Dead.
    state: str
    #: The id of the broker that coordinates it.
    coordinator: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionDescription:
    """What a coordinator knows of a transactional id."""

    transactional_id: str
    coordinator: Node | None
    state: str
    producer_id: int
    producer_epoch: int
    timeout_ms: int
    #: When the open transaction began; None where none is open.
    start_time_ms: int | None
    #: Those that its end has still to reach.
    partitions: frozenset[TopicPartition]


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenTransaction:
    """A transaction that is open in a partition, as the partition's leader knows it."""

    partition: TopicPartition
    producer_id: int
    producer_epoch: int
    #: Of the coordinator that wrote the producer's last marker here; None where there is none.
    coordinator_epoch: int | None
    start_offset: int
    #: Of the producer's last batch.
    last_timestamp: int
