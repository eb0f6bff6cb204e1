"""Spark's own cluster on this machine: a process for its master and one for each worker, which start executors."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pyspark
from tests.spark.processes import descendants, end_all, python_workers
from tools.server_process import HOST, free_port

#: For a driver: a task that is slower than others runs a second time, on the other machine's executor.
SPECULATION = {
    "spark.speculation": "true",
    "spark.speculation.quantile": "0.5",
    "spark.speculation.multiplier": "1.1",
    "spark.executor.cores": "1",
    "spark.executor.memory": "512m",
    "spark.driver.host": HOST,
    "spark.driver.bindAddress": HOST,
    "spark.eventLog.enabled": "true",
    "spark.eventLog.compress": "false",
}

#: Spark SQL that is never true, and takes so long that the task has a copy on the other machine.
SLOW: Final = "java_method('java.lang.Thread', 'sleep', 20000L) = 'never'"

#: What the master says of each worker.
_REGISTERED = "Master: Registering worker"
_LOOK_SECONDS = 0.1


def ran_twice(events: Path) -> bool:
    """Whether a driver with these events has run a task a second time."""
    return any('"Speculative":true' in file.read_text() for file in events.rglob("*") if file.is_file())


def executors(machines: list[int]) -> list[int]:
    """Each machine's, which its worker has started."""
    return [one for machine in machines for one in descendants(machine)[:1]]


def workers_of_python(machines: list[int]) -> list[int]:
    return [one for machine in machines for one in python_workers(machine)]


@contextmanager
def standalone(folder: Path, workers: int) -> Iterator[tuple[str, list[int]]]:
    """Spark's own cluster, a process for its master and one for each worker; its address, and the workers' pids."""
    home = Path(pyspark.__file__).parent
    port = free_port()
    scala = next(home.glob("jars/spark-core_*.jar")).name.partition("_")[2].partition("-")[0]
    environment = {
        **os.environ,
        "SPARK_HOME": str(home),
        "SPARK_LOCAL_IP": HOST,
        # Where there is no script of Spark's distribution to ask, executors are told by this.
        "SPARK_SCALA_VERSION": scala,
        "PYSPARK_PYTHON": sys.executable,
    }
    master = f"spark://{HOST}:{port}"
    program = ["java", "-cp", f"{home}/jars/*", "-Xmx512m"]
    commands = [[*program, "org.apache.spark.deploy.master.Master", "--host", HOST, "--port", str(port)]]
    for number in range(workers):
        # Spark runs no task twice on one host; all of 127.0.0.0/8 is this machine.
        own = [
            "--host",
            f"127.0.0.{number + 1}",
            "--cores",
            "1",
            "--memory",
            "1g",
            "--work-dir",
            str(folder / f"work-{number}"),
        ]
        commands.append([*program, "org.apache.spark.deploy.worker.Worker", *own, master])
    started: list[subprocess.Popen[bytes]] = []
    try:
        with (folder / "cluster.txt").open("wb") as log:
            for command in commands:
                ui = [*command, "--webui-port", str(free_port())]
                started.append(subprocess.Popen(ui, stdout=log, stderr=log, env=environment))
        _until_registered(folder / "cluster.txt", workers, started)
        yield master, [one.pid for one in started[1:]]
    finally:
        for one in started:
            end_all(one.pid)
            one.wait()


def _until_registered(log: Path, workers: int, started: list[subprocess.Popen[bytes]]) -> None:
    """A driver gives up a master that it does not reach within a minute, which is short beside other work."""
    while (text := log.read_text(errors="replace")).count(_REGISTERED) < workers:
        assert all(one.poll() is None for one in started), text[-3000:]
        time.sleep(_LOOK_SECONDS)
