"""`<offset>.snapshot` files: producers' state at an offset, so that a start reads only the log behind it.

One is taken with each roll and with the close of a log that has producers. Taking it costs the loop nothing: the state
is frozen, and the next flush writes it (`PendingSnapshot`). The newest counts, and one for each segment is kept, so
that cutting the log back needs no scan from its start. Any of them may be missing: while one is being written no other
is taken, and a crash may come before the flush. A damaged one is removed. The one before it serves, and the log.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from typing import Final

from ottla.storage.errors import BadBatch
from ottla.storage.formats import producer_snapshot
from ottla.storage.formats.errors import FormatError
from ottla.storage.formats.names import SNAPSHOT, format_segment_file
from ottla.storage.formats.producer_snapshot import HEAD_SIZE, SnapshotEncoder
from ottla.storage.log.batch_walk import walk
from ottla.storage.log.indexes.segment_file import LogContext
from ottla.storage.log.markers import apply_written
from ottla.storage.log.producers.producer_state import KnownProducer, ProducerStates, entries_of
from ottla.storage.log.producers.recall import recall
from ottla.storage.log.segment import Segment

#: Entries that are encoded between two writes, each of which gives the interpreter's lock away: 0.3 ms.
ENTRIES_AT_ONCE: Final = 256


class Snapshots:
    __slots__ = ("around", "offsets")

    def __init__(self, around: LogContext, offsets: Sequence[int] = ()) -> None:
        self.around = around
        #: Of the files that there are, rising.
        self.offsets = tuple(sorted(offsets))

    def keep_in(self, around: LogContext) -> None:
        """From now on what surrounds them is this."""
        self.around = around

    @property
    def latest(self) -> int:
        return self.offsets[-1] if self.offsets else -1

    def path(self, offset: int) -> str:
        return f"{self.around.directory}/{format_segment_file(offset, SNAPSHOT)}"

    def restore(self, producers: ProducerStates, offset: int, now_ms: int) -> int:
        """Fills `producers` from the newest sound snapshot at or below `offset`; returns its offset, -1 for none."""
        for candidate in reversed(self.offsets):
            if candidate > offset:
                continue
            try:
                producers.restore(producer_snapshot.decode(self.around.disk.read_file(self.path(candidate))), now_ms)
            except (FormatError, FileNotFoundError) as damage:
                self.around.warn(
                    f"{self.path(candidate)} is removed and producers' state is read from the log: {damage}"
                )
                self.remove((candidate,))
                continue
            return candidate
        return -1

    def superseded_by(self, offset: int, bases: Sequence[int]) -> int | None:
        """The latest, where it stands between two segments' bases: it was of a stop, and goes with the next one."""
        latest = self.latest
        if latest < 0 or latest == offset:
            return None
        number = bisect_left(bases, latest)
        return latest if number == len(bases) or bases[number] != latest else None

    def taken(self, offset: int, superseded: int | None) -> None:
        """Takes note of one that has been written, and of one whose file has gone with that."""
        if superseded is not None:
            self.offsets = tuple(each for each in self.offsets if each != superseded)
        if offset > self.latest:
            self.offsets = (*self.offsets, offset)
        elif offset not in self.offsets:
            self.offsets = tuple(sorted((*self.offsets, offset)))

    def remove(self, gone: Collection[int]) -> None:
        """With the caller waiting for the disk."""
        for path in self.forget(gone):
            with suppress(FileNotFoundError):
                self.around.disk.remove(path)

    def forget(self, gone: Collection[int]) -> list[str]:
        """These are to be removed: their paths."""
        if gone:
            removed = frozenset(gone)
            self.offsets = tuple(offset for offset in self.offsets if offset not in removed)
        return [self.path(offset) for offset in gone]

    def keep_only(self, sound: Sequence[int]) -> None:
        """All others were damaged, and are gone."""
        known = frozenset(sound)
        self.offsets = tuple(offset for offset in self.offsets if offset in known)


class PendingSnapshot:
    """What is to be a snapshot: the producers' state as it was at an offset, frozen until the flush has written it."""

    __slots__ = (
        *("_disk", "_frozen", "_producers", "_superseded_path", "is_begun", "is_needed", "is_void"),
        *("is_written", "offset", "path", "replaced", "superseded"),
    )

    def __init__(
        self,
        snapshots: Snapshots,
        producers: ProducerStates,
        frozen: Mapping[int, KnownProducer],
        offset: int,
        superseded: int | None,
        *,
        is_needed: bool,
    ) -> None:
        self.offset = offset
        #: One that goes with this one.
        self.superseded = superseded
        self._superseded_path = None if superseded is None else snapshots.path(superseded)
        self.path = snapshots.path(offset)
        #: Whether a clean stop relies on it. Otherwise it is left out where the disk is full.
        self.is_needed = is_needed
        #: The log was cut meanwhile: the snapshot is of another past.
        self.is_void = False
        #: Whether there may be a file.
        self.is_begun = False
        self.is_written = False
        #: The one whose file has gone for it by now.
        self.replaced: int | None = None
        self._disk = snapshots.around.disk
        self._producers = producers
        self._frozen = frozen

    def write(self) -> None:
        """Blocks, so workers call it; raises OSError. In pieces, so that the loop gets the interpreter's lock often."""
        encoder = SnapshotEncoder(len(self._frozen))
        entries = entries_of(self._frozen)
        self.is_begun = True
        file = self._disk.open(self.path, create=True)
        try:
            file.truncate(0)
            # Zeros are no checksum: torn, it is as one that is missing.
            file.append([bytes(HEAD_SIZE)])
            while piece := encoder.entries(islice(entries, ENTRIES_AT_ONCE)):
                file.append([piece])
            file.write(encoder.head(), 0)
            file.sync()
        finally:
            file.close()
        self.is_written = True

    def supersede(self) -> None:
        """Blocks: once it is certain, what it stands for goes."""
        if self._superseded_path is not None and self.is_written:
            self.replaced = self.superseded
            with suppress(FileNotFoundError):
                self._disk.remove(self._superseded_path)

    def make_void(self) -> None:
        """The log was cut below its offset."""
        self.is_void = True

    def thaw(self) -> None:
        self._producers.thaw()


def replay(
    producers: ProducerStates, segments: Sequence[Segment], known: int, log_start: int, end: int, now_ms: int
) -> None:
    """Applies the batches up to `end` that are in the log, from their headers: all behind the snapshot at `known`, or
    all that there are where there was none (-1).

    Those below the log's start were deleted, and say all the same which transactions were open there, and what became
    of them: a crash may move the start back. But nobody misses them where they are damaged.
    """
    first = max(known, segments[0].base_offset)
    recall(producers, segments, first)
    for number, segment in enumerate(segments):
        following = segments[number + 1].base_offset if number + 1 < len(segments) else end
        start = max(first, segment.base_offset)
        if start >= min(following, end) or segment.size == 0:
            continue
        try:
            _apply(producers, segment, start, end, now_ms)
        except BadBatch:
            if start >= log_start:
                raise
            if log_start < min(following, end):
                _apply(producers, segment, log_start, end, now_ms)
    producers.commit()


def _apply(producers: ProducerStates, segment: Segment, start: int, end: int, now_ms: int) -> None:
    place = segment.locate(start)
    if place is None:
        return
    for position, header in walk(segment.file, place.position, segment.size):
        if header.base_offset >= end:
            break
        if header.producer_id >= 0:
            batch = segment.file.read(header.size, position) if header.is_control else b""
            apply_written(producers, header, batch, now_ms)
