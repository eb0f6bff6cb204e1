"""A broker's log directories as one: which partition is where, and what is done to whole partitions.

A replica lives in one directory. New ones go to the directory that has the fewest. Nothing here runs by itself: the
broker's loop calls, and what blocks for long (removals, checkpoints, last flushes) comes back as a plain object with
`run`, for a worker.
"""

from __future__ import annotations

import os.path
from collections.abc import Collection, Mapping, Sequence
from typing import Final

from ottla.config.log import LogConfig
from ottla.model import ZERO_TOPIC_ID, TopicId, TopicPartition
from ottla.ports.disk import Disk
from ottla.ports.entropy import Entropy
from ottla.storage.checkpoints import CheckpointWrite
from ottla.storage.directory import Identity, LogDirectory
from ottla.storage.directory_errors import (
    InconsistentTopicId,
    MoveRefused,
    PartitionOffline,
)
from ottla.storage.directory_events import DirectoryEvent, OnEvent, Severity
from ottla.storage.directory_table import DirectoryTable
from ottla.storage.errors import StorageFault, passes
from ottla.storage.formats.names import FolderKind
from ottla.storage.identity import check_distinct
from ottla.storage.loading import Loading
from ottla.storage.log import Log
from ottla.storage.moving import FutureLog, begin_copy, copy_name, drop_copy, remove_marker, take_name
from ottla.storage.opening import ConfigFor, Run, TopicIdFor, no_topic_id, run_in_turn
from ottla.storage.placing import (
    NewReplica,
    adopt_topic_id,
    check_any_online,
    check_paths,
    emptiest,
    make_log,
    refuse_while_offline,
)
from ottla.storage.removal import FolderRemoval
from ottla.storage.stopping import LastFlush, prepare_last_flushes, stop_directory

#: Wishes for partitions that are not here yet: anybody may have one, and they may never come. The oldest goes first.
PREFERRED_MAX: Final = 10_000


