"""Drivers and workers die behind every step of a commit: readers of committed records see every row once."""

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
from tests.interop.broker import Broker
from tests.spark.conftest import needs_java
from tests.spark.processes import end_all

from ottla.testing.in_process import InProcessBroker

pytestmark = [needs_java, pytest.mark.slow, pytest.mark.xdist_group("spark"), pytest.mark.timeout(7200)]

ROWS = 300
#: Fenced, read, described, prepared, committed, strays found, done, cleaned; then within a step.
DRIVERS_STEPS = (*(f"effect {number}" for number in range(1, 9)), "outcome")
#: The driver lives on, and writes all there is.
TASKS_STEPS = ("begin", "detach")
ROUNDS = int(os.environ.get("OTTLA_ROUNDS", "20"))
SECONDS_MAX = 900.0
ROOT = Path(__file__).resolve().parents[4]


class Killed:
    """One query over files, one a micro-batch, whose driver is started again and again."""

    def __init__(self, bootstrap: str, topic: str, folder: Path, files: int) -> None:
        self._log = folder / "driver.txt"
        self._bootstrap, self._topic = bootstrap, topic
        self.lines = [f"{number} {row}" for number in range(files) for row in range(ROWS)]
        self._plan = folder / "plan"
        inputs = folder / "files"
        inputs.mkdir()
        for number in range(files):
            file = inputs / f"{number}.txt"
            file.write_text("".join(f"{line}\n" for line in self.lines[number * ROWS : (number + 1) * ROWS]))
            os.utime(file, (1_700_000_000 + number, 1_700_000_000 + number))
        self._given: dict[str, Any] = {
            "bootstrap": bootstrap,
            "topic": topic,
            "files": str(inputs),
            "checkpoint": str(folder / "checkpoint"),
            # A task whose worker dies is tried again.
            "master": "local[2,4]",
            "expression": "value",
            "config": {"spark.local.dir": str(folder / "local"), "spark.sql.shuffle.partitions": 2},
            "dies": str(self._plan),
            "options": {"ottla.exactlyOnce": "true"},
        }

    def run(self, step: str | None = None) -> int:
        """Until all files are written, or the driver dies; its exit status."""
        if step is not None:
            self._plan.write_text(step)
        with self._log.open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, str(ROOT / "tests/spark/sink/killed_driver.py"), json.dumps(self._given)],
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

    def died(self, step: str) -> None:
        self.run(step)
        assert not self._plan.exists(), f"nobody died at {step}: {self.log()}"

    def log(self) -> str:
        return self._log.read_text(errors="replace")[-3000:]

    def seen(self) -> list[str]:
        return [value.decode() for value in asyncio.run(committed(self._bootstrap, self._topic))]

    def check(self) -> None:
        assert self.run() == 0, self.log()
        assert self.seen() == sorted(self.lines)


@pytest.mark.ottla_topic(partitions=2)
@pytest.mark.parametrize("step", [*DRIVERS_STEPS, *TASKS_STEPS])
def test_somebody_dies_behind_a_step(ottla_broker: InProcessBroker, topic: str, tmp_path: Path, step: str) -> None:
    rounds = 1 if step in TASKS_STEPS else ROUNDS
    killed = Killed(ottla_broker.bootstrap, topic, tmp_path, files=rounds + 1)
    for _ in range(rounds):
        killed.died(step)
        found = killed.seen()
        assert len(found) == len(set(found))
    killed.check()


def test_time_is_over_after_prepared(ottla_own_broker: InProcessBroker, topic: str, tmp_path: Path) -> None:
    ottla_own_broker.create_topic(topic, 2)
    killed = Killed(ottla_own_broker.bootstrap, topic, tmp_path, files=3)
    killed.died("effect 4")
    ottla_own_broker.advance("20m")
    assert killed.run() != 0
    assert "was over before they were committed" in killed.log()
    killed.died("outcome")
    ottla_own_broker.advance("20m")
    killed.run()  # it fails where some of them were not committed yet
    killed.check()


@pytest.mark.java
def test_on_apache_kafka(apache_kafka: Broker, topic: str, tmp_path: Path) -> None:
    killed = Killed(apache_kafka.bootstrap, topic, tmp_path, files=len(DRIVERS_STEPS) + 2)
    for step in (*DRIVERS_STEPS, "detach"):
        killed.died(step)
        found = killed.seen()
        assert len(found) == len(set(found))
    killed.check()
