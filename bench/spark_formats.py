"""Orders in JSON, Avro and Protobuf from a topic into columns in Spark, decoded in the task (`value_as`)."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

import ottla.spark
from bench import spark_reading
from bench.formats import JSON, NAMES, orders, schema_files
from bench.results import Figures, Measure, Results
from bench.scenario import Context
from bench.servers import Running
from bench.spark_setup import PARTITIONS, cpu_seconds, measure_topics, rate
from bench.wire import create_topic
from ottla.client import Producer
from ottla.client.serializers import serializer_for
from ottla.formats import encoder

#: Each is written so many times.
_COPIES = 10


def _measures() -> Iterator[Measure]:
    for name in NAMES:
        yield from rate(f"{name} all", f"{name}, all fields")
        yield from rate(f"{name} one", f"{name}, one field, added up")


@dataclass(frozen=True, kw_only=True)
class SparkFormats:
    name: str = "spark-formats"
    title: str = "1 M orders of seven fields, as JSON, Avro and Protobuf, from a topic into columns in Spark"
    records: int = 1_000_000
    measures: Sequence[Measure] = tuple(_measures())

    def run(self, context: Context) -> Results:
        results = Results(title=self.title, measures=self.measures, goals=(), best_counts=True)
        spark = spark_reading.session(context, "")
        with schema_files() as (avro, proto):
            specs = {"json": JSON, "avro": avro, "protobuf": proto}

            def fill(running: Running) -> None:
                for name, spec in specs.items():
                    create_topic(running.port, self._topic(name), PARTITIONS)
                    asyncio.run(self._fill(running, self._topic(name), spec))
                take(running)  # workers start, and Java compiles what it runs

            def take(running: Running) -> Figures:
                return self._take(spark, running.port, specs)

            measure_topics(context, results, spark, [self._topic(name) for name in specs], fill, take)
        return results

    def _topic(self, name: str) -> str:
        return f"{self.name}-{name}"

    async def _fill(self, running: Running, topic: str, spec: str) -> None:
        write: Any = serializer_for("json", "value.serializer") if spec == JSON else encoder(spec).encode_one
        raws = [write(order) for order in orders(self.records // _COPIES)]
        table = pa.table({"value": pa.array(raws, pa.binary())})
        async with Producer(bootstrap_servers=f"127.0.0.1:{running.port}") as producer:
            for _ in range(_COPIES):
                await producer.send_arrow(table, topic)

    def _take(self, spark: Any, port: int, specs: dict[str, str]) -> Figures:
        figures: dict[str, float] = {}
        for name, spec in specs.items():
            options = {
                "kafka.bootstrap.servers": f"127.0.0.1:{port}",
                "subscribe": self._topic(name),
                "columns": "value",
                "value_as": spec,
            }
            for work in ("all", "one"):
                wall, cpu = self._timed(spark, options, work)
                figures[f"{name} {work}"], figures[f"{name} {work} cpu"] = wall, cpu
        return figures

    def _timed(self, spark: Any, options: dict[str, str], work: str) -> tuple[float, float]:
        """Millions a second, of the clock and of the processor: the JVM's and the workers'. Planning is in it."""
        began, used = time.perf_counter(), cpu_seconds(spark)
        frame = ottla.spark.read(spark, options)
        if work == "all":
            frame.select("value.*").write.format("noop").mode("overwrite").save()
        elif not frame.selectExpr("sum(value.cents)").collect()[0][0]:
            raise RuntimeError("nothing was decoded")
        return self.records / (time.perf_counter() - began) / 1e6, self.records / (cpu_seconds(spark) - used) / 1e6
