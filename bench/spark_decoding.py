"""Orders in JSON from a topic into Spark: decoded by its tasks (`value_as`), and by Java's `from_json` behind them.

What Python decodes crosses to Java in columns, what Java decodes as text. All fields of an order are wanted once, and
once one of them alone: `from_json` passes over the others then by itself, and `value_as` names no other. The JVM
connector's rows, which do not cross, stand beside both; where its jars cannot be had they stay empty.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import pyarrow as pa

import ottla.spark
from bench.formats import orders
from bench.results import Figures, Goal, Measure, Results
from bench.scenario import Context
from bench.servers import NULL, Running
from bench.spark_setup import MASTER, PARTITIONS, cpu_seconds, jars_for, rate, settings
from bench.wire import create_topic, delete_topic
from ottla.client.producing.producer import Producer

SCHEMA = "`order` BIGINT, customer INT, cents INT, currency STRING, state STRING, placed BIGINT, note STRING"
#: What is wanted of an order: what it is called here, and its schema.
WISHES = {"all": ("all fields", SCHEMA), "one": ("one field, added up", "cents INT")}
SHOWN = {
    "source": "data source, value_as",
    "source java": "data source, from_json",
    "read": "ottla.spark.read, value_as",
    "read java": "ottla.spark.read, from_json",
    "connector": "JVM connector, from_json",
}
TASKS = ("source", "read")


def _measures() -> Iterator[Measure]:
    for wish, (wanted, _) in WISHES.items():
        for way, shown in SHOWN.items():
            yield from rate(f"{wish} {way}", f"{shown}, {wanted}")


@dataclass(frozen=True, kw_only=True)
class SparkDecoding:
    name: str = "spark-decoding"
    title: str = "1 M orders in JSON from a topic into Spark"
    records: int = 1_000_000
    measures: Sequence[Measure] = tuple(_measures())
    goals: Sequence[Goal] = ()

    def run(self, context: Context) -> Results:
        results = Results(title=self.title, measures=self.measures, goals=self.goals, best_counts=True)
        jars = jars_for(context)
        spark = ottla.spark.session("bench", master=MASTER, config=settings(context, jars))
        spark.sparkContext.setLogLevel("ERROR")
        filled: dict[str, int] = {}

        def take(kind: str) -> Figures:
            running = context.shared(kind)
            if kind not in filled:
                create_topic(running.port, self.name, PARTITIONS)
                filled[kind] = asyncio.run(self._fill(running))
                self._take(spark, running.port, bool(jars), filled[kind])  # Java compiles what it runs
            return self._take(spark, running.port, bool(jars), filled[kind])

        try:
            kinds = [kind for kind in context.kinds if kind != NULL]
            context.measure_in_turns(results, kinds, take, lambda _: context.effort.rounds)
        finally:
            spark.stop()
            for kind in filled:
                delete_topic(context.shared(kind).port, self.name)
        return results

    async def _fill(self, running: Running) -> int:
        """All cents together."""
        some = orders(self.records // 10)
        lines = [json.dumps(order, separators=(",", ":")).encode() for order in some]
        table = pa.table({"value": pa.array(lines, pa.binary())})
        async with Producer(bootstrap_servers=f"127.0.0.1:{running.port}") as producer:
            for _ in range(10):
                await producer.send_arrow(table, self.name)
        return 10 * sum(int(order["cents"]) for order in some)

    def _take(self, spark: Any, port: int, connector: bool, cents: int) -> Figures:
        kafka = {"kafka.bootstrap.servers": f"127.0.0.1:{port}", "subscribe": self.name, "columns": "value"}
        figures: dict[str, float] = {}
        for wish, (_, schema) in WISHES.items():
            decoded = {**kafka, "value_as": f"json:{schema}"}
            ways: dict[str, Callable[[], Any]] = {
                "source": partial(_loaded, spark, "ottla", decoded),
                "source java": partial(_loaded, spark, "ottla", kafka),
                "read": partial(ottla.spark.read, spark, decoded),
                "read java": partial(ottla.spark.read, spark, kafka),
            }
            if connector:
                ways["connector"] = partial(_loaded, spark, "kafka", kafka)
            for way, made in ways.items():
                order = "value" if way in TASKS else f"from_json(cast(value AS STRING), '{SCHEMA}')"
                name = f"{wish} {way}"
                figures[name], figures[f"{name} cpu"] = self._timed(
                    spark, made, order, None if wish == "all" else cents
                )
        return figures

    def _timed(self, spark: Any, made: Callable[[], Any], order: str, cents: int | None) -> tuple[float, float]:
        """Millions a second, of the clock and of the processor: the JVM's and the workers'. Planning is in it."""
        began, used = time.perf_counter(), cpu_seconds(spark)
        frame = made().selectExpr(f"{order} AS read").select("read.*")
        if cents is None:
            frame.write.format("noop").mode("overwrite").save()
        else:
            total = frame.selectExpr("sum(cents)").collect()[0][0]
            if total != cents:
                raise RuntimeError(f"{total} cents, not {cents}")
        return self.records / (time.perf_counter() - began) / 1e6, self.records / (cpu_seconds(spark) - used) / 1e6


def _loaded(spark: Any, name: str, options: dict[str, str]) -> Any:
    return spark.read.format(name).options(**options).load()
