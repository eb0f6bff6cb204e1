"""Whole partitions, made and deleted: many at a time, with what blocks done by workers.

    on the loop                                in a worker                         on the loop
    a directory is chosen, the place reserved  folders are made, then one sync     logs come into the tables
    logs leave the tables                      folders are renamed, then one sync  removals are handed out

So a partition that is being made stands in its directory's `making` and in no other table, and one that is being
deleted in none: a checkpoint that is taken meanwhile mentions neither. Callers ask for one change after the
other; a directory may fail in the middle, and everything else goes on as if the change had not begun.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

from ottla.config.log import LogConfig
from ottla.model import ZERO_TOPIC_ID, TopicId, TopicPartition
from ottla.steps import DiskSteps, done_at_once, pieces
from ottla.storage.directories.directory import LogDirectory
from ottla.storage.directories.errors import (
    DirectoryError,
    DirectoryOffline,
    InconsistentTopicId,
    PartitionOffline,
)
from ottla.storage.directories.folder_batches import FOLDERS_A_BATCH, FolderCreation, FolderRenaming
from ottla.storage.directories.placing import NewReplica, adopt_topic_id, emptiest, refuse_while_offline
from ottla.storage.directories.removal import FolderRemoval
from ottla.storage.directories.table import DirectoryTable
from ottla.storage.errors import StorageFault
from ottla.storage.formats.names import FolderKind
from ottla.storage.log.log import Log

#: Why partitions could not be made or deleted.
RefusedFolders = dict[TopicPartition, DirectoryError | StorageFault]


class FolderDeletion(NamedTuple):
    #: What is to be removed once the checkpoints have forgotten it.
    removals: list[FolderRemoval]
    refused: RefusedFolders


class ReplicaFolders(DirectoryTable):
    """The table, and the ways into it and out of it."""

    # Creating

    def create(
        self, partition: TopicPartition, topic_id: bytes, config: LogConfig, *, now_ms: int, is_new: bool = True
    ) -> Log:
        """One, with the caller waiting for it. Raises why it could not be made."""
        replica = NewReplica(partition, topic_id, config)
        refused = done_at_once(self.create_many([replica], now_ms=now_ms, is_new=is_new))
        for reason in refused.values():
            raise reason
        return self._logs[partition]

    def create_many(
        self, replicas: Sequence[NewReplica], *, now_ms: int, is_new: bool = True
    ) -> DiskSteps[RefusedFolders]:
        """Creates what is not there yet; all but the refused are durable when it returns.

        A replica that is not new may only be made anew while no directory is away that could have it. Where a
        directory fails or has no room, what was made in it before stays.
        """
        refused: RefusedFolders = {}
        for batch in pieces(replicas, FOLDERS_A_BATCH):
            missing: list[NewReplica] = []
            for replica in batch:
                try:
                    if (yield from self._is_missing(replica, is_new=is_new)):
                        missing.append(replica)
                except (DirectoryError, StorageFault) as reason:
                    refused[replica.partition] = reason
                yield None
            free = yield from self._freed(missing, refused)
            for directory, placed in self._placed(free, refused).items():
                yield from self._make(directory, placed, refused, now_ms=now_ms)
        return refused

    def _freed(self, replicas: Sequence[NewReplica], refused: RefusedFolders) -> DiskSteps[list[NewReplica]]:
        """Those whose names are free, once folders that nobody has opened are out of their way."""
        strays = {tp for directory in self._directories for tp in directory.unopened}
        strays.intersection_update(replica.partition for replica in replicas)
        try:
            yield from self._set_aside_all(sorted(strays))
        except (DirectoryError, StorageFault) as reason:
            refused.update(dict.fromkeys(strays, reason))
        return [replica for replica in replicas if replica.partition not in refused]

    def _is_missing(self, replica: NewReplica, *, is_new: bool) -> DiskSteps[bool]:
        partition = replica.partition
        log = self._logs.get(partition)
        if log is not None:
            yield from self._check_topic_id(log, replica)
            return False
        if partition in self.offline:
            if not self._is_of_earlier_topic(replica):
                raise PartitionOffline(self.offline[partition])
            self._give_up_earlier(partition)
        if not is_new:
            refuse_while_offline(self._directories, partition)
        return True

    def _is_of_earlier_topic(self, replica: NewReplica) -> bool:
        """Whether what is offline is of another topic that had the name: nothing of the new one was ever here."""
        known = self._offline_ids.get(replica.partition, ZERO_TOPIC_ID)
        return ZERO_TOPIC_ID not in {known, replica.topic_id} and known != replica.topic_id

    def _give_up_earlier(self, partition: TopicPartition) -> None:
        """What there is of its folder is set aside when the new one is made."""
        self._not_offline(partition)
        for directory in self._directories:
            if directory.missing.pop(partition, None) is not None:
                what = "what is gone was of an earlier topic with this name, and is missed no more"
                directory.warn(self._on_event, what, partition)

    def _check_topic_id(self, log: Log, replica: NewReplica) -> DiskSteps[None]:
        stored = log.topic_id
        if replica.topic_id in {ZERO_TOPIC_ID, stored}:
            return
        if stored != ZERO_TOPIC_ID:
            raise InconsistentTopicId(
                f"the folder of {replica.partition} belongs to an earlier topic of that name: delete it first"
            )
        home = self._homes[replica.partition]
        with self._device(home):
            yield partial(adopt_topic_id, home.disk, home.folder(replica.partition), replica.topic_id)
        log.belongs_to(TopicId(replica.topic_id))

    def _placed(self, replicas: Sequence[NewReplica], refused: RefusedFolders) -> dict[LogDirectory, list[NewReplica]]:
        """Chooses a directory for each and reserves the place in it."""
        placed: dict[LogDirectory, list[NewReplica]] = defaultdict(list)
        for replica in replicas:
            directory = self._preferred.pop(replica.partition, None)
            try:
                if directory is None or not directory.is_online:
                    directory = emptiest(self._directories)
            except DirectoryError as reason:
                refused[replica.partition] = reason
            else:
                directory.making.add(replica.partition)
                placed[directory].append(replica)
        return placed

    def _make(
        self, directory: LogDirectory, replicas: Sequence[NewReplica], refused: RefusedFolders, *, now_ms: int
    ) -> DiskSteps[None]:
        batch = FolderCreation(directory, replicas, now_ms=now_ms, on_event=self._on_event)
        reason: DirectoryError | StorageFault | None = None
        try:
            with self._device(directory):
                yield batch.run
        except (DirectoryError, StorageFault) as fault:
            reason = fault
        finally:
            directory.making.difference_update(replica.partition for replica in replicas)
        is_there = batch.is_certain and directory.is_online
        if not is_there and directory.is_online:
            yield batch.take_back
        refused.update(batch.refused)
        for log, warnings, _ in batch.made:
            if not is_there or not directory.is_online:
                directory.abandon(log)
                continue
            warnings.report()
            self._install(directory, log.tp, log)
            yield None
        for replica in replicas:
            if replica.partition not in self._logs and replica.partition not in batch.refused:
                refused[replica.partition] = reason or DirectoryOffline(
                    f"the log directory {directory.path} has failed: {directory.failure}"
                )

    def _install(self, directory: LogDirectory, partition: TopicPartition, log: Log) -> None:
        directory.logs[partition] = log
        self._logs[partition] = log
        self._homes[partition] = directory

    # Deleting

    def delete(self, partition: TopicPartition) -> list[FolderRemoval]:
        """One, with the caller waiting for it. Raises why it could not be deleted."""
        deletion = done_at_once(self.delete_many([partition]))
        for reason in deletion.refused.values():
            raise reason
        return deletion.removals

    def delete_many(
        self, partitions: Sequence[TopicPartition], kind: FolderKind = FolderKind.DELETE
    ) -> DiskSteps[FolderDeletion]:
        """Takes the partitions' names from their folders, durably; the files are there until the removals have run.

        With the copies of those that are being moved. Nothing to remove where one is not here. A folder of one that was
        refused is in nobody's use any more, and goes when its deletion is asked for again. Checkpoints are to be
        written before the removals run: a folder that they know of and that is gone would be missed at the next start.
        """
        deletion = FolderDeletion([], {})
        for batch in pieces(partitions, FOLDERS_A_BATCH):
            going: dict[LogDirectory, list[tuple[TopicPartition, str, str]]] = defaultdict(list)
            for partition in batch:
                for directory, name in self._take_out(partition):
                    gone = directory.name_of_gone(partition, kind, self._entropy)
                    going[directory].append((partition, name, gone))
                yield None
            for directory, folders in going.items():
                yield from self._give_up_names(directory, folders, deletion)
        return deletion

    def _take_out(self, partition: TopicPartition) -> list[tuple[LogDirectory, str]]:
        """Closes what is open and takes it out of the tables; returns the folders that are left."""
        left: list[tuple[LogDirectory, str]] = []
        move = self._moves.pop(partition, None)
        if move is not None:
            del move.target.futures[partition]
            move.target.abandon(move.log)
            left.append((move.target, move.folder))
        self._preferred.pop(partition, None)
        log = self._logs.pop(partition, None)
        for directory in self._directories:
            directory.missing.pop(partition, None)
            if directory.logs.pop(partition, None) is None and directory.unopened.pop(partition, None) is None:
                continue
            if log is not None:
                directory.abandon(log)
            left.append((directory, directory.folder_name(partition)))
        self._homes.pop(partition, None)
        if not any(not directory.is_online for directory in self._directories):
            self._not_offline(partition)
        return left

    def _give_up_names(
        self, directory: LogDirectory, folders: Sequence[tuple[TopicPartition, str, str]], deletion: FolderDeletion
    ) -> DiskSteps[None]:
        renaming = FolderRenaming(directory, [(name, gone) for _, name, gone in folders])
        try:
            with self._device(directory):
                yield renaming.run
        except (DirectoryError, StorageFault) as fault:
            for partition, name, _ in folders[renaming.certain_count :]:
                deletion.refused[partition] = fault
                if directory.is_online and name == directory.folder_name(partition):
                    # The next deletion finds it, and a later topic of that name does not begin with what is in it.
                    directory.unopened[partition] = f"it could not be given up: {fault}"
        for partition, _, gone in folders[: renaming.certain_count]:
            deletion.removals.append(FolderRemoval(directory.disk, directory.path_of(gone), partition))

    # Setting aside

    def set_aside(self, partition: TopicPartition) -> list[str]:
        """Renames folders of the partition that are not open to `-stray`, so that it can be created anew."""
        return done_at_once(self._set_aside_all([partition]))

    def _set_aside_all(self, partitions: Sequence[TopicPartition]) -> DiskSteps[list[str]]:
        paths = []
        for directory in self._directories:
            strays = [partition for partition in partitions if partition in directory.unopened]
            if not strays:
                continue
            names = [directory.name_of_gone(partition, FolderKind.STRAY, self._entropy) for partition in strays]
            with self._device(directory):
                yield FolderRenaming(
                    directory, [(directory.folder_name(tp), name) for tp, name in zip(strays, names, strict=True)]
                ).run
            for partition, name in zip(strays, names, strict=True):
                directory.unopened.pop(partition, None)
                self._not_offline(partition)
                path = directory.path_of(name)
                directory.warn(self._on_event, f"the folder of {partition} was set aside as {path}", partition)
                paths.append(path)
        return paths
