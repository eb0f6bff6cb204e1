"""Opening one partition's folder at start, and what may become of it.

A folder is told from one of an earlier topic with the same name before anything in it is repaired.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from ottla.config.log import LogConfig
from ottla.model import ZERO_TOPIC_ID, TopicId, TopicPartition
from ottla.ports.disk import Disk
from ottla.storage.directories.directory import LogDirectory
from ottla.storage.directories.events import LogWarnings, OnEvent
from ottla.storage.errors import CorruptLog, FaultKind, LostRecords, StorageFault
from ottla.storage.formats import partition_metadata
from ottla.storage.formats.errors import FormatError
from ottla.storage.formats.offset_checkpoint import CLEANER_OFFSETS, LOG_STARTS, RECOVERY_POINTS
from ottla.storage.log.log import Log
from ottla.storage.log.opening.open_log import open_log


class OpenedFolder(NamedTuple):
    """What became of one folder: a log, or why there is none."""

    log: Log | None
    #: The partition's own trouble.
    damage: str
    #: The device's trouble.
    fault: str
    warnings: LogWarnings
    #: Whether the folder is of an earlier topic with this name, which is no trouble. It was not touched.
    is_stray: bool = False
    #: Whether somebody put an empty folder in the place of one with records, and so gave these up.
    is_emptied: bool = False
    #: Whether all it lacks is room on the disk: it can be tried again.
    is_roomless: bool = False
    #: Whether its records are not what they were, so that only another replica has them.
    is_damaged: bool = False


#: Opens one folder. It touches nothing but that folder, so threads may do several at once.
Job = Callable[[], OpenedFolder]
#: Runs all jobs, in any order or at once, and returns their results in the order given.
Run = Callable[[Sequence[Job]], list[OpenedFolder]]
#: A topic's settings, or None where the topic is not known.
ConfigFor = Callable[[str], LogConfig | None]
#: A topic's id, or None where it is not known.
TopicIdFor = Callable[[str], bytes | None]
#: Whether this broker is to have a replica of the partition.
HoldsReplica = Callable[[TopicPartition], bool]


class KnownTopics(NamedTuple):
    """What a broker knows of the cluster's topics when it opens its directories."""

    config_for: ConfigFor
    topic_id_for: TopicIdFor
    holds: HoldsReplica


def no_topic_id(_topic: str) -> None:
    """For a broker that does not know topics' ids when it starts."""


def holds_any(_partition: TopicPartition) -> bool:
    """For a broker that does not know then which replicas it is to have."""
    return True


def run_in_turn(jobs: Sequence[Job]) -> list[OpenedFolder]:
    """One after the other, which is the fastest too: threads add a fifth, as checking is bound by the processor."""
    return [job() for job in jobs]


def open_folder(
    directory: LogDirectory,
    folder: str,
    partition: TopicPartition,
    *,
    config: LogConfig,
    topic_id: bytes | None,
    now_ms: int,
    on_event: OnEvent,
) -> OpenedFolder:
    """Opens one log, repairing what a crash left."""
    warnings = LogWarnings(directory.path, partition, on_event)
    checkpoints = directory.checkpoints
    try:
        stored = _topic_id(directory.disk, folder, warnings)
        if topic_id is not None and stored not in {ZERO_TOPIC_ID, topic_id}:
            return OpenedFolder(None, f"{folder} is of an earlier topic with this name", "", warnings, is_stray=True)
        log = open_log(
            directory.disk,
            folder,
            partition,
            config,
            now_ms=now_ms,
            clean=directory.is_trusted,
            recovery_point=checkpoints.offset(RECOVERY_POINTS, partition),
            start_offset=checkpoints.offset(LOG_STARTS, partition),
            cleaned_to=checkpoints.offset(CLEANER_OFFSETS, partition, -1),
            on_warning=warnings,
            files=directory.open_files,
        )
    except LostRecords as error:
        # No fault leaves a folder without even the topic's id.
        is_emptied = not directory.disk.names(folder)
        return OpenedFolder(None, str(error), "", warnings, is_emptied=is_emptied, is_damaged=not is_emptied)
    except CorruptLog as error:
        return OpenedFolder(None, str(error), "", warnings, is_damaged=True)
    except (OSError, StorageFault) as error:
        fault = error if isinstance(error, StorageFault) else StorageFault.of(folder, error)
        if not directory.disk.is_directory(folder):
            return OpenedFolder(None, f"{folder} is not a folder: move it away", "", warnings)
        if fault.kind is FaultKind.LOG_DAMAGED:
            return OpenedFolder(None, f"{fault}: put this right and start the broker again", "", warnings)
        if not fault.directory_failed:
            what = "a descriptor" if fault.kind is FaultKind.NO_DESCRIPTOR else "room"
            return OpenedFolder(
                None, f"{fault}: it is tried again until there is {what}", "", warnings, is_roomless=True
            )
        return OpenedFolder(None, "", str(error), warnings)
    log.belongs_to(stored)
    return OpenedFolder(log, "", "", warnings)


def _topic_id(disk: Disk, folder: str, warn: Callable[[str], None]) -> TopicId:
    """Zero where it is not known yet; code that knows the topic's id then completes the folder."""
    try:
        return partition_metadata.read(disk, f"{folder}/{partition_metadata.FILE_NAME}")
    except FileNotFoundError:
        return ZERO_TOPIC_ID
    except FormatError as error:
        warn(f"{error}; it is written again once the topic's id is known")
        return ZERO_TOPIC_ID
