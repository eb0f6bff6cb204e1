"""What the rows of Spark share: where it runs, its settings, the JVM connector's jars, and what its processes use;
and how topics are measured."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Final

from tools.kafka_jars import JarsUnavailable, connector_jars

from bench import machine
from bench.results import Figures, Measure, Results
from bench.scenario import Context
from bench.servers import NULL, Running
from bench.wire import delete_topic

#: Two cores and four tasks, as for everything of Spark's that is measured.
MASTER: Final = "local[2]"
PARTITIONS: Final = 4


def jars_for(context: Context) -> str:
    """The JVM connector's, or nothing where they cannot be had."""
    try:
        return connector_jars()
    except JarsUnavailable as missing:
        context.tell(f"  without the JVM connector: {missing}")
        return ""


def settings(context: Context, jars: str) -> dict[str, str]:
    """Of a session, however it is made."""
    return {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.memory": "1g",
        "spark.jars": jars,
        "spark.local.dir": str(context.places.scratch / "spark"),
    }


def rate(name: str, label: str) -> Sequence[Measure]:
    return (
        Measure(name=name, label=label, unit="M rows/s", digits=2),
        Measure(name=f"{name} cpu", label=label, unit="M rows/s of Spark's CPU", digits=2),
    )


def times(name: str, label: str) -> Measure:
    return Measure(name=name, label=label, unit="times", digits=2)


def cpu_seconds(spark: Any) -> float:
    """Of the JVM and its Python workers, which live on from job to job; the driver's own process only waits. What ends
    while it is looked at is left out."""
    pids, total = [spark.sparkContext._gateway.proc.pid], 0.0
    for pid in pids:
        with suppress(FileNotFoundError, ProcessLookupError):
            total += machine.cpu_seconds(pid)
            pids += machine.children(pid)
    return total


def measure_topics(
    context: Context,
    results: Results,
    spark: Any,
    topics: Sequence[str],
    fill: Callable[[Running], None],
    take: Callable[[Running], Figures],
) -> None:
    """In each round, of each kind of broker, by a session that ends then. They are made and filled once."""
    filled: set[str] = set()

    def taken(kind: str) -> Figures:
        running = context.shared(kind)
        if kind not in filled:
            fill(running)
            filled.add(kind)
        return take(running)

    try:
        kinds = [kind for kind in context.kinds if kind != NULL]
        context.measure_in_turns(results, kinds, taken, lambda _: context.effort.rounds)
    finally:
        spark.stop()
        for kind in filled:
            for topic in topics:
                delete_topic(context.shared(kind).port, topic)
