"""What a broker's log directories hold, and what becomes of it when a directory or a partition fails.

A directory that fails goes offline with all its partitions, and the others go on; a damaged partition goes offline
alone, and its files stay as they are.
"""

from __future__ import annotations

import os.path
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import MappingProxyType
from typing import Final

from ottla.model import TopicPartition
from ottla.ports.entropy import Entropy
from ottla.steps import Steps, at_once
from ottla.storage.directories.directory import LogDirectory
from ottla.storage.directories.errors import DirectoryNotFound, DirectoryOffline
from ottla.storage.directories.events import DirectoryEvent, DirectoryOwner, OnEvent, Severity
from ottla.storage.directories.moving import FutureLog
from ottla.storage.directories.removal import FolderRemoval
from ottla.storage.directories.status import DirectoryStatus, describe_directory
from ottla.storage.errors import StorageFault, passes
from ottla.storage.formats.offset_checkpoint import HIGH_WATERMARKS
from ottla.storage.log.log import Log

NO_OFFSETS: Final[Mapping[TopicPartition, int]] = MappingProxyType({})


class DirectoryTable:
    """Invariant: no partition is both in `logs` and in `offline`."""

    def __init__(self, directories: Sequence[LogDirectory], entropy: Entropy, on_event: OnEvent) -> None:
        self._directories = list(directories)
        self._by_path = {directory.path: directory for directory in directories}
        self._entropy = entropy
        self._on_event = on_event
        self._logs: dict[TopicPartition, Log] = {}
        self._homes: dict[TopicPartition, LogDirectory] = {}
        self._moves: dict[TopicPartition, FutureLog] = {}
        self._preferred: dict[TopicPartition, LogDirectory] = {}
        #: Partitions that are here and cannot be served, with the reason.
        self.offline: dict[TopicPartition, str] = {}
        #: Under which topic id each of those is so; a later topic of that name has nothing to do with it.
        self._offline_ids: dict[TopicPartition, bytes] = {}
        #: None while nothing here is served: a later owner finds what has failed until then in `offline`.
        self._owner: DirectoryOwner | None = None
        #: Folders that an earlier life was about to remove: for the caller to run and clear.
        self.removals: list[FolderRemoval] = []

    def belong_to(self, owner: DirectoryOwner) -> None:
        assert self._owner is None, "directories have one owner"
        self._owner = owner

    @property
    def logs(self) -> Mapping[TopicPartition, Log]:
        return MappingProxyType(self._logs)

    @property
    def moves(self) -> Mapping[TopicPartition, FutureLog]:
        """Copies under way, those of an earlier life among them."""
        return MappingProxyType(self._moves)

    @property
    def was_clean(self) -> bool:
        """Whether every directory that works was left clean, or held nothing."""
        return all(each.was_clean or not each.logs for each in self._directories if each.is_online)

    @property
    def paths(self) -> list[str]:
        return [directory.path for directory in self._directories]

    @property
    def online_paths(self) -> list[str]:
        return [directory.path for directory in self._directories if directory.is_online]

    @property
    def directory_ids(self) -> dict[str, bytes]:
        return {directory.path: directory.directory_id for directory in self._directories if directory.is_online}

    @property
    def failures(self) -> dict[str, str]:
        """Why each directory that is offline is so."""
        return {each.path: each.failure for each in self._directories if each.failure is not None}

    def get(self, partition: TopicPartition) -> Log | None:
        return self._logs.get(partition)

    def future(self, partition: TopicPartition) -> FutureLog | None:
        return self._moves.get(partition)

    def directory_of(self, partition: TopicPartition) -> str | None:
        home = self._homes.get(partition)
        return home.path if home else None

    def high_watermark(self, partition: TopicPartition) -> int | None:
        """As checkpointed; None where there is none."""
        home = self._homes.get(partition)
        return home.checkpoints.tables[HIGH_WATERMARKS].get(partition) if home else None

    def describe(self, high_watermarks: Mapping[TopicPartition, int] = NO_OFFSETS) -> list[DirectoryStatus]:
        return at_once(self.describing(high_watermarks))

    def describing(self, high_watermarks: Mapping[TopicPartition, int]) -> Steps[list[DirectoryStatus]]:
        statuses = []
        for directory in self._directories:
            status = yield from describe_directory(directory, self._moves, high_watermarks)
            statuses.append(status)
        return statuses

    # Faults

    def fail_directory_of(self, partition: TopicPartition, reason: str) -> None:
        """Takes the directory that a partition is in offline, where it has one."""
        path = self.directory_of(partition)
        if path is not None:
            self.fail_directory(path, reason)

    def fail_directory(self, path: str, reason: str) -> list[TopicPartition]:
        """Takes a directory offline; returns the partitions that are offline with it. Again for the same: nothing."""
        directory = self._by_path[path]
        if not directory.is_online:
            return []
        # A folder that could not be given up here is of a partition that may be served from elsewhere.
        lost = [tp for tp in directory.fail(reason) if self._homes.get(tp, directory) is directory]
        for partition in lost:
            log = self._logs.pop(partition, None)
            if log is not None:
                self._offline_ids[partition] = log.topic_id
            self._homes.pop(partition, None)
            self.offline[partition] = f"its log directory {path} is offline: {reason}"
        for partition, move in list(self._moves.items()):
            if move.target is directory:
                del self._moves[partition]
            elif partition not in self._logs:
                # The copy has lost its original: it stays in its folder for the day when that returns.
                del self._moves[partition]
                del move.target.futures[partition]
                move.target.abandon(move.log)
        self._on_event(DirectoryEvent(Severity.ERROR, path, f"the log directory is offline: {reason}"))
        if self._owner is not None:
            self._owner.directory_failed(lost)
        return lost

    def _not_offline(self, partition: TopicPartition) -> None:
        """It is served, or is not here any more."""
        self.offline.pop(partition, None)
        self._offline_ids.pop(partition, None)

    def _online(self, path: str) -> LogDirectory:
        directory = self._by_path.get(os.path.normpath(path))
        if directory is None:
            raise DirectoryNotFound(f"{path} is none of this broker's log directories")
        if not directory.is_online:
            raise DirectoryOffline(f"the log directory {path} is offline: {directory.failure}")
        return directory

    @contextmanager
    def _device(self, directory: LogDirectory) -> Iterator[None]:
        """What fails inside is the directory's fault, and takes it offline; what passes by itself is only logged."""
        try:
            yield
        except OSError as error:
            if passes(error):
                raise StorageFault.of(directory.path, error) from error
            self.fail_directory(directory.path, error.strerror or str(error))
            raise DirectoryOffline(f"the log directory {directory.path} has failed: {error}") from error
        except StorageFault as error:
            if not error.directory_failed:
                raise
            self.fail_directory(directory.path, str(error))
            raise DirectoryOffline(f"the log directory {directory.path} has failed: {error}") from error
