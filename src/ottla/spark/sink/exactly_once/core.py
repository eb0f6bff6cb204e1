"""What the driver does with a micro-batch whose tasks have written: without a clock, a connection or a thread.

`step` takes what has happened and gives what is to be done next. The ledger and the coordinators' answers decide:

    FENCING ── Fenced ──> READING ── LedgerRead ──┬─ finished ───────────────────────────────────┐
                                                  ├─ prepared before (roll it forward) ──┐       │
                                                  └─ new, or partial                     │       │
                                                       │                                 │       │
                                                       v                                 │       │
                          DESCRIBING ── all open ──> PREPARING ── Written ──> ENDING <───┘       │
                             │                                                 │                 │
                             │ one is not                     some are aborted │ all committed   │
                             v                                    v            v                 │
       Fail <── Aborted ── GIVING_UP <── Written ── NOTING_PARTIAL          SEEKING <────────────┘
                             ^                                                 │ StraysFound
                             └── nobody can say whether one is committed       v
                                                                            FINISHING ── Written ──> CLEANING ──> Finish

Invariants: no transaction is committed that is not in a PREPARED entry. None that is in one is aborted here. DONE is
written when all of the entry's are known to be committed. Strays are looked for before DONE is written and aborted
after: that the write succeeds shows that no younger driver had begun when they were found, so that none of them can be
in a list of its.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import Any, ClassVar, Final

from ottla.client.producing.transactions.core import TransactionIdentity
from ottla.spark.sink.entries import DONE, PARTIAL, PREPARED, LedgerEntry, LedgerTask, check_name
from ottla.spark.sink.errors import BatchNotCommitted, LedgerFault, QueryNameTaken, SinkError
from ottla.spark.sink.exactly_once.effects import (
    Abort,
    Aborted,
    Commit,
    Committed,
    Describe,
    Described,
    Effect,
    Event,
    Fail,
    Fence,
    Fenced,
    FindStrays,
    Finish,
    LedgerRead,
    Outcome,
    ReadLedger,
    StraysFound,
    Write,
    Written,
)
from ottla.spark.sink.exactly_once.replayed import check_same_rows, left_behind, written_again
from ottla.spark.sink.messages import TransactionReport, Work


class State(Enum):
    FENCING = "fencing"
    READING = "reading"
    DESCRIBING = "describing"
    PREPARING = "preparing"
    ENDING = "ending"
    SEEKING = "seeking"
    FINISHING = "finishing"
    CLEANING = "cleaning"
    NOTING_PARTIAL = "noting partial"
    GIVING_UP = "giving up"
    OVER = "over"


#: So many tasks are named where something is wrong with them.
_NAMED_MAX: Final = 5


class BatchCommit:
    """One micro-batch's way. Of the reports there is one for each task."""

    def __init__(self, name: str, batch: int, reports: Sequence[TransactionReport]) -> None:
        assert reports, "a micro-batch without tasks has nothing to be committed"
        self._name = name
        self._batch = batch
        self._reports = sorted(reports, key=lambda one: one.task)
        self._query_id = reports[0].query_id
        self.state = State.FENCING
        #: What the ledger has of this batch, or is to have.
        self._tasks: tuple[LedgerTask, ...] = ()
        #: What was opened for this batch and is not to be committed.
        self._unwanted = self._opened()
        #: What is written when all is committed.
        self._end = self._done(rows=0)
        self._error: SinkError | None = None

    def begin(self) -> Effect:
        return Fence()

    def step(self, event: Event) -> Effect:
        """What is to be done next; an event that does not belong to the state is a fault of the caller's."""
        return self._STEPS[self.state, type(event)](self, event)

    # What was there before

    def _fenced(self, _: Fenced) -> Effect:
        self.state = State.READING
        return ReadLedger()

    def _ledger_read(self, event: LedgerRead) -> Effect:
        entry, batch = event.entry, self._batch
        try:
            check_name(entry, self._name, self._query_id)
        except QueryNameTaken as error:
            return self._give_up(error)
        if entry is not None and batch <= entry.finished:
            if entry.state != DONE:  # of a later batch: its list is not ours to touch
                self.state = State.CLEANING
                return Abort(self._unwanted)
            self._end = entry
            return self._seek()
        if entry is not None and entry.state != DONE and entry.batch < batch:
            return self._give_up(
                LedgerFault(
                    f"batch {entry.batch} of ottla.query={self._name} is {entry.state} and was never finished, but the "
                    f"checkpoint goes on with batch {batch}: put the checkpoint back to where it plans {entry.batch} "
                    f"again (take what is from {entry.batch} on out of its folder commits, and what is behind that out "
                    "of offsets), or give the query another name, which leaves out what was not committed"
                )
            )
        if entry is not None and entry.state == PREPARED:
            return self._commit(entry.tasks)
        return self._begin_list(entry)

    def _begin_list(self, entry: LedgerEntry | None) -> Effect:
        """The batch was never prepared, or a part of it could not be committed."""
        committed = {} if entry is None else entry.committed(self._batch)
        others = [one for one in self._reports if one.task not in committed]
        try:
            check_same_rows(self._name, self._batch, committed, self._reports)
        except BatchNotCommitted as error:
            return self._give_up(error)
        if any(one.work is not Work.WROTE for one in others):
            return self._give_up(
                BatchNotCommitted(
                    f"batch {self._batch}: the ledger has changed since the batch was planned; nothing of the batch is "
                    "seen: start the query again"
                )
            )
        self._tasks = (
            *committed.values(),
            *(
                LedgerTask(
                    task=one.task,
                    rows=one.rows,
                    checksum=one.checksum,
                    transaction=one.transaction,
                    place=one.place,
                )
                for one in others
            ),
        )
        wanted = self._transactions()
        self._unwanted = tuple(one for one in self._unwanted if one not in wanted)
        if not wanted:  # no task had rows
            self._finished_with(self._tasks)
            return self._seek()
        self.state = State.DESCRIBING
        return Describe(wanted)

    # The list

    def _described(self, event: Described) -> Effect:
        lost = [one for one in self._tasks if one.transaction is not None and one.transaction not in event.open]
        if lost:
            self._unwanted = self._opened()
            return self._give_up(
                BatchNotCommitted(
                    f"batch {self._batch}: the transactions of {_named(lost)} were ended before the batch was "
                    "complete: tasks took longer than transaction.timeout.ms, or somebody has aborted them. Nothing of "
                    "the batch is seen: start the query again, with smaller batches if this comes again"
                )
            )
        self.state = State.PREPARING
        return Write(
            LedgerEntry(
                query_id=self._query_id,
                batch=self._batch,
                rows=sum(one.rows for one in self._tasks),
                state=PREPARED,
                tasks=self._tasks,
            )
        )

    def _prepared(self, _: Written) -> Effect:
        return self._commit(self._tasks)

    def _commit(self, tasks: Sequence[LedgerTask]) -> Effect:
        self._tasks = tuple(tasks)
        listed = self._transactions()
        self._unwanted = tuple(one for one in self._unwanted if one not in listed)
        self._finished_with(self._tasks)
        self.state = State.ENDING
        return Commit(tuple(one for one in self._tasks if one.transaction is not None))

    def _committed(self, event: Committed) -> Effect:
        listed = [one for one in self._tasks if one.transaction is not None]
        assert {one.task for one in listed} == set(event.outcomes), "each of them has an outcome"
        unknown = [one for one in listed if event.outcomes[one.task] is Outcome.UNKNOWN]
        lost = [one for one in listed if event.outcomes[one.task] is Outcome.ABORTED]
        if unknown:
            return self._give_up(_unknown(self._name, self._batch, unknown, lost, sum(one.rows for one in self._tasks)))
        if not lost:
            return self._seek()
        kept = [
            LedgerTask(task=one.task, rows=one.rows, checksum=one.checksum) for one in self._tasks if one not in lost
        ]
        if not any(one.rows for one in kept):
            kept = []  # nothing is seen: there is nothing to compare with
        self._error = _in_part(self._batch, lost, kept)
        self.state = State.NOTING_PARTIAL
        rows = sum(one.rows for one in kept)
        return Write(
            LedgerEntry(query_id=self._query_id, batch=self._batch, rows=rows, state=PARTIAL, tasks=tuple(kept))
        )

    def _noted(self, _: Written) -> Effect:
        assert self._error is not None
        return self._give_up(self._error)

    # The end

    def _seek(self) -> Effect:
        self.state = State.SEEKING
        known = (*self._unwanted, *self._transactions())
        return FindStrays(frozenset(one.transactional_id for one in known))

    def _strays_found(self, event: StraysFound) -> Effect:
        self._unwanted = (*self._unwanted, *event.strays)
        self.state = State.FINISHING
        return Write(self._end)

    def _finished(self, _: Written) -> Effect:
        self.state = State.CLEANING
        return Abort(self._unwanted)

    def _cleaned(self, _: Aborted) -> Effect:
        self.state = State.OVER
        return Finish()

    def _give_up(self, error: SinkError) -> Effect:
        self._error = error
        self.state = State.GIVING_UP
        return Abort(self._unwanted)

    def _given_up(self, _: Aborted) -> Effect:
        assert self._error is not None
        self.state = State.OVER
        return Fail(self._error)

    # What there is

    def _opened(self) -> tuple[TransactionIdentity, ...]:
        return tuple(one.transaction for one in self._reports if one.transaction is not None)

    def _transactions(self) -> tuple[TransactionIdentity, ...]:
        return tuple(one.transaction for one in self._tasks if one.transaction is not None)

    def _finished_with(self, tasks: Sequence[LedgerTask]) -> None:
        self._end = self._done(rows=sum(one.rows for one in tasks))

    def _done(self, rows: int) -> LedgerEntry:
        last = max((one.attempt for one in self._reports), key=lambda one: one.attempt_id)
        return LedgerEntry(query_id=self._query_id, batch=self._batch, rows=rows, last_attempt=last)

    _STEPS: ClassVar[Mapping[tuple[State, type[Any]], Callable[[Any, Any], Effect]]] = {
        (State.FENCING, Fenced): _fenced,
        (State.READING, LedgerRead): _ledger_read,
        (State.DESCRIBING, Described): _described,
        (State.PREPARING, Written): _prepared,
        (State.ENDING, Committed): _committed,
        (State.NOTING_PARTIAL, Written): _noted,
        (State.SEEKING, StraysFound): _strays_found,
        (State.FINISHING, Written): _finished,
        (State.CLEANING, Aborted): _cleaned,
        (State.GIVING_UP, Aborted): _given_up,
    }


