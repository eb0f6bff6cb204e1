"""The writing end of a log: stage, write, take back.

`stage` is the broker's hottest code after the sockets: what a plain batch needs stands in one expression, and
everything unusual is elsewhere (`append.py` for what is checked, `rolling.py` for when the segment is full).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ottla.records.batch import (
    COMPRESSION_MASK,
    CONTROL,
    HEADER_SIZE,
    LOG_OVERHEAD,
    MAGIC,
    TRANSACTIONAL,
    BatchHeader,
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
from ottla.storage.log.append import AppendResult, ExaminedBatch, Origin, accept, examine
from ottla.storage.log.markers import read_marker
from ottla.storage.log.producers.producer_state import WrittenBatch
from ottla.storage.log.segment import Segment
from ottla.storage.log.state import ALWAYS, UNSET_EPOCH, LogState

if TYPE_CHECKING:
    from ottla.native.lane import Run

_UNPACK: Final = PLAIN_FIELDS.unpack_from
_SEQUENCE: Final = SEQUENCE_FIELDS.unpack_from
_PACK_STAMP: Final = STAMPED_FIELDS.pack_into


class AppendableLog(LogState):
    __slots__ = ()

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
                return AppendResult(first, self.next_offset - 1, -1, False, self.start_offset)
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
                    return AppendResult(known[1] - known[2], known[1], known[3], True, self.start_offset)
        _PACK_STAMP(records, 0, first, size - LOG_OVERHEAD, leader_epoch)
        self.add_staged(records, first, last, timestamp, leader_epoch)
        return AppendResult(first, last, stamped, False, self.start_offset)

    def stage_plain(self, records: memoryview, leader_epoch: int, now_ms: int) -> int:
        """Takes a producer's batch if there is nothing unusual about it, and returns its first offset.

        -1, and the log is as it was, where `stage` is to look at it; raises what `stage` raises.
        """
        size = len(records)
        if size < PLAIN_SIZE_MIN:
            return -1
        base, length, magic, crc, attributes, delta, timestamp, producer_id, count, lead = _UNPACK(records)
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
            producers = self._producers or self.producers
            epoch, sequence = _SEQUENCE(records)
            known = producers.stage(producer_id, epoch, sequence, delta, first, timestamp, False, now_ms, Origin.CLIENT)
            if known is not None:
                return -1
        if leader_epoch != self._leader_epoch:
            self._begin_epoch(leader_epoch, first)
        _PACK_STAMP(records, 0, first, length, leader_epoch)
        self._staged.append(records)
        self._staged_batches.append((size, first, last, timestamp))
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
            or (run.idempotent and not self.producers.are_next(run.producers()))
        ):
            return -1
        if leader_epoch != self._leader_epoch:
            self._begin_epoch(leader_epoch, first)
        batches = run.stamp(first, leader_epoch)
        if run.idempotent:
            for number, producer_id, epoch, sequence in run.producers():
                _, offset, last, timestamp = batches[number]
                self.producers.stage(
                    producer_id, epoch, sequence, last - offset, offset, timestamp, False, now_ms, Origin.CLIENT
                )
        self._staged_batches += batches
        self._staged.append(run.data())
        self.staged_end = end
        self.next_offset = next_offset
        return next_offset

    def stage_replica(self, records: memoryview, now_ms: int = 0) -> AppendResult:
        """Takes a leader's batches as they are; raises AppendRefused where they do not go on from this log's end."""
        return replica_append.stage_replica(self, records, now_ms or self._opened_ms)

    def _stage_sequence(self, header: BatchHeader, first: int, now_ms: int, origin: Origin) -> WrittenBatch | None:
        transactional = header.attributes & TRANSACTIONAL != 0
        return self.producers.stage(
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
            aborted = self.producers.stage_marker(
                header.producer_id, header.producer_epoch, marker, offset, header.max_timestamp, now_ms, origin
            )
            if aborted is not None:
                self.staged_aborted.append(aborted)

    def add_staged(self, batch: memoryview, first: int, last: int, timestamp: int, leader_epoch: int) -> None:
        """Stages a batch that has its offsets and leader epoch."""
        if leader_epoch != self._leader_epoch:
            self._begin_epoch(leader_epoch, first)
        self._staged.append(batch)
        self._staged_batches.append((len(batch), first, last, timestamp))
        self.staged_end += len(batch)
        self.next_offset = last + 1

    def _begin_epoch(self, epoch: int, offset: int) -> None:
        if epoch > self.epochs.latest or self.epochs.is_pending:
            self._staged_epochs.append((epoch, offset))
        self._leader_epoch = epoch

    def write_staged(self) -> None:
        """Writes what is staged, in one call. On StorageFault nothing of it is in the log."""
        if not self._staged_batches:
            return
        segment = self.places.segments[-1]
        try:
            segment.file.append(self._staged)
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
        batches = self._staged_batches
        self.places.written().extend(segment.size, batches)
        position = segment.note_batches(segment.size, batches)
        self.size += position - segment.size
        segment.size = position
        assert position == self.staged_end
        self.end_offset = self.next_offset
        self.touched = True
        self._staged.clear()
        batches.clear()
        if self._producers is not None and self._producers.staged:
            self._producers.commit()
        if self._staged_epochs or self.staged_aborted:
            self._write_marks(segment)

    def _write_marks(self, segment: Segment) -> None:
        for epoch, offset in self._staged_epochs:
            self.epochs.assign(epoch, offset)
        self._staged_epochs.clear()
        aborted = list(self.staged_aborted)
        self.staged_aborted.clear()
        try:
            for entry in aborted:
                segment.add_aborted(entry)
        except OSError as error:
            raise StorageFault.of(segment.path(), error) from error

    def _write_failed(self, segment: Segment, error: Exception) -> StorageFault | None:
        """What the disk refused, in storage's words; None for a fault of ours after which the log is as it was."""
        fault = StorageFault.of(segment.path(), error) if isinstance(error, OSError) else None
        self.discard_staged()
        file = segment.open_file
        if file is None:
            return fault  # it could not even be opened
        try:
            file.truncate(segment.size)
        except OSError as second:
            # What is behind the end is unknown: nothing may be appended to it any more.
            return StorageFault(FaultKind.DIRECTORY_FAILED, segment.path(), second)
        return fault

    def discard_staged(self) -> None:
        """Takes back what is staged and not written."""
        self._staged.clear()
        self._staged_batches.clear()
        self._staged_epochs.clear()
        self.staged_aborted.clear()
        self.next_offset = self.end_offset
        self.staged_end = self.active.size
        self._leader_epoch = UNSET_EPOCH
        self.roll_size = ALWAYS
        if self._producers is not None:
            self._producers.rollback()
