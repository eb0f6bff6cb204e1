"""Spark plans, commits and gives up by any of several processes, and ends the one whose commit has failed."""

from __future__ import annotations

import pytest
from tests.spark.sink.conftest import frame
from tests.spark.sink.exactly_once.query import Crash, Query, drawn_run, lines

from ottla.client.errors import RequestTimedOut
from ottla.spark.sink import stream_writer
from ottla.spark.sink.clients import close_kept_clients
from ottla.spark.sink.entries import PREPARED, LedgerTask
from ottla.spark.sink.errors import LedgerFault
from ottla.spark.sink.exactly_once.committing import BatchCommitter
from ottla.spark.sink.exactly_once.effects import Effect, Event, Outcome, Write
from ottla.spark.sink.exactly_once.writer import ExactlyOnceWriter

pytestmark = pytest.mark.ottla_topic(partitions=2)


def prepared(effect: Effect, event: Event) -> bool:
    return isinstance(effect, Write)


def test_processes_commit_in_turn(query: Query) -> None:
    """As they do where two queries of one session have committed at the same moment: Spark keeps both processes."""
    drivers = [query.driver(), query.driver()]
    for batch in range(6):
        drivers[batch % 2].commit(batch, query.whole(batch))
        assert query.seen() == lines(*range(batch + 1))
    for driver in drivers:
        driver.close()
    assert query.open() == []


def test_a_worker_keeps_its_connections_from_task_to_task(query: Query) -> None:
    first = query.producer("first")
    reports = query.whole(0)
    assert len({one.transaction for one in reports}) == len(reports)
    assert query.producer("last") is first


def test_what_is_listed_is_not_aborted(query: Query) -> None:
    """A commit that has failed behind PREPARED: the next driver has all of it, whatever rows it plans."""
    reports = query.whole(0)
    with pytest.raises(Crash):
        query.commit(0, reports, prepared)
    stray = query.report(0, 1, attempt=7)
    driver = query.driver()
    driver.abort([*reports, stray])
    driver.close()
    assert len(query.open()) == len(reports)
    query.run = drawn_run()
    query.commit(0, query.whole(0, moved=1))
    assert query.seen() == lines(0)


def test_what_nobody_has_listed_is_aborted(query: Query) -> None:
    driver = query.driver()
    driver.abort(query.whole(0))
    driver.close()
    assert (query.open(), query.entry()) == ([], None)


def test_a_commit_that_fails_and_the_abort_behind_it(query: Query, monkeypatch: pytest.MonkeyPatch) -> None:
    options = {
        "kafka.bootstrap.servers": query.settings["bootstrap.servers"],
        "topic": query.topic,
        "ottla.query": query.topic,
        "ottla.exactlyOnce": "true",
    }

    def writer() -> ExactlyOnceWriter:
        made = stream_writer(frame("value binary"), False, options)
        assert isinstance(made, ExactlyOnceWriter)
        return made

    async def unheard(self: BatchCommitter, task: LedgerTask) -> Outcome:
        raise RequestTimedOut("planted")

    reports = query.whole(0)
    with monkeypatch.context() as patch:
        patch.setattr(BatchCommitter, "_outcome", unheard)
        with pytest.raises(LedgerFault, match="tells the query that is started next: planted"):
            writer().commit(reports, 0)
    close_kept_clients()  # its process has ended
    writer().abort(reports, 0)
    entry = query.entry()
    assert entry is not None
    assert (entry.state, len(query.open())) == (PREPARED, len(reports))
    writer().commit(query.whole(0), 0)
    assert query.seen() == lines(0)
