"""What a worker does to many partitions' folders of one log directory: a batch of names, and one sync for all of them.

A batch is made on the loop, its `run` blocks, and afterwards the loop reads from it how far it came. Nothing that the
loop owns is touched by `run`.
"""

from __future__ import annotations

import os.path
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from ottla.storage.directories.directory import LogDirectory
from ottla.storage.directories.events import LogWarnings, OnEvent
from ottla.storage.directories.placing import NewReplica, make_log
from ottla.storage.log.log import Log

#: Folders in one batch: some hundred milliseconds of a worker, so that a sync more or less does not count, and what
#: waits for the workers does not wait long.
FOLDERS_A_BATCH: Final = 500


class FolderCreation:
    """Folders of new replicas. Their names are certain, or none of them is to be used."""

    __slots__ = ("_now_ms", "_on_event", "_prepare", "directory", "is_certain", "made", "replicas")

    def __init__(
        self, directory: LogDirectory, replicas: Sequence[NewReplica], *, now_ms: int, on_event: OnEvent
    ) -> None:
        self.directory = directory
        self.replicas = replicas
        #: The logs of the first replicas; of all of them where nothing failed.
        self.made: list[tuple[Log, LogWarnings]] = []
        #: Whether a crash from now on leaves what was made.
        self.is_certain = False
        self._now_ms = now_ms
        self._on_event = on_event
        self._prepare = directory.checkpoints.prepare_forgetting([replica.partition for replica in replicas])

    def run(self) -> None:
        """Raises OSError or StorageFault where one could not be made: those behind it were not tried."""
        directory = self.directory
        self._prepare()
        try:
            for replica in self.replicas:
                folder = directory.folder(replica.partition)
                self.made.append(make_log(directory, folder, replica, now_ms=self._now_ms, on_event=self._on_event))
        finally:
            if self.made:
                directory.disk.sync_directory(directory.path)
                self.is_certain = True

    def take_back(self) -> None:
        """Removes what was made and is not to be used, as far as that goes: a start would find it."""
        for log, _ in self.made:
            with suppress(OSError):
                self.directory.disk.remove_tree(log.directory)


class FolderRenaming:
    """Folders of one directory that get other names."""

    __slots__ = ("_renamed", "directory", "is_certain", "names")

    def __init__(self, directory: LogDirectory, names: Sequence[tuple[str, str]]) -> None:
        self.directory = directory
        #: Each folder's name now, and the one it gets.
        self.names = names
        self.is_certain = False
        self._renamed = 0

    def run(self) -> None:
        """Raises OSError where one could not be renamed: those behind it were not tried."""
        disk, path = self.directory.disk, self.directory.path
        try:
            for name, new_name in self.names:
                disk.rename(os.path.join(path, name), os.path.join(path, new_name))
                self._renamed += 1
        finally:
            if self._renamed:
                disk.sync_directory(path)
                self.is_certain = True

    @property
    def certain_count(self) -> int:
        """So many of the first ones have their new names for certain."""
        return self._renamed if self.is_certain else 0
