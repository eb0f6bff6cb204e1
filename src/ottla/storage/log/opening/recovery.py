"""After a crash: reading what was not certain to be on the medium, and cutting where it ends.

Everything below the recovery point had been synced. A batch there that is not sound is corruption: it is reported and
nothing is touched. Above it the last writes may be torn, missing, or out of order, since the system writes pages as it
likes: the log ends before the first batch that is not sound. What is cut is kept beside the log, in
`<segment>.log.<position>.torn`, which neither we nor Kafka take for a log; a tail of nothing but zeros, as file systems
leave behind, is not worth that.

A disk that is full is no reason not to serve what is sound. Whole segments are set aside by renaming; a tail that
there is no room to copy is cut first, which makes some, and is written then; indexes without room stay in memory.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from ottla.model import TopicPartition
from ottla.ports import File
from ottla.records.batch import (
    ATTRIBUTES_AT,
    HEADER,
    HEADER_SIZE,
    INT32_MAX,
    LENGTH_MIN,
    LOG_OVERHEAD,
    MAGIC,
    OFFSET_MAX,
    BatchHeader,
)
from ottla.records.checksum import crc32c
from ottla.storage.errors import BadBatch, CorruptLog, DamagedIndex, StorageFault
from ottla.storage.formats.names import LOG
from ottla.storage.log.batch_walk import header_fault, read_header
from ottla.storage.log.epochs import EpochCache
from ottla.storage.log.markers import apply_written
from ottla.storage.log.producers.producer_state import ProducerStates
from ottla.storage.log.producers.snapshots import Snapshots, replay
from ottla.storage.log.segment import Segment

#: Read at once: large enough that system calls do not count, small enough to stay in the processor's cache.
CHUNK_BYTES: Final = 1 << 20
TORN: Final = ".torn"
#: Of a tail that is held in memory while it is cut: more than a round of the network writes at once. A larger one has
#: to wait for room, and its partition with it.
TAIL_BYTES_MAX: Final = 64 << 20


@dataclass(slots=True)
class RecoveryReport:
    """What opening a log after a crash found and did."""

    #: Where checking began.
    from_offset: int = 0
    end_offset: int = 0
    checked_bytes: int = 0
    truncated_bytes: int = 0
    #: Why the log was cut, in words; empty where it was not.
    reason: str = ""
    #: Where the cut bytes are.
    kept_aside: list[str] = field(default_factory=list)
    #: How many of them there was no room for anywhere.
    lost_bytes: int = 0


class RecoveredLog(NamedTuple):
    segments: list[Segment]
    end_offset: int
    report: RecoveryReport


class _Recovery:
    def __init__(
        self,
        tp: TopicPartition,
        segments: list[Segment],
        recovery_point: int,
        epochs: EpochCache,
        producers: ProducerStates,
        now_ms: int,
        *,
        gaps_allowed: bool,
    ) -> None:
        self.tp = tp
        self.segments = segments
        self.recovery_point = recovery_point
        self.epochs = epochs
        self.producers = producers
        self.gaps_allowed = gaps_allowed
        self.now_ms = now_ms
        #: Behind the last sound batch.
        self.next_offset = 0
        #: The offset of a batch that does not fit behind the one before it: either of them may be the damaged one.
        self.lowest_doubt = 2**63
        self.report = RecoveryReport()
        self.buffer = bytearray(0)

    def run(self, first: int, snapshots: Snapshots, log_start: int) -> RecoveredLog:
        """Checks the segments from number `first` on."""
        start = self._start(self.segments[first])
        self.report.from_offset = self.next_offset
        self.epochs.truncate_from_end(self.next_offset)
        self._read_producers(snapshots, log_start)
        for number in range(first, len(self.segments)):
            segment = self.segments[number]
            if number > first:
                if segment.base_offset < self.next_offset or (
                    segment.base_offset > self.next_offset and not self.gaps_allowed
                ):
                    self._tear(
                        number, 0, f"it does not begin at offset {self.next_offset}, where the one before it ends"
                    )
                    break
                self.next_offset, start = segment.base_offset, self._from_beginning(segment)
            try:
                if start < segment.size:
                    self._check(segment, start)
            except BadBatch as bad:
                self._tear(number, bad.position, bad.reason)
                break
            segment.note_uncertain(start)
            if segment.sealed:
                self._write_indexes(segment)
        self.report.end_offset = self.next_offset
        self.producers.commit()
        return RecoveredLog(self.segments, self.next_offset, self.report)

    @staticmethod
    def _write_indexes(segment: Segment) -> None:
        try:
            segment.write_indexes()
        except OSError as error:
            if StorageFault.of(segment.path(), error).directory_failed:
                raise
            # The disk is full. They are in memory, and a start that finds the files short one day makes them anew.

    def _read_producers(self, snapshots: Snapshots, log_start: int) -> None:
        """Producers' state where checking begins."""
        known = snapshots.restore(self.producers, self.next_offset, self.now_ms)
        try:
            replay(self.producers, self.segments, known, log_start, self.next_offset, self.now_ms)
        except BadBatch as bad:
            raise CorruptLog(self.tp, snapshots.around.directory, bad.position, bad.reason) from bad

    def _from_beginning(self, segment: Segment, *, keeps_aborted: bool = False) -> int:
        if segment.size:
            segment.forget_indexes()
        if keeps_aborted:
            # They are on the medium, and those that would be found again in their place are not.
            segment.cut_aborted(self.recovery_point)
        else:
            segment.replace_aborted([])
        return 0

    def _start(self, segment: Segment) -> int:
        """Where checking begins: at the last batch that the index knows to end below the recovery point."""
        position = offset = 0
        has_aborted = False
        with suppress(DamagedIndex, BadBatch, FileNotFoundError):
            segment.check_aborted()
            has_aborted = True
            position, offset = self._known_good(segment)
        if position == 0:
            self.next_offset = segment.base_offset
            return self._from_beginning(segment, keeps_aborted=has_aborted)
        segment.resume_indexes(offset)
        segment.cut_aborted(offset)
        self.next_offset = offset
        return position

    def _known_good(self, segment: Segment) -> tuple[int, int]:
        """Position and base offset of a batch that the index names and the log confirms."""
        if self.recovery_point <= segment.base_offset:
            return 0, segment.base_offset
        index = segment.load_indexes()
        number = index.floor(self.recovery_point - 1 - segment.base_offset)
        if number < 0:
            return 0, segment.base_offset
        place = segment.place_at(index.positions[number])
        if place.next_offset - 1 != segment.base_offset + index.offsets[number]:
            raise DamagedIndex("it does not fit the log")
        self._check_times(segment, place.base_offset, index.positions[number - 1] if number else 0)
        return place.position, place.base_offset

    @staticmethod
    def _check_times(segment: Segment, offset: int, entry_before: int) -> None:
        """Whether the time index is true below `offset`, as far as its last entry and the log's show."""
        times = segment.times
        number = bisect_left(times.offsets, offset - segment.base_offset) - 1
        segment.check_time(times, number)
        largest = times.timestamps[number] if number >= 0 else -1
        if entry_before and read_header(segment.file, entry_before, segment.size).max_timestamp > largest:
            raise DamagedIndex(f"it knows no timestamp above {largest}")

    def _check(self, segment: Segment, position: int) -> None:
        """Raises BadBatch at the first batch that is not sound."""
        file, end = segment.file, segment.size
        self.report.checked_bytes += end - position
        room = min(CHUNK_BYTES, end - position)
        if len(self.buffer) < room:
            self.buffer = bytearray(room)
        while position < end:
            view = memoryview(self.buffer)
            filled = file.read_into(view[: min(len(view), end - position)], position)
            used = self._check_chunk(segment, view[:filled], position)
            if used == 0:
                # Not one whole batch is in the buffer.
                self.buffer = bytearray(self._batch_size(view[:filled], position, end))
            position += used

    @staticmethod
    def _batch_size(chunk: memoryview, position: int, end: int) -> int:
        if len(chunk) < HEADER_SIZE:
            raise BadBatch(position, f"only {len(chunk)} bytes are left, and a header has {HEADER_SIZE}")
        header: BatchHeader = tuple.__new__(BatchHeader, HEADER.unpack_from(chunk))
        fault = header_fault(header, end - position)
        if fault is not None:
            raise BadBatch(position, fault)
        size = header.size
        if size <= len(chunk):
            raise BadBatch(position, "the file is shorter than it was")
        return size

    def _check_chunk(self, segment: Segment, chunk: memoryview, position: int) -> int:
        """Checks the whole batches in a piece of the file; returns how many bytes they are."""
        unpack, note = HEADER.unpack_from, segment.note_batch
        epochs, latest_epoch = self.epochs, self.epochs.latest
        next_offset = self.next_offset
        no_gaps_below = 0 if self.gaps_allowed else self.recovery_point
        furthest = min(segment.base_offset + INT32_MAX, OFFSET_MAX)
        size, at = len(chunk), 0
        while at + HEADER_SIZE <= size:
            header = unpack(chunk, at)
            base, length, epoch, magic, crc, _, delta, _, latest, producer_id, _, _, _ = header
            end = at + length + LOG_OVERHEAD
            if end > size or length < LENGTH_MIN:
                break
            if base < next_offset or magic != MAGIC or delta < 0:
                break
            # The offset is the one field that no checksum covers: a flipped bit makes it jump.
            if base + delta > furthest or (base > next_offset and next_offset < no_gaps_below):
                break
            if crc32c(chunk[at + ATTRIBUTES_AT : end]) != crc:
                break
            if epoch > latest_epoch:
                latest_epoch = epoch
                epochs.assign(latest_epoch, base)
            if producer_id >= 0:
                self._apply(segment, tuple.__new__(BatchHeader, header), chunk[at:end])
            next_offset = self.next_offset = base + delta + 1
            note(position + at, end - at, next_offset - 1, latest)
            at = end
        else:
            return at
        self._raise_fault(header, chunk, at, position, segment)
        return at

    def _raise_fault(
        self, fields: tuple[int, ...], chunk: memoryview, at: int, position: int, segment: Segment
    ) -> None:
        """Raises what is wrong with the batch at `at`, unless it is only cut by the end of the chunk."""
        header: BatchHeader = tuple.__new__(BatchHeader, fields)
        fault = header_fault(header, segment.size - position - at)
        if fault is None and header.base_offset < self.next_offset:
            fault = f"its offset {header.base_offset} lies below {self.next_offset}, where the one before it ends"
            self.lowest_doubt = header.base_offset
        if fault is None and header.last_offset > segment.base_offset + INT32_MAX:
            fault = f"its offset {header.base_offset} is too far from that of its segment"
        if fault is None and header.base_offset > self.next_offset < self.recovery_point and not self.gaps_allowed:
            fault = f"its offset {header.base_offset} does not follow {self.next_offset}, where the one before it ends"
        if fault is None and at + header.size <= len(chunk):
            fault = f"its checksum is not {header.crc:#010x}"
        if fault is not None:
            raise BadBatch(position + at, fault)

    def _apply(self, segment: Segment, header: BatchHeader, batch: memoryview) -> None:
        aborted = apply_written(self.producers, header, batch, self.now_ms)
        if aborted is not None:
            segment.add_aborted(aborted)

    # -- cutting

    def _tear(self, number: int, position: int, reason: str) -> None:
        """Ends the log in segment `number` at `position`, where that is above the recovery point."""
        segment = self.segments[number]
        if min(self.next_offset, self.lowest_doubt) < self.recovery_point:
            raise CorruptLog(self.tp, segment.path(), position, reason)
        report = self.report
        report.reason = f"{segment.path()}, byte {position}: {reason}"
        for later in self.segments[number + 1 :]:
            self._set_whole_aside(later)
        del self.segments[number + 1 :]
        if position == 0 and number > 0:
            self._set_whole_aside(segment)
            del self.segments[number:]
            self.segments[-1].unseal()
        else:
            self._cut(segment, position)
        # What is gone must not come back once other records have taken its offsets.
        segment.around.disk.sync_directory(segment.around.directory)

    def _cut(self, segment: Segment, position: int) -> None:
        """Ends the segment at `position`; what is behind is kept in a file of its own."""
        size = segment.size - position
        self.report.truncated_bytes += size
        worth_it = size > 0 and not _is_zero(segment.file, position, segment.size)
        path = self._free_name(segment, position)
        tail = b""
        if worth_it:
            try:
                self._keep(path, _pieces(segment.file, position, segment.size))
            except OSError as error:
                if StorageFault.of(path, error).directory_failed or size > TAIL_BYTES_MAX:
                    raise
                tail = b"".join(_pieces(segment.file, position, segment.size))
        segment.unseal()
        segment.end_at(position)
        if tail:
            try:
                self._keep(path, [tail])
            except OSError as error:
                if StorageFault.of(path, error).directory_failed:
                    raise
                self.report.lost_bytes += size

    def _set_whole_aside(self, segment: Segment) -> None:
        """Takes a whole segment out of the log."""
        if segment.size:
            self.report.truncated_bytes += segment.size
            if not _is_zero(segment.file, 0, segment.size):
                path = self._free_name(segment, 0)
                segment.around.disk.rename(segment.path(LOG), path)
                self.report.kept_aside.append(path)
        segment.remove()

    def _keep(self, path: str, pieces: Iterable[bytes]) -> None:
        """Writes a file that holds what is cut; there is none where it raises OSError."""
        disk = self.segments[0].around.disk
        kept = disk.open(path, create=True)
        try:
            for piece in pieces:
                kept.append([piece])
            kept.sync()
        except OSError:
            with suppress(OSError):
                disk.remove(path)
            raise
        finally:
            kept.close()
        self.report.kept_aside.append(path)

    @staticmethod
    def _free_name(segment: Segment, position: int) -> str:
        disk = segment.around.disk
        path = f"{segment.path(LOG)}.{position}{TORN}"
        again = 1
        while disk.exists(path):
            again += 1
            path = f"{segment.path(LOG)}.{position}.{again}{TORN}"
        return path


def _pieces(file: File, start: int, end: int) -> Iterator[bytes]:
    for at in range(start, end, CHUNK_BYTES):
        yield file.read(min(CHUNK_BYTES, end - at), at)


def _is_zero(file: File, start: int, end: int) -> bool:
    return all(piece.count(0) == len(piece) for piece in _pieces(file, start, end))


def recover(
    tp: TopicPartition,
    segments: list[Segment],
    recovery_point: int,
    epochs: EpochCache,
    producers: ProducerStates,
    snapshots: Snapshots,
    log_start: int,
    now_ms: int,
    *,
    gaps_allowed: bool,
) -> RecoveredLog:
    """Checks everything above the recovery point and cuts the log where it is not sound; raises CorruptLog.

    `epochs` comes as it was on disk and `producers` empty; both and the indexes are then as the log's end needs them.
    Without `gaps_allowed` segments follow one another without a hole, so that one whose file the crash took is missed;
    compaction leaves holes.
    """
    assert segments
    first = 0
    for number, segment in enumerate(segments):
        if segment.base_offset <= recovery_point:
            first = number
    return _Recovery(tp, segments, recovery_point, epochs, producers, now_ms, gaps_allowed=gaps_allowed).run(
        first, snapshots, log_start
    )
