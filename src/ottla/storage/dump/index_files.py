"""`.index` and `.timeindex`, checked entry by entry against the log file beside them.

Both rise with the log, so one walk over the log's batch headers serves the whole index. A file of full size is one that
was in use when the broker stopped hard: what follows its last entry is zeros.
"""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct
from typing import Final

from ottla.ports.disk import Disk
from ottla.records.batch import BatchHeader
from ottla.storage.dump.entries import Finding, OffsetIndexEntry, TimeIndexEntry
from ottla.storage.dump.log_file import walk_headers
from ottla.storage.formats.names import INDEX, LOG, TIME_INDEX, parse_segment_file

OFFSET_ENTRY: Final = Struct(">ii")
TIME_ENTRY: Final = Struct(">qi")
_CHUNK_ENTRIES: Final = 8192


def dump_offset_index(disk: Disk, path: str) -> Iterator[OffsetIndexEntry | Finding]:
    base, batches, note = _beside(disk, path, INDEX)
    if note is not None:
        yield note
    previous: OffsetIndexEntry | None = None
    at = next(batches, None) if batches else None
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
        elif batches is not None:
            while at is not None and at[0] < log_position:
                at = next(batches, None)
            yield from _check_offset(path, position, entry, at)
        previous = entry


def _check_offset(
    path: str, position: int, entry: OffsetIndexEntry, at: tuple[int, BatchHeader] | None
) -> Iterator[Finding]:
    if at is None or at[0] != entry.position:
        yield Finding(path, position, f"offset {entry.offset} points to {entry.position}, where no batch of the log begins")
    elif at[1].base_offset > entry.offset:
        yield Finding(
            path, position, f"offset {entry.offset} points to {entry.position}, where offset {at[1].base_offset} begins"
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


def _beside(
    disk: Disk, path: str, suffix: str
) -> tuple[int, Iterator[tuple[int, BatchHeader]] | None, Finding | None]:
    """Base offset, batches of the log file beside, and what to say if there is none."""
    folder, _, name = path.rpartition("/")
    parsed = parse_segment_file(name)
    if parsed is None:
        return 0, None, Finding(path, None, "the file's name has no offset: offsets are relative", is_damage=False)
    log = path[: path.rindex(suffix)] + LOG + parsed.suffix
    if not disk.exists(log):
        return parsed.offset, None, Finding(path, None, "there is no log file beside it to check it with", is_damage=False)
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
            for raw in form.iter_unpack(data):
                if raw == (0, 0) and _rest_is_zero(file, position, size):
                    # The first entry of an index is never (0, 0): the first batch has none.
                    message = f"{size - position} bytes of zeros follow the last entry: room that was not used"
                    yield position, Finding(path, position, message, is_damage=False)
                    return
                yield position, raw
                position += form.size
        if size != whole:
            yield whole, Finding(path, whole, f"{size - whole} bytes are left, and an entry has {form.size}")
    finally:
        file.close()


def _rest_is_zero(file: object, position: int, size: int) -> bool:
    raise NotImplementedError
