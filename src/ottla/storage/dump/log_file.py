"""A `.log` file, batch by batch, with everything that a batch can get wrong. Brokers before Kafka 0.11 have left
messages of magic 0 and 1, which may stand before batches in one file (`old_messages.py`).

Behind a damaged batch the walk goes on where its length points, if a batch can begin there; otherwise nothing more can
be found, since batches are not aligned.

`dump_log` shows batches and records; `check_log` finds the same faults and makes no objects of what is sound, which is
many times as fast. Where compiled code is there, it goes over what is neither damaged nor unusual; everything else it
leaves to the walk here, which judges it.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator
from typing import Final, NamedTuple, cast

from ottla.native import compiled_dumped
from ottla.ports.disk import Disk, File
from ottla.records.batch import (
    ATTRIBUTES_AT,
    COMPRESSION_MASK,
    HEADER,
    HEADER_SIZE,
    LENGTH_MIN,
    LOG_OVERHEAD,
    LOW_ATTRIBUTES_AT,
    MAGIC,
    NO_SEQUENCE,
    OFFSET_MAX,
    TIMESTAMP_TYPE_LOG_APPEND,
    TRANSACTIONAL,
    BatchHeader,
    add_to_sequence,
)
from ottla.records.checksum import crc32c
from ottla.records.compression import DECOMPRESSED_BYTES_MAX, NAMES, decompress
from ottla.records.control import parse_control
from ottla.records.errors import RecordError
from ottla.records.legacy import BYTES_TO_MAGIC, is_legacy
from ottla.records.old_messages import OldMessage, message_size, parse_message
from ottla.records.record import Record, decode_batch
from ottla.records.sound_records import are_sound
from ottla.storage.dump.entries import BatchEntry, Finding, MessageEntry, RecordEntry
from ottla.storage.dump.old_messages import as_header, message_entry, message_records
from ottla.storage.dump.rising_order import OUT_OF_LINE_MAX, MisplacedValue, RisingOrder
from ottla.storage.formats.names import LOG, parse_segment_file

#: Read at once; also the step in which a large batch is summed.
CHUNK_BYTES: Final = 1 << 20
#: Larger batches are checked, and their records are not shown: nobody's max.message.bytes is that large.
RECORDS_BATCH_BYTES_MAX: Final = 256 << 20
#: Offsets of one segment: an index has 31 bits for each, counted from the first.
SEGMENT_OFFSETS_MAX: Final = 2**31

#: The sum of a piece, given that of what lies before it.
_continue_sum: Final = cast("Callable[[bytes | memoryview, int], int]", crc32c)
_unpack: Final = HEADER.unpack_from
_new: Final = tuple.__new__
_compiled: Final = compiled_dumped()
#: With any other attribute a batch is not tried there.
_UNUSUAL: Final = 0xFF & ~(COMPRESSION_MASK | TIMESTAMP_TYPE_LOG_APPEND | TRANSACTIONAL)
#: Behind the largest offset: where offsets end that nothing else limits.
_OFFSET_END: Final = OFFSET_MAX + 1

LogLine = BatchEntry | MessageEntry | RecordEntry | Finding


class WalkedBatch(NamedTuple):
    """A batch of the walk, before anything is made of it."""

    position: int
    header: BatchHeader
    #: Whether its checksum is right.
    is_valid: bool


class WantedDetail(NamedTuple):
    """What is made of batches that compiled code goes over."""

    #: Whether their records are looked into.
    records: bool
    #: Whether their lines are written.
    lines: bool


class PassedOver(NamedTuple):
    """Batches in a row with which nothing is wrong."""

    #: Where the next one begins.
    end: int
    #: Their lines, if these are wanted.
    lines: str


def dump_log(disk: Disk, path: str, *, records: bool = True) -> Iterator[LogLine]:
    file = disk.open_read_only(path)
    try:
        walk = LogWalk(file, path, end_offset(disk, path))
        for found in walk.batches():
            if isinstance(found, Finding):
                yield found
                continue
            if isinstance(found, OldMessage):
                yield from walk.message_lines(found, records=records)
                continue
            entry = batch_entry(found)
            yield entry
            yield from walk.faults(found)
            if records and found.is_valid:
                yield from walk.records(found, entry)
        yield from walk.end()
    finally:
        file.close()


def check_log(disk: Disk, path: str, passed: Callable[[int], None], *, records: bool = True) -> Iterator[Finding]:
    """The findings alone, in the same order; `passed` is called with the bytes that were looked at."""
    file = disk.open_read_only(path)
    try:
        walk, at = LogWalk(file, path, end_offset(disk, path)), 0
        for found in walk.all_batches(WantedDetail(records=records, lines=False)):
            if isinstance(found, PassedOver):
                passed(found.end - at)
                at = found.end
                continue
            if isinstance(found, Finding):
                yield found
                continue
            if isinstance(found, OldMessage):
                yield from (line for line in walk.message_lines(found, records=records) if isinstance(line, Finding))
                continue
            yield from walk.faults(found)
            if records and found.is_valid and not walk.has_sound_records(found):
                for line in walk.records(found, batch_entry(found)):
                    if isinstance(line, Finding):
                        yield line
            if found.position - at >= CHUNK_BYTES:
                passed(found.position - at)
                at = found.position
        yield from walk.end()
        passed(file.size() - at)
    finally:
        file.close()


def end_offset(disk: Disk, path: str) -> int | None:
    """Where the offsets of a segment must end: where the next one's begin, or where an index could not count on."""
    folder, _, name = path.rpartition("/")
    segment = parse_segment_file(name)
    if segment is None:
        return None
    end = segment.offset + SEGMENT_OFFSETS_MAX
    if segment.suffix:
        return end
    try:
        others = [parse_segment_file(other) for other in disk.names(folder or ".")]
    except OSError:
        return end  # a file of a folder that may not be listed
    later = (other.offset for other in others if other is not None and other.kind == LOG and not other.suffix)
    return min((offset for offset in later if offset > segment.offset), default=end)


