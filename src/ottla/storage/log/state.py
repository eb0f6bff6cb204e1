"""What one partition's log knows of itself: its offsets, its parts, and what of it is not on the medium yet.

`log_append.py` adds the writing and `log.py` the reading and the rest; the modules that they call (rolling, truncation,
retention, flush) work on what is here.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final

from ottla.config import LogConfig
from ottla.model import ZERO_TOPIC_ID, TopicId, TopicPartition
from ottla.storage.errors import BadBatch, CorruptLog, StorageFault
from ottla.storage.log.append import rules_of, usual_attributes
from ottla.storage.log.epochs import EpochCache
from ottla.storage.log.flush import Flush, index_paths
from ottla.storage.log.indexes.indexed_file import LogContext
from ottla.storage.log.indexes.txn_index import AbortedTransaction
from ottla.storage.log.opening.loading import LoadedLog, load_epochs, load_producers
from ottla.storage.log.places import Places
from ottla.storage.log.producers.producer_state import ProducerStates
from ottla.storage.log.producers.snapshots import PendingSnapshot, replay
from ottla.storage.log.segment import Segment

if TYPE_CHECKING:
    from ottla.storage.cleaner.swap import Swap

#: The next batch is looked at by `rolling.before_batch`, whatever it is.
ALWAYS: Final = -2
#: The leader's epoch of the next batch has to be compared with the log's.
UNSET_EPOCH: Final = -2


class LogState:
    __slots__ = (
        *("_epochs", "_flush", "_future_ms", "_leader_epoch", "_opened_ms", "_producers"),
        *(
            "_rules",
            "_size_max",
            "_staged",
            "_staged_batches",
            "_staged_epochs",
            "_own_epoch",
            "_unflushed_since_ms",
            "_usual",
            "_usual_bits",
        ),
        *("around", "certain_end", "cleaned_to", "config", "end_offset", "generation", "names_changed", "next_offset"),
        *("pending_snapshot", "places"),
        *("recovery", "recovery_point", "roll_offset", "roll_size", "roll_timestamp", "size", "snapshots"),
        *("staged_aborted", "staged_end", "start_offset", "swap", "topic_id", "touched", "tp", "unsynced"),
        *("unsynced_paths", "waits_for"),
    )

    def __init__(
        self,
        around: LogContext,
        tp: TopicPartition,
        config: LogConfig,
        loaded: LoadedLog,
        recovery_point: int,
        now_ms: int,
    ) -> None:
        self.around = around
        self.tp = tp
        #: Set by the code that reads partition.metadata.
        self.topic_id: TopicId = ZERO_TOPIC_ID
        self.places = Places(loaded.segments)
        #: The first offset that is read; whole segments below it go with retention.
        self.start_offset = loaded.start_offset
        #: Behind the last batch that is written.
        self.end_offset = loaded.end_offset
        #: The same with what is staged: the next batch's first offset.
        self.next_offset = loaded.end_offset
        #: Everything below is on the medium.
        self.recovery_point = loaded.end_offset if loaded.report is None else min(recovery_point, loaded.end_offset)
        #: All records below are on the medium: above the recovery point only while a full disk has no room for what a
        #: start relies on beside them. recovery_point <= certain_end <= end_offset
        self.certain_end = self.recovery_point
        #: Bytes in all segments.
        self.size = sum(segment.size for segment in loaded.segments)
        #: For the next flush to write, or for the one that runs.
        self.pending_snapshot: PendingSnapshot | None = None
        #: What a start after a crash found; None after a clean stop.
        self.recovery = loaded.report
        self.snapshots = loaded.snapshots
        self._epochs = loaded.epochs
        #: The leader epoch that began last and the log's end then, for when the leader epochs before it are read.
        self._own_epoch: tuple[int, int] | None = None
        self._producers = loaded.producers
        self._opened_ms = now_ms
        #: Sealed segments with bytes that are not on the medium.
        self.unsynced = [segment for segment in loaded.segments if segment.sealed and not segment.is_clean]
        #: Small files written and not synced.
        self.unsynced_paths: list[str] = []
        for segment in self.unsynced:
            self.unsynced_paths.extend(index_paths(segment))
        self.names_changed = loaded.changed
        #: Whether a clean stop has anything to write.
        self.touched = loaded.report is not None
        #: Below this every key's older records are gone as far as the cleaner knew of younger ones; -1 where it never
        #: was here. From then on the log may have holes.
        self.cleaned_to = -1
        #: A cleaned segment that is about to take others' place.
        self.swap: Swap | None = None
        #: Counts cuts, each of which makes a running flush worthless.
        self.generation = 0
        self._flush: Flush | None = None
        self._unflushed_since_ms = -1
        self._staged: list[bytes | memoryview] = []
        #: Size, first and last offset, and largest timestamp of each staged batch.
        self._staged_batches: list[tuple[int, int, int, int]] = []
        self._staged_epochs: list[tuple[int, int]] = []
        self.staged_aborted: list[AbortedTransaction] = []
        self._leader_epoch = UNSET_EPOCH
        #: The active segment's size with what is staged. It is rolled before it passes `roll_size`, or a batch
        #: `roll_timestamp` or `roll_offset`.
        self.staged_end = self.active.size
        self.roll_size, self.roll_offset, self.roll_timestamp = ALWAYS, 0, 0
        #: What has to have room on the disk before anything is appended here; None where nothing has.
        self.waits_for: str | None = None
        self.reconfigure(config)

    def reconfigure(self, config: LogConfig) -> None:
        """Takes a changed configuration: from the next batch on, and the index interval from the next segment on."""
        self.config = config
        if config.index_interval_bytes != self.around.index_interval_bytes:
            self.around = self.around._replace(index_interval_bytes=config.index_interval_bytes)
        self._rules = rules_of(config)
        self._usual = usual_attributes(config)
        self._usual_bits = sum(1 << attributes for attributes in self._usual)
        self._size_max = min(config.max_message_bytes, config.segment_bytes)
        self._future_ms = config.message_timestamp_after_max_ms
        self.roll_size = ALWAYS

    def hold_back(self, waits_for: str) -> None:
        """Refuses what is appended, as on a full disk, until `go_on`."""
        self.waits_for = waits_for
        self.roll_size = ALWAYS

    def go_on(self) -> None:
        self.waits_for = None

    @contextmanager
    def telling(self) -> Iterator[None]:
        """Whatever is wrong with the files is raised as storage's own faults: callers of a log catch StorageFault."""
        try:
            yield
        except BadBatch as bad:
            raise CorruptLog(self.tp, self.directory, bad.position, bad.reason) from bad
        except OSError as error:
            raise StorageFault.of(self.directory, error) from error

    @property
    def takes_runs(self) -> bool:
        """Whether batches may pass without a look at each."""
        return self._usual_bits != 0

    @property
    def directory(self) -> str:
        return self.around.directory

    @property
    def segments(self) -> list[Segment]:
        return self.places.segments

    @property
    def active(self) -> Segment:
        return self.places.segments[-1]

    @property
    def epochs(self) -> EpochCache:
        if self._epochs is None:
            with self.telling():
                self._epochs = load_epochs(self.around, self.segments)
            dirty = self._epochs.dirty
            self._epochs.truncate_from_end(self.end_offset)
            # A leader epoch without records may stand in the file: the next start drops it again.
            self._epochs.dirty = dirty
            self._epochs.truncate_from_start(self.start_offset)
            if self._own_epoch is not None:
                self._epochs.begin(*self._own_epoch)
        return self._epochs

    def begin_epoch(self, epoch: int) -> None:
        """This broker leads from here on. Reads nothing: at a start, most logs' leader epochs are never asked for."""
        self._own_epoch = (epoch, self.end_offset)
        if self._epochs is not None:
            self._epochs.begin(epoch, self.end_offset)

    @property
    def has_new_epochs(self) -> bool:
        return self._epochs is not None and self._epochs.dirty

    @property
    def producers(self) -> ProducerStates:
        if self._producers is None:
            with self.telling():
                self._producers = load_producers(
                    self.tp,
                    self.segments,
                    self.snapshots,
                    self.start_offset,
                    self.end_offset,
                    self._opened_ms,
                )
        return self._producers

    @property
    def has_producers(self) -> bool:
        return self._producers is not None and len(self._producers) > 0

    def take_snapshot(self, *, is_needed: bool = False) -> None:
        """Freezes the state of producers at the log's end; the next flush writes it, and makes it certain.

        Unless one is being written already: then this one is left out. `is_needed`: a clean stop relies on it, and
        nothing is being written.
        """
        producers = self.producers
        if is_needed:
            self.settle_snapshot()
        if self.pending_snapshot is not None or self.snapshots.latest == self.end_offset:
            return
        frozen = producers.freeze()
        if frozen is not None:
            self.pending_snapshot = PendingSnapshot(self.snapshots, producers, frozen, self.end_offset)
            self.pending_snapshot.is_needed = is_needed

    def settle_snapshot(self) -> None:
        """No flush reads the frozen state any more. What was not written, or is not true any more, never was."""
        pending, self.pending_snapshot = self.pending_snapshot, None
        if pending is None:
            return
        pending.thaw()
        if pending.is_written and not pending.is_void:
            self.snapshots.taken(pending.offset, self.places.bases)
        else:
            with suppress(FileNotFoundError):
                self.around.disk.remove(pending.path)

    def start_moved(self, offset: int) -> None:
        """Nothing below `offset` is read any more."""
        if offset > self.start_offset:
            self.start_offset = offset
            if self._epochs is not None or self.places.segments[0].size or len(self.places.segments) > 1:
                self.epochs.truncate_from_start(offset)

    def forget_unsynced(self, gone: list[Segment]) -> None:
        """Segments have left the log, or changed in place: no running flush may speak for them."""
        self.unsynced = [segment for segment in self.unsynced if segment not in gone]

    def settle_swap(self) -> None:
        """Before the log is cut or closed: no cleaned segment stands between two names any more. It may block."""
        if self.swap is not None:
            with self.telling():
                self.swap.settle()

    def cut_at(self, offset: int) -> None:
        """The log's end has moved back to `offset`: everything that reached beyond it follows."""
        self.generation += 1
        self.end_offset = self.next_offset = offset
        self.recovery_point = min(self.recovery_point, offset)
        self.certain_end = min(self.certain_end, offset)
        self.cleaned_to = min(self.cleaned_to, offset)
        self.staged_end = self.active.size
        self.roll_size = ALWAYS
        self.touched = self.names_changed = True
        self._leader_epoch = UNSET_EPOCH
        self.epochs.truncate_from_end(offset)
        if self.pending_snapshot is not None:
            self.pending_snapshot.is_void = True
            if self._flush is None:
                self.settle_snapshot()
        self.snapshots.remove([each for each in self.snapshots.offsets if each > offset])
        producers = ProducerStates(self.tp)
        known = self.snapshots.restore(producers, offset, self._opened_ms)
        replay(producers, self.segments, max(known, self.start_offset), offset, self._opened_ms)
        self._producers = producers
