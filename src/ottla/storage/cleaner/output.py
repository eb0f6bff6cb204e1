"""The segment that a group becomes, under names that end in `.cleaned` until all of it is on the medium."""

from __future__ import annotations

from contextlib import suppress
from typing import Final

from ottla.ports import Disk
from ottla.ports.disk import Buffer
from ottla.ports.whole_files import sync_file
from ottla.storage.cleaner.faults import CannotClean
from ottla.storage.cleaner.source import Pace
from ottla.storage.formats.names import CLEANED, LOG, parse_segment_file
from ottla.storage.log.indexes.segment_file import LogContext
from ottla.storage.log.indexes.txn_index import AbortedTransaction
from ottla.storage.log.open_files import OpenFiles
from ottla.storage.log.segment import INDEX_KINDS, Segment

#: Kafka's reader counts positions in 32 bits with a sign.
SIZE_MAX: Final = 2**31 - 1


class SegmentOutput:
    __slots__ = ("_batches", "_buffers", "_bytes_waiting", "_pace", "_segment", "_write_bytes")

    def __init__(
        self, disk: Disk, directory: str, base_offset: int, index_interval_bytes: int, write_bytes: int, pace: Pace
    ) -> None:
        around = LogContext(disk, directory, OpenFiles(), index_interval_bytes, lambda _: None)
        self._segment = segment = Segment(around, base_offset, 0, sealed=False, suffix=CLEANED)
        disk.open(segment.path(), create=True).close()
        segment.file.truncate(0)
        segment.forget_indexes()
        self._write_bytes = write_bytes
        self._pace = pace
        self._buffers: list[Buffer] = []
        #: Size, first and last offset, and largest timestamp of each.
        self._batches: list[tuple[int, int, int, int]] = []
        self._bytes_waiting = 0

    @property
    def size(self) -> int:
        return self._segment.size + self._bytes_waiting

    def add(self, batch: Buffer, first_offset: int, last_offset: int, max_timestamp: int) -> None:
        size = len(batch)
        if self.size + size > SIZE_MAX:
            raise CannotClean(f"what is left from offset {self._segment.base_offset} on does not fit in one segment")
        self._buffers.append(batch)
        self._batches.append((size, first_offset, last_offset, max_timestamp))
        self._bytes_waiting += size
        if self._bytes_waiting >= self._write_bytes:
            self.write()

    def write(self) -> None:
        """Writes what was added. After this nothing refers to its buffers any more."""
        if not self._buffers:
            return
        segment = self._segment
        segment.file.append(self._buffers)
        segment.note_batches(self._batches)
        self._pace(self._bytes_waiting)
        self._buffers.clear()
        self._batches.clear()
        self._bytes_waiting = 0

    def finish(self, aborted: list[AbortedTransaction]) -> None:
        """Blocks until all files and their names are on the medium."""
        self.write()
        segment = self._segment
        disk = segment.around.disk
        segment.write_indexes()
        segment.replace_aborted(aborted)
        segment.file.sync()
        for kind in INDEX_KINDS:
            sync_file(disk, segment.path(kind))
        segment.close()
        disk.sync_directory(segment.around.directory)

    def drop(self) -> None:
        self._segment.close()
        for kind in (*INDEX_KINDS, LOG):
            with suppress(FileNotFoundError):
                self._segment.around.disk.remove(self._segment.path(kind))


def remove_unfinished(disk: Disk, directory: str) -> None:
    """Removes what a worker left that was killed. It must be gone before this pass finishes a segment.

    Kafka, at a start after a crash, takes a `.cleaned` file as a sign that nothing from its offset on was finished, and
    removes any `.swap` there, which may be all that is left of its records. `SegmentOutput.finish` makes that certain.
    """
    for name, is_file in disk.entries(directory):
        file = parse_segment_file(name)
        if is_file and file is not None and file.suffix == CLEANED:
            disk.remove(f"{directory}/{name}")
