"""One piece of a log: a file of batches named by the offset at which it begins, and what stands beside it."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from operator import attrgetter
from typing import Final

from ottla.ports import File
from ottla.storage.errors import DamagedIndex
from ottla.storage.formats.names import DELETED, INDEX, LOG, TIME_INDEX, TXN_INDEX
from ottla.storage.log.batch_walk import read_header, walk
from ottla.storage.log.indexes import txn_index
from ottla.storage.log.indexes.indexed_file import UNKNOWN, IndexedFile, LogContext
from ottla.storage.log.indexes.offset_index import ENTRY_SIZE
from ottla.storage.log.indexes.time_index import ENTRY_SIZE as TIME_ENTRY_SIZE
from ottla.storage.log.indexes.txn_file import ENTRIES_A_PIECE, TxnIndexFile
from ottla.storage.log.indexes.txn_index import AbortedTransaction

#: All that may stand beside a segment's log file under its name.
INDEX_KINDS: Final = (INDEX, TIME_INDEX, TXN_INDEX)

#: Aborted transactions of a segment that stay in memory once they were read: 100 KB. Of more the file is bisected.
ABORTED_KEPT_MAX: Final = ENTRIES_A_PIECE
_LAST_OFFSET: Final = attrgetter("last_offset")


class Segment(IndexedFile):
    __slots__ = ("_aborted", "_aborted_on_disk", "_first_timestamp")

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
        #: All, where they are few and were asked for.
        self._aborted: list[AbortedTransaction] | None = None
        #: Whether there is a file of them: most segments have none, and are not to look for it.
        self._aborted_on_disk = aborted_on_disk
        self._first_timestamp = UNKNOWN

    # -- time

    def first_timestamp(self) -> int:
        """The largest timestamp of the first batch, which segments are rolled by; -1 where there is none."""
        if self._first_timestamp == UNKNOWN:
            if self.size == 0:
                return -1
            self._first_timestamp = read_header(self.file, 0, self.size).max_timestamp
        return self._first_timestamp

    def largest_timestamp(self) -> int:
        """For retention: the file's own time stands in where no batch has a time."""
        timestamp = self.max_timestamp()[0]
        return timestamp if timestamp >= 0 else self.around.disk.modified_ms(self.path())

    # -- aborted transactions

    @property
    def may_have_aborted(self) -> bool:
        """Whether it is worth a look at `aborted`; reads nothing."""
        return self._aborted_on_disk or bool(self._aborted)

    def aborted_between(self, offset: int, before: int) -> Generator[list[AbortedTransaction], None, None]:
        """Those whose marker is in this segment and at this offset or behind it, in pieces; of many only those that
        matter to a reader that came before the other. What is appended meanwhile is not among them. Raises
        DamagedIndex, and FileNotFoundError.
        """
        if not self.may_have_aborted:
            return
        if self._aborted is None:
            with self._txn_index() as index:
                if index.count <= ABORTED_KEPT_MAX:
                    self._aborted = [entry for piece in index.pieces() for entry in piece]
                else:
                    yield from index.needed(index.first_ending_at(offset), before)
                    return
        kept = self._aborted
        yield kept[bisect_left(kept, offset, key=_LAST_OFFSET) :]

    @contextmanager
    def _txn_index(self) -> Iterator[TxnIndexFile]:
        file = self.around.files.opening(lambda: self.around.disk.open_read_only(self.path(TXN_INDEX)))
        try:
            yield TxnIndexFile(file, self.base_offset)
        finally:
            file.close()

    def add_aborted(self, entry: AbortedTransaction) -> None:
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
        self.write_beside(TXN_INDEX, txn_index.encode([entry]), count * txn_index.ENTRY.size)
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

    def cut_aborted(self, offset: int) -> None:
        """Leaves those whose marker lies before; raises DamagedIndex, and FileNotFoundError."""
        if not self._aborted_on_disk:
            return
        with self._txn_index() as index:
            count, left = index.count, index.first_ending_at(offset)
        if left == 0:
            self.replace_aborted([])
        elif left < count:
            self.write_beside(TXN_INDEX, b"", left * txn_index.ENTRY.size)
            self._aborted = None

    def replace_aborted(self, entries: list[AbortedTransaction]) -> None:
        if entries:
            self.write_beside(TXN_INDEX, txn_index.encode(entries), 0)
        elif self._aborted_on_disk:
            with suppress(FileNotFoundError):
                self.around.disk.remove(self.path(TXN_INDEX))
        self._aborted, self._aborted_on_disk = None, bool(entries)

    # -- change

    def unseal(self) -> None:
        """What came after is gone: this segment is written to again."""
        self.close()
        self.sealed = False

    def truncate(self, position: int, offset: int) -> None:
        """Cuts the log file at a batch's beginning, and the indexes with it."""
        offsets, times = self.offsets, self.times
        self.file.truncate(position)
        self.size = position
        self.synced = min(self.synced, position)
        offsets.truncate(offset - self.base_offset)
        times.truncate(offset - self.base_offset)
        self._cut_beside(INDEX, offsets.persisted * ENTRY_SIZE)
        self._cut_beside(TIME_INDEX, times.persisted * TIME_ENTRY_SIZE)
        self.cut_aborted(offset)
        # The tail behind the last entry has to be looked at again, as it may hold the largest timestamp.
        start = offsets.positions[-1] if offsets.positions else 0
        self._max_timestamp = times.timestamps[-1] if times.timestamps else -1
        self._max_timestamp_offset = self.base_offset + times.offsets[-1] if times.timestamps else -1
        for _, header in walk(self.file, start, position):
            if header.max_timestamp > self._max_timestamp:
                self._max_timestamp, self._max_timestamp_offset = header.max_timestamp, header.last_offset
        self._since_index = position - start
        self._first_timestamp = UNKNOWN

    def _cut_beside(self, kind: str, size: int) -> None:
        disk = self.around.disk
        if disk.exists(self.path(kind)) and disk.size(self.path(kind)) > size:
            self.write_beside(kind, b"", size)

    def seal(self) -> None:
        """The log goes on in another segment: the indexes are complete, and their files are written."""
        self.sealed = True

    def takes_file(self, file: File) -> None:
        """Its log file has just been made, and is open."""
        assert self._file is None
        self.used = True
        self._file = file
        self._note_open()

    def set_aside(self) -> None:
        """Marks the files as deleted; what was opened stays readable to holders of a lease."""
        self.close()
        self._offsets = self._times = None
        disk = self.around.disk
        for kind in (LOG, *INDEX_KINDS):
            with suppress(FileNotFoundError):
                disk.rename(self.path(kind), self.path(kind, DELETED))

    def remove(self) -> None:
        """Deletes the files at once."""
        self.close()
        self._offsets = self._times = None
        for kind in (*INDEX_KINDS, LOG):
            with suppress(FileNotFoundError):
                self.around.disk.remove(self.path(kind))
