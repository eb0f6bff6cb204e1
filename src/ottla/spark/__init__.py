"""Ottla, and any Kafka, in PySpark (`pip install 'ottla[spark]'`; docs/spark.md).

    spark.dataSource.register(ottla.spark.OttlaDataSource)
    clicks = spark.read.format("ottla").options(**{"kafka.bootstrap.servers": "localhost:9092"})
    clicks.option("subscribe", "clicks").load().show()

Read in this order: `options` (what is asked for, as text), `datasource` (what Spark calls), `source` (reading) and
`sink` (writing). Names are loaded when they are first used.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING

from ottla.lazy_names import lazy_names

if TYPE_CHECKING:
    from ottla.spark.datasource import OttlaDataSource
    from ottla.spark.driver import session
    from ottla.spark.java import JavaMissing
    from ottla.spark.mirroring.frame import mirror
    from ottla.spark.options import OptionError
    from ottla.spark.sink.ledger import free_query_name
    from ottla.spark.source.frames import read, reader
    from ottla.spark.source.progress import track

__all__ = [
    "JavaMissing",
    "OptionError",
    "OttlaDataSource",
    "SparkMissing",
    "free_query_name",
    "mirror",
    "read",
    "reader",
    "session",
    "track",
]

_HOMES = {
    "JavaMissing": "ottla.spark.java",
    "OptionError": "ottla.spark.options",
    "OttlaDataSource": "ottla.spark.datasource",
    "free_query_name": "ottla.spark.sink.ledger",
    "mirror": "ottla.spark.mirroring.frame",
    "read": "ottla.spark.source.frames",
    "reader": "ottla.spark.source.frames",
    "session": "ottla.spark.driver",
    "track": "ottla.spark.source.progress",
}


class SparkMissing(ImportError):
    """pyspark, or what it needs to talk in Arrow, is not installed."""


for _needed in ("pyspark", "pyarrow"):
    if find_spec(_needed) is None:
        raise SparkMissing(f"this needs {_needed}: pip install 'ottla[spark]'")


if not TYPE_CHECKING:  # a type checker would take every name for one that exists
    __getattr__ = lazy_names(__name__, _HOMES)


def __dir__() -> list[str]:
    return __all__
