"""The driver's decisions, exhaustively: every crash between two steps, every time-out, in every order.

A model of the brokers stands in for them: a ledger's entry and the transactions of one micro-batch. A run takes a list
of choices (go on, crash, let the time of what is open be over, fence a task) and what is to be done next is taken from
it; all lists up to a number of faults are gone through.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count

import pytest

from ottla.client.producing.transactions.core import TransactionIdentity
from ottla.spark.sink.entries import DONE, PARTIAL, PREPARED, LedgerEntry, LedgerTask
from ottla.spark.sink.errors import BatchNotCommitted, LedgerFault, QueryNameTaken, RowsMoved, SinkError
from ottla.spark.sink.exactly_once import effects as do
from ottla.spark.sink.exactly_once.core import BatchCommit
from ottla.spark.sink.exactly_once.naming import task_id
from ottla.spark.sink.exactly_once.replayed import work_of
from ottla.spark.sink.messages import TransactionReport, Work

BATCH = 7
#: By task; the second has none.
ROWS = {0: 30, 1: 0, 2: 50}
OPEN, COMMITTED, ABORTED = "open", "committed", "aborted"


class Crash(Exception):
    """The driver dies."""


@dataclass
class Brokers:
    """What outlives drivers."""

    entry: LedgerEntry | None = None
    transactions: dict[TransactionIdentity, str] = field(default_factory=dict)
    #: Of each transaction, whose rows it has.
    task_of: dict[TransactionIdentity, int] = field(default_factory=dict)
    #: The ledger does not let a driver write that is not the last.
    driver: int = 0

    def seen(self) -> dict[int, int]:
        """How often a reader of committed records sees each task's rows."""
        found = dict.fromkeys([task for task, rows in ROWS.items() if rows], 0)
        for transaction, state in self.transactions.items():
            found[self.task_of[transaction]] += state == COMMITTED
        return found

    def let_time_pass(self) -> None:
        for one, state in self.transactions.items():
            if state == OPEN:
                self.transactions[one] = ABORTED


class Choices:
    """Which fault comes where: `picked` says it for the first steps, and all others go on."""

    def __init__(self, picked: tuple[int, ...]) -> None:
        self._picked = picked
        #: How many there were to choose from, at each step.
        self.asked: list[int] = []

    def of(self, options: int) -> int:
        at = len(self.asked)
        self.asked.append(options)
        return self._picked[at] if at < len(self._picked) else 0


GO_ON, CRASH, TIME_OUT = range(3)


def fault(choices: Choices, brokers: Brokers) -> None:
    chosen = choices.of(3)
    if chosen == TIME_OUT:
        brokers.let_time_pass()
    if chosen == CRASH:
        raise Crash


def perform(effect: do.Effect, brokers: Brokers, driver: int, choices: Choices) -> do.Event:
    match effect:
        case do.Fence():
            brokers.driver = driver
            return do.Fenced()
        case do.ReadLedger():
            return do.LedgerRead(brokers.entry)
        case do.Describe(wanted):
            return do.Described(frozenset(one for one in wanted if brokers.transactions[one] == OPEN))
        case do.Write(entry):
            if brokers.driver != driver:
                raise Crash
            assert entry == LedgerEntry.parsed(entry.value())
            brokers.entry = entry
            return do.Written()
        case do.Commit(tasks):
            outcomes = {}
            for one in tasks:
                assert one.transaction is not None
                if brokers.transactions[one.transaction] == OPEN:
                    brokers.transactions[one.transaction] = COMMITTED
                done = brokers.transactions[one.transaction] == COMMITTED
                outcomes[one.task] = do.Outcome.COMMITTED if done else do.Outcome.ABORTED
                fault(choices, brokers)
            return do.Committed(outcomes)
        case do.FindStrays(known):
            strays = [one for one, state in brokers.transactions.items() if state == OPEN]
            return do.StraysFound(tuple(one for one in strays if one.transactional_id not in known))
        case do.Abort(unwanted):
            for one in unwanted:
                if brokers.transactions[one] == OPEN:
                    brokers.transactions[one] = ABORTED
            return do.Aborted()
    raise AssertionError(effect)


