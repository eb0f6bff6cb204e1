"""One log directory: taken at start, given back at the stop, or lost in between.

It is locked first, so that two brokers never write into it. The clean-shutdown marker is taken away, durably, before
anything else changes: from then on a crash is seen as one.
"""

from __future__ import annotations

import os.path
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from ottla.model import TopicPartition
from ottla.ports.disk import Disk, Lock
from ottla.ports.entropy import Entropy
from ottla.steps import Steps, at_once, pieces
from ottla.storage.directories.checkpoints import FILES, Checkpoints, CheckpointWrite, Offsets
from ottla.storage.directories.errors import DirectoryLocked
from ottla.storage.directories.events import DirectoryEvent, OnEvent, Severity
from ottla.storage.directories.identity import claim
from ottla.storage.errors import StorageFault, has_no_descriptor
from ottla.storage.formats import clean_shutdown
from ottla.storage.formats.errors import FormatError
from ottla.storage.formats.names import LOCK, FolderKind, format_folder
from ottla.storage.formats.offset_checkpoint import CLEANER_OFFSETS, HIGH_WATERMARKS, LOG_STARTS, RECOVERY_POINTS
from ottla.storage.log.open_files import OpenFiles

if TYPE_CHECKING:
    from ottla.storage.log.log import Log


class DirectoryClaim(NamedTuple):
    """What the broker claims its directories with."""

    broker_id: int
    cluster_id: str
    entropy: Entropy


