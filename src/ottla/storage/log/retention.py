"""Which segments may go, and their removal.

Only whole segments go, oldest first, and only below the high watermark: by age of their newest record, by the size of
the log, and because DeleteRecords moved the log's start past them. Their files are renamed at once, which takes them
out of the log, and removed by a worker after file.delete.delay.ms, when no reader of before is left.

Two rules keep the log whole whatever a power cut undoes. What stays is on the medium before anything goes, since the
log's end would be lost with all of it. And renaming is made certain before a file is removed, so that a segment that
reappears is known by a `.deleted` one behind it.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Final, NamedTuple

from ottla.ports import Disk
from ottla.storage.errors import StorageFault
from ottla.storage.formats.names import DELETED, LOG
from ottla.storage.log.segment import INDEX_KINDS, Segment

if TYPE_CHECKING:
    from ottla.storage.log.log import Log


#: Segments that are taken out in one call: four names are changed for each, and ten thousand may be due.
EXPIRED_AT_ONCE: Final = 16


class Removal(NamedTuple):
    """The files of one segment on their way out."""

    disk: Disk
    directory: str
    paths: tuple[str, ...]
    #: Not before this wall time.
    due_ms: int
    size: int

    def run(self) -> None:
        """Blocks, so workers call it. Files that are gone already are fine."""
        try:
            self.disk.sync_directory(self.directory)
        except FileNotFoundError:
            # The whole partition went meanwhile.
            return
        for path in self.paths:
            with suppress(FileNotFoundError):
                self.disk.remove(path)


def expire(log: Log, now_ms: int, high_watermark: int) -> list[Removal]:
    """Takes what retention no longer keeps out of the log; after EXPIRED_AT_ONCE segments there may be more."""
    if log.swap is not None or log.is_rolling:
        # While a segment is being made, or a cleaned one replaces others: the next round finds the same.
        return []
    config = log.config
    gone = _below_start(log, high_watermark)
    if config.is_deleted:
        gone = max(gone, _too_large(log, high_watermark), _too_old(log, now_ms, high_watermark))
    if gone == len(log.segments) <= EXPIRED_AT_ONCE:
        # The active one goes too: the log goes on in an empty one behind it, and once that is certain the rest goes.
        log.roll(now_ms)
    gone = min(gone, EXPIRED_AT_ONCE)
    while gone > 0 and not log.durability.is_certain(log.segments[gone]):
        gone -= 1
    return remove_first(log, gone, now_ms) if gone else []


def remove_first(log: Log, count: int, now_ms: int) -> list[Removal]:
    """Takes the oldest segments out of the log, whose start moves to the first that stays."""
    places = log.places
    removed, kept = places.segments[:count], places.segments[count:]
    assert kept
    places.replace(kept)
    try:
        removals = [set_aside(segment, now_ms + log.config.file_delete_delay_ms) for segment in removed]
    except OSError as error:
        raise StorageFault.halfway(log.directory, error) from error
    log.durability.note_names()
    log.durability.forget(removed)
    log.producer_memory.segments_gone(kept[0].base_offset)
    log.start_moved(kept[0].base_offset)
    return removals


def set_aside(segment: Segment, due_ms: int) -> Removal:
    """Renames a segment's files, which it has to do with no more."""
    segment.set_aside()
    paths = tuple(segment.path(kind, DELETED) for kind in (*INDEX_KINDS, LOG))
    return Removal(segment.around.disk, segment.around.directory, paths, due_ms, segment.size)


def _count(log: Log, high_watermark: int, condemned: Callable[[Segment, int], bool]) -> int:
    """How many of the oldest segments may go: those wholly below the high watermark, while `condemned`."""
    segments = log.segments
    for number, segment in enumerate(segments):
        is_last = number + 1 == len(segments)
        end = log.end_offset if is_last else segments[number + 1].base_offset
        if end > high_watermark or (is_last and segment.size == 0) or not condemned(segment, end):
            return number
    return len(segments)


def _below_start(log: Log, high_watermark: int) -> int:
    # The active segment stays: what is deleted in it is merely not read.
    count = _count(log, high_watermark, lambda _, end: end <= log.start_offset)
    return min(count, len(log.segments) - 1)


def _too_large(log: Log, high_watermark: int) -> int:
    if log.config.retention_bytes < 0:
        return 0
    excess = log.size - log.config.retention_bytes

    def condemned(segment: Segment, _: int) -> bool:
        nonlocal excess
        if excess < segment.size:
            return False
        excess -= segment.size
        return True

    return _count(log, high_watermark, condemned)


def _too_old(log: Log, now_ms: int, high_watermark: int) -> int:
    if log.config.retention_ms < 0:
        return 0
    oldest_kept = now_ms - log.config.retention_ms
    return _count(log, high_watermark, lambda segment, _: segment.largest_timestamp() < oldest_kept)