def _in_part(batch: int, lost: Sequence[LedgerTask], kept: Sequence[LedgerTask]) -> BatchNotCommitted:
    seen = "nothing of the batch is seen, and all of it is written"
    if kept:
        rows = sum(one.rows for one in kept)
        seen = f"the others are, {rows} rows, and the ledger knows which: only the rest is written"
    return BatchNotCommitted(
        f"batch {batch}: the time of {_named(lost)} was over before they were committed: no driver came within "
        "transaction.timeout.ms, or somebody has aborted them. Start the query again with the same plan and "
        f"checkpoint; {seen}"
    )


def _unknown(
    name: str, batch: int, tasks: Sequence[LedgerTask], lost: Sequence[LedgerTask], rows: int
) -> BatchNotCommitted:
    missing = f"only what {_named(lost)} had is left out" if lost else "nothing is left out"
    return BatchNotCommitted(
        f"batch {batch}: whether {_named(tasks)} are committed, nobody can say: their transactional ids were used "
        "again, and the topic's log does not have what they wrote any more (or never told where it is). Look for these "
        f"rows with a reader of committed records. Where they are missing, {written_again(name, rows)}; where they are "
        f"there, {left_behind(batch, missing)}"
    )


def _named(tasks: Sequence[LedgerTask]) -> str:
    named = ", ".join(f"task {one.task}" for one in tasks[:_NAMED_MAX])
    return named if len(tasks) <= _NAMED_MAX else f"{named} and {len(tasks) - _NAMED_MAX} others"
