"""A topic into Spark: by the data source, by `ottla.spark.read`, and by the JVM connector, in one session.

Beside each of ours stands its ceiling: the same entry with constant Arrow batches in the place of a topic, which is
what Spark takes to have rows from Python at all. All are measured one after the other in each round, and the best
round counts: a read takes seconds, in which a machine has other things to do as well. The JVM connector's jars come
from Maven (`tools/kafka_jars.py`); where they cannot be had its rows stay empty.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import pyarrow as pa
from pyspark import cloudpickle
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

import ottla.spark
from bench.arrow import fill, values
from bench.results import Figures, Goal, Measure, Results
from bench.scenario import Context
from bench.servers import Running
from bench.spark_setup import MASTER, PARTITIONS, cpu_seconds, jars_for, measure_topics, rate, settings, times
from bench.wire import create_topic
from ottla.arrow.schema import DEFAULT_COLUMNS, schema_of
from ottla.spark.source.columns import spark_schema
from ottla.spark.source.direct.reading import direct_reading
from ottla.spark.source.links import close_links, link
from ottla.spark.source.planning import batch_splits
from ottla.spark.source.settings import source_settings

#: As a fetch of 1 MiB has them.
ROWS_A_BATCH = 9_000
NOW_US = 1_764_000_000_000_000
#: A partition has some 110 MB: the segment that still grows, which is never read from files, is little of it.
SEGMENT_BYTES = 8 * 1024 * 1024


def constant_batches(columns: tuple[str, ...], rows: int) -> Iterator[Any]:
    """So many rows of records of 100 bytes, the same batch again and again."""
    payloads = pa.array(values(ROWS_A_BATCH), pa.binary())
    of_all = {
        "key": pa.nulls(ROWS_A_BATCH, pa.binary()),
        "value": payloads,
        "topic": pa.repeat(pa.scalar("constant"), ROWS_A_BATCH),
        "partition": pa.repeat(pa.scalar(0, pa.int32()), ROWS_A_BATCH),
        "offset": pa.array(range(ROWS_A_BATCH), pa.int64()),
        "timestamp": pa.repeat(pa.scalar(NOW_US, pa.timestamp("us", tz="UTC")), ROWS_A_BATCH),
        "timestampType": pa.repeat(pa.scalar(0, pa.int32()), ROWS_A_BATCH),
    }
    batch = pa.RecordBatch.from_arrays([of_all[name] for name in columns], schema=schema_of(columns))
    while rows > 0:
        yield batch.slice(0, min(rows, ROWS_A_BATCH))
        rows -= ROWS_A_BATCH


class Constant(DataSource):  # type: ignore[misc]  # pyspark's annotations are not read
    @classmethod
    def name(cls) -> str:
        return "constant"

    def schema(self) -> Any:
        return spark_schema(tuple(self.options["columns"].split(",")))

    def reader(self, schema: Any) -> DataSourceReader:
        return ConstantReader(tuple(schema.fieldNames()), int(self.options["rows"]))


class ConstantReader(DataSourceReader):  # type: ignore[misc]  # as above
    def __init__(self, columns: tuple[str, ...], rows: int) -> None:
        self._columns, self._rows = columns, rows

    def partitions(self) -> list[InputPartition]:
        return [InputPartition(number) for number in range(PARTITIONS)]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        return constant_batches(self._columns, self._rows // PARTITIONS)


#: What is done with the rows: all columns thrown away, or one added up.
WORK = {"all": ("all columns", DEFAULT_COLUMNS), "value": ("value, added up", ("value",))}
SHOWN = {"source": "data source", "read": "ottla.spark.read", "direct": "ottla.spark.read from files"}
#: Whose ceiling is whose.
CEILINGS = {"source": "source ceiling", "read": "read ceiling", "direct": "read ceiling"}


def _measures() -> Iterator[Measure]:
    for work, (label, _) in WORK.items():
        yield from rate(f"{work} source", f"data source, {label}")
        yield from rate(f"{work} source ceiling", f"data source, constant, {label}")
        yield from rate(f"{work} read", f"ottla.spark.read, {label}")
        yield from rate(f"{work} read ceiling", f"mapInArrow, constant, {label}")
        yield from rate(f"{work} direct", f"ottla.spark.read from files, {label}")
        yield from rate(f"{work} connector", f"JVM connector, {label}")
        for way, shown in SHOWN.items():
            yield times(f"{work} {way} gain", f"{shown} / JVM connector, {label}")
            yield times(f"{work} {way} share", f"{shown} / constant, {label}")


@dataclass(frozen=True, kw_only=True)
class SparkReading:
    name: str = "spark-reading"
    title: str = "4 M records of 100 bytes from a topic into Spark"
    records: int = 4_000_000
    measures: Sequence[Measure] = tuple(_measures())
    goals: Sequence[Goal] = (
        Goal(measure="all source gain", at_least=3.0),
        Goal(measure="all read gain", at_least=3.8),
        Goal(measure="value source gain", at_least=4.0),
        Goal(measure="value read gain", at_least=4.5),
        Goal(measure="all direct gain", at_least=4.8),
        Goal(measure="value direct gain", at_least=5.5),
        *(Goal(measure=f"{work} {way} share", at_least=0.9) for work in WORK for way in ("source", "direct")),
        *(Goal(measure=f"{work} read share", at_least=0.75) for work in WORK),
    )

    def run(self, context: Context) -> Results:
        results = Results(title=self.title, measures=self.measures, goals=self.goals, best_counts=True)
        jars = jars_for(context)
        spark = session(context, jars)

        def filled(running: Running) -> None:
            create_topic(running.port, self.name, PARTITIONS, segment_bytes=str(SEGMENT_BYTES))
            asyncio.run(fill(running, self.name, self.records))
            self._check_files(running.port)
            take(running)  # workers start, and Java compiles what it runs

        def take(running: Running) -> Figures:
            return self._take(spark, running.port, bool(jars))

        measure_topics(context, results, spark, [self.name], filled, take)
        return results

    def _check_files(self, port: int) -> None:
        """Or the wire would be measured in their place."""
        settings = source_settings(
            {"kafka.bootstrap.servers": f"127.0.0.1:{port}", "subscribe": self.name}, stream=False
        )
        for split in batch_splits(settings):
            found = direct_reading(link(settings.client), split, ())
            if found is None:
                raise RuntimeError(f"nothing of {split} can be read from files")
            found.close()
        close_links()

    def _take(self, spark: Any, port: int, connector: bool) -> Figures:
        kafka = {"kafka.bootstrap.servers": f"127.0.0.1:{port}", "subscribe": self.name}
        figures: dict[str, float] = {}
        for work, (_, columns) in WORK.items():
            named = ",".join(columns)
            constant = {"columns": named, "rows": str(self.records)}
            ways: dict[str, Callable[[], Any]] = {
                "source": partial(_loaded, spark, "ottla", {**kafka, "columns": named}),
                "source ceiling": partial(_loaded, spark, "constant", constant),
                "read": partial(ottla.spark.read, spark, kafka, columns=columns),
                "read ceiling": partial(_mapped, spark, columns, self.records),
                "direct": partial(ottla.spark.read, spark, {**kafka, "ottla.direct": "true"}, columns=columns),
            }
            if connector:
                ways["connector"] = partial(_loaded, spark, "kafka", kafka)
            for way, made in ways.items():
                name = f"{work} {way}"
                figures[name], figures[f"{name} cpu"] = self._timed(spark, work, made)
            for way, ceiling in CEILINGS.items():
                figures[f"{work} {way} share"] = figures[f"{work} {way}"] / figures[f"{work} {ceiling}"]
                if connector:
                    figures[f"{work} {way} gain"] = figures[f"{work} {way}"] / figures[f"{work} connector"]
        return figures

    def _timed(self, spark: Any, work: str, made: Callable[[], Any]) -> tuple[float, float]:
        """Millions a second, of the clock and of the processor: the JVM's and the workers'. Planning is in it."""
        began, used = time.perf_counter(), cpu_seconds(spark)
        frame = made()
        if work == "all":
            frame.write.format("noop").mode("overwrite").save()
        else:
            total = frame.selectExpr("sum(length(value))").collect()[0][0]
            if total != self.records * 100:
                raise RuntimeError(f"{total} bytes, not {self.records * 100}")
        return self.records / (time.perf_counter() - began) / 1e6, self.records / (cpu_seconds(spark) - used) / 1e6


def _loaded(spark: Any, name: str, options: dict[str, str]) -> Any:
    return spark.read.format(name).options(**options).load()


def _mapped(spark: Any, columns: tuple[str, ...], rows: int) -> Any:
    def made(numbers: Iterator[Any]) -> Iterator[Any]:
        for _ in numbers:
            yield from constant_batches(columns, rows // PARTITIONS)

    return spark.range(0, PARTITIONS, 1, PARTITIONS).mapInArrow(made, spark_schema(columns))


def session(context: Context, jars: str) -> Any:
    cloudpickle.register_pickle_by_value(sys.modules[__name__])  # workers have no bench
    cloudpickle.register_pickle_by_value(sys.modules[values.__module__])
    os.environ["PYSPARK_PYTHON"], os.environ["SPARK_LOCAL_IP"] = sys.executable, "127.0.0.1"
    own = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    builder = SparkSession.builder.master(MASTER).appName("bench")
    for name, value in {**settings(context, jars), **own}.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    spark.dataSource.register(Constant)
    spark.dataSource.register(ottla.spark.OttlaDataSource)
    return spark
