"""Have Spark start faster from now on: Java keeps Spark's classes in an archive, which later starts map.

An example of a pipeline runs once, on a broker that lives for it, for the classes that pipelines, the source and the
sink load. The archive is some 200 MB in the user's cache folder. `ottla pipeline run` and `ottla.spark.session()` use
it by themselves; with OTTLA_SPARK_ARCHIVE=no they leave it alone. Another Java or another PySpark needs another one:
the command makes it, and removes the one before.

ottla pipeline prepare
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Final

from ottla.cli import options as shared
from ottla.cli.faults import OK, CommandFault
from ottla.cli.pipeline import explained, needs_spark, stopped_by_signals
from ottla.cli.sizes import human

if TYPE_CHECKING:
    from ottla.testing import InProcessBroker

_MASTER: Final = "local[2]"
#: What the example reads: a good record, one that a rule drops, and one that is none.
_RECORDS: Final = (b'{"id": 1, "customer": "ann", "amount": 12.5}', b'{"id": 2, "amount": -1}', b"{")


def arguments(parser: argparse.ArgumentParser) -> None:
    shared.output(parser)


def run(options: argparse.Namespace) -> int:
    needs_spark()
    from ottla.cli.output import show
    from ottla.spark import JavaMissing
    from ottla.spark.class_archive_making import ArchiveFault, make

    if _runs_already():
        raise CommandFault("Java runs already in this process: run the command in a process of its own")
    began = time.monotonic()
    try:
        with stopped_by_signals(), explained(), ExitStack() as outliving:
            archive = make(_session, lambda spark: _work(spark, outliving), os.environ)
    except (ArchiveFault, JavaMissing) as error:
        raise CommandFault(str(error)) from error
    except OSError as error:
        raise CommandFault(f"the archive cannot be written: {error}") from error
    seconds = round(time.monotonic() - began, 1)
    data = {"path": archive.path, "bytes": archive.size, "new": archive.is_new, "seconds": seconds}
    made = f"made in {seconds:.0f} s" if archive.is_new else "there already"
    show(options.output, data, f"{archive.path}: {human(archive.size)}, {made}\n")
    return OK


def _runs_already() -> bool:
    from pyspark import SparkContext

    return SparkContext._gateway is not None  # noqa: SLF001 - PySpark has no other way to ask


def _session(java_options: str) -> Any:
    from ottla.spark import session
    from ottla.spark.class_archive import JAVA_OPTIONS

    sys.stderr.write("Spark runs an example, and Java keeps the classes that it loads: this takes a minute or more\n")
    config = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false", JAVA_OPTIONS: java_options}
    spark = session("ottla pipeline prepare", master=_MASTER, config=config)
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def _work(spark: Any, outliving: ExitStack) -> None:
    """Broker and folder outlive Spark's processes, which have connections and files there."""
    import ottla.testing
    from ottla.spark.sink.clients import close_kept_clients
    from ottla.spark.source.links import close_links

    folder = outliving.enter_context(tempfile.TemporaryDirectory(prefix="ottla-prepare-"))
    broker = outliving.enter_context(ottla.testing.broker())
    outliving.callback(close_links)
    outliving.callback(close_kept_clients)
    _run_pipeline(spark, broker, folder)
    _read(spark, broker, folder)


def _run_pipeline(spark: Any, broker: InProcessBroker, folder: str) -> None:
    """The one that `ottla pipeline init` writes: streams, Parquet, rules, dead letters, an aggregation, a sink."""
    from ottla.client.sync import Producer
    from ottla.pipeline.example import TEXT
    from ottla.pipeline.loading import load
    from ottla.pipeline.places import Places
    from ottla.pipeline.running import PipelineRun

    for topic in ("orders", "order-totals"):
        broker.create_topic(topic, partitions=1)
    with Producer(bootstrap_servers=broker.bootstrap) as producer:
        for record in _RECORDS:
            producer.send("orders", record)
    path = os.path.join(folder, "orders.py")
    with open(path, "w", encoding="utf-8") as file:
        file.write(TEXT)
    kafka = {"kafka.bootstrap.servers": broker.bootstrap}
    PipelineRun(spark, load(path), Places(os.path.join(folder, "data")), kafka, lambda _: None).catch_up()


def _read(spark: Any, broker: InProcessBroker, folder: str) -> None:
    """As somebody at a prompt does: batches of records, in both ways, and a table."""
    import ottla.spark
    from ottla.pipeline import read_table

    options = {"kafka.bootstrap.servers": broker.bootstrap, "subscribe": "orders"}
    spark.read.format("ottla").options(**options).load().groupBy("topic").count().collect()
    ottla.spark.read(spark, options).selectExpr("CAST(value AS STRING)").toPandas()
    read_table(spark, os.path.join(folder, "data", "tables", "orders")).orderBy("id").collect()
