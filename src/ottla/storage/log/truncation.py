"""Cutting a log back: at its end, to what the leader has, and at its start, to what shall still be read.

After a cut the recovery point may be lower than its checkpoint says. The owner lowers the checkpoint before the cut
(`LogDirectories.lowering`), or a start would miss what was cut, or take new, unsynced records for old, damaged ones.

    a worker finds the place ──▶ the checkpoint is lowered ──▶ the log ends there ──▶ a worker cuts the files

The steps that wait for the disk are a worker's. Nothing is appended between the first and the last of them, no segment
is made, and no flush is begun.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from ottla.ports import File
from ottla.steps import DiskSteps
from ottla.storage.errors import DamagedIndex, OffsetOutsideLog, RollDue
from ottla.storage.log.file_changes import done, following
from ottla.storage.log.indexes.indexed_file import CutTail
from ottla.storage.log.producers.producer_state import ProducerStates
from ottla.storage.log.producers.snapshots import Snapshots, replay
from ottla.storage.log.segment import Segment

if TYPE_CHECKING:
    from ottla.storage.log.log import Log

#: Has the checkpoint say no more than this offset, durably.
Lowering = Callable[[int], DiskSteps[None]]


def _not_lowered(_: int) -> DiskSteps[None]:
    yield from ()


NOT_LOWERED: Final[Lowering] = _not_lowered


def _nothing() -> None:
    """Nobody has offsets of the log."""


def cutting_to(
    log: Log, offset: int, lowering: Lowering = NOT_LOWERED, ends: Callable[[], None] = _nothing
) -> DiskSteps[None]:
    """Drops every batch that ends at or above `offset`. Nothing happens where the log ends below it.

    `ends` is called in the turn in which the log ends there, before its files do.
    """
    log.discard_staged()
    yield from following(log)
    if offset >= log.end_offset:
        return
    _wait_for_workers(log)
    if offset < log.start_offset:
        yield from beginning_anew_at(log, offset, lowering, ends)
        return
    log.durability.hold()
    try:
        yield from log.settling_swap()
        last = [each for each in log.segments if each.base_offset <= offset][-1]
        place = CutPlace(last, offset, log.start_offset)
        yield from done(log, place.run)
        if log.is_abandoned:
            return
        log.durability.lower(place.end_offset)
        yield from lowering(place.end_offset)
        if not log.is_abandoned:
            start_offset = log.start_offset
            log.begin_change(_cut(log, place))
            ends()
            yield from _lowering_start(log, start_offset, lowering)
            yield from following(log)
    finally:
        if not log.unfinished:
            log.durability.let_go()


def beginning_anew_at(
    log: Log, offset: int, lowering: Lowering = NOT_LOWERED, ends: Callable[[], None] = _nothing
) -> DiskSteps[None]:
    """Drops everything; the log is empty and begins at `offset`."""
    log.discard_staged()
    yield from following(log)
    _wait_for_workers(log)
    log.durability.hold()
    try:
        yield from log.settling_swap()
        log.durability.lower(min(offset, log.start_offset))
        # A crash in the middle leaves an empty folder, or one with some of the segments.
        yield from lowering(0)
        if not log.is_abandoned:
            start_offset = log.start_offset
            log.begin_change(_begin_anew(log, offset))
            ends()
            yield from _lowering_start(log, start_offset, lowering)
            yield from following(log)
    finally:
        if not log.unfinished:
            log.durability.let_go()


def _lowering_start(log: Log, former: int, lowering: Lowering) -> DiskSteps[None]:
    """Before anything is appended: a checkpoint that was looked at between the first lowering and the cut says what the
    log's start was, and above its end a start of the broker throws all of it away."""
    if log.start_offset < former:
        try:
            yield from lowering(log.start_offset)
        finally:
            log.changes_stopped()


def _wait_for_workers(log: Log) -> None:
    """Raises RollDue while a worker makes files that a cut would take away or shorten."""
    if log.is_rolling or log.durability.writes_indexes:
        raise RollDue(log.tp, log.directory)


class CutPlace:
    """Where a log is cut: a cut inside a batch takes the whole batch, and one within a hole that compaction has left
    takes the hole. A start finds the log's end by its last batch, and would miss what was never there."""

    __slots__ = ("_offset", "_start_offset", "_twin", "end_offset", "position", "segment", "tail")

    def __init__(self, segment: Segment, offset: int, start_offset: int) -> None:
        #: The one that will be the last.
        self.segment = segment
        #: Where in it; None where nothing of it goes.
        self.position: int | None = None
        #: Behind the last batch that stays; the log's start, where all that stays lies below that.
        self.end_offset = offset
        #: The batches behind the last index entry that stays.
        self.tail: CutTail | None = None
        self._offset = offset
        self._start_offset = start_offset
        self._twin = segment.twin()

    def run(self) -> None:
        """Blocks; raises OSError, BadBatch."""
        twin = self._twin
        try:
            place = twin.locate(self._offset) if twin.size else None
            if place is not None:
                self.position = place.position
                self.tail = twin.tail_before(place.position, min(self._offset, place.base_offset))
                next_offset = self.tail.next_offset
            else:
                next_offset = twin.tail_before(twin.size, self._offset).next_offset
            self.end_offset = max(next_offset, self._start_offset)
        finally:
            twin.close()

    def take(self) -> None:
        """On the loop: the segment has what was read for it, and ends here."""
        self.segment.adopt(self._twin)
        if self.position is not None:
            assert self.tail is not None
            self.segment.end_before(self.position, self.end_offset, self.tail)


