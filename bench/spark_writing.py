"""Spark's rows into a topic: our sink, the JVM connector's, and a Python sink that throws rows away, in one session.

The sink that discards is the ceiling: what Spark takes to make rows and to hand them to Python as Arrow. All are
measured one after the other in each round, under the settings of `ottla.spark.session`. The JVM connector's jars come
from Maven (`tools/kafka_jars.py`); where they cannot be had its rows stay empty.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark import cloudpickle
from pyspark.sql.datasource import DataSource, DataSourceArrowWriter, WriterCommitMessage

import ottla.spark
from bench.results import Figures, Goal, Measure, Results
from bench.scenario import Context
from bench.servers import NULL
from bench.spark_setup import MASTER, PARTITIONS, cpu_seconds, jars_for, rate, settings, times
from bench.wire import create_topic, delete_topic

#: 100 bytes each.
VALUE = "rpad(concat('order ', id), 100, ' ') AS value"
KEY = "concat('key-', id % 1000000) AS key"
#: A session's first jobs start workers and have Java compile what it runs.
WARM_RECORDS = 200_000


class Discarding(DataSource):  # type: ignore[misc]  # pyspark's annotations are not read
    @classmethod
    def name(cls) -> str:
        return "discarding"

    def writer(self, schema: Any, overwrite: bool) -> DataSourceArrowWriter:
        return DiscardingWriter()


class DiscardingWriter(DataSourceArrowWriter):  # type: ignore[misc]  # as above
    def write(self, iterator: Iterator[Any]) -> WriterCommitMessage:
        for _ in iterator:
            pass
        return WriterCommitMessage()


@dataclass(frozen=True, kw_only=True)
class SparkWriting:
    name: str = "spark-writing"
    title: str = "4 M rows of 100 bytes from Spark into a topic"
    records: int = 4_000_000
    measures: Sequence[Measure] = (
        *rate("plain", "ottla"),
        *rate("plain discarding", "discarded"),
        *rate("plain connector", "JVM connector"),
        *rate("keys", "ottla, with keys"),
        *rate("keys discarding", "discarded, with keys"),
        *rate("keys connector", "JVM connector, with keys"),
        times("plain gain", "ottla / JVM connector"),
        times("plain gain cpu", "the same, a processor second"),
        times("plain share", "ottla / discarded"),
        times("keys gain", "ottla / JVM connector, with keys"),
        times("keys gain cpu", "the same, a processor second"),
        times("keys share", "ottla / discarded, with keys"),
    )
    goals: Sequence[Goal] = tuple(
        Goal(measure=f"{rows} {what}", at_least=least)
        for rows in ("plain", "keys")
        for what, least in (("gain", 2.0), ("gain cpu", 1.5), ("share", 0.9))
    )

    def run(self, context: Context) -> Results:
        results = Results(title=self.title, measures=self.measures, goals=self.goals, best_counts=True)
        jars = jars_for(context)
        spark = _session(context, jars)
        ways = ["ottla", "discarding", *(["kafka"] if jars else [])]
        try:
            for way in ways:
                port = context.shared(context.kinds[0]).port
                self._timed(spark, port, way, "key", WARM_RECORDS)
            kinds = [kind for kind in context.kinds if kind != NULL]

            def take(kind: str) -> Figures:
                return self._take(spark, context.shared(kind).port, ways)

            context.measure_in_turns(results, kinds, take, lambda _: context.effort.rounds)
        finally:
            spark.stop()
        return results

    def _take(self, spark: Any, port: int, ways: Sequence[str]) -> Figures:
        figures: dict[str, float] = {}
        for rows in ("plain", "keys"):
            for way in ways:
                name = {"ottla": rows, "kafka": f"{rows} connector"}.get(way, f"{rows} {way}")
                figures[name], figures[f"{name} cpu"] = self._timed(spark, port, way, rows, self.records)
            figures[f"{rows} share"] = figures[rows] / figures[f"{rows} discarding"]
            if "kafka" in ways:
                figures[f"{rows} gain"] = figures[rows] / figures[f"{rows} connector"]
                figures[f"{rows} gain cpu"] = figures[f"{rows} cpu"] / figures[f"{rows} connector cpu"]
        return figures

    def _timed(self, spark: Any, port: int, way: str, rows: str, count: int) -> tuple[float, float]:
        """Millions a second, of the clock and of the processor: the driver's, the JVM's and the workers'."""
        topic = f"{self.name}-{way}"
        create_topic(port, topic, PARTITIONS)
        try:
            columns = (VALUE,) if rows == "plain" else (VALUE, KEY)
            frame = spark.range(0, count, 1, PARTITIONS).selectExpr(*columns)
            options = {"kafka.bootstrap.servers": f"127.0.0.1:{port}", "topic": topic}
            writing = frame.write.format(way).options(**options)
            began, used = time.perf_counter(), cpu_seconds(spark)
            writing.mode("append").save()
            return count / (time.perf_counter() - began) / 1e6, count / (cpu_seconds(spark) - used) / 1e6
        finally:
            delete_topic(port, topic)


def _session(context: Context, jars: str) -> Any:
    cloudpickle.register_pickle_by_value(sys.modules[__name__])  # workers have no bench
    spark = ottla.spark.session("bench", master=MASTER, config=settings(context, jars))
    spark.sparkContext.setLogLevel("ERROR")
    spark.dataSource.register(Discarding)
    return spark
