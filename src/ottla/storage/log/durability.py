"""How much of a log is on the medium, and what is to be done for the rest.

    recovery_point <= certain_end <= the log's end

A flush is prepared here, on the loop, and run by a worker (`flush.py`). There is one at a time, and what it is to do is
taken from the fields below into it; where it comes to no good end they get it back:

    none ──prepare──▶ running ──flushed──▶ none: both offsets have moved up to where the log ended when it was prepared
                         │ refused, lost ▶ none: all that it was to do is due again
                         └ failed ───────▶ for good: `prepare` raises StorageFault from then on

A cut in the meantime (`generation`) makes what it has synced worthless: the offsets stay, and all is due again.
"""

from __future__ import annotations

import errno
from collections.abc import Sequence

from ottla.config import LogConfig
from ottla.storage.errors import FaultKind, StorageFault
from ottla.storage.formats import epoch_checkpoint
from ottla.storage.formats.names import TXN_INDEX
from ottla.storage.log.flush import UNWRITTEN_ABORTED_MAX, UNWRITTEN_ENTRIES_MAX, Flush, index_paths
from ottla.storage.log.indexes.index_writes import BesideWrite
from ottla.storage.log.leader_epochs import LeaderEpochs
from ottla.storage.log.opening.loading import LoadedLog
from ottla.storage.log.places import Places
from ottla.storage.log.producers.memory import ProducerMemory
from ottla.storage.log.segment import Segment