def batch_entry(batch: WalkedBatch) -> BatchEntry:
    header = batch.header
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
        position=batch.position,
        timestamp_type="LogAppendTime" if header.is_log_append_time else "CreateTime",
        timestamp=header.max_timestamp,
        size=header.size,
        magic=header.magic,
        compression=NAMES.get(header.compression, str(header.compression)),
        crc=header.crc,
        is_valid=batch.is_valid,
    )


class LogWalk:
    def __init__(self, file: File, path: str, end: int | None = None) -> None:
        self._file = file
        self._path = path
        self._size = file.size()
        name = parse_segment_file(path.rsplit("/", 1)[-1])
        self._offsets = RisingOrder(name.offset if name else 0, end)
        self._epochs = RisingOrder(-1)
        #: The last batch's leader epoch, and how many batches in a row have had it.
        self._epoch, self._epoch_batches = -1, 0
        self._chunk = b""
        self._view = memoryview(b"")
        self._chunk_at = 0

    def batches(self) -> Iterator[WalkedBatch | OldMessage | Finding]:
        """Batches and messages in turn; a finding where none can be read any more, and then it ends."""
        for found in self.all_batches(None):
            assert not isinstance(found, PassedOver)
            yield found

    def all_batches(self, wanted: WantedDetail | None) -> Iterator[WalkedBatch | OldMessage | Finding | PassedOver]:
        """The same; and in the place of batches that compiled code went over, that it did, where that is wanted."""
        position, size = 0, self._size
        while position < size:
            start = position - self._chunk_at
            if start + HEADER_SIZE > len(self._chunk):
                start = self._load(position, HEADER_SIZE)
                if start + HEADER_SIZE > len(self._chunk):
                    behind = yield from self._messages(position)
                    if behind == position:
                        left = size - position
                        yield self._unreadable(position, f"{left} bytes are left, and a batch header has {HEADER_SIZE}")
                        return
                    position = behind
                    continue
            if wanted is not None and (passed := self._pass_over(position, start, wanted)) is not None:
                yield passed
                position = passed.end
                continue
            header: BatchHeader = _new(BatchHeader, _unpack(self._chunk, start))
            length = header.length + LOG_OVERHEAD
            if header.magic != MAGIC or header.length < LENGTH_MIN or length > size - position:
                behind = yield from self._messages(position)
                if behind == position:
                    yield self._unreadable(position, self._header_fault(position, header))
                    return
                position = behind
                continue
            yield WalkedBatch(position, header, self._checksum(position, length) == header.crc)
            position += length

    def _pass_over(self, position: int, start: int, wanted: WantedDetail) -> PassedOver | None:
        """The usual batches from `position` on, which is at `start` in the chunk; None where the next is not one."""
        offsets = self._offsets
        if (
            _compiled is None
            or self._chunk[start + LOW_ATTRIBUTES_AT] & _UNUSUAL
            or self._epoch_batches <= OUT_OF_LINE_MAX
            or offsets.is_in_doubt
            or offsets.due > _OFFSET_END
        ):
            return None
        end = _OFFSET_END if offsets.end_max is None else min(offsets.end_max, _OFFSET_END)
        unfold = _unfolded if wanted.records else None
        taken, due, last, lines = _compiled.walk(
            self._chunk, start, position, offsets.due, end, self._epoch, unfold, wanted.lines
        )
        if not taken:
            return None
        offsets.has_taken(last, due)
        return PassedOver(position + taken, lines)

    def _messages(self, position: int) -> Generator[OldMessage | Finding, None, int]:
        """All messages of the formats before batches that follow each other here; where the next thing begins."""
        while is_legacy(head := self._read(position, BYTES_TO_MAGIC), 0):
            size, room = message_size(head, 0), self._size - position
            if size > RECORDS_BATCH_BYTES_MAX:
                fault = f"its {size} bytes are more than {RECORDS_BATCH_BYTES_MAX}"
                yield self._unreadable(position, fault, "message")
                return self._size
            try:
                message = parse_message(self._read(position, min(size, room)), 0, position)
            except RecordError as error:
                yield self._unreadable(position, str(error), "message")
                return self._size
            yield message
            position += message.size
        return position

    def headers(self) -> Iterator[tuple[int, BatchHeader]]:
        """Positions and headers alone, up to the first that cannot be one."""
        position = 0
        while position < self._size:
            data = self._read(position, HEADER_SIZE)
            if len(data) == HEADER_SIZE:
                header = BatchHeader._make(HEADER.unpack(data))
                if not self._header_fault(position, header):
                    yield position, header
                    position += header.size
                    continue
            before = position
            for message in self._messages(position):
                if isinstance(message, Finding):
                    return
                yield message.position, as_header(message)
                position = message.position + message.size
            if position == before:
                return

    def _load(self, position: int, size: int) -> int:
        """Reads a chunk that begins at `position`; gives the place of `position` in it."""
        self._chunk = self._file.read(max(size, CHUNK_BYTES), position)
        self._view = memoryview(self._chunk)
        self._chunk_at = position
        return 0

    def _read(self, position: int, size: int) -> bytes:
        """`size` bytes, fewer at the end; small pieces come out of one larger read."""
        start = position - self._chunk_at
        if start < 0 or start + size > len(self._chunk):
            start = self._load(position, size)
        return self._chunk[start : start + size]

    def _header_fault(self, position: int, header: BatchHeader) -> str:
        room = self._size - position
        if header.magic != MAGIC:
            return f"its format (magic) is {header.magic}, and only {MAGIC} can be read"
        if header.length < LENGTH_MIN:
            return f"its length {header.length} is less than a header's"
        if header.size > room:
            return f"it has {header.size} bytes, and {room} are left"
        return ""

    def _unreadable(self, position: int, fault: str, what: str = "batch") -> Finding:
        left = self._size - position
        if self._is_zero(position):
            message = f"{left} bytes of zeros follow the last batch: room that was allocated and not used"
            return Finding(self._path, position, message, is_damage=False)
        return Finding(self._path, position, f"no {what} can be read here ({fault}); {left} bytes are not looked at")

    def _is_zero(self, position: int) -> bool:
        while position < self._size:
            piece = self._file.read(CHUNK_BYTES, position)
            if not piece or any(piece):
                return False
            position += len(piece)
        return True

    def _checksum(self, position: int, size: int) -> int:
        start = position - self._chunk_at
        if start + size <= len(self._chunk):
            return _continue_sum(self._view[start + ATTRIBUTES_AT : start + size], 0)
        if size <= CHUNK_BYTES:
            self._load(position, size)
            return _continue_sum(self._view[ATTRIBUTES_AT:size], 0)
        total, end = 0, position + size
        position += ATTRIBUTES_AT
        while position < end:
            piece = self._read(position, min(CHUNK_BYTES, end - position))
            if not piece:
                break
            total = _continue_sum(piece, total)
            position += len(piece)
        return total

    def faults(self, batch: WalkedBatch) -> Iterable[Finding]:
        """What is wrong with its header, and what it shows to be wrong with those before it."""
        position, header, is_valid = batch
        if (
            is_valid
            and 0 <= header.count <= header.last_offset_delta + 1
            and (not header.attributes or header.compression in NAMES)
            and header.leader_epoch == self._epoch
            and self._epoch_batches > OUT_OF_LINE_MAX
            and self._offsets.takes(position, header.base_offset, header.last_offset_delta + 1)
        ):
            return ()
        return self._looked_into(position, header, is_valid=is_valid)

    def _looked_into(self, position: int, header: BatchHeader, *, is_valid: bool) -> Iterator[Finding]:
        if not is_valid:
            yield Finding(self._path, position, f"the checksum of the batch at offset {header.base_offset} is wrong")
        last_delta, count = header.last_offset_delta, header.count
        if last_delta < 0:
            yield Finding(self._path, position, f"the batch's last offset lies {-last_delta} before its first")
        elif not 0 <= count <= last_delta + 1:
            yield Finding(self._path, position, f"its header counts records and offsets: {count} and {last_delta + 1}")
        if is_valid and header.compression not in NAMES:
            yield Finding(self._path, position, f"the compression codec {header.compression} is not known")
        # Where the checksum is wrong, so may be the number of its offsets.
        span = last_delta + 1 if is_valid and last_delta >= 0 else 1
        for one in self._offsets.add(position, header.base_offset, span):
            yield self._misplaced("offset", one)
        if header.leader_epoch != self._epoch:
            self._epoch, self._epoch_batches = header.leader_epoch, 0
        if self._epoch_batches <= OUT_OF_LINE_MAX:  # more of the same would change nothing
            self._epoch_batches += 1
            for one in self._epochs.add(position, header.leader_epoch, 0):
                yield self._misplaced("leader epoch", one)

    def end(self) -> Iterator[Finding]:
        """What is out of line and was waited for, if something behind it would explain it."""
        for one in self._offsets.end():
            yield self._misplaced("offset", one)
        for one in self._epochs.end():
            yield self._misplaced("leader epoch", one)

    def _misplaced(self, what: str, one: MisplacedValue) -> Finding:
        if one.before is None or one.value < one.due:
            message = f"{what} {one.value} stands where {one.due} or more is due"
        else:
            message = f"{what} {one.value} has no place between {one.due - 1} and {one.before}"
        return Finding(self._path, one.position, message)

    def message_lines(self, message: OldMessage, *, records: bool) -> Iterator[MessageEntry | RecordEntry | Finding]:
        """A message of the formats before batches, what is wrong with it, and what is in it."""
        yield message_entry(message)
        if not message.is_valid:
            yield Finding(
                self._path, message.position, f"the checksum of the message at offset {message.offset} is wrong"
            )
        for one in self._offsets.add(message.position, message.offset, 1):
            yield self._misplaced("offset", one)
        if records and message.is_valid:
            yield from message_records(self._path, message, RECORDS_BATCH_BYTES_MAX)

    def has_sound_records(self, batch: WalkedBatch) -> bool:
        """Whether `records` would find nothing; False also where that takes a closer look."""
        header = batch.header
        if header.attributes and (header.is_control or header.size > RECORDS_BATCH_BYTES_MAX):
            return False
        start = batch.position - self._chunk_at
        end = start + header.size
        if start < 0 or end > len(self._chunk):
            return False
        return are_sound(header, self._chunk, start + HEADER_SIZE, end)

    def records(self, batch: WalkedBatch, entry: BatchEntry) -> Iterator[RecordEntry | Finding]:
        header, position = batch.header, batch.position
        if header.size > RECORDS_BATCH_BYTES_MAX:
            message = f"the batch has {header.size} bytes: its records are not shown"
            yield Finding(self._path, position, message, is_damage=False)
            return
        try:
            decoded = self.decoded(batch)
        except RecordError as error:
            yield Finding(self._path, position, f"the checksum is right, but the records cannot be read: {error}")
            return
        previous = header.base_offset - 1
        for record in decoded:
            yield from self._record(record, header, entry)
            if not previous < record.offset <= header.last_offset:
                yield Finding(
                    self._path,
                    position,
                    f"record {record.offset} has no place between {previous} and {header.last_offset}",
                )
            previous = record.offset

    def decoded(self, batch: WalkedBatch) -> list[Record]:
        """Raises RecordError."""
        return decode_batch(self._read(batch.position, batch.header.size), check_crcs=False)

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


def _unfolded(codec: int, block: bytes) -> bytes | None:
    """None where it is damaged, which the walk says in its own words."""
    try:
        return bytes(decompress(codec, block, DECOMPRESSED_BYTES_MAX))
    except RecordError:
        return None


def walk_headers(disk: Disk, path: str) -> Iterator[tuple[int, BatchHeader]]:
    """For the check of an index."""
    file = disk.open_read_only(path)
    try:
        yield from LogWalk(file, path).headers()
    finally:
        file.close()
