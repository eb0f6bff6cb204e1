"""Folders on their way out.

A partition is deleted by renaming its folder to `...-delete`, which is one step on disk; the files go later, in a
worker, and a start after a crash finds the folder by its name and removes it then. The name goes last, once no
checkpoint speaks of the partition any more: where the disk is too full to write that down, the files make room first.
"""

from __future__ import annotations

import os.path
from contextlib import suppress
from dataclasses import dataclass

from ottla.model import TopicPartition
from ottla.ports.disk import Disk


@dataclass(frozen=True, slots=True)
class FolderRemoval:
    """A folder that nothing refers to any more."""

    disk: Disk
    path: str
    #: The topic's name may have been cut to fit the folder's name.
    partition: TopicPartition

    @property
    def directory(self) -> str:
        """The log directory that it is in."""
        return os.path.dirname(self.path)

    def run(self) -> None:
        """Blocks, so workers call it. Done is done: a folder that is gone already is fine."""
        try:
            self.disk.remove_tree(self.path)
        except FileNotFoundError:
            if self.disk.exists(self.path):
                raise


@dataclass(frozen=True, slots=True)
class FolderEmptying:
    """The files of such a folder. Its name stays, and says at a start that the partition was given up."""

    removal: FolderRemoval

    def run(self) -> None:
        """Blocks; fine where the folder is gone."""
        with suppress(FileNotFoundError):
            self.removal.disk.remove_files(self.removal.path)
