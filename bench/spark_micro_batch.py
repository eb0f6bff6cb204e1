"""What a micro-batch takes: 40,000 rows in four tasks, from a topic and into one, beside a constant Python source and a
Python sink that throws rows away, and beside Spark alone.

The constant pair is the floor: the processes, the planning and the logs' syncs that every Python source and sink has. A
query's first batches start workers and have Java compile what it runs, so they do not count.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from pyspark import cloudpickle
from pyspark.sql.datasource import (
    DataSource,
    DataSourceStreamArrowWriter,
    DataSourceStreamReader,
    InputPartition,
    WriterCommitMessage,
)

import ottla.spark
from bench import arrow, spark_reading
from bench.arrow import fill
from bench.results import Figures, Goal, Measure, Results
from bench.scenario import Context
from bench.servers import Running
from bench.spark_reading import constant_batches
from bench.spark_setup import MASTER, PARTITIONS, measure_topics, settings
from bench.wire import create_topic, delete_topic
from ottla.arrow.schema import DEFAULT_COLUMNS
from ottla.pipeline.flows import SLOW_START, STARTS_MAX
from ottla.spark.source.columns import spark_schema

ROWS = 40_000
#: Batches of a query that do not count, and that do.
WARM, COUNTED = 4, 12
#: A query that has not made its batches by then hangs.
SECONDS_MAX = 300.0
MORE_MS_MAX = 30.0
READ, WRITTEN = "micro-batch-read", "micro-batch-written"


class ConstantStream(DataSource):  # type: ignore[misc]  # pyspark's annotations are not read
    @classmethod
    def name(cls) -> str:
        return "constant-stream"

    def schema(self) -> Any:
        return spark_schema(DEFAULT_COLUMNS)

    def streamReader(self, schema: Any) -> DataSourceStreamReader:  # noqa: N802 - Spark's name
        return ConstantStreamReader()

    def streamWriter(self, schema: Any, overwrite: bool) -> DataSourceStreamArrowWriter:  # noqa: N802 - as above
        return DiscardingStreamWriter()


class ConstantStreamReader(DataSourceStreamReader):  # type: ignore[misc]  # as above
    def initialOffset(self) -> dict[str, int]:  # noqa: N802 - Spark's names, here and below
        return {"batch": 0}

    def latestOffset(self, start: dict[str, int], limit: Any) -> dict[str, int]:  # noqa: N802
        return {"batch": start["batch"] + 1}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[InputPartition]:
        return [InputPartition(number) for number in range(PARTITIONS)]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        return constant_batches(DEFAULT_COLUMNS, ROWS // PARTITIONS)


class DiscardingStreamWriter(DataSourceStreamArrowWriter):  # type: ignore[misc]  # as above
    def write(self, iterator: Iterator[Any]) -> WriterCommitMessage:
        for _ in iterator:
            pass
        return WriterCommitMessage()

    def commit(self, messages: Any, batchId: int) -> None:  # noqa: N803 - Spark's name
        pass

    def abort(self, messages: Any, batchId: int) -> None:  # noqa: N803 - as above
        pass


#: Of each way the source and the sink.
WAYS = {
    "spark": ("rate-micro-batch", "noop"),
    "constant noop": ("constant-stream", "noop"),
    "ottla noop": ("ottla", "noop"),
    "constant sink": ("constant-stream", "constant-stream"),
    "ottla sink": ("ottla", "ottla"),
}


def _ms(name: str, label: str) -> Measure:
    return Measure(name=name, label=label, unit="ms")


@dataclass(frozen=True, kw_only=True)
class SparkMicroBatch:
    name: str = "spark-micro-batch"
    title: str = "a micro-batch of 40,000 rows, four tasks"
    measures: Sequence[Measure] = (
        _ms("spark", "Spark alone, to noop"),
        _ms("constant noop", "constant Python source to noop"),
        _ms("ottla noop", "ottla to noop"),
        _ms("constant sink", "constant Python source to a Python sink that discards"),
        _ms("ottla sink", "ottla to ottla"),
        _ms("noop more", "ottla to noop, more than constant"),
        _ms("sink more", "ottla to ottla, more than constant"),
    )
    goals: Sequence[Goal] = (
        Goal(measure="noop more", at_most=MORE_MS_MAX),
        Goal(measure="sink more", at_most=MORE_MS_MAX),
    )

    def run(self, context: Context) -> Results:
        results = Results(title=self.title, measures=self.measures, goals=self.goals)
        spark = _session(context)

        def filled(running: Running) -> None:
            create_topic(running.port, READ, PARTITIONS)
            asyncio.run(fill(running, READ, ROWS * (WARM + COUNTED + 1)))

        def take(running: Running) -> Figures:
            figures = {way: self._started(context, spark, running, way) for way in WAYS}
            for sink in ("noop", "sink"):
                figures[f"{sink} more"] = figures[f"ottla {sink}"] - figures[f"constant {sink}"]
            return figures

        measure_topics(context, results, spark, [READ], filled, take)
        return results

    def _started(self, context: Context, spark: Any, running: Running, way: str) -> float:
        """Again where Spark gave its Python too little time to start, as on a machine with other work."""
        for left in reversed(range(STARTS_MAX)):
            try:
                return self._taken(context, spark, running, way)
            except RuntimeError as failed:
                if SLOW_START not in str(failed) or not left:
                    raise
                context.tell(f"  {way}: {SLOW_START}; once more")
        raise AssertionError("the last time it is raised")

    def _taken(self, context: Context, spark: Any, running: Running, way: str) -> float:
        """The median of the batches that count, in ms."""
        source, sink = WAYS[way]
        kafka = {"kafka.bootstrap.servers": f"127.0.0.1:{running.port}"}
        options: dict[str, dict[str, str]] = {
            "rate-micro-batch": {"rowsPerBatch": str(ROWS), "numPartitions": str(PARTITIONS)},
            "ottla": {
                **kafka,
                "subscribe": READ,
                "startingOffsets": "earliest",
                "maxOffsetsPerTrigger": str(ROWS),
            },
        }
        frame = spark.readStream.format(source).options(**options.get(source, {})).load()
        number = time.monotonic_ns()
        checkpoint = context.places.scratch / "checkpoints" / f"{way}-{number}"
        # Another one each time: a query is stopped in the middle of a batch, and what a producer of a worker asks for
        # a moment later makes a topic again that was deleted.
        written = f"{WRITTEN}-{number}"
        if sink == "ottla":
            create_topic(running.port, written, PARTITIONS)
            frame = frame.select("key", "value")
        writing = frame.writeStream.format(sink).option("checkpointLocation", str(checkpoint))
        query = writing.options(**kafka, topic=written).trigger(processingTime="0 seconds").start()
        try:
            return median(_durations(query)[WARM:])
        finally:
            query.stop()
            if sink == "ottla":
                delete_topic(running.port, written)


def _durations(query: Any) -> list[float]:
    """Of a query's whole batches, as soon as there are enough."""
    deadline = time.monotonic() + SECONDS_MAX
    while True:
        # A topic's partitions are not equally full, so that shares of them come to a few rows less.
        whole = [one.durationMs["triggerExecution"] for one in query.recentProgress if one.numInputRows >= 0.99 * ROWS]
        if len(whole) >= WARM + COUNTED:
            return whole[: WARM + COUNTED]
        if time.monotonic() > deadline or not query.isActive:
            raise RuntimeError(f"{len(whole)} batches of {ROWS} rows: {query.exception() or 'and no more came'}")
        time.sleep(0.1)


def _session(context: Context) -> Any:
    for module in (sys.modules[__name__], spark_reading, arrow):
        cloudpickle.register_pickle_by_value(module)  # workers have no bench
    spark = ottla.spark.session("bench", master=MASTER, config=settings(context, ""))
    spark.sparkContext.setLogLevel("OFF")  # a query is stopped in the middle of a batch, of which much would be said
    spark.dataSource.register(ConstantStream)
    return spark