class Durability:
    __slots__ = (
        *(
            "_flush",
            "_complete_end",
            "_is_touched",
            "_leader_epochs",
            "_places",
            "_producer_memory",
            "_unflushed_since_ms",
        ),
        *(
            "_unsynced",
            "_unsynced_paths",
            "certain_end",
            "generation",
            "is_given_up",
            "is_held",
            "is_wanted",
            "names_changed",
            "recovery_point",
        ),
    )

    def __init__(
        self,
        places: Places,
        leader_epochs: LeaderEpochs,
        producer_memory: ProducerMemory,
        loaded: LoadedLog,
        recovery_point: int,
    ) -> None:
        self._places = places
        self._leader_epochs = leader_epochs
        self._producer_memory = producer_memory
        #: Everything below is on the medium, with all that a start relies on.
        self.recovery_point = loaded.end_offset if loaded.report is None else min(recovery_point, loaded.end_offset)
        #: All records below are on the medium: above the recovery point only while a full disk has no room for what a
        #: start relies on beside them.
        self.certain_end = self.recovery_point
        #: Sealed segments with bytes that are not on the medium. The active one is looked at with each flush.
        self._unsynced = [segment for segment in loaded.segments if segment.sealed and not segment.is_clean]
        #: Small files written and not synced.
        self._unsynced_paths: list[str] = []
        for segment in self._unsynced:
            self._unsynced_paths.extend(index_paths(segment))
        if loaded.report is not None and places.active.may_have_aborted:
            # Recovery has written those above the recovery point.
            self._unsynced_paths.append(places.active.path(TXN_INDEX))
        #: Whether files in the folder came, went, or were renamed since it was synced.
        self.names_changed = loaded.changed
        #: Up to here, all that a clean stop writes beside the log is written; and whether more has changed since than
        #: that batches were appended.
        self._complete_end = loaded.end_offset
        self._is_touched = loaded.report is not None
        #: The log is closed: nothing is done for it any more.
        self.is_given_up = False
        #: The log's files are being cut: nothing is flushed until they are.
        self.is_held = False
        #: Many aborted transactions wait to be written.
        self.is_wanted = False
        #: Counts cuts, each of which makes a running flush worthless.
        self.generation = 0
        #: The one that runs, or has failed.
        self._flush: Flush | None = None
        #: Since when, as far as `is_due` has seen, there is something to flush; -1 where there is nothing.
        self._unflushed_since_ms = -1

    # -- what is to be done

    def note_names(self) -> None:
        """Files in the folder came, went, or were renamed."""
        self.names_changed = True

    def note_unsynced(self, path: str) -> None:
        """A small file of the folder is written, and on the medium with the next flush."""
        self._unsynced_paths.append(path)

    def sealed(self, segment: Segment) -> None:
        """The log goes on in another segment than this one."""
        self._unsynced_paths.extend(index_paths(segment))
        if not segment.is_clean:
            self._unsynced.append(segment)

    def segments_changed(self, gone: Sequence[Segment] = ()) -> None:
        """The log has other segments than before. No running flush may speak for those that are gone."""
        self.names_changed = self._is_touched = True
        self.forget(gone)

    def forget(self, gone: Sequence[Segment]) -> None:
        """Segments have left the log, or changed in place: no running flush may speak for them."""
        self._unsynced = [segment for segment in self._unsynced if segment not in gone]

    def is_certain(self, segment: Segment) -> bool:
        """Whether the segment would be there after a power cut. Its name is once the flush behind it has run."""
        if segment.base_offset == self.recovery_point:
            return not self.names_changed and self._flush is None
        return segment.base_offset < self.recovery_point

    def aborted_waits(self) -> None:
        """Another aborted transaction of the active segment is not in its file yet."""
        self.is_wanted = self._places.active.aborted_waiting >= UNWRITTEN_ABORTED_MAX

    def hold(self) -> None:
        """No flush begins from now on."""
        self.is_held = True

    def let_go(self) -> None:
        self.is_held = False

    def lower(self, offset: int) -> None:
        """The log is to be cut at `offset`: no checkpoint that is taken from now on says more."""
        self.recovery_point = min(self.recovery_point, offset)
        self.certain_end = min(self.certain_end, offset)

    def cut_at(self, offset: int) -> None:
        """The log ends at `offset`, and there may be other records there than before."""
        self.generation += 1
        self.recovery_point = min(self.recovery_point, offset)
        self.certain_end = min(self.certain_end, offset)
        self._is_touched = self.names_changed = True

    # -- flushes

    @property
    def is_flushing(self) -> bool:
        return self._flush is not None

    @property
    def writes_snapshot(self) -> bool:
        """Whether a running flush has the producers' snapshot that waits."""
        return self._flush is not None and self._flush.snapshot is not None

    def indexes_are_written(self) -> None:
        """By something else than the flush that is prepared, and not in a worker yet."""
        if self._flush is not None:
            self._flush.leave_indexes()

    @property
    def writes_indexes(self) -> bool:
        """Whether a running flush writes to index files, which nobody else does meanwhile."""
        return self._flush is not None and bool(self._flush.writes)

    def is_due(self, config: LogConfig, now_ms: int) -> bool:
        """Whether flush.messages, flush.ms, a sealed segment or a snapshot asks for a flush."""
        if self._flush is not None:
            return False
        unflushed = self._places.end_offset - self.recovery_point
        if unflushed >= config.flush_messages or self._unsynced or self._producer_memory.pending is not None:
            return True
        if self.is_wanted:
            return not self.is_held
        if unflushed <= 0:
            self._unflushed_since_ms = -1
            return self._is_name_due
        if self._unflushed_since_ms < 0 or now_ms < self._unflushed_since_ms:
            # In the second case the clock was set back, by an hour perhaps.
            self._unflushed_since_ms = now_ms
        else:
            return now_ms - self._unflushed_since_ms >= config.flush_ms
        return False

    @property
    def _is_name_due(self) -> bool:
        """Whether the log has rolled when everything in it was flushed: retention waits for the next segment's name,
        and nobody may write there for long."""
        places = self._places
        is_rolled = len(places.segments) > 1 and places.active.base_offset == self.recovery_point
        return is_rolled and self.names_changed and bool(self._unsynced_paths)

    def prepare(self, *, closing: bool) -> Flush | None:
        """What is not on the medium yet, up to the log's end; None where there is nothing, where a flush is running, or
        while the files are cut.

        Writes, but does not wait. `closing`: everything that a start after a clean stop relies on, and not the records
        alone. After a flush has failed this raises StorageFault for good.
        """
        running = self._flush
        places = self._places
        if running is not None:
            if running.failed:
                raise StorageFault(
                    FaultKind.DIRECTORY_FAILED, places.directory, OSError(errno.EIO, "a flush has failed")
                )
            return None
        if self.is_held:
            return None
        with places.naming_faults():
            writes: Sequence[BesideWrite] = ()
            if closing:
                writes = self._completing()
            elif places.active.unwritten_entries >= UNWRITTEN_ENTRIES_MAX:
                writes = places.active.index_writes(complete=False)
                self._unsynced_paths.extend(index_paths(places.active))
            elif places.active.aborted_waiting:
                writes = places.active.aborted_writes()
                self._unsynced_paths.extend(write.path for write in writes)
            # Of sealed ones only where a start has found no room for them.
            late = [write for segment in self._unsynced for write in segment.aborted_writes()]
            self._unsynced_paths.extend(write.path for write in late)
            self._flush = self._collected([*writes, *late], closing=closing)
            if closing:
                self._is_touched, self._complete_end = False, places.end_offset
        return self._flush

    def flushed(self, flush: Flush) -> None:
        """A flush has run."""
        assert flush is self._flush
        assert flush.done, "a failed flush proves nothing"
        self._flush = None
        self._unflushed_since_ms = -1
        if flush.snapshot is not None:  # what a roll has taken meanwhile is for the next one
            self._producer_memory.settle()
        if flush.generation == self.generation and flush.writes_done:
            for segment in (*self._unsynced, self._places.active):
                segment.indexes_written(flush.writes)
        if flush.generation != self.generation:
            # The log was cut meanwhile: what was synced may not be what is there. All of it is done again.
            self._leader_epochs.must_be_written()
            self.names_changed = True
            return
        sizes = dict(flush.sizes)
        for segment in (*self._unsynced, self._places.active):
            segment.note_synced(sizes.get(segment.base_offset, 0))
        self._unsynced = [segment for segment in self._unsynced if not segment.is_clean]
        self.recovery_point = max(self.recovery_point, flush.offset)
        self.certain_end = max(self.certain_end, flush.offset)
        assert self.recovery_point <= self.certain_end <= self._places.end_offset

    def refused(self, flush: Flush) -> None:
        """A flush found no room for a file beside the log: the next one does it all again."""
        assert flush is self._flush
        self.lost()

    def lost(self) -> None:
        """The same after a fault of ours, where a flush is under way that no worker has, and that has not failed."""
        flush = self._flush
        if flush is None or flush.failed:
            return
        self._flush = None
        flush.release()
        if flush.records_are_certain and flush.generation == self.generation:
            self.certain_end = max(self.certain_end, flush.offset)
        self._unsynced_paths.extend(flush.paths)
        self._is_touched = True
        self._leader_epochs.must_be_written()
        self.names_changed = True

    def give_up(self) -> None:
        """The log is closed, and waits for no flush."""
        self.is_given_up = True
        if self._flush is not None:
            self._flush.give_up()

    def _completing(self) -> Sequence[BesideWrite]:
        """What completes the index of the active segment; and takes the producers' state, where either is behind."""
        is_complete = not self._is_touched and self._complete_end == self._places.end_offset
        if is_complete and not self._producer_memory.lacks_snapshot:
            return ()
        active = self._places.active
        writes: Sequence[BesideWrite] = ()
        if active.has_indexes and active.size:
            writes = active.index_writes()
            self._unsynced_paths.extend(index_paths(active))
        self._producer_memory.take_for_stop()
        return writes

    def _collected(self, writes: Sequence[BesideWrite], *, closing: bool) -> Flush | None:
        places, leader_epochs = self._places, self._leader_epochs
        dirty = [segment for segment in (*self._unsynced, places.active) if not segment.is_clean]
        is_behind = self.recovery_point < places.end_offset
        pending = self._producer_memory.pending
        has_epochs = leader_epochs.are_new
        # A log that never had a record has nothing beside it that matters: a stop syncs no thousand new ones for it.
        has_paths = self._unsynced_paths and places.end_offset
        if not (dirty or has_paths or is_behind or pending or (closing and has_epochs)):
            return None
        epochs: tuple[str, list[tuple[int, int]]] | None = None
        if has_epochs:
            epochs = (f"{places.directory}/{epoch_checkpoint.FILE_NAME}", leader_epochs.cache.entries())
        flush = Flush(
            places.around.disk,
            places.end_offset,
            self.generation,
            [segment.file for segment in dirty],
            [(segment.base_offset, segment.size) for segment in dirty],
            list(dict.fromkeys(self._unsynced_paths)),
            epochs,
            places.directory if self.names_changed or pending is not None or writes else None,
            pending,
            writes,
            # A start looks for aborted transactions from the recovery point on.
            must_write=closing or any(segment.aborted_waiting for segment in (*self._unsynced, places.active)),
        )
        # Only now, since a file that does not open leaves it all to be done.
        self.is_wanted = False
        if epochs is not None:
            leader_epochs.cache.is_in_flush()
        self._unsynced_paths.clear()
        self.names_changed = False
        return flush
