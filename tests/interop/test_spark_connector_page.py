"""The program of docs/deploying.md that reads with Spark's own connector for the JVM.

A stream is read only where Spark and connector are of one version. OTTLA_CONNECTOR_PYTHON names an interpreter whose
PySpark is the connector's (`pip install pyspark==4.0.0`), where this one's is another.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tools.kafka_jars import SPARK_CONNECTOR, connector_jars

from ottla.client.sync import Producer
from ottla.testing import InProcessBroker
from tests.conftest import REPOSITORY, found_jars

pytestmark = [pytest.mark.java, pytest.mark.slow]

SECONDS_MAX = 600
PAGE = (REPOSITORY / "docs" / "deploying.md").read_text()
(PROGRAM,) = (
    code for code in re.findall(r"^```python\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE) if "pyspark" in code
)
#: On this host alone, with one core and little memory; the page leaves that to whoever runs it.
SETTINGS = """spark.master local[1]
spark.ui.enabled false
spark.driver.host 127.0.0.1
spark.driver.bindAddress 127.0.0.1
spark.driver.memory 512m
spark.sql.shuffle.partitions 1
"""


def version_of(python: str) -> str:
    asked = [python, "-c", "import pyspark; print(pyspark.__version__)"]
    done = subprocess.run(asked, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip("PySpark is not installed")
    return done.stdout.strip()


def replaced(program: str, what: str, by: str) -> str:
    assert program.count(what) == 1, what
    return program.replace(what, by)


@pytest.mark.timeout(SECONDS_MAX + 60)
def test_the_program(tmp_path: Path) -> None:
    python = os.environ.get("OTTLA_CONNECTOR_PYTHON", sys.executable)
    version = version_of(python)
    folder = found_jars(SPARK_CONNECTOR)
    program = replaced(PROGRAM, '"spark.jars.packages", CONNECTOR', f'"spark.jars", {connector_jars()!r}')
    if not (folder / f"spark-sql-kafka-0-10_2.13-{version}.jar").exists():
        pytest.skip(f"there is no connector of PySpark's version, {version}: OTTLA_CONNECTOR_PYTHON may name another")
    program += "query.processAllAvailable()\nquery.stop()\nspark.stop()\n"
    (tmp_path / "spark-defaults.conf").write_text(SETTINGS)
    steered = {"SPARK_CONF_DIR": str(tmp_path), "SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": python}
    with InProcessBroker() as broker:
        broker.create_topic("orders", partitions=3)
        with Producer(bootstrap_servers=broker.bootstrap) as producer:
            for fruit in (b"apple", b"pear", b"apple"):
                producer.send("orders", fruit)
        program = replaced(program, "localhost:9092", broker.bootstrap)
        done = subprocess.run(
            [python, "-c", program],
            capture_output=True,
            text=True,
            timeout=SECONDS_MAX,
            check=False,
            cwd=tmp_path,
            env={**os.environ, **steered},
        )
    assert done.returncode == 0, done.stderr[-4000:]
    rows = {
        tuple(cell.strip() for cell in line.strip("|").split("|")) for line in done.stdout.splitlines() if "|" in line
    }
    assert rows == {("fruit", "count"), ("apple", "2"), ("pear", "1")}
