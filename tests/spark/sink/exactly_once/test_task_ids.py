"""Ids of tasks' transactions: none comes twice in a micro-batch, however often Spark begins a task again."""

from __future__ import annotations

import pickle
from typing import Any

import pyarrow as pa
import pytest
from tests.spark.sink.conftest import frame
from tests.spark.sink.exactly_once.query import Crash, Query
from tests.spark.sink.of_a_task import of_a_task

from ottla.client.sync.loop_thread import LoopThread
from ottla.spark.sink import clients, stream_writer
from ottla.spark.sink.clients import KeptClients, kept_clients
from ottla.spark.sink.entries import LedgerEntry, TaskAttempt
from ottla.spark.sink.errors import LedgerFault
from ottla.spark.sink.exactly_once.core import BatchCommit
from ottla.spark.sink.exactly_once.effects import Fenced, LedgerRead, StraysFound, Write
from ottla.spark.sink.exactly_once.naming import is_task_id, number_of, task_id
from ottla.spark.sink.messages import TransactionReport, Work
from ottla.spark.sink.places import TaskPlace
from ottla.testing.in_process import InProcessBroker

RUN = "a" * 32


def writer_of(bootstrap: str, topic: str) -> Any:
    options = {"kafka.bootstrap.servers": bootstrap, "topic": topic, "ottla.query": topic, "ottla.exactlyOnce": "true"}
    return pickle.loads(pickle.dumps(stream_writer(frame("value binary"), False, options)))


def written(writer: Any, batch: int, row: bytes = b"row") -> TransactionReport:
    """By a task that Spark calls the first attempt: it says so of the first one at each attempt at a stage."""
    with of_a_task(batch, attempt=0):
        report = writer.write(iter([pa.record_batch({"value": [row]})]))
    assert isinstance(report, TransactionReport)
    return report


@pytest.mark.ottla_topic(partitions=2)
@pytest.mark.parametrize("prepared", [False, True])
def test_a_stage_that_is_attempted_again_ends_nothing_of_the_one_before(
    ottla_broker: InProcessBroker, topic: str, prepared: bool
) -> None:
    """An executor has died, and with it what a shuffle had left there: tasks that run go on beside their copies, and
    whichever is done first counts."""
    query = Query(ottla_broker.bootstrap, topic, kept_clients())
    writer = writer_of(ottla_broker.bootstrap, topic)
    counts = written(writer, 0)
    if prepared:
        with pytest.raises(Crash):
            query.commit(0, [counts], lambda effect, event: isinstance(effect, Write))
    copy = written(writer, 0)
    query.commit(0, [counts])
    assert query.seen() == ["row"]
    assert query.entry() == LedgerEntry(query_id="q", batch=0, rows=1)
    assert query.open() == []
    assert copy.transaction is not None
    assert counts.transaction is not None
    assert copy.transaction.transactional_id != counts.transaction.transactional_id


@pytest.mark.ottla_topic(partitions=2)
def test_the_next_micro_batch_has_the_ids_again(ottla_broker: InProcessBroker, topic: str) -> None:
    query = Query(ottla_broker.bootstrap, topic, kept_clients())
    ids = []
    for batch in range(4):
        report = written(writer_of(ottla_broker.bootstrap, topic), batch, b"%d" % batch)
        assert report.transaction is not None
        ids.append(report.transaction.transactional_id)
        query.commit(batch, [report])
    assert query.seen() == ["0", "1", "2", "3"]
    # The first one does not know where its application stands.
    assert len(set(ids[1:])) == 1
    assert all(is_task_id(topic, one) for one in ids)


@pytest.mark.ottla_topic(partitions=2)
def test_the_next_micro_batch_has_the_ids_again_whichever_process_plans_it(
    ottla_broker: InProcessBroker, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where several queries have planned at the same moment Spark has several processes for it, which take turns."""
    query = Query(ottla_broker.bootstrap, topic, kept_clients())
    planners = [KeptClients(LoopThread(f"planner-{number}")) for number in range(2)]
    ids = []
    for batch in range(6):
        with monkeypatch.context() as patch:
            patch.setattr(clients, "_kept", planners[batch % 2])
            writer = writer_of(ottla_broker.bootstrap, topic)
        report = written(writer, batch, b"%d" % batch)
        assert report.transaction is not None
        ids.append(report.transaction.transactional_id)
        query.commit(batch, [report])
    for planner in planners:
        planner.close()
    assert query.seen() == ["0", "1", "2", "3", "4", "5"]
    assert len(set(ids[1:])) == 1


def test_a_query_that_is_started_again_is_another_run() -> None:
    with of_a_task(0):
        first = TaskPlace.of_this_task().of_a_run()
    with of_a_task(0, run_id="d30c9f1c-2e07-4f3d-9ab5-63d5dd6f3a5f"):
        assert TaskPlace.of_this_task().of_a_run() == "d30c9f1c2e074f3d9ab563d5dd6f3a5f" != first
    assert is_task_id("name", task_id("name", first, 1))
    with of_a_task(0, run_id="nightly"), pytest.raises(LedgerFault, match=r"which run of a query a task is.*'nightly'"):
        TaskPlace.of_this_task().of_a_run()


def test_within_a_micro_batch_no_number_comes_twice() -> None:
    last = TaskAttempt(RUN, 40)
    assert [number_of(TaskAttempt(RUN, one), last) for one in range(41, 60)] == list(range(1, 20))


def test_another_run_counts_from_its_own_beginning() -> None:
    """Another application's numbers, or none: the first attempt at a task has the number 0."""
    for last in (None, TaskAttempt("b" * 32, 40)):
        assert [number_of(TaskAttempt(RUN, one), last) for one in (0, 1, 41)] == [1, 2, 42]


def test_an_attempt_before_the_last_one_is_a_fault() -> None:
    with pytest.raises(AssertionError):
        number_of(TaskAttempt(RUN, 40), TaskAttempt(RUN, 40))


def test_the_last_attempt_is_in_the_ledger() -> None:
    reports = [
        TransactionReport(query_id="q", task=task, work=Work.WROTE, attempt=TaskAttempt(RUN, attempt))
        for task, attempt in enumerate((5, 9, 7))
    ]
    core = BatchCommit("name", 3, reports)
    core.step(Fenced())
    core.step(LedgerRead(None))
    written = core.step(StraysFound(()))
    assert isinstance(written, Write)
    assert written.entry.last_attempt == TaskAttempt(RUN, 9)
    assert LedgerEntry.parsed(written.entry.value()).last_attempt == TaskAttempt(RUN, 9)


def test_ids_of_versions_before_are_known_as_strays() -> None:
    assert is_task_id("name", task_id("name", RUN, 12))
    assert is_task_id("name", f"name/{RUN}/12/3")
    assert not is_task_id("name", "name/driver")
    assert not is_task_id("name", f"name/{RUN}/12/x")
