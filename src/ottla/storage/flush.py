"""Bringing a log to the medium, beside the loop.

The loop prepares a flush: it names the files and the offset up to which they hold the log. A worker runs it. Back on the
loop, `Log.flushed` moves the recovery point. A flush that failed stays failed: after an error the kernel may drop what it
could not write and report success the next time, so the directory has to go offline.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from ottla.ports import Disk, File
from ottla.storage.formats import epoch_checkpoint


class Flush:
    __slots__ = ("_directory", "_disk", "_epochs", "_files", "_paths", "done", "failed", "generation", "offset", "sizes")

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
    ) -> None:
        #: Everything below is on the medium once this is done.
        self.offset = offset
        #: Of the log when this was prepared: cutting the log back makes the flush worthless.
        self.generation = generation
        #: (base offset, size) of the segments that are synced.
        self.sizes = tuple(sizes)
        self.done = False
        self.failed = False
        self._disk = disk
        #: Log files, held open by a lease each.
        self._files = tuple(files)
        #: Small files, by path, as they are opened for this only.
        self._paths = tuple(paths)
        self._epochs = epochs
        #: The partition's folder, where names in it have changed.
        self._directory = directory
        for file in self._files:
            file.lease()

    def run(self) -> None:
        """Blocks. Raises OSError when anything is not on the medium for certain."""
        assert not (self.done or self.failed), "a flush runs once"
        try:
            for file in self._files:
                file.sync()
            for path in self._paths:
                self._sync_path(path)
            if self._epochs is not None:
                epoch_checkpoint.write(self._disk, *self._epochs)
            if self._directory is not None:
                self._disk.sync_directory(self._directory)
        except OSError:
            self.failed = True
            raise
        finally:
            for file in self._files:
                file.release()
        self.done = True

    def _sync_path(self, path: str) -> None:
        # Retention or another roll may have taken it away meanwhile.
        with suppress(FileNotFoundError):
            file = self._disk.open_read_only(path)
            try:
                file.sync()
            finally:
                file.close()