class LogDirectory:
    """A working directory has a lock and no `failure`; a failed one has a reason and no logs."""

    __slots__ = (
        "_lock",
        "checkpoints",
        "cordoned",
        "directory_id",
        "disk",
        "failure",
        "futures",
        "logs",
        "making",
        "missing",
        "open_files",
        "path",
        "unopened",
        "was_clean",
    )

    def __init__(self, disk: Disk, path: str) -> None:
        self.disk = disk
        self.path = path
        #: Why it is offline, in a sentence; None while it works.
        self.failure: str | None = None
        self.directory_id = b""
        #: Whether the last broker to use it left everything on the medium.
        self.was_clean = False
        #: New partitions are not placed here.
        self.cordoned = False
        self.checkpoints = Checkpoints(disk, path)
        #: Bounds what its logs hold open together.
        self.open_files = OpenFiles()
        self.logs: dict[TopicPartition, Log] = {}
        #: Copies on their way into this directory, by their folder's name as well.
        self.futures: dict[TopicPartition, tuple[str, Log]] = {}
        #: Partitions whose folders a worker is making: they are in no other table yet.
        self.making: set[TopicPartition] = set()
        #: Folders that are there and not open, with the reason: damaged, standing twice, of an unknown topic, or given
        #: up and still with their names.
        self.unopened: dict[TopicPartition, str] = {}
        #: Partitions whose folder is gone though the checkpoints know of records in it, with the reason.
        self.missing: dict[TopicPartition, str] = {}
        self._lock: Lock | None = None

    def __repr__(self) -> str:
        return f"<LogDirectory {self.path} {self.failure or 'online'}, {len(self.logs)} logs>"

    @property
    def is_online(self) -> bool:
        return self.failure is None

    @property
    def is_trusted(self) -> bool:
        """Whether logs may be opened without looking for what a crash has left."""
        return self.was_clean and not self.checkpoints.damaged

    @property
    def replica_count(self) -> int:
        return len(self.logs) + len(self.futures) + len(self.making)

    def all_logs(self) -> list[Log]:
        """The open ones, copies among them."""
        return [*self.logs.values(), *(log for _, log in self.futures.values())]

    def folder(self, partition: TopicPartition) -> str:
        """Where the partition's folder is, or would be."""
        return self.path_of(self.folder_name(partition))

    @staticmethod
    def folder_name(partition: TopicPartition) -> str:
        return format_folder(partition)

    @staticmethod
    def name_of_gone(partition: TopicPartition, kind: FolderKind, entropy: Entropy) -> str:
        """What a folder is called from when it is the partition's no more."""
        assert kind in (FolderKind.DELETE, FolderKind.STRAY)
        return format_folder(partition, kind, entropy.token(16).hex())

    def path_of(self, name: str) -> str:
        return os.path.join(self.path, name)

    def take(self, identity: DirectoryClaim, on_event: OnEvent) -> None:
        """Creates, locks, checks and reads; an I/O fault puts it offline.

        Raises DirectoryLocked and WrongIdentity, and OSError where it is only that no descriptor is left.
        """
        try:
            self._make()
            self._lock = lock_directory(self.disk, self.path)
            self.disk.spread_folders(self.path)
            self.directory_id = claim(self.disk, self.path, identity.broker_id, identity.cluster_id, identity.entropy)
            self.was_clean = self._take_marker(on_event)
            self.checkpoints = Checkpoints.read(self.disk, self.path, lambda text: self.warn(on_event, text))
        except FormatError as error:
            self._give_up(f"{error}: nobody can tell whose directory it is; restore the file or remove the directory")
        except OSError as error:
            if has_no_descriptor(error):
                # Nothing is known of the directory yet: without it a start would be one with half of the logs.
                self.release()
                raise
            self._give_up(f"it cannot be used: {error.strerror or error}")
        except BaseException:
            self.release()
            raise

    def _make(self) -> None:
        missing, path = [], self.path
        while not self.disk.exists(path):
            missing.append(path)
            path = os.path.dirname(path)
        if missing:
            self.disk.make_directory(self.path)
            for made in missing:
                self.disk.sync_directory(os.path.dirname(made))

    def _take_marker(self, on_event: OnEvent) -> bool:
        path = os.path.join(self.path, clean_shutdown.FILE_NAME)
        try:
            data = self.disk.read_file(path)
        except FileNotFoundError:
            return False
        try:
            clean_shutdown.decode(data)
        except FormatError as error:
            # Its presence is what counts, in Kafka too; only the broker epoch in it is lost.
            self.warn(on_event, f"{clean_shutdown.FILE_NAME} is damaged ({error}); the stop counts as clean")
        self.disk.remove(path)
        self.disk.sync_directory(self.path)
        return True

    def warn(self, on_event: OnEvent, message: str, partition: TopicPartition | None = None) -> None:
        on_event(DirectoryEvent(Severity.WARNING, self.path, message, partition))

    def _give_up(self, failure: str) -> None:
        self.failure = failure
        self.release()

    def fail(self, failure: str) -> list[TopicPartition]:
        """Goes offline: closes what is open, without writing, and returns the partitions that are gone with it."""
        lost = [*self.logs, *self.unopened, *self.missing]
        for log in self.all_logs():
            self.abandon(log)
        self.logs.clear()
        self.futures.clear()
        self.unopened.clear()
        self.missing.clear()
        self._give_up(failure)
        return lost

    @staticmethod
    def abandon(log: Log) -> None:
        """Closes a log without writing: its device has failed, or nobody wants its files any more."""
        with suppress(OSError, StorageFault):
            log.abandon()

    def checkpointing(self, high_watermarks: Mapping[TopicPartition, int]) -> Steps[CheckpointWrite]:
        """The checkpoints as they should be now. A log that changes meanwhile stands as it was or as it is."""
        number = self.checkpoints.begin()
        old = self.checkpoints.tables
        tables: dict[str, Offsets] = {name: {} for name in FILES}
        for piece in pieces((*self.unopened, *self.missing)):
            # A start that opens the folder one day must not take damage below its recovery point for a torn tail, and
            # a folder that is gone must be missed again.
            for partition in piece:
                for name in FILES:
                    if partition in old[name]:
                        tables[name][partition] = old[name][partition]
            yield
        copies = [(partition, log) for partition, (_, log) in self.futures.items()]
        for part in pieces((*copies, *self.logs.items())):
            for partition, log in part:
                tables[RECOVERY_POINTS][partition] = log.recovery_point
                if log.start_offset > 0:
                    tables[LOG_STARTS][partition] = log.start_offset
                high_watermark = high_watermarks.get(partition)
                if high_watermark is None:
                    high_watermark = old[HIGH_WATERMARKS].get(partition, log.start_offset)
                tables[HIGH_WATERMARKS][partition] = high_watermark
                if log.cleaned_to >= 0:
                    tables[CLEANER_OFFSETS][partition] = log.cleaned_to
            yield
        return self.checkpoints.prepare(tables, number)

    def prepare_checkpoints(self, high_watermarks: Mapping[TopicPartition, int]) -> CheckpointWrite:
        return at_once(self.checkpointing(high_watermarks))

    def forget(self, partition: TopicPartition) -> None:
        """Before a log begins at 0 here: a former log's offsets under its name must not be applied to it."""
        self.checkpoints.prepare_forgetting([partition])()

    def lowering(self, partition: TopicPartition, offset: int) -> Callable[[], None] | None:
        """What a worker is to do before a log is cut back to `offset`: no checkpoint above it may survive a crash.
        None where there is nothing to do. The log itself says no more than that by now."""
        return self.checkpoints.prepare_lowering(partition, offset)

    def rename_folder(self, partition: TopicPartition, kind: FolderKind, entropy: Entropy) -> str:
        """Durably takes the partition's name away from its folder; returns the new path."""
        return self.rename(format_folder(partition), self.name_of_gone(partition, kind, entropy))

    def discard(self, name: str, partition: TopicPartition, entropy: Entropy) -> str:
        """Marks a copy's folder for removal; returns the new path."""
        return self.rename(name, self.name_of_gone(partition, FolderKind.DELETE, entropy))

    def rename(self, name: str, new_name: str) -> str:
        target = os.path.join(self.path, new_name)
        self.disk.rename(os.path.join(self.path, name), target)
        self.disk.sync_directory(self.path)
        return target

    def mark_clean(self, broker_epoch: int) -> None:
        clean_shutdown.write(self.disk, os.path.join(self.path, clean_shutdown.FILE_NAME), broker_epoch)

    def release(self) -> None:
        lock, self._lock = self._lock, None
        if lock is not None:
            lock.release()


def lock_directory(disk: Disk, path: str) -> Lock:
    """Raises DirectoryLocked where another process has it."""
    lock_path = os.path.join(path, LOCK)
    try:
        return disk.lock(lock_path)
    except BlockingIOError as error:
        raise DirectoryLocked(
            f"Failed to acquire the lock on {lock_path}: another broker is using this directory. "
            "Stop that process, or give this broker a log directory of its own."
        ) from error
