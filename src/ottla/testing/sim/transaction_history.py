"""What clients did in transactions, and what may be seen of it by those who read what is committed.

Values are unique, so each names its transaction. A transaction whose end was asked for and never answered may be
committed or not; every other one's outcome is known. These promises are named when they are broken:

    NoAbortedRead               nobody is shown a record of a transaction that was aborted, or that is open
    AllOrNothing                of each transaction everything is there, the group's positions included, or nothing
    NothingTwice                no record is there twice, and none is made twice of one that was consumed
    FencedProducersWriteNothing no request of a producer is taken that was sent when a later one had its epoch
    FencedCommitNoOffsets       nor one that commits a group's offsets
    PendingOffsetsWait          nobody is answered with a position of a transaction that is open
    EveryTransactionEnds        after the healing, within its time-out
    NoCycle                     one order explains all that was done and seen (`transaction_order.py`)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Final, NoReturn

from ottla.model import TopicPartition
from ottla.testing.sim.history import HistoryFault, Row
from ottla.testing.sim.invariants import InvariantBroken
from ottla.testing.sim.trace import Trace
from ottla.testing.sim.transaction_order import Operation, cycle_in

NO_ABORTED_READ: Final = "NoAbortedRead"
ALL_OR_NOTHING: Final = "AllOrNothing"
NOTHING_TWICE: Final = "NothingTwice"
FENCED_WRITE_NOTHING: Final = "FencedProducersWriteNothing"
FENCED_COMMIT_NO_OFFSETS: Final = "FencedCommitNoOffsets"
PENDING_OFFSETS_WAIT: Final = "PendingOffsetsWait"
EVERY_TRANSACTION_ENDS: Final = "EveryTransactionEnds"
NO_CYCLE: Final = "NoCycle"


class Outcome(Enum):
    OPEN = "open"
    #: Its commit was asked for, and is not answered yet, or never will be.
    IN_DOUBT = "in doubt"
    COMMITTED = "committed"
    ABORTED = "aborted"


#: What a reader may be shown something of.
_MAY_BE_SEEN: Final = frozenset({Outcome.IN_DOUBT, Outcome.COMMITTED})


@dataclass(slots=True, eq=False)
class SentTransaction:
    name: str
    #: Of its client, and of whoever this will be after its death.
    process: str
    #: By the history's count.
    began: int
    #: When its end was answered.
    ended: int | None = None
    outcome: Outcome = Outcome.OPEN
    values: dict[TopicPartition, list[bytes]] = field(default_factory=dict)
    #: Of a group: where it goes on once this is committed.
    positions: dict[TopicPartition, int] = field(default_factory=dict)


def broken(name: str, what: str) -> NoReturn:
    raise InvariantBroken(name, what)


class TransactionHistory:
    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self.transactions: list[SentTransaction] = []
        #: What readers were shown and told, each time that it was anything.
        self._reads: list[Operation] = []
        self._moment = 0
        self._by_value: dict[bytes, SentTransaction] = {}
        #: What readers saw on the way, by its offset.
        self.seen: dict[TopicPartition, dict[int, bytes]] = {}
        #: Called with the end of what was acknowledged, at that moment.
        self.on_acknowledged: Callable[[TopicPartition, int], None] | None = None

    # What clients do

    def now(self) -> int:
        """Each moment is another one."""
        self._moment += 1
        return self._moment

    def begin(self, name: str, process: str) -> SentTransaction:
        begun = SentTransaction(name, process, self.now())
        self.transactions.append(begun)
        return begun

    def send(self, transaction: SentTransaction, tp: TopicPartition, values: Sequence[bytes]) -> None:
        transaction.values.setdefault(tp, []).extend(values)
        self._by_value.update(dict.fromkeys(values, transaction))

    def acknowledge(self, tp: TopicPartition, end: int) -> None:
        if self.on_acknowledged is not None:
            self.on_acknowledged(tp, end)

    def becomes(self, transaction: SentTransaction, outcome: Outcome) -> None:
        self._trace.say("transaction", f"{transaction.name} is {outcome.value}")
        transaction.outcome = outcome
        if outcome is Outcome.COMMITTED:
            transaction.ended = self.now()
        if outcome not in _MAY_BE_SEEN:
            self._check_unseen(transaction)

    def lost(self, transaction: SentTransaction) -> None:
        """Its producer will never hear how it has ended: what was not asked to be committed never is."""
        if transaction.outcome is Outcome.OPEN:
            self.becomes(transaction, Outcome.ABORTED)

    def _check_unseen(self, transaction: SentTransaction) -> None:
        for tp, values in transaction.values.items():
            shown = set(values).intersection(self.seen.get(tp, {}).values())
            if shown:
                broken(NO_ABORTED_READ, f"{tp}: {min(shown)!r} of {transaction.name} was shown, which is aborted")

    @property
    def counts(self) -> Counter[str]:
        return Counter(f"transactions {each.outcome.value}" for each in self.transactions)

    # What readers are shown

    def see(self, tp: TopicPartition, rows: Sequence[Row]) -> None:
        seen = self.seen.setdefault(tp, {})
        for offset, value in rows:
            transaction = self._of(tp, value)
            if transaction.outcome not in _MAY_BE_SEEN:
                what = f"{tp}: {value!r} at {offset} of {transaction.name}, which is {transaction.outcome.value}"
                broken(NO_ABORTED_READ, what)
            if seen.setdefault(offset, value) != value:
                raise HistoryFault(f"{tp}: offset {offset} was {seen[offset]!r} and is {value!r}")

    def read(self, process: str, began: int, tp: TopicPartition, first: int, behind: int, rows: Sequence[Row]) -> None:
        """`process` asked in the moment `began` for what is committed, and was given all from `first` to `behind`."""
        self.see(tp, rows)
        if behind > first:
            shown = frozenset(offset for offset, _ in rows)
            name = f"{process} reads {tp} from {first} to {behind}"
            self._reads.append(Operation(name, process, began, self.now(), through={tp: (first, behind, shown)}))

    def tell(self, process: str, began: int, positions: Mapping[TopicPartition, int]) -> None:
        """The same for a group's positions, of which none is of an open transaction."""
        name = f"{process} is told {', '.join(f'{tp}: {position}' for tp, position in sorted(positions.items()))}"
        self._reads.append(Operation(name, process, began, self.now(), answered=dict(positions)))

    def _of(self, tp: TopicPartition, value: bytes) -> SentTransaction:
        transaction = self._by_value.get(value)
        if transaction is None or value not in transaction.values.get(tp, ()):
            raise HistoryFault(f"{tp}: nobody sent {value!r}")
        return transaction

    # What is there in the end

    def check(self, found: Mapping[TopicPartition, Sequence[Row]]) -> None:
        """`found`: what is committed, of all partitions, from their starts to their ends."""
        for tp, rows in found.items():
            self.see(tp, rows)
            if missing := self.seen[tp].keys() - {offset for offset, _ in rows}:
                raise HistoryFault(f"{tp}: {self.seen[tp][min(missing)]!r} was seen at {min(missing)} and is gone")
        times = Counter((tp, value) for tp, rows in found.items() for _, value in rows)
        for (tp, value), count in times.items():
            if count > 1:
                broken(NOTHING_TWICE, f"{tp}: {value!r} stands there {count} times")
        for each in self.transactions:
            there = [(tp, value) in times for tp, values in each.values.items() for value in values]
            if not there:
                continue
            if any(there) != all(there) or (each.outcome is Outcome.COMMITTED and not all(there)):
                what = f"{each.name}, which is {each.outcome.value}: {sum(there)} of {len(there)} records are there"
                broken(ALL_OR_NOTHING, what)

    def check_order(self) -> None:
        """After `check`: of each transaction it is known then whether it was committed, and where its records are."""
        written: dict[SentTransaction, dict[TopicPartition, list[int]]] = {}
        for tp, rows in self.seen.items():
            for offset, value in rows.items():
                written.setdefault(self._by_value[value], {}).setdefault(tp, []).append(offset)
        committed = [
            Operation(each.name, each.process, each.began, each.ended, written=places, positions=each.positions)
            for each, places in written.items()
        ]
        if cycle := cycle_in(committed, self._reads):
            broken(NO_CYCLE, cycle)

    def is_there(self, transaction: SentTransaction) -> bool:
        """Whether it was committed, after `check`: those that have not written anything do not count."""
        return any(
            value in self.seen.get(tp, {}).values() for tp, values in transaction.values.items() for value in values
        )
