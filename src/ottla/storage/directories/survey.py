"""What lies in a log directory, by its names alone: one listing a directory and no look at any file.

A name that reads as a partition's folder is taken for one. Everything else is left alone.
"""

from __future__ import annotations

import os.path
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from ottla.model import TopicPartition
from ottla.ports.whole_files import TEMPORARY_SUFFIX
from ottla.storage.directories.directory import LogDirectory
from ottla.storage.directories.events import OnEvent
from ottla.storage.directories.removal import FolderRemoval
from ottla.storage.formats import move_marker
from ottla.storage.formats.errors import FormatError
from ottla.storage.formats.names import FolderKind, FolderName, parse_folder

#: Folders of the internal log of Kafka's KRaft mode, of its tiered storage, and of file systems: nothing to warn about.
_FOREIGN: Final = frozenset({"__cluster_metadata-0", "remote-log-index-cache", "lost+found"})
_NAMED_MAX: Final = 10


@dataclass(slots=True)
class DirectorySurvey:
    """What a directory's listing shows."""

    directory: LogDirectory
    current: list[TopicPartition] = field(default_factory=list)
    #: Folder names of copies, by their partition.
    futures: list[tuple[TopicPartition, str]] = field(default_factory=list)
    removals: list[FolderRemoval] = field(default_factory=list)
    strays: list[str] = field(default_factory=list)
    #: Partitions whose folder was given up here, and has another name now.
    given_up: set[TopicPartition] = field(default_factory=set)
    markers: list[TopicPartition] = field(default_factory=list)
    #: Markers that were never finished, by name.
    half_markers: list[str] = field(default_factory=list)


def survey(directory: LogDirectory, on_event: OnEvent) -> DirectorySurvey:
    """Sorts the names of one directory; OSError where it cannot be listed."""
    found = DirectorySurvey(directory)
    for name in directory.disk.names(directory.path):
        if "-" not in name or name in _FOREIGN:  # checkpoints have dashes too, and are told apart below
            continue
        marked = move_marker.parse_name(name)
        if marked is not None:
            found.markers.append(marked)
            continue
        if name.endswith(move_marker.SUFFIX + TEMPORARY_SUFFIX):
            found.half_markers.append(name)
            continue
        try:
            folder = parse_folder(name)
        except FormatError as error:
            if directory.disk.is_directory(os.path.join(directory.path, name)):
                directory.warn(on_event, f"{error}; it is left alone")
            continue
        if folder.kind is not FolderKind.CURRENT and not directory.disk.is_directory(
            os.path.join(directory.path, name)
        ):
            directory.warn(on_event, f"{name[:80]!r} is not a folder; it is left alone")
            continue
        _sort_in(found, name, folder)
    if found.strays:
        directory.warn(on_event, f"{some_names(found.strays)}: set aside earlier, and left in place")
    return found


def _sort_in(found: DirectorySurvey, name: str, folder: FolderName) -> None:
    if folder.kind is FolderKind.CURRENT:
        found.current.append(folder.partition)
    elif folder.kind is FolderKind.FUTURE:
        found.futures.append((folder.partition, name))
    elif folder.kind is FolderKind.DELETE:
        directory = found.directory
        found.given_up.add(folder.partition)
        found.removals.append(FolderRemoval(directory.disk, os.path.join(directory.path, name), folder.partition))
    else:
        found.given_up.add(folder.partition)
        found.strays.append(name)


def some_names(names: Sequence[str]) -> str:
    shown = ", ".join(names[:_NAMED_MAX])
    return shown if len(names) <= _NAMED_MAX else f"{shown} and {len(names) - _NAMED_MAX} more"
