"""What a log remembers of its producers: their state, read when it is first asked for, and its snapshots on disk.

A snapshot is taken in three steps: `frozen` is the state as it is, a flush writes it after `take`, and `settle` notes
what has become of it. So there is one at a time:

    pending is None  ──take──▶  frozen  ──▶  in a flush  ──settle──▶  a snapshot, or no file

A cut makes the pending one void, whatever its flush does. The files that `snapshots` lists are written, on the medium,
and at or below the log's end.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import suppress

from ottla.storage.log.opening.loading import load_producers
from ottla.storage.log.places import Places
from ottla.storage.log.producers.producer_state import ProducerStates
from ottla.storage.log.producers.snapshots import PendingSnapshot, Snapshots


class ProducerMemory:
    __slots__ = ("_is_going_back", "_places", "loaded", "opened_ms", "pending", "snapshots")

    def __init__(self, places: Places, loaded: ProducerStates | None, snapshots: Snapshots, now_ms: int) -> None:
        self._places = places
        #: The state as of everything that is staged; None until it is read.
        self.loaded = loaded
        self.snapshots = snapshots
        #: For the next flush to write, or for the one that runs. offset <= the log's end, unless it is void
        self.pending: PendingSnapshot | None = None
        #: Between `cut_at` and `return_to`. Who asks meanwhile has it read from the files, as far as the log goes now.
        self._is_going_back = False
        #: When the log was opened: producers that are read from it were last heard of then.
        self.opened_ms = now_ms

    @property
    def states(self) -> ProducerStates:
        """Raises StorageFault where they are read for the first time and cannot be."""
        states = self.loaded
        if states is None and self.knows_of_none:
            states = self.loaded = ProducerStates(self._places.tp)
        elif states is None:
            places = self._places
            with places.naming_faults():
                states = self.loaded = load_producers(
                    places.tp, places.segments, self.snapshots, places.start_offset, places.end_offset, self.opened_ms
                )
        return states

    def are_read(self, states: ProducerStates, damaged: Collection[int]) -> None:
        """A worker has read them, unless they were read here meanwhile. `damaged`: snapshots that it has removed."""
        self.snapshots.forget(damaged)
        if self.loaded is None:
            self.loaded = states

    @property
    def count(self) -> int:
        """How many are in memory."""
        return 0 if self.loaded is None else len(self.loaded)

    @property
    def has_any(self) -> bool:
        return self.count > 0

    @property
    def knows_of_none(self) -> bool:
        """Whether nothing is to be read: a log that had producers was left with a snapshot."""
        return self.loaded is None and not self.snapshots.offsets and not self._is_going_back

    def rollback(self) -> None:
        """What was staged has not been written."""
        if self.loaded is not None:
            self.loaded.rollback()

    # -- snapshots

    def frozen(self, *, is_needed: bool = False) -> PendingSnapshot | None:
        """The state at the log's end, for `take`; None where it needs no snapshot, or one is being written already.

        `is_needed`: a clean stop relies on it, and nothing is being written.
        """
        states, end_offset = self.states, self._places.end_offset
        if is_needed:
            self.settle()
        if self.pending is not None or self.snapshots.latest == end_offset:
            return None
        frozen = states.freeze()
        if frozen is None:
            return None
        superseded = self.snapshots.superseded_by(end_offset, self._places.bases)
        return PendingSnapshot(self.snapshots, states, frozen, end_offset, superseded, is_needed=is_needed)

    def take(self, snapshot: PendingSnapshot | None) -> None:
        """The next flush writes it, and makes it certain."""
        if snapshot is not None:
            assert self.pending is None, "one at a time"
            self.pending = snapshot

    @property
    def lacks_snapshot(self) -> bool:
        """Whether a start would know of no producer, or read the log for them: the snapshot of the last stop was
        damaged, and is gone."""
        return self.has_any and self.pending is None and self.snapshots.latest != self._places.end_offset

    def take_for_stop(self) -> None:
        """So that a start reads nothing of the log for it."""
        snapshots = self.snapshots
        if snapshots.latest != self._places.end_offset and (snapshots.offsets or self.pending or self.has_any):
            self.take(self.frozen(is_needed=True))

    def settle(self) -> None:
        """No flush reads the frozen state any more. What was not written, or is not true any more, never was."""
        for path in self._settled():
            with suppress(FileNotFoundError):
                self.snapshots.around.disk.remove(path)

    def _settled(self) -> list[str]:
        """The same, but for a file that is to be removed: its path."""
        pending, self.pending = self.pending, None
        if pending is None:
            return []
        pending.thaw()
        if pending.is_written and not pending.is_void:
            self.snapshots.taken(pending.offset, pending.superseded)
            return []
        if pending.replaced is not None:
            # The log was cut back, perhaps to where that one stands, while a flush replaced it.
            self.snapshots.forget((pending.replaced,))
        return [pending.path] if pending.is_begun else []

    # -- the log has changed

    def segments_gone(self, base_offset: int) -> list[str]:
        """All segments below have gone, and their snapshots go with them: the paths of those."""
        return self.snapshots.forget([offset for offset in self.snapshots.offsets if offset < base_offset])

    def cut_at(self, offset: int, *, is_flushing: bool, keeps_snapshots: bool = True) -> list[str]:
        """The log has been cut: the paths of what is to be removed. `return_to` follows. `is_flushing`: a flush has the
        pending snapshot, and is to be done with it first."""
        gone: list[str] = []
        self.loaded, self._is_going_back = None, True
        if self.pending is not None:
            self.pending.make_void()
            if not is_flushing:
                gone += self._settled()
        return gone + self.snapshots.forget(
            [each for each in self.snapshots.offsets if each > offset or not keeps_snapshots]
        )

    def return_to(self, states: ProducerStates, snapshots: Sequence[int]) -> None:
        """The state is what it was where the log ends now; and the snapshots that were sound."""
        self.loaded, self._is_going_back = states, False
        self.snapshots.keep_only(snapshots)
