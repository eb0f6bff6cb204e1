"""What a worker does to many partitions' folders of one log directory: a batch of names, and one sync for all of them.

A batch is made on the loop, its `run` blocks, and afterwards the loop reads from it how far it came. Nothing that the
loop owns is touched by `run`.
"""

from __future__ import annotations

import os.path
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from ottla.model import TopicPartition
from ottla.storage.directories.directory import LogDirectory
from ottla.storage.directories.errors import DirectoryError, InconsistentTopicId
from ottla.storage.directories.events import OnEvent
from ottla.storage.directories.placing import MadeLog, NewReplica, make_log
from ottla.storage.errors import passes

#: Folders in one batch: some hundred milliseconds of a worker, so that a sync more or less does not count, and what
#: waits for the workers does not wait long.
FOLDERS_A_BATCH: Final = 500


class FolderCreation:
    """Folders of new replicas. Their names are certain, or none of them is to be used."""

    __slots__ = ("_now_ms", "_on_event", "_prepare", "directory", "is_certain", "made", "refused", "replicas")

    def __init__(
        self, directory: LogDirectory, replicas: Sequence[NewReplica], *, now_ms: int, on_event: OnEvent
    ) -> None:
        self.directory = directory
        self.replicas = replicas
        #: The logs of the first replicas; of all of them where nothing failed, but for the refused.
        self.made: list[MadeLog] = []
        self.refused: dict[TopicPartition, DirectoryError] = {}
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
                try:
                    made = make_log(directory, folder, replica, now_ms=self._now_ms, on_event=self._on_event)
                except InconsistentTopicId as reason:
                    self.refused[replica.partition] = reason
                else:
                    self.made.append(made)
        finally:
            if self.made:
                directory.disk.sync_directory(directory.path)
                self.is_certain = True

    def take_back(self) -> None:
        """Removes what was made and is not to be used, as far as that goes: a start would find it."""
        for made in self.made:
            if made.is_folder_new:
                with suppress(OSError):
                    self.directory.disk.remove_tree(made.log.directory)


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
        """Raises OSError where one could not be renamed: those behind it were not tried. Where there was no room to
        make it certain, or no descriptor, all have the names again that they had: it can be asked for once more."""
        try:
            for name, new_name in self.names:
                self._rename(name, new_name)
                self._renamed += 1
        finally:
            if self._renamed:
                self._make_certain()

    def _make_certain(self) -> None:
        try:
            self.directory.disk.sync_directory(self.directory.path)
        except OSError as error:
            if passes(error):
                with suppress(OSError):
                    for name, new_name in reversed(self.names[: self._renamed]):
                        self._rename(new_name, name)
            raise
        self.is_certain = True

    def _rename(self, name: str, new_name: str) -> None:
        path = self.directory.path
        self.directory.disk.rename(os.path.join(path, name), os.path.join(path, new_name))

    @property
    def certain_count(self) -> int:
        """So many of the first ones have their new names for certain."""
        return self._renamed if self.is_certain else 0
