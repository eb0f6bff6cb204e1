"""Whoever takes part in a commit dies behind every step of it: readers of committed records see every row once.

`OTTLA_ROUNDS` says how often at each step. Each round is a micro-batch, and in its last line the test counts the rounds
in which somebody has died: all of them.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.client.producing.transactions.generations import committed
from tests.spark.attempts import attempts
from tests.spark.conftest import needs_java
from tests.spark.processes import end_all
from tests.spark.sink.exactly_once.dying import COPIED
from tests.spark.standalone import SPECULATION, standalone

from ottla.client import sync
from ottla.testing.in_process import InProcessBroker

pytestmark = [needs_java, pytest.mark.slow, pytest.mark.xdist_group("spark"), pytest.mark.timeout(14_400)]

ROWS = 300
#: Fenced, read, described, prepared, committed, strays found, done, cleaned; and within a step.
COMMITS_STEPS = (*(f"effect {number}" for number in range(1, 9)), "outcome")
TASKS_STEPS = ("begin", "rows", "detach", "told")
ROUNDS = int(os.environ.get("OTTLA_ROUNDS", "20"))
SECONDS_MAX = 1800.0
ROOT = Path(__file__).resolve().parents[4]
#: A row in each file that takes its task some time, another time in each attempt.
SLOW = (
    "if(value LIKE '% 7', if(java_method('java.lang.Thread', 'sleep', bigint(rand() * 3000)) = '-', '', value), value)"
)


class Killed:
    """One query over files, one a micro-batch, whose driver is started again and again."""

    def __init__(self, bootstrap: str, topic: str, folder: Path, files: int) -> None:
        self._log = folder / "driver.txt"
        self._bootstrap, self._topic = bootstrap, topic
        self.lines = [f"{number} {row}" for number in range(files) for row in range(ROWS)]
        self._plans, inputs = folder / "plans", folder / "files"
        self._plans.mkdir()
        inputs.mkdir()
        for number in range(files):
            file = inputs / f"{number}.txt"
            file.write_text("".join(f"{line}\n" for line in self.lines[number * ROWS : (number + 1) * ROWS]))
            os.utime(file, (1_700_000_000 + number, 1_700_000_000 + number))
        self.given: dict[str, Any] = {
            "bootstrap": bootstrap,
            "topic": topic,
            "files": str(inputs),
            "checkpoint": str(folder / "checkpoint"),
            # A task whose worker dies is tried again.
            "master": "local[2,4]",
            "expression": "value",
            "config": {"spark.local.dir": str(folder / "local"), "spark.sql.shuffle.partitions": 2},
            "dies": str(self._plans),
            "options": {"ottla.exactlyOnce": "true"},
        }

    def plan(self, batch: int, step: str) -> None:
        (self._plans / str(batch)).write_text(step)

    def planned(self) -> int:
        """In how many micro-batches something of the plan is still to come."""
        return len(list(self._plans.glob("[0-9]*")))

    def run(self) -> int:
        """Until all files are written, or the driver dies; its exit status."""
        with self._log.open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, str(ROOT / "tests/spark/sink/killed_driver.py"), json.dumps(self.given)],
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
                start_new_session=True,
                env={**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"},
            )
        try:
            return process.wait(SECONDS_MAX)
        finally:
            end_all(process.pid)

    def log(self) -> str:
        return self._log.read_text(errors="replace")[-3000:]

    def seen(self) -> list[str]:
        return [value.decode() for value in asyncio.run(committed(self._bootstrap, self._topic))]

    def check(self) -> None:
        assert self.run() == 0, self.log()
        assert self.seen() == sorted(self.lines)
        assert self.planned() == 0, self.log()
        with sync.Admin(bootstrap_servers=self._bootstrap) as admin:
            listed = admin.list_transactions(states=["Ongoing"])
        assert [one for one in listed if one.transactional_id.startswith(f"{self._topic}/")] == []


@pytest.fixture(params=["ottla", pytest.param("kafka", marks=pytest.mark.java)])
def bootstrap(request: pytest.FixtureRequest, topic: str) -> str:
    """Of a broker that has the topic."""
    if request.param == "ottla":
        ottla: InProcessBroker = request.getfixturevalue("ottla_broker")
        return ottla.bootstrap
    kafka: str = request.getfixturevalue("apache_kafka").bootstrap
    with sync.Admin(bootstrap_servers=kafka) as admin:
        admin.create_topic(topic, 2, 1)
    return kafka


@pytest.fixture
def killed(bootstrap: str, topic: str, tmp_path: Path) -> Killed:
    return Killed(bootstrap, topic, tmp_path, files=ROUNDS + 1)


@pytest.mark.ottla_topic(partitions=2)
@pytest.mark.parametrize("step", COMMITS_STEPS)
def test_a_driver_dies_with_all_that_it_has(killed: Killed, step: str) -> None:
    for batch in range(ROUNDS):
        killed.plan(batch, f"session {step}")
    for left in reversed(range(ROUNDS)):
        assert killed.run() != 0, killed.log()
        assert killed.planned() == left, killed.log()
        found = killed.seen()
        assert len(found) == len(set(found))
    killed.check()


@pytest.mark.ottla_topic(partitions=2)
@pytest.mark.parametrize("step", COMMITS_STEPS)
def test_the_process_dies_that_commits(killed: Killed, step: str) -> None:
    """The query fails, Spark has what it knows of aborted by another process, and the driver starts it again."""
    for batch in range(ROUNDS):
        killed.plan(batch, f"committer {step}")
    killed.given["fails"] = ROUNDS
    killed.check()


@pytest.mark.ottla_topic(partitions=2)
@pytest.mark.parametrize("step", TASKS_STEPS)
def test_a_worker_dies(killed: Killed, step: str) -> None:
    for batch in range(ROUNDS):
        killed.plan(batch, f"worker {step}")
    killed.check()


@pytest.mark.ottla_topic(partitions=2)
@pytest.mark.parametrize("step", TASKS_STEPS)
def test_an_executor_dies_while_tasks_run_twice(
    killed: Killed, tmp_path: Path, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a cluster of Spark's own, with speculation: a task that is slow runs on the other executor as well.

    In every second round one of the two dies that have the same task; in the others whoever comes first.
    """
    monkeypatch.setenv("PYTHONPATH", f"{ROOT / 'src'}:{ROOT}")
    events = tmp_path / "events"
    events.mkdir()
    for batch in range(ROUNDS):
        killed.plan(batch, f"executor {step}" if batch % 2 else f"{COPIED}\nexecutor {step}")
    with standalone(tmp_path, workers=2) as (master, _):
        killed.given |= {"master": master, "expression": SLOW}
        # An executor that has died was in the middle of what others wait for: the query may fail, and is started again.
        killed.given["fails"] = ROUNDS
        killed.given["config"] |= {**SPECULATION, "spark.eventLog.dir": events.as_uri(), "spark.task.maxFailures": "8"}
        killed.check()
    copies = attempts(events).speculative
    print(f"{copies} tasks had a copy in {ROUNDS} rounds")
    assert copies


def test_time_is_over_after_prepared(ottla_own_broker: InProcessBroker, topic: str, tmp_path: Path) -> None:
    ottla_own_broker.create_topic(topic, 2)
    killed = Killed(ottla_own_broker.bootstrap, topic, tmp_path, files=3)
    killed.plan(0, "session effect 4")
    assert killed.run() != 0
    ottla_own_broker.advance("20m")
    assert killed.run() != 0
    assert "was over before they were committed" in killed.log()
    killed.plan(0, "session outcome")
    assert killed.run() != 0
    ottla_own_broker.advance("20m")
    killed.run()  # it fails where some of them were not committed yet
    killed.check()
