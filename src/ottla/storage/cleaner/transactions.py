"""Which batches a transaction's end makes worthless: the records of aborted ones, and markers without records.

Batches are shown in the order of the log. Records of an aborted transaction go at once. A marker goes when a whole pass
has seen no batch of its transaction, not even one that goes in this pass: so no record is ever left without the marker
that says what became of it. Until then an abort keeps its entry in the `.txnindex`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from ottla.records.batch import BatchHeader
from ottla.storage.log.indexes.txn_index import AbortedTransaction
from ottla.storage.log.markers import read_marker


class Transactions:
    __slots__ = ("_aborting", "_committing", "_seen", "_waiting", "kept")

    def __init__(self, aborted: Iterable[AbortedTransaction]) -> None:
        self._waiting = deque(sorted(aborted, key=lambda entry: entry.first_offset))
        #: By producer: the transaction that is being read and will turn out aborted.
        self._aborting: dict[int, AbortedTransaction] = {}
        #: Producers of which a batch of the transaction in `_aborting` was shown.
        self._seen: set[int] = set()
        #: Producers of which a batch was shown whose transaction commits.
        self._committing: set[int] = set()
        #: Aborted transactions whose marker stays, in the order of the markers; the pass notes them and clears it.
        self.kept: list[AbortedTransaction] = []

    def are_worthless(self, header: BatchHeader, batch: memoryview) -> bool:
        """Whether the batch's records may go for what became of their transaction. Each batch is asked for once."""
        if header.attributes & 0x30 == 0:  # neither transactional nor control
            return False
        waiting = self._waiting
        while waiting and waiting[0].first_offset <= header.last_offset:
            entry = waiting.popleft()
            self._aborting[entry.producer_id] = entry
            self._seen.discard(entry.producer_id)
        if header.is_control:
            return self._is_done(header, batch)
        if self._is_aborting(header):
            self._seen.add(header.producer_id)
            return True
        self._committing.add(header.producer_id)
        return False

    def _is_aborting(self, header: BatchHeader) -> bool:
        """Whether the batch lies in an aborted transaction, whose marker need not be among the batches shown."""
        entry = self._aborting.get(header.producer_id)
        return entry is not None and header.base_offset <= entry.last_offset

    def _is_done(self, header: BatchHeader, batch: memoryview) -> bool:
        """Whether the marker ends a transaction of which nothing is left."""
        if header.count == 0:
            return True
        marker = read_marker(batch)
        if marker is None:
            return False  # control records of other kinds are nobody's end
        producer_id = header.producer_id
        if not marker.aborts:
            was_seen = producer_id in self._committing
            self._committing.discard(producer_id)
            return not was_seen
        if not self._is_aborting(header):
            return True
        entry = self._aborting.pop(producer_id)
        if producer_id not in self._seen:
            return True
        self._seen.discard(producer_id)
        self.kept.append(entry)
        return False
