"""A cleaned segment takes the place of those that it was made from.

    .cleaned on the medium | names it .swap | sync | old ones become .deleted, it is read from now on | sync | last name

A start after a crash removes `.cleaned`, and completes `.swap` once an old segment lost its name: it removes the old
ones in the cleaned one's range and gives it their first one's name. So `.swap` must be certain before an old one goes,
or both could be lost; and the old ones must be gone for certain before `.swap` goes, or nothing would show that one
which came back is old. The loop changes what is in memory; names and syncs are a worker's. What it is doing stands in
`log.swap` from the first rename on.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from enum import Enum, auto
from functools import partial
from typing import TYPE_CHECKING

from ottla.ports import Disk
from ottla.steps import DiskSteps
from ottla.storage.cleaner.faults import PassInterrupted
from ottla.storage.cleaner.job import CleanedSegment
from ottla.storage.formats.names import CLEANED, LOG, SWAP, format_segment_file
from ottla.storage.log.retention import Removal, SettingAside, removals_of
from ottla.storage.log.segment import INDEX_KINDS, Segment

if TYPE_CHECKING:
    from ottla.storage.log.log import Log


class Stage(Enum):
    #: The files end in `.cleaned`.
    WRITTEN = auto()
    #: They end in `.swap`, and the old segments serve.
    NAMED = auto()
    #: They end in `.swap`, and serve.
    INSTALLED = auto()
    #: They have their names, or are gone, or are left to the next start.
    OVER = auto()


class Swap:
    """While it is under way it stands in `log.swap`: code that cuts or closes the log calls `settle` first."""

    __slots__ = ("_log", "_new", "_old", "generation", "stage")

    def __init__(self, log: Log, old: Sequence[Segment], cleaned: CleanedSegment, generation: int) -> None:
        """`generation`: the log's when the old segments were as they were read."""
        self._log = log
        self._old = list(old)
        self.generation = generation
        self._new = Segment(
            log.places.around,
            cleaned.base_offset,
            cleaned.size,
            sealed=True,
            aborted_on_disk=cleaned.has_aborted,
            suffix=CLEANED,
        )
        self.stage = Stage.WRITTEN

    def naming(self) -> DiskSteps[None]:
        """Raises Interrupted where the log is not what was cleaned any more. Then `sync` is due."""
        self._check()
        assert self._log.swap is None, "one at a time"
        self._log.begin_swap(self)
        yield from self._renaming(SWAP)
        self.stage = Stage.NAMED

    def sync(self) -> None:
        """Blocks. Raises Interrupted where the folder has another name meanwhile."""
        try:
            self._log.places.around.disk.sync_directory(self._log.directory)
        except FileNotFoundError:
            raise PassInterrupted(f"{self._log.directory} is gone") from None

    def installing(self, now_ms: int) -> DiskSteps[list[Removal]]:
        """From now on the cleaned segment is read. Then `sync` is due, and the removals some time after it.

        Raises OSError where an old segment's name cannot be changed; then some have lost theirs, and `.swap` holds what
        was in them: it stays, for a start to complete.
        """
        if self.stage is not Stage.NAMED:
            raise PassInterrupted("the log was cut while a cleaned segment was about to take its place")
        self._check()
        log, old = self._log, self._old
        number = log.segments.index(old[0])
        log.places.replace([*log.segments[:number], self._new, *log.segments[number + len(old) :]])
        log.durability.segments_changed(old)
        self.stage = Stage.INSTALLED
        try:
            yield SettingAside(log, old, ()).run
        except OSError:
            self._over()
            raise
        return removals_of(old, now_ms + log.config.file_delete_delay_ms)

    def finishing(self) -> DiskSteps[None]:
        """Gives it the name that stays. Producers' snapshots of segments that are no more go with them."""
        if self.stage is not Stage.INSTALLED:
            return
        log = self._log
        yield from self._renaming("")
        log.durability.note_names()
        gone = {segment.base_offset for segment in self._old[1:]}
        paths = log.snapshots.forget([offset for offset in log.snapshots.offsets if offset in gone])
        self._over()
        if paths:
            yield partial(_remove, log.places.around.disk, paths)

    def settling(self) -> DiskSteps[None]:
        """Completes what serves already, and takes back what does not."""
        if self.stage is Stage.INSTALLED:
            yield self.sync
            yield from self.finishing()
        elif self.stage is not Stage.OVER:
            yield from self.dropping()

    def dropping(self) -> DiskSteps[None]:
        """Removes what was written, and does not serve."""
        assert self.stage is not Stage.INSTALLED
        if self.stage is Stage.OVER:
            return
        self._over()
        # The log may now change: a `.swap` that comes back would be completed.
        self._log.durability.note_names()  # so that a flush does it where this cannot
        yield partial(self._remove, self._log.places.around.disk)

    def _remove(self, disk: Disk) -> None:
        _remove(disk, [path for suffix in (SWAP, CLEANED) for path in self._new.paths(suffix)])
        with suppress(FileNotFoundError):
            disk.sync_directory(self._log.directory)

    def _over(self) -> None:
        self.stage = Stage.OVER
        self._log.end_swap(self)

    def _renaming(self, suffix: str) -> DiskSteps[None]:
        """A reader that opens one of its files meanwhile looks under both names."""
        new, directory = self._new, self._log.directory
        names = [
            (new.path(kind), f"{directory}/{format_segment_file(new.base_offset, kind, suffix)}")
            for kind in (*INDEX_KINDS, LOG)
        ]
        new.is_renamed_to(suffix)
        yield partial(_rename, self._log.places.around.disk, names)
        new.named(suffix)

    def _check(self) -> None:
        """The segments are those that were read, one after the other, and the log was not cut since."""
        segments, old = self._log.segments, self._old
        if self._log.durability.generation == self.generation and old[0] in segments:
            number = segments.index(old[0])
            if segments[number : number + len(old)] == old:
                return
        raise PassInterrupted("segments have gone or changed while they were cleaned")


def _rename(disk: Disk, names: Sequence[tuple[str, str]]) -> None:
    for name, new_name in names:
        with suppress(FileNotFoundError):
            disk.rename(name, new_name)


def _remove(disk: Disk, paths: Sequence[str]) -> None:
    for path in paths:
        with suppress(FileNotFoundError):
            disk.remove(path)
