"""One partition's log: appends at its end, reads from anywhere in it.

A round of the network stages batches and then writes them, once a log: `stage` checks a batch, gives it its offsets
and stamps them into the caller's buffer; `write_staged` hands all of the round's buffers to the file in one call.
Nothing is visible before it is written, and `discard_staged` takes back what was not.

    start_offset <= end_offset <= next_offset        recovery_point <= end_offset

Everything runs on the loop's thread and never waits, except for the disk's own reads and writes. What blocks longer
comes back as an object whose `run` a worker calls: `Flush`, `Removal`.
"""

from __future__ import annotations

import errno
from collections.abc import Callable
from typing import NamedTuple

from ottla.config import LogConfig
from ottla.model import TopicPartition
from ottla.ports import Disk
from ottla.steps import Steps
from ottla.storage.errors import BadBatch, CorruptLog, FaultKind, OffsetOutsideLog, StorageFault
from ottla.storage.log import flush as flushes
from ottla.storage.log import retention, rolling, truncation
from ottla.storage.log.flush import Flush
from ottla.storage.log.indexes import txn_lookup
from ottla.storage.log.indexes.indexed_file import LogContext
from ottla.storage.log.indexes.time_lookup import (
    Lookup,
    TimestampOffset,
    at_once,
    first_at_or_after,
    of_largest_timestamp,
)
from ottla.storage.log.open_files import OpenFiles
from ottla.storage.log.opening.loading import begun, load
from ottla.storage.log.producers.producer_state import ActiveProducer
from ottla.storage.log.producers.snapshots import Snapshots
from ottla.storage.log.reader import EMPTY, Slice
from ottla.storage.log.retention import Removal
from ottla.storage.log.staging import AppendableLog

__all__ = ["Flush", "Log", "Removal", "SegmentInfo", "TimestampOffset"]


class SegmentInfo(NamedTuple):
    base_offset: int
    size: int
    path: str