def _cut(log: Log, place: CutPlace) -> FileCut:
    """The log ends there from now on; the files follow."""
    places, active = log.places, place.segment
    keep = [segment for segment in places.segments if segment.base_offset <= active.base_offset]
    gone = places.segments[len(keep) :]
    places.replace(keep)
    log.durability.forget([*gone, active])
    for segment in gone:
        segment.leave()
    if active.sealed:
        active.unseal()
    place.take()
    places.cut_at(place.end_offset)
    cut = FileCut(log, gone, active, place.position)
    cut.snapshots_gone = log.follow_cut()
    return cut


def _begin_anew(log: Log, offset: int) -> FileCut:
    places = log.places
    gone = list(places.segments)
    log.durability.forget(gone)
    for segment in gone:
        segment.leave()
    active = Segment(places.around, offset, 0, sealed=False)
    places.begin_anew_at(active)
    cut = FileCut(log, gone, active, 0, is_new=True)
    cut.snapshots_gone = log.follow_cut(keeps_snapshots=False)
    log.epochs.clear()
    return cut


class FileCut:
    """The files of a log that ends earlier, or begins anew."""

    holds_back: Final = True

    def __init__(
        self, log: Log, gone: Sequence[Segment], active: Segment, position: int | None, *, is_new: bool = False
    ) -> None:
        places = log.places
        self._log = log
        self._disk = places.around.disk
        self._directory = places.directory
        self._gone = [path for segment in gone for path in segment.paths()]
        self._active = active
        #: None where the last segment that stays is whole.
        self._position = position
        self._is_new = is_new
        self._end_offset = places.end_offset
        self._start_offset = places.start_offset
        self._sizes = active.index_sizes()
        self._segments = list(places.segments)
        #: Files of snapshots that go.
        self.snapshots_gone: list[str] = []
        self._producers: ProducerStates | None = None
        self._snapshots: Snapshots | None = None
        #: Knows how long the file is, so that it takes the place of a handle that has written more.
        self._opened: File | None = None
        self._twin = active.twin()

    def run(self) -> None:
        disk = self._disk
        for path in self._gone:
            with suppress(FileNotFoundError):
                disk.remove(path)
        for path in self.snapshots_gone:
            with suppress(FileNotFoundError):
                disk.remove(path)
        if self._is_new:
            self._open(create=True).truncate(0)
        if self._gone or self._is_new:
            # None may come back once other records have taken its offsets.
            disk.sync_directory(self._directory)
        if self._position is not None and not self._is_new:
            self._cut_active(self._position)
        self._read_producers()

    def _open(self, *, create: bool = False) -> File:
        if self._opened is None:
            self._opened = self._disk.open(self._active.path(), create=create)
        return self._opened

    def _cut_active(self, position: int) -> None:
        file = self._open()
        file.truncate(position)
        # As above: only its size says so, and a power cut may forget that, behind other records as well.
        file.sync()
        for path, size in self._sizes:
            if self._disk.exists(path) and self._disk.size(path) > size:
                self._twin.write_at(path, b"", size)
        self._twin.find_aborted()
        with suppress(DamagedIndex, FileNotFoundError):  # the next look makes it anew, from the log as it is then
            if self._twin.cut_aborted(self._end_offset):
                # Where the log then rolls no start looks for what a power cut has brought back.
                self._twin.sync_aborted()

    def _read_producers(self) -> None:
        """Their state goes back to where it was."""
        memory = self._log.producer_memory
        twins = [each.twin() for each in self._segments]
        try:
            states = ProducerStates(self._log.tp)
            snapshots = Snapshots(memory.snapshots.around, memory.snapshots.offsets)
            known = snapshots.restore(states, self._end_offset, memory.opened_ms)
            replay(states, twins, known, self._start_offset, self._end_offset, memory.opened_ms)
        finally:
            for twin in twins:
                twin.close()
        self._producers, self._snapshots = states, snapshots

    def finish(self) -> None:
        assert self._producers is not None
        assert self._snapshots is not None
        if self._opened is not None:
            self._active.goes_on_with(self._opened)
        self._active.aborted_were_cut(self._twin)
        self._log.producer_memory.return_to(self._producers, self._snapshots.offsets)

    def drop(self) -> None:
        if self._opened is not None:
            self._opened.close()


def advance_start(log: Log, offset: int, high_watermark: int) -> None:
    """Nothing below `offset` is read any more. OffsetOutOfRange above the high watermark."""
    if offset > high_watermark or offset > log.end_offset:
        raise OffsetOutsideLog(offset, log.start_offset, min(high_watermark, log.end_offset))
    log.start_moved(offset)
