"""Drivers, executors and workers are killed at any moment: each row is in the tables once, each bad record in the dead
letters.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from tests.conftest import REPOSITORY
from tests.pipeline.conftest import Pipeline
from tests.spark.conftest import needs_java
from tests.spark.processes import descendants, end_all, python_workers
from tests.spark.standalone import SPECULATION, ran_twice, standalone

from ottla.pipeline.tables.log import TableLog

pytestmark = [needs_java, pytest.mark.xdist_group("spark")]

TABLES = ("raw", "orders", "totals")
#: A driver that shows nothing for so long hangs.
SECONDS_MAX = 900.0
ROUNDS = int(os.environ.get("OTTLA_SPARK_KILL_ROUNDS", "20"))
FILE = """
@table
def raw():
    return read_topic("TOPIC", maxOffsetsPerTrigger=BATCH)

@table
@expect_or_drop("positive", "amount > 0")
def orders():
    return decode_json(read_stream("raw"), "id INT, amount INT")

@table(keys=["half"])
def totals():
    return read_stream("orders").groupBy((F.col("id") % 2).alias("half")).agg(F.count("*").alias("orders"))
"""


class Rounds:
    """One pipeline over one topic, started again after each kill."""

    def __init__(self, pipeline: Pipeline, records: int, batch: int) -> None:
        self.pipeline = pipeline
        self.records = records
        pipeline.define(FILE.replace("BATCH", str(batch)))
        pipeline.send(*({"id": number, "amount": number % 10} for number in range(records)))
        self._log = pipeline.folder / "driver.txt"
        self._spark = ["--master", "local[2]"]

    def on(self, master: str, config: Mapping[str, str]) -> None:
        """Elsewhere than in one process."""
        self._spark = ["--master", master]
        for name, value in config.items():
            self._spark += ["--conf", f"{name}={value}"]

    def start(self) -> subprocess.Popen[bytes]:
        words = [
            "pipeline",
            "run",
            str(self.pipeline.path),
            "--folder",
            self.pipeline.places.folder,
            "--mode",
            "catch-up",
        ]
        more = [
            "-b",
            self.pipeline.broker.bootstrap,
            *self._spark,
            "--conf",
            "spark.sql.shuffle.partitions=2",
        ]
        with self._log.open("ab") as log:
            return subprocess.Popen(
                [sys.executable, "-m", "ottla", *words, *more],
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
                env={**os.environ, "PYTHONPATH": f"{REPOSITORY / 'src'}"},
                cwd=self.pipeline.folder,
            )

    def log(self) -> str:
        return self._log.read_text(errors="replace")[-3000:]

    def versions(self) -> int:
        return sum(TableLog(self.pipeline.places.table(name)).state().version + 1 for name in TABLES)

    def wait_for(self, more: int, process: subprocess.Popen[bytes]) -> None:
        """Until the tables have so many versions more, or the driver has ended."""
        wanted, give_up = self.versions() + more, time.monotonic() + SECONDS_MAX
        while self.versions() < wanted and process.poll() is None:
            assert time.monotonic() < give_up, self.log()
            time.sleep(0.02)

    def killed(self, after: int, seconds: float, others: Callable[[], list[int]] = list) -> None:
        """Once the tables have so many versions more, and then a moment. Where there are `others`, one of them dies
        first, and the driver when it has gone on without.
        """
        process = self.start()
        try:
            self.wait_for(after, process)
            time.sleep(seconds)
            for one in random.sample(found := others(), min(1, len(found))):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(one, signal.SIGKILL)
                self.wait_for(2, process)
        finally:
            end_all(process.pid)
            process.wait()

    def to_the_end(self) -> None:
        process = self.start()
        try:
            assert process.wait(SECONDS_MAX) == 0, self.log()
        finally:
            end_all(process.pid)

    def check(self) -> None:
        pipeline = self.pipeline
        raw = pipeline.rows("raw", "cast(value AS string)")
        good = [number for number in range(self.records) if number % 10]
        assert len(raw) == len(set(raw)) == self.records
        assert pipeline.rows("orders", "id") == sorted(((number,) for number in good), key=repr)
        halves = {half: sum(number % 2 == half for number in good) for half in (0, 1)}
        assert dict(pipeline.rows("totals", "half", "orders")) == halves
        letters = [one.value for one in pipeline.records(f"{pipeline.topic}-dlq")]
        bad = {b'{"id": %d, "amount": 0}' % number for number in range(0, self.records, 10)}
        assert set(letters) == bad
        counts = TableLog(pipeline.places.table("orders")).state().counts
        assert (counts["in"], counts["out"], counts["dead"]) == (self.records, len(good), len(bad))


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_a_driver_is_killed(pipeline: Pipeline) -> None:
    rounds = Rounds(pipeline, records=60, batch=30)
    rounds.killed(after=1, seconds=0)
    rounds.to_the_end()
    rounds.check()


@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_drivers_are_killed(pipeline: Pipeline) -> None:
    chance = seeded()
    rounds = Rounds(pipeline, records=2000, batch=50)
    for _ in range(ROUNDS):
        rounds.killed(after=chance.randrange(6), seconds=chance.random())
    rounds.to_the_end()
    rounds.check()


@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_executors_of_a_cluster_are_killed_with_speculation(pipeline: Pipeline, tmp_path: Path) -> None:
    """Two worker processes: a task that is slower than others runs a second time on the other's executor."""
    chance = seeded()
    rounds = Rounds(pipeline, records=2000, batch=50)
    events = tmp_path / "events"
    events.mkdir()
    with standalone(tmp_path, workers=2) as (master, machines):
        rounds.on(master, {**SPECULATION, "spark.eventLog.dir": events.as_uri()})

        def executors() -> list[int]:
            return [one for machine in machines for one in descendants(machine)[:1]]

        def workers() -> list[int]:
            return [one for machine in machines for one in python_workers(machine)]

        for _ in range(ROUNDS):
            others = chance.choice((executors, workers, list[int]))
            rounds.killed(after=chance.randrange(4), seconds=chance.random(), others=others)
        rounds.to_the_end()
    rounds.check()
    assert ran_twice(events)


def seeded() -> random.Random:
    seed = int(os.environ.get("OTTLA_SEED", "0")) or random.randrange(2**31)
    print(f"seed {seed}")
    return random.Random(seed)
