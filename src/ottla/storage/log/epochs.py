"""Where each leader's epoch began in this log, to find where two replicas' logs part.

Every batch carries its leader's epoch, so the file beside the log only saves a scan: it is written with the flush that
makes its records durable, and after a crash the epochs above the recovery point come from the batches again. That keeps
a change of leaders of many partitions free of fsyncs. A leader's own epoch is known here from its beginning on, records
or none: clients hold it, and one that is not known looks to them like a log that was cut.

Invariant: epochs rise strictly, and their start offsets as well, except that the first may be moved up by retention.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import Final

from ottla.ports import Disk
from ottla.storage.formats import epoch_checkpoint

NO_EPOCH: Final = -1


class EpochCache:
    __slots__ = ("_epochs", "_starts", "dirty", "is_pending")

    def __init__(self, entries: list[tuple[int, int]] | None = None) -> None:
        self._epochs = [epoch for epoch, _ in entries or ()]
        self._starts = [start for _, start in entries or ()]
        #: Whether the file beside the log says something else, of leader epochs that have records.
        self.dirty = False
        #: Whether the latest leader epoch has no record yet.
        self.is_pending = False

    @classmethod
    def load(cls, disk: Disk, path: str) -> EpochCache:
        """Raises FormatError where the file is damaged."""
        return cls(epoch_checkpoint.read(disk, path))

    def must_be_written(self) -> None:
        """The file may say something else, or may not be on the medium."""
        self.dirty = True

    def is_in_flush(self) -> None:
        """A flush has taken the entries: it writes them, or `must_be_written` follows."""
        self.dirty = False

    @property
    def latest(self) -> int:
        return self._epochs[-1] if self._epochs else NO_EPOCH

    def entries(self) -> list[tuple[int, int]]:
        return list(zip(self._epochs, self._starts, strict=True))

    def begin(self, epoch: int, log_end: int) -> None:
        """A leader takes over: its leader epoch begins at the log's end, and is known before anything is written in it.

        That is no reason to write the file, since the next start drops a leader epoch without records, Kafka as well:
        leading 1,500 partitions at a start, or stopping before anybody wrote, then costs no fsync.
        """
        if epoch < 0 or epoch == self.latest:
            return
        while self._epochs and (self._epochs[-1] > epoch or self._starts[-1] >= log_end):
            self._epochs.pop()
            self.dirty = self._starts.pop() < log_end or self.dirty
        self._epochs.append(epoch)
        self._starts.append(log_end)
        self.is_pending = True

    def assign(self, epoch: int, start_offset: int) -> None:
        """A leader's epoch has its first record. Leader epochs that had none, or that this one contradicts, go."""
        if epoch < 0:
            return
        self.dirty = self.dirty or self.is_pending
        self.is_pending = False
        while self._epochs and (self._epochs[-1] >= epoch or self._starts[-1] >= start_offset):
            if self._epochs[-1] == epoch and self._starts[-1] <= start_offset:
                return
            self._epochs.pop()
            self._starts.pop()
            self.dirty = True
        self._epochs.append(epoch)
        self._starts.append(start_offset)
        self.dirty = True

    def end_offset_for(self, epoch: int, log_end: int) -> tuple[int, int] | None:
        """The largest epoch up to `epoch` and where it ended here; None for an epoch that this log cannot know of."""
        if epoch < 0 or not self._epochs or epoch > self._epochs[-1]:
            return None
        if epoch == self._epochs[-1]:
            return epoch, log_end
        above = bisect_right(self._epochs, epoch)
        return (self._epochs[above - 1] if above else epoch), self._starts[above]

    def epoch_at(self, offset: int) -> int:
        """The leader epoch in which the record at this offset was written; -1 where that is not known."""
        above = bisect_right(self._starts, offset)
        return self._epochs[above - 1] if above else NO_EPOCH

    def truncate_from_end(self, offset: int) -> None:
        """Forgets the leader epochs that began at or above the log's new end."""
        while self._starts and self._starts[-1] >= offset:
            self._starts.pop()
            self._epochs.pop()
            self.dirty = True
            self.is_pending = False

    def drop_unused(self, log_end: int) -> None:
        """The same at a start, and no reason to write the file: a leader epoch without records may stand in it, and the
        next start drops it again."""
        dirty = self.dirty
        self.truncate_from_end(log_end)
        self.dirty = dirty

    def truncate_from_start(self, offset: int) -> None:
        """Forgets the epochs that ended at or below the log's new start; the one that it falls into begins there."""
        below = bisect_right(self._starts, offset) - 1
        if below < 0 or (below == 0 and self._starts[0] == offset):
            return
        del self._starts[:below]
        del self._epochs[:below]
        self._starts[0] = offset
        self.dirty = True

    def clear(self) -> None:
        if self._epochs:
            self._epochs.clear()
            self._starts.clear()
            self.dirty = True
            self.is_pending = False
