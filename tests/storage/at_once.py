"""What the storage does in steps and its workers, done at once with the test waiting for the disk."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ottla.config import LogConfig
from ottla.model import TopicPartition
from ottla.records.errors import RecordError
from ottla.replication.follower import Follower
from ottla.steps import at_once, done_at_once
from ottla.storage.cleaner.dirt import Dirt, looking_for_dirt
from ottla.storage.cleaner.rounds import Changing, InProcess, InTurns, OnThread, PassResult, Step
from ottla.storage.cleaner.rounds import Steps as CleanerSteps
from ottla.storage.directories.checkpoints import CheckpointWrite
from ottla.storage.directories.directories import LogDirectories
from ottla.storage.directories.moving import FutureLog
from ottla.storage.directories.removal import FolderRemoval
from ottla.storage.errors import passes
from ottla.storage.log.indexes.time_lookup import FromDisk, Lookup, LookupPause, TimestampOffset
from ottla.storage.log.log import Log
from ottla.storage.log.retention import Removal

# -- logs


def cut_to(log: Log, offset: int) -> None:
    done_at_once(log.cutting_to(offset))


def begin_anew_at(log: Log, offset: int) -> None:
    done_at_once(log.beginning_anew_at(offset))


def cut_to_leader(follower: Follower, leader_epoch: int, leader_end: int) -> int:
    return done_at_once(follower.cutting_to_leader(leader_epoch, leader_end))


def expire(log: Log, now_ms: int, high_watermark: int) -> list[Removal]:
    return done_at_once(log.expiring(now_ms, high_watermark))


def first_at_or_after(log: Log, timestamp: int, limit_offset: int) -> TimestampOffset | None:
    return _found(log.look_up(timestamp, limit_offset))


def of_largest_timestamp(log: Log) -> TimestampOffset | None:
    return _found(log.look_up_largest())


def _found(lookup: Lookup) -> TimestampOffset | None:
    try:
        step = next(lookup)
        while True:
            if isinstance(step, LookupPause):
                step = lookup.send(None)
                continue
            if isinstance(step, FromDisk):
                step.work()
                step = lookup.send(None)
                continue
            try:
                result = step.work(*step.arguments())
            except RecordError as error:
                step = lookup.throw(error)
            else:
                step = lookup.send(result)
    except StopIteration as end:
        found: TimestampOffset | None = end.value
        return found


# -- the cleaner


def dirt_of(log: Log, stable_offset: int, now_ms: int) -> Dirt:
    return done_at_once(looking_for_dirt(log, stable_offset, now_ms))


def clean(cleaning: CleanerSteps) -> PassResult:
    """A whole pass."""
    try:
        step = next(cleaning)
        while True:
            try:
                result = done(step)
            except Exception as error:
                step = cleaning.throw(error)
            else:
                step = cleaning.send(result)
    except StopIteration as end:
        outcome: PassResult = end.value
        return outcome


def done(step: Step) -> Any:
    """What one step of a pass returns."""
    match step:
        case InProcess(work, arguments):
            return work(*arguments)
        case OnThread(work):
            return work()
        case InTurns(long):
            return at_once(long)
        case Changing(change):
            return done_at_once(change)


# -- directories


def start_move(
    directories: LogDirectories, partition: TopicPartition, path: str, config: LogConfig, *, now_ms: int
) -> FutureLog | None:
    return done_at_once(directories.starting_move(partition, path, config, now_ms=now_ms))


def finish_move(
    directories: LogDirectories, partition: TopicPartition, config: LogConfig, *, now_ms: int
) -> tuple[Log, FolderRemoval]:
    origin = directories.home_of(partition)
    log = done_at_once(directories.taking_over(partition, config, now_ms=now_ms))
    assert origin is not None
    return log, done_at_once(directories.leaving(partition, origin))


def cancel_move(directories: LogDirectories, partition: TopicPartition) -> FolderRemoval | None:
    return done_at_once(directories.dropping_copy(partition))


def lower(directories: LogDirectories, partition: TopicPartition, offset: int) -> None:
    done_at_once(directories.lowering(partition, offset))


def prepare_checkpoints(
    directories: LogDirectories, high_watermarks: Mapping[TopicPartition, int]
) -> list[CheckpointWrite]:
    return at_once(directories.checkpointing(high_watermarks))


def write_checkpoints(directories: LogDirectories, high_watermarks: Mapping[TopicPartition, int]) -> None:
    for write in prepare_checkpoints(directories, high_watermarks):
        try:
            write.run()
        except OSError as error:
            if not passes(error):
                directories.fail_directory(write.directory, error.strerror or str(error))