_numbers = count(1)


def reports_of(brokers: Brokers, entry: LedgerEntry | None) -> list[TransactionReport]:
    """What tasks do with their rows, by what the planner has read. One runs twice, and the first attempt is a stray."""
    reports = []
    for task, rows in ROWS.items():
        work = work_of(entry, "name", "q", BATCH, task)
        transaction = None
        if work is Work.WROTE and rows:
            for attempt in range(1 + (task == 0)):
                number = next(_numbers)
                transaction = TransactionIdentity(task_id("name", f"{number:032x}", task, attempt), number, 0, 2)
                brokers.transactions[transaction] = OPEN
                brokers.task_of[transaction] = task
        known = work is not Work.NONE
        reports.append(
            TransactionReport(
                query_id="q",
                task=task,
                work=work,
                rows=rows if known else 0,
                checksum=rows * 3 if known else 0,
                transaction=transaction,
            )
        )
    return reports


def driven(brokers: Brokers, driver: int, choices: Choices) -> None:
    """One driver plans the micro-batch, has it written and commits it. Raises Crash, or why it is not committed."""
    entry = brokers.entry
    fault(choices, brokers)
    reports = reports_of(brokers, entry)
    fault(choices, brokers)
    core = BatchCommit("name", BATCH, reports)
    effect = core.begin()
    while not isinstance(effect, do.Finish):
        if isinstance(effect, do.Fail):
            raise effect.error
        event = perform(effect, brokers, driver, choices)
        fault(choices, brokers)
        effect = core.step(event)


def rounds(picked: tuple[int, ...]) -> Choices:
    """Drivers one after the other until one has committed; then what is seen is looked at."""
    brokers, choices = Brokers(LedgerEntry(query_id="q", batch=BATCH - 1, rows=1)), Choices(picked)
    for driver in range(1, 12):
        try:
            driven(brokers, driver, choices)
        except (Crash, BatchNotCommitted):
            assert max(brokers.seen().values()) <= 1
            continue
        break
    else:
        raise AssertionError("no driver comes to the end")
    assert brokers.entry == LedgerEntry(query_id="q", batch=BATCH, rows=sum(ROWS.values()))
    assert set(brokers.seen().values()) == {1}
    return choices


def all_lists(faults_max: int) -> Iterator[tuple[int, ...]]:
    """Each list of choices with so many faults at most. A run tells what there was to choose behind its list."""
    waiting: list[tuple[int, ...]] = [()]
    while waiting:
        picked = waiting.pop()
        yield picked
        if sum(one != GO_ON for one in picked) == faults_max:
            continue
        asked = rounds(picked).asked
        for at in range(len(picked), len(asked)):
            waiting += [(*picked, *[GO_ON] * (at - len(picked)), chosen) for chosen in range(1, asked[at])]


def test_every_row_once_through_any_two_faults() -> None:
    tried = 0
    for picked in all_lists(2):
        rounds(picked)
        tried += 1
    assert tried > 500


@pytest.mark.slow
def test_every_row_once_through_any_three_faults() -> None:
    for picked in all_lists(3):
        rounds(picked)


def test_strays_do_not_stay_open() -> None:
    brokers = Brokers()
    driven(brokers, 1, Choices(()))
    assert OPEN not in brokers.transactions.values()
    assert sorted(brokers.transactions.values()) == [ABORTED, COMMITTED, COMMITTED]


def test_a_driver_that_is_fenced_commits_nothing() -> None:
    brokers = Brokers()
    core = BatchCommit("name", BATCH, reports_of(brokers, None))
    effect = core.begin()
    for _ in range(3):
        effect = core.step(perform(effect, brokers, 1, Choices(())))
    assert isinstance(effect, do.Write)
    brokers.driver = 2
    with pytest.raises(Crash):
        perform(effect, brokers, 1, Choices(()))
    assert set(brokers.transactions.values()) == {OPEN}


# What the ledger may say