class LogDirectories(DirectoryTable):
    """All log directories of one broker, from `open` to `close`."""

    @classmethod
    def open(
        cls,
        disk: Disk,
        paths: Sequence[str],
        *,
        broker_id: int,
        cluster_id: str,
        config_for: ConfigFor,
        now_ms: int,
        entropy: Entropy,
        on_event: OnEvent,
        topic_id_for: TopicIdFor = no_topic_id,
        cordoned: Collection[str] = (),
        run: Run = run_in_turn,
    ) -> LogDirectories:
        """Takes all directories and opens all logs. Raises DirectoryError where the broker must not start.

        `config_for` answers None for a topic that is not known: its folders stay untouched. With `topic_id_for` so do
        those of an earlier topic of the same name, and folders that lack their topic's id get it. `run` may open logs
        in threads.
        """
        directories = [LogDirectory(disk, path) for path in check_paths(paths)]
        identity = Identity(broker_id, cluster_id, entropy)
        try:
            for directory in directories:
                directory.take(identity, on_event)
            check_any_online(directories)  # it names each one's fault, which then need not be told before
            for directory in directories:
                if directory.failure:
                    on_event(DirectoryEvent(Severity.ERROR, directory.path, f"offline: {directory.failure}"))
            check_distinct({each.path: each.directory_id for each in directories if each.is_online})
            loading = Loading(directories, config_for, topic_id_for, now_ms, entropy, on_event)
            loading.load(run)
            check_any_online(directories)
        except BaseException:
            for directory in directories:
                directory.release()
            raise
        opened = cls(directories, entropy, on_event)
        opened.cordon(cordoned)
        opened._take_over(loading)
        return opened

    def _take_over(self, loading: Loading) -> None:
        for directory in self._directories:
            for partition, log in directory.logs.items():
                self._logs[partition] = log
                self._homes[partition] = directory
        self._moves = loading.moves
        self.removals = loading.removals
        self.offline = {tp: why for tp, why in loading.offline.items() if tp not in self._logs}

    def cordon(self, paths: Collection[str]) -> None:
        """New replicas are placed in none of these from now on; what is in them stays and is served."""
        cordoned = {os.path.abspath(path) for path in paths}
        for directory in self._directories:
            directory.cordoned = directory.path in cordoned

    # Creating and deleting

    def create(
        self, partition: TopicPartition, topic_id: bytes, config: LogConfig, *, now_ms: int, is_new: bool = True
    ) -> Log:
        return self.create_many([NewReplica(partition, topic_id, config)], now_ms=now_ms, is_new=is_new)[0]

    def create_many(self, replicas: Sequence[NewReplica], *, now_ms: int, is_new: bool = True) -> list[Log]:
        """Creates what is not there yet; all are durable when it returns.

        A replica that is not new may only be made anew while no directory is away that could have it. Raises
        DirectoryError, or StorageFault when there is no room or no descriptor; what was created before that stays.
        """
        touched: dict[str, LogDirectory] = {}
        try:
            return [self._create_one(replica, now_ms, touched, is_new=is_new) for replica in replicas]
        finally:
            for directory in touched.values():
                with self._device(directory):
                    directory.disk.sync_directory(directory.path)

    def _create_one(self, replica: NewReplica, now_ms: int, touched: dict[str, LogDirectory], *, is_new: bool) -> Log:
        partition = replica.partition
        log = self._logs.get(partition)
        if log is not None:
            self._check_topic_id(log, replica)
            return log
        if partition in self.offline:
            raise PartitionOffline(self.offline[partition])
        if not is_new:
            refuse_while_offline(self._directories, partition)
        self.set_aside(partition)
        directory = self._preferred.pop(partition, None)
        if directory is None or not directory.is_online:
            directory = emptiest(self._directories)
        with self._device(directory):
            folder = directory.folder(partition)
            log = make_log(directory, folder, replica, now_ms=now_ms, on_event=self._on_event)
        touched[directory.path] = directory
        self._install(directory, partition, log)
        return log

    def _install(self, directory: LogDirectory, partition: TopicPartition, log: Log) -> None:
        directory.logs[partition] = log
        self._logs[partition] = log
        self._homes[partition] = directory

    def _check_topic_id(self, log: Log, replica: NewReplica) -> None:
        stored = log.topic_id
        if replica.topic_id in {ZERO_TOPIC_ID, stored}:
            return
        if stored != ZERO_TOPIC_ID:
            raise InconsistentTopicId(
                f"the folder of {replica.partition} belongs to an earlier topic of that name: delete it first"
            )
        home = self._homes[replica.partition]
        with self._device(home):
            adopt_topic_id(home.disk, home.folder(replica.partition), replica.topic_id)
        log.topic_id = TopicId(replica.topic_id)

    def delete(self, partition: TopicPartition) -> list[FolderRemoval]:
        """Takes the partition's name from its folder, durably; the files are there until the removals have run.

        With its copy, if it was being moved. Nothing to remove where it is not here. Checkpoints are to be written
        before the removals run: a folder that they know of and that is gone would be missed at the next start.
        """
        removals = []
        copy = self.cancel_move(partition)
        if copy is not None:
            removals.append(copy)
        self._preferred.pop(partition, None)
        log = self._logs.pop(partition, None)
        for directory in self._directories:
            directory.missing.pop(partition, None)
            if directory.logs.pop(partition, None) is None and directory.unopened.pop(partition, None) is None:
                continue
            if log is not None:
                directory.abandon(log)
            with self._device(directory):
                path = directory.rename_folder(partition, FolderKind.DELETE, self._entropy)
            removals.append(FolderRemoval(directory.disk, path, partition))
        self._homes.pop(partition, None)
        if not any(not directory.is_online for directory in self._directories):
            self.offline.pop(partition, None)
        return removals

    def set_aside(self, partition: TopicPartition) -> list[str]:
        """Renames folders of the partition that are not open to `-stray`, so that it can be created anew."""
        paths = []
        for directory in self._directories:
            if directory.unopened.pop(partition, None) is not None:
                with self._device(directory):
                    path = directory.rename_folder(partition, FolderKind.STRAY, self._entropy)
                directory.warn(self._on_event, f"the folder of {partition} was set aside as {path}", partition)
                paths.append(path)
        if paths:
            self.offline.pop(partition, None)
        return paths

    def give_up_missing(self, partition: TopicPartition) -> None:
        """Whose folder is gone may be created anew after this: there is a leader that it is filled from."""
        for directory in self._directories:
            if directory.missing.pop(partition, None) is not None:
                self.offline.pop(partition, None)
                directory.warn(self._on_event, "its folder is gone, and it is copied from its leader again", partition)

    # Moving between directories

    def prefer(self, partition: TopicPartition, path: str) -> None:
        """Where the partition is to be created, if it ever is."""
        self._preferred[partition] = self._online(path)
        if len(self._preferred) > PREFERRED_MAX:
            del self._preferred[next(iter(self._preferred))]

    def start_move(
        self, partition: TopicPartition, target_path: str, config: LogConfig, *, now_ms: int
    ) -> FutureLog | None:
        """Begins a copy in another directory, in place of one to a third; None where the partition is there already."""
        target = self._online(target_path)
        source = self._logs.get(partition)
        if source is None:
            raise PartitionOffline(self.offline.get(partition, f"{partition} is not on this broker"))
        move = self._moves.get(partition)
        if move is not None and move.target is target:
            return move
        cancelled = self.cancel_move(partition)
        if cancelled is not None:
            self.removals.append(cancelled)
        if self._homes[partition] is target:
            return None
        with self._device(target):
            name = copy_name(partition, self._entropy)
            replica = NewReplica(partition, source.topic_id, config)
            move = begin_copy(source, target, name, replica, now_ms=now_ms, on_event=self._on_event)
        self._moves[partition] = move
        return move

    def finish_move(self, partition: TopicPartition, config: LogConfig, *, now_ms: int) -> tuple[Log, FolderRemoval]:
        """Lets the level copy take over, durably; the former log is closed. Call it in the turn it became level."""
        move = self._moves.get(partition)
        if move is None or move.lag or not move.is_level:
            raise MoveRefused(f"the copy of {partition} is not level with its original")
        origin = self._homes[partition]
        try:
            with self._device(move.target):
                log = take_name(move, origin, config, now_ms=now_ms, on_event=self._on_event)
        except StorageFault as full:
            self._drop_copy(move)
            raise MoveRefused(
                f"the copy of {partition} was dropped, as there was no room to finish it: {full}"
            ) from full
        del self._moves[partition]
        del move.target.futures[partition]
        self._install(move.target, partition, log)
        del origin.logs[partition]
        origin.abandon(move.source)
        with self._device(origin):
            removed = origin.rename_folder(partition, FolderKind.DELETE, self._entropy)
        with self._device(move.target):
            remove_marker(move.target, partition)
        return log, FolderRemoval(origin.disk, removed, partition)

    def _drop_copy(self, move: FutureLog) -> None:
        del self._moves[move.partition]
        del move.target.futures[move.partition]
        with self._device(move.target):
            path = drop_copy(move, self._entropy)
        if path is not None:
            self.removals.append(FolderRemoval(move.target.disk, path, move.partition))

    def cancel_move(self, partition: TopicPartition) -> FolderRemoval | None:
        move = self._moves.pop(partition, None)
        if move is None:
            return None
        target = move.target
        del target.futures[partition]
        target.abandon(move.log)
        with self._device(target):
            path = target.discard(move.folder, partition, self._entropy)
        return FolderRemoval(target.disk, path, partition)

    # Checkpoints and the end

    def prepare_checkpoints(self, high_watermarks: Mapping[TopicPartition, int]) -> list[CheckpointWrite]:
        """One write a directory, for workers; where `run` raises OSError, `fail_directory` is due."""
        return [
            directory.prepare_checkpoints(high_watermarks) for directory in self._directories if directory.is_online
        ]

    def prepare_checkpoint_of(
        self, partition: TopicPartition, high_watermarks: Mapping[TopicPartition, int]
    ) -> CheckpointWrite | None:
        """The same for the directory of one partition; None where it is not here."""
        home = self._homes.get(partition)
        return home.prepare_checkpoints(high_watermarks) if home is not None else None

    def write_checkpoints(self, high_watermarks: Mapping[TopicPartition, int]) -> None:
        for write in self.prepare_checkpoints(high_watermarks):
            try:
                write.run()
            except OSError as error:
                if not passes(error):
                    self.fail_directory(write.directory, error.strerror or str(error))

    def truncating(self, partition: TopicPartition, offset: int) -> None:
        """To be called before a log is cut back to `offset`: a recovery point above it must not survive a crash."""
        home = self._homes[partition]
        with self._device(home):
            home.before_truncation(partition, offset)

    def prepare_close(self) -> list[LastFlush]:
        """What `close` would flush one after the other: workers may `run` it side by side before, and then `settle`."""
        return [
            last
            for directory in self._directories
            if directory.is_online
            for last in prepare_last_flushes(directory.all_logs())
        ]

    def close(
        self,
        high_watermarks: Mapping[TopicPartition, int],
        *,
        broker_epoch: int = -1,
    ) -> None:
        """The clean stop: everything dirty is flushed, then checkpoints, then the markers; the locks are given back."""
        for directory in self._directories:
            if directory.is_online:
                failure = stop_directory(directory, high_watermarks, broker_epoch)
                if failure is not None:
                    self._on_event(DirectoryEvent(Severity.ERROR, directory.path, f"not left clean: {failure}"))
        self._logs.clear()
        self._homes.clear()
        self._moves.clear()
