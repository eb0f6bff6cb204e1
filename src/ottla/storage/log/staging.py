"""The writing end of a log: stage, write, take back.

    nothing staged ──stage──▶ staged ──write──▶ nothing staged: all of it is in the log, in one call
                        │ stage, again        └ a fault, or discard: nothing of it is

`stage` is the broker's hottest code after the sockets: what a plain batch needs stands in one expression, of fields of
this object only, and everything unusual is elsewhere (`append.py` for what is checked, `rolling.py` for when the
segment is full). So what the configuration and the active segment allow stands here as numbers to compare with. Those
of the configuration change with it; those of the segment are void (`roll_size` is ALWAYS) as soon as they may have
changed, and the next batch has them set again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ottla.config import LogConfig
from ottla.records.batch import (
    COMPRESSION_MASK,
    CONTROL,
    HEADER_SIZE,
    LOG_OVERHEAD,
    LOW_ATTRIBUTES_AT,
    MAGIC,
    TRANSACTIONAL,
    BatchHeader,
    header_fields,
)
from ottla.records.checksum import crc32c
from ottla.records.compression import UNFOLDS_MAX
from ottla.records.plain import (
    COUNTED_RECORDS_MAX,
    LONE_RECORD_AT,
    LONE_SIZE_END,
    PLAIN_FIELDS,
    PLAIN_SIZE_MIN,
    SEQUENCE_FIELDS,
    STAMPED_FIELDS,
    SUMMED_FROM,
    are_whole,
)
from ottla.records.record import RECORD_BYTES_MIN
from ottla.records.varint import SMALL
from ottla.storage.errors import FaultKind, StorageFault
from ottla.storage.log import replica_append, rolling
from ottla.storage.log.append import AppendResult, ExaminedBatch, Origin, accept, examine, rules_of, usual_attributes
from ottla.storage.log.durability import Durability
from ottla.storage.log.indexes.txn_index import AbortedTransaction
from ottla.storage.log.leader_epochs import LeaderEpochs
from ottla.storage.log.markers import read_marker
from ottla.storage.log.places import Places
from ottla.storage.log.producers.memory import ProducerMemory
from ottla.storage.log.producers.producer_state import WrittenBatch
from ottla.storage.log.segment import Segment

if TYPE_CHECKING:
    from ottla.native.lane import Run

_UNPACK: Final = PLAIN_FIELDS.unpack_from
_SEQUENCE: Final = SEQUENCE_FIELDS.unpack_from
_PRODUCER: Final = header_fields("producer_id", "producer_epoch").unpack_from
_PACK_STAMP: Final = STAMPED_FIELDS.pack_into


#: The next batch is looked at by `rolling.before_batch`, whatever it is.
ALWAYS: Final = -2
#: The leader epoch of the next batch has to be compared with the log's.
UNSET_EPOCH: Final = -2


class Staging:
    __slots__ = (
        *(
            "_batches",
            "_buffers",
            "_future_ms",
            "_leader_epoch",
            "_roll_after",
            "_rules",
            "_size_max",
            "_staged_aborted",
        ),
        *("_staged_epochs", "_usual", "_usual_bits", "config", "durability", "leader_epochs", "next_offset", "places"),
        *("producer_memory", "roll_offset", "roll_size", "roll_timestamp", "rolls_apart"),
        *("is_to_be_read", "roll_base", "staged_end", "waits_for"),
    )

    def __init__(
        self,
        places: Places,
        leader_epochs: LeaderEpochs,
        producer_memory: ProducerMemory,
        durability: Durability,
        config: LogConfig,
    ) -> None:
        self.places = places
        self.leader_epochs = leader_epochs
        self.producer_memory = producer_memory
        self.durability = durability
        #: Behind the last batch that is staged: the next batch's first offset. Where nothing is staged, the log's end.
        self.next_offset = places.end_offset
        #: The active segment's size with what is staged.
        self.staged_end = places.active.size
        #: What is staged: batches one behind the other, several in a buffer where lanes have collected them.
        self._buffers: list[bytes | memoryview] = []
        #: Size, first and last offset, and largest timestamp of each batch in them.
        self._batches: list[tuple[int, int, int, int]] = []
        #: Leader epochs that begin with a staged batch, and where.
        self._staged_epochs: list[tuple[int, int]] = []
        #: Transactions that a staged marker aborts.
        self._staged_aborted: list[AbortedTransaction] = []
        #: That of the last staged batch, of which nothing is to be noted any more.
        self._leader_epoch = UNSET_EPOCH
        #: The segment is rolled before `staged_end` passes `roll_size`, or a batch `roll_timestamp` or `roll_offset`.
        self.roll_size, self.roll_offset, self.roll_timestamp = ALWAYS, 0, 0
        #: What has to have room on the disk before anything is appended here; None where nothing has.
        self.waits_for: str | None = None
        #: Whether a worker makes the next segment: then RollDue is raised where one is due. Otherwise the caller waits.
        self.rolls_apart = False
        #: Where the next segment is to begin, from when one is due until it is there. Nothing is appended meanwhile.
        self.roll_base: int | None = None
        #: Whether it is no segment that a worker is to make, but something that it is to read.
        self.is_to_be_read = False
        #: The next offset when it became due.
        self._roll_after = -1
        self.reconfigure(config)

    # -- what is allowed

    def reconfigure(self, config: LogConfig) -> None:
        """From the next batch on."""
        self.config = config
        self._rules = rules_of(config)
        self._usual = usual_attributes(config)
        # The same, and in transactions: a run has those of open ones only.
        self._usual_bits = sum((1 << attributes) + (1 << (attributes | TRANSACTIONAL)) for attributes in self._usual)
        self._size_max = min(config.max_message_bytes, config.segment_bytes)
        self._future_ms = config.message_timestamp_after_max_ms
        self.roll_size = ALWAYS

    def limit(self, roll_size: int, roll_offset: int, roll_timestamp: int) -> None:
        """Up to these the active segment takes batches without another look."""
        self.roll_size, self.roll_offset, self.roll_timestamp = roll_size, roll_offset, roll_timestamp

    def rolled(self) -> None:
        """The log goes on in another segment, which is empty."""
        self.staged_end = self.places.active.size
        self.roll_size = ALWAYS

    def hold_back(self, waits_for: str) -> None:
        """Refuses what is appended, as on a full disk, until `go_on`."""
        self.waits_for = waits_for
        self.roll_size = ALWAYS

    def go_on(self) -> None:
        self.waits_for = None

    def roll_apart(self) -> None:
        """From now on RollDue is raised; the caller that catches it has a worker make the segment (`rolling.Roll`)."""
        self.rolls_apart = True

    def want_roll(self, base_offset: int) -> None:
        """Nothing is appended until `end_roll`."""
        assert self.roll_base is None, "one at a time"
        self.roll_base = base_offset
        self._roll_after = self.next_offset
        self.roll_size = ALWAYS

    def want_reading(self) -> None:
        """The same, until a worker has read what the first batch needs."""
        self.want_roll(self.next_offset)
        self.is_to_be_read = True

    def settle_roll_base(self) -> int:
        """Where the segment begins, now that nothing is staged: lower, where what came before it was lost."""
        assert self.roll_base is not None
        if self.places.end_offset != self._roll_after:
            self.roll_base = self.places.end_offset
        return self.roll_base

    def end_roll(self) -> None:
        self.roll_base = None
        self.is_to_be_read = False

    @property
    def takes_runs(self) -> bool:
        """Whether batches may pass without a look at each."""
        return self._usual_bits != 0

    # -- staging

    def stage(
        self, records: memoryview, leader_epoch: int, now_ms: int, origin: Origin = Origin.CLIENT
    ) -> AppendResult:
        """Takes a batch, in a writable buffer that stays as it is until it is written.

        Raises AppendRefused, and the log is as it was; or StorageFault, when the segment was to be rolled: batches that
        were staged before and lie below `end_offset` are then written, the others are not and never will be.
        """
        if origin is Origin.CLIENT:
            first = self.stage_plain(records, leader_epoch, now_ms)
            if first >= 0:
                return AppendResult(first, self.next_offset - 1, -1, False, self.places.start_offset)
        return self._stage_examined(
            examine(records, self.config, self._rules, now_ms, origin), leader_epoch, now_ms, origin
        )

    def stage_checked(self, records: memoryview, leader_epoch: int, now_ms: int) -> AppendResult:
        """Takes a producer's batch of which `examine_whole` has said what is to be stored; otherwise as `stage`."""
        return self._stage_examined(accept(records, self.config, now_ms), leader_epoch, now_ms, Origin.CLIENT)

    def _stage_examined(self, examined: ExaminedBatch, leader_epoch: int, now_ms: int, origin: Origin) -> AppendResult:
        records, header, stamped = examined
        size, delta, timestamp = len(records), header.last_offset_delta, header.max_timestamp
        first = self.next_offset
        last = first + delta
        if self.staged_end + size > self.roll_size or timestamp > self.roll_timestamp or last > self.roll_offset:
            rolling.before_batch(self, size, first, last, timestamp)
        if header.producer_id >= 0:
            if header.attributes & CONTROL:
                self._stage_marker(records, header, first, now_ms, origin)
            else:
                known = self._stage_sequence(header, first, now_ms, origin)
                if known is not None:
                    # Kafka answers the time that is stored, also where that is the producer's own.
                    return AppendResult(known[1] - known[2], known[1], known[3], True, self.places.start_offset)
        _PACK_STAMP(records, 0, first, size - LOG_OVERHEAD, leader_epoch)
        self.add_staged(records, first, last, timestamp, leader_epoch)
        return AppendResult(first, last, stamped, False, self.places.start_offset)

    def stage_in_transaction(self, records: memoryview, leader_epoch: int, now_ms: int) -> int:
        """`stage_plain` for a batch that is plain but for its transaction, which its producer has open here."""
        if len(records) < PLAIN_SIZE_MIN or not records[LOW_ATTRIBUTES_AT] & TRANSACTIONAL:
            return -1
        producers = self.producer_memory.loaded
        if producers is None or not producers.has_open(*_PRODUCER(records)):
            return -1
        return self.stage_plain(records, leader_epoch, now_ms, TRANSACTIONAL)

    def stage_plain(self, records: memoryview, leader_epoch: int, now_ms: int, transactional: int = 0) -> int:
        """Takes a producer's batch if there is nothing unusual about it, and returns its first offset.

        -1, and the log is as it was, where `stage` is to look at it; raises what `stage` raises. `transactional`: the
        bit of batches in a transaction, of which this is one.
        """
        size = len(records)
        if size < PLAIN_SIZE_MIN:
            return -1
        base, length, magic, crc, attributes, delta, timestamp, producer_id, count, lead = _UNPACK(records)
        if transactional:
            attributes ^= transactional
        if (
            length + LOG_OVERHEAD != size
            or size > self._size_max
            or attributes not in self._usual
            or count != delta + 1
            or base
            or magic != MAGIC
            or count < 1
            or timestamp > now_ms + self._future_ms
            or (
                not attributes & COMPRESSION_MASK
                # A single record of the usual size is known by its length's two bytes alone.
                and (count > 1 or size >= LONE_SIZE_END or lead != SMALL[size - LONE_RECORD_AT])
                and not are_whole(records, size, count)
                if count <= COUNTED_RECORDS_MAX
                else count * RECORD_BYTES_MIN > (size - HEADER_SIZE) * UNFOLDS_MAX[attributes]
            )
            or (producer_id >= 0 and _SEQUENCE(records)[1] < 0)
            or crc32c(records[SUMMED_FROM:]) != crc
        ):
            return -1
        first = self.next_offset
        last = first + delta
        end = self.staged_end + size
        if end > self.roll_size or timestamp > self.roll_timestamp or last > self.roll_offset:
            rolling.before_batch(self, size, first, last, timestamp)
            end = self.staged_end + size
        if producer_id >= 0:
            producers = self.producer_memory.loaded or self.producer_memory.states
            epoch, sequence = _SEQUENCE(records)
            is_open = transactional != 0
            known = producers.stage(
                producer_id, epoch, sequence, delta, first, timestamp, is_open, now_ms, Origin.CLIENT
            )
            if known is not None:
                return -1
        if leader_epoch != self._leader_epoch:
            self._begin_epoch(leader_epoch, first)
        _PACK_STAMP(records, 0, first, length, leader_epoch)
        self._buffers.append(records)
        self._batches.append((size, first, last, timestamp))
        self.staged_end = end
        self.next_offset = last + 1
        return first

    def stage_run(self, run: Run, leader_epoch: int, now_ms: int) -> int:
        """Takes plain batches of producers that are checked already, all or none of them.

        Returns the offset behind them; -1, and the log is as it was, where each of them is to be looked at by itself.
        """
        first = self.next_offset
        next_offset = first + run.records
        end = self.staged_end + run.size
        if (
            end > self.roll_size
            or run.max_timestamp > min(self.roll_timestamp, now_ms + self._future_ms)
            or next_offset - 1 > self.roll_offset
            or run.largest > self._size_max
            or run.attributes & ~self._usual_bits
            or (run.idempotent and not self.producer_memory.states.are_next(run.producers()))
        ):
            return -1
        if leader_epoch != self._leader_epoch:
            self._begin_epoch(leader_epoch, first)
        batches = run.stamp(first, leader_epoch)
        if run.idempotent:
            producers = self.producer_memory.states
            for number, producer_id, epoch, sequence, is_open in run.producers():
                _, offset, last, timestamp = batches[number]
                producers.stage(
                    *(producer_id, epoch, sequence, last - offset, offset, timestamp, is_open != 0, now_ms),
                    Origin.CLIENT,
                )
        self._batches += batches
        self._buffers.append(run.data())
        self.staged_end = end
        self.next_offset = next_offset
        return next_offset

    def stage_replica(self, records: memoryview, now_ms: int = 0, epoch_max: int | None = None) -> AppendResult:
        """Takes a leader's batches as they are; raises AppendRefused where they do not go on from this log's end, or
        are of a later leader epoch than `epoch_max`."""
        return replica_append.stage_replica(self, records, now_ms or self.producer_memory.opened_ms, epoch_max)

    def _stage_sequence(self, header: BatchHeader, first: int, now_ms: int, origin: Origin) -> WrittenBatch | None:
        transactional = header.attributes & TRANSACTIONAL != 0
        return self.producer_memory.states.stage(
            header.producer_id,
            header.producer_epoch,
            header.base_sequence,
            header.last_offset_delta,
            first,
            header.max_timestamp,
            transactional,
            now_ms,
            origin,
        )

    def _stage_marker(self, records: memoryview, header: BatchHeader, offset: int, now_ms: int, origin: Origin) -> None:
        marker = read_marker(records)
        if marker is not None:
            aborted = self.producer_memory.states.stage_marker(
                header.producer_id, header.producer_epoch, marker, offset, header.max_timestamp, now_ms, origin
            )
            if aborted is not None:
                self.add_aborted(aborted)

    def add_staged(self, batch: memoryview, first: int, last: int, timestamp: int, leader_epoch: int) -> None:
        """Stages a batch that has its offsets and leader epoch."""
        if leader_epoch != self._leader_epoch:
            self._begin_epoch(leader_epoch, first)
        self._buffers.append(batch)
        self._batches.append((len(batch), first, last, timestamp))
        self.staged_end += len(batch)
        self.next_offset = last + 1

    def add_run(self, batches: memoryview, places: list[tuple[int, int, int, int]]) -> None:
        """The same with several, one behind the other, of the leader epoch of the one before them."""
        self._buffers.append(batches)
        self._batches += places
        self.staged_end += len(batches)
        self.next_offset = places[-1][2] + 1

    @property
    def leader_epoch(self) -> int:
        """That of the last staged batch; negative where it has to be compared with the log's."""
        return self._leader_epoch

    def leader_epoch_began(self) -> None:
        """One that may never have a record: what another leader then sends contradicts it, also where that goes on in
        the leader epoch of the last batch."""
        self._leader_epoch = UNSET_EPOCH

    def add_aborted(self, aborted: AbortedTransaction) -> None:
        """A batch that is being staged aborts this transaction."""
        self._staged_aborted.append(aborted)

    def _begin_epoch(self, epoch: int, offset: int) -> None:
        known = self.leader_epochs.cache
        if epoch > known.latest or known.is_pending:
            self._staged_epochs.append((epoch, offset))
        self._leader_epoch = epoch

    # -- writing

    def write(self) -> None:
        """Writes what is staged, in one call. On StorageFault nothing of it is in the log."""
        if not self._batches:
            return
        segment = self.places.segments[-1]
        try:
            segment.file.append(self._buffers)
        except Exception as error:
            # Whatever it was: a part may be in the file, behind the end that is known.
            fault = self._write_failed(segment, error)
            if fault is None:
                raise
            raise fault from error
        try:
            self._note_written(segment)
        except StorageFault:
            raise
        except Exception as error:
            # The file has them, and what we know of it may not: only a start, which reads the file, can find out.
            raise StorageFault.of_ours(segment.path(), error) from error

    def _note_written(self, segment: Segment) -> None:
        batches = self._batches
        size = self.places.wrote(batches, self.next_offset)
        assert size == self.staged_end
        self._buffers.clear()
        batches.clear()
        producers = self.producer_memory.loaded
        if producers is not None and producers.staged:
            producers.commit()
        if self._staged_epochs or self._staged_aborted:
            self._write_marks(segment)

    def _write_marks(self, segment: Segment) -> None:
        for epoch, offset in self._staged_epochs:
            self.leader_epochs.cache.assign(epoch, offset)
        self._staged_epochs.clear()
        for entry in self._staged_aborted:
            segment.note_aborted(entry)
        if self._staged_aborted:
            self._staged_aborted.clear()
            self.durability.aborted_waits()

    def _write_failed(self, segment: Segment, error: Exception) -> StorageFault | None:
        """What the disk refused, in storage's words; None for a fault of ours after which the log is as it was."""
        fault = StorageFault.of(segment.path(), error) if isinstance(error, OSError) else None
        self.discard()
        file = segment.open_file
        if file is None:
            return fault  # it could not even be opened
        try:
            file.truncate(segment.size)
        except OSError as second:
            # What is behind the end is unknown: nothing may be appended to it any more.
            return StorageFault(FaultKind.DIRECTORY_FAILED, segment.path(), second)
        return fault

    def discard(self) -> None:
        """Takes back what is staged and not written, and looks again at where the log ends."""
        self._buffers.clear()
        self._batches.clear()
        self._staged_epochs.clear()
        self._staged_aborted.clear()
        self.next_offset = self.places.end_offset
        self.staged_end = self.places.active.size
        self._leader_epoch = UNSET_EPOCH
        self.roll_size = ALWAYS
        self.producer_memory.rollback()
