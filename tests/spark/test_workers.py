"""The Python of Spark's workers: with PySpark as it is installed; and one that lacks what reading needs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import py4j
import pyspark
import pytest
from tests.spark.conftest import needs_java

from ottla.client.sync import Producer
from ottla.spark.workers import worker_python
from ottla.testing.in_process import InProcessBroker

#: What a worker says of itself.
ASKED = """
import json, sys, py4j, pyspark
print(json.dumps([sys.executable, pyspark.__file__, py4j.__file__, sys.argv, sys.path]))
"""

PROGRAM = """
import sys
import ottla.spark

spark = ottla.spark.session("a test", master="local[1]", config={"spark.ui.enabled": False})
spark.sparkContext.setLogLevel("OFF")
options = {"kafka.bootstrap.servers": sys.argv[1], "subscribe": sys.argv[2]}
rows = spark.range(3).selectExpr("cast(id AS string) AS value")
ways = {
    "source": lambda: spark.read.format("ottla").options(**options).load().collect(),
    "read": lambda: ottla.spark.read(spark, options).collect(),
    "sink": lambda: rows.write.format("ottla").options(**options, topic=sys.argv[2]).mode("append").save(),
}
for name, way in ways.items():
    try:
        way()
    except Exception as error:
        print(name, str(error).replace(chr(10), " "), flush=True)
spark.stop()
"""


def as_spark_starts_it(python: str, more: str) -> list[Any]:
    """With Spark's zips, and one of its jars, before all else on its path."""
    home = Path(pyspark.__file__).parent
    zips = [str(one) for one in (home / "python" / "lib").glob("*.zip")]
    assert len(zips) == 2
    path = os.pathsep.join([*zips, str(next(home.glob("jars/spark-core_*.jar"))), more])
    done = subprocess.run(
        [python, "-c", ASKED, "a b", "*"],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": path},
    )
    said: list[Any] = json.loads(done.stdout)
    return said


def test_workers_have_pyspark_as_it_is_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "a 'cache'"))
    monkeypatch.delenv("SPARK_HOME", raising=False)
    python = worker_python(os.environ)
    assert python.startswith(str(tmp_path))
    assert worker_python(os.environ) == python
    plain = as_spark_starts_it(sys.executable, "")
    assert "pyspark.zip" in plain[1], "what Spark does of its own accord"
    *found, path = as_spark_starts_it(python, f"{tmp_path}/mine:/of me")
    assert found == [sys.executable, pyspark.__file__, py4j.__file__, ["-c", "a b", "*"]]
    assert path[1:3] == [f"{tmp_path}/mine", "/of me"]
    assert not any(".zip" in place or ".jar" in place for place in path if "pyspark" in place)


def test_what_a_power_cut_has_left_of_the_script_is_written_anew(tmp_path: Path) -> None:
    environment = {"XDG_CACHE_HOME": str(tmp_path)}
    script = Path(worker_python(environment))
    whole = script.read_bytes()
    for left in (b"", whole[:40], bytes(len(whole))):
        script.write_bytes(left)
        assert worker_python(environment) == str(script)
        assert script.read_bytes() == whole


def test_another_spark_has_its_own(tmp_path: Path) -> None:
    assert worker_python({"SPARK_HOME": "/opt/spark", "XDG_CACHE_HOME": str(tmp_path)}) == sys.executable


def test_where_no_script_can_be_the_python_is_started_itself(tmp_path: Path) -> None:
    (tmp_path / "ottla").touch()
    assert worker_python({"XDG_CACHE_HOME": str(tmp_path)}) == sys.executable


@needs_java
@pytest.mark.slow
@pytest.mark.xdist_group("spark")
@pytest.mark.timeout(1200)
def test_workers_without_pyarrow(ottla_broker: InProcessBroker, topic: str, tmp_path: Path) -> None:
    with Producer(bootstrap_servers=ottla_broker.bootstrap) as producer:
        producer.send(topic, b"one")
    (tmp_path / "sitecustomize.py").write_text('import sys\nsys.modules["pyarrow"] = None\n')
    other = tmp_path / "other-python"
    other.write_text(f'#!/bin/sh\nPYTHONPATH="{tmp_path}:$PYTHONPATH" exec {sys.executable} "$@"\n')
    other.chmod(0o700)
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYSPARK_", "SPARK_"))}
    root = Path(__file__).resolve().parents[2]
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, ottla_broker.bootstrap, topic],
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
        env={**environment, "PYTHONPATH": f"{root / 'src'}", "PYSPARK_PYTHON": str(other)},
        cwd=tmp_path / "..",
    )
    said = dict(line.split(" ", 1) for line in done.stdout.splitlines())
    assert set(said) == {"source", "read", "sink"}, done.stderr[-4000:]
    for name, text in said.items():
        assert "this needs pyarrow: pip install 'ottla[spark]'" in text, (name, text)
