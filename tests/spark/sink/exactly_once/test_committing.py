"""Tasks and the driver on a broker, without Spark: what is seen by readers of committed records, whatever happens."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa
import pytest
from tests.client.producing.transactions.generations import GENERATIONS, speaking
from tests.interop.broker import Broker
from tests.spark.sink.exactly_once.query import COLUMNS, TASKS, Crash, Query, drawn_run, lines

from ottla.client import sync
from ottla.spark.sink.clients import KeptClients, close_kept_clients, kept_clients
from ottla.spark.sink.entries import DONE, PARTIAL, PREPARED, LedgerEntry, LedgerTask, TaskAttempt
from ottla.spark.sink.errors import BatchNotCommitted, DriverFenced, RowsMoved
from ottla.spark.sink.exactly_once.effects import Commit, Effect, Event, Fence, Write
from ottla.spark.sink.exactly_once.naming import task_id
from ottla.spark.sink.exactly_once.tasks import TransactionalTask
from ottla.spark.sink.ledger import Ledger, free_query_name
from ottla.spark.sink.messages import Work
from ottla.testing.in_process import InProcessBroker

pytestmark = pytest.mark.ottla_topic(partitions=2)


def test_rows_are_seen_when_the_driver_has_committed(query: Query) -> None:
    for batch in range(2):
        reports = [*query.whole(batch), query.report(batch, TASKS, rows=0)]
        assert [one.transaction is None for one in reports] == [False] * TASKS + [True]
        assert query.seen() == lines(*range(batch))
        query.commit(batch, reports)
        assert query.seen() == lines(*range(batch + 1))
        assert query.entry() == LedgerEntry(query_id="q", batch=batch, rows=12)
    assert query.open() == []


def dies_behind(query: Query, at: int, batch: int = 0) -> None:
    """And another driver goes on."""
    query.report(batch, 0, attempt=1)
    steps = iter(range(100))
    with pytest.raises(Crash):
        query.commit(batch, query.whole(batch), lambda effect, event: next(steps) == at)
    query.run = drawn_run()
    query.commit(batch, query.whole(batch))
    assert query.seen() == lines(*range(batch + 1))
    assert query.open() == []


#: Fenced, read, described, prepared, committed, strays found, done, aborted.
STEPS = range(8)


@pytest.mark.parametrize("at", STEPS)
def test_a_driver_that_dies_behind_each_step(query: Query, at: int) -> None:
    dies_behind(query, at)


@pytest.mark.java
@pytest.mark.slow
def test_apache_kafka_is_written_to_as_ottla_is(apache_kafka: Broker, topic: str, worker: KeptClients) -> None:
    with sync.Admin(bootstrap_servers=apache_kafka.bootstrap) as admin:
        admin.create_topic(topic, 2, 1)
    query = Query(apache_kafka.bootstrap, topic, worker)
    for at in STEPS:
        dies_behind(query, at, batch=at)
    batch = len(STEPS)
    query.timeout = {"transaction.timeout.ms": "3000"}
    reports = query.whole(batch)
    with pytest.raises(Crash):
        query.commit(batch, reports, lambda effect, event: isinstance(effect, Write))
    query.timeout = {}
    with sync.Producer(query.settings) as producer:
        producer.finish(reports[0].transaction)
    while query.open():  # Kafka looks for them every ten seconds
        pass
    query.run = drawn_run()
    with pytest.raises(BatchNotCommitted, match="the time of task 1, task 2 was over before they were committed"):
        query.commit(batch, query.whole(batch))
    query.commit(batch, query.whole(batch))
    assert query.seen() == lines(*range(batch + 1))


@pytest.mark.parametrize("generation", GENERATIONS)
def test_time_is_over_after_prepared(
    ottla_own_broker: InProcessBroker, worker: KeptClients, topic: str, generation: int
) -> None:
    ottla_own_broker.create_topic(topic, 2)
    proxy = worker.thread.run(lambda: speaking(ottla_own_broker.bootstrap, generation).__aenter__())
    query = Query(proxy.bootstrap, topic, worker)
    reports = query.whole(0)
    assert {one.transaction.version for one in reports if one.transaction} == {generation}
    _one_is_committed_the_others_run_out(ottla_own_broker, query, reports)
    worker.thread.run(lambda: proxy.__aexit__(None, None, None))


def _one_is_committed_the_others_run_out(alone: InProcessBroker, query: Query, reports: list[Any]) -> None:
    def prepared(effect: Effect, event: Event) -> bool:
        return isinstance(effect, Write)

    with pytest.raises(Crash):
        query.commit(0, reports, prepared)
    entry = query.entry()
    assert entry is not None
    assert (entry.state, entry.rows, len(entry.tasks)) == (PREPARED, 12, TASKS)
    with sync.Producer(query.settings) as producer:
        producer.finish(reports[0].transaction)
    alone.advance("20m")
    query.run = drawn_run()
    with pytest.raises(BatchNotCommitted, match="the time of task 1, task 2 was over before they were committed"):
        query.commit(0, query.whole(0))
    told = reports[0]
    kept = LedgerTask(task=0, rows=4, checksum=told.checksum)
    assert query.entry() == LedgerEntry(query_id="q", batch=0, rows=4, state=PARTIAL, tasks=(kept,))

    with pytest.raises(RowsMoved, match="its 4 rows are not the same"):
        query.commit(0, query.whole(0, moved=1))
    again = query.whole(0)
    assert [one.work for one in again] == [Work.COUNTED, Work.WROTE, Work.WROTE]
    query.commit(0, again)
    assert query.seen() == lines(0)
    assert query.entry() == LedgerEntry(query_id="q", batch=0, rows=12)


def test_rows_that_have_moved_are_written_again_where_the_name_is_freed(query: Query) -> None:
    """What the error says: nothing is left out, and what was committed is there twice."""
    reports = query.whole(0)
    with pytest.raises(Crash):
        query.commit(0, reports, lambda effect, event: isinstance(effect, Write))
    with sync.Producer(query.settings) as producer:
        producer.finish(reports[0].transaction)
        for one in reports[1:]:
            producer.finish(one.transaction, commit=False)
    query.run = drawn_run()
    with pytest.raises(BatchNotCommitted, match="the others are, 4 rows, and the ledger knows which"):
        query.commit(0, query.whole(0))
    with pytest.raises(RowsMoved, match="up to 4 rows are there twice"):
        query.commit(0, query.whole(0, moved=1))
    assert free_query_name(query.topic, query.settings)
    query.commit(0, query.whole(0, moved=1))
    assert query.seen() == sorted(
        [f"0 0 {row}" for row in range(4)] + [f"0 {task} {row + 1}" for task in range(TASKS) for row in range(4)]
    )
    assert query.open() == []


def test_an_id_that_was_used_again_is_looked_for_in_the_log(query: Query) -> None:
    """Its coordinator can say no more whether it was committed."""
    reports = query.whole(0)
    with pytest.raises(Crash):
        query.commit(0, reports, lambda effect, event: isinstance(effect, Write))
    with sync.Producer(query.settings) as producer:
        producer.finish(reports[0].transaction)
    with sync.Admin(query.settings) as admin:
        admin.fence_producers([reports[0].transaction.transactional_id, reports[1].transaction.transactional_id])  # type: ignore[union-attr]  # they have
    with pytest.raises(BatchNotCommitted, match="the time of task 1 was over"):
        query.commit(0, query.whole(0))
    query.run = drawn_run()
    query.commit(0, query.whole(0))
    assert query.seen() == lines(0)


def test_an_id_that_was_used_again_and_a_topic_that_was_made_again(query: Query, ottla_broker: InProcessBroker) -> None:
    """Nothing stands where a record of the task was, and nothing will."""
    reports = query.whole(0)
    with pytest.raises(Crash):
        query.commit(0, reports, lambda effect, event: isinstance(effect, Write))
    with sync.Admin(query.settings) as admin:
        admin.fence_producers([one.transaction.transactional_id for one in reports])  # type: ignore[union-attr]  # as above
    ottla_broker.delete_topic(query.topic)
    ottla_broker.create_topic(query.topic, 2)
    query.settings["default.api.timeout.ms"] = "5000"
    with pytest.raises(BatchNotCommitted, match="whether task 0, task 1, task 2 are committed, nobody can say"):
        query.commit(0, query.whole(0))


def test_a_task_that_was_fenced_before_prepared(query: Query) -> None:
    reports = query.whole(0)
    with sync.Admin(query.settings) as admin:
        admin.fence_producers([reports[1].transaction.transactional_id])  # type: ignore[union-attr]  # it has one
    with pytest.raises(BatchNotCommitted, match="the transactions of task 1 were ended before"):
        query.commit(0, reports)
    assert (query.seen(), query.open(), query.entry()) == ([], [], None)
    query.commit(0, query.whole(0))
    assert query.seen() == lines(0)


def test_an_older_driver_is_fenced(query: Query) -> None:
    older = query.driver()
    reports = query.whole(0)
    older.perform(Fence())
    query.run = drawn_run()
    query.commit(0, query.whole(0))
    with pytest.raises(DriverFenced, match="another driver of"):
        older.perform(Write(LedgerEntry(query_id="q", batch=5, rows=0)))
    older.close()
    assert query.entry() == LedgerEntry(query_id="q", batch=0, rows=12)
    assert query.seen() == lines(0)
    assert reports


def test_another_names_open_write_does_not_hide_the_last_entry(
    ottla_own_broker: InProcessBroker, topic: str, worker: KeptClients
) -> None:
    """A driver that dies in the middle of a write keeps readers of committed records before it."""
    ottla_own_broker.create_topic(topic, 2)
    query = Query(ottla_own_broker.bootstrap, topic, worker)
    query.commit(0, query.whole(0))
    other = sync.Producer(query.settings, transactional_id="other/driver", transaction_timeout_ms=900_000)
    other.begin()
    other.send_and_wait("__ottla_spark", b"{}", b"other", partition=0)
    query.thread.run(lambda: _wrote_done(query, 1))
    reading = worker.thread.begin(lambda: _entry(query))
    assert not reading.done()
    other.abort()
    other.close()
    entry = reading.result(60)
    assert entry is not None
    assert (entry.batch, entry.state) == (1, DONE)


async def _wrote_done(query: Query, batch: int) -> None:
    ledger = Ledger(query.settings, query.topic)
    await ledger.fence("again/driver")
    await ledger.write(LedgerEntry(query_id="q", batch=batch, rows=0))
    await ledger.close()


async def _entry(query: Query) -> LedgerEntry | None:
    ledger = Ledger(query.settings, query.topic)
    try:
        return await ledger.entry()
    finally:
        await ledger.close()


def test_how_long_transactions_may_be_open_is_asked_of_the_brokers(ottla_broker: InProcessBroker, topic: str) -> None:
    from ottla.spark.sink.target import checked_target

    given: Mapping[str, str] = {
        "kafka.bootstrap.servers": ottla_broker.bootstrap,
        "topic": topic,
        "ottla.query": topic,
        "ottla.exactlyOnce": "true",
    }
    assert kept_clients().transaction_ms_max(checked_target(given, streaming=True)) == 900_000
    close_kept_clients()


def test_a_failed_task_leaves_nothing_open(query: Query) -> None:
    def broken() -> Iterator[Any]:
        yield pa.record_batch({"value": [b"1"]})
        yield pa.record_batch({"value": [b"2"]})
        raise LookupError("from above")

    name = task_id(query.topic, query.run, 0)
    task = TransactionalTask("q", 0, 0, TaskAttempt(query.run, 0))
    with pytest.raises(LookupError, match="from above"):
        task.written(broken(), COLUMNS, query.topic, lambda: query.producer(name), query.thread)
    assert query.open() == []


def test_commits_are_repeated_until_they_are_answered(query: Query) -> None:
    """A driver that has committed all and died before it could write so."""
    reports = query.whole(0)
    with pytest.raises(Crash):
        query.commit(0, reports, lambda effect, event: isinstance(effect, Commit))
    query.run = drawn_run()
    again = query.whole(0)
    assert [one.work for one in again] == [Work.NONE] * TASKS
    query.commit(0, again)
    assert query.seen() == lines(0)
