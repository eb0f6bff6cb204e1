"""A broker's log directories as one: which partition is where, and what is done to whole partitions.

A replica lives in one directory. New ones go to the directory that has the fewest. Nothing here runs by itself: the
broker's loop calls, and what blocks for long (removals, checkpoints, last flushes) comes back as a plain object with
`run`, for a worker.
"""

from __future__ import annotations

import os.path
from collections.abc import Collection, Mapping, Sequence
from functools import partial
from typing import Final

from ottla.config.log import LogConfig
from ottla.model import ZERO_TOPIC_ID, TopicPartition
from ottla.ports.disk import Disk
from ottla.ports.entropy import Entropy
from ottla.steps import DiskSteps, Steps
from ottla.storage.directories.checkpoints import CheckpointWrite
from ottla.storage.directories.directory import DirectoryClaim, LogDirectory
from ottla.storage.directories.errors import MoveRefused, PartitionOffline
from ottla.storage.directories.events import DirectoryEvent, OnEvent, Severity
from ottla.storage.directories.folder_batches import FolderRenaming
from ottla.storage.directories.identity import check_distinct
from ottla.storage.directories.loading import Loading
from ottla.storage.directories.moving import CopyCreation, FutureLog, NameTaking, copy_name, drop_copy, remove_marker
from ottla.storage.directories.opening import (
    ConfigFor,
    HoldsReplica,
    Job,
    KnownTopics,
    OpenedFolder,
    Run,
    TopicIdFor,
    holds_any,
    no_topic_id,
    run_in_turn,
)
from ottla.storage.directories.placing import NewReplica, check_any_online, check_paths
from ottla.storage.directories.removal import FolderRemoval
from ottla.storage.directories.replica_folders import ReplicaFolders
from ottla.storage.directories.stopping import LastFlush, prepare_last_flushes, stop_directory
from ottla.storage.errors import StorageFault
from ottla.storage.formats.names import FolderKind
from ottla.storage.log.log import Log

#: Wishes for partitions that are not here yet: anybody may have one, and they may never come. The oldest goes first.
PREFERRED_MAX: Final = 10_000


