"""Transactions whose coordinators are being asked whether they are ongoing, before their first batch here (KIP-890).

Between the question and the append the transaction may be aborted: its marker comes first then, and a batch behind it
would belong to no transaction that anybody ends. So a question is remembered by its producer, a marker forgets it, and
so does the first batch; only a batch whose question is still remembered is appended.

A question stays where its answer was a refusal. A producer may have several batches in flight: of those that are asked
about the first one in the order of sequences is to be appended first, or the others would pass for the beginning.
"""

from __future__ import annotations

from typing import Final

#: Producers that are asked about at the same time, or were refused; beyond it the oldest is forgotten, and its batch is
#: refused. As many as may write to a partition for the first time in one round.
VERIFYING_MAX: Final = 1_000


class Verification:
    """One producer's question."""

    __slots__ = ("begins_at_zero", "epoch", "first_sequence")

    def __init__(self, epoch: int, first_sequence: int, *, begins_at_zero: bool = False) -> None:
        self.begins_at_zero = begins_at_zero
        self.epoch = epoch
        #: The lowest that was asked for in this epoch.
        self.first_sequence = first_sequence


class Verifications:
    __slots__ = ("_by_producer",)

    def __init__(self) -> None:
        #: The oldest first.
        self._by_producer: dict[int, Verification] = {}

    def __len__(self) -> int:
        return len(self._by_producer)

    def begin(self, producer_id: int, epoch: int, sequence: int, *, begins_at_zero: bool = False) -> Verification:
        known = self._by_producer.get(producer_id)
        if known is None:
            while len(self._by_producer) >= VERIFYING_MAX:
                del self._by_producer[next(iter(self._by_producer))]
            known = self._by_producer[producer_id] = Verification(epoch, sequence, begins_at_zero=begins_at_zero)
        elif epoch > known.epoch:
            known.epoch, known.first_sequence = epoch, sequence
        elif epoch == known.epoch:
            known.first_sequence = min(known.first_sequence, sequence)
        return known

    def of(self, producer_id: int) -> Verification | None:
        return self._by_producer.get(producer_id)

    def end(self, producer_id: int) -> None:
        self._by_producer.pop(producer_id, None)

    def clear(self) -> None:
        self._by_producer.clear()
