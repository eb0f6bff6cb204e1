"""A Spark session that works: `spark = ottla.spark.session()`.

Most of what goes wrong with PySpark goes wrong before its first row: no Java, or an old one; workers that start another
Python than the driver's, without pyarrow; a driver that listens on all of the machine's addresses. Here each is set
where the user has set nothing; what the user has set stays.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import Any, Final

from ottla.spark.class_archive import archive_options
from ottla.spark.datasource import OttlaDataSource
from ottla.spark.java import java_home
from ottla.spark.workers import worker_python

_LOOPBACK: Final = "127.0.0.1"

#: For every master.
_CONFIG: Final = {
    # Java and Python on one machine talk a quarter faster than over TCP, and nobody else can connect.
    "spark.python.unix.domain.socket.enabled": "true",
    # What a frame is filtered by goes to the source, where `ottla.spark.reader` has asked for that.
    "spark.sql.python.filterPushdown.enabled": "true",
    # With Spark's 10,000 a sink with keys had half the speed (docs/decisions/spark-ceilings.md).
    "spark.sql.execution.arrow.maxRecordsPerBatch": "50000",
}
#: Where driver and executors are one process.
_LOCAL_CONFIG: Final = {"spark.driver.host": _LOOPBACK, "spark.driver.bindAddress": _LOOPBACK}


def session(
    app_name: str = "ottla", *, master: str | None = None, config: Mapping[str, str | int | bool] | None = None
) -> Any:
    """A `SparkSession` with `format("ottla")`; that of this process where there is one.

    `master` is Spark's (`local[*]` where nothing is said), and `config` are its properties, which win over all that is
    set here. Raises `JavaMissing`.
    """
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    given = {name: _text(value) for name, value in (config or {}).items()}
    if master is not None:
        given["spark.master"] = master
    # PySpark has no other way to ask whether there is one, and whether its Java runs.
    starts = SparkContext._gateway is None and not _is_submitted()  # noqa: SLF001
    if SparkContext._active_spark_context is None:  # noqa: SLF001
        given = {**_defaults(given), "spark.app.name": app_name, **given}
    if starts:
        given |= archive_options(os.environ, given)
    builder = SparkSession.builder
    for name, value in given.items():
        builder = builder.config(name, value)
    made = builder.getOrCreate()
    made.dataSource.register(OttlaDataSource)
    return made


def _defaults(given: Mapping[str, str]) -> dict[str, str]:
    """What is set for a driver that starts now, in this process's environment too."""
    chosen = given.get("spark.master", "local[*]")
    submitted = _is_submitted()
    is_local = chosen.startswith("local") and not submitted
    python = worker_python(os.environ) if is_local else sys.executable
    os.environ.setdefault("PYSPARK_PYTHON", python)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", python)  # by which Java looks for sources that are installed
    if submitted:
        return dict(_CONFIG)
    home = java_home(os.environ)
    if home is not None:
        os.environ["JAVA_HOME"] = home
    if not is_local:
        return {**_CONFIG, "spark.master": chosen}
    # The web pages ask this and no property.
    os.environ.setdefault("SPARK_LOCAL_IP", _LOOPBACK)
    return {**_CONFIG, **_LOCAL_CONFIG, "spark.master": chosen}


def _is_submitted() -> bool:
    """spark-submit has started Java, and has said which master."""
    return "PYSPARK_GATEWAY_PORT" in os.environ


def _text(value: str | int | bool) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
