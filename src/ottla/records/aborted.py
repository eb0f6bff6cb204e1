"""Which batches a reader of committed records leaves out: those of transactions that were aborted.

A fetch at this isolation names the aborted transactions of what it brings, each by its first offset and its producer.
From that offset on the producer's transactional batches are hidden, until its marker ends the transaction. So all
batches of an answer are shown to this, in their order.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from ottla.records.batch import BatchHeader, Readable
from ottla.records.control import ControlType, parse_control
from ottla.records.record import decode_batch


class AbortedTransactions:
    __slots__ = ("_coming", "_now")

    def __init__(self, transactions: Iterable[tuple[int, int]]) -> None:
        #: (first offset, producer id), by offset.
        self._coming = deque(sorted(transactions))
        #: Producers in the midst of an aborted transaction.
        self._now: set[int] = set()

    @property
    def any(self) -> bool:
        """Whether anything that is to come can be hidden."""
        return bool(self._coming or self._now)

    def hides(self, header: BatchHeader) -> bool:
        """Whether this batch is left out; call it for every batch in turn. Twice in a row gives the same."""
        while self._coming and self._coming[0][0] <= header.last_offset:
            self._now.add(self._coming.popleft()[1])
        return header.is_transactional and header.producer_id in self._now

    def note_marker(self, header: BatchHeader, buf: Readable, pos: int, *, check_crcs: bool) -> None:
        """Looks into a control batch: an ABORT ends its producer's transaction."""
        for record in decode_batch(buf, pos, check_crcs=check_crcs):
            if parse_control(record.key, record.value).type is ControlType.ABORT:
                self._now.discard(header.producer_id)

    def copy(self) -> AbortedTransactions:
        """The state as it is now, for a reader that may have to go back."""
        copied = AbortedTransactions(self._coming)
        copied._now = set(self._now)
        return copied

    def restore(self, copied: AbortedTransactions) -> None:
        self._coming = deque(copied._coming)
        self._now = set(copied._now)
