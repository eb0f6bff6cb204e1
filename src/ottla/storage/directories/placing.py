"""New replicas: which directory gets one, and making its folder so that a crash leaves nothing that misleads.

A folder without a sound `partition.metadata` (a crash came in between) opens as an empty log without a topic id; the
next start completes it, or creating the replica again.
"""

from __future__ import annotations

import os.path
from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import partial
from typing import NamedTuple

from ottla.config.log import LogConfig
from ottla.model import ZERO_TOPIC_ID, TopicId, TopicPartition
from ottla.ports.disk import Disk
from ottla.storage.directories.directory import LogDirectory
from ottla.storage.directories.errors import DirectoryOffline, InconsistentTopicId, NoUsableDirectory
from ottla.storage.directories.events import LogWarnings, OnEvent
from ottla.storage.formats import partition_metadata
from ottla.storage.formats.errors import FormatError
from ottla.storage.log.log import Log
from ottla.storage.log.opening.open_log import begin_log, open_log


class NewReplica(NamedTuple):
    partition: TopicPartition
    #: All zeros where the topic has no id (one that an old controller made).
    topic_id: bytes
    config: LogConfig


class MadeLog(NamedTuple):
    log: Log
    warnings: LogWarnings
    #: Whether its folder was made for it. One that was there has what somebody put into it.
    is_folder_new: bool


def check_paths(paths: Iterable[str]) -> list[str]:
    """The configured paths in one spelling each; ValueError where one stands twice."""
    normal: list[str] = []
    for path in paths:
        plain = os.path.abspath(path)
        if plain in normal:
            raise ValueError(f"the log directory {plain} stands twice in log.dirs")
        normal.append(plain)
    return normal


def check_any_online(directories: Sequence[LogDirectory]) -> None:
    """Raises NoUsableDirectory with every directory's reason."""
    if not any(directory.is_online for directory in directories):
        reasons = "; ".join(f"{directory.path}: {directory.failure}" for directory in directories)
        raise NoUsableDirectory(f"No log directory can be used: {reasons}")


def emptiest(directories: Sequence[LogDirectory]) -> LogDirectory:
    """The one with the fewest replicas, as Kafka chooses: sizes are not looked at, since a new log has none yet."""
    usable = [directory for directory in directories if directory.is_online]
    if not usable:
        raise NoUsableDirectory("no log directory is online, so no replica can be created")
    candidates = [directory for directory in usable if not directory.cordoned]
    if not candidates:
        raise NoUsableDirectory("all log directories that are online are cordoned, so no replica can be created")
    return min(candidates, key=lambda directory: directory.replica_count)


def refuse_while_offline(directories: Sequence[LogDirectory], partition: TopicPartition) -> None:
    """A replica that existed before may be in a directory that is away: an empty one must not take its place."""
    away = [directory.path for directory in directories if not directory.is_online]
    if away:
        raise DirectoryOffline(f"{partition} may be in an offline log directory ({', '.join(away)})")


def make_log(
    directory: LogDirectory, folder: str, replica: NewReplica, *, now_ms: int, on_event: OnEvent, synced: bool = False
) -> MadeLog:
    """A folder with an empty log, and what it warns about. Its name is durable once the caller synced the directory.

    A folder may be there that nobody of this life made, as of a backup. It is taken as it is, if it is this topic's:
    raises InconsistentTopicId for another one's.

    It blocks, so workers call it; before that the directory's checkpoints have forgotten the partition.

    What is in it follows with the log's first flush, which is when something in it matters: 1,500 partitions then cost
    one fsync and not 3,000. `synced` makes the topic's id durable at once.
    """
    disk = directory.disk
    metadata = os.path.join(folder, partition_metadata.FILE_NAME)
    is_new = disk.make_directory(folder)
    if not is_new:
        _refuse_another_topics(disk, metadata, replica)
    try:
        if replica.topic_id != ZERO_TOPIC_ID:
            write = partition_metadata.write if synced else partition_metadata.write_unsynced
            write(disk, metadata, replica.topic_id)
        warnings = LogWarnings(directory.path, replica.partition, on_event)
        opens = begin_log if is_new else partial(open_log, clean=False)
        log = opens(
            disk,
            folder,
            replica.partition,
            replica.config,
            now_ms=now_ms,
            on_warning=warnings,
            files=directory.open_files,
        )
    except BaseException:
        if is_new:
            # Half a replica would be found at the next start.
            with suppress(OSError):
                disk.remove_tree(folder)
        raise
    log.belongs_to(TopicId(replica.topic_id))
    if replica.topic_id != ZERO_TOPIC_ID and not synced:
        log.durability.note_unsynced(metadata)
    return MadeLog(log, warnings, is_new)


def _refuse_another_topics(disk: Disk, metadata: str, replica: NewReplica) -> None:
    try:
        found = partition_metadata.read(disk, metadata)
    except (FileNotFoundError, FormatError):
        return  # a creation that was cut short; an older Kafka's has none
    if ZERO_TOPIC_ID not in {found, replica.topic_id} and found != replica.topic_id:
        raise InconsistentTopicId(
            f"there is a folder of {replica.partition} that belongs to another topic of that name: move it away, or "
            "delete it"
        )


def adopt_topic_id(disk: Disk, folder: str, topic_id: bytes) -> None:
    """Completes a replica whose creation a crash cut short, or that an older Kafka made."""
    partition_metadata.write(disk, os.path.join(folder, partition_metadata.FILE_NAME), topic_id)
