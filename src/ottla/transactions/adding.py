"""Partitions that are added to a transaction, or that are said to be in it."""

from __future__ import annotations

from typing import Final

from ottla.model import ErrorCode, TopicPartition
from ottla.transactions.asked import ProducerPartitions, Verified
from ottla.transactions.states import ENDING, IDLE, TransactionEvent, TransactionStatus, after
from ottla.transactions.transaction import Transaction

#: Of one transaction: all of them are written with each one that is added, and have their leaders looked up when it
#: ends, which takes some milliseconds for so many. Kafka's bound is the size of a record, some 200,000, and its answer
#: beyond that is the same.
PARTITIONS_MAX: Final = 10_000


def refused_producer(known: Transaction | None, producer_id: int, producer_epoch: int) -> ErrorCode:
    """Why this producer may not change the id's transaction; NONE where it may."""
    if known is None or known.producer_id != producer_id:
        return ErrorCode.INVALID_PRODUCER_ID_MAPPING
    return ErrorCode.NONE if known.producer_epoch == producer_epoch else ErrorCode.PRODUCER_FENCED


def answer_at_once(
    known: Transaction | None, asked: ProducerPartitions, *, is_changing: bool
) -> Transaction | ErrorCode:
    """The transaction, to which they are to be `added`. NONE: they are all in it already."""
    # Before the producer is looked at: one that an end gave another id has it once that end is written.
    if is_changing or (known is not None and known.status in ENDING):
        return ErrorCode.CONCURRENT_TRANSACTIONS
    refusal = refused_producer(known, asked.producer_id, asked.producer_epoch)
    if refusal or known is None:
        return refusal
    is_ongoing = known.status is TransactionStatus.ONGOING
    return ErrorCode.NONE if is_ongoing and asked.partitions <= known.partitions else known


def added(known: Transaction, asked: ProducerPartitions, client_version: int, wall_ms: int) -> Transaction | ErrorCode:
    """The transaction with the partitions, unless they are too many."""
    partitions = known.partitions if len(asked.partitions) > PARTITIONS_MAX else known.partitions | asked.partitions
    if max(len(partitions), len(asked.partitions)) > PARTITIONS_MAX:
        return ErrorCode.UNKNOWN_SERVER_ERROR
    return known._replace(
        status=after(known.status, TransactionEvent.ADD),
        partitions=partitions,
        started_ms=wall_ms if known.status in IDLE else known.started_ms,
        updated_ms=wall_ms,
        previous_producer_id=known.producer_id,
        client_version=client_version,
    )


def verified(known: Transaction | None, asked: ProducerPartitions) -> Verified:
    _, producer_id, epoch, partitions = asked
    return {tp: verified_one(known, producer_id, epoch, tp) for tp in partitions}


def verified_one(known: Transaction | None, producer_id: int, producer_epoch: int, tp: TopicPartition) -> ErrorCode:
    """A client that writes where it has not added is told to abort: nothing would ever mark the end of that."""
    refusal = refused_producer(known, producer_id, producer_epoch)
    if refusal or known is None:
        return refusal
    if known.status in ENDING:
        return ErrorCode.CONCURRENT_TRANSACTIONS
    return ErrorCode.NONE if tp in known.partitions else ErrorCode.TRANSACTION_ABORTABLE