def wrote(task: int, rows: int = 10, number: int = 1) -> TransactionReport:
    transaction = TransactionIdentity(task_id("name", "a" * 32, task, 0), number, 0, 2) if rows else None
    return TransactionReport(
        query_id="q", task=task, work=Work.WROTE, rows=rows, checksum=rows * 3, transaction=transaction
    )


def counted(task: int, rows: int, checksum: int) -> TransactionReport:
    return TransactionReport(query_id="q", task=task, work=Work.COUNTED, rows=rows, checksum=checksum)


def none(task: int) -> TransactionReport:
    return TransactionReport(query_id="q", task=task, work=Work.NONE)


def entry(state: str, batch: int = BATCH, *tasks: LedgerTask, query_id: str = "q") -> LedgerEntry:
    return LedgerEntry(query_id=query_id, batch=batch, rows=10, state=state, tasks=tasks)


def after_reading(read: LedgerEntry | None, *reports: TransactionReport) -> tuple[BatchCommit, do.Effect]:
    core = BatchCommit("name", BATCH, reports)
    core.step(do.Fenced())
    return core, core.step(do.LedgerRead(read))


def refusal(read: LedgerEntry | None, *reports: TransactionReport) -> SinkError:
    """What is raised, when what was opened for the batch is aborted."""
    core, effect = after_reading(read, *reports)
    assert effect == do.Abort(tuple(one.transaction for one in reports if one.transaction is not None))
    failed = core.step(do.Aborted())
    assert isinstance(failed, do.Fail)
    return failed.error


LISTED = LedgerTask(task=0, rows=10, checksum=30, transaction=TransactionIdentity("name/old/0/0", 9, 3, 2))
KEPT = LedgerTask(task=0, rows=10, checksum=30)


def test_a_new_batch_is_described_first() -> None:
    for read in (None, entry(DONE, BATCH - 1), entry(DONE, BATCH - 3)):
        _, effect = after_reading(read, wrote(0), wrote(1, 0), wrote(2))
        assert isinstance(effect, do.Describe)
        assert len(effect.transactions) == 2


def test_a_batch_without_rows_is_only_noted() -> None:
    core, effect = after_reading(None, wrote(0, 0))
    assert effect == do.FindStrays(frozenset())
    assert core.step(do.StraysFound(())) == do.Write(LedgerEntry(query_id="q", batch=BATCH, rows=0))


def test_a_finished_batch_aborts_what_is_new() -> None:
    core, effect = after_reading(entry(DONE), wrote(0))
    assert isinstance(effect, do.FindStrays)
    assert core.step(do.StraysFound(())) == do.Write(entry(DONE))  # by which strays are known to be nobody else's
    assert core.step(do.Written()) == do.Abort((wrote(0).transaction,))  # type: ignore[arg-type]  # there is one
    assert core.step(do.Aborted()) == do.Finish()


def test_a_later_batch_that_is_prepared_is_left_alone() -> None:
    core, effect = after_reading(entry(PREPARED, BATCH + 1, LISTED), wrote(0))
    assert isinstance(effect, do.Abort)
    assert core.step(do.Aborted()) == do.Finish()


def test_a_prepared_batch_is_rolled_forward() -> None:
    core, effect = after_reading(entry(PREPARED, BATCH, LISTED), wrote(0))
    assert effect == do.Commit((LISTED,))
    assert isinstance(core.step(do.Committed({0: do.Outcome.COMMITTED})), do.FindStrays)
    assert core.step(do.StraysFound(())) == do.Write(entry(DONE))
    assert core.step(do.Written()) == do.Abort((wrote(0).transaction,))  # type: ignore[arg-type]  # there is one


def test_a_list_that_holds_what_was_just_written_is_not_aborted() -> None:
    report = wrote(0)
    listed = LedgerTask(task=0, rows=10, checksum=30, transaction=report.transaction)
    core, _ = after_reading(entry(PREPARED, BATCH, listed), report)
    core.step(do.Committed({0: do.Outcome.COMMITTED}))
    core.step(do.StraysFound(()))
    assert core.step(do.Written()) == do.Abort(())


