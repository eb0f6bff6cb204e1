"""One piece of a log: a file of batches named by the offset at which it begins, and what stands beside it."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from operator import attrgetter
from typing import Final, Self

from ottla.ports import File
from ottla.ports.whole_files import replace_file, sync_file
from ottla.records.batch import OFFSET_MAX
from ottla.storage.errors import DamagedIndex, passes
from ottla.storage.formats.names import DELETED, INDEX, LOG, TIME_INDEX, TXN_INDEX
from ottla.storage.log.batch_walk import read_header
from ottla.storage.log.indexes import txn_index
from ottla.storage.log.indexes.index_writes import BesideWrite
from ottla.storage.log.indexes.indexed_file import UNKNOWN, CutTail, IndexedFile
from ottla.storage.log.indexes.segment_file import LogContext
from ottla.storage.log.indexes.txn_file import ENTRIES_A_PIECE, AbortedWrite, TxnIndexFile
from ottla.storage.log.indexes.txn_index import AbortedTransaction
from ottla.storage.log.open_files import OpenFiles

#: All that may stand beside a segment's log file under its name.
INDEX_KINDS: Final = (INDEX, TIME_INDEX, TXN_INDEX)

#: Aborted transactions of a segment that stay in memory once they were read: 100 KB. Of more the file is bisected.
ABORTED_KEPT_MAX: Final = ENTRIES_A_PIECE
_LAST_OFFSET: Final = attrgetter("last_offset")


class Segment(IndexedFile):
    __slots__ = (
        "_aborted",
        "_aborted_edition",
        "_aborted_on_disk",
        "_aborted_tail",
        "_first_timestamp",
        "_modified_ms",
    )

    def __init__(
        self,
        around: LogContext,
        base_offset: int,
        size: int,
        *,
        sealed: bool,
        aborted_on_disk: bool = False,
        suffix: str = "",
    ) -> None:
        super().__init__(around, base_offset, size, sealed=sealed, suffix=suffix)
        #: All that the file has, where they are few and were asked for.
        self._aborted: list[AbortedTransaction] | None = None
        #: Those that are not in the file yet, behind all of its: the next flush or roll writes them.
        self._aborted_tail: list[AbortedTransaction] = []
        self._aborted_edition = 0
        #: Whether there is a file of them: most segments have none, and are not to look for it.
        self._aborted_on_disk = aborted_on_disk
        self._first_timestamp = UNKNOWN
        #: When the file was last written, for one without a time in its batches; -1 where that was not asked for.
        self._modified_ms = -1

    # -- time

    def first_timestamp(self) -> int:
        """The largest timestamp of the first batch, which segments are rolled by; -1 where there is none."""
        if self._first_timestamp == UNKNOWN:
            if self.size == 0:
                return -1
            self._first_timestamp = read_header(self.file, 0, self.size).max_timestamp
        return self._first_timestamp

    @property
    def knows_first_timestamp(self) -> bool:
        """Whether nothing is to be read for it."""
        return self._first_timestamp != UNKNOWN or self.size == 0

    @property
    def known_largest_timestamp(self) -> int | None:
        """For retention: the file's own time stands in where no batch has a time. None where it is to be read first."""
        if self._max_timestamp >= 0:
            return self._max_timestamp
        return self._modified_ms if self._max_timestamp != UNKNOWN and self._modified_ms >= 0 else None

    @property
    def keeps_largest_timestamp(self) -> bool:
        """Whether that is known and stays: the file that is written to has another time each time."""
        return self.known_largest_timestamp is not None and (self._max_timestamp >= 0 or self.sealed)

    # -- aborted transactions

    @property
    def may_have_aborted(self) -> bool:
        """Whether it is worth a look at `aborted`; reads nothing."""
        return self._aborted_on_disk or bool(self._aborted_tail)

    @property
    def knows_aborted(self) -> bool:
        """Whether nothing is to be read for a look at them."""
        return self._aborted is not None or not self._aborted_on_disk

    def aborted_between(self, offset: int, before: int) -> Generator[list[AbortedTransaction], None, None]:
        """Those whose marker is in this segment and at this offset or behind it, in pieces; of many only those that
        matter to a reader that came before the other. What is appended meanwhile is not among them. Raises
        DamagedIndex, and FileNotFoundError.
        """
        # A worker may have written some of these, and not said so yet.
        tail = list(self._aborted_tail)
        known_from = tail[0].last_offset if tail else OFFSET_MAX + 1
        if self._aborted_on_disk and self._aborted is None:
            with self._txn_index() as index:
                if index.count <= ABORTED_KEPT_MAX:
                    entries = [entry for piece in index.pieces() for entry in piece]
                    self._aborted = [entry for entry in entries if entry.last_offset < known_from]
                else:
                    for piece in index.needed(index.first_ending_at(offset), before):
                        yield [entry for entry in piece if entry.last_offset < known_from]
        for kept in (self._aborted or [], tail):
            if kept:
                yield kept[bisect_left(kept, offset, key=_LAST_OFFSET) :]

    @contextmanager
    def _txn_index(self) -> Iterator[TxnIndexFile]:
        file = self.found(TXN_INDEX, self.around.disk.open_read_only)
        try:
            yield TxnIndexFile(file, self.base_offset)
        finally:
            file.close()

    def mend_aborted(self, entries: list[AbortedTransaction]) -> None:
        """Of a twin: its file was damaged or gone, and these stand in the log. A crash leaves the one or the other."""
        self._aborted, self._aborted_on_disk = None, bool(entries)
        self._aborted_tail.clear()
        self._aborted_edition += 1
        path = self.path(TXN_INDEX)
        if len(entries) <= ABORTED_KEPT_MAX:
            self._aborted = list(entries)
        if entries:
            replace_file(self.around.disk, path, txn_index.encode(entries))
        else:
            with suppress(FileNotFoundError):
                self.around.disk.remove(path)

    def adopt_aborted(self, twin: Segment, edition: int) -> None:
        """Takes over what a worker has read or mended, if the file has not changed since `edition`."""
        if self.size < twin.size or self._aborted_edition != edition:
            return
        if twin._aborted_edition != edition:
            written = twin._aborted_on_disk
            self._aborted_on_disk = self._aborted_on_disk and written
            self._aborted_edition = twin._aborted_edition
            last = twin._aborted[-1].last_offset if twin._aborted else -1
            self._aborted_tail = [entry for entry in self._aborted_tail if not written or entry.last_offset > last]
        if self._aborted is None:
            self._aborted = twin._aborted

    @property
    def aborted_edition(self) -> int:
        """Rises with each change of the file."""
        return self._aborted_edition

    def note_aborted(self, entry: AbortedTransaction) -> None:
        """Behind all others. It is written by the next flush, which comes before the recovery point passes it."""
        self._aborted_tail.append(entry)

    @property
    def aborted_waiting(self) -> int:
        """How many have yet to be written."""
        return len(self._aborted_tail)

    def aborted_writes(self) -> list[AbortedWrite]:
        """What brings the file up to date; `indexes_written` then takes note of it."""
        if not self._aborted_tail:
            return []
        return [AbortedWrite(self.around.disk, self.path(TXN_INDEX), self.base_offset, tuple(self._aborted_tail))]

    def index_writes(self, *, complete: bool = True) -> list[BesideWrite]:
        return [*super().index_writes(complete=complete), *self.aborted_writes()]

    def indexes_written(self, writes: Sequence[BesideWrite]) -> None:
        super().indexes_written(writes)
        for write in writes:
            if isinstance(write, AbortedWrite) and write.path == self.path(TXN_INDEX):
                self._aborted_written(write.entries)

    def _aborted_written(self, entries: Sequence[AbortedTransaction]) -> None:
        left = self._aborted_tail
        self._aborted_edition += 1
        known = [entry for entry in entries if left and left[0].last_offset <= entry.last_offset]
        del left[: len(known)]
        if self._aborted is None and not self._aborted_on_disk:
            self._aborted = []
        if self._aborted is not None:
            self._aborted += known
            if len(self._aborted) > ABORTED_KEPT_MAX:
                self._aborted = None
        self._aborted_on_disk = True

    def add_aborted(self, entry: AbortedTransaction) -> None:
        """At a start, with the caller waiting for the disk: unless the file has it. Where there is no room for it, it
        waits with all that come behind it, and the next flush writes them."""
        if self._aborted_tail:
            self.note_aborted(entry)
            return
        try:
            self._append_aborted(entry)
        except OSError as refusal:
            if not passes(refusal):
                raise
            self.note_aborted(entry)

    def _append_aborted(self, entry: AbortedTransaction) -> None:
        count = 0
        try:
            if self._aborted is not None:
                count = len(self._aborted)
            elif self._aborted_on_disk:
                with self._txn_index() as index:
                    count = index.count
                    if count and index.entries(count - 1, count)[0].last_offset >= entry.last_offset:
                        return
        except (DamagedIndex, FileNotFoundError):
            # The next look into it makes it anew from the log, this entry included.
            return
        end = count * txn_index.ENTRY.size
        try:
            self.write_beside(TXN_INDEX, txn_index.encode([entry]), end)
        except OSError:
            with suppress(OSError):
                self.write_beside(TXN_INDEX, b"", end)  # a part of it would be damage
            raise
        if count == 0:
            self._aborted = [entry]
        elif self._aborted is not None:
            self._aborted.append(entry)
            if len(self._aborted) > ABORTED_KEPT_MAX:
                self._aborted = None
        self._aborted_on_disk = True

    def check_aborted(self) -> None:
        """Goes through all of them; raises DamagedIndex, and FileNotFoundError."""
        if self._aborted_on_disk:
            with self._txn_index() as index:
                for _ in index.pieces():
                    pass

    def find_aborted(self) -> None:
        """Of a twin, before their file is cut. A flush or a roll that found no room may have begun it, or have got as
        far as within an entry, and nobody took note of that: what stands there would be taken for written."""
        path, disk = self.path(TXN_INDEX), self.around.disk
        if not disk.exists(path):
            return
        self._aborted_on_disk = True
        size = disk.size(path)
        if size % txn_index.ENTRY.size:
            self.write_beside(TXN_INDEX, b"", size - size % txn_index.ENTRY.size)

    def cut_aborted(self, offset: int) -> bool:
        """Leaves those whose marker lies before; whether any has gone. Raises DamagedIndex, and FileNotFoundError."""
        if not self._aborted_on_disk:
            return False
        with self._txn_index() as index:
            count, left = index.count, index.first_ending_at(offset)
        if left == 0:
            self.replace_aborted([])
        elif left < count:
            self.write_beside(TXN_INDEX, b"", left * txn_index.ENTRY.size)
            self._aborted = None
        return left < count

    def sync_aborted(self) -> None:
        """Blocks until their file, and whether there is one, are on the medium."""
        disk = self.around.disk
        sync_file(disk, self.path(TXN_INDEX))
        disk.sync_directory(self.around.directory)

    def replace_aborted(self, entries: list[AbortedTransaction]) -> None:
        if entries:
            self.write_beside(TXN_INDEX, txn_index.encode(entries), 0)
        elif self._aborted_on_disk:
            with suppress(FileNotFoundError):
                self.around.disk.remove(self.path(TXN_INDEX))
        self._aborted, self._aborted_on_disk = None, bool(entries)
        self._aborted_tail.clear()
        self._aborted_edition += 1

    # -- change

    def unseal(self) -> None:
        """What came after is gone: this segment is written to again."""
        self.close()
        self.sealed = False

    def end_before(self, position: int, end_offset: int, tail: CutTail) -> None:
        super().end_before(position, end_offset, tail)
        self._first_timestamp = UNKNOWN
        self._aborted = None
        self._aborted_tail = [entry for entry in self._aborted_tail if entry.last_offset < end_offset]

    def aborted_were_cut(self, twin: Segment) -> None:
        """A worker has cut the file of the aborted transactions, or removed it where none is left."""
        self._aborted, self._aborted_on_disk = None, twin._aborted_on_disk
        self._aborted_edition += 1

    def seal(self) -> None:
        """The log goes on in another segment: the indexes are complete, and their files are written."""
        self.sealed = True
        self._modified_ms = -1

    def takes_file(self, file: File) -> None:
        """Its log file has just been made, and is open."""
        assert self._file is None
        self.used = True
        self._file = file
        self._note_open()

    def paths(self, suffix: str = "") -> list[str]:
        """All files that it may have, the log file last."""
        return [self.path(kind, suffix) for kind in (*INDEX_KINDS, LOG)]

    def names_aside(self) -> list[tuple[str, str]]:
        """Its files' names, and those of files that are to go: that of the log first."""
        return [(self.path(kind), self.path(kind, DELETED)) for kind in (LOG, *INDEX_KINDS)]

    def remove(self) -> None:
        """Deletes the files at once, with the caller waiting for it."""
        self.leave()
        for path in self.paths():
            with suppress(FileNotFoundError):
                self.around.disk.remove(path)

    # -- what workers do

    def twin(self) -> Segment:
        """The same files for a worker, which opens them anew, and closes it. Indexes that are in memory are shared."""
        around = self.around._replace(files=OpenFiles())
        twin = Segment(
            around,
            self.base_offset,
            self.size,
            sealed=self.sealed,
            aborted_on_disk=self._aborted_on_disk,
            suffix=self.suffix,
        )
        twin.next_suffix = self.next_suffix
        twin._offsets, twin._times, twin._since_index = self._offsets, self._times, self._since_index
        twin._max_timestamp, twin._max_timestamp_offset = self._max_timestamp, self._max_timestamp_offset
        twin._first_timestamp, twin._damage = self._first_timestamp, self._damage
        twin._aborted, twin._aborted_tail = self._aborted, list(self._aborted_tail)
        twin._aborted_edition = self._aborted_edition
        return twin

    def adopt(self, twin: Self) -> None:
        super().adopt(twin)
        if self.size == twin.size and self._first_timestamp == UNKNOWN:
            self._first_timestamp = twin._first_timestamp
        if self.size == twin.size:
            self._modified_ms = twin._modified_ms

    def load(self) -> None:
        """Of a twin: opens the file, and reads all that may be asked for without a look at the batches."""
        if self.size:
            _ = self.file, self.offsets, self.times
            self.first_timestamp()
        if self.max_timestamp()[0] < 0:
            self._modified_ms = self.found(LOG, self.around.disk.modified_ms)
