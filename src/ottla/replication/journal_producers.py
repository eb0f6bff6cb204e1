"""Transactional producers in a journal: who may write, and whose transaction is open.

The log knows that of what is staged. What a journal has gathered for the end of the round comes behind that, and a
write is decided when it is handed in: so what was gathered is remembered here until it is staged, and looked at first.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Final, NamedTuple, Protocol

from ottla.coordinators.journal import EndMarker, TransactionalProducer
from ottla.model import ErrorCode
from ottla.records.batch import NO_SEQUENCE
from ottla.records.builder import BatchBuilder
from ottla.records.compression import NONE
from ottla.records.control import ControlType, control_batch
from ottla.storage.errors import AppendRefused, StorageFault
from ottla.storage.log.log import Log
from ottla.storage.log.producers.producer_state import EPOCH_MAX, ProducerStates
from ottla.storage.log.producers.verifying import Verification

#: The level of `transaction.version` from which on a marker has a later epoch than its transaction.
EPOCH_A_TRANSACTION: Final = 2


class BuiltBatch(Protocol):
    """A batch that needs nothing but its offset."""

    @property
    def count(self) -> int: ...

    @property
    def size(self) -> int:
        """Bytes, if it is not compressed."""
        ...

    def build(self, *, compression: int = NONE) -> bytes: ...


class TransactionalBatch:
    """Implements `BuiltBatch`: records of one transaction."""

    def __init__(self, records: BatchBuilder, producer: TransactionalProducer) -> None:
        self._records = records
        self._producer = producer
        self.count = records.count
        self.size = records.size

    def build(self, *, compression: int = NONE) -> bytes:
        producer_id, epoch = self._producer
        return self._records.build(
            compression=compression, producer_id=producer_id, producer_epoch=epoch, transactional=True
        )


class MarkerBatch:
    """Implements `BuiltBatch`: the end of a transaction."""

    count = 1

    def __init__(self, end: EndMarker, wall_ms: int) -> None:
        self._batch = end_batch(end, wall_ms)
        self.size = len(self._batch)

    def build(self, *, compression: int = NONE) -> bytes:
        del compression  # Kafka compresses no marker
        return self._batch


def end_batch(end: EndMarker, wall_ms: int) -> bytes:
    return control_batch(
        ControlType.COMMIT if end.is_commit else ControlType.ABORT,
        timestamp=wall_ms,
        producer_id=end.producer_id,
        producer_epoch=end.producer_epoch,
        coordinator_epoch=end.coordinator_epoch,
    )


class _Gathered(NamedTuple):
    """What a producer, by the last that was gathered of it, will be once that is staged."""

    epoch: int
    coordinator_epoch: int
    is_open: bool


class JournalProducers:
    """Of one journal."""

    __slots__ = ("_gathered",)

    def __init__(self) -> None:
        self._gathered: dict[int, _Gathered] = {}

    def all_staged(self) -> None:
        """The log knows of all that was gathered, or it is lost."""
        if self._gathered:
            self._gathered.clear()

    # Where the log cannot be read the answer is that nothing is known: the write then says why.

    def has_open(self, log: Log, producer: TransactionalProducer) -> bool:
        producer_id, epoch = producer
        gathered = self._gathered.get(producer_id)
        if gathered is not None:
            return gathered.is_open and gathered.epoch == epoch
        with suppress(StorageFault):
            return log.producers.has_open(producer_id, epoch)
        return False

    def is_behind(self, log: Log, producer: TransactionalProducer) -> bool:
        producer_id, epoch = producer
        gathered = self._gathered.get(producer_id)
        if gathered is not None:
            return epoch < gathered.epoch
        with suppress(StorageFault):
            return log.producers.is_behind(producer_id, epoch)
        return False

    def begin_verifying(self, log: Log, producer: TransactionalProducer) -> Verification:
        producer_id, epoch = producer
        with suppress(StorageFault):
            return log.producers.begin_verifying(producer_id, epoch, NO_SEQUENCE)
        return Verification(epoch, NO_SEQUENCE)

    def is_verified(self, log: Log, producer: TransactionalProducer, verification: Verification) -> bool:
        with suppress(StorageFault):
            return log.producers.remembers(producer.producer_id, verification) or self.has_open(log, producer)
        return False

    def take_records(self, log: Log, producer: TransactionalProducer) -> ErrorCode:
        """Records of it are gathered, unless there is an error."""
        producer_id, epoch = producer
        try:
            known = self._latest(log.producers, producer_id)
        except StorageFault:
            return ErrorCode.KAFKA_STORAGE_ERROR
        if known is not None and epoch < known.epoch:
            return ErrorCode.INVALID_PRODUCER_EPOCH
        self._gathered[producer_id] = _Gathered(epoch, -1 if known is None else known.coordinator_epoch, is_open=True)
        return ErrorCode.NONE

    def take_marker(self, log: Log, end: EndMarker) -> ErrorCode:
        """Its marker is gathered, unless there is an error."""
        try:
            producers = log.producers
            check_marker(producers, end, log.next_offset)
            known = self._gathered.get(end.producer_id)
        except StorageFault:
            return ErrorCode.KAFKA_STORAGE_ERROR
        except AppendRefused as refused:
            return refused.error
        if known is not None:
            # As the log says it of what is written: it may be a second one, behind the begin of the next transaction.
            is_early = (
                end.transaction_version >= EPOCH_A_TRANSACTION
                and end.producer_epoch == known.epoch != EPOCH_MAX
                and known.is_open
            )
            if end.producer_epoch < known.epoch or is_early:
                return ErrorCode.INVALID_PRODUCER_EPOCH
            if end.coordinator_epoch < known.coordinator_epoch:
                return ErrorCode.TRANSACTION_COORDINATOR_FENCED
        producers.forget_verifying(end.producer_id)
        self._gathered[end.producer_id] = _Gathered(end.producer_epoch, end.coordinator_epoch, is_open=False)
        return ErrorCode.NONE

    def _latest(self, producers: ProducerStates, producer_id: int) -> _Gathered | None:
        gathered = self._gathered.get(producer_id)
        if gathered is not None:
            return gathered
        known = producers.of(producer_id)
        return None if known is None else _Gathered(known.epoch, known.coordinator_epoch, known.first_offset_open >= 0)


def check_marker(producers: ProducerStates, end: EndMarker, offset: int) -> None:
    """Raises AppendRefused where it may not be written."""
    producers.check_marker(
        end.producer_id,
        end.producer_epoch,
        end.coordinator_epoch,
        offset,
        is_bumped=end.transaction_version >= EPOCH_A_TRANSACTION,
    )
