"""What becomes of a transaction that cannot go on, told apart by what its producer can do next.

WrongTransactionState   the call does not belong here (begin twice, a record outside): nothing was done
TransactionAbortable    abort, and begin anew; its cause says why
TransactionTimedOut     the same: the coordinator has aborted it, since `transaction.timeout.ms` was over
ProducerFenced          another producer has the `transactional.id` now: close this one
TransactionFailed       this producer can do no more transactions; its cause says why: close it
TransactionAborted      the outcome of a record whose transaction was aborted before the record was written
"""

from __future__ import annotations

from ottla.client.errors.own import KafkaError
from ottla.model import ErrorCode


class TransactionFault(KafkaError):
    """A transaction cannot go on, or did not; its classes say what can be done."""

    default_code = ErrorCode.INVALID_TXN_STATE


class WrongTransactionState(TransactionFault, RuntimeError):
    """The call does not belong here: a record outside of a transaction, a second begin. Nothing was done."""


class TransactionAbortable(TransactionFault):
    """The transaction can only be aborted: part of it was not written. The producer goes on with the next one."""

    default_code = ErrorCode.TRANSACTION_ABORTABLE


class TransactionTimedOut(TransactionAbortable, TimeoutError):
    """The coordinator has aborted the transaction: it was open for longer than `transaction.timeout.ms`."""


class TransactionAborted(TransactionFault):
    """The record was not written: its transaction was aborted first."""

    default_code = ErrorCode.TRANSACTION_ABORTABLE


class ProducerFenced(TransactionFault):
    """Another producer has begun with the same `transactional.id`: this one is out for good."""

    default_code = ErrorCode.PRODUCER_FENCED


class TransactionFailed(TransactionFault):
    """This producer can do no more transactions: close it."""
