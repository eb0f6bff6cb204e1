"""What each idempotent producer has written to this partition, so that a batch sent twice is stored once.

A producer numbers its records. The log remembers the last five batches of each producer, as many as a client may
have in flight: the next batch must go on where the last ended, one of the five is answered with the offsets it got
then, and anything else is a gap. An epoch fences older incarnations of the same producer. Transactions add the offset
at which each open one began; a marker in the log ends it.

Staged batches change the state at once, since the next in the same round is checked against them; `rollback` undoes
what has not been written.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from ottla.model import ErrorCode, TopicPartition
from ottla.steps import Steps, at_once, pieces
from ottla.storage.errors import AppendRefused
from ottla.storage.formats.producer_snapshot import ProducerEntry
from ottla.storage.log.append import Origin
from ottla.storage.log.indexes.txn_index import AbortedTransaction
from ottla.storage.log.producers.open_transactions import OpenTransactions
from ottla.storage.log.producers.overlay import Overlay
from ottla.storage.log.producers.verifying import Verification, Verifications

#: Sequence numbers run to this and go on at 0.
SEQUENCE_MAX: Final = 2**31 - 1
#: A client has at most five batches in flight.
BATCHES_KEPT: Final = 5
NO_TRANSACTION: Final = -1
#: Of a producer of which no marker has come.
NO_COORDINATOR: Final = -1
#: Of a producer that has written nothing here.
NO_EPOCH: Final = -1
#: Epochs are 16-bit numbers.
EPOCH_MAX: Final = 2**15 - 1
#: Producers whose last batch is looked up in one piece, which takes about a millisecond.
_LISTED_AT_ONCE: Final = 2_000
#: New producers that are remembered while the disk is full; beyond it the oldest is forgotten.
UNWRITTEN_MAX: Final = 1_000


class WrittenBatch(NamedTuple):
    #: Of the last record; -1 for a coordinator's batch, which has none.
    last_sequence: int
    last_offset: int
    #: Last offset minus first.
    offset_delta: int
    timestamp: int


class KnownProducer(NamedTuple):
    epoch: int
    #: Of the transaction coordinator that wrote the last marker; -1 before.
    coordinator_epoch: int
    #: Of the last batch or marker.
    timestamp: int
    #: Where the open transaction began; -1 where none is open.
    first_offset_open: int
    #: The latest last; none where only a marker is known.
    batches: tuple[WrittenBatch, ...]
    #: When this broker last heard of the producer. Not on disk: the batch's own timestamp may be years old.
    seen_ms: int


class ActiveProducer(NamedTuple):
    """One line of DescribeProducers."""

    producer_id: int
    epoch: int
    last_sequence: int
    last_timestamp: int
    coordinator_epoch: int
    #: -1 where no transaction is open.
    transaction_start_offset: int


class Marker(NamedTuple):
    """A control record that ends a transaction."""

    coordinator_epoch: int
    aborts: bool


class ProducerStates:
    __slots__ = ("_known", "_open", "_tp", "_undo", "_unwritten", "_verifications", "is_stable")

    def __init__(self, tp: TopicPartition) -> None:
        self._tp = tp
        #: An overlay while a snapshot is being written of what was known when it began.
        self._known: dict[int, KnownProducer] | Overlay[KnownProducer] = {}
        #: Those of all producers, by `KnownProducer.first_offset_open`.
        self._open = OpenTransactions()
        #: Whether no transaction has begun since there was none, for those who ask with each fetch. False says nothing.
        self.is_stable = True
        #: The state before what is staged, of each producer that it changed.
        self._undo: dict[int, KnownProducer | None] = {}
        #: Epoch and sequence of the first batch of a producer, where the disk had no room for it. A client has others
        #: in flight behind it: without this they would pass for the beginning, and the first one for a gap.
        self._unwritten: dict[int, tuple[int, int]] = {}
        #: Of transactions that have nothing here yet. Not on disk: whoever asked is gone after a start.
        self._verifications = Verifications()

    def __len__(self) -> int:
        return len(self._known)

    # -- appending

    def stage(
        self,
        producer_id: int,
        epoch: int,
        base_sequence: int,
        delta: int,
        first_offset: int,
        timestamp: int,
        transactional: bool,
        now_ms: int,
        origin: Origin,
    ) -> WrittenBatch | None:
        """Takes a batch of data, or returns the one that it repeats. Raises AppendRefused."""
        known = self._known.get(producer_id)
        last_sequence = base_sequence if base_sequence < 0 else (base_sequence + delta) & SEQUENCE_MAX
        # On the hot path a named tuple's own constructor costs three times this.
        batch: WrittenBatch = tuple.__new__(WrittenBatch, (last_sequence, first_offset + delta, delta, timestamp))
        if known is None:
            if origin is Origin.CLIENT and (self._unwritten or epoch < NO_EPOCH):
                self._check_beginning(producer_id, epoch, base_sequence, first_offset)
            begun = first_offset if transactional else NO_TRANSACTION
            new = KnownProducer(epoch, -1, timestamp, begun, (batch,), now_ms)
        else:
            known_epoch, coordinator_epoch, _, begun, batches, _ = known
            if epoch != known_epoch:
                self._check_new_epoch(producer_id, known, epoch, base_sequence, first_offset, origin)
                batches = ()
            elif origin is Origin.CLIENT and base_sequence != ((batches[-1][0] + 1) & SEQUENCE_MAX if batches else 0):
                return self._repeated(producer_id, batches, base_sequence, last_sequence, first_offset)
            if transactional:
                if begun < 0:
                    begun = first_offset
            elif begun >= 0 and origin is not Origin.REPLICATION:
                raise AppendRefused(
                    ErrorCode.INVALID_TXN_STATE,
                    f"Expected transactional write from producer {producer_id} at offset {first_offset} in partition "
                    f"{self._tp}",
                )
            kept = (*batches[1 - BATCHES_KEPT :], batch)
            new = tuple.__new__(KnownProducer, (epoch, coordinator_epoch, timestamp, begun, kept, now_ms))
        if begun == first_offset and transactional and origin is Origin.CLIENT:
            self._check_first(producer_id, known, epoch, base_sequence, first_offset)
        if producer_id not in self._undo:
            self._undo[producer_id] = known
        if begun == first_offset and transactional:
            self._open.begin(first_offset)
            self.is_stable = False
            self._verifications.end(producer_id)
        self._known[producer_id] = new
        return None

    def are_next(self, batches: Iterable[tuple[int, int, int, int, int]]) -> bool:
        """Whether each batch goes on where its producer, by id, epoch and sequence, has ended; `stage` then takes them.

        The first number of each is the caller's own; the last is 1 in a transaction, which is to be open, and 0 outside
        of any, where none is. False also where a producer has two.
        """
        seen: set[int] = set()
        for _, producer_id, epoch, sequence, is_open in batches:
            known = self._known.get(producer_id)
            if known is None or producer_id in seen or known.epoch != epoch:
                return False
            if (known.first_offset_open >= 0) != (is_open != 0):
                return False
            if not known.batches or sequence != (known.batches[-1].last_sequence + 1) & SEQUENCE_MAX:
                return False
            seen.add(producer_id)
        return True

    def _check_first(
        self, producer_id: int, known: KnownProducer | None, epoch: int, base_sequence: int, offset: int
    ) -> None:
        """Of a transaction: an earlier batch of it may have been refused, which its producer sends again."""
        verification = self._verifications.of(producer_id)
        if verification is None or verification.epoch != epoch:
            return
        if verification.begins_at_zero and base_sequence and (known is None or not known.batches):
            raise AppendRefused(
                ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                f"Invalid sequence number for producer {producer_id} at offset {offset} in partition {self._tp}: "
                f"{base_sequence} (incoming seq. number). Expected sequence 0 for transactions v2 idempotent producer "
                f"with no existing state.",
            )
        if base_sequence > verification.first_sequence:
            raise AppendRefused(
                ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                f"Out of order sequence number for producer {producer_id} at offset {offset} in partition {self._tp}: "
                f"{base_sequence} (incoming seq. number), {verification.first_sequence} (earliest seen sequence)",
            )

    def _check_beginning(self, producer_id: int, epoch: int, base_sequence: int, offset: int) -> None:
        if epoch < NO_EPOCH:
            raise AppendRefused(
                ErrorCode.INVALID_PRODUCER_EPOCH,
                f"Epoch of producer {producer_id} at offset {offset} in {self._tp} is {epoch}, which is smaller than "
                f"the last seen epoch {NO_EPOCH}",
            )
        unwritten = self._unwritten.get(producer_id)
        if unwritten is not None and unwritten[0] == epoch and base_sequence > unwritten[1]:
            raise AppendRefused(
                ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                f"Out of order sequence number for producer {producer_id} at offset {offset} in partition {self._tp}: "
                f"{base_sequence} (incoming seq. number), and {unwritten[1]} could not be written",
            )

    def _check_new_epoch(
        self, producer_id: int, known: KnownProducer, epoch: int, base_sequence: int, offset: int, origin: Origin
    ) -> None:
        if origin is Origin.REPLICATION:
            return
        if epoch < known.epoch:
            raise AppendRefused(
                ErrorCode.INVALID_PRODUCER_EPOCH,
                f"Epoch of producer {producer_id} at offset {offset} in {self._tp} is {epoch}, which is smaller than "
                f"the last seen epoch {known.epoch}",
            )
        if origin is Origin.CLIENT and base_sequence != 0:
            raise AppendRefused(
                ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                f"Invalid sequence number for new epoch of producer {producer_id} at offset {offset} in partition "
                f"{self._tp}: {epoch} (request epoch), {base_sequence} (seq. number), {known.epoch} (current producer "
                f"epoch)",
            )

    def _repeated(
        self, producer_id: int, batches: tuple[WrittenBatch, ...], base_sequence: int, last_sequence: int, offset: int
    ) -> WrittenBatch:
        for batch in batches:
            first_sequence = (batch.last_sequence - batch.offset_delta) & SEQUENCE_MAX
            if batch.last_sequence == last_sequence and first_sequence == base_sequence:
                return batch
        expected_after = batches[-1].last_sequence if batches else -1
        raise AppendRefused(
            ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
            f"Out of order sequence number for producer {producer_id} at offset {offset} in partition {self._tp}: "
            f"{base_sequence} (incoming seq. number), {expected_after} (current end sequence number)",
        )

    def stage_marker(
        self, producer_id: int, epoch: int, marker: Marker, offset: int, timestamp: int, now_ms: int, origin: Origin
    ) -> AbortedTransaction | None:
        """Takes the marker that ends a producer's transaction; the entry for the index where it aborts one."""
        known = self._known.get(producer_id)
        if origin is not Origin.REPLICATION:
            self.check_marker(producer_id, epoch, marker.coordinator_epoch, offset)
        self._verifications.end(producer_id)
        batches = known.batches if known is not None and known.epoch == epoch else ()
        if producer_id not in self._undo:
            self._undo[producer_id] = known
        self._known[producer_id] = KnownProducer(
            epoch, marker.coordinator_epoch, timestamp, NO_TRANSACTION, batches, now_ms
        )
        begun = NO_TRANSACTION if known is None else known.first_offset_open
        if begun < 0:
            # Nothing was written in this transaction here: readers need not know of it.
            return None
        self._open.end(begun, offset)
        if not marker.aborts:
            return None
        first = self._open.first()
        return AbortedTransaction(producer_id, begun, offset, offset + 1 if first is None else first)

    def check_marker(
        self, producer_id: int, epoch: int, coordinator_epoch: int, offset: int, *, is_bumped: bool = False
    ) -> None:
        """Raises AppendRefused. `is_bumped`: the marker has a later epoch than its transaction, as of version 2."""
        known = self._known.get(producer_id)
        seen = NO_EPOCH if known is None else known.epoch
        # One that has come already may come again; and behind the last epoch there is none.
        is_early = is_bumped and epoch == seen != EPOCH_MAX and known is not None and known.first_offset_open >= 0
        if epoch < seen or is_early:
            raise AppendRefused(
                ErrorCode.INVALID_PRODUCER_EPOCH,
                f"Epoch of producer {producer_id} at offset {offset} in {self._tp} is {epoch}, which is "
                f"{'<=' if is_bumped else '<'} the last seen epoch {seen}",
            )
        coordinator = NO_COORDINATOR if known is None else known.coordinator_epoch
        self._check_coordinator(producer_id, coordinator, coordinator_epoch, offset)

    def _check_coordinator(self, producer_id: int, known_epoch: int, epoch: int, offset: int) -> None:
        if epoch < known_epoch:
            raise AppendRefused(
                ErrorCode.TRANSACTION_COORDINATOR_FENCED,
                f"Invalid coordinator epoch for producerId {producer_id} at offset {offset} in partition {self._tp}: "
                f"{epoch} (zombie), {known_epoch} (current)",
            )

    # -- transactions that their coordinators are asked about

    def of(self, producer_id: int) -> KnownProducer | None:
        return self._known.get(producer_id)

    def has_open(self, producer_id: int, epoch: int) -> bool:
        """Whether a transaction of this epoch has batches here, and no marker yet."""
        known = self._known.get(producer_id)
        return known is not None and known.first_offset_open >= 0 and known.epoch == epoch

    def is_behind(self, producer_id: int, epoch: int) -> bool:
        """Whether a later epoch of the producer is known."""
        known = self._known.get(producer_id)
        return known is not None and epoch < known.epoch

    def begin_verifying(
        self, producer_id: int, epoch: int, sequence: int, *, begins_at_zero: bool = False
    ) -> Verification:
        """`begins_at_zero`: the producer has an epoch for each transaction, and so begins to count anew in each."""
        return self._verifications.begin(producer_id, epoch, sequence, begins_at_zero=begins_at_zero)

    def forget_verifying(self, producer_id: int) -> None:
        """A marker of it is about to come."""
        self._verifications.end(producer_id)

    def is_verified(self, producer_id: int, epoch: int, verification: Verification) -> bool:
        """Whether neither a marker nor a batch has come since the question."""
        return self.remembers(producer_id, verification) or self.has_open(producer_id, epoch)

    def remembers(self, producer_id: int, verification: Verification) -> bool:
        return self._verifications.of(producer_id) is verification

    @property
    def staged(self) -> bool:
        return bool(self._undo)

    def commit(self) -> None:
        """What was staged has been written."""
        if self._unwritten:
            for producer_id in self._undo:
                self._unwritten.pop(producer_id, None)
        self._undo.clear()
        self._open.commit()

    def rollback(self) -> None:
        """What was staged has not been written."""
        if not self._undo:
            return
        undone, self._undo = self._undo, {}
        for producer_id, before in undone.items():
            if before is None:
                self._remember_unwritten(producer_id, self._known.pop(producer_id))
            else:
                self._known[producer_id] = before
        self._open.rollback()

    def _remember_unwritten(self, producer_id: int, staged: KnownProducer) -> None:
        if not staged.batches or producer_id in self._unwritten:
            return
        while len(self._unwritten) >= UNWRITTEN_MAX:
            del self._unwritten[next(iter(self._unwritten))]
        first = staged.batches[0]
        self._unwritten[producer_id] = staged.epoch, (first.last_sequence - first.offset_delta) & SEQUENCE_MAX

    # -- readers of committed records

    def first_open(self) -> int | None:
        """Where the oldest open transaction begins."""
        return self._open.first()

    def committed_to(self, high_watermark: int) -> None:
        """Markers below are committed, and need no memory any more."""
        self._open.committed_to(high_watermark)

    def first_unstable(self, high_watermark: int) -> int | None:
        """The same, with a transaction counting as open until its marker is below the high watermark."""
        first = self._open.first_unstable(high_watermark)
        self.is_stable = first is None
        return first

    # -- life

    def expiring(self, now_ms: int, expiration_ms: int) -> Steps[None]:
        """Forgets producers without an open transaction that have not been heard of for long."""
        for producer_ids in pieces(list(self._known)):
            assert not self._undo, "the round's end comes first"
            for producer_id in producer_ids:
                known = self._known.get(producer_id)
                if (
                    known is not None
                    and known.first_offset_open < 0
                    and now_ms - max(known.timestamp, known.seen_ms) >= expiration_ms
                ):
                    del self._known[producer_id]
            yield

    def expire(self, now_ms: int, expiration_ms: int) -> None:
        """The same at once."""
        at_once(self.expiring(now_ms, expiration_ms))

    def clear(self) -> None:
        self._known = {}
        self._open = OpenTransactions()
        self.is_stable = True
        self._undo.clear()
        self._verifications.clear()

    def last_batches(self) -> Iterator[list[tuple[int, int, int]]]:
        """Of each producer its id, its epoch and the last offset of its last batch, -1 where only a marker is known.

        In pieces, between which the state may change: each producer stands for when it is reached.
        """
        for producer_ids in pieces(list(self._known), _LISTED_AT_ONCE):
            found = [(producer_id, self._known.get(producer_id)) for producer_id in producer_ids]
            yield [
                (producer_id, known.epoch, known.batches[-1].last_offset if known.batches else -1)
                for producer_id, known in found
                if known is not None
            ]

    def describe(self) -> list[ActiveProducer]:
        return at_once(self.describing())

    def describing(self) -> Steps[list[ActiveProducer]]:
        """Each as it is when it is reached."""
        described: list[ActiveProducer] = []
        for producer_ids in pieces(list(self._known)):
            for producer_id in producer_ids:
                known = self._known.get(producer_id)
                if known is not None:
                    described.append(
                        ActiveProducer(
                            producer_id,
                            known.epoch,
                            known.batches[-1].last_sequence if known.batches else -1,
                            known.timestamp,
                            known.coordinator_epoch,
                            known.first_offset_open,
                        )
                    )
            yield
        return described

    def snapshot(self) -> list[ProducerEntry]:
        return [ProducerEntry._make(fields) for fields in entries_of(self._known)]

    def freeze(self) -> Mapping[int, KnownProducer] | None:
        """What is known now, for another thread to read until `thaw`; None where somebody does so already."""
        assert not self._undo, "a snapshot says what is in the log"
        if isinstance(self._known, Overlay):
            return None
        frozen, self._known = self._known, Overlay(self._known)
        return frozen

    def thaw(self) -> None:
        """Nobody reads the frozen state any more."""
        if isinstance(self._known, Overlay):
            self._known = self._known.merged()

    def restore(self, entries: Iterable[ProducerEntry], now_ms: int) -> None:
        """Takes over a snapshot, which knows only the last batch of each producer."""
        for entry in entries:
            batch = WrittenBatch(entry.last_sequence, entry.last_offset, entry.offset_delta, entry.timestamp)
            self._known[entry.producer_id] = KnownProducer(
                entry.epoch,
                entry.coordinator_epoch,
                entry.timestamp,
                entry.current_txn_first_offset,
                (batch,) if entry.last_offset >= 0 else (),
                now_ms,
            )
        self._open = OpenTransactions(
            known.first_offset_open for known in self._known.values() if known.first_offset_open >= 0
        )
        self.is_stable = not self._open

    def incomplete(self) -> dict[int, int]:
        """Producers, with their epochs, of which a snapshot named only the last of several batches."""
        return {
            producer_id: known.epoch
            for producer_id, known in self._known.items()
            if len(known.batches) == 1 and known.batches[0].last_sequence > known.batches[0].offset_delta
        }

    def complete(self, producer_id: int, batches: Sequence[WrittenBatch]) -> None:
        """Takes the last batches as they are in the log, where they lead up to the one that is known."""
        known = self._known[producer_id]
        if batches and batches[-1][:3] == known.batches[0][:3]:
            self._known[producer_id] = known._replace(batches=tuple(batches))


def entries_of(known: Mapping[int, KnownProducer]) -> Iterator[tuple[int, int, int, int, int, int, int, int]]:
    """The fields of a snapshot's entries, in the order of `ProducerEntry`."""
    for producer_id, (epoch, coordinator_epoch, timestamp, begun, batches, _) in known.items():
        if batches:
            last_sequence, last_offset, delta, _ = batches[-1]
        else:
            last_sequence, last_offset, delta = -1, -1, 0
        yield producer_id, epoch, last_sequence, last_offset, delta, timestamp, coordinator_epoch, begun
