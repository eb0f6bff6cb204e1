"""What makes a retry harmless: a producer's identity, and sequence numbers in each partition.

A broker takes a batch if its sequence follows the last one's, knows a batch of the last five again and answers it as
the first time, and refuses a gap. So batches may be in flight together and be retried, and still are written once and
in order, as long as the numbers of what may have been written are never given to something else:

- a batch keeps its number through all retries, and while one is retried, it goes alone;
- the first batch under an identity goes alone: of a producer that it does not know a broker takes any number, so a
  second batch could get in before a first that is being retried;
- where a batch was given up with its outcome unknown, nothing new is sent until what is in flight is settled; if then
  a number is missing, the partition starts anew at 0 under the next epoch of the identity;
- a gap that the broker reports right behind the last acknowledged batch means that the broker has forgotten (its log
  was truncated or it lost the producer's state): the same remedy, with the batches in flight renumbered.

The epoch is raised here, without asking: the broker accepts any higher one that begins at 0. Every partition takes the
new epoch on when nothing of it is in flight any more. Of a transactional producer the coordinator raises it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from ottla.client.settings import IDEMPOTENT_IN_FLIGHT_MAX
from ottla.model import ErrorCode
from ottla.records.batch import add_to_sequence

if TYPE_CHECKING:
    from ottla.client.producing.batches import ProducerBatch

EPOCH_MAX: Final = 2**15 - 1
_NONE_ACKED: Final = -1


class ProducerIdentity(NamedTuple):
    producer_id: int
    epoch: int


class Identities:
    """The producer's current identity, shared by all partitions; None until the broker has given one."""

    __slots__ = ("_raised_here", "current")

    def __init__(self, *, raised_here: bool = True) -> None:
        self.current: ProducerIdentity | None = None
        self._raised_here = raised_here

    def after(self, used: ProducerIdentity | None) -> ProducerIdentity | None:
        """One that a partition which used `used` has not used: the current one, or the current one's next epoch."""
        if self.current is not None and self.current == used:
            if not self._raised_here:
                return None
            if self.current.epoch == EPOCH_MAX:
                self.current = None  # the broker must give another id
            else:
                self.current = ProducerIdentity(self.current.producer_id, self.current.epoch + 1)
        return self.current


class PartitionSequences:
    __slots__ = ("_identity", "_last_acked", "_next", "_unresolved", "fresh_start", "in_flight")

    def __init__(self) -> None:
        self._identity: ProducerIdentity | None = None
        self._next = 0
        self._last_acked = _NONE_ACKED
        #: Sent at least once and not settled, by sequence: on the wire or waiting for a retry.
        self.in_flight: list[ProducerBatch] = []
        #: The numbers behind batches that were given up: whether those before them were written is not known.
        self._unresolved: set[int] = set()
        #: A number is missing for good: begin at 0 under another identity once nothing is on the wire.
        self.fresh_start = False

    def may_send(self, batch: ProducerBatch, identities: Identities, on_wire: int) -> bool:
        """Whether this batch, the first of its queue, may go now. Starts anew where that is due."""
        if self.fresh_start:
            if on_wire or not self._start_anew(identities):
                return False
        elif self._identity != identities.current:
            if not self.in_flight:
                self._adopt(identities.current)
            elif batch.sequence is None:
                return False
        if batch.sequence is not None:
            return batch is self.in_flight[0]
        if self._last_acked == _NONE_ACKED and self.in_flight:
            return False
        return not self._unresolved and len(self.in_flight) < IDEMPOTENT_IN_FLIGHT_MAX

    def stamp(self, batch: ProducerBatch) -> None:
        """Gives a batch that goes for the first time its number."""
        if batch.sequence is None:
            assert self._identity is not None
            batch.identity = self._identity
            batch.sequence = self._next
            self._next = add_to_sequence(self._next, batch.count)
            self.in_flight.append(batch)

    def acknowledged(self, batch: ProducerBatch) -> None:
        if batch.identity == self._identity and batch.sequence is not None:
            # A later batch may have been answered first only where the broker had both: its word is enough.
            self._last_acked = add_to_sequence(batch.sequence, batch.count - 1)
        self._settle(batch)

    def is_retriable(self, batch: ProducerBatch, code: ErrorCode, log_start_offset: int) -> bool:
        """Whether a refused batch can be sent again and stay single and in order; notes where numbers start anew.

        They may start anew only where the first in flight was refused: one before it might have been written.
        """
        if code is ErrorCode.UNKNOWN_PRODUCER_ID:
            if log_start_offset >= 0 and batch.identity == self._identity and self.is_first(batch):
                self.fresh_start = True
            return True
        if code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER:
            if self.is_first(batch) and (self._is_next(batch.sequence) or batch.sequence in self._unresolved):
                self.fresh_start = True
            return True
        return code.retriable

    def is_first(self, batch: ProducerBatch) -> bool:
        return bool(self.in_flight) and self.in_flight[0] is batch

    def replaced(self, batch: ProducerBatch, parts: list[ProducerBatch]) -> None:
        """A batch was split; its parts share its numbers."""
        if batch in self.in_flight:
            place = self.in_flight.index(batch)
            self.in_flight[place : place + 1] = parts

    def refused(self, batch: ProducerBatch) -> None:
        """A batch failed for good and was not written: its numbers are missing, those behind it cannot follow."""
        if self.is_first(batch):
            self.fresh_start = True
            self._settle(batch)
        else:
            self.given_up(batch)

    def given_up(self, batch: ProducerBatch) -> None:
        """A batch was given up, and nobody knows whether it was written."""
        if batch in self.in_flight and batch.sequence is not None and batch.identity == self._identity:
            self._unresolved.add(add_to_sequence(batch.sequence, batch.count))
        self._settle(batch)

    def _settle(self, batch: ProducerBatch) -> None:
        if batch in self.in_flight:
            self.in_flight.remove(batch)
        if self._unresolved and not self.in_flight:
            if not self._is_next(self._next):
                self.fresh_start = True
            self._unresolved.clear()

    def _is_next(self, sequence: int | None) -> bool:
        expected = 0 if self._last_acked == _NONE_ACKED else add_to_sequence(self._last_acked, 1)
        return sequence == expected

    def _start_anew(self, identities: Identities) -> bool:
        identity = identities.after(self._identity)
        if identity is None:
            return False
        self.fresh_start = False
        self._unresolved.clear()
        self._adopt(identity)
        for batch in self.in_flight:
            batch.identity = identity
            batch.sequence = self._next
            self._next = add_to_sequence(self._next, batch.count)
        return True

    def _adopt(self, identity: ProducerIdentity | None) -> None:
        self._identity = identity
        self._next = 0
        self._last_acked = _NONE_ACKED
