"""A pass as the worker process does it: keys first, then one group of segments after the other.

Everything that it knows of the log stands in the job and in the sealed segments' files, which never change. It writes
nothing but `.cleaned` files. So it can be ended at any point: the next pass begins with removing what it left.

Memory: the key map and a bit for each dirty offset fit in `Limits.memory_bytes`. Besides there is what is read and
written at once (`Limits.buffer_bytes`), and one batch unpacked, which nobody bounds but its producer.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import chain
from typing import Final

from ottla.ports import Disk
from ottla.records.batch import BatchHeader
from ottla.records.errors import RecordError
from ottla.records.keys import read_keys, read_offsets
from ottla.storage.cleaner.batch_filter import BatchFilter
from ottla.storage.cleaner.faults import CannotClean, DiskRefused, PassInterrupted
from ottla.storage.cleaner.job import CleanedSegment, Part, PassIndex, PassJob
from ottla.storage.cleaner.key_map import KeyMap
from ottla.storage.cleaner.output import SegmentOutput, remove_unfinished
from ottla.storage.cleaner.source import FoundBatch, Pace, batches, payload_of
from ottla.storage.cleaner.survivors import Survivors, bytes_for
from ottla.storage.cleaner.transactions import Transactions
from ottla.storage.cleaner.unreadable import UnreadableBatches
from ottla.storage.errors import BadBatch
from ottla.storage.formats.names import INDEX, LOG, TIME_INDEX, format_segment_file


class CleaningPass:
    """One pass over one log. `index` comes first, then `clean` for each group in order."""

    __slots__ = (
        "_disk",
        "_filter",
        "_groups",
        "_job",
        "_keys",
        "_next_offset",
        "_pace",
        "_read",
        "_transactions",
        "_unreadable",
    )

    def __init__(self, job: PassJob, disk: Disk, pace: Pace) -> None:
        self._job = job
        self._disk = disk
        self._pace = pace
        self._read = 0
        self._keys: KeyMap | None = None
        #: Behind the last offset that the key map knows of.
        self._next_offset = job.first_dirty_offset
        self._transactions = Transactions(job.aborted)
        self._unreadable = UnreadableBatches()
        self._filter: BatchFilter | None = None
        self._groups: list[list[Part]] = []

    # -- the keys

    def index(self) -> PassIndex:
        """Finds the newest offset of each key, in as much of the dirty part as fits in memory."""
        job = self._job
        with self._naming_faults():
            remove_unfinished(self._disk, job.directory)
            transactions = Transactions(job.aborted)
            for part, end in job.parts_with_ends():
                if end > job.first_dirty_offset and not self._index_part(part, end, transactions):
                    break
        keys = self._keys or self._new_map(job.first_dirty_offset)
        survivors = Survivors(keys.first_offset, max(self._next_offset, keys.first_offset), keys.distances())
        self._filter = BatchFilter(job, keys, survivors, self._transactions, self._unreadable)
        self._groups = grouped(self._disk, job, self._next_offset)
        groups = tuple(tuple(part.base_offset for part in group) for group in self._groups)
        return PassIndex(self._next_offset, groups, keys.used, keys.fullness, self._read)

    def _index_part(self, part: Part, end: int, transactions: Transactions) -> bool:
        """Whether there is room for more."""
        for found in self._batches(part):
            header, data, at = found
            if header.last_offset < self._job.first_dirty_offset:
                continue
            batch = memoryview(data)[at : at + header.size] if header.is_control else memoryview(b"")
            is_worthless = transactions.are_worthless(header, batch)
            if not header.is_control and not is_worthless and header.count and not self._has_room_for(found):
                return False
            self._next_offset = header.next_offset
        self._next_offset = max(self._next_offset, end)
        return True

    def _has_room_for(self, found: FoundBatch) -> bool:
        try:
            return self._note_keys(found)
        except RecordError as fault:
            has_room = not self._unreadable.is_full
            if has_room:
                self._unreadable.note(found[0].base_offset, fault)
            return has_room

    def _note_keys(self, found: FoundBatch) -> bool:
        """Notes all keys of a batch, or those for which there is room, and then says so."""
        header = found[0]
        keys = self._keys
        if keys is None:
            keys = self._keys = self._new_map(max(header.base_offset, self._job.first_dirty_offset))
        elif header.last_offset - keys.first_offset >= self._offsets_max():
            return False
        data, begun, end = payload_of(found)
        noted = read_keys(data, begun, end, header.count)
        offsets = self._offsets(header, data, begun)
        skipped = bisect_left(offsets, keys.first_offset)
        while skipped < len(noted):
            if keys.room == 0:
                return False
            # There may be known keys among them: then there is room left, and another turn.
            upto = skipped + keys.room
            keys.put(noted[skipped:upto], offsets[skipped:upto])
            skipped = min(upto, len(noted))
            self._next_offset = offsets[skipped - 1] + 1
        return True

    @staticmethod
    def _offsets(header: BatchHeader, data: bytes, begun: int) -> Sequence[int]:
        if header.count == header.last_offset_delta + 1:
            return range(header.base_offset, header.next_offset)
        return read_offsets(data, begun, header.count, header.base_offset, header.last_offset_delta)

    def _offsets_max(self) -> int:
        """How many offsets a pass goes through: their bits then take an eighth of its memory."""
        return self._job.limits.memory_bytes

    def _new_map(self, first_offset: int) -> KeyMap:
        job, limits = self._job, self._job.limits
        offsets = min(max(job.end_offset - first_offset, 0), self._offsets_max())
        return KeyMap(limits.memory_bytes - bytes_for(offsets), limits.load_factor, offsets, first_offset)

    # -- the records

    def clean(self, number: int) -> CleanedSegment:
        """Writes a group as one segment; where nothing changes it says so and writes none."""
        assert self._filter is not None, "`index` comes first"
        group, job = self._groups[number], self._job
        base = group[0].base_offset
        with self._naming_faults():
            half = job.limits.buffer_bytes // 2
            output = SegmentOutput(self._disk, job.directory, base, job.index_interval_bytes, half, self._pace)
            try:
                cleaned = self._write_group(group, output)
            except BaseException:
                with suppress(OSError):
                    output.drop()
                raise
        return cleaned

    def is_last(self, number: int) -> bool:
        return number == len(self._groups) - 1

    def _write_group(self, group: list[Part], output: SegmentOutput) -> CleanedSegment:
        read_before, records_read, records_kept = self._read, 0, 0
        changed = len(group) > 1
        left_of = self._filter.left_of  # type: ignore[union-attr]
        for header, data, at in chain.from_iterable(self._batches(part) for part in group):
            left = left_of((header, data, at))
            records_read += min(max(header.count, 0), header.last_offset_delta + 1)
            records_kept += left.records
            changed = changed or not left.as_it_was
            if left.batch:
                output.add(left.batch, header.base_offset, header.last_offset, left.max_timestamp)
        aborted = list(self._transactions.kept)
        self._transactions.kept.clear()
        base, size, read = group[0].base_offset, output.size, self._read - read_before
        if changed:
            output.finish(aborted)
        else:
            output.drop()
        return CleanedSegment(
            base, size, changed, bool(aborted), read, records_read, records_kept, self._unreadable.first
        )

    # -- both

    def _batches(self, part: Part) -> Iterator[FoundBatch]:
        path = f"{self._job.directory}/{format_segment_file(part.base_offset, LOG)}"
        return batches(self._disk, path, part.size, self._job.limits.buffer_bytes // 2, self._count)

    def _count(self, size: int) -> None:
        self._read += size
        self._pace(size)

    @contextmanager
    def _naming_faults(self) -> Iterator[None]:
        try:
            yield
        except FileNotFoundError as gone:
            raise PassInterrupted(f"{gone.filename} is gone") from None
        except OSError as refusal:
            raise DiskRefused(refusal.errno, refusal.strerror or str(refusal)) from None
        except (BadBatch, RecordError) as fault:
            raise CannotClean(f"{self._job.directory} is damaged: {fault}") from None


# Which neighbouring segments become one: as many as fit, so that cleaning does not leave a log in crumbs.

_OFFSETS_MAX: Final = 2**31 - 1


def grouped(disk: Disk, job: PassJob, cleaned_to: int) -> list[list[Part]]:
    """All segments that begin below `cleaned_to`, in groups whose sizes, before cleaning, stay within the limits."""
    groups: list[list[Part]] = []
    size = index_size = time_index_size = 0
    for part, end in job.parts_with_ends():
        if part.base_offset >= cleaned_to:
            break
        index, times = _size(disk, job, part, INDEX), _size(disk, job, part, TIME_INDEX)
        fits = (
            groups
            and size + part.size <= job.segment_bytes
            and index_size + index <= job.segment_index_bytes
            and time_index_size + times <= job.segment_index_bytes
            # An empty segment says nothing of offsets.
            and (part.size == 0 or end - 1 - groups[-1][0].base_offset <= _OFFSETS_MAX)
        )
        if fits:
            groups[-1].append(part)
            size, index_size, time_index_size = size + part.size, index_size + index, time_index_size + times
        else:
            groups.append([part])
            size, index_size, time_index_size = part.size, index, times
    return groups


def _size(disk: Disk, job: PassJob, part: Part, kind: str) -> int:
    try:
        return disk.size(f"{job.directory}/{format_segment_file(part.base_offset, kind)}")
    except FileNotFoundError:
        return 0
