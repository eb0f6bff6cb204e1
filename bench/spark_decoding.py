"""JSON values into columns in Spark: decoded in the task (`value_as`), or by Spark's `from_json` behind it.

The same topic by both entries, and by the JVM connector with `from_json`: all fields thrown away, or one added up.
Where one is wanted `value_as` is given that one alone; Spark takes the others out of `from_json` by itself.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import ottla.spark
from bench import spark_reading
from bench.arrow import fill
from bench.results import Figures, Measure, Results
from bench.scenario import Context
from bench.servers import Running
from bench.spark_setup import PARTITIONS, cpu_seconds, jars_for, measure_topics, rate, times
from bench.wire import create_topic

#: As `bench.arrow.values` makes records.
ALL = "order BIGINT, customer BIGINT, cents BIGINT, currency STRING, state STRING"
ONE = "cents BIGINT"
WORK = {"all": ("all fields", ALL), "one": ("one field, added up", ONE)}
WAYS = {
    "source spark": "data source, from_json",
    "source task": "data source, value_as",
    "read spark": "ottla.spark.read, from_json",
    "read task": "ottla.spark.read, value_as",
    "connector": "JVM connector, from_json",
}


def _measures() -> Iterator[Measure]:
    for work, (label, _) in WORK.items():
        for way, shown in WAYS.items():
            yield from rate(f"{work} {way}", f"{shown}, {label}")
        for entry, shown in (("source", "data source"), ("read", "ottla.spark.read")):
            yield times(f"{work} {entry} gain", f"{shown}, value_as / from_json, {label}")


@dataclass(frozen=True, kw_only=True)
class SparkDecoding:
    name: str = "spark-decoding"
    title: str = "1 M records of 100 bytes of JSON from a topic into columns in Spark"
    records: int = 1_000_000
    measures: Sequence[Measure] = tuple(_measures())

    def run(self, context: Context) -> Results:
        results = Results(title=self.title, measures=self.measures, goals=(), best_counts=True)
        jars = jars_for(context)
        spark = spark_reading.session(context, jars)

        def filled(running: Running) -> None:
            create_topic(running.port, self.name, PARTITIONS)
            asyncio.run(fill(running, self.name, self.records))
            take(running)  # workers start, and Java compiles what it runs

        def take(running: Running) -> Figures:
            return self._take(spark, running.port, bool(jars))

        measure_topics(context, results, spark, [self.name], filled, take)
        return results

    def _take(self, spark: Any, port: int, connector: bool) -> Figures:
        kafka = {"kafka.bootstrap.servers": f"127.0.0.1:{port}", "subscribe": self.name}
        figures: dict[str, float] = {}
        for work, (_, schema) in WORK.items():
            plain, decoded = {**kafka, "columns": "value"}, {**kafka, "columns": "value", "value_as": f"json:{schema}"}
            ways: dict[str, tuple[Callable[[], Any], bool]] = {
                "source spark": (partial(_loaded, spark, "ottla", plain), True),
                "source task": (partial(_loaded, spark, "ottla", decoded), False),
                "read spark": (partial(ottla.spark.read, spark, plain), True),
                "read task": (partial(ottla.spark.read, spark, decoded), False),
            }
            if connector:
                ways["connector"] = (partial(_loaded, spark, "kafka", kafka), True)
            for way, (made, by_spark) in ways.items():
                name = f"{work} {way}"
                figures[name], figures[f"{name} cpu"] = self._timed(spark, work, made, by_spark=by_spark)
            for entry in ("source", "read"):
                figures[f"{work} {entry} gain"] = figures[f"{work} {entry} task"] / figures[f"{work} {entry} spark"]
        return figures

    def _timed(self, spark: Any, work: str, made: Callable[[], Any], *, by_spark: bool) -> tuple[float, float]:
        """Millions a second, of the clock and of the processor: the JVM's and the workers'. Planning is in it."""
        began, used = time.perf_counter(), cpu_seconds(spark)
        frame = made()
        if by_spark:
            frame = frame.selectExpr(f"from_json(cast(value AS string), '{ALL}') AS value")
        if work == "all":
            frame.select("value.*").write.format("noop").mode("overwrite").save()
        else:
            total = frame.selectExpr("sum(value.cents)").collect()[0][0]
            if not total:
                raise RuntimeError("nothing was decoded")
        return self.records / (time.perf_counter() - began) / 1e6, self.records / (cpu_seconds(spark) - used) / 1e6


def _loaded(spark: Any, name: str, options: dict[str, str]) -> Any:
    return spark.read.format(name).options(**options).load()
