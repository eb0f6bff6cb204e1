"""Whole batches out of a folder's sealed segments, a piece at a time, by positioned reads into one buffer.

No file is mapped into memory: one that is cut while it is read gives fewer bytes, and does not end the process. A file
that is open stays what it was when the cleaner puts another in its place, or retention takes it away.

A folder's list is not read in one instant, and while a cleaned segment takes the place of others some have no name. So
a missing segment looks as a gap between two does. Gaps within a file are what compaction left; where a file does not
have the offset or one behind it, nobody here can say why, and the leader is asked.
"""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Iterator
from contextlib import suppress
from typing import Final, NamedTuple

from ottla.records.batch import HEADER_SIZE, BatchHeader, batch_size, iterate, parse_header
from ottla.records.errors import RecordError
from ottla.spark.source.direct.folders import Folder
from ottla.storage.errors import DamagedIndex
from ottla.storage.formats.names import INDEX, LOG
from ottla.storage.log.indexes.offset_index import OffsetIndex

#: Read at once, and more for a batch that is larger: as a fetch.
PIECE_BYTES: Final = 1024 * 1024
#: More than the index of a segment of 2 GiB has with entries four times as dense as they are by default.
_INDEX_BYTES_MAX: Final = 16 * 1024 * 1024


class DamagedFile(Exception):
    """A segment whose bytes are not whole batches one after the other; the message names file and place."""


class Piece(NamedTuple):
    """Whole batches. The buffer is the reader's own, and is read into again."""

    buf: memoryview
    end: int
    next_offset: int
    file: str
    has_transactions: bool


class _OpenSegment:
    def __init__(self, folder: Folder, base: int) -> None:
        self.base = base
        self.name = folder.name(base, LOG)
        self.fd = folder.open(base, LOG)
        self.size = os.fstat(self.fd).st_size
        #: The next batch to be read begins here, and has no offset below this one.
        self.position = 0
        self.next_offset = base

    def close(self) -> None:
        with suppress(OSError):
            os.close(self.fd)


class SegmentReader:
    """Of one folder, which it closes."""

    def __init__(self, folder: Folder) -> None:
        self.folder = folder
        self._room = bytearray(PIECE_BYTES)
        self._segment: _OpenSegment | None = None

    def close(self) -> None:
        if self._segment is not None:
            self._segment.close()
        self.folder.close()

    def piece(self, offset: int) -> Piece | None:
        """Batches from the one on that has the offset, or is the first behind it; None where no file says which.

        Raises OSError and DamagedFile.
        """
        at = self._segment
        if at is None or at.next_offset != offset or at.position >= at.size:
            at = self._at(offset)
        while at is not None and at.position < at.size:
            found = self._next(at)
            if found.next_offset > offset:
                return found
        return None

    def last_batch(self, until: int) -> BatchHeader | None:
        """The last one that begins below this offset; None where there is none. Raises OSError and DamagedFile."""
        at = self._at(until - 1)
        last = None
        while at is not None and at.position < at.size:
            for header in self._batches(at)[1]:
                if header.base_offset >= until:
                    return last
                last = header
        return last

    def _at(self, offset: int) -> _OpenSegment | None:
        """The segment in which an offset lies, if it lies in one of them, opened at a batch that is not behind it."""
        bases = self.folder.sealed()
        number = bisect_right(bases, offset) - 1
        if self._segment is not None:
            self._segment.close()
            self._segment = None
        if number >= 0:
            self._segment = _OpenSegment(self.folder, bases[number])
            self._step_forward(self._segment, offset)
        return self._segment

    def _step_forward(self, at: _OpenSegment, offset: int) -> None:
        """By the index, as far as that is there, and right."""
        if offset <= at.base:
            return
        try:
            index = self._index(at)
        except (OSError, DamagedIndex):
            return
        number = index.floor(offset - at.base)
        if number < 0:
            return
        position, last_offset = index.positions[number], at.base + index.offsets[number]
        with suppress(RecordError):
            header = parse_header(os.pread(at.fd, HEADER_SIZE, position))
            if header.last_offset == last_offset and header.base_offset >= at.base:
                at.position, at.next_offset = position, header.base_offset

    def _index(self, at: _OpenSegment) -> OffsetIndex:
        fd = self.folder.open(at.base, INDEX)
        try:
            size = os.fstat(fd).st_size
            if size > _INDEX_BYTES_MAX:
                raise DamagedIndex(f"it has {size} bytes")
            return OffsetIndex.decode(os.pread(fd, size, 0), at.size)
        finally:
            os.close(fd)

    def _next(self, at: _OpenSegment) -> Piece:
        view, headers = self._batches(at)
        size = sum(header.size for header in headers)
        return Piece(view, size, at.next_offset, at.name, any(header.is_transactional for header in headers))

    def _batches(self, at: _OpenSegment) -> tuple[memoryview, list[BatchHeader]]:
        """At least one, from the segment's position on, which moves on behind them."""
        view = self._filled(at, PIECE_BYTES)
        headers = list(self._headers(at, view))
        if not headers:
            view = self._filled(at, self._size_of_one(at, view))
            headers = list(self._headers(at, view))
        if not headers:
            raise DamagedFile(f"{at.name} ends within the batch at byte {at.position}")
        return view, headers

    def _size_of_one(self, at: _OpenSegment, view: memoryview) -> int:
        size = batch_size(view) if len(view) >= HEADER_SIZE else HEADER_SIZE
        if size > at.size - at.position:
            raise DamagedFile(f"{at.name} ends within the batch at byte {at.position}")
        return size

    def _headers(self, at: _OpenSegment, view: memoryview) -> Iterator[BatchHeader]:
        """Of the whole batches in what was read at the segment's position, which moves on behind each."""
        began = at.position
        try:
            for pos, header in iterate(view, 0, len(view)):
                if header.base_offset < at.next_offset or header.last_offset < header.base_offset:
                    raise DamagedFile(
                        f"{at.name} has offset {header.base_offset} at byte {began + pos}, behind {at.next_offset - 1}"
                    )
                at.position, at.next_offset = began + pos + header.size, header.next_offset
                yield header
        except RecordError as error:
            raise DamagedFile(f"{at.name} is damaged at byte {at.position}: {error}") from error

    def _filled(self, at: _OpenSegment, size: int) -> memoryview:
        """What is there from the segment's position on."""
        if size > len(self._room):
            self._room = bytearray(size)
        view = memoryview(self._room)[: min(size, at.size - at.position)]
        filled = 0
        while filled < len(view):
            count = os.preadv(at.fd, [view[filled:]], at.position + filled)
            if not count:
                break  # it was cut
            filled += count
        return view[:filled]
