"""Moving a replica between log directories while it is in use.

A copy grows in a `-future` folder of the target directory. The partition's owner drives it: it calls `copy_step` again
and again, and when nothing is left to copy, and nothing more is appended, `LogDirectories.taking_over` and `.leaving`.
The original serves until the copy has taken over.

The change-over is two renames in two directories, which no file system makes one. So a marker lies in the target
directory from before the first to after the second (`formats/move_marker.py`):

    copy flushed and closed | marker | copy takes the name | original becomes -delete | marker removed

Every step is durable before the next, and a start after a crash at any point finds either one folder with the
partition's name, or two and the marker.
"""

from __future__ import annotations

import os.path
from contextlib import suppress

from ottla.config.log import LogConfig
from ottla.model import TopicPartition
from ottla.ports.entropy import Entropy
from ottla.ports.whole_files import write_atomically
from ottla.steps import DiskSteps, done_at_once
from ottla.storage.directories.directory import LogDirectory
from ottla.storage.directories.errors import MoveRefused
from ottla.storage.directories.events import LogWarnings, OnEvent
from ottla.storage.directories.placing import MadeLog, NewReplica, make_log
from ottla.storage.formats import move_marker
from ottla.storage.formats.errors import FormatError
from ottla.storage.formats.names import FolderKind, format_folder
from ottla.storage.formats.offset_checkpoint import HIGH_WATERMARKS
from ottla.storage.log.cold_reads import MissingPlace, missing_place
from ottla.storage.log.log import Log
from ottla.storage.log.opening.open_log import open_log
from ottla.storage.log.reader import EMPTY, Slice
from ottla.storage.log.replica_append import spanning
from ottla.storage.log.truncation import beginning_anew_at


class FutureLog:
    """A replica that is being copied. Invariant: `log` is a prefix of `source`, from the same start on."""

    __slots__ = ("_cleaned_to", "_generation", "folder", "log", "partition", "source", "target")

    def __init__(
        self,
        partition: TopicPartition,
        source: Log,
        target: LogDirectory,
        folder: str,
        log: Log,
        *,
        cleaned_to: int,
    ) -> None:
        self.partition = partition
        self.source = source
        self.target = target
        #: The `-future` folder's name.
        self.folder = folder
        self.log = log
        #: Of the source: once that was cut back, what was copied may be what is there no more.
        self._generation = source.durability.generation
        #: How far the source was clean before anything of it was copied. What a pass takes out of it later the copy may
        #: have.
        self._cleaned_to = cleaned_to

    @property
    def target_path(self) -> str:
        return self.target.path

    @property
    def is_level(self) -> bool:
        return self.log.start_offset == self.source.start_offset and self.log.end_offset == self.source.end_offset

    @property
    def lag(self) -> int:
        """Offsets that are still to be copied."""
        return max(self.source.end_offset - self.log.end_offset, 0)

    @property
    def cleaned_to(self) -> int:
        """How far the copy is clean; -1 where the cleaner never was in its source, so that it has no holes."""
        return min(self.source.cleaned_to, max(self._cleaned_to, self.log.start_offset))

    @property
    def is_void(self) -> bool:
        """Whether what was copied is worth nothing: the original was cut, or retention has overtaken the copy."""
        source, end = self.source, self.log.end_offset
        was_cut = self._generation != source.durability.generation
        return was_cut or not source.start_offset <= end <= source.end_offset

    @property
    def parts_from_source(self) -> bool:
        """Whether a copy that a start has found may have what its original has no more: that lost it in a crash, or was
        cut while nobody knew of the copy, or before that began again. What is of one leader epoch in both is the same;
        where that ends earlier in the original, another leader's records follow there, or none."""
        source, end, epoch = self.source, self.log.end_offset, self.log.epochs.latest
        if end > source.end_offset or epoch < 0:
            return end > source.end_offset
        known = source.epochs.end_offset_for(epoch, source.end_offset)
        return known is None or known[0] != epoch or known[1] < end

    def missing(self) -> MissingPlace | None:
        """What a worker is to read before the next step can be taken without waiting for the disk."""
        return missing_place(self.source, self.log.end_offset, self.source.end_offset)

    def next_piece(self, max_bytes: int) -> Slice:
        """What the next step is going to read."""
        source, copy = self.source, self.log
        if not source.start_offset <= copy.end_offset < source.end_offset:
            return EMPTY
        return source.read(copy.end_offset, max_bytes, source.end_offset)

    def copy_step(self, max_bytes: int) -> int:
        """Copies about `max_bytes` (one batch at least) and returns how many; 0 when the copy is level.

        Raises what appending and reading raise; the move can then only be cancelled, or its directory fails.
        """
        source, copy = self.source, self.log
        if self.is_void:
            self.start_over()
        copied = 0
        if copy.end_offset < source.end_offset:
            data = memoryview(source.read(copy.end_offset, max_bytes, source.end_offset).read())
            try:
                self._begin_with_batch(data)
                copy.stage_replica(data)
            finally:
                # What comes before a segment that is yet to be made (RollDue).
                copy.write_staged()
            copied = len(data)
        if source.start_offset > copy.start_offset:
            start = min(source.start_offset, copy.end_offset)
            copy.advance_start(start, start)
        return copied

    def _begin_with_batch(self, data: memoryview) -> None:
        """A source may begin in the middle of a batch, whose first records were deleted: its copy begins with all of
        it. As `start_over`."""
        copy = self.log
        first = spanning(data, copy.end_offset) if copy.start_offset == copy.end_offset else None
        if first is not None:
            done_at_once(beginning_anew_at(copy, first.base_offset, self._lowering))

    def starting_over(self) -> DiskSteps[None]:
        """Empties the copy. Its checkpointed recovery point goes first, or a crash could apply it to what comes. Raises
        RollDue while a worker makes its next segment."""
        generation = self.source.durability.generation
        yield from beginning_anew_at(self.log, self.source.start_offset, self._lowering)
        self._generation = generation
        self._cleaned_to = self.source.cleaned_to

    def _lowering(self, offset: int) -> DiskSteps[None]:
        lowered = self.target.lowering(self.partition, offset)
        if lowered is not None:
            yield lowered

    def start_over(self) -> None:
        """The same, with the caller waiting for the disk."""
        done_at_once(self.starting_over())


