"""From `ottla pipeline run` to the first row of a table: Java, Spark, the file, a micro-batch, its commit.

A person who tries a pipeline waits for this. The file has one table over one topic, which has one record; nothing runs
yet. The processor's time is that of all processes up to then. Each start without an archive of Spark's classes is
followed by one with it; the command that makes it runs before them, and is not counted.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bench import machine
from bench.results import Figures, Goal, Measure, Results
from bench.scenario import Context
from bench.servers import NULL
from bench.spark_setup import MASTER
from bench.wire import create_topic, delete_topic
from ottla.client.sync import Producer
from ottla.pipeline.tables.log import TableLog
from ottla.spark.class_archive import SWITCH

TOPIC: Final = "spark-pipeline-start"
FILE: Final = f"""
from ottla.pipeline import read_topic, table


@table
def records():
    return read_topic("{TOPIC}")
"""
#: The archive stays, as those of the tests do, and is none of those that a person has.
_CACHE: Final = Path(__file__).resolve().parent.parent / ".cache"
#: One that has shown no row by then hangs.
SECONDS_MAX: Final = 300.0


@dataclass(frozen=True, kw_only=True)
class SparkPipelineStart:
    name: str = "spark-pipeline-start"
    title: str = "a pipeline's start to its first row"
    measures: Sequence[Measure] = (
        Measure(name="seconds", label="seconds", unit="s", digits=1),
        Measure(name="cpu", label="of the processor", unit="s", digits=1),
        Measure(name="prepared seconds", label="seconds, prepared", unit="s", digits=1),
        Measure(name="prepared cpu", label="of the processor, prepared", unit="s", digits=1),
    )
    goals: Sequence[Goal] = (Goal(measure="seconds", at_most=12.0), Goal(measure="prepared seconds", at_most=12.0))

    def run(self, context: Context) -> Results:
        results = Results(title=self.title, measures=self.measures, goals=self.goals)
        kinds = [kind for kind in context.kinds if kind != NULL]

        environment = {**os.environ, "XDG_CACHE_HOME": str(_CACHE)}
        context.tell("  an archive of Spark's classes is made, where there is none")
        _CACHE.mkdir(exist_ok=True)
        command = [sys.executable, "-m", "ottla", "pipeline", "prepare"]
        subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True, env=environment)

        def take(kind: str) -> Figures:
            port, folder = context.shared(kind).port, context.places.scratch / self.name
            plain = _started(port, folder, {**environment, SWITCH: "no"})
            prepared = _started(port, folder, environment)
            return {**plain, **{f"prepared {name}": value for name, value in prepared.items()}}

        context.measure_in_turns(results, kinds, take, lambda _: context.effort.rounds)
        return results


def _started(port: int, folder: Path, environment: Mapping[str, str]) -> Figures:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    file = folder / "start.py"
    file.write_text(FILE)
    create_topic(port, TOPIC, 1)
    try:
        with Producer(bootstrap_servers=f"127.0.0.1:{port}") as producer:
            producer.send(TOPIC, b"one")
        words = ["pipeline", "run", str(file), "-b", f"127.0.0.1:{port}", "--master", MASTER]
        log = TableLog(str(folder / "start-data" / "tables" / "records"))
        began = time.perf_counter()
        process = subprocess.Popen(
            [sys.executable, "-m", "ottla", *words],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
            env=environment,
        )
        try:
            while not log.state().files:
                if process.poll() is not None or time.perf_counter() - began > SECONDS_MAX:
                    raise SystemExit("the pipeline came to no row")
                time.sleep(0.01)
            return {"seconds": time.perf_counter() - began, "cpu": _cpu_seconds(process.pid)}
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    finally:
        delete_topic(port, TOPIC)


def _cpu_seconds(pid: int) -> float:
    """Of all processes that live; Spark ends none of its own meanwhile."""
    pids = [pid]
    for one in pids:
        with suppress(OSError):
            pids += machine.children(one)
    total = 0.0
    for one in pids:
        with suppress(OSError):
            total += machine.cpu_seconds(one)
    return total
