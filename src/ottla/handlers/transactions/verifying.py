"""Whether a batch of a transaction may be appended: not before its coordinator has said that it is ongoing.

One whose producer has an open transaction in the partition goes on in that. Any other is the first of its transaction
here: its coordinator is asked (`questions.py`), and the log remembers that (`storage/log/producers/verifying.py`), so
that a marker which comes before the batch is seen.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Final, NamedTuple

from ottla.handlers.transactions.questions import TransactionQuestion, TransactionQuestions
from ottla.model import ErrorCode, TopicPartition
from ottla.records.batch import header_fields
from ottla.storage.errors import AppendRefused, RollDue, StorageFault
from ottla.storage.log.log import Log
from ottla.storage.log.producers.verifying import Verification

#: Produce from here on adds partitions to transactions.
PRODUCE_ADDS_SINCE: Final = 12
#: Before it clients take TRANSACTION_ABORTABLE for an error that they do not know.
PRODUCE_ABORTABLE_SINCE: Final = 11

_PRODUCER: Final = header_fields("producer_id", "producer_epoch", "base_sequence")

#: These are retried by clients as errors of coordinators, which a leader has not: as one for which they wait and retry.
_AS_TOO_FEW_REPLICAS: Final = frozenset(
    {
        *(ErrorCode.NETWORK_EXCEPTION, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS),
        *(ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR),
    }
)


class RefusedByCoordinator(AppendRefused):
    """In the coordinator's words, or as it would be refused: the batch was not brought to the log."""


class ProducedTransaction(NamedTuple):
    """What a Produce request says of the transaction of its batches."""

    transactional_id: str
    #: Whether partitions are added to it. Else its client has added them before.
    adds: bool
    #: Whether its client knows TRANSACTION_ABORTABLE.
    knows_abortable: bool

    @classmethod
    def of_request(cls, transactional_id: str | None, version: int) -> ProducedTransaction | None:
        if transactional_id is None:
            return None
        return cls(transactional_id, version >= PRODUCE_ADDS_SINCE, version >= PRODUCE_ABORTABLE_SINCE)

    def only_asked(self) -> ProducedTransaction:
        """The same where nothing is to be added to it."""
        return self._replace(adds=False)


class FirstBatch:
    """The first batch of a transaction in a partition, while its coordinator is asked. Implements `Asker`."""

    __slots__ = ("_epoch", "_log", "_producer_id", "_sequence", "_transaction", "_verification", "answer")

    #: The coordinator's.
    answer: asyncio.Future[ErrorCode]

    def __init__(self, log: Log, producer_id: int, epoch: int, sequence: int, transaction: ProducedTransaction) -> None:
        self._log = log
        self._producer_id = producer_id
        self._epoch = epoch
        self._sequence = sequence
        self._transaction = transaction
        self._verification = self._begun()

    def _begun(self) -> Verification:
        return self._log.producers_at_hand.begin_verifying(
            self._producer_id, self._epoch, self._sequence, begins_at_zero=self._transaction.adds
        )

    def begin(self) -> None:
        """The coordinator is asked. Where the log cannot be looked at just now, what was begun before has to do."""
        with suppress(StorageFault, RollDue):
            self._verification = self._begun()

    def holds(self) -> bool:
        """Where the log cannot be looked at just now, `check` says why."""
        with suppress(StorageFault, RollDue):
            return self._is_verified(self._log)
        return True

    def check(self, log: Log) -> None:
        """Raises AppendRefused where the batch is not to be appended, and RollDue."""
        _check(self.answer.result(), self._transaction)
        if not self._is_verified(log):
            raise AppendRefused(ErrorCode.INVALID_TXN_STATE, "Record was not part of an ongoing transaction")

    def _is_verified(self, log: Log) -> bool:
        return log.producers_at_hand.is_verified(self._producer_id, self._epoch, self._verification)


def first_batch(
    questions: TransactionQuestions, log: Log, tp: TopicPartition, records: memoryview, transaction: ProducedTransaction
) -> FirstBatch | None:
    """What a transactional batch has to wait for; None where it may be appended now.

    Raises AppendRefused, RollDue where a worker has to read first who writes to the log, and StorageFault.
    """
    producer_id, epoch, sequence = _PRODUCER.unpack_from(records)
    if producer_id < 0 or not (transaction.adds or questions.verifies):
        return None
    producers = log.producers_at_hand
    if producers.has_open(producer_id, epoch):
        return None
    if producers.is_behind(producer_id, epoch):
        # Whoever it says that it is: another coordinator knows nothing of that.
        raise RefusedByCoordinator(ErrorCode.INVALID_PRODUCER_EPOCH, "")
    first = FirstBatch(log, producer_id, epoch, sequence, transaction)
    question = TransactionQuestion(transaction.transactional_id, producer_id, epoch, tp, transaction.adds)
    known = questions.answer_now(question)
    if known is None:
        first.answer = questions.ask(question, first)
        return first
    _check(known, transaction)
    return None


def may_begin(
    questions: TransactionQuestions, tp: TopicPartition, records: memoryview, transaction: ProducedTransaction
) -> bool:
    """Whether the coordinator says at once that the first batch of a transaction may be appended. Asks nobody else."""
    if transaction.adds:
        return False
    if not questions.verifies:
        return True
    producer_id, epoch, _ = _PRODUCER.unpack_from(records)
    question = TransactionQuestion(transaction.transactional_id, producer_id, epoch, tp, False)
    return questions.answer_now(question) == ErrorCode.NONE


def has_begun_with(log: Log, records: memoryview, first_offset: int) -> bool:
    """Whether the batch that was staged there is the first of its producer's transaction."""
    producers = log.producer_memory.loaded
    known = None if producers is None else producers.of(_PRODUCER.unpack_from(records)[0])
    return known is not None and known.first_offset_open == first_offset


def _check(answer: ErrorCode, transaction: ProducedTransaction) -> None:
    if answer == ErrorCode.NONE:
        return
    if answer == ErrorCode.TRANSACTION_ABORTABLE and not transaction.knows_abortable:
        answer = ErrorCode.INVALID_TXN_STATE
    if answer == ErrorCode.INVALID_TXN_STATE:
        raise RefusedByCoordinator(answer, "Partition was not added to the transaction")
    waits = answer == ErrorCode.CONCURRENT_TRANSACTIONS and not transaction.adds
    if waits or answer in _AS_TOO_FEW_REPLICAS:
        raise RefusedByCoordinator(
            ErrorCode.NOT_ENOUGH_REPLICAS,
            f"Unable to verify the partition has been added to the transaction. Underlying error: {answer.name}",
        )
    raise RefusedByCoordinator(answer, "")
