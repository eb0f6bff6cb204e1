"""What it costs a stream into a topic to be exactly once: the same sink, with transactions and without.

Rows are Spark's own (`rate-micro-batch`), so that nothing but the sink differs: once at least, the same with a ledger
(`ottla.query`), and exactly once. One query after the other in each round, and the median of its micro-batches; a
query's first ones start workers and have Java compile what it runs, so they do not count. Java goes on compiling for
minutes: all ways are taken once before the first round, and every second round has them in the other order.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from statistics import median
from typing import Any

import ottla.spark
from bench.results import Figures, Goal, Measure, Results
from bench.scenario import Context
from bench.servers import NULL, Running
from bench.spark_setup import MASTER, PARTITIONS, cpu_seconds, settings
from bench.spark_writing import VALUE
from bench.wire import create_topic, delete_topic

#: Of a micro-batch.
ROWS = (50_000, 500_000)
#: Batches of a query that do not count, and that do.
WARM, COUNTED = 4, 12
#: A query that has not made its batches by then hangs.
SECONDS_MAX = 600.0
TOPIC = "exactly-once"
#: The least share of the rate without transactions.
SHARE_MIN = 0.8

#: By what is shown, the options of each way.
WAYS = {
    "plain": {},
    "ledger": {"ottla.query": TOPIC},
    "once": {"ottla.query": TOPIC, "ottla.exactlyOnce": "true"},
}
_LABELS = {"plain": "once at least", "ledger": "with a ledger", "once": "exactly once"}


def _measures() -> Sequence[Measure]:
    found = []
    for rows in ROWS:
        named = f"{rows:,} rows, "
        for way, label in _LABELS.items():
            found.append(Measure(name=f"{rows} {way}", label=named + label, unit="ms"))
            found.append(Measure(name=f"{rows} {way} cpu", label=named + label, unit="ms of Spark's CPU"))
        for way in ("ledger", "once"):
            for what, unit in (("share", "times"), ("share cpu", "times, by CPU")):
                label = f"{named}{_LABELS[way]} / once at least, rate"
                found.append(Measure(name=f"{rows} {way} {what}", label=label, unit=unit, digits=2))
    return tuple(found)


@dataclass(frozen=True, kw_only=True)
class SparkExactlyOnce:
    name: str = "spark-exactly-once"
    title: str = "a micro-batch into a topic, four tasks"
    measures: Sequence[Measure] = _measures()
    goals: Sequence[Goal] = tuple(Goal(measure=f"{rows} once share", at_least=SHARE_MIN) for rows in ROWS)

    def run(self, context: Context) -> Results:
        results = Results(title=self.title, measures=self.measures, goals=self.goals)
        spark = ottla.spark.session("bench", master=MASTER, config=settings(context, ""))
        # A query is stopped in the middle of a batch, of which much would be said.
        spark.sparkContext.setLogLevel("OFF")
        rounds = count()

        def take(kind: str) -> Figures:
            running = context.shared(kind)
            figures: dict[str, float] = {}
            order = list(WAYS) if next(rounds) % 2 else list(WAYS)[::-1]
            for rows in ROWS:
                for way in order:
                    figures[f"{rows} {way}"], figures[f"{rows} {way} cpu"] = _taken(context, spark, running, rows, way)
                for way in ("ledger", "once"):
                    for what in ("", " cpu"):
                        share = figures[f"{rows} plain{what}"] / figures[f"{rows} {way}{what}"]
                        figures[f"{rows} {way} share{what}"] = share
            return figures

        try:
            kinds = [kind for kind in context.kinds if kind != NULL]
            for way in WAYS:
                _taken(context, spark, context.shared(kinds[0]), ROWS[-1], way)
            context.measure_in_turns(results, kinds, take, lambda _: context.effort.rounds)
        finally:
            spark.stop()
        return results


def _taken(context: Context, spark: Any, running: Running, rows: int, way: str) -> tuple[float, float]:
    """Of a micro-batch that counts the median of the clock's ms, and the mean of the processor's."""
    kafka = {"kafka.bootstrap.servers": f"127.0.0.1:{running.port}"}
    ottla.spark.free_query_name(TOPIC, bootstrap_servers=kafka["kafka.bootstrap.servers"])
    source = {"rowsPerBatch": str(rows), "numPartitions": str(PARTITIONS)}
    frame = spark.readStream.format("rate-micro-batch").options(**source).load()
    frame = frame.withColumnRenamed("value", "id").selectExpr(VALUE)
    checkpoint = context.places.scratch / "checkpoints" / f"{way}-{time.monotonic_ns()}"
    create_topic(running.port, TOPIC, PARTITIONS)
    writing = frame.writeStream.format("ottla").option("checkpointLocation", str(checkpoint))
    query = writing.options(**kafka, topic=TOPIC, **WAYS[way]).trigger(processingTime="0 seconds").start()
    try:
        _until(query, WARM)
        used = cpu_seconds(spark)
        before = len(_until(query, WARM))
        took = _until(query, before + COUNTED)
        used = cpu_seconds(spark) - used
        return median(took[before : before + COUNTED]), used / (len(took) - before) * 1e3
    finally:
        query.stop()
        delete_topic(running.port, TOPIC)


def _until(query: Any, count: int) -> list[float]:
    """What the batches took that are done, as soon as there are so many; Spark remembers a hundred."""
    deadline = time.monotonic() + SECONDS_MAX
    while len(found := [one.durationMs["triggerExecution"] for one in query.recentProgress]) < count:
        if time.monotonic() > deadline or not query.isActive:
            raise RuntimeError(f"{len(found)} batches: {query.exception() or 'and no more came'}")
        time.sleep(0.02)
    return found
