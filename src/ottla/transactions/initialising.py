"""What InitProducerId makes of a transactional id.

A producer that names no id is a new one: its epoch is the next, and fences whoever had the one before. A producer that
names its id and epoch goes on after an error (KIP-360): it gets the next epoch if nobody came between, the present one
again if it has missed the answer to that, and is fenced else.
"""

from __future__ import annotations

from ottla.model import NO_PRODUCER_ID, NO_TIMESTAMP, ErrorCode
from ottla.transactions.asked import ProducerInit
from ottla.transactions.states import ENDING, TransactionEvent, TransactionStatus, after
from ottla.transactions.transaction import NO_PRODUCER_EPOCH, Transaction, Wanted, is_exhausted


def initialised(
    known: Transaction | None, asked: ProducerInit, wall_ms: int, fresh_id: int | None
) -> Transaction | ErrorCode | Wanted:
    """The id's next state. `fresh_id`: what an earlier call with the same arguments wanted."""
    if known is None:
        if fresh_id is None:
            return Wanted.PRODUCER_ID
        return Transaction(fresh_id, 0, asked.timeout_ms, updated_ms=wall_ms, previous_producer_id=fresh_id)
    # Before the producer is looked at: one that an end gave another id has it once that end is written.
    if known.status in ENDING:
        return ErrorCode.CONCURRENT_TRANSACTIONS
    if not _is_its_producer(known, asked):
        return ErrorCode.PRODUCER_FENCED
    if known.status is TransactionStatus.ONGOING:
        return Wanted.FENCE
    if known.is_exhausted and asked.producer_epoch in (NO_PRODUCER_EPOCH, known.producer_epoch):
        return Wanted.PRODUCER_ID if fresh_id is None else _with_another_id(known, asked, wall_ms, fresh_id)
    epochs = _next_epochs(known, asked.producer_epoch)
    if epochs is None:
        return ErrorCode.PRODUCER_FENCED
    epoch, last_epoch = epochs
    return known._replace(
        producer_epoch=epoch,
        last_producer_epoch=last_epoch,
        previous_producer_id=known.producer_id,
        next_producer_id=NO_PRODUCER_ID,
        timeout_ms=asked.timeout_ms,
        status=after(known.status, TransactionEvent.INITIALISE),
        partitions=frozenset(),
        started_ms=NO_TIMESTAMP,
        updated_ms=wall_ms,
    )


def _is_its_producer(known: Transaction, asked: ProducerInit) -> bool:
    if asked.producer_id in (NO_PRODUCER_ID, known.producer_id):
        return True
    # It had the last epoch of the id before, and has missed the answer with this one.
    return asked.producer_id == known.previous_producer_id and is_exhausted(asked.producer_epoch)


def _next_epochs(known: Transaction, asked_epoch: int) -> tuple[int, int] | None:
    """The epoch, and the one before it; None where this producer is fenced."""
    if asked_epoch == NO_PRODUCER_EPOCH:
        return known.producer_epoch + 1, NO_PRODUCER_EPOCH
    if asked_epoch == known.producer_epoch:
        return known.producer_epoch + 1, known.producer_epoch
    if asked_epoch == known.last_producer_epoch:
        return known.producer_epoch, known.last_producer_epoch
    return None


def _with_another_id(known: Transaction, asked: ProducerInit, wall_ms: int, fresh_id: int) -> Transaction:
    goes_on = asked.producer_epoch != NO_PRODUCER_EPOCH
    return Transaction(
        fresh_id,
        0,
        asked.timeout_ms,
        status=after(known.status, TransactionEvent.INITIALISE),
        updated_ms=wall_ms,
        previous_producer_id=known.producer_id,
        last_producer_epoch=known.producer_epoch if goes_on else NO_PRODUCER_EPOCH,
        client_version=known.client_version,
    )
