"""Folders on their way out.

A partition is deleted by renaming its folder to `...-delete`, which is one step on disk; the files go later, in a
worker, and a start after a crash finds the folder by its name and removes it then.
"""

from __future__ import annotations

import os.path
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
