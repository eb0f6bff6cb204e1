"""Drivers and workers are killed at any moment: no row is lost, and no finished micro-batch is written twice."""

from __future__ import annotations

import contextlib
import json
import os
import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.spark.attempts import check_attempts, kill_rounds
from tests.spark.conftest import needs_java
from tests.spark.processes import end_all, python_workers
from tests.spark.sink.conftest import Read
from tests.spark.standalone import SLOW, SPECULATION, executors, ran_twice, standalone, workers_of_python

from ottla.client import sync
from ottla.spark.sink.entries import LEDGER_TOPIC
from ottla.testing.in_process import InProcessBroker

pytestmark = [needs_java, pytest.mark.xdist_group("spark"), pytest.mark.ottla_topic(partitions=2)]

ROWS = 1500
#: One that fails is tried again: the death of a worker need not be the driver's.
MASTER = "local[2,4]"
ROUNDS = int(os.environ.get("OTTLA_SPARK_KILL_ROUNDS", "20"))
FILES_A_ROUND = 2
#: A driver that shows nothing for so long hangs.
SECONDS_MAX = 900.0


class Rounds:
    """One query over files, started again after each kill."""

    def __init__(self, broker: InProcessBroker, topic: str, folder: Path, read: Read, files: int) -> None:
        self._read = read
        self._topic = topic
        self._bootstrap = broker.bootstrap
        self._log = folder / "driver.txt"
        self.lines: list[str] = []
        self._inputs = folder / "files"
        self._inputs.mkdir()
        self._files = 0
        self.add(files)
        self._given: dict[str, Any] = {
            "bootstrap": broker.bootstrap,
            "topic": topic,
            "files": str(self._inputs),
            "checkpoint": str(folder / "checkpoint"),
            "master": MASTER,
            "expression": "value",
            "config": {"spark.local.dir": str(folder / "local"), "spark.sql.shuffle.partitions": 2},
        }

    def add(self, files: int) -> None:
        """So many more micro-batches to come."""
        for number in range(self._files, self._files + files):
            lines = [f"{number} {row}" for row in range(ROWS)]
            file = self._inputs / f"{number}.txt"
            file.write_text("".join(f"{line}\n" for line in lines))
            os.utime(file, (1_700_000_000 + number, 1_700_000_000 + number))
            self.lines += lines
        self._files += files

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

    def killed(self, after: int, victims: Callable[[int], list[int]]) -> tuple[int, Counter[str]]:
        """A run in which one of the victims is killed, once so many records more are there: the driver, whose pid the
        victims are asked for by, or another, without which the run goes on to its end. What is finished then, and what
        the topic has.
        """
        process = self.start()
        try:
            self.wait_for(after, process)
            found = victims(process.pid)
            victim = random.choice(found) if found else process.pid
            if victim == process.pid:
                end_all(process.pid)
            else:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(victim, 9)
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


def the_driver(pid: int) -> list[int]:
    return [pid]


def seeded() -> random.Random:
    seed = int(os.environ.get("OTTLA_SEED", "0")) or random.randrange(2**31)
    print(f"seed {seed}")
    return random.Random(seed)


def some_rounds(
    rounds: Rounds, chance: random.Random, victims: Sequence[Callable[[int], list[int]]], numbers: Iterable[int]
) -> int:
    """Each has new micro-batches, so that something is under way whenever somebody dies. How many there were."""
    kills = []
    for number in numbers:
        rounds.add(FILES_A_ROUND)
        chosen = chance.choice(victims)
        kills.append(rounds.killed(chance.randrange(FILES_A_ROUND * ROWS), chosen))
        print(f"round {number}: {chosen.__name__}, batch {kills[-1][0]} is finished")
    rounds.to_the_end()
    rounds.check(kills)
    assert rounds.finished() == len(kills) * FILES_A_ROUND - 1
    return len(kills)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_a_driver_is_killed(ottla_broker: InProcessBroker, topic: str, tmp_path: Path, read: Read) -> None:
    rounds = Rounds(ottla_broker, topic, tmp_path, read, files=3)
    kills = [rounds.killed(ROWS + ROWS // 3, the_driver)]
    rounds.to_the_end()
    rounds.check(kills)


@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_drivers_and_workers_are_killed(ottla_broker: InProcessBroker, topic: str, tmp_path: Path, read: Read) -> None:
    rounds = Rounds(ottla_broker, topic, tmp_path, read, files=0)
    some_rounds(rounds, seeded(), (the_driver, python_workers), range(ROUNDS))


@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_drivers_and_executors_are_killed_with_speculation(
    ottla_broker: InProcessBroker, topic: str, tmp_path: Path, read: Read
) -> None:
    rounds = Rounds(ottla_broker, topic, tmp_path, read, files=0)
    events = tmp_path / "events"
    events.mkdir()
    with standalone(tmp_path, workers=2) as (master, machines):
        slow = f"if(value = '0 700', if({SLOW}, '', value), value)"
        rounds.on(master, slow, {**SPECULATION, "spark.eventLog.dir": events.as_uri()})

        def an_executor(_: int) -> list[int]:
            return executors(machines)

        def a_worker(_: int) -> list[int]:
            return workers_of_python(machines)

        kills = some_rounds(rounds, seeded(), (the_driver, an_executor, a_worker), kill_rounds(ROUNDS, events))
    check_attempts(events, kills)


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
        slow = f"if(value = '1 700', if({SLOW}, '', value), value)"
        rounds.on(
            master,
            slow,
            {**SPECULATION, "spark.eventLog.dir": events.as_uri()},
        )
        process = rounds.start()
        try:
            rounds.wait_for(3 * ROWS, process)
            for executor in executors(machines[:1]):
                os.kill(executor, 9)
            assert process.wait(SECONDS_MAX) == 0, rounds.log()
        finally:
            end_all(process.pid)
    rounds.check([])
    assert rounds.finished() == 3
    assert ran_twice(events)
