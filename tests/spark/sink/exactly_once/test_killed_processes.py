"""SIGKILL behind every step, many times: tasks and driver in one process, and the next one goes on.

`test_kills.py` has the same under a real Spark.
"""

from __future__ import annotations

import os
import signal

import pytest
from tests.searches import some
from tests.spark.sink.exactly_once.killed import life
from tests.spark.sink.exactly_once.query import Query, lines

from ottla.client import sync
from ottla.spark.sink.clients import KeptClients
from ottla.spark.sink.entries import LedgerEntry
from ottla.testing.in_process import InProcessBroker

#: Of a task, then what the driver does: fenced, read, described, prepared, committed, strays found, done, cleaned.
STEPS = ("begin", "rows", "detach", "told", *(f"effect {number}" for number in range(1, 9)), "outcome")
SHARP = (("effect 4", 1),)
ROUNDS = int(os.environ.get("OTTLA_ROUNDS", "20"))
CASES = (*SHARP, *((step, ROUNDS) for step in STEPS))


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
