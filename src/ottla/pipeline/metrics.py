"""What a pipeline's page for Prometheus shows of each flow: what its status says, read when somebody scrapes.

A table's counts come out of its log, where they were written with the rows, so they are of all runs; those of a sink
are what `ottla pipeline status` shows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from ottla.metrics import Registry
from ottla.pipeline.status import FAILED, FlowStatus

_FLOW = ("pipeline", "flow")
#: What only rises, unless a table is computed in whole: by the name of the number and of the status's field.
_COUNTS = {
    "rows_in": ("rows_in", "Rows that the flow has read."),
    "rows_out": ("rows_out", "Rows that the flow has written."),
    "rows_dropped": ("dropped", "Rows that were left out by rules."),
    "dead_letters": ("dead", "Records that were sent to the dead letters."),
    "rows_late": ("late", "Rows that Spark dropped, as they came behind a watermark."),
}


def register(registry: Registry, pipeline: str, read: Callable[[], Sequence[FlowStatus]]) -> None:
    """`read` is called by whoever scrapes."""

    def gauge(name: str, help_: str, number: Callable[[FlowStatus], float | None], type_: str = "gauge") -> None:
        def each() -> Iterator[tuple[tuple[str, ...], float]]:
            for one in read():
                found = number(one)
                if found is not None:
                    yield (pipeline, one.flow), float(found)

        registry.gauges(f"ottla_pipeline_{name}", help_, _FLOW, each, type_=type_)

    gauge("lag", "Records of topics, or versions of tables, that the flow has not read yet.", lambda one: one.lag)
    gauge("micro_batch", "The last micro-batch that was written.", lambda one: one.batch)
    gauge("rows_per_second", "Rows that the last micro-batch read in a second.", lambda one: one.rows_a_second)
    gauge("failed", "1 where the flow has ended with an error, which the status names.", _has_failed)
    for name, (field, help_) in _COUNTS.items():
        gauge(f"{name}_total", help_, lambda one, field=field: getattr(one, field), "counter")  # type: ignore[misc]

    def by_rule(name: str, help_: str, counts: Callable[[FlowStatus], Mapping[str, int]]) -> None:
        registry.gauges(
            f"ottla_pipeline_rule_{name}_total",
            help_,
            (*_FLOW, "rule"),
            lambda: (
                ((pipeline, one.flow, rule), float(count)) for one in read() for rule, count in counts(one).items()
            ),
            type_="counter",
        )

    by_rule("broken", "Rows that broke a rule of the table.", lambda one: one.failed)
    by_rule("kept", "Rows that kept a rule of the table.", lambda one: one.passed)


def _has_failed(status: FlowStatus) -> float:
    return float(status.state == FAILED)