def marker_path(directory: LogDirectory, partition: TopicPartition) -> str:
    return os.path.join(directory.path, move_marker.file_name(partition))


def read_marker(directory: LogDirectory, partition: TopicPartition) -> int | None:
    """The end offset at the change-over; None where the marker is damaged, and then decides nothing."""
    try:
        return move_marker.decode(directory.disk.read_file(marker_path(directory, partition)))
    except (FormatError, FileNotFoundError):
        return None


def remove_marker(directory: LogDirectory, partition: TopicPartition) -> None:
    directory.disk.remove(marker_path(directory, partition))
    directory.disk.sync_directory(directory.path)


def copy_name(partition: TopicPartition, entropy: Entropy) -> str:
    try:
        return format_folder(partition, FolderKind.FUTURE, entropy.token(16).hex())
    except FormatError as error:
        raise MoveRefused(f"{partition} cannot be moved: {error}") from error


class CopyCreation:
    """An empty copy in the folder `name` of a directory, which a worker makes."""

    __slots__ = ("_on_event", "_prepare", "made", "name", "now_ms", "replica", "target")

    def __init__(self, target: LogDirectory, name: str, replica: NewReplica, *, now_ms: int, on_event: OnEvent) -> None:
        self.target = target
        self.name = name
        self.replica = replica
        self.now_ms = now_ms
        self.made: MadeLog | None = None
        self._on_event = on_event
        self._prepare = target.checkpoints.prepare_forgetting([replica.partition])

    def run(self) -> None:
        """Blocks; the copy is durable when it returns."""
        target = self.target
        self._prepare()
        folder = target.path_of(self.name)
        made = make_log(target, folder, self.replica, now_ms=self.now_ms, on_event=self._on_event, synced=True)
        try:
            target.disk.sync_directory(target.path)
        except OSError:
            # The move is refused, and a start would go on with it.
            target.abandon(made.log)
            with suppress(OSError):
                target.disk.remove_tree(folder)
            raise
        self.made = made

    def begin(self, source: Log) -> FutureLog:
        """Puts it into its directory's table, on the loop."""
        assert self.made is not None
        log, warnings, _ = self.made
        warnings.report()
        self.target.futures[self.replica.partition] = (self.name, log)
        return FutureLog(self.replica.partition, source, self.target, self.name, log, cleaned_to=source.cleaned_to)


class NameTaking:
    """The first half of the change-over: a level copy that is closed gets the partition's name, durably, in a worker.

    On a fault the original counts. Afterwards the original's name is to be taken away, and then the marker.
    """

    __slots__ = ("_checkpoint", "_config", "_end_offset", "_move", "_now_ms", "_start_offset", "_warnings", "taken")

    def __init__(
        self, move: FutureLog, origin: LogDirectory, config: LogConfig, *, now_ms: int, on_event: OnEvent
    ) -> None:
        partition, target = move.partition, move.target
        self._move = move
        self._config = config
        self._now_ms = now_ms
        self._end_offset, self._start_offset = move.log.end_offset, move.log.start_offset
        self._warnings = LogWarnings(target.path, partition, on_event)
        watermark = origin.checkpoints.offset(HIGH_WATERMARKS, partition, self._start_offset)
        self._checkpoint = target.prepare_checkpoints({partition: watermark})
        self.taken: Log | None = None

    def run(self) -> None:
        """Blocks; the name is certain when it returns."""
        move, target, partition = self._move, self._move.target, self._move.partition
        # The log start may stand nowhere else: it comes before the name, or a crash brings deleted records back.
        self._checkpoint.run()
        write_atomically(target.disk, marker_path(target, partition), move_marker.encode(self._end_offset))
        target.rename(move.folder, format_folder(partition))
        self.taken = open_log(
            target.disk,
            target.folder(partition),
            partition,
            self._config,
            now_ms=self._now_ms,
            clean=True,
            recovery_point=self._end_offset,
            start_offset=self._start_offset,
            cleaned_to=move.log.cleaned_to,
            on_warning=self._warnings,
            files=target.open_files,
        )

    def log(self) -> Log:
        """What was opened under the name, on the loop."""
        log = self.taken
        assert log is not None
        self._warnings.report()
        log.belongs_to(self._move.source.topic_id)
        assert (log.start_offset, log.end_offset) == (self._start_offset, self._end_offset)
        return log


def drop_copy(move: FutureLog, entropy: Entropy) -> str | None:
    """Undoes a change-over that had no room, in a worker; the original was in use all the time. Returns the `-delete`
    folder."""
    target, partition = move.target, move.partition
    dropped = None
    for name in (move.folder, format_folder(partition)):
        if target.disk.exists(os.path.join(target.path, name)):
            dropped = target.discard(name, partition, entropy)
    if target.disk.exists(marker_path(target, partition)):
        remove_marker(target, partition)
    return dropped
