"""Spark's own cluster of two worker processes reads a stream, on tasks that run twice, and executors die."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.spark.attempts import check_attempts, kill_rounds
from tests.spark.conftest import needs_java
from tests.spark.processes import descendants, end_all, listening
from tests.spark.source.conftest import Fill
from tests.spark.source.test_driver_killed import ROUNDS, ROWS_A_ROUND, driver, numbers
from tests.spark.standalone import SPECULATION, executors, standalone, workers_of_python

from ottla.pipeline.flows import SLOW_START
from ottla.testing import InProcessBroker

pytestmark = [needs_java, pytest.mark.slow, pytest.mark.xdist_group("spark"), pytest.mark.timeout(7200)]

ROWS = 1200
BATCHES = 3
#: Nothing takes nearly so long.
SECONDS_MAX = 900.0
#: Few enough that a round has several batches.
RECORDS_A_BATCH = "40"


def test_every_record_once_though_an_executor_dies(
    broker: InProcessBroker, topic: str, fill: Fill, tmp_path: Path
) -> None:
    fill(broker.bootstrap, topic, ROWS)
    with standalone(tmp_path, workers=2) as (master, machines):
        config = json.dumps({**SPECULATION, "spark.eventLog.enabled": "false"})
        running = driver(broker.bootstrap, topic, tmp_path, "all", master, config)
        try:
            assert running.stdout is not None
            batches = 0
            addresses: set[str] = set()
            for line in running.stdout:
                batches += line.startswith("batch")
                if batches == BATCHES:
                    at_work = [running.pid, *executors(machines)]
                    addresses |= listening([one for pid in at_work for one in (pid, *descendants(pid))])
                    for executor in executors(machines[:1]):
                        os.kill(executor, signal.SIGKILL)
            assert running.wait() == 0
        finally:
            end_all(running.pid)
    assert batches > BATCHES
    assert sorted(numbers(tmp_path)) == list(range(ROWS))
    # The driver's, and that of each machine: all of 127.0.0.0/8 is this one.
    assert {address.split()[0] for address in addresses} - {"::1"} == {"127.0.0.1", "127.0.0.2"}


class Rounds:
    """One query, which goes on from wherever a kill has left it."""

    def __init__(self, folder: Path, start: Callable[[], subprocess.Popen[str]]) -> None:
        self._folder = folder
        self._start = start
        self._running: subprocess.Popen[str] | None = None

    def goes_on(self, batches: int) -> None:
        """Until there are so many batches."""
        give_up = time.monotonic() + SECONDS_MAX
        while len(list(self._folder.glob("*.numbers"))) < batches:
            assert time.monotonic() < give_up, self.log()
            if self._running is not None and self._running.poll() is not None:
                # Spark gives Python ten seconds to start, and has no setting for that.
                assert SLOW_START in self.log(), self.log()
                self.end()
            if self._running is None:
                self._running = self._start()
            time.sleep(0.02)

    def log(self) -> str:
        return (self._folder / "driver.txt").read_text(errors="replace")[-5000:]

    def kill(self, victims: list[int]) -> str:
        """One of them, or the driver where there is none; who it was."""
        if not victims:
            self.end()
            return "driver"
        with contextlib.suppress(ProcessLookupError):
            os.kill(random.choice(victims), signal.SIGKILL)
        return "other"

    def end(self) -> None:
        if self._running is not None:
            end_all(self._running.pid)
            self._running.communicate()
            self._running = None


def test_drivers_and_executors_are_killed_with_speculation(
    broker: InProcessBroker, topic: str, fill: Fill, tmp_path: Path
) -> None:
    seed = int(os.environ.get("OTTLA_SEED", "0")) or random.randrange(2**31)
    print(f"seed {seed}")
    chance = random.Random(seed)
    events = tmp_path / "events"
    events.mkdir()
    victims: dict[str, Callable[[list[int]], list[int]]] = {
        "executor": executors,
        "worker of Python": workers_of_python,
        "driver": lambda _: [],
    }
    with standalone(tmp_path, workers=2) as (master, machines):
        config = {**SPECULATION, "spark.eventLog.dir": events.as_uri(), "records": RECORDS_A_BATCH}
        rounds = Rounds(tmp_path, lambda: driver(broker.bootstrap, topic, tmp_path, master, json.dumps(config)))
        written = batches = kills = 0
        try:
            for number in kill_rounds(ROUNDS, events):
                fill(broker.bootstrap, topic, ROWS_A_ROUND, first=written)
                written += ROWS_A_ROUND
                batches += chance.randrange(1, 4)
                rounds.goes_on(batches)
                time.sleep(chance.random())
                who = chance.choice(list(victims))
                print(f"round {number}: {who}, {rounds.kill(victims[who](machines))}")
                kills += 1
            rounds.end()
            # Nobody has read this one yet, so that the copy of its task is no matter of chance.
            fill(broker.bootstrap, topic, ROWS_A_ROUND, first=written)
            written += ROWS_A_ROUND
            config["slow"] = str(written - 1)
            last = driver(broker.bootstrap, topic, tmp_path, "all", master, json.dumps(config))
            last.communicate()
            assert last.returncode == 0, rounds.log()
        finally:
            rounds.end()
    assert sorted(numbers(tmp_path)) == list(range(written)), f"seed {seed}"
    check_attempts(events, kills)
