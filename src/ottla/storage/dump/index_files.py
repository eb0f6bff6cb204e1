"""`.index` and `.timeindex`, checked entry by entry against the log file beside them.

Both rise with the log, so one walk over the log's batch headers serves the whole index. A file of full size is one that
was in use when the broker stopped hard: what follows its last entry is zeros.
"""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct
from typing import Final

from ottla.ports.disk import Disk, File
from ottla.records.batch import MAGIC, BatchHeader
from ottla.storage.dump.entries import Finding, OffsetIndexEntry, TimeIndexEntry
from ottla.storage.dump.log_file import walk_headers
from ottla.storage.formats.names import INDEX, LOG, TIME_INDEX, parse_segment_file
from ottla.storage.log.indexes.offset_index import SIGNED_ENTRY as OFFSET_ENTRY
from ottla.storage.log.indexes.time_index import SIGNED_ENTRY as TIME_ENTRY

_CHUNK_ENTRIES: Final = 8192


def dump_offset_index(disk: Disk, path: str) -> Iterator[OffsetIndexEntry | Finding]:
    base, batches, note = _beside(disk, path, INDEX)
    if note is not None:
        yield note
    check = _OffsetCheck(path, batches)
    previous: OffsetIndexEntry | None = None
    for position, raw in _entries(disk, path, OFFSET_ENTRY):
        if isinstance(raw, Finding):
            yield raw
            continue
        relative, log_position = raw
        entry = OffsetIndexEntry(base + relative, log_position)
        yield entry
        if relative < 0 or log_position < 0:
            yield Finding(path, position, f"offset {entry.offset} at {log_position} is below the segment's beginning")
        elif previous is not None and (entry.offset <= previous.offset or entry.position <= previous.position):
            yield Finding(
                path,
                position,
                f"offset {entry.offset} at {entry.position} follows {previous.offset} at {previous.position}",
            )
        else:
            yield from check.entry(position, entry)
        previous = entry
    yield from check.end()


class _OffsetCheck:
    """An entry points to the beginning of a batch, and is that batch's last offset.

    Followers of older Kafka versions wrote several batches at once and gave the last offset of them all: a look-up then
    only starts earlier than it could, so that is worth a note and no more.
    """

    def __init__(self, path: str, batches: Iterator[tuple[int, BatchHeader]] | None) -> None:
        self._path = path
        self._batches = batches
        self._at: tuple[int, BatchHeader] | None = None
        #: An entry that is not its own batch's last offset, and may be that of a later batch before the next entry.
        self._pending: tuple[int, OffsetIndexEntry] | None = None

    def entry(self, position: int, entry: OffsetIndexEntry) -> Iterator[Finding]:
        if self._batches is None:
            return
        yield from self._walk(entry.position)
        yield from self._give_up_pending()
        if self._at is None or self._at[0] != entry.position:
            yield Finding(
                self._path,
                position,
                f"offset {entry.offset} points to {entry.position}, where no batch of the log begins",
            )
        elif self._at[1].magic < MAGIC:
            pass  # brokers of those formats gave the first offset of what they appended at once
        elif not self._at[1].base_offset <= entry.offset:
            yield Finding(
                self._path,
                position,
                f"offset {entry.offset} points to {entry.position}, where offset {self._at[1].base_offset} begins",
            )
        elif self._at[1].last_offset != entry.offset:
            self._pending = (position, entry)

    def end(self) -> Iterator[Finding]:
        if self._pending is not None:
            yield from self._walk(None)
            yield from self._give_up_pending()

    def _walk(self, until: int | None) -> Iterator[Finding]:
        assert self._batches is not None
        while self._at is None or until is None or self._at[0] < until:
            self._at = next(self._batches, None)
            if self._at is None:
                return
            if self._pending is not None and self._at[1].last_offset == self._pending[1].offset:
                position, entry = self._pending
                self._pending = None
                message = f"offset {entry.offset} points to {entry.position}, an earlier batch than its own"
                yield Finding(self._path, position, message, is_damage=False)

    def _give_up_pending(self) -> Iterator[Finding]:
        if self._pending is not None:
            position, entry = self._pending
            self._pending = None
            yield Finding(
                self._path,
                position,
                f"offset {entry.offset} points to {entry.position}, where no batch with this last offset begins",
            )