class Log(AppendableLog):
    __slots__ = ()

    @classmethod
    def open(
        cls,
        disk: Disk,
        directory: str,
        tp: TopicPartition,
        config: LogConfig,
        *,
        now_ms: int,
        clean: bool,
        recovery_point: int = 0,
        start_offset: int = 0,
        cleaned_to: int = -1,
        on_warning: Callable[[str], None] = lambda _: None,
        files: OpenFiles | None = None,
    ) -> Log:
        """Loads the log in a folder, or begins one there; raises CorruptLog, StorageFault.

        `files` bounds what all logs of a directory hold open. It is not used before this returns, so that threads may
        open several logs at once. `cleaned_to` is the cleaner's checkpoint: a log that it was in may have holes.
        """
        around = LogContext(disk, directory, OpenFiles(), config.index_interval_bytes, on_warning)
        try:
            loaded = load(
                around,
                tp,
                clean=clean,
                recovery_point=recovery_point,
                start_offset=start_offset,
                now_ms=now_ms,
                gaps_allowed=config.may_have_gaps or cleaned_to >= 0,
            )
        except OSError as error:
            raise StorageFault.of(directory, error) from error
        if files is not None:
            around = loaded.kept_in(files)
        log = cls(around, tp, config, loaded, recovery_point, now_ms)
        log.cleaned_to = cleaned_to
        return log

    @classmethod
    def begin(
        cls,
        disk: Disk,
        directory: str,
        tp: TopicPartition,
        config: LogConfig,
        *,
        now_ms: int,
        on_warning: Callable[[str], None],
        files: OpenFiles,
    ) -> Log:
        """Begins a log in a folder that has just been made: there is nothing in it to look for. Raises StorageFault.

        `files` is not used before this returns.
        """
        around = LogContext(disk, directory, OpenFiles(), config.index_interval_bytes, on_warning)
        try:
            loaded = begun(around, Snapshots(around), 0)
        except OSError as error:
            raise StorageFault.of(directory, error) from error
        return cls(loaded.kept_in(files), tp, config, loaded, 0, now_ms)

    # -- reading

    def read(self, offset: int, max_bytes: int, limit_offset: int, *, whole_first_batch: bool = True) -> Slice:
        """Batches from the one that holds `offset`, all below `limit_offset`, within one segment.

        At most `max_bytes`, cutting the last batch, except that the first is whole however large; without
        `whole_first_batch` a first batch that is too large gives an empty slice. OffsetOutOfRange outside of the log.
        """
        end = self.end_offset
        if not self.start_offset <= offset < limit_offset or offset >= end:
            if self.start_offset <= offset <= end:
                return EMPTY
            raise OffsetOutsideLog(offset, self.start_offset, end)
        try:
            spot = self.places.find(offset, end)
            if spot is None:
                return EMPTY
            segment, position, first_size, next_offset = spot
            stop = segment.size if limit_offset >= end else self.places.limit_position(segment, limit_offset, end)
            size = stop - position
            if size > max_bytes:
                size = max_bytes if first_size <= max_bytes else first_size if whole_first_batch else 0
            if size <= 0:
                return EMPTY
            if size < 2 * first_size:
                # Likely the only whole batch of this slice, so that the reader comes back for the next one.
                self.places.goes_on(next_offset, segment, position + first_size)
            return tuple.__new__(Slice, (segment.file, position, size))
        except BadBatch as bad:
            raise CorruptLog(self.tp, self.directory, bad.position, bad.reason) from bad
        except OSError as error:
            raise StorageFault.of(self.directory, error) from error

    def offset_for_timestamp(self, timestamp: int, limit_offset: int) -> TimestampOffset | None:
        """The first record below `limit_offset` with at least this timestamp."""
        return at_once(self.look_up(timestamp, limit_offset))

    def max_timestamp_offset(self) -> TimestampOffset | None:
        """The record with the largest timestamp."""
        return at_once(self.look_up_largest())

    def look_up(self, timestamp: int, limit_offset: int) -> Lookup:
        """As `offset_for_timestamp`, in steps that take milliseconds at most."""
        with self.telling():
            return (yield from first_at_or_after(self, timestamp, limit_offset))

    def look_up_largest(self) -> Lookup:
        with self.telling():
            return (yield from of_largest_timestamp(self))

    # -- transactions

    @property
    def first_unstable_offset(self) -> int | None:
        """Where the oldest open transaction begins; None where none is open."""
        if self._producers is None and not self.snapshots.offsets:
            return None
        return self.producers.first_open()

    def first_unstable(self, high_watermark: int) -> int | None:
        """The same with ended transactions counted as open until the high watermark has passed their markers."""
        if self._producers is None and not self.snapshots.offsets:
            return None
        return self.producers.first_unstable(high_watermark)

    def aborted_transactions(self, first: int, last_exclusive: int) -> list[tuple[int, int]]:
        """Producer id and first offset of each aborted transaction that overlaps the range of offsets."""
        with self.telling():
            return txn_lookup.overlapping(self, first, last_exclusive)

    def aborted_in(self, first: int, piece: Slice, last_exclusive: int) -> list[tuple[int, int]]:
        """The same for what was read at `first`, of which a reader sees nothing at or above `last_exclusive`."""
        with self.telling():
            return txn_lookup.overlapping_slice(self, first, piece, last_exclusive)

    def describe_producers(self) -> list[ActiveProducer]:
        """Raises StorageFault where they are read for the first time and cannot be."""
        return self.producers.describe()

    def describing_producers(self) -> Steps[list[ActiveProducer]]:
        """The same in steps, but for the reading: each as it is when it is reached."""
        return (yield from self.producers.describing())

    # -- flushing

    def flush_due(self, now_ms: int) -> bool:
        """Whether flush.messages, flush.ms or a sealed segment asks for a flush."""
        if self._flush is not None:
            return False
        unflushed = self.end_offset - self.recovery_point
        if unflushed >= self.config.flush_messages or self.unsynced or self.pending_snapshot is not None:
            return True
        if unflushed <= 0:
            self._unflushed_since_ms = -1
        elif self._unflushed_since_ms < 0:
            self._unflushed_since_ms = now_ms
        else:
            return now_ms - self._unflushed_since_ms >= self.config.flush_ms
        return False

    def prepare_flush(self) -> Flush | None:
        """What a worker is to bring to the medium; None where nothing is to do or a flush is running.

        After a flush has failed this raises StorageFault for good.
        """
        return self._prepare(closing=False)

    def prepare_close(self) -> Flush | None:
        """The same before a clean stop, with all that a start after it relies on. `close` does it where it was not."""
        self.discard_staged()
        self.settle_swap()
        return self._prepare(closing=True)

    def _prepare(self, *, closing: bool) -> Flush | None:
        running = self._flush
        if running is not None:
            if running.failed:
                raise StorageFault(FaultKind.DIRECTORY_FAILED, self.directory, OSError(errno.EIO, "a flush has failed"))
            return None
        self._flush = flushes.prepare(self, closing=closing)
        return self._flush

    def flushed(self, flush: Flush) -> None:
        """Takes note that a flush has run: the recovery point moves up."""
        assert flush is self._flush
        self._flush = None
        self._unflushed_since_ms = -1
        flushes.settle(self, flush)

    def flush_refused(self, flush: Flush) -> None:
        """Takes note that a flush found no room for a file beside the log: the next one does it all again."""
        assert flush is self._flush
        self.flush_lost()

    def flush_lost(self) -> None:
        """The same after a fault of ours, where a flush is under way that no worker has, and that has not failed."""
        flush = self._flush
        if flush is not None and not flush.failed:
            self._flush = None
            flush.release()
            flushes.take_back(self, flush)

    # -- what is kept

    def roll(self, now_ms: int) -> None:
        """Seals the active segment, if there is anything in it."""
        del now_ms
        self.write_staged()
        if self.active.size:
            rolling.roll(self, self.end_offset)

    def roll_due(self, now_ms: int) -> bool:
        """Whether the active segment is older than segment.ms, though nobody appends to it."""
        with self.telling():
            return rolling.roll_due(self, now_ms)

    def expire(self, now_ms: int, high_watermark: int) -> list[Removal]:
        """Takes out what retention does not keep, as many segments as are taken at once."""
        self.write_staged()
        with self.telling():
            return retention.expire(self, now_ms, high_watermark)

    def end_if_cut_at(self, offset: int) -> int:
        """Where `truncate_to` would make the log end."""
        with self.telling():
            return truncation.end_if_cut_at(self, offset)

    def truncate_to(self, offset: int) -> None:
        """Drops the batches that end at or above `offset`. See `truncation.py` for what the caller does next."""
        with self.telling():
            truncation.truncate_to(self, offset)

    def truncate_fully_and_start_at(self, offset: int) -> None:
        with self.telling():
            truncation.truncate_fully_and_start_at(self, offset)

    def advance_start(self, offset: int, high_watermark: int | None = None) -> None:
        """DeleteRecords: nothing below `offset` is read any more. OffsetOutOfRange above the high watermark."""
        truncation.advance_start(self, offset, self.end_offset if high_watermark is None else high_watermark)

    def describe(self) -> list[SegmentInfo]:
        return [SegmentInfo(segment.base_offset, segment.size, segment.path()) for segment in self.segments]

    # -- the end

    def close(self) -> None:
        """Leaves the log as a clean stop does: everything on the medium, nothing open."""
        try:
            flush = self.prepare_close()
            if flush is not None:
                flush.run()
                self.flushed(flush)
        except OSError as error:
            raise StorageFault.of(self.directory, error) from error
        finally:
            self.abandon()

    def abandon(self) -> None:
        """Closes the files and writes nothing: the directory has failed, or the partition is deleted."""
        if self._flush is not None:
            self._flush.is_given_up = True
        for segment in self.segments:
            segment.close()
