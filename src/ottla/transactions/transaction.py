"""What is known of one transactional id: its producer and its transaction. Never changed: each change makes another."""

from __future__ import annotations

from enum import Enum
from typing import Final, NamedTuple

from ottla.model import NO_PRODUCER_ID, NO_TIMESTAMP, TopicPartition
from ottla.transactions.states import TransactionStatus

NO_PRODUCER_EPOCH: Final = -1
#: A producer's epoch is a 16-bit number. The last one is the coordinator's own, so that it can fence in any case.
PRODUCER_EPOCH_MAX: Final = 2**15 - 1

#: Levels of `transaction.version`. From this one on each transaction has an epoch of its own (KIP-890).
EPOCH_A_TRANSACTION: Final = 2


class Wanted(Enum):
    """What a decision needs, or what has to happen before it is made."""

    #: A producer id that nobody has had.
    PRODUCER_ID = "producer id"
    #: The open transaction is to be ended under a new epoch.
    FENCE = "fence"


def is_exhausted(epoch: int) -> bool:
    """Whether a client that has this epoch needs another producer id for the next one."""
    return epoch >= PRODUCER_EPOCH_MAX - 1


class Transaction(NamedTuple):
    producer_id: int
    producer_epoch: int
    timeout_ms: int
    status: TransactionStatus = TransactionStatus.EMPTY
    #: Empty unless a transaction is ongoing or ends. Those that have their marker stay until all have it.
    partitions: frozenset[TopicPartition] = frozenset()
    #: -1 before the first transaction of a producer.
    started_ms: int = NO_TIMESTAMP
    updated_ms: int = NO_TIMESTAMP
    #: The producer's id before the last change.
    previous_producer_id: int = NO_PRODUCER_ID
    #: Of a transaction that ends with an epoch that is the last one: its producer goes on under this id.
    next_producer_id: int = NO_PRODUCER_ID
    #: The epoch before this one, which a client may name that has missed the answer. It is not stored.
    last_producer_epoch: int = NO_PRODUCER_EPOCH
    #: The level of `transaction.version` that the last request stood for.
    client_version: int = 0

    @property
    def is_exhausted(self) -> bool:
        return is_exhausted(self.producer_epoch)
