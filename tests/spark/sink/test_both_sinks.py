"""One name through both sinks: a query that writes once at least has the ledger of one that writes exactly once."""

from __future__ import annotations

import pickle
from typing import Any

import pyarrow as pa
import pytest
from tests.spark.sink.conftest import frame
from tests.spark.sink.exactly_once.query import Crash, Query, lines
from tests.spark.sink.of_a_task import of_a_task

from ottla.client import sync
from ottla.spark.sink import stream_writer
from ottla.spark.sink.clients import kept_clients
from ottla.spark.sink.entries import DONE, PARTIAL, PREPARED, LedgerEntry
from ottla.spark.sink.errors import BatchNotCommitted, LedgerFault
from ottla.spark.sink.exactly_once.effects import Write
from ottla.testing.in_process import InProcessBroker

pytestmark = pytest.mark.ottla_topic(partitions=2)
TASKS = 3


@pytest.fixture
def query(ottla_broker: InProcessBroker, topic: str) -> Query:
    return Query(ottla_broker.bootstrap, topic, kept_clients())


class Sink:
    """As Spark calls it: with or without transactions, under the name of a query."""

    def __init__(self, query: Query, *, exactly_once: bool) -> None:
        self._options = {
            "kafka.bootstrap.servers": query.settings["bootstrap.servers"],
            "topic": query.topic,
            "ottla.query": query.topic,
            "ottla.exactlyOnce": str(exactly_once).lower(),
        }

    def writer(self) -> Any:
        return pickle.loads(pickle.dumps(stream_writer(frame("value binary"), False, self._options)))

    def written(self, batch: int) -> list[Any]:
        writer = self.writer()
        return [self._task(writer, batch, task) for task in range(TASKS)]

    def _task(self, writer: Any, batch: int, task: int) -> Any:
        rows = pa.record_batch({"value": [b"%d %d %d" % (batch, task, row) for row in range(4)]})
        with of_a_task(batch, task=task):
            return writer.write(iter([rows]))

    def batch(self, batch: int) -> None:
        reports = self.written(batch)
        self.writer().commit(reports, batch)


def test_a_query_that_changes_the_sink_between_two_micro_batches(query: Query) -> None:
    for batch, exactly_once in enumerate((False, True, False, False, True, True)):
        Sink(query, exactly_once=exactly_once).batch(batch)
        assert query.seen() == lines(*range(batch + 1))
        assert query.entry() == LedgerEntry(query_id="q", batch=batch, rows=12, state=DONE)
    assert query.open() == []


@pytest.mark.parametrize("first", [False, True])
def test_a_micro_batch_that_one_sink_has_finished_the_other_does_not_write(query: Query, first: bool) -> None:
    Sink(query, exactly_once=first).batch(0)
    Sink(query, exactly_once=not first).batch(0)
    assert query.seen() == lines(0)
    assert query.open() == []


def test_what_was_written_once_at_least_and_not_finished_is_written_again(query: Query) -> None:
    """Nobody can take it back: that is what once at least means."""
    Sink(query, exactly_once=False).written(0)
    Sink(query, exactly_once=True).batch(0)
    assert query.seen() == sorted(lines(0) * 2)
    assert query.entry() == LedgerEntry(query_id="q", batch=0, rows=12)


def prepared(query: Query) -> list[Any]:
    reports = query.whole(0)
    with pytest.raises(Crash):
        query.commit(0, reports, lambda effect, event: isinstance(effect, Write))
    return reports


def in_part(query: Query) -> None:
    reports = prepared(query)
    with sync.Producer(query.settings) as producer:
        producer.finish(reports[0].transaction)
        for one in reports[1:]:
            producer.finish(one.transaction, commit=False)
    with pytest.raises(BatchNotCommitted, match="task 1, task 2"):
        Sink(query, exactly_once=True).batch(0)


@pytest.mark.parametrize("state", [PREPARED, PARTIAL])
def test_what_is_to_be_committed_is_not_written_over(query: Query, state: str) -> None:
    """Its transactions would stay open, or be aborted, and what some tasks have committed would be there twice."""
    prepared(query) if state == PREPARED else in_part(query)
    before, seen = query.entry(), query.seen()
    assert before is not None
    assert before.state == state
    # Batch 0 again, or a checkpoint that goes on behind it.
    for batch in (0, 1):
        with pytest.raises(LedgerFault) as caught:
            Sink(query, exactly_once=False).written(batch)
        for said in (f"batch 0 of ottla.query={query.topic} is {state}", "ottla.exactlyOnce=true"):
            assert said in str(caught.value)
    assert (query.entry(), query.seen()) == (before, seen)
    Sink(query, exactly_once=True).batch(0)
    assert query.seen() == lines(0)
    assert query.open() == []
    Sink(query, exactly_once=False).batch(1)
    assert query.seen() == lines(0, 1)


def test_what_was_prepared_while_the_other_sink_wrote_is_not_written_over(query: Query) -> None:
    sink = Sink(query, exactly_once=False)
    reports = sink.written(0)
    prepared(query)
    with pytest.raises(LedgerFault, match="is PREPARED"):
        sink.writer().commit(reports, 0)
    entry = query.entry()
    assert entry is not None
    assert entry.state == PREPARED
    Sink(query, exactly_once=True).batch(0)
    assert query.open() == []
