"""One Spark session a worker: a JVM takes seconds to start. Tests that use it carry `xdist_group("spark")`."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from typing import Any

import pytest
from tools.java import QUICK_FLAGS

needs_java = pytest.mark.skipif(
    shutil.which("java") is None and "JAVA_HOME" not in os.environ,
    reason="Spark needs Java 17 or newer, which is not here",
)


#: What a virtual machine finds in its environment: those that Spark starts live for seconds, as all of the tests do.
JAVA_OPTIONS = ("JDK_JAVA_OPTIONS", " ".join(QUICK_FLAGS))


@pytest.fixture(autouse=True)
def quick_java(monkeypatch: pytest.MonkeyPatch) -> None:
    """For drivers in processes of their own."""
    monkeypatch.setenv(*JAVA_OPTIONS)


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A real session of two cores, on loopback, with the data source registered."""
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        pytest.skip("Spark needs Java 17 or newer, which is not here")
    from pyspark.sql import SparkSession

    from ottla.spark import OttlaDataSource
    from ottla.spark.workers import worker_python

    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = worker_python(os.environ)
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    folder = tmp_path_factory.mktemp("spark")
    settings = {
        "spark.ui.enabled": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": "1g",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.local.dir": str(folder / "local"),
        "spark.sql.execution.pyspark.udf.faulthandler.enabled": "true",
        "spark.python.worker.faulthandler.enabled": "true",
    }
    builder = SparkSession.builder.master("local[2]").appName("ottla tests")
    for name, value in settings.items():
        builder = builder.config(name, value)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(*JAVA_OPTIONS)
        made = builder.getOrCreate()
    made.sparkContext.setLogLevel("ERROR")
    made.dataSource.register(OttlaDataSource)
    yield made
    made.stop()