def test_a_fence_is_never_taken_for_success() -> None:
    core, _ = after_reading(entry(PREPARED, BATCH, LISTED), none(0))
    assert core.step(do.Committed({0: do.Outcome.UNKNOWN})) == do.Abort(())
    failed = core.step(do.Aborted())
    assert isinstance(failed, do.Fail)
    assert "whether task 0 are committed, nobody can say" in str(failed.error)


def test_what_is_partly_committed_is_written_down() -> None:
    other = LedgerTask(task=1, rows=5, checksum=1, transaction=TransactionIdentity("name/old/1/0", 10, 0, 2))
    core, _ = after_reading(entry(PREPARED, BATCH, LISTED, other), none(0), none(1))
    written = core.step(do.Committed({0: do.Outcome.COMMITTED, 1: do.Outcome.ABORTED}))
    assert written == do.Write(entry(PARTIAL, BATCH, KEPT))
    assert core.step(do.Written()) == do.Abort(())
    failed = core.step(do.Aborted())
    assert isinstance(failed, do.Fail)
    assert "the time of task 1 was over before they were committed" in str(failed.error)


def test_where_nothing_was_committed_there_is_nothing_to_compare() -> None:
    empty = LedgerTask(task=1, rows=0, checksum=0)
    core, _ = after_reading(entry(PREPARED, BATCH, LISTED, empty), none(0), none(1))
    written = core.step(do.Committed({0: do.Outcome.ABORTED}))
    assert isinstance(written, do.Write)
    assert (written.entry.state, written.entry.tasks) == (PARTIAL, ())


def test_the_rest_of_a_partly_committed_batch() -> None:
    core, effect = after_reading(entry(PARTIAL, BATCH, KEPT), counted(0, 10, 30), wrote(1))
    assert effect == do.Describe((wrote(1).transaction,))  # type: ignore[arg-type]  # there is one
    written = core.step(do.Described(frozenset([wrote(1).transaction])))  # type: ignore[list-item]  # as above
    assert isinstance(written, do.Write)
    assert [(one.task, one.transaction) for one in written.entry.tasks] == [(0, None), (1, wrote(1).transaction)]
    assert written.entry.rows == 20


@pytest.mark.parametrize(
    ("report", "what"),
    [
        (counted(0, 11, 30), "it had 10 rows, and now it has 11"),
        (counted(0, 10, 31), "its 10 rows are not the same"),
        (wrote(0, 11), "it had 10 rows, and now it has 11"),
        (counted(3, 10, 30), "it had 10 rows, and now there are 2 tasks only"),
    ],
)
def test_rows_that_have_moved(report: TransactionReport, what: str) -> None:
    error = refusal(entry(PARTIAL, BATCH, KEPT), report, wrote(1))
    assert isinstance(error, RowsMoved)
    assert what in str(error)


def test_what_a_planner_read_too_early() -> None:
    for read in (None, entry(PARTIAL, BATCH, KEPT)):
        error = refusal(read, none(0), wrote(1))
        assert "the ledger has changed since the batch was planned" in str(error)
    assert "has changed" in str(refusal(None, counted(0, 10, 30), wrote(1)))


def test_another_querys_name() -> None:
    assert isinstance(refusal(entry(DONE, query_id="p"), wrote(0)), QueryNameTaken)


def test_a_checkpoint_that_has_gone_past_what_is_prepared() -> None:
    for state in (PREPARED, PARTIAL):
        error = refusal(entry(state, BATCH - 1, KEPT), wrote(0))
        assert isinstance(error, LedgerFault)
        assert f"batch {BATCH - 1} of ottla.query=name is {state} and was never finished" in str(error)


def test_a_transaction_that_is_not_open_any_more() -> None:
    core, _ = after_reading(None, wrote(0), wrote(1))
    kept = wrote(0).transaction
    assert kept is not None
    assert isinstance(core.step(do.Described(frozenset([kept]))), do.Abort)
    failed = core.step(do.Aborted())
    assert isinstance(failed, do.Fail)
    assert "the transactions of task 1 were ended before the batch was complete" in str(failed.error)


def test_an_event_that_does_not_belong_here_is_a_fault() -> None:
    core, _ = after_reading(None, wrote(0))
    with pytest.raises(KeyError):
        core.step(do.Written())
