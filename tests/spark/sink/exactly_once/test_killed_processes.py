"""SIGKILL behind every step, many times: tasks and driver in one process, and the next one goes on.

`test_kills.py` has the same under a real Spark.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable

import pytest
from tests.searches import some
from tests.spark.sink.exactly_once.killed import life
from tests.spark.sink.exactly_once.query import Query, lines

from ottla.client import sync
from ottla.spark.sink.clients import KeptClients
from ottla.spark.sink.entries import PARTIAL, LedgerEntry
from ottla.testing.in_process import InProcessBroker

#: Of a task, then what the driver does: fenced, read, described, prepared, committed, strays found, done, cleaned.
STEPS = ("begin", "rows", "detach", "told", *(f"effect {number}" for number in range(1, 9)), "outcome")
SHARP = (("effect 4", 1),)
ROUNDS = int(os.environ.get("OTTLA_ROUNDS", "20"))
CASES = (*SHARP, *((step, ROUNDS) for step in STEPS))
#: Behind PREPARED: before the first commit, and behind one of them.
LISTED = ("effect 4", "outcome")
LATE_CASES = (("outcome", 1), *((step, ROUNDS) for step in LISTED))
#: Of tasks' transactions, where nobody can move the broker's clock: enough for a micro-batch beside much other work.
SHORT_MS = 10_000
LOOK_S = 0.2


@pytest.fixture(params=["ottla", pytest.param("kafka", marks=[pytest.mark.java, pytest.mark.slow])])
def bootstrap(request: pytest.FixtureRequest, topic: str) -> str:
    """Of a broker that has the topic."""
    if request.param == "ottla":
        ottla: InProcessBroker = request.getfixturevalue("ottla_broker")
        return ottla.bootstrap
    kafka: str = request.getfixturevalue("apache_kafka").bootstrap
    with sync.Admin(bootstrap_servers=kafka) as admin:
        admin.create_topic(topic, 2, 1)
    return kafka


@pytest.mark.ottla_topic(partitions=2)
@pytest.mark.timeout(3600)
@pytest.mark.parametrize(("step", "rounds"), some(CASES, *SHARP))
def test_a_process_dies_behind_a_step(bootstrap: str, topic: str, worker: KeptClients, step: str, rounds: int) -> None:
    query = Query(bootstrap, topic, worker)
    for batch in range(rounds):
        assert life(bootstrap, topic, batch, step) == -signal.SIGKILL, f"nobody died at {step}"
        if batch % 2:  # the next one dies there too, unless it has less to do
            assert life(bootstrap, topic, batch, step) in {-signal.SIGKILL, 0}
        seen = query.seen()
        assert len(seen) == len(set(seen))
        assert life(bootstrap, topic, batch, None) == 0
        assert query.seen() == lines(*range(batch + 1))
        assert query.entry() == LedgerEntry(query_id="q", batch=batch, rows=12)
    assert query.open() == []


@pytest.fixture(params=["ottla", pytest.param("kafka", marks=[pytest.mark.java, pytest.mark.slow])])
def late(request: pytest.FixtureRequest, topic: str, worker: KeptClients) -> tuple[Query, Callable[[], None]]:
    """A query, and what has the time of all its transactions be over."""
    if request.param == "ottla":
        ottla: InProcessBroker = request.getfixturevalue("ottla_own_broker")
        ottla.create_topic(topic, 2)
        return Query(ottla.bootstrap, topic, worker), lambda: ottla.advance("20m")
    kafka: str = request.getfixturevalue("apache_kafka").bootstrap
    with sync.Admin(bootstrap_servers=kafka) as admin:
        admin.create_topic(topic, 2, 1)
    query = Query(kafka, topic, worker)
    query.timeout = {"transaction.timeout.ms": str(SHORT_MS)}

    def wait() -> None:
        while query.open():
            time.sleep(LOOK_S)

    return query, wait


@pytest.mark.timeout(3600)
@pytest.mark.parametrize(("step", "rounds"), some(LATE_CASES, LATE_CASES[0]))
def test_time_is_over_after_prepared(late: tuple[Query, Callable[[], None]], step: str, rounds: int) -> None:
    """What is listed was not committed in time: the next one says so, and the one after it writes what is missing."""
    query, over = late
    bootstrap, topic = query.settings["bootstrap.servers"], query.topic
    timeout_ms = SHORT_MS if query.timeout else None
    failed = 0
    for batch in range(rounds):
        assert life(bootstrap, topic, batch, step, timeout_ms) == -signal.SIGKILL
        over()
        seen = query.seen()
        assert len(seen) == len(set(seen))
        if life(bootstrap, topic, batch, None, timeout_ms):
            failed += 1
            entry = query.entry()
            assert entry is not None
            assert (entry.batch, entry.state) == (batch, PARTIAL)
            assert life(bootstrap, topic, batch, None, timeout_ms) == 0
        assert query.seen() == lines(*range(batch + 1))
        assert query.entry() == LedgerEntry(query_id="q", batch=batch, rows=12)
    assert query.open() == []
    # Commits go side by side: behind the first of them all may be on their way.
    print(f"in {failed} of {rounds} rounds some were aborted")
    assert failed == rounds or step == "outcome"
