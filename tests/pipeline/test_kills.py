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
from functools import partial
from pathlib import Path

import pytest
from deltalake import DeltaTable
from tests.conftest import REPOSITORY
from tests.pipeline.conftest import Pipeline
from tests.spark.attempts import check_attempts, kill_rounds
from tests.spark.conftest import needs_java
from tests.spark.processes import end_all
from tests.spark.standalone import SLOW, SPECULATION, executors, standalone, workers_of_python

from ottla.pipeline.tables.log import TableLog

pytestmark = [needs_java, pytest.mark.xdist_group("spark")]

TABLES = ("raw", "orders", "totals", "minutes")
#: A driver that shows nothing for so long hangs.
SECONDS_MAX = 900.0
ROUNDS = int(os.environ.get("OTTLA_SPARK_KILL_ROUNDS", "20"))
#: They make at least seven versions: four of raw, one each of the others.
RECORDS_A_ROUND = 100
BATCH = 25
FILE = """
@table
def raw():
    return read_topic("TOPIC", maxOffsetsPerTrigger=TAKEN, minPartitions=4).where("ALL")

@table
@expect_or_drop("positive", "amount > 0")
def orders():
    return decode_json(read_stream("raw"), "id INT, amount INT")

@table(keys=["half"])
def totals():
    rows = read_stream("orders").groupBy((F.col("id") % 2).alias("half"))
    return rows.agg(F.count("*").alias("orders"), F.max("timestamp").alias("timestamp"))

@table(keys=["window"], format="delta")
def minutes():
    rows = read_stream("raw").withWatermark("timestamp", "1 day")
    return rows.groupBy(F.window("timestamp", "1 minute")).agg(F.count("*").alias("records"))
"""
EVER = ("--from", "2020-01-01", "--to", "2099-01-01")


class Rounds:
    """One pipeline over one topic, which goes on from wherever a kill has left it."""

    def __init__(self, pipeline: Pipeline, batch: int) -> None:
        self.pipeline = pipeline
        self.records = 0
        self._text = FILE.replace("TAKEN", str(batch))
        self._define("true")
        self._log = pipeline.folder / "driver.txt"
        self._spark = ["--master", "local[2]"]
        self._running: subprocess.Popen[bytes] | None = None

    def _define(self, condition: str) -> None:
        self.pipeline.define(self._text.replace("ALL", condition))

    def send_slow(self) -> None:
        """Records that nobody has read yet, of which the last one takes long to read."""
        self.end()
        self.send(RECORDS_A_ROUND)
        is_slow = f"get_json_object(CAST(value AS STRING), '$.id') = '{self.records - 1}'"
        self._define(f"NOT ({is_slow} AND {SLOW})")

    def on(self, master: str, config: Mapping[str, str]) -> None:
        """Elsewhere than in one process."""
        self._spark = ["--master", master]
        for name, value in config.items():
            self._spark += ["--conf", f"{name}={value}"]

    def send(self, count: int) -> None:
        ids = range(self.records, self.records + count)
        self.pipeline.send(*({"id": number, "amount": number % 10} for number in ids))
        self.records += count

    def start(self, *mode: str) -> subprocess.Popen[bytes]:
        words = ["pipeline", "run", str(self.pipeline.path), "--folder", self.pipeline.places.folder, "--mode", *mode]
        more = ["-b", self.pipeline.broker.bootstrap, *self._spark, "--conf", "spark.sql.shuffle.partitions=2"]
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

    def goes_on(self, more: int) -> None:
        """Until the tables have so many versions more; the run does not end meanwhile."""
        assert self._running is not None
        wanted, give_up = self.versions() + more, time.monotonic() + SECONDS_MAX
        while self.versions() < wanted:
            assert self._running.poll() is None, self.log()
            assert time.monotonic() < give_up, self.log()
            time.sleep(0.02)

    def kill(self, after: int, seconds: float, others: Callable[[], list[int]]) -> str:
        """Once there are so many versions more, and a moment later: one of the others, without which the run goes on,
        or the driver, if there are none. Who it was.
        """
        self.send(RECORDS_A_ROUND)
        if self._running is None:
            self._running = self.start("stream")
        self.goes_on(after)
        time.sleep(seconds)
        found = others()
        if not found:
            self.end()
            return "driver"
        with contextlib.suppress(ProcessLookupError):
            os.kill(random.choice(found), signal.SIGKILL)
        return "other"

    def end(self) -> None:
        if self._running is not None:
            end_all(self._running.pid)
            self._running.wait()
            self._running = None

    def kill_backfill(self, after: int) -> None:
        """Once it has written so many tables anew."""
        process = self.start("backfill", *EVER)
        wanted, give_up = self.versions() + after, time.monotonic() + SECONDS_MAX
        try:
            while self.versions() < wanted:
                assert process.poll() is None, self.log()
                assert time.monotonic() < give_up, self.log()
                time.sleep(0.02)
        finally:
            end_all(process.pid)
            process.wait()

    def to_the_end(self, *mode: str) -> None:
        self.end()
        process = self.start(*mode or ("catch-up",))
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
        seen = DeltaTable(pipeline.places.table("minutes")).to_pyarrow_table().to_pylist()
        assert sum(one["records"] for one in seen) == self.records
        assert len(seen) == len({str(one["window"]) for one in seen})
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
    rounds = Rounds(pipeline, batch=30)
    try:
        rounds.kill(after=1, seconds=0, others=list)
        rounds.to_the_end()
    finally:
        rounds.end()
    rounds.check()


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_backfills_are_killed(pipeline: Pipeline) -> None:
    """Each before, between or behind the tables that it writes anew."""
    rounds = Rounds(pipeline, batch=RECORDS_A_ROUND)
    rounds.send(RECORDS_A_ROUND)
    rounds.to_the_end()
    for after in range(len(TABLES)):
        rounds.kill_backfill(after)
    rounds.to_the_end("backfill", *EVER)
    rounds.check()


@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_drivers_are_killed(pipeline: Pipeline) -> None:
    chance = seeded()
    rounds = Rounds(pipeline, batch=BATCH)
    try:
        for _ in range(ROUNDS):
            rounds.kill(after=chance.randrange(6), seconds=chance.random(), others=list)
        rounds.to_the_end()
    finally:
        rounds.end()
    rounds.check()


@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_drivers_and_executors_of_a_cluster_are_killed_with_speculation(pipeline: Pipeline, tmp_path: Path) -> None:
    """Two worker processes: a task that is slower than others runs a second time on the other's executor."""
    chance = seeded()
    rounds = Rounds(pipeline, batch=BATCH)
    events = tmp_path / "events"
    events.mkdir()
    with standalone(tmp_path, workers=2) as (master, machines):
        rounds.on(master, {**SPECULATION, "spark.eventLog.dir": events.as_uri()})
        victims = (executors, workers_of_python, nobody)
        kills = 0
        try:
            for number in kill_rounds(ROUNDS, events):
                others: Callable[[list[int]], list[int]] = chance.choice(victims)
                died = rounds.kill(
                    after=chance.randrange(1, 6), seconds=chance.random(), others=partial(others, machines)
                )
                print(f"round {number}: {died} ({others.__name__}), {rounds.versions()} versions")
                kills += 1
            rounds.send_slow()
            rounds.to_the_end()
        finally:
            rounds.end()
    rounds.check()
    check_attempts(events, kills)


def nobody(_: list[int]) -> list[int]:
    """But the driver."""
    return []


def seeded() -> random.Random:
    seed = int(os.environ.get("OTTLA_SEED", "0")) or random.randrange(2**31)
    print(f"seed {seed}")
    return random.Random(seed)