class LogDirectories(ReplicaFolders):
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
        holds: HoldsReplica = holds_any,
        cordoned: Collection[str] = (),
        run: Run = run_in_turn,
    ) -> LogDirectories:
        """Takes all directories and opens all logs. Raises DirectoryError where the broker must not start.

        `config_for` answers None for a topic that is not known: its folders stay untouched. With `topic_id_for` so do
        those of an earlier topic of the same name, and folders that lack their topic's id get it. Replicas that are
        gone are missed where this broker `holds` them. `run` may open logs in threads.
        """
        directories = [LogDirectory(disk, path) for path in check_paths(paths)]
        identity = DirectoryClaim(broker_id, cluster_id, entropy)
        try:
            for directory in directories:
                directory.take(identity, on_event)
            check_any_online(directories)  # it names each one's fault, which then need not be logged before
            for directory in directories:
                if directory.failure:
                    on_event(DirectoryEvent(Severity.ERROR, directory.path, f"offline: {directory.failure}"))
            check_distinct({each.path: each.directory_id for each in directories if each.is_online})
            topics = KnownTopics(config_for, topic_id_for, holds)
            loading = Loading(directories, topics, now_ms, entropy, on_event)
            loading.load(run)
            check_any_online(directories)
        except BaseException:
            for directory in directories:
                directory.release()
            raise
        opened = cls(directories, entropy, on_event)
        opened.cordon(cordoned)
        opened._take_over(loading, topic_id_for)
        return opened

    def _take_over(self, loading: Loading, topic_id_for: TopicIdFor) -> None:
        for directory in self._directories:
            for partition, log in directory.logs.items():
                self._logs[partition] = log
                self._homes[partition] = directory
        self._moves = loading.moves
        self.removals = loading.removals
        self.offline = {tp: why for tp, why in loading.offline.items() if tp not in self._logs}
        self._offline_ids = {tp: topic_id_for(tp.topic) or ZERO_TOPIC_ID for tp in self.offline}
        self._loading = loading

    # What there was no room to open

    @property
    def has_roomless(self) -> bool:
        """Whether there are partitions that lack nothing but room."""
        return bool(self._loading.roomless)

    def prepare_roomless(self) -> dict[TopicPartition, Job]:
        """How those partitions are opened that lack nothing but room: for workers, with `settle_roomless` after it."""
        return {tp: self._loading.prepare_again(tp) for tp in self._loading.still_roomless()}

    def settle_roomless(self, partition: TopicPartition, opened: OpenedFolder) -> bool:
        """Whether the partition is open now."""
        home = self._loading.settle_again(partition, opened)
        if home is None:
            if partition in self._loading.offline and partition in self.offline:
                self.offline[partition] = self._loading.offline[partition]
            return False
        self._not_offline(partition)
        self._install(home, partition, home.logs[partition])
        return True

    def cordon(self, paths: Collection[str]) -> None:
        """New replicas are placed in none of these from now on; what is in them stays and is served."""
        cordoned = {os.path.abspath(path) for path in paths}
        for directory in self._directories:
            directory.cordoned = directory.path in cordoned

    def give_up_lost(self, partition: TopicPartition) -> None:
        """Whose folder is gone, or damaged, may be created anew after this: there is a leader that it is filled from.

        What is damaged is set aside when it is created, and stays where an operator finds it.
        """
        damaged = self._loading.damaged.pop(partition, None)
        if damaged is not None and damaged.is_online and partition in damaged.unopened:
            self._not_offline(partition)
            damaged.warn(self._on_event, "its log is damaged, and it is copied from its leader again", partition)
        for directory in self._directories:
            if directory.missing.pop(partition, None) is not None:
                self._not_offline(partition)
                directory.warn(self._on_event, "its folder is gone, and it is copied from its leader again", partition)

    # Moving between directories

    def prefer(self, partition: TopicPartition, path: str) -> None:
        """Where the partition is to be created, if it ever is."""
        self._preferred[partition] = self._online(path)
        if len(self._preferred) > PREFERRED_MAX:
            del self._preferred[next(iter(self._preferred))]

    def starting_move(
        self, partition: TopicPartition, target_path: str, config: LogConfig, *, now_ms: int
    ) -> DiskSteps[FutureLog | None]:
        """Begins a copy in another directory, in place of one to a third; None where the partition is there already."""
        target = self._online(target_path)
        source = self._logs.get(partition)
        if source is None:
            raise PartitionOffline(self.offline.get(partition, f"{partition} is not on this broker"))
        move = self._moves.get(partition)
        if move is not None and move.target is target:
            return move
        dropped = yield from self.dropping_copy(partition)
        if dropped is not None:
            self.removals.append(dropped)
        if self._homes.get(partition) is target:
            return None
        if partition in target.unopened:
            # It moved away from there, and its folder could not be given up. The copy is to have that name.
            yield from self._set_aside_all([partition])
        with self._device(target):
            replica = NewReplica(partition, source.topic_id, config)
            name = copy_name(partition, self._entropy)
            copy = CopyCreation(target, name, replica, now_ms=now_ms, on_event=self._on_event)
            target.making.add(partition)
            try:
                yield copy.run
            finally:
                target.making.discard(partition)
            self._check_still_wanted(copy, source)
            move = self._moves[partition] = copy.begin(source)
        return move

    def _check_still_wanted(self, copy: CopyCreation, source: Log) -> None:
        """Raises PartitionOffline where a directory has failed while the copy was made; the next start removes it."""
        assert copy.made is not None
        if not copy.target.is_online or self._logs.get(source.tp) is not source:
            copy.target.abandon(copy.made.log)
            raise PartitionOffline(f"the move of {source.tp} to {copy.target.path} was overtaken by a fault")

    def dropping_copy(self, partition: TopicPartition) -> DiskSteps[FolderRemoval | None]:
        move = self._moves.pop(partition, None)
        if move is None:
            return None
        target = move.target
        del target.futures[partition]
        target.abandon(move.log)
        gone = target.name_of_gone(partition, FolderKind.DELETE, self._entropy)
        with self._device(target):
            yield FolderRenaming(target, [(move.folder, gone)]).run
        return FolderRemoval(target.disk, target.path_of(gone), partition)

    def home_of(self, partition: TopicPartition) -> LogDirectory | None:
        return self._homes.get(partition)

    def taking_over(self, partition: TopicPartition, config: LogConfig, *, now_ms: int) -> DiskSteps[Log]:
        """Lets the level copy take over, durably; the former log is closed, and its folder is to be left at once.

        Nothing may be appended to the original from the turn in which the copy became level until the first step has
        come back.
        """
        move = self._moves.get(partition)
        if move is None or move.lag or not move.is_level:
            raise MoveRefused(f"the copy of {partition} is not level with its original")
        origin, target, source, copy = self._homes[partition], move.target, move.source, move.log
        try:
            with self._device(target):
                flush = copy.prepare_close()
                if flush is not None:
                    yield flush.run
                    if self._moves.get(partition) is move:
                        copy.flushed(flush)
                self._check_still_moving(move)
                copy.abandon()  # what was to be written is
                copy.note_cleaned(move.cleaned_to)
                taking = NameTaking(move, origin, config, now_ms=now_ms, on_event=self._on_event)
                yield taking.run
        except StorageFault as full:
            yield from self._dropping_full(move)
            raise MoveRefused(
                f"the copy of {partition} was dropped, as there was no room to finish it: {full}"
            ) from full
        if self._moves.get(partition) is not move or self._logs.get(partition) is not source:
            assert taking.taken is not None
            target.abandon(taking.taken)
        self._check_still_moving(move)
        log = taking.log()
        with self._device(target):
            if source.start_offset > log.start_offset:
                start = min(source.start_offset, log.end_offset)
                log.advance_start(start, start)
        del self._moves[partition]
        del target.futures[partition]
        self._install(target, partition, log)
        del origin.logs[partition]
        origin.abandon(source)
        return log

    def leaving(self, partition: TopicPartition, origin: LogDirectory) -> DiskSteps[FolderRemoval]:
        """The second half of a change-over: takes the name away from the folder in `origin`, and removes the marker."""
        target = self._homes[partition]
        gone = origin.name_of_gone(partition, FolderKind.DELETE, self._entropy)
        try:
            with self._device(origin):
                yield FolderRenaming(origin, [(origin.folder_name(partition), gone)]).run
        except StorageFault as fault:
            # The marker says at a start that it does not count. Until then it goes with the partition.
            origin.unopened[partition] = f"its copy in {target.path} has its place: {fault}"
            raise
        with self._device(target):
            yield partial(remove_marker, target, partition)
        return FolderRemoval(origin.disk, origin.path_of(gone), partition)

    def _check_still_moving(self, move: FutureLog) -> None:
        """Raises PartitionOffline where a directory has failed meanwhile; the next start goes on from what it finds."""
        if self._moves.get(move.partition) is not move or self._logs.get(move.partition) is not move.source:
            raise PartitionOffline(f"the move of {move.partition} to {move.target.path} was overtaken by a fault")

    def _dropping_full(self, move: FutureLog) -> DiskSteps[None]:
        if self._moves.get(move.partition) is not move:
            return
        del self._moves[move.partition]
        del move.target.futures[move.partition]
        move.target.abandon(move.log)
        dropped: list[str | None] = []
        with self._device(move.target):
            yield lambda: dropped.append(drop_copy(move, self._entropy))
        path = dropped[0]
        if path is not None:
            self.removals.append(FolderRemoval(move.target.disk, path, move.partition))

    # Checkpoints and the end

    def checkpointing(self, high_watermarks: Mapping[TopicPartition, int]) -> Steps[list[CheckpointWrite]]:
        """One write a directory, for workers; where `run` raises OSError, `fail_directory` is due."""
        writes = []
        for directory in [each for each in self._directories if each.is_online]:
            write = yield from directory.checkpointing(high_watermarks)
            writes.append(write)
        return writes

    def checkpointing_of(
        self, partition: TopicPartition, high_watermarks: Mapping[TopicPartition, int]
    ) -> Steps[CheckpointWrite | None]:
        """The same for the directory of one partition; None where it is not here."""
        home = self._homes.get(partition)
        return None if home is None else (yield from home.checkpointing(high_watermarks))

    def lowering(self, partition: TopicPartition, offset: int) -> DiskSteps[None]:
        """To be done before a log is cut back to `offset`: a recovery point above it must not survive a crash."""
        home = self._homes.get(partition)
        if home is None:
            return  # its directory has failed meanwhile
        with self._device(home):
            lowered = home.lowering(partition, offset)
            if lowered is not None:
                yield lowered

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
