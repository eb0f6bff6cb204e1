"""What an observer remembers of a replica's log: where each batch ends, its leader epoch, and a sum of all up to it.

Two logs agree up to an offset exactly when their sums there are equal, so that no comparison reads a log twice. Of a
log that is cleaned only its end says what it has: its sums are all the same, and its transactions are not followed.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping
from typing import NamedTuple

from ottla.testing.sim.invariants.shadow_transactions import SeenDecision, SeenTransaction, ShadowTransactions


class SeenBatch(NamedTuple):
    base: int
    #: The offset behind its last record.
    end: int
    epoch: int
    #: The checksum of all that a leader does not change in it.
    checksum: int
    #: Of records in a transaction, and of markers.
    transaction: SeenTransaction | None = None
    #: Of a batch of the transaction topic.
    decided: tuple[SeenDecision, ...] = ()


class ShadowLog:
    __slots__ = ("chains", "ends", "epochs", "is_compacted", "start", "transactions")

    def __init__(self, start: int = 0, *, is_compacted: bool = False) -> None:
        self.is_compacted = is_compacted
        #: The first offset that it can hold.
        self.start = start
        #: Of each batch, in order.
        self.ends: list[int] = []
        self.epochs: list[int] = []
        self.chains: list[int] = []
        #: None while no batch was in one.
        self.transactions: ShadowTransactions | None = None

    @property
    def end(self) -> int:
        return self.ends[-1] if self.ends else self.start

    @property
    def last_epoch(self) -> int:
        return self.epochs[-1] if self.epochs else -1

    def append(self, batch: SeenBatch, known: Mapping[tuple[int, int], int]) -> None:
        """`known` has the sums of others by end and leader epoch: a log that begins in the middle goes on from one."""
        if self.is_compacted:
            chain = 0
        elif self.chains:
            chain = hash((self.chains[-1], *batch[:4]))
        elif batch.base > 0 and (batch.end, batch.epoch) in known:
            chain = known[batch.end, batch.epoch]
        else:
            chain = hash((0, *batch[:4]))
        self.ends.append(batch.end)
        self.epochs.append(batch.epoch)
        self.chains.append(chain)
        if batch.transaction is not None and not self.is_compacted:
            if self.transactions is None:
                self.transactions = ShadowTransactions()
            self.transactions.append(batch.base, batch.end, batch.transaction)

    def cut(self, end: int) -> None:
        """Nothing at or above `end` is there any more."""
        keep = bisect_right(self.ends, end)
        del self.ends[keep:], self.epochs[keep:], self.chains[keep:]
        if self.transactions is not None:
            self.transactions.cut(end)

    def batches_below(self, offset: int) -> int:
        """How many batches lie wholly below it."""
        return bisect_right(self.ends, offset)

    def chain_at(self, end: int) -> int | None:
        """The sum up to the batch that ends there; None where none does."""
        place = bisect_left(self.ends, end)
        return self.chains[place] if place < len(self.ends) and self.ends[place] == end else None

    def holds(self, end: int, chain: int | None) -> bool:
        """Whether everything below `end` is there, as the log with that sum has it."""
        if end <= self.start:
            return True  # it begins behind that: the records are gone for all
        return end <= self.end and (chain is None or self.is_compacted or self.chain_at(end) == chain)
