"""How transactions end.

In the older form a producer keeps its epoch, and an end that is repeated is known by the state alone. In the newer one
(`transaction.version` 2, KIP-890) each end raises the epoch, so that no batch of a transaction can come in after its
end, and a repeated end is known by the epoch before. There is no telling then whether a transaction has begun where
nothing was committed of it, so an abort is taken where none is ongoing.

                   the epoch before, once more        the present epoch
                   abort             commit           abort             commit
    Empty          PRODUCER_FENCED   PRODUCER_FENCED  the next epoch    INVALID_TXN_STATE
    CompleteAbort  answered again    INVALID_TXN_..   the next epoch    INVALID_TXN_STATE
    CompleteCommit INVALID_TXN_..    answered again   the next epoch    INVALID_TXN_STATE

While markers are under way (PrepareCommit, PrepareAbort) every end is answered CONCURRENT_TRANSACTIONS, also one with
the other outcome. Kafka has other answers for these two states in its table and gives none of them: from the moment at
which the decision is written, or a load finds it, the completion is its pending state, and a pending state is looked
at first. In the newer form that goes before producer id and epoch as well, in the older one after them.
"""

from __future__ import annotations

from ottla.model import NO_PRODUCER_ID, ErrorCode
from ottla.transactions.adding import refused_producer
from ottla.transactions.asked import EndAsked
from ottla.transactions.states import ENDING, TransactionEvent, TransactionStatus, after
from ottla.transactions.transaction import (
    EPOCH_A_TRANSACTION,
    NO_PRODUCER_EPOCH,
    PRODUCER_EPOCH_MAX,
    Transaction,
    Wanted,
)


def ended(
    known: Transaction | None, asked: EndAsked, wall_ms: int, fresh_id: int | None, *, is_changing: bool
) -> Transaction | ErrorCode | Wanted:
    """The decision, which is to be written. NONE: it has ended so already.

    `is_changing`: something is written of it and not committed. `fresh_id`: what an earlier call wanted.
    """
    if asked.client_version < EPOCH_A_TRANSACTION:
        return _ended_in_its_epoch(known, asked, wall_ms, is_changing=is_changing)
    if known is None:
        return ErrorCode.INVALID_PRODUCER_ID_MAPPING
    if is_changing or known.status in ENDING:
        return ErrorCode.CONCURRENT_TRANSACTIONS
    if known.producer_id != asked.producer_id and not _has_missed_new_id(known, asked):
        return ErrorCode.INVALID_PRODUCER_ID_MAPPING
    is_repeated = _is_repeated(known, asked)
    if asked.producer_epoch != known.producer_epoch and not is_repeated:
        return ErrorCode.PRODUCER_FENCED
    if is_repeated:
        return _repeated(known, asked)
    if known.status is not TransactionStatus.ONGOING and asked.committed:
        return ErrorCode.INVALID_TXN_STATE
    event = TransactionEvent.COMMIT if asked.committed else TransactionEvent.ABORT
    return _decided(known, after(known.status, event), wall_ms, fresh_id, asked.client_version)


def _decided(
    known: Transaction, status: TransactionStatus, wall_ms: int, fresh_id: int | None, version: int
) -> Transaction | Wanted:
    """Under the next epoch."""
    if known.is_exhausted and fresh_id is None:
        return Wanted.PRODUCER_ID
    return known._replace(
        status=status,
        producer_epoch=min(known.producer_epoch + 1, PRODUCER_EPOCH_MAX),
        last_producer_epoch=known.producer_epoch,
        previous_producer_id=known.producer_id,
        next_producer_id=NO_PRODUCER_ID if fresh_id is None else fresh_id,
        # An abort that came before any partition has begun and ended at once.
        started_ms=known.started_ms if known.status is TransactionStatus.ONGOING else wall_ms,
        updated_ms=wall_ms,
        client_version=version,
    )


def _ended_in_its_epoch(
    known: Transaction | None, asked: EndAsked, wall_ms: int, *, is_changing: bool
) -> Transaction | ErrorCode:
    refusal = refused_producer(known, asked.producer_id, asked.producer_epoch)
    if refusal or known is None:
        return refusal
    if is_changing or known.status in ENDING:
        return ErrorCode.CONCURRENT_TRANSACTIONS
    if known.status is not TransactionStatus.ONGOING:
        return _repeated(known, asked)
    event = TransactionEvent.COMMIT if asked.committed else TransactionEvent.ABORT
    return known._replace(
        status=after(known.status, event),
        previous_producer_id=known.producer_id,
        updated_ms=wall_ms,
        client_version=asked.client_version,
    )


def _repeated(known: Transaction, asked: EndAsked) -> ErrorCode:
    said = TransactionStatus.COMPLETE_COMMIT if asked.committed else TransactionStatus.COMPLETE_ABORT
    return ErrorCode.NONE if known.status is said else ErrorCode.INVALID_TXN_STATE


def _has_missed_new_id(known: Transaction, asked: EndAsked) -> bool:
    return (
        known.previous_producer_id == asked.producer_id
        and asked.producer_epoch == PRODUCER_EPOCH_MAX - 1
        and known.producer_epoch == 0
    )


def _is_repeated(known: Transaction, asked: EndAsked) -> bool:
    """Whether it has this end behind it, and the client has missed the answer."""
    if known.status not in (TransactionStatus.COMPLETE_COMMIT, TransactionStatus.COMPLETE_ABORT):
        return False
    return known.producer_epoch == asked.producer_epoch + 1 or _has_missed_new_id(known, asked)


def fenced(known: Transaction, wall_ms: int, fresh_id: int | None, version: int) -> Transaction | Wanted:
    """The abort of an open transaction under an epoch that its client does not have. `version`: the cluster's level."""
    status = after(after(known.status, TransactionEvent.FENCE), TransactionEvent.ABORT)
    if version >= EPOCH_A_TRANSACTION:
        return _decided(known, status, wall_ms, fresh_id, version)
    return known._replace(
        status=status,
        producer_epoch=min(known.producer_epoch + 1, PRODUCER_EPOCH_MAX),
        last_producer_epoch=NO_PRODUCER_EPOCH,
        previous_producer_id=known.producer_id,
        next_producer_id=NO_PRODUCER_ID,
        updated_ms=wall_ms,
        client_version=version,
    )


def completed(known: Transaction, wall_ms: int) -> Transaction:
    """All partitions have their marker."""
    changed = known._replace(
        status=after(known.status, TransactionEvent.MARKED),
        partitions=frozenset(),
        previous_producer_id=known.producer_id,
        next_producer_id=NO_PRODUCER_ID,
        updated_ms=wall_ms,
    )
    if known.client_version >= EPOCH_A_TRANSACTION and known.next_producer_id != NO_PRODUCER_ID:
        changed = changed._replace(producer_id=known.next_producer_id, producer_epoch=0)
    return changed
