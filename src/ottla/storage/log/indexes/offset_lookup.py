"""Where a batch lies in its segment: by the offset index, and a walk from the entry below the offset.

An index has no checksum, so that each entry that is used is held against the batch that it names.
"""

from __future__ import annotations

from typing import NamedTuple

from ottla.ports import File
from ottla.records.batch import HEADER_SIZE, BatchHeader
from ottla.storage.errors import BadBatch, DamagedIndex
from ottla.storage.log.batch_walk import CHUNK_BYTES, read_header, walk
from ottla.storage.log.indexes.offset_index import OffsetIndex


class BatchPlace(NamedTuple):
    """Where a batch lies in its segment."""

    position: int
    size: int
    base_offset: int
    next_offset: int


class IndexedBatches(NamedTuple):
    """A segment's batches and the index of them."""

    entries: OffsetIndex
    file: File
    #: Of the segment.
    base_offset: int
    size: int

    def find(self, offset: int) -> BatchPlace | None:
        """The first batch that ends at or above `offset`; None where all end below.

        Raises DamagedIndex, also where an entry names no batch, and BadBatch: behind an entry that is right it is the
        log that is wrong.
        """
        index = self.entries
        number = index.floor(offset - self.base_offset)
        start = index.positions[number] if number >= 0 else 0
        try:
            return self._found(offset, number, start)
        except BadBatch as bad:
            if bad.position in index.positions[max(number, 0) : number + 2]:
                raise DamagedIndex(str(bad)) from bad
            raise

    def _found(self, offset: int, number: int, start: int) -> BatchPlace | None:
        index, file = self.entries, self.file
        if number + 1 < len(index) and index.positions[number + 1] - start > CHUNK_BYTES:
            # Batches are large here, and the wanted one is likely that of the next entry.
            position = index.positions[number + 1]
            header = read_header(file, position, self.size)
            self._check_entry(number + 1, header)
            if header.base_offset <= offset:
                return place_of(position, header)
        for position, header in walk(file, start, self.size):
            if position == start and number >= 0:
                self._check_entry(number, header)
            if header.last_offset >= offset:
                return place_of(position, header)
        return None

    def read_to_find(self, offset: int) -> list[tuple[int, int]]:
        """Where `find` reads in the file, and how much, before it walks on."""
        index = self.entries
        number = index.floor(offset - self.base_offset)
        start = index.positions[number] if number >= 0 else 0
        pieces = [(start, min(CHUNK_BYTES, self.size - start))]
        if number + 1 < len(index) and index.positions[number + 1] - start > CHUNK_BYTES:
            pieces.append((index.positions[number + 1], HEADER_SIZE))
        return [(position, size) for position, size in pieces if size > 0]

    def check_end(self, tail_max: int) -> None:
        """One look at the log finds out an index of another past of this file, and one that ends too early, so many
        bytes or more before the log. Raises DamagedIndex and BadBatch."""
        index, start = self.entries, 0
        if index.positions:
            start = index.positions[-1]
            self._check_entry(len(index) - 1, read_header(self.file, start, self.size))
        if self.size - start > tail_max:
            for position, _ in walk(self.file, start, self.size):
                if position - start > tail_max:
                    raise DamagedIndex(f"it ends at byte {start} of {self.size}")

    def _check_entry(self, number: int, header: BatchHeader) -> None:
        index = self.entries
        if header.last_offset != self.base_offset + index.offsets[number]:
            raise DamagedIndex(
                f"entry {number} says that the batch at byte {index.positions[number]} ends with offset "
                f"{self.base_offset + index.offsets[number]}, and it ends with {header.last_offset}"
            )


def place_of(position: int, header: BatchHeader) -> BatchPlace:
    return BatchPlace(position, header.size, header.base_offset, header.next_offset)
