"""Drivers and workers are killed at any moment: no row is lost, and no finished micro-batch is written twice."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from tests.spark.conftest import needs_java
from tests.spark.processes import descendants, end_all, python_workers
from tests.spark.sink.conftest import Read
from tests.spark.standalone import SPECULATION, ran_twice, standalone

from ottla.client import sync
from ottla.spark.sink.entries import LEDGER_TOPIC
from ottla.testing.in_process import InProcessBroker

pytestmark = [needs_java, pytest.mark.xdist_group("spark"), pytest.mark.ottla_topic(partitions=2)]

ROWS = 1500
#: One that fails is tried again: the death of a worker need not be the driver's.
MASTER = "local[2,4]"
#: A driver that shows nothing for so long hangs.
SECONDS_MAX = 900.0


class Rounds:
    """One query, started again after each kill."""

    def __init__(self, broker: InProcessBroker, topic: str, folder: Path, read: Read, files: int) -> None:
        self._read = read
        self._topic = topic
        self._bootstrap = broker.bootstrap
        self._log = folder / "driver.txt"
        self.lines = [f"{number} {row}" for number in range(files) for row in range(ROWS)]
        inputs = folder / "files"
        inputs.mkdir()
        for number in range(files):
            file = inputs / f"{number}.txt"
            file.write_text("".join(f"{line}\n" for line in self.lines[number * ROWS : (number + 1) * ROWS]))
            os.utime(file, (1_700_000_000 + number, 1_700_000_000 + number))
        self._given: dict[str, Any] = {
            "bootstrap": broker.bootstrap,
            "topic": topic,
            "files": str(inputs),
            "checkpoint": str(folder / "checkpoint"),
            "master": MASTER,
            "expression": "value",
            "config": {"spark.local.dir": str(folder / "local"), "spark.sql.shuffle.partitions": 2},
        }

    def on(self, master: str, expression: str, config: dict[str, str]) -> None:
        """Elsewhere than in one process."""
        self._given |= {"master": master, "expression": expression, "config": {**self._given["config"], **config}}

    def start(self) -> subprocess.Popen[bytes]:
        root = Path(__file__).resolve().parents[3]
        with self._log.open("ab") as log:
            return subprocess.Popen(
                [sys.executable, str(Path(__file__).with_name("killed_driver.py")), json.dumps(self._given)],
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
                env={**os.environ, "PYTHONPATH": f"{root / 'src'}:{root}"},
            )

    def wait_for(self, more: int, process: subprocess.Popen[bytes]) -> None:
        """Until the topic has so many records more than now, or the driver has ended."""
        with sync.Consumer(bootstrap_servers=self._bootstrap) as consumer:
            partitions = consumer.partitions_for(self._topic)
            consumer.assign(partitions)
            consumer.seek_to_end(*partitions)
            for tp in partitions:
                consumer.position(tp)
            found, give_up = 0, time.monotonic() + SECONDS_MAX
            while found < more and process.poll() is None:
                found += len(consumer.poll(timeout_ms=200))
                assert time.monotonic() < give_up, self.log()

    def log(self) -> str:
        return self._log.read_text(errors="replace")[-3000:]

    def counts(self) -> Counter[str]:
        return Counter((one.value or b"").decode() for one in self._read(self._topic))

    def finished(self) -> int:
        """The last batch that the ledger has; -1 before the first."""
        entries = [one.value for one in self._read(LEDGER_TOPIC) if one.key == self._topic.encode()]
        return json.loads(entries[-1] or b"")["batch"] if entries else -1

    def killed(self, after: int, *, driver: bool) -> tuple[int, Counter[str]]:
        """A run that is killed once so many records more are there; what is finished then, and what the topic has."""
        process = self.start()
        try:
            self.wait_for(after, process)
            if not driver:
                for worker in random.sample(workers := python_workers(process.pid), min(1, len(workers))):
                    os.kill(worker, 9)
                process.wait(SECONDS_MAX)
        finally:
            end_all(process.pid)
            process.wait()
        return self.finished(), self.counts()

    def to_the_end(self) -> None:
        process = self.start()
        try:
            assert process.wait(SECONDS_MAX) == 0, self.log()
        finally:
            end_all(process.pid)

    def check(self, kills: list[tuple[int, Counter[str]]]) -> None:
        found = self.counts()
        assert set(found) == set(self.lines)
        for finished, counts in kills:
            for line in self.lines[: (finished + 1) * ROWS]:
                assert counts[line] >= 1, line
                assert found[line] == counts[line], line


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_a_driver_is_killed(ottla_broker: InProcessBroker, topic: str, tmp_path: Path, read: Read) -> None:
    rounds = Rounds(ottla_broker, topic, tmp_path, read, files=3)
    kills = [rounds.killed(ROWS + ROWS // 3, driver=True)]
    rounds.to_the_end()
    rounds.check(kills)


@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_drivers_and_workers_are_killed(ottla_broker: InProcessBroker, topic: str, tmp_path: Path, read: Read) -> None:
    seed = int(os.environ.get("OTTLA_SEED", "0")) or random.randrange(2**31)
    print(f"seed {seed}")
    chance = random.Random(seed)
    rounds = Rounds(ottla_broker, topic, tmp_path, read, files=40)
    kills = [rounds.killed(chance.randrange(3 * ROWS), driver=bool(chance.randrange(2))) for _ in range(20)]
    rounds.to_the_end()
    rounds.check(kills)


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_executors_of_a_cluster_with_speculation(
    ottla_broker: InProcessBroker, topic: str, tmp_path: Path, read: Read
) -> None:
    """Two worker processes: a task that is slow runs a second time on the other's executor, and one executor dies."""
    rounds = Rounds(ottla_broker, topic, tmp_path, read, files=4)
    events = tmp_path / "events"
    events.mkdir()
    with standalone(tmp_path, workers=2) as (master, machines):
        slept = "java_method('java.lang.Thread', 'sleep', 20000L) = 'never'"
        slow = f"if(value = '1 700', if({slept}, '', value), value)"
        rounds.on(
            master,
            slow,
            {**SPECULATION, "spark.eventLog.dir": events.as_uri()},
        )
        process = rounds.start()
        try:
            rounds.wait_for(3 * ROWS, process)
            for executor in descendants(machines[0])[:1]:
                os.kill(executor, 9)
            assert process.wait(SECONDS_MAX) == 0, rounds.log()
        finally:
            end_all(process.pid)
    rounds.check([])
    assert rounds.finished() == 3
    assert ran_twice(events)
