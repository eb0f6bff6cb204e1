"""What a read of a log gives, and a reader of log folders that needs no broker.

`Slice` is a piece of one segment's file, for sendfile or for reading. `LogReader` follows a partition's folder from
outside, in another process if need be: segments only grow at their end and sealed ones do not change, so it takes no
lock. A batch that is not whole yet ends a read; a segment that retention took away meanwhile is passed over.

What a folder shows is the log, and not what of it is committed: the high watermark is known to the broker alone. A
reader from outside that must not see more than a consumer asks the broker for it (ListOffsets) and gives it as `limit`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from ottla.ports import Disk, File
from ottla.records.batch import HEADER_SIZE, MAGIC_AT, BatchHeader, batch_size, check_crc, parse_header
from ottla.records.errors import CorruptBatch
from ottla.storage.errors import BadBatch, DamagedIndex, OffsetOutsideLog
from ottla.storage.formats.names import INDEX, LOG, format_segment_file, parse_segment_file
from ottla.storage.log.batch_walk import read_header
from ottla.storage.log.indexes.offset_index import OffsetIndex


class Slice(NamedTuple):
    """Batches one after the other in a file; the last may be cut. A caller that keeps the file longer leases it."""

    #: None where there is nothing to read.
    file: File | None
    position: int
    size: int

    def read(self) -> bytes:
        return b"" if self.file is None else self.file.read(self.size, self.position)


EMPTY: Final = Slice(None, 0, 0)


class StoredBatch(NamedTuple):
    header: BatchHeader
    #: The whole batch, header included.
    data: memoryview


class _GivenBatch(NamedTuple):
    """The last batch that a reader gave, where the next call goes on."""

    base: int
    position: int
    header: BatchHeader


class LogReader:
    """Reads one partition's folder in order; the folder's owner may write to it at the same time.

    Going on where a call has ended costs no more than what is new. Elsewhere the segment's index says where to begin,
    as far as its owner has written it.
    """

    #: Read at once, and more for a batch that is larger.
    CHUNK_BYTES: Final = 1 << 20

    def __init__(self, disk: Disk, directory: str, *, check_crcs: bool = True, sealed_only: bool = False) -> None:
        self._disk = disk
        self._directory = directory
        self._check_crcs = check_crcs
        #: Leaves the newest segment out, which is the one that still changes.
        self._sealed_only = sealed_only
        self._given: _GivenBatch | None = None

    def segments(self) -> list[int]:
        """The base offsets of the segments that are there now, rising."""
        bases: list[int] = []
        for name, is_file in self._disk.entries(self._directory):
            file = parse_segment_file(name)
            if is_file and file is not None and file.kind == LOG and not file.suffix:
                bases.append(file.offset)
        return bases[:-1] if self._sealed_only else bases

    def batches(self, start: int | None = None, limit: int | None = None) -> Iterator[StoredBatch]:
        """All whole batches that hold offsets from `start` up to, not including, `limit`, as far as there are any.

        Ends where the log ends for now: call again with the last batch's `next_offset` to go on. Raises
        OffsetOutOfRange where `start` lies before the first segment, and BadBatch where the log is damaged.
        """
        bases = self.segments()
        if not bases:
            return
        offset = bases[0] if start is None else start
        if offset < bases[0]:
            raise OffsetOutsideLog(offset, bases[0], bases[-1])
        for number, base in enumerate(bases):
            if number + 1 < len(bases) and bases[number + 1] <= offset:
                continue
            if limit is not None and base >= limit:
                return
            for batch in self._segment(base, offset, last=number + 1 == len(bases)):
                if limit is not None and batch.header.base_offset >= limit:
                    return
                if batch.header.last_offset >= offset:
                    yield batch
                    offset = batch.header.next_offset

    def _segment(self, base: int, offset: int, *, last: bool) -> Iterator[StoredBatch]:
        try:
            file = self._disk.open_read_only(f"{self._directory}/{format_segment_file(base, LOG)}")
        except FileNotFoundError:
            return
        try:
            yield from self._batches(file, base, self._start(file, base, offset), tolerant=last)
        finally:
            file.close()

    def _start(self, file: File, base: int, offset: int) -> int:
        """The position of a batch that begins at or below `offset`."""
        if offset <= base:
            return 0
        given = self._given
        if (
            given is not None
            and given.base == base
            and given.header.base_offset <= offset
            # The file may have been cut and written to again, or replaced by the cleaner.
            and self._header_at(file, given.position) == given.header
        ):
            return given.position
        try:
            data = self._disk.read_file(f"{self._directory}/{format_segment_file(base, INDEX)}")
            index = OffsetIndex.decode(data, file.size())
        except (FileNotFoundError, DamagedIndex):
            return 0
        number = index.floor(offset - base)
        if number < 0:
            return 0
        header = self._header_at(file, index.positions[number])
        fits = header is not None and header.last_offset == base + index.offsets[number]
        return index.positions[number] if fits else 0

    @staticmethod
    def _header_at(file: File, position: int) -> BatchHeader | None:
        try:
            return read_header(file, position, file.size())
        except BadBatch:
            return None

    def _batches(self, file: File, base: int, start: int, *, tolerant: bool) -> Iterator[StoredBatch]:
        """`tolerant`: the file is being written to, so that what is not whole at its end is not there yet."""
        position, wanted = start, self.CHUNK_BYTES
        while True:
            chunk = memoryview(file.read(wanted, position))
            at = 0
            while len(chunk) - at >= HEADER_SIZE:
                if tolerant and chunk[at + MAGIC_AT] == 0 and not any(chunk[at : at + HEADER_SIZE]):
                    return
                header = self._header(chunk, at, position)
                if at + header.size > len(chunk):
                    break
                if self._check_crcs and not check_crc(chunk, at, header.size):
                    if tolerant and position + at + header.size >= file.size():
                        return
                    raise BadBatch(position + at, "its checksum differs")
                self._given = _GivenBatch(base, position + at, header)
                yield StoredBatch(header, chunk[at : at + header.size])
                at += header.size
            position += at
            if len(chunk) < wanted:
                if at < len(chunk) and not tolerant:
                    raise BadBatch(position, f"only {len(chunk) - at} bytes of a batch are there")
                return
            wanted = self.CHUNK_BYTES
            if at == 0:
                # Bounded by what the file has, whatever the length says.
                size = batch_size(chunk)
                wanted = min(max(size, wanted), max(file.size() - position, HEADER_SIZE))
                if wanted <= len(chunk):
                    if tolerant:
                        return
                    raise BadBatch(position, f"it has {size} bytes, and {len(chunk)} are left")

    @staticmethod
    def _header(chunk: memoryview, at: int, position: int) -> BatchHeader:
        try:
            return parse_header(chunk, at)
        except CorruptBatch as error:
            raise BadBatch(position + at, error.message) from error
