"""The batches of a sealed segment, whole and checked, out of reads of a fixed size."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from ottla.ports import Disk
from ottla.records.batch import ATTRIBUTES_AT, HEADER, HEADER_SIZE, LOG_OVERHEAD, BatchHeader
from ottla.records.checksum import crc32c
from ottla.records.compression import DECOMPRESSED_BYTES_MAX, decompress
from ottla.records.errors import CorruptBatch
from ottla.storage.cleaner.faults import PassInterrupted
from ottla.storage.errors import BadBatch
from ottla.storage.log.batch_walk import header_fault

#: Called with the bytes that were read or written; it may make the caller wait.
Pace = Callable[[int], None]
#: A batch: its header, what was read, and where in that it begins.
FoundBatch = tuple[BatchHeader, bytes, int]

#: The least that is read at once.
_READ_BYTES_MIN: Final = 4096


def batches(disk: Disk, path: str, size: int, read_bytes: int, pace: Pace) -> Iterator[FoundBatch]:
    """All batches of a segment; raises BadBatch. Interrupted once the segment has lost its name."""
    file = disk.open_read_only(path)
    usual = max(read_bytes, _READ_BYTES_MIN)
    position, wanted = 0, usual
    try:
        while position < size:
            if not disk.exists(path):
                raise PassInterrupted(f"{path} is gone")
            chunk = file.read(min(wanted, size - position), position)
            pace(len(chunk))
            used = 0
            for found in _whole(chunk, position, size):
                yield found
                used = found[2] + found[0].length + LOG_OVERHEAD
            wanted = usual if used else _size_of_first(chunk, position, size)
            position += used
    finally:
        file.close()


def _whole(chunk: bytes, position: int, size: int) -> Iterator[FoundBatch]:
    unpack, at, end = HEADER.unpack_from, 0, len(chunk)
    view = memoryview(chunk)
    while end - at >= HEADER_SIZE:
        header: BatchHeader = tuple.__new__(BatchHeader, unpack(chunk, at))
        following = at + header.size
        fault = header_fault(header, size - position - at)
        if fault is not None:
            raise BadBatch(position + at, fault)
        if following > end:
            return
        if crc32c(view[at + ATTRIBUTES_AT : following]) != header.crc:
            raise BadBatch(position + at, f"its checksum is not {header.crc:#010x}")
        yield header, chunk, at
        at = following


def _size_of_first(chunk: bytes, position: int, size: int) -> int:
    """What has to be read at once for the first batch to be whole."""
    if len(chunk) < HEADER_SIZE:
        raise BadBatch(position, f"only {len(chunk)} bytes are left, and a header has {HEADER_SIZE}")
    header: BatchHeader = tuple.__new__(BatchHeader, HEADER.unpack_from(chunk))
    if header.size <= len(chunk):
        raise BadBatch(position, "the file is shorter than it was")
    assert header.size <= size - position, "`header_fault` has looked at this"
    return header.size


def check_count(header: BatchHeader) -> None:
    """Raises CorruptBatch where a batch claims a number of records that its offsets do not allow."""
    if not 0 <= header.count <= header.last_offset_delta + 1:
        raise CorruptBatch(f"{header.count} records do not fit in {header.last_offset_delta + 1} offsets")


def payload_of(found: FoundBatch) -> tuple[bytes, int, int]:
    """Where the records are: the bytes, and in them the first and the last place. Raises a RecordError."""
    header, data, at = found
    check_count(header)
    begun, end = at + HEADER_SIZE, at + header.size
    codec = header.compression
    if codec == 0 or (header.count == 0 and begun == end):
        return data, begun, end
    unpacked = bytes(decompress(codec, memoryview(data)[begun:end], DECOMPRESSED_BYTES_MAX))
    return unpacked, 0, len(unpacked)
