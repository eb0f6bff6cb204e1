"""What is asked of the coordinator, and what it answers, apart from versions of requests."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from typing import NamedTuple, TypeVar

from ottla.model import NO_PRODUCER_ID, ErrorCode, TopicPartition
from ottla.transactions.transaction import NO_PRODUCER_EPOCH

T = TypeVar("T")
#: Takes the answer to a request; called exactly once, at once or later.
Reply = Callable[[T], None]


class ProducerInit(NamedTuple):
    """InitProducerId of a transactional producer."""

    transactional_id: str
    timeout_ms: int
    #: What the producer believes to be, where it goes on after an error (KIP-360).
    producer_id: int = NO_PRODUCER_ID
    producer_epoch: int = NO_PRODUCER_EPOCH


class ProducerPartitions(NamedTuple):
    """Partitions that a producer wants in its transaction, or that are said to be in it."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    partitions: AbstractSet[TopicPartition]


class EndAsked(NamedTuple):
    transactional_id: str
    producer_id: int
    producer_epoch: int
    committed: bool
    #: The level of `transaction.version` that the request's version stands for.
    client_version: int


class ProducerAnswer(NamedTuple):
    """With an error the two others are -1."""

    error: ErrorCode
    producer_id: int = NO_PRODUCER_ID
    producer_epoch: int = NO_PRODUCER_EPOCH


#: Of each partition that was asked about.
Verified = Mapping[TopicPartition, ErrorCode]
