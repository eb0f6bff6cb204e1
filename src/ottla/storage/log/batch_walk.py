"""The headers of a log file's batches, one after the other, without reading what lies between them."""

from __future__ import annotations

from collections.abc import Iterator

from ottla.ports import File
from ottla.records.batch import HEADER, HEADER_SIZE, LENGTH_MIN, LOG_OVERHEAD, MAGIC, OFFSET_MAX, BatchHeader
from ottla.storage.errors import BadBatch

#: Two index intervals: a look-up finds its batch in one read where batches are small, and where they are large
#: not much is read in vain.
CHUNK_BYTES = 8192


def walk(file: File, start: int, end: int) -> Iterator[tuple[int, BatchHeader]]:
    """Position and header of each batch from `start`, where one begins, to `end`, where one ends.

    Raises BadBatch where that is not so. Checksums are not looked at.
    """
    position = chunk_at = start
    chunk = b""
    while position < end:
        within = position - chunk_at
        if within + HEADER_SIZE > len(chunk):
            chunk = file.read(min(CHUNK_BYTES, end - position), position)
            chunk_at, within = position, 0
            if len(chunk) < HEADER_SIZE:
                raise BadBatch(position, f"only {len(chunk)} bytes are left, and a header has {HEADER_SIZE}")
        header: BatchHeader = tuple.__new__(BatchHeader, HEADER.unpack_from(chunk, within))
        fault = header_fault(header, end - position)
        if fault is not None:
            raise BadBatch(position, fault)
        yield position, header
        position += header.size


def header_fault(header: BatchHeader, room: int) -> str | None:
    """Why no batch with this header can stand where `room` bytes are left; None where it can."""
    if header.length < LENGTH_MIN:
        return f"its length {header.length} is less than a header's"
    if header.magic != MAGIC:
        return f"its format is {header.magic}, and only {MAGIC} is known"
    if header.length + LOG_OVERHEAD > room:
        return f"it has {header.length + LOG_OVERHEAD} bytes, and {room} are left"
    if header.base_offset < 0 or not 0 <= header.last_offset_delta <= OFFSET_MAX - header.base_offset:
        return f"its offsets begin at {header.base_offset} and end {header.last_offset_delta} further on"
    return None


def read_header(file: File, position: int, end: int) -> BatchHeader:
    """The header of the batch that begins at `position`; raises BadBatch."""
    data = file.read(HEADER_SIZE, position)
    if len(data) < HEADER_SIZE:
        raise BadBatch(position, f"only {len(data)} bytes are left, and a header has {HEADER_SIZE}")
    header: BatchHeader = tuple.__new__(BatchHeader, HEADER.unpack(data))
    fault = header_fault(header, end - position)
    if fault is not None:
        raise BadBatch(position, fault)
    return header