def dump_time_index(disk: Disk, path: str) -> Iterator[TimeIndexEntry | Finding]:
    base, batches, note = _beside(disk, path, TIME_INDEX)
    if note is not None:
        yield note
    check = _TimeCheck(path, batches)
    previous: TimeIndexEntry | None = None
    for position, raw in _entries(disk, path, TIME_ENTRY):
        if isinstance(raw, Finding):
            yield raw
            continue
        timestamp, relative = raw
        entry = TimeIndexEntry(timestamp, base + relative)
        yield entry
        if relative < 0:
            yield Finding(path, position, f"offset {entry.offset} is below the segment's beginning")
        elif previous is not None and (timestamp <= previous.timestamp or entry.offset < previous.offset):
            yield Finding(
                path,
                position,
                f"timestamp {timestamp} at offset {entry.offset} follows {previous.timestamp} at {previous.offset}",
            )
        else:
            yield from check.entry(position, entry)
        previous = entry


class _TimeCheck:
    """An entry promises: nothing up to its offset is younger than its timestamp, and the batch there is that old."""

    def __init__(self, path: str, batches: Iterator[tuple[int, BatchHeader]] | None) -> None:
        self._path = path
        self._batches = batches
        self._header: BatchHeader | None = None
        self._latest = -1

    def entry(self, position: int, entry: TimeIndexEntry) -> Iterator[Finding]:
        if self._batches is None:
            return
        while self._header is None or self._header.last_offset < entry.offset:
            following = next(self._batches, None)
            if following is None:
                yield Finding(self._path, position, f"offset {entry.offset} is not in the log")
                self._batches = None
                return
            self._header = following[1]
            self._latest = max(self._latest, self._header.max_timestamp)
        if self._header.base_offset > entry.offset:
            yield Finding(self._path, position, f"offset {entry.offset} is not in the log")
        elif self._latest != entry.timestamp:
            yield Finding(
                self._path,
                position,
                f"the entry says that offset {entry.offset} brought the latest timestamp, {entry.timestamp}; "
                f"in the log that is {self._latest}",
            )


def _beside(disk: Disk, path: str, suffix: str) -> tuple[int, Iterator[tuple[int, BatchHeader]] | None, Finding | None]:
    """Base offset, batches of the log file beside, and what to say if there is none."""
    parsed = parse_segment_file(path.rpartition("/")[2])
    if parsed is None:
        return 0, None, Finding(path, None, "the file's name has no offset: offsets are relative", is_damage=False)
    log = path[: path.rindex(suffix)] + LOG + parsed.suffix
    if not disk.exists(log):
        return (
            parsed.offset,
            None,
            Finding(path, None, "there is no log file beside it to check it with", is_damage=False),
        )
    try:
        disk.open_read_only(log).close()
    except OSError as error:
        message = f"the log file beside it cannot be read ({error.strerror or error}), so it is not checked with it"
        return parsed.offset, None, Finding(path, None, message, is_damage=False)
    return parsed.offset, walk_headers(disk, log), None


def _entries(disk: Disk, path: str, form: Struct) -> Iterator[tuple[int, tuple[int, int] | Finding]]:
    """The raw entries with their positions, up to the unused room behind them."""
    file = disk.open_read_only(path)
    try:
        size, position = file.size(), 0
        whole = size - size % form.size
        while position < whole:
            data = file.read(min(form.size * _CHUNK_ENTRIES, whole - position), position)
            data = data[: len(data) - len(data) % form.size]
            if not data:
                break
            for first, second in form.iter_unpack(data):
                if first == second == 0 and _is_unused(file, position, whole, form.size):
                    message = f"{size - position} bytes of zeros follow the last entry: room that was not used"
                    yield position, Finding(path, position, message, is_damage=False)
                    return
                yield position, (first, second)
                position += form.size
        if size != whole:
            yield whole, Finding(path, whole, f"{size - whole} bytes are left, and an entry has {form.size}")
    finally:
        file.close()


def _is_unused(file: File, position: int, end: int, entry_size: int) -> bool:
    if position == 0 and end == entry_size and entry_size == TIME_ENTRY.size:
        return False  # a single entry for a record of the year 1970 at the segment's first offset
    while position < end:
        piece = file.read(min(entry_size * _CHUNK_ENTRIES, end - position), position)
        if not piece or any(piece):
            return False
        position += len(piece)
    return True
