"""A `.log` file, batch by batch, with everything that a batch can get wrong.

Behind a damaged batch the walk goes on where its length points, if a batch can begin there; otherwise nothing more can
be found, since batches are not aligned.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, cast

from ottla.ports.disk import Disk, File
from ottla.records.batch import (
    ATTRIBUTES_AT,
    HEADER,
    HEADER_SIZE,
    LENGTH_MIN,
    MAGIC,
    NO_SEQUENCE,
    BatchHeader,
    add_to_sequence,
)
from ottla.records.checksum import crc32c
from ottla.records.compression import NAMES
from ottla.records.control import parse_control
from ottla.records.errors import RecordError
from ottla.records.record import Record, decode_batch
from ottla.storage.dump.entries import BatchEntry, Finding, RecordEntry
from ottla.storage.formats.names import parse_segment_file

#: Read at once; also the step in which a large batch is summed.
CHUNK_BYTES: Final = 1 << 20
#: Larger batches are checked, and their records are not shown: nobody's max.message.bytes is that large.
RECORDS_BATCH_BYTES_MAX: Final = 256 << 20

#: The sum of a piece, given that of what lies before it.
_continue_sum: Final = cast("Callable[[bytes, int], int]", crc32c)

LogLine = BatchEntry | RecordEntry | Finding


def dump_log(disk: Disk, path: str, *, records: bool = True) -> Iterator[LogLine]:
    file = disk.open_read_only(path)
    try:
        walk = _Walk(file, path)
        yield from walk.lines(records=records)
    finally:
        file.close()


class _Walk:
    def __init__(self, file: File, path: str) -> None:
        self._file = file
        self._path = path
        self._size = file.size()
        name = parse_segment_file(path.rsplit("/", 1)[-1])
        #: Offsets below this one have no place at this point of the file.
        self._next_offset = name.offset if name else 0
        self._chunk = b""
        self._chunk_at = 0

    def lines(self, *, records: bool) -> Iterator[LogLine]:
        position = 0
        while position < self._size:
            header, fault = self._header(position)
            if header is None:
                yield self._unreadable(position, fault)
                return
            entry = self._batch_entry(position, header)
            yield entry
            yield from self._check(position, header, entry)
            if records and entry.is_valid:
                yield from self._records(position, header, entry)
            self._next_offset = max(self._next_offset, header.next_offset)
            position += header.size

    def _read(self, position: int, size: int) -> bytes:
        """`size` bytes, fewer at the end; small pieces come out of one larger read."""
        start = position - self._chunk_at
        if start < 0 or start + size > len(self._chunk):
            self._chunk = self._file.read(max(size, CHUNK_BYTES), position)
            self._chunk_at, start = position, 0
        return self._chunk[start : start + size]

    def _header(self, position: int) -> tuple[BatchHeader | None, str]:
        data = self._read(position, HEADER_SIZE)
        if len(data) < HEADER_SIZE:
            return None, f"{len(data)} bytes are left, and a batch header has {HEADER_SIZE}"
        header = BatchHeader._make(HEADER.unpack(data))
        room = self._size - position
        if header.magic != MAGIC:
            return None, f"its format (magic) is {header.magic}, and only {MAGIC} can be read"
        if header.length < LENGTH_MIN:
            return None, f"its length {header.length} is less than a header's"
        if header.size > room:
            return None, f"it has {header.size} bytes, and {room} are left"
        return header, ""

    def _unreadable(self, position: int, fault: str) -> Finding:
        left = self._size - position
        if self._is_zero(position):
            message = f"{left} bytes of zeros follow the last batch: room that was allocated and not used"
            return Finding(self._path, position, message, is_damage=False)
        return Finding(self._path, position, f"no batch can be read here ({fault}); {left} bytes are not looked at")

    def _is_zero(self, position: int) -> bool:
        while position < self._size:
            piece = self._file.read(CHUNK_BYTES, position)
            if not piece or any(piece):
                return False
            position += len(piece)
        return True

    def _batch_entry(self, position: int, header: BatchHeader) -> BatchEntry:
        return BatchEntry(
            base_offset=header.base_offset,
            last_offset=header.last_offset,
            record_count=header.count,
            base_sequence=header.base_sequence,
            last_sequence=header.last_sequence,
            producer_id=header.producer_id,
            producer_epoch=header.producer_epoch,
            partition_leader_epoch=header.leader_epoch,
            is_transactional=header.is_transactional,
            is_control=header.is_control,
            delete_horizon_ms=header.delete_horizon_ms,
            position=position,
            timestamp_type="LogAppendTime" if header.is_log_append_time else "CreateTime",
            timestamp=header.max_timestamp,
            size=header.size,
            magic=header.magic,
            compression=NAMES.get(header.compression, str(header.compression)),
            crc=header.crc,
            is_valid=self._checksum(position, header.size) == header.crc,
        )

    def _checksum(self, position: int, size: int) -> int:
        total, end = 0, position + size
        position += ATTRIBUTES_AT
        while position < end:
            piece = self._read(position, min(CHUNK_BYTES, end - position))
            if not piece:
                break
            total = _continue_sum(piece, total)
            position += len(piece)
        return total

    def _check(self, position: int, header: BatchHeader, entry: BatchEntry) -> Iterator[Finding]:
        if not entry.is_valid:
            yield Finding(self._path, position, f"the checksum of the batch at offset {header.base_offset} is wrong")
        if header.base_offset < self._next_offset:
            yield Finding(
                self._path, position, f"offset {header.base_offset} stands where {self._next_offset} or more is due"
            )
        if header.last_offset_delta < 0:
            yield Finding(
                self._path, position, f"the batch's last offset lies {-header.last_offset_delta} before its first"
            )
        elif not 0 <= header.count <= header.last_offset_delta + 1:
            yield Finding(
                self._path, position, f"{header.count} records are announced for {header.last_offset_delta + 1} offsets"
            )
        if entry.is_valid and header.compression not in NAMES:
            yield Finding(self._path, position, f"the compression codec {header.compression} is not known")

    def _records(self, position: int, header: BatchHeader, batch: BatchEntry) -> Iterator[RecordEntry | Finding]:
        if header.size > RECORDS_BATCH_BYTES_MAX:
            message = f"the batch has {header.size} bytes: its records are not shown"
            yield Finding(self._path, position, message, is_damage=False)
            return
        try:
            decoded = decode_batch(self._read(position, header.size), check_crcs=False)
        except RecordError as error:
            yield Finding(self._path, position, f"the checksum is right, but the records cannot be read: {error}")
            return
        previous = header.base_offset - 1
        for record in decoded:
            yield from self._record(record, header, batch)
            if not previous < record.offset <= header.last_offset:
                yield Finding(
                    self._path,
                    position,
                    f"record {record.offset} has no place between {previous} and {header.last_offset}",
                )
            previous = record.offset

    def _record(self, record: Record, header: BatchHeader, batch: BatchEntry) -> Iterator[RecordEntry | Finding]:
        control_type, coordinator_epoch = None, None
        if header.is_control:
            try:
                control = parse_control(record.key, record.value)
                control_type, coordinator_epoch = control.type.name, control.coordinator_epoch
            except RecordError as error:
                yield Finding(self._path, batch.position, f"the control record {record.offset} is damaged: {error}")
        delta = record.offset - header.base_offset
        sequence = NO_SEQUENCE
        if header.base_sequence != NO_SEQUENCE and 0 <= delta < 2**31:
            sequence = add_to_sequence(header.base_sequence, delta)
        yield RecordEntry(
            offset=record.offset,
            position=batch.position,
            timestamp_type=batch.timestamp_type,
            timestamp=record.timestamp,
            is_valid=batch.is_valid,
            key_size=-1 if record.key is None else len(record.key),
            value_size=-1 if record.value is None else len(record.value),
            magic=batch.magic,
            compression=batch.compression,
            producer_id=batch.producer_id,
            producer_epoch=batch.producer_epoch,
            sequence=sequence,
            is_transactional=batch.is_transactional,
            headers=list(record.headers),
            key=record.key,
            value=record.value,
            control_type=control_type,
            coordinator_epoch=coordinator_epoch,
        )


def walk_headers(disk: Disk, path: str) -> Iterator[tuple[int, BatchHeader]]:
    """Positions and headers for the check of an index, up to the first that cannot be one."""
    file = disk.open_read_only(path)
    try:
        walk, position, size = _Walk(file, path), 0, file.size()
        while position < size:
            header, _ = walk._header(position)  # noqa: SLF001 - the same walk without its findings
            if header is None:
                return
            yield position, header
            position += header.size
    finally:
        file.close()
