"""Bringing a log to the medium, beside the loop.

The loop prepares a flush (`durability.py`): it names the files and the offset up to which they hold the log. A worker
runs it. Back on the loop, `Log.flushed` moves the recovery point. A flush that failed stays failed: after an error the
kernel may drop what it could not write and report success the next time, so the directory has to go offline.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from ottla.ports import Disk, File
from ottla.ports.whole_files import sync_file
from ottla.storage.errors import StorageFault, has_no_descriptor, passes
from ottla.storage.formats import epoch_checkpoint
from ottla.storage.formats.names import INDEX, TIME_INDEX, TXN_INDEX
from ottla.storage.log.segment import Segment

if TYPE_CHECKING:
    from ottla.storage.log.indexes.index_writes import BesideWrite
    from ottla.storage.log.producers.snapshots import PendingSnapshot

#: An active segment's index is brought to disk after so many entries, 2 MB of log at least: what a start after a crash
#: then has to look through again. Earlier would cost two more fsyncs for each flush.
UNWRITTEN_ENTRIES_MAX: Final = 512
#: Aborted transactions of an active segment that ask for a flush which writes them: 200 KB of memory.
UNWRITTEN_ABORTED_MAX: Final = 1024


def index_paths(segment: Segment) -> list[str]:
    return [segment.path(kind) for kind in (INDEX, TIME_INDEX, TXN_INDEX)]


class Flush:
    __slots__ = (
        "_directory",
        "_disk",
        "_epochs",
        "_files",
        "_must_write",
        "done",
        "failed",
        "generation",
        "is_given_up",
        "offset",
        "paths",
        "records_are_certain",
        "sizes",
        "snapshot",
        "writes",
        "writes_done",
    )

    def __init__(
        self,
        disk: Disk,
        offset: int,
        generation: int,
        files: Sequence[File],
        sizes: Sequence[tuple[int, int]],
        paths: Sequence[str],
        epochs: tuple[str, list[tuple[int, int]]] | None,
        directory: str | None,
        snapshot: PendingSnapshot | None = None,
        writes: Sequence[BesideWrite] = (),
        *,
        must_write: bool = False,
    ) -> None:
        #: Everything below is on the medium once this is done.
        self.offset = offset
        #: Of the log when this was prepared: cutting the log back makes the flush worthless.
        self.generation = generation
        #: (base offset, size) of the segments that are synced.
        self.sizes = tuple(sizes)
        self.done = False
        self.failed = False
        #: The log was closed meanwhile without waiting for this.
        self.is_given_up = False
        #: Whether only the files beside the log were refused.
        self.records_are_certain = False
        #: Whether the index files hold what was to be written.
        self.writes_done = False
        self._disk = disk
        #: Log files, held open by a lease each.
        self._files = tuple(files)
        #: Small files, by path, as they are opened for this only.
        self.paths = tuple(paths)
        self._epochs = epochs
        #: That of the last roll before, which it writes.
        self.snapshot = snapshot
        #: What brings index files up to date. Nobody else writes to these until the flush has ended.
        self.writes = tuple(writes)
        #: Whether it fails where there is no room for them: a clean stop relies on them.
        self._must_write = must_write
        #: The partition's folder, where names in it have changed.
        self._directory = directory
        for file in self._files:
            file.lease()

    def run(self) -> None:
        """Blocks. Raises OSError when anything is not on the medium for certain.

        Raises StorageFault where there is no room for a file beside the log, or no descriptor: nothing is lost, and
        another flush may do it all again (`Durability.refused`).
        """
        assert not self.done, "a flush runs once"
        assert not self.failed, "a failed flush is never tried again"
        try:
            for file in self._files:
                file.sync()
            self._sync_beside()
        except OSError:
            self.failed = True
            raise
        finally:
            self.release()
        self.done = True

    def give_up(self) -> None:
        """The log is closed without waiting for this."""
        self.is_given_up = True

    def leave_indexes(self) -> None:
        """Something else has brought the index files up to date before it ran."""
        self.writes = ()

    def release(self) -> None:
        """Lets go of the files: it has run, or never will."""
        files, self._files = self._files, ()
        for file in files:
            file.release()

    def _sync_beside(self) -> None:
        try:
            self._write_indexes()
            for path in self.paths:
                sync_file(self._disk, path)  # retention or another roll may have taken it away meanwhile
            if self.snapshot is not None and not self.is_given_up:
                self._write_snapshot(self.snapshot)
            if self._epochs is not None:
                # This syncs the folder as well.
                self._write_epochs(*self._epochs)
            elif self._directory is not None:
                self._disk.sync_directory(self._directory)
            if self.snapshot is not None:
                self.snapshot.supersede()
        except OSError as error:
            if has_no_descriptor(error):  # so that it was not even tried
                raise StorageFault.of(error.filename or "", error) from error
            raise

    def _write_indexes(self) -> None:
        if self.is_given_up:
            return
        try:
            for write in self.writes:
                write.run()
        except OSError as error:
            if not passes(error):
                raise
            if self._must_write or has_no_descriptor(error):
                raise StorageFault.of(error.filename or "", error) from error
            # The disk is full. Records matter more, and a later flush tries the index again.
            return
        self.writes_done = True

    def _write_epochs(self, path: str, entries: list[tuple[int, int]]) -> None:
        if self.is_given_up:
            # Another partition's folder may have this name by now.
            return
        try:
            epoch_checkpoint.write(self._disk, path, entries)
        except OSError as error:
            fault = StorageFault.of(path, error)
            if fault.directory_failed:
                raise
            if self._directory is not None:
                self._disk.sync_directory(self._directory)
            self.records_are_certain = True
            raise fault from error

    def _write_snapshot(self, snapshot: PendingSnapshot) -> None:
        try:
            snapshot.write()
        except OSError as error:
            fault = StorageFault.of(snapshot.path, error)
            if fault.directory_failed:
                raise
            if snapshot.is_needed:
                raise fault from error
            # Records matter more, and the next roll takes another. `settle` removes what was written of this one.
