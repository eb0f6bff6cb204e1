"""One partition's log: appends at its end, reads from anywhere in it.

A round of the network stages batches and then writes them, once a log: `stage` checks a batch, gives it its offsets
and stamps them into the caller's buffer; `write_staged` hands all of the round's buffers to the file in one call.
Nothing is visible before it is written, and `discard_staged` takes back what was not.

    start_offset <= end_offset <= next_offset        recovery_point <= certain_end <= end_offset

A log is made of parts. Each owns its fields: they are assigned in its own module and nowhere else, and its invariants
stand beside them (`tests/storage/log/test_log_ownership.py` looks after it).

                                      Log: the face, what concerns several parts, and what is configured
        ┌───────────────────────────────┼─────────────────────────┐
    Staging ─────────────────────▶ Durability                     │
    what is not written yet        what is on the medium          │
        │                               ├────────────────┐        │
        └──────▶ LeaderEpochs, ProducerMemory ◀──────────┘        │
                 read when they are first asked for               │
                      │                                           │
                      └────▶ Places ◀─────────────────────────────┘
                             what is written: segments, offsets, and where these lie

What changes several of them stands in modules of its own: `rolling.py`, `retention.py`, `truncation.py`.

Everything runs on the loop's thread, and what waits for the disk is a worker's: it comes back as an object whose `run`
blocks (`Flush`, `Removal`, and `Roll` where the log rolls apart), or is yielded by work in steps (`cutting_to`).
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from ottla.config import LogConfig
from ottla.model import ZERO_TOPIC_ID, TopicId, TopicPartition
from ottla.steps import DiskSteps, Steps, done_at_once
from ottla.storage.errors import BadBatch, CorruptLog, OffsetOutsideLog, RollDue, StorageFault
from ottla.storage.log import file_changes, retention, rolling, truncation
from ottla.storage.log.append import AppendResult, Origin
from ottla.storage.log.durability import Durability
from ottla.storage.log.epochs import EpochCache
from ottla.storage.log.file_changes import FileChange
from ottla.storage.log.flush import Flush
from ottla.storage.log.indexes import txn_lookup
from ottla.storage.log.indexes.time_lookup import (
    Lookup,
    TimestampOffset,
    first_at_or_after,
    of_largest_timestamp,
)
from ottla.storage.log.leader_epochs import LeaderEpochs
from ottla.storage.log.opening.loading import LoadedLog
from ottla.storage.log.places import Places, Spot
from ottla.storage.log.producers.memory import ProducerMemory
from ottla.storage.log.producers.producer_state import ActiveProducer, ProducerStates
from ottla.storage.log.producers.snapshots import Snapshots
from ottla.storage.log.reader import EMPTY, Slice
from ottla.storage.log.retention import Removal, SetAside
from ottla.storage.log.rolling import LogReading, Roll
from ottla.storage.log.segment import Segment
from ottla.storage.log.staging import Staging
from ottla.storage.log.truncation import NOT_LOWERED, Lowering

if TYPE_CHECKING:
    from ottla.storage.cleaner.swap import Swap

__all__ = ["Flush", "Log", "Removal", "TimestampOffset"]


class Log:
    __slots__ = (
        *("_is_held_back", "cleaned_to", "config", "durability", "leader_epochs", "places", "producer_memory"),
        *("recovery", "set_aside", "staging", "swap", "topic_id", "tp", "unfinished"),
    )

    def __init__(
        self,
        tp: TopicPartition,
        config: LogConfig,
        loaded: LoadedLog,
        *,
        recovery_point: int,
        cleaned_to: int,
        now_ms: int,
    ) -> None:
        """`opening/open_log.py` loads what a log is made from. The offsets are those of its checkpoints."""
        self.tp = tp
        #: The topic's; `staging` holds what follows from it.
        self.config = config
        #: As partition.metadata says; zeros until that is read.
        self.topic_id: TopicId = ZERO_TOPIC_ID
        #: What a start after a crash found; None after a clean stop.
        self.recovery = loaded.report
        self.places = Places(
            *(tp, loaded.around, loaded.segments, loaded.start_offset, loaded.end_offset),
            may_have_gaps=config.may_have_gaps or cleaned_to >= 0,
        )
        self.leader_epochs = LeaderEpochs(self.places, loaded.epochs)
        self.producer_memory = ProducerMemory(self.places, loaded.producers, loaded.snapshots, now_ms)
        self.durability = Durability(self.places, self.leader_epochs, self.producer_memory, loaded, recovery_point)
        self.staging = Staging(self.places, self.leader_epochs, self.producer_memory, self.durability, config)
        #: Below this every key's older records are gone as far as the cleaner knew of younger ones; -1 where it never
        #: was here, nor in a log that this one was copied from. From then on the log may have holes.
        self.cleaned_to = cleaned_to
        #: A cleaned segment that is about to take others' place: one at a time.
        self.swap: Swap | None = None
        #: What its files have yet to follow (`file_changes.py`), in order. Empty but while a change of them is under
        #: way, and where a fault has ended one.
        self.unfinished: list[FileChange] = []
        #: What retention has yet to hand out.
        self.set_aside = SetAside()
        self._is_held_back = False

    # -- what it is

    def belongs_to(self, topic_id: TopicId) -> None:
        """partition.metadata names the topic's id."""
        self.topic_id = topic_id

    def reconfigure(self, config: LogConfig) -> None:
        """Takes a changed configuration: from the next batch on, and the index interval from the next segment on."""
        self.config = config
        self.places.reconfigure(config.index_interval_bytes, may_have_gaps=config.may_have_gaps or self.cleaned_to >= 0)
        self.staging.reconfigure(config)

    def naming_faults(self) -> AbstractContextManager[None]:
        """Whatever is wrong with the files is raised as storage's own faults: callers of a log catch StorageFault."""
        return self.places.naming_faults()

    @property
    def directory(self) -> str:
        return self.places.around.directory

    @property
    def segments(self) -> list[Segment]:
        return self.places.segments

    @property
    def active(self) -> Segment:
        return self.places.segments[-1]

    @property
    def size(self) -> int:
        """Bytes in all segments."""
        return self.places.size

    @property
    def start_offset(self) -> int:
        """The first offset that is read."""
        return self.places.start_offset

    @property
    def end_offset(self) -> int:
        """Behind the last batch that is written."""
        return self.places.end_offset

    @property
    def next_offset(self) -> int:
        """The same with what is staged: the next batch's first offset."""
        return self.staging.next_offset

    @property
    def recovery_point(self) -> int:
        """Everything below is on the medium, with all that a start relies on."""
        return self.durability.recovery_point

    def begin_leader_epoch(self, epoch: int) -> None:
        """This broker leads from here on. Reads nothing."""
        self.leader_epochs.begin(epoch)
        self.staging.leader_epoch_began()

    @property
    def epochs(self) -> EpochCache:
        """Raises StorageFault where they are read for the first time and cannot be."""
        return self.leader_epochs.cache

    # -- appending

    def stage(
        self, records: memoryview, leader_epoch: int, now_ms: int, origin: Origin = Origin.CLIENT
    ) -> AppendResult:
        return self.staging.stage(records, leader_epoch, now_ms, origin)

    def stage_replica(self, records: memoryview, now_ms: int = 0, epoch_max: int | None = None) -> AppendResult:
        if self.cleaned_to < 0 and self.config.may_have_gaps:
            # Its leader may have cleaned what it sends. A start after a crash must not take the holes for damage,
            # whatever the policy is by then.
            self.note_cleaned(self.start_offset)
        return self.staging.stage_replica(records, now_ms, epoch_max)

    def write_staged(self) -> None:
        """Writes what is staged, in one call. On StorageFault nothing of it is in the log."""
        self.staging.write()

    def discard_staged(self) -> None:
        """Takes back what is staged and not written."""
        self.staging.discard()

    # -- reading

    def read(self, offset: int, max_bytes: int, limit_offset: int, *, whole_first_batch: bool = True) -> Slice:
        """Batches from the one that holds `offset`, all below `limit_offset`, within one segment.

        At most `max_bytes`, cutting the last batch, except that the first is whole however large; without
        `whole_first_batch` a first batch that is too large gives an empty slice. OffsetOutOfRange outside of the log.
        """
        places = self.places
        end = places.end_offset
        if not places.start_offset <= offset < limit_offset or offset >= end:
            if places.start_offset <= offset <= end:
                return EMPTY
            raise OffsetOutsideLog(offset, places.start_offset, end)
        try:
            spot = places.find(offset)
            if spot is None:
                return EMPTY
            segment, position, first_size, next_offset = spot
            stop = segment.size if limit_offset >= end else places.limit_position(segment, limit_offset)
            size = stop - position
            if size > max_bytes:
                size = max_bytes if first_size <= max_bytes else first_size if whole_first_batch else 0
            if size <= 0:
                return EMPTY
            if size < 2 * first_size:
                # Likely the only whole batch of this slice, so that the reader comes back for the next one.
                places.goes_on(next_offset, segment, position + first_size)
            return tuple.__new__(Slice, (segment.file, position, size))
        except BadBatch as bad:
            raise CorruptLog(self.tp, self.directory, bad.position, bad.reason) from bad
        except OSError as error:
            raise StorageFault.of(self.directory, error) from error

    def is_far(self, offset: int, limit_offset: int) -> bool:
        """Whether `read` might wait for the disk to find where they lie. Of a log that no broker serves it may."""
        places = self.places
        return (
            self.staging.rolls_apart
            and places.start_offset <= offset < min(limit_offset, places.end_offset)
            and (
                places.far_segment(offset) is not None
                or (limit_offset < places.end_offset and places.far_segment(limit_offset) is not None)
            )
        )

    def near(self, offset: int) -> Spot | None:
        """Where the batch of an offset lies; None where there is none, and where the disk might have to be waited for
        to find out. Raises BadBatch and OSError."""
        places = self.places
        end = places.end_offset
        if not places.start_offset <= offset < end or self.is_far(offset, end):
            return None
        return places.find(offset)

    def look_up(self, timestamp: int, limit_offset: int) -> Lookup:
        """The first record below `limit_offset` with at least this timestamp, in steps of milliseconds at most."""
        with self.naming_faults():
            return (yield from first_at_or_after(self, timestamp, limit_offset))

    def look_up_largest(self) -> Lookup:
        with self.naming_faults():
            return (yield from of_largest_timestamp(self))

    # -- producers and transactions

    @property
    def producers(self) -> ProducerStates:
        """Raises StorageFault where they are read for the first time and cannot be."""
        return self.producer_memory.states

    @property
    def producers_at_hand(self) -> ProducerStates:
        """The same; raises RollDue where a worker has to read them first."""
        return rolling.producers_at_hand(self.staging)

    @property
    def has_producers(self) -> bool:
        return self.producer_memory.has_any

    @property
    def snapshots(self) -> Snapshots:
        return self.producer_memory.snapshots

    @property
    def first_unstable_offset(self) -> int | None:
        """Where the oldest open transaction begins, or the log; None where none is open. For tests."""
        memory = self.producer_memory
        return None if memory.knows_of_none else self._within(memory.states.first_open())

    def first_unstable(self, high_watermark: int) -> int | None:
        """Where the oldest transaction begins that is open, or whose marker the high watermark has not passed."""
        memory = self.producer_memory
        return None if memory.knows_of_none else self._within(memory.states.first_unstable(high_watermark))

    def committed_to(self, high_watermark: int) -> None:
        """The high watermark has moved."""
        producers = self.producer_memory.loaded
        if producers is not None:
            producers.committed_to(high_watermark)

    def _within(self, offset: int | None) -> int | None:
        """Records of an open transaction may be deleted."""
        return offset if offset is None or offset >= self.places.start_offset else self.places.start_offset

    def aborted_transactions(self, first: int, last_exclusive: int) -> list[tuple[int, int]]:
        """Producer id and first offset of each aborted transaction that overlaps the range of offsets."""
        with self.naming_faults():
            return txn_lookup.overlapping(self, first, last_exclusive)

    def aborted_in(self, first: int, piece: Slice, last_exclusive: int) -> list[tuple[int, int]]:
        """The same for what was read at `first`, of which a reader sees nothing at or above `last_exclusive`."""
        with self.naming_faults():
            end = txn_lookup.range_of(self, first, piece, last_exclusive)
            if end is None:
                return []
            known = self.places.known_aborted(first, end)
            return txn_lookup.overlapping(self, first, end) if known is None else known

    def describe_producers(self) -> list[ActiveProducer]:
        """Raises StorageFault where they are read for the first time and cannot be."""
        return self.producers.describe()

    def describing_producers(self) -> Steps[list[ActiveProducer]]:
        """The same in steps, but for the reading: each as it is when it is reached."""
        return (yield from self.producers.describing())

    # -- flushing

    def flush_due(self, now_ms: int) -> bool:
        """Whether flush.messages, flush.ms or a sealed segment asks for a flush."""
        return self.durability.is_due(self.config, now_ms)

    def prepare_flush(self) -> Flush | None:
        """What a worker is to bring to the medium; None where nothing is to do or a flush is running.

        After a flush has failed this raises StorageFault for good.
        """
        return self.durability.prepare(closing=False)

    def prepare_close(self) -> Flush | None:
        """The same before a clean stop, with all that a start after it relies on. `close` does it where it was not."""
        self.discard_staged()
        done_at_once(self.following())
        self.settle_swap()
        return self.durability.prepare(closing=True)

    def flushed(self, flush: Flush) -> None:
        """Takes note that a flush has run: the recovery point moves up."""
        self.durability.flushed(flush)

    # -- what is kept

    def roll(self, now_ms: int) -> None:
        """Seals the active segment, if there is anything in it. Raises RollDue where a worker has to make the next."""
        del now_ms
        self.write_staged()
        if not self.active.size:
            return
        if self.staging.rolls_apart:
            if self.staging.roll_base is None:
                self.staging.want_roll(self.end_offset)
            raise RollDue(self.tp, self.directory)
        rolling.roll(self.staging, self.end_offset)

    def prepare_roll(self) -> Roll | LogReading | None:
        """What a worker is to make for the roll that was asked for; None where there is nothing to make.

        `rolled` or `roll_failed` follows, also where this raises StorageFault.
        """
        with self.naming_faults():
            return rolling.prepare(self.staging)

    def rolled(self, begun: Roll | LogReading | None) -> None:
        """The worker has made it: the log goes on in its next segment."""
        rolling.finish(self.staging, begun)

    def roll_failed(self, begun: Roll | LogReading | None) -> None:
        """The log goes on in the segment that it has."""
        rolling.failed(self.staging, begun)

    @property
    def is_abandoned(self) -> bool:
        """Closed, and its files are somebody else's."""
        return self.durability.is_given_up

    @property
    def is_rolling(self) -> bool:
        """Whether its next segment is due, or being made: nothing is appended, and nothing else changes its files."""
        return self.staging.roll_base is not None

    def roll_due(self, now_ms: int) -> bool:
        """Whether the active segment is older than segment.ms, though nobody appends to it."""
        with self.naming_faults():
            return rolling.roll_due(self.staging, now_ms)

    def may_expire(self, now_ms: int, high_watermark: int) -> bool:
        """Whether `expiring` may find anything, as far as is known without a look at the disk."""
        return retention.may_expire(self, now_ms, high_watermark)

    def expiring(self, now_ms: int, high_watermark: int) -> DiskSteps[list[Removal]]:
        """Takes out what retention does not keep, as many segments as are taken at once."""
        self.write_staged()
        with self.naming_faults():
            return (yield from retention.expiring(self, now_ms, high_watermark))

    def cutting_to(
        self, offset: int, lowering: Lowering = NOT_LOWERED, ends: Callable[[], None] = lambda: None
    ) -> DiskSteps[None]:
        """Drops the batches that end at or above `offset`. See `truncation.py` for what the call-backs are."""
        with self.naming_faults():
            yield from truncation.cutting_to(self, offset, lowering, ends)

    def beginning_anew_at(
        self, offset: int, lowering: Lowering = NOT_LOWERED, ends: Callable[[], None] = lambda: None
    ) -> DiskSteps[None]:
        with self.naming_faults():
            yield from truncation.beginning_anew_at(self, offset, lowering, ends)

    def advance_start(self, offset: int, high_watermark: int | None = None) -> None:
        """DeleteRecords: nothing below `offset` is read any more. OffsetOutOfRange above the high watermark."""
        truncation.advance_start(self, offset, self.end_offset if high_watermark is None else high_watermark)

    def start_moved(self, offset: int) -> None:
        """Nothing below `offset` is read any more."""
        if offset > self.places.start_offset:
            self.places.start_moved(offset)
            self.leader_epochs.start_moved()

    def follow_cut(self, *, keeps_snapshots: bool = True) -> list[str]:
        """The log's end has moved back: everything that reached beyond it follows. The paths of snapshots that go."""
        offset = self.places.end_offset
        self.durability.cut_at(offset)
        self.cleaned_to = min(self.cleaned_to, offset)
        self.staging.discard()
        self.leader_epochs.cut_at(offset)
        return self.producer_memory.cut_at(
            offset, is_flushing=self.durability.writes_snapshot, keeps_snapshots=keeps_snapshots
        )

    # -- its files, where it has changed and they are yet to follow

    def begin_change(self, change: FileChange) -> None:
        """The log has become another in memory: `file_changes.following` is due."""
        self.unfinished.append(change)

    def change_followed(self, change: FileChange) -> None:
        self.unfinished.remove(change)

    def changes_stopped(self) -> None:
        """Files that say something else than the log are not gone on in."""
        if any(change.holds_back for change in self.unfinished):
            self.staging.hold_back(self.directory)
            self.durability.hold()
            self._is_held_back = True
        elif self._is_held_back:
            self.staging.go_on()
            self.durability.let_go()
            self._is_held_back = False

    def following(self) -> DiskSteps[None]:
        """Has the files follow what the log is, where a fault has left that undone."""
        with self.naming_faults():
            yield from file_changes.following(self)

    # -- the cleaner

    def note_cleaned(self, offset: int) -> None:
        """The cleaner has been here, and has looked at everything below `offset`."""
        self.cleaned_to = offset
        self.places.cleaned()

    def begin_swap(self, swap: Swap) -> None:
        assert self.swap is None, "one at a time"
        self.swap = swap

    def end_swap(self, swap: Swap) -> None:
        if self.swap is swap:
            self.swap = None

    def settling_swap(self) -> DiskSteps[None]:
        """Before the log is cut or closed: no cleaned segment stands between two names any more."""
        if self.swap is not None:
            with self.naming_faults():
                yield from self.swap.settling()

    def settle_swap(self) -> None:
        """The same with the caller waiting for the disk."""
        done_at_once(self.settling_swap())

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
        self.durability.give_up()
        for segment in self.segments:
            segment.close()
