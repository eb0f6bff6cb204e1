"""A log file with its two indexes, each loaded when it is first needed and made again where it is damaged.

Everything but the batches can be made from them, so that a damaged or missing index costs a warning and a scan. A
segment that is never read holds no file open and no index in memory.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from contextlib import suppress
from typing import Final, NamedTuple, Self

from ottla.storage.errors import BadBatch, DamagedIndex
from ottla.storage.formats.names import INDEX, TIME_INDEX
from ottla.storage.log.batch_walk import read_header, walk
from ottla.storage.log.indexes.index_pieces import gone_through
from ottla.storage.log.indexes.index_writes import BesideWrite, IndexWrite
from ottla.storage.log.indexes.offset_index import ENTRY_SIZE, OffsetIndex
from ottla.storage.log.indexes.offset_lookup import BatchPlace, IndexedBatches, place_of
from ottla.storage.log.indexes.segment_file import LogContext, SegmentFile
from ottla.storage.log.indexes.time_index import ENTRY_SIZE as TIME_ENTRY_SIZE
from ottla.storage.log.indexes.time_index import TimeIndex

#: A timestamp that has not been looked for yet.
UNKNOWN: Final = -2
#: An index has 31 bits for an offset: Kafka has them with signs.
RELATIVE_MAX: Final = 2**31 - 1
#: An offset index may end so far before its log does, besides its interval: the interval may once have been another.
TAIL_BYTES: Final = 1 << 20


class CutTail(NamedTuple):
    """What stands behind the last index entry of a file that is cut."""

    #: Where that entry's batch begins; 0 where there is no entry.
    start: int
    #: The largest timestamp up to the cut (-1: none), and the last offset of the batch that has it.
    max_timestamp: int
    max_timestamp_offset: int
    #: Behind the last batch up to the cut. Where there is none the file's base offset.
    next_offset: int


class IndexedFile(SegmentFile):
    __slots__ = (
        "_damage",
        "_made_to",
        "_max_timestamp",
        "_max_timestamp_offset",
        "_offsets",
        "_since_index",
        "_times",
    )

    def __init__(self, around: LogContext, base_offset: int, size: int, *, sealed: bool, suffix: str = "") -> None:
        super().__init__(around, base_offset, size, sealed=sealed, suffix=suffix)
        self._offsets: OffsetIndex | None = None
        self._times: TimeIndex | None = None
        #: Bytes since the batch of the last index entry, that one included.
        self._since_index = 0
        self._max_timestamp = UNKNOWN
        self._max_timestamp_offset = -1
        #: Where no index can be made of the log file, which is damaged there; None: nobody has met such a place.
        self._damage: BadBatch | None = None
        #: Of a twin that has made the indexes anew: the offset behind those that they cover; -1 of all others.
        self._made_to = -1

    @property
    def is_open(self) -> bool:
        return super().is_open or self._offsets is not None or self._times is not None

    def release_files(self) -> None:
        super().release_files()
        if self._offsets is not None and self._offsets.persisted == len(self._offsets) and self.sealed:
            self._offsets = None
        if self._times is not None and self._times.persisted == len(self._times) and self.sealed:
            self._times = None

    def leave(self) -> None:
        """It is part of the log no more; what was opened stays readable to holders of a lease."""
        self.close()
        self._offsets = self._times = None

    # -- indexes

    @property
    def offsets(self) -> OffsetIndex:
        self.used = True
        return self._offsets if self._offsets is not None else self._load_offsets()

    @property
    def times(self) -> TimeIndex:
        self.used = True
        return self._times if self._times is not None else self._load_times()

    def _load_offsets(self) -> OffsetIndex:
        try:
            index = OffsetIndex.decode(self._read_beside(INDEX), self.size)
            self._indexed(index).check_end(self.around.index_interval_bytes + TAIL_BYTES)
        except (DamagedIndex, BadBatch) as damage:
            return self.rebuild_indexes(f"{self.path(INDEX)} is rebuilt: {damage}")
        self._offsets = index
        self._since_index = self.size - (index.positions[-1] if index.positions else 0)
        self._note_open()
        return index

    def _load_times(self) -> TimeIndex:
        try:
            index = TimeIndex.decode(self._read_beside(TIME_INDEX))
            self.check_time(index, len(index) - 1)
            self._check_last_time(index)
        except (DamagedIndex, BadBatch) as damage:
            self.rebuild_indexes(f"{self.path(TIME_INDEX)} is rebuilt: {damage}")
            assert self._times is not None
            return self._times
        self._times = index
        self._note_open()
        return index

    def check_time(self, index: TimeIndex, number: int) -> None:
        """Raises DamagedIndex where an entry says what the log does not."""
        if number < 0:
            return
        offset, timestamp = self.base_offset + index.offsets[number], index.timestamps[number]
        place = self.locate(offset)
        if place is None or read_header(self.file, place.position, self.size).max_timestamp != timestamp:
            raise DamagedIndex(f"the batch with offset {offset} does not have the timestamp {timestamp}")

    def _check_last_time(self, index: TimeIndex) -> None:
        """A sealed or closed segment's last entry is its largest timestamp: the batches at the end bear that out."""
        largest = index.timestamps[-1] if index.timestamps else -1
        positions = self.offsets.positions
        for position, header in walk(self.file, positions[-1] if positions else 0, self.size):
            if header.max_timestamp > largest:
                raise DamagedIndex(f"the batch at byte {position} has the timestamp {header.max_timestamp}")

    def _read_beside(self, kind: str) -> bytes:
        if self.size == 0:
            return b""
        try:
            return self.found(kind, self.around.disk.read_file)
        except FileNotFoundError:
            raise DamagedIndex("it is missing") from None

    def rebuild_indexes(self, reason: str) -> OffsetIndex:
        """Makes both indexes anew from the headers in the log; raises BadBatch where that is damaged.

        It goes through the whole file, so it is not tried again where it has failed: readers come back to a damaged
        batch for ever. What was in memory then stays, since it is true of all the other batches.
        """
        if self._damage is not None:
            raise BadBatch(self._damage.position, self._damage.reason)
        before = (self._offsets, self._times, self._since_index, self._max_timestamp, self._max_timestamp_offset)
        self.around.warn(reason)
        index = self.forget_indexes()
        try:
            next_offset = self._go_through(index)
        except BadBatch as damage:
            self._damage = damage
            self._offsets, self._times, self._since_index, self._max_timestamp, self._max_timestamp_offset = before
            raise
        self._made_to = next_offset
        if self.sealed and self.next_suffix is None:
            # In vain on a full disk; the one in memory serves all the same.
            with suppress(OSError):
                self.write_indexes()
        return index

    def _go_through(self, index: OffsetIndex) -> int:
        """Adds all batches to indexes that are empty; returns the offset behind the last. Raises BadBatch."""
        times = self._times
        assert times is not None
        interval = self.around.index_interval_bytes
        begun = gone_through(self.file, self.size, self.base_offset, interval, index, times)
        start, next_offset, self._since_index, self._max_timestamp, self._max_timestamp_offset = begun
        for position, header in walk(self.file, start, self.size):
            if not next_offset <= header.base_offset <= header.last_offset <= self.base_offset + RELATIVE_MAX:
                raise BadBatch(
                    position,
                    f"its offsets {header.base_offset} to {header.last_offset} cannot follow {next_offset - 1}",
                )
            self.note_batch(position, header.size, header.last_offset, header.max_timestamp)
            next_offset = header.next_offset
        return next_offset

    def load_indexes(self) -> OffsetIndex:
        """Both as they are on disk, for recovery; raises DamagedIndex."""
        self._offsets = OffsetIndex.decode(self._read_beside(INDEX), self.size)
        self._times = TimeIndex.decode(self._read_beside(TIME_INDEX))
        self._note_open()
        return self._offsets

    def resume_indexes(self, offset: int) -> None:
        """Cuts both to the batches below `offset`, where a batch begins that had an entry."""
        offsets, times = self.offsets, self.times
        offsets.truncate(offset - self.base_offset)
        times.truncate(offset - self.base_offset)
        self._max_timestamp = times.timestamps[-1] if times.timestamps else -1
        self._max_timestamp_offset = self.base_offset + times.offsets[-1] if times.timestamps else -1
        self._since_index = self.around.index_interval_bytes + 1

    # -- what workers do

    def follow(self, other: Self) -> None:
        """Of a twin, before its worker begins: the other's indexes and names, which others may have changed by now."""
        self.take_names_of(other)
        if other._offsets is not None and self.size <= other.size:
            self._offsets, self._times = other._offsets, other._times
        self._damage = self._damage or other._damage

    def adopt(self, twin: Self) -> None:
        """Takes over what a worker has loaded for it, where nobody has loaded it here meanwhile. It was not cut since
        the twin was made, but may have been written to."""
        if self.size < twin.size:
            return
        self._damage = self._damage or twin._damage
        if self._offsets is not None and twin._made_to >= 0:
            self._take_over(twin)
        if self.size != twin.size:
            return
        if self._offsets is None and twin._offsets is not None:
            self._offsets, self._since_index = twin._offsets, twin._since_index
        if self._times is None and twin._times is not None:
            self._times = twin._times
        if self._max_timestamp == UNKNOWN:
            self._max_timestamp, self._max_timestamp_offset = twin._max_timestamp, twin._max_timestamp_offset
        if self._file is None and twin._file is not None:
            self._file, twin._file = twin._file, None
        if self.is_open:
            self.used = True
            self._note_open()

    def _take_over(self, twin: Self) -> None:
        """The indexes that a worker has made anew; of what was written since it began, the entries are here."""
        offsets, times, old = twin._offsets, twin._times, self._times or TimeIndex()
        assert offsets is not None
        assert times is not None
        assert self._offsets is not None
        behind = bisect_left(self._offsets.positions, twin.size)
        for relative, position in zip(self._offsets.offsets[behind:], self._offsets.positions[behind:], strict=True):
            offsets.append(relative, position)
        behind = bisect_left(old.offsets, twin._made_to - self.base_offset)
        for timestamp, relative in zip(old.timestamps[behind:], old.offsets[behind:], strict=True):
            times.append_if_later(timestamp, relative)
        if self._max_timestamp_offset < twin._made_to or self._max_timestamp <= twin._max_timestamp:
            self._max_timestamp, self._max_timestamp_offset = twin._max_timestamp, twin._max_timestamp_offset
        self._offsets, self._times = offsets, times
        self._since_index = self.size - (offsets.positions[-1] if offsets.positions else 0)

    def tail_before(self, position: int, end_offset: int) -> CutTail:
        """What stands behind the last index entry, were the file cut at `position`, where `end_offset` begins."""
        offsets, times = self.offsets, self.times
        number = offsets.floor(end_offset - 1 - self.base_offset)
        start = offsets.positions[number] if number >= 0 else 0
        known = bisect_left(times.offsets, max(end_offset - self.base_offset, 0)) - 1
        largest = times.timestamps[known] if known >= 0 else -1
        at = self.base_offset + times.offsets[known] if known >= 0 else -1
        next_offset = self.base_offset
        for _, header in walk(self.file, start, position):
            next_offset = header.next_offset
            if header.max_timestamp > largest:
                largest, at = header.max_timestamp, header.last_offset
        return CutTail(start, largest, at, next_offset)

    def end_before(self, position: int, end_offset: int, tail: CutTail) -> None:
        """It ends at `position` from now on, where a batch begins; its files are yet to follow."""
        self.size = position
        self._damage = None
        self.synced = min(self.synced, position)
        self.offsets.truncate(end_offset - self.base_offset)
        self.times.truncate(end_offset - self.base_offset)
        self._max_timestamp, self._max_timestamp_offset = tail.max_timestamp, tail.max_timestamp_offset
        self._since_index = position - tail.start

    def index_sizes(self) -> list[tuple[str, int]]:
        """The paths of both index files, and how long they may be at most."""
        entries = (
            (0, 0) if self._offsets is None or self._times is None else (self._offsets.persisted, self._times.persisted)
        )
        return [(self.path(INDEX), entries[0] * ENTRY_SIZE), (self.path(TIME_INDEX), entries[1] * TIME_ENTRY_SIZE)]

    def forget_indexes(self) -> OffsetIndex:
        """Starts both anew, as for a segment without batches."""
        self._offsets, self._times = OffsetIndex(), TimeIndex()
        self._since_index = 0
        self._max_timestamp = self._max_timestamp_offset = -1
        self._note_open()
        return self._offsets

    def note_batch(self, position: int, size: int, last_offset: int, max_timestamp: int) -> None:
        """Indexes a batch behind all others. Both indexes and the largest timestamp are loaded."""
        if max_timestamp > self._max_timestamp:
            self._max_timestamp, self._max_timestamp_offset = max_timestamp, last_offset
        if self._since_index > self.around.index_interval_bytes:
            assert self._offsets is not None
            assert self._times is not None
            self._offsets.append(last_offset - self.base_offset, position)
            self._times.append_if_later(self._max_timestamp, self._max_timestamp_offset - self.base_offset)
            self._since_index = 0
        self._since_index += size

    def note_batches(self, batches: Sequence[tuple[int, int, int, int]]) -> int:
        """Takes up batches (size, first offset, last offset, timestamp) that the file has behind all others.

        Returns how large it is.
        """
        position = self.size
        since, interval, largest = self._since_index, self.around.index_interval_bytes, self._max_timestamp
        for size, _, last_offset, timestamp in batches:
            if since > interval or timestamp > largest:
                self._since_index = since
                self.note_batch(position, size, last_offset, timestamp)
                since, largest = self._since_index, self._max_timestamp
            else:
                since += size
            position += size
        self._since_index = since
        self.size = position
        return position

    @property
    def has_indexes(self) -> bool:
        """Whether an index is in memory, and may so be ahead of its file."""
        return self._offsets is not None or self._times is not None

    @property
    def unwritten_entries(self) -> int:
        return len(self._offsets) - self._offsets.persisted if self._offsets is not None else 0

    def write_indexes(self, *, complete: bool = True) -> None:
        """Brings the files of both indexes up to date. A caller that wants them on the medium syncs the paths."""
        writes = self.index_writes(complete=complete)
        for write in writes:
            self.around.files.opening(write.run)
        self.indexes_written(writes)

    def index_writes(self, *, complete: bool = True) -> Sequence[BesideWrite]:
        """What brings the files of both indexes up to date; `indexes_written` then takes note of it.

        `complete`: no batch follows for now, so the time index ends with the largest timestamp. One caller at a time:
        nobody else writes the indexes until it is done with these.
        """
        if self.size == 0:
            return []
        # Loading one may rebuild both, so that they are taken afterwards.
        _ = self.offsets, self.times
        times, offsets = self.times, self.offsets
        if complete:
            timestamp, offset = self.max_timestamp()
            times.append_if_later(timestamp, offset - self.base_offset)
        writes: list[BesideWrite] = []
        if offsets.persisted < len(offsets) or not offsets:
            position = offsets.persisted * ENTRY_SIZE
            writes.append(IndexWrite(self.around.disk, self.path(INDEX), offsets.encode(offsets.persisted), position))
        if times.persisted < len(times) or not times:
            position = times.persisted * TIME_ENTRY_SIZE
            data = times.encode(times.persisted)
            writes.append(IndexWrite(self.around.disk, self.path(TIME_INDEX), data, position))
        return writes

    def indexes_written(self, writes: Sequence[BesideWrite]) -> None:
        """The files hold these."""
        for write in writes:
            if not isinstance(write, IndexWrite):
                continue
            if write.path == self.path(INDEX) and self._offsets is not None:
                _note_written(self._offsets, ENTRY_SIZE, write)
            elif write.path == self.path(TIME_INDEX) and self._times is not None:
                _note_written(self._times, TIME_ENTRY_SIZE, write)

    def write_beside(self, kind: str, data: bytes, position: int) -> None:
        self.write_at(self.path(kind), data, position)

    def write_at(self, path: str, data: bytes, position: int) -> None:
        self.around.files.opening(IndexWrite(self.around.disk, path, data, position).run)

    # -- look-up

    def locate(self, offset: int) -> BatchPlace | None:
        """The first batch that ends at or above `offset`; None where all end below."""
        try:
            return self._indexed(self.offsets).find(offset)
        except DamagedIndex as damage:
            return self._indexed(self.rebuild_indexes(f"{self.path(INDEX)} is rebuilt: {damage}")).find(offset)

    def _indexed(self, index: OffsetIndex) -> IndexedBatches:
        return IndexedBatches(index, self.file, self.base_offset, self.size)

    @property
    def is_loaded(self) -> bool:
        """Whether its file is open and its indexes are in memory; one without batches needs none."""
        return not self.size or (self._file is not None and self._offsets is not None and self._times is not None)

    def would_wait_for(self, offset: int) -> bool:
        """Whether `locate` would have to open files, or to read what the system no longer has in memory."""
        if not self.size:
            return False
        if self._file is None or self._offsets is None:
            return True
        return any(self._file.is_cold(size, position) for position, size in self.read_by_locate(offset))

    def locate_unmended(self, offset: int) -> BatchPlace | None:
        """As `locate` with the indexes in memory, for a caller that must not wait while damaged ones are made anew: a
        worker does that. Those of a sealed segment are let go of. Raises DamagedIndex and BadBatch."""
        try:
            return self._indexed(self.offsets).find(offset)
        except DamagedIndex:
            if self._damage is not None:
                return self.locate(offset)
            if self.sealed:
                self._offsets = self._times = None
            raise

    def read_by_locate(self, offset: int) -> list[tuple[int, int]]:
        """Where `locate` reads in the log's file, with the indexes in memory, and how much."""
        return self._indexed(self.offsets).read_to_find(offset)

    def place_at(self, position: int) -> BatchPlace:
        """The batch that begins at `position`."""
        return place_of(position, read_header(self.file, position, self.size))

    # -- time

    @property
    def knows_max_timestamp(self) -> bool:
        """Whether nothing is to be read for it."""
        return self._max_timestamp != UNKNOWN

    def max_timestamp(self) -> tuple[int, int]:
        """The largest timestamp (-1: none) and the last offset of the batch that has it."""
        if self._max_timestamp == UNKNOWN:
            times = self.times
            # Loading may have rebuilt, and so found it.
            if self._max_timestamp == UNKNOWN:
                if times.timestamps:
                    self._max_timestamp = times.timestamps[-1]
                    self._max_timestamp_offset = self.base_offset + times.offsets[-1]
                else:
                    self._max_timestamp = self._max_timestamp_offset = -1
        return self._max_timestamp, self._max_timestamp_offset


def _note_written(index: OffsetIndex | TimeIndex, entry_size: int, write: IndexWrite) -> None:
    """One that was made anew meanwhile has nothing in the file yet: what was written was of another."""
    if write.position <= index.persisted * entry_size:
        end = write.position + len(write.data)
        index.persisted = max(index.persisted, min(end // entry_size, len(index)))
