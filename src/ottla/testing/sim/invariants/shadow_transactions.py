"""What an observer remembers of a log's transactions: what is open where, and what ended how.

It knows a producer's transaction by its batches alone, from the first of them to the marker; what a broker has in
memory, in snapshots and in indexes it does not look at.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable
from itertools import islice
from typing import NamedTuple

from ottla.transactions.states import ENDING, TransactionStatus

_BEYOND_ALL = 1 << 63


class SeenTransaction(NamedTuple):
    """What a batch of records in a transaction says, or a marker."""

    producer_id: int
    producer_epoch: int
    #: Of a marker; -1: they are records.
    coordinator_epoch: int = -1
    #: Of a marker.
    commits: bool = False

    @property
    def is_marker(self) -> bool:
        return self.coordinator_epoch >= 0


class SeenDecision(NamedTuple):
    """A record of the transaction topic."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    status: TransactionStatus


class _PlacedTransaction(NamedTuple):
    base: int
    end: int
    said: SeenTransaction


class ShadowTransactions:
    __slots__ = ("_batches", "_ended", "_last_markers", "_open", "behind_markers", "bumped_markers", "old_markers")

    def __init__(self) -> None:
        self._batches: list[_PlacedTransaction] = []
        self._begin()

    def _begin(self) -> None:
        #: Epoch and first offset of each open transaction, by producer; the lowest offset first.
        self._open: dict[int, tuple[int, int]] = {}
        #: Of each ended one: the offset behind its marker, and its own first; in the order of the markers.
        self._ended: list[tuple[int, int]] = []
        self._last_markers: dict[int, SeenTransaction] = {}
        #: Markers of a coordinator's epoch below that of the marker before.
        self.old_markers: list[SeenTransaction] = []
        #: Records of an epoch below that of the last marker.
        self.behind_markers: list[SeenTransaction] = []
        #: Markers with a later epoch than their transaction: there is one for each epoch.
        self.bumped_markers: list[SeenTransaction] = []

    def append(self, base: int, end: int, said: SeenTransaction) -> None:
        self._batches.append(_PlacedTransaction(base, end, said))
        self._take(self._batches[-1])

    def _take(self, batch: _PlacedTransaction) -> None:
        said = batch.said
        last = self._last_markers.get(said.producer_id)
        if not said.is_marker:
            if last is not None and said.producer_epoch < last.producer_epoch:
                self.behind_markers.append(said)
            self._open.setdefault(said.producer_id, (said.producer_epoch, batch.base))
            return
        if last is not None and said.coordinator_epoch < last.coordinator_epoch:
            self.old_markers.append(said)
        self._last_markers[said.producer_id] = said
        begun = self._open.pop(said.producer_id, None)
        if begun is not None:
            self._ended.append((batch.end, begun[1]))
            if begun[0] < said.producer_epoch:
                self.bumped_markers.append(said)

    def cut(self, end: int) -> None:
        """Nothing at or above `end` is there any more."""
        kept = [batch for batch in self._batches if batch.end <= end]
        if len(kept) != len(self._batches):
            self._batches = kept
            self._begin()
            for batch in kept:
                self._take(batch)
            self.read_from_files()

    def read_from_files(self) -> None:
        """By a start, or by a cut. A snapshot of producers, in Kafka's format, has the open transactions and not those
        whose markers are above the watermark: these count as committed, as they do in Kafka. What they have decided
        their coordinator has written before, so that no reader is told anything else later."""
        self._ended.clear()

    @property
    def open(self) -> Iterable[int]:
        """Producers."""
        return self._open.keys()

    def first_unstable(self, watermark: int) -> int | None:
        """Where the first transaction begins that has no marker below the watermark."""
        undecided = self._ended[bisect_right(self._ended, (watermark, _BEYOND_ALL)) :]
        offsets = [begun for _, begun in undecided]
        offsets += [begun for _, begun in self._open.values()]
        return min(offsets, default=None)


class CommittedDecisions:
    """Of one partition of the transaction topic, from its start to its watermark."""

    __slots__ = ("_looked_at", "commits", "statuses")

    def __init__(self) -> None:
        #: Committed batches that were looked at.
        self._looked_at = 0
        #: How often a producer's epoch was decided to be committed, by transactional id, producer and epoch.
        self.commits: Counter[tuple[str, int, int]] = Counter()
        #: The last of each id.
        self.statuses: dict[str, TransactionStatus] = {}

    def read_on(self, chains: Iterable[int], decided: dict[int, tuple[SeenDecision, ...]]) -> None:
        """`chains`: sums of all committed batches, in their order."""
        for chain in islice(chains, self._looked_at, None):
            self._looked_at += 1
            for each in decided.get(chain, ()):
                self.statuses[each.transactional_id] = each.status
                if each.status is TransactionStatus.PREPARE_COMMIT:
                    self.commits[each.transactional_id, each.producer_id, each.producer_epoch] += 1

    def unfinished(self) -> list[str]:
        """Ids whose transaction has not ended."""
        under_way = {TransactionStatus.ONGOING, *ENDING}
        return sorted(each for each, status in self.statuses.items() if status in under_way)
