"""Moving a replica between log directories while it is in use.

A copy grows in a `-future` folder of the target directory. The partition's owner drives it: it calls `copy_step` again
and again, and when nothing is left to copy, in the same turn of its loop, `LogDirectories.finish_move`. The original
serves until then.

The change-over is two renames in two directories, which no file system makes one. So a marker lies in the target
directory from before the first to after the second (`formats/move_marker.py`):

    copy flushed and closed | marker | copy takes the name | original becomes -delete | marker removed

Every step is durable before the next, and a start after a crash at any point finds either one folder with the
partition's name, or two and the marker.
"""

from __future__ import annotations

import os.path
from typing import TYPE_CHECKING

from ottla.model import TopicPartition
from ottla.ports.disk import Disk
from ottla.storage.directory import LogDirectory
from ottla.storage.formats import move_marker
from ottla.storage.formats.atomic_write import write_atomically
from ottla.storage.formats.errors import FormatError
from ottla.storage.formats.names import FolderKind, format_folder

if TYPE_CHECKING:
    from ottla.ports.entropy import Entropy
    from ottla.storage.log import Log


class FutureLog:
    """A replica that is being copied. Invariant: `log` is a prefix of `source`, from the same start on."""

    __slots__ = ("folder", "log", "partition", "source", "target")

    def __init__(self, partition: TopicPartition, source: Log, target: LogDirectory, folder: str, log: Log) -> None:
        self.partition = partition
        self.source = source
        self.target = target
        #: The `-future` folder's name.
        self.folder = folder
        self.log = log

    @property
    def target_path(self) -> str:
        return self.target.path

    @property
    def lag(self) -> int:
        """Offsets that are still to be copied."""
        return max(self.source.end_offset - self.log.end_offset, 0)

    def copy_step(self, max_bytes: int) -> int:
        """Copies about `max_bytes` (one batch at least) and returns how many; 0 when the copy is level.

        Raises what appending and reading raise; the move can then only be cancelled, or its directory fails.
        """
        source, copy = self.source, self.log
        if copy.end_offset < source.start_offset or copy.end_offset > source.end_offset:
            # Retention overtook the copy, or the source was cut back: what was copied is worth nothing.
            copy.truncate_fully_and_start_at(source.start_offset)
        copied = 0
        if copy.end_offset < source.end_offset:
            data = source.read(copy.end_offset, max_bytes, source.end_offset).read()
            copy.stage_replica(memoryview(data))
            copy.write_staged()
            copied = len(data)
        if source.start_offset > copy.start_offset:
            copy.advance_start(min(source.start_offset, copy.end_offset))
        return copied


def marker_path(directory: LogDirectory, partition: TopicPartition) -> str:
    return os.path.join(directory.path, move_marker.file_name(partition))


def write_marker(directory: LogDirectory, partition: TopicPartition, end_offset: int) -> None:
    write_atomically(directory.disk, marker_path(directory, partition), move_marker.encode(end_offset))


def read_marker(directory: LogDirectory, partition: TopicPartition) -> int | None:
    """The end offset at the change-over; None where the marker is damaged, and then decides nothing."""
    try:
        return move_marker.decode(directory.disk.read_file(marker_path(directory, partition)))
    except FormatError:
        return None


def remove_marker(disk: Disk, directory: LogDirectory, partition: TopicPartition) -> None:
    disk.remove(marker_path(directory, partition))
    disk.sync_directory(directory.path)


def change_over(move: FutureLog, origin: LogDirectory, entropy: Entropy) -> str:
    """The renames, with both logs closed and the copy flushed; returns the original's `-delete` folder."""
    partition = move.partition
    write_marker(move.target, partition, move.log.end_offset)
    move.target.rename(move.folder, format_folder(partition))
    removed = origin.rename_folder(partition, FolderKind.DELETE, entropy)
    remove_marker(move.target.disk, move.target, partition)
    return removed
