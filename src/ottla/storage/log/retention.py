"""Which segments may go, and their removal.

Only whole segments go, oldest first, and only below the high watermark: by age of their newest record, by the size of
the log, and because DeleteRecords moved the log's start past them. They are taken out of the log at once; workers
rename their files then, and remove them after file.delete.delay.ms, when no reader of before is left.

Two rules keep the log whole whatever a power cut undoes. What stays is on the medium before anything goes, since the
log's end would be lost with all of it. And renaming is made certain before a file is removed, so that a segment that
reappears is known by a `.deleted` one behind it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Final, NamedTuple

from ottla.ports import Disk
from ottla.steps import DiskSteps
from ottla.storage.formats.names import DELETED
from ottla.storage.log.file_changes import following, loading
from ottla.storage.log.segment import Segment

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


class SetAside:
    """Files of a log that have other names by now, and that nobody has been asked to remove yet: also those of a call
    that a fault has ended, and whose files followed later."""

    __slots__ = ("removals",)

    def __init__(self) -> None:
        self.removals: list[Removal] = []

    def put(self, removals: Sequence[Removal]) -> None:
        self.removals.extend(removals)

    def taken(self) -> list[Removal]:
        removals, self.removals = self.removals, []
        return removals


def expiring(log: Log, now_ms: int, high_watermark: int) -> DiskSteps[list[Removal]]:
    """Takes what retention no longer keeps out of the log; after EXPIRED_AT_ONCE segments there may be more."""
    yield from following(log)
    if log.swap is not None or log.is_rolling:
        # While a segment is being made, or a cleaned one replaces others: the next round finds the same.
        return log.set_aside.taken()
    yield from _knowing_times(log, now_ms)
    gone = _expired(log, now_ms, high_watermark)
    if gone == len(log.segments) <= EXPIRED_AT_ONCE:
        # The active one goes too: the log goes on in an empty one behind it, and once that is certain the rest goes.
        log.roll(now_ms)
    gone = min(gone, EXPIRED_AT_ONCE)
    while gone > 0 and not log.durability.is_certain(log.segments[gone]):
        gone -= 1
    if gone:
        _remove_first(log, gone, now_ms)
        yield from following(log)
    return log.set_aside.taken()


def may_expire(log: Log, now_ms: int, high_watermark: int) -> bool:
    """Whether there may be anything to take out. Reads nothing."""
    config, oldest = log.config, log.segments[0]
    if log.unfinished or log.set_aside.removals or _below_start(log, high_watermark):
        return True
    if not config.is_deleted or not (log.size or len(log.segments) > 1):
        return False
    if config.retention_bytes >= 0 and _too_large(log, high_watermark):
        return True
    if config.retention_ms < 0:
        return False
    known = oldest.known_largest_timestamp if oldest.keeps_largest_timestamp else None
    return known is None or known < now_ms - config.retention_ms


def _expired(log: Log, now_ms: int, high_watermark: int) -> int:
    """How many of the oldest segments are not kept."""
    gone = _below_start(log, high_watermark)
    if log.config.is_deleted:
        gone = max(gone, _too_large(log, high_watermark), _too_old(log, now_ms, high_watermark))
    return gone


def _knowing_times(log: Log, now_ms: int) -> DiskSteps[None]:
    """Has a worker look for the times of the segments that may be too old, as far as they are not known."""
    if log.config.retention_ms < 0 or not log.config.is_deleted:
        return
    oldest_kept = now_ms - log.config.retention_ms
    for segment in log.segments[: EXPIRED_AT_ONCE + 1]:
        if segment is log.active and not segment.size:
            return
        if not segment.keeps_largest_timestamp:
            yield from loading(log, segment)
        known = segment.known_largest_timestamp
        if segment not in log.places or known is None or known >= oldest_kept:
            return


def _remove_first(log: Log, count: int, now_ms: int) -> None:
    """Takes the oldest segments out of the log, whose start moves to the first that stays."""
    places = log.places
    removed, kept = places.segments[:count], places.segments[count:]
    assert kept
    places.replace(kept)
    due_ms = now_ms + log.config.file_delete_delay_ms
    log.durability.forget(removed)
    snapshots = log.producer_memory.segments_gone(kept[0].base_offset)
    log.begin_change(SettingAside(log, removed, snapshots, removals_of(removed, due_ms)))
    log.start_moved(kept[0].base_offset)


def removals_of(segments: Sequence[Segment], due_ms: int) -> list[Removal]:
    """What is to be done, some time later, with segments that are set aside."""
    removals = []
    for segment in segments:
        around = segment.around
        removals.append(Removal(around.disk, around.directory, tuple(segment.paths(DELETED)), due_ms, segment.size))
    return removals


class SettingAside:
    """Names of segments that are part of the log no more, and of what goes with them."""

    holds_back: Final = False

    def __init__(
        self, log: Log, segments: Sequence[Segment], snapshots: Sequence[str], removals: Sequence[Removal] = ()
    ) -> None:
        self._log = log
        #: What is due once they have those names.
        self._removals = removals
        self._disk = log.places.around.disk
        self._names = [names for segment in segments for names in segment.names_aside()]
        self._snapshots = tuple(snapshots)
        for segment in segments:
            segment.leave()

    def run(self) -> None:
        for name, aside in self._names:
            with suppress(FileNotFoundError):
                self._disk.rename(name, aside)
        for path in self._snapshots:
            with suppress(FileNotFoundError):
                self._disk.remove(path)

    def finish(self) -> None:
        self._log.durability.note_names()
        self._log.set_aside.put(self._removals)

    def drop(self) -> None:
        """Nothing is open."""


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

    def condemned(segment: Segment, _: int) -> bool:
        # One whose time is not known is one of many, and is looked at by the next call.
        known = segment.known_largest_timestamp
        return known is not None and known < oldest_kept

    return _count(log, high_watermark, condemned)
