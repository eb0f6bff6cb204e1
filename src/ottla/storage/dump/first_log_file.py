"""A `.kafka` file: a segment of Kafka 0.7 and before, entry by entry.

There are no offsets in it: what stands where is said by the bytes before it, so a file must end where the next begins,
and behind an entry whose length cannot be right nothing can be found.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from ottla.ports.disk import Disk, File
from ottla.records.compression import NAMES
from ottla.records.errors import RecordError
from ottla.records.first_messages import (
    LENGTH_MIN,
    LENGTH_SIZE,
    FirstMessage,
    entry_length,
    parse_first_message,
    unfold_first,
)
from ottla.records.old_messages import NO_TIMESTAMP
from ottla.storage.dump.entries import Finding, MessageEntry, RecordEntry
from ottla.storage.dump.old_messages import old_record
from ottla.storage.formats.names import parse_first_segment_file

#: Read at once, where an entry is no longer.
CHUNK_BYTES: Final = 1 << 20
#: Nobody's messages were that long: Kafka 0.7 took a million bytes by default.
ENTRY_BYTES_MAX: Final = 256 << 20

FirstLine = MessageEntry | RecordEntry | Finding


def dump_first_log(
    disk: Disk, path: str, *, records: bool = True, passed: Callable[[int], None] = lambda _: None
) -> Iterator[FirstLine]:
    """Entries, what is in them, and what is wrong; `passed` is called with the bytes that were looked at."""
    file = disk.open_read_only(path)
    try:
        yield from _FirstLogWalk(disk, file, path).lines(records=records, passed=passed)
    finally:
        file.close()


class _FirstLogWalk:
    def __init__(self, disk: Disk, file: File, path: str) -> None:
        self._disk = disk
        self._file = file
        self._path = path
        self._size = file.size()
        self._base = parse_first_segment_file(path.rpartition("/")[2])
        self._chunk = b""
        self._chunk_at = 0

    def lines(self, *, records: bool, passed: Callable[[int], None]) -> Iterator[FirstLine]:
        position = 0
        while position < self._size:
            message = self._message(position)
            if isinstance(message, Finding):
                yield message
                return
            yield _entry(message)
            if not message.is_valid:
                yield Finding(self._path, position, f"the checksum of the message at offset {message.offset} is wrong")
            elif records:
                yield from self._records(message)
            position += message.size
            passed(message.size)
        yield from self._end()

    def _message(self, position: int) -> FirstMessage | Finding:
        left = self._size - position
        head = self._read(position, min(left, LENGTH_SIZE))
        if len(head) == LENGTH_SIZE:
            length = entry_length(head, 0)
            if length == 0 and self._is_zero(position):
                what = f"{left} bytes of zeros follow the last message: room that was allocated and not used"
                return Finding(self._path, position, what, is_damage=False)
            if length > ENTRY_BYTES_MAX:
                return self._unreadable(position, f"its length {length} is more than {ENTRY_BYTES_MAX}")
            head = self._read(position, min(left, LENGTH_SIZE + max(length, LENGTH_MIN)))
        try:
            return parse_first_message(head, 0, self._base or 0, position)
        except RecordError as error:
            return self._unreadable(position, str(error))

    def _unreadable(self, position: int, fault: str) -> Finding:
        left = self._size - position
        what = f"no message can be read here ({fault}); {left} bytes are not looked at"
        return Finding(self._path, position, what)

    def _records(self, message: FirstMessage) -> Iterator[RecordEntry | Finding]:
        compression = NAMES.get(message.codec, str(message.codec))
        try:
            for one in unfold_first(message, ENTRY_BYTES_MAX):
                yield old_record(_entry(one), compression, None, one.payload)
        except RecordError as error:
            what = f"the checksum is right, but the messages cannot be read: {error}"
            yield Finding(self._path, message.position, what)

    def _end(self) -> Iterator[Finding]:
        """Where the next file begins, if there is one, this one has to end."""
        if self._base is None:
            return
        try:
            names = self._disk.names(self._path.rpartition("/")[0] or ".")
        except OSError:
            return  # a file of a folder that may not be listed
        others = (parse_first_segment_file(name) for name in names)
        later = min((base for base in others if base is not None and base > self._base), default=None)
        end = self._base + self._size
        if later is not None and later != end:
            what = f"the file ends at offset {end}, and the next one begins at {later}"
            yield Finding(self._path, self._size, what)

    def _read(self, position: int, size: int) -> bytes:
        start = position - self._chunk_at
        if start < 0 or start + size > len(self._chunk):
            self._chunk, self._chunk_at = self._file.read(max(size, CHUNK_BYTES), position), position
            start = 0
        return self._chunk[start : start + size]

    def _is_zero(self, position: int) -> bool:
        while position < self._size:
            piece = self._file.read(CHUNK_BYTES, position)
            if not piece or any(piece):
                return False
            position += len(piece)
        return True


def _entry(message: FirstMessage) -> MessageEntry:
    return MessageEntry(
        offset=message.offset,
        position=message.position,
        timestamp_type="NoTimestampType",
        timestamp=NO_TIMESTAMP,
        size=message.size,
        magic=message.magic,
        compression=NAMES.get(message.codec, str(message.codec)),
        crc=message.crc,
        is_valid=message.is_valid,
    )
