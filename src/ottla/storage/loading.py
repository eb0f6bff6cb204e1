"""At start: which folders are there, which of them count, and opening their logs.

Each directory is listed once, and names alone decide what a folder is, so that after a clean stop a partition costs
nothing but its `Log.open`. What is damaged stays as it is and takes only its own partition offline.
"""

from __future__ import annotations

import os.path
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final, NamedTuple, TypeVar

from ottla.config.log import LogConfig
from ottla.model import TopicPartition
from ottla.storage.directory import LogDirectory
from ottla.storage.directory_events import DirectoryEvent, OnEvent, Severity
from ottla.storage.errors import CorruptLog, StorageFault
from ottla.storage.formats import move_marker
from ottla.storage.formats.errors import FormatError
from ottla.storage.formats.names import Folder, FolderKind, parse_folder
from ottla.storage.log import Log
from ottla.storage.removal import Removal

T = TypeVar("T")
#: Runs all jobs, in any order or at once, and returns their results in the order given.
Run = Callable[[Sequence[Callable[[], "Opened"]]], "list[Opened]"]
#: A topic's settings, or None where the topic is not known.
ConfigFor = Callable[[str], LogConfig | None]

#: Folders of the internal logs of Kafka's KRaft mode, and its cache: not ours, and no reason to worry.
_FOREIGN: Final = frozenset({"__cluster_metadata-0", "remote-log-index-cache", "lost+found"})
_NAMED_MAX: Final = 10


def run_in_turn(jobs: Sequence[Callable[[], Opened]]) -> list[Opened]:
    return [job() for job in jobs]


class Opened(NamedTuple):
    """What became of one folder; exactly one of log, damage and fault is set."""

    log: Log | None
    #: The partition's own trouble.
    damage: str | None
    #: The device's trouble.
    fault: str | None
    warnings: list[str]


@dataclass(slots=True)
class Found:
    """What a directory's listing shows."""

    directory: LogDirectory
    current: list[TopicPartition] = field(default_factory=list)
    #: Folder names of copies, by their partition.
    futures: list[tuple[TopicPartition, str]] = field(default_factory=list)
    removals: list[Removal] = field(default_factory=list)
    strays: list[str] = field(default_factory=list)
    markers: list[TopicPartition] = field(default_factory=list)


def survey(directory: LogDirectory, on_event: OnEvent) -> Found:
    """Sorts the names of one directory; OSError where it cannot be listed."""
    found = Found(directory)
    for name in directory.disk.names(directory.path):
        if "-" not in name or name in _FOREIGN:
            continue
        marked = move_marker.parse_name(name)
        if marked is not None:
            found.markers.append(marked)
            continue
        try:
            _sort_in(found, name, parse_folder(name))
        except FormatError as error:
            if directory.disk.is_directory(os.path.join(directory.path, name)):
                directory.warn(on_event, f"{error}; it is left alone")
    if found.strays:
        directory.warn(on_event, f"{_some(found.strays)}: set aside earlier, and left in place")
    return found


def _sort_in(found: Found, name: str, folder: Folder) -> None:
    if folder.kind is FolderKind.CURRENT:
        found.current.append(folder.partition)
    elif folder.kind is FolderKind.FUTURE:
        found.futures.append((folder.partition, name))
    elif folder.kind is FolderKind.DELETE:
        directory = found.directory
        found.removals.append(Removal(directory.disk, os.path.join(directory.path, name), folder.partition))
    else:
        found.strays.append(name)


def _some(names: Sequence[str]) -> str:
    shown = ", ".join(names[:_NAMED_MAX])
    return shown if len(names) <= _NAMED_MAX else f"{shown} and {len(names) - _NAMED_MAX} more"


def open_folder(
    directory: LogDirectory, folder: str, partition: TopicPartition, config: LogConfig, now_ms: int
) -> Opened:
    """Opens one log, repairing what a crash left. It touches nothing but that folder, so a thread may do it."""
    warnings: list[str] = []
    checkpoints = directory.checkpoints
    try:
        log = Log.open(
            directory.disk,
            folder,
            partition,
            config,
            now_ms=now_ms,
            clean=directory.was_clean and not checkpoints.damaged,
            recovery_point=checkpoints.offset("recovery-point-offset-checkpoint", partition),
            start_offset=checkpoints.offset("log-start-offset-checkpoint", partition),
            on_warning=warnings.append,
        )
    except CorruptLog as error:
        return Opened(None, str(error), None, warnings)
    except NotADirectoryError:
        return Opened(None, f"{folder} is a file and not a folder", None, warnings)
    except (StorageFault, OSError) as error:
        return Opened(None, None, str(error), warnings)
    return Opened(log, None, None, warnings)
