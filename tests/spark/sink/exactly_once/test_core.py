"""The driver's decisions, one by one; `test_every_order.py` has them under any two faults and in every order."""

from __future__ import annotations

import pytest
from tests.spark.sink.exactly_once.model import (
    ABORTED,
    BATCH,
    COMMITTED,
    OPEN,
    RUN,
    Brokers,
    Crash,
    driven,
    performed,
    reports_of,
)

from ottla.client.producing.transactions.core import TransactionIdentity
from ottla.spark.sink.entries import DONE, PARTIAL, PREPARED, LedgerEntry, LedgerTask, TaskAttempt
from ottla.spark.sink.errors import LedgerFault, QueryNameTaken, RowsMoved, SinkError
from ottla.spark.sink.exactly_once import effects as do
from ottla.spark.sink.exactly_once.core import BatchCommit
from ottla.spark.sink.exactly_once.naming import task_id
from ottla.spark.sink.messages import TransactionReport, Work


def test_strays_do_not_stay_open() -> None:
    brokers = Brokers()
    for _ in driven(brokers, 1):
        pass
    assert OPEN not in brokers.transactions.values()
    assert sorted(brokers.transactions.values()) == [ABORTED, COMMITTED, COMMITTED]


def test_a_driver_that_is_fenced_commits_nothing() -> None:
    brokers = Brokers()
    core = BatchCommit("name", BATCH, reports_of(brokers, None))
    effect = core.begin()
    for _ in range(3):
        effect = core.step(performed(effect, brokers, 1))
    assert isinstance(effect, do.Write)
    brokers.driver = 2
    with pytest.raises(Crash):
        performed(effect, brokers, 1)
    assert set(brokers.transactions.values()) == {OPEN}


# What the ledger may say


def wrote(task: int, rows: int = 10, number: int = 1) -> TransactionReport:
    transaction = TransactionIdentity(task_id("name", RUN, task), number, 0, 2) if rows else None
    return TransactionReport(
        query_id="q",
        task=task,
        work=Work.WROTE,
        attempt=TaskAttempt(RUN, task),
        rows=rows,
        checksum=rows * 3,
        transaction=transaction,
    )


def counted(task: int, rows: int, checksum: int) -> TransactionReport:
    return TransactionReport(
        query_id="q", task=task, work=Work.COUNTED, attempt=TaskAttempt(RUN, task), rows=rows, checksum=checksum
    )


def none(task: int) -> TransactionReport:
    return TransactionReport(query_id="q", task=task, work=Work.NONE, attempt=TaskAttempt(RUN, task))


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


LISTED = LedgerTask(task=0, rows=10, checksum=30, transaction=TransactionIdentity("name/old/0", 9, 3, 2))
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
    assert "Where they are missing, ottla.spark.free_query_name('name', ...)" in str(failed.error)
    assert "and nothing is left out" in str(failed.error)


def test_what_is_known_to_be_lost_beside_what_nobody_knows() -> None:
    other = LedgerTask(task=1, rows=5, checksum=1, transaction=TransactionIdentity("name/old/1", 10, 0, 2))
    core, _ = after_reading(entry(PREPARED, BATCH, LISTED, other), none(0), none(1))
    core.step(do.Committed({0: do.Outcome.UNKNOWN, 1: do.Outcome.ABORTED}))
    failed = core.step(do.Aborted())
    assert isinstance(failed, do.Fail)
    assert "and only what task 1 had is left out" in str(failed.error)


def test_what_is_partly_committed_is_written_down() -> None:
    other = LedgerTask(task=1, rows=5, checksum=1, transaction=TransactionIdentity("name/old/1", 10, 0, 2))
    core, _ = after_reading(entry(PREPARED, BATCH, LISTED, other), none(0), none(1))
    written = core.step(do.Committed({0: do.Outcome.COMMITTED, 1: do.Outcome.ABORTED}))
    assert written == do.Write(entry(PARTIAL, BATCH, KEPT))
    assert core.step(do.Written()) == do.Abort(())
    failed = core.step(do.Aborted())
    assert isinstance(failed, do.Fail)
    assert "the time of task 1 was over before they were committed" in str(failed.error)
    assert "the others are, 10 rows, and the ledger knows which: only the rest is written" in str(failed.error)


def test_where_nothing_was_committed_there_is_nothing_to_compare() -> None:
    empty = LedgerTask(task=1, rows=0, checksum=0)
    core, _ = after_reading(entry(PREPARED, BATCH, LISTED, empty), none(0), none(1))
    written = core.step(do.Committed({0: do.Outcome.ABORTED}))
    assert isinstance(written, do.Write)
    assert (written.entry.state, written.entry.tasks) == (PARTIAL, ())
    core.step(do.Written())
    failed = core.step(do.Aborted())
    assert isinstance(failed, do.Fail)
    assert "nothing of the batch is seen, and all of it is written" in str(failed.error)


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
    # What to do: the plan as it was, or either of two ways with what each of them costs.
    for said in ("so nothing is written", "free_query_name('name', ...)", "up to 10 rows are there twice"):
        assert said in str(error)
    assert f"offsets/{BATCH}, the query goes on behind the batch, and what was not committed is left out" in str(error)


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
