"""`ottla.spark.session()` in a process of its own: it writes at once, and listens on loopback alone."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.spark.conftest import needs_java
from tests.spark.sink.conftest import Read, read

from ottla.spark.driver import _defaults
from ottla.spark.workers import worker_python
from ottla.testing.in_process import InProcessBroker

__all__ = ["read"]

PROGRAM = """
import json, os, sys
import ottla.spark
from tests.spark.processes import descendants, listening

spark = ottla.spark.session("a test", master="local[2]", config={"spark.sql.shuffle.partitions": 3})
frame = spark.range(10).selectExpr("cast(id AS string) AS value")
options = {"kafka.bootstrap.servers": sys.argv[1], "topic": sys.argv[2]}
frame.write.format("ottla").options(**options).mode("append").save()
again = ottla.spark.session()
names = ["spark.python.unix.domain.socket.enabled", "spark.sql.execution.arrow.maxRecordsPerBatch",
         "spark.sql.shuffle.partitions", "spark.app.name"]
print(json.dumps({
    "same": again is spark,
    "web": spark.sparkContext.uiWebUrl,
    "python": spark.sparkContext.pythonExec,
    "config": [spark.conf.get(name) for name in names],
    "listening": sorted(listening([os.getpid(), *descendants(os.getpid())])),
}))
spark.stop()
"""


def test_a_driver_in_one_process_talks_to_nobody_else(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PYSPARK_GATEWAY_PORT", "PYSPARK_PYTHON", "SPARK_LOCAL_IP"):
        monkeypatch.setenv(name, "")  # as it was, afterwards
        monkeypatch.delenv(name)
    monkeypatch.setattr("ottla.spark.driver.java_home", lambda _: None)
    config = _defaults({"spark.master": "local[2]"})
    assert {config[name] for name in ("spark.driver.host", "spark.driver.bindAddress")} == {"127.0.0.1"}
    assert (os.environ["PYSPARK_PYTHON"], os.environ["SPARK_LOCAL_IP"]) == (worker_python(os.environ), "127.0.0.1")


def test_workers_of_a_cluster_are_another_machines(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PYSPARK_GATEWAY_PORT", "PYSPARK_PYTHON"):
        monkeypatch.setenv(name, "")  # as it was, afterwards
        monkeypatch.delenv(name)
    monkeypatch.setattr("ottla.spark.driver.java_home", lambda _: None)
    _defaults({"spark.master": "spark://master:7077"})
    assert os.environ["PYSPARK_PYTHON"] == sys.executable


@needs_java
@pytest.mark.slow
@pytest.mark.xdist_group("spark")
@pytest.mark.timeout(1200)
def test_a_session_of_its_own(ottla_broker: InProcessBroker, topic: str, read: Read, tmp_path: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYSPARK_", "SPARK_"))}
    root = Path(__file__).resolve().parents[2]
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, ottla_broker.bootstrap, topic],
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
        env={**environment, "PYTHONPATH": f"{root / 'src'}:{root}"},
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    told = json.loads(done.stdout.splitlines()[-1])
    assert told["same"]
    assert told["python"] == worker_python(os.environ)
    assert told["config"] == ["true", "50000", "3", "a test"]
    assert "127.0.0.1" in told["web"] or "localhost" in told["web"]
    assert told["listening"], "the driver listens somewhere"
    assert {one.split()[0] for one in told["listening"]} <= {"127.0.0.1", "::1"}
    assert sorted(one.value for one in read(topic)) == [b"%d" % n for n in range(10)]
