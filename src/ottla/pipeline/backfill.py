"""A backfill: what the tables have between two times, computed again by the same functions, without a stream.

The flows catch up first, so that no stream comes by the range's rows once more behind the backfill. Then each table in
turn is computed from all that it reads, as it is now, and of the result the rows of the range replace those that the
table had. From all and not from the range: a window at the edge, or a row whose own time differs from its record's,
would be wrong else; Spark reads no more of a file than the range needs where the column says so.

    reads topics    the range from the topic, up to where the stream stands; rows whose records the topic has lost stay
    reads tables    rows of the range are replaced
    keys, changes   the same changes again: a change that is there already changes nothing

Doing it again gives the same. One that dies in the middle is done again.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

import ottla.spark
from ottla.pipeline.changes import merged
from ottla.pipeline.definitions import Flow, Kind
from ottla.pipeline.errors import BadDefinition
from ottla.pipeline.places import offsets_of
from ottla.pipeline.planning import Plan, PlannedFlow
from ottla.pipeline.running import PipelineRun, write_whole
from ottla.pipeline.tables.delta import publish
from ottla.pipeline.tables.files import frame_of, now_ms, write_files
from ottla.pipeline.tables.log import Commit, TableLog
from ottla.pipeline.writing import check, last_of_each_key, refuse_failed, stored, with_bucket

#: Where nothing is said: the first of these that a table has.
_TIMES: Final = ("timestamp", "window")
_POSITION: Final = ("topic", "partition", "offset")


class Range(NamedTuple):
    """From a time up to, and without, another; in milliseconds since 1970."""

    from_ms: int
    to_ms: int

    def holds(self, column: Any) -> Any:
        from pyspark.sql import functions as F  # noqa: N812 - as everybody calls them

        first, end = (datetime.fromtimestamp(one / 1000, UTC) for one in self)
        return F.coalesce((column >= F.lit(first)) & (column < F.lit(end)), F.lit(False))


class BackfillPlan(Plan):
    """The same functions; what they read are frames of all that there is."""

    def __init__(self, streams: Plan, span: Range) -> None:
        super().__init__(streams.spark, streams.file, streams.places, streams.kafka)
        self.planned = dict(streams.planned)
        self._span = span

    def topic(self, topics: Sequence[str], starting: str, options: dict[str, str]) -> Any:
        given = {name: value for name, value in options.items() if not name.lower().endswith("pertrigger")}
        frame = ottla.spark.read(
            self.spark,
            {
                "subscribe": ",".join(topics),
                "includeHeaders": "true",
                "startingTimestamp": str(max(0, self._span.from_ms)),
                "startingOffsetsByTimestampStrategy": "latest",
                **self.kafka,
                **given,
            },
        ).drop("timestampType")
        return frame.where(self._below(self._noted[-1].flow.name))

    def stream(self, name: str) -> Any:
        return self.snapshot(name)

    def _below(self, flow: str) -> Any:
        """What the flow's stream has read: the rest is still to come by it."""
        from pyspark.sql import functions as F  # noqa: N812

        condition = F.lit(False)
        for offsets in offsets_of(self.places.checkpoint(flow)):
            for topic, partitions in offsets.items():
                if topic.startswith("#") or not isinstance(partitions, dict):
                    continue
                for partition, offset in partitions.items():
                    condition |= (
                        (F.col("topic") == topic) & (F.col("partition") == int(partition)) & (F.col("offset") < offset)
                    )
        return condition


def backfill(run: PipelineRun, span: Range) -> dict[str, int]:
    """How many rows each table has in the range then, by its name; of tables with changes, all. Sinks get nothing."""
    with run.held():
        for flow in run.flows:
            if flow.flow.kind is Kind.TABLE and flow.planned.is_stream and flow.flow.changes is None:
                time_of(flow.flow, flow.planned.schema)
        run.read_all()
        plan = BackfillPlan(run.plan, span)
        return {flow.name: _filled(plan, flow.planned, span) for flow in run.flows if flow.flow.kind is Kind.TABLE}


def time_of(flow: Flow, schema: Any) -> Any:
    """The column that the range is of. Raises BadDefinition where there is none."""
    from pyspark.sql import functions as F  # noqa: N812
    from pyspark.sql.types import StructType, TimestampType

    names = [flow.time] if flow.time is not None else [name for name in _TIMES if name in schema.fieldNames()]
    if not names:
        raise BadDefinition(
            f"{flow.text} has no column timestamp or window, so a backfill does not know which rows to replace: "
            'say it by @table(time="column")'
        )
    if names[0] not in schema.fieldNames():
        raise BadDefinition(f"{flow.text} has time={names[0]!r}, and no such column: {', '.join(schema.fieldNames())}")
    kind = schema[names[0]].dataType
    if isinstance(kind, StructType) and "start" in kind.fieldNames():
        return F.col(f"`{names[0]}`.start")
    if not isinstance(kind, TimestampType):
        raise BadDefinition(f"{flow.text}: the column {names[0]} is {kind.simpleString()}, and must be a timestamp")
    return F.col(f"`{names[0]}`")


def _filled(plan: BackfillPlan, planned: PlannedFlow, span: Range) -> int:
    frame = plan.again(planned)
    log = TableLog(plan.places.table(planned.flow.name))
    if not planned.is_stream:
        write_whole(planned, frame, plan.places)
        return sum(file.rows for file in log.state().files.values())
    changes = planned.flow.changes is not None
    if not changes:
        frame = frame.where(span.holds(time_of(planned.flow, planned.schema)))
    frame = frame.persist()
    try:
        checked = check(frame, tuple(rule for rule in planned.rules if rule.late_ms is None), None)
        refuse_failed(planned.flow, planned.rules, checked)
        good = stored(checked.frame, planned.rules, planned.schema)
        return _replaced(log, planned, good, span, changes=changes)
    finally:
        frame.unpersist()


def _replaced(log: TableLog, planned: PlannedFlow, good: Any, span: Range, *, changes: bool) -> int:
    from pyspark.sql import functions as F  # noqa: N812

    flow, state = planned.flow, log.state()
    if state.schema is None:
        old, kept = [], frame_of(good.sparkSession, log, (), planned.schema)
    else:
        inside = None if changes or flow.keys else span.holds(time_of(flow, planned.schema))
        whole = frame_of(good.sparkSession, log, state.files.values(), planned.schema)
        old = list(state.files.values())
        if inside is not None:
            names = {
                row[0].rpartition("/")[2]
                for row in whole.where(inside).select(F.input_file_name()).distinct().collect()
            }
            old = [file for file in old if file.path.rpartition("/")[2] in names]
        kept = frame_of(good.sparkSession, log, old, planned.schema)
    new = good.count()
    if changes:
        result = merged(kept, good, flow)
    else:
        inside = span.holds(time_of(flow, planned.schema))
        rest = kept.where(~inside)
        if planned.topics and set(_POSITION) <= set(planned.schema.fieldNames()):
            lost = kept.where(inside).join(good.select(*_POSITION), list(_POSITION), "left_anti")
            rest = rest.unionByName(lost)
        result = rest.unionByName(last_of_each_key(good, flow) if flow.keys else good)
    if flow.keys:
        result = with_bucket(result, flow)
    added = write_files(result, log, bucketed=bool(flow.keys))
    log.commit(
        Commit(
            kind="replace",
            written_ms=now_ms(),
            added=added,
            removed=tuple(file.path for file in old),
            schema=planned.schema.jsonValue(),
        )
    )
    if flow.delta:
        publish(log)
    return int(new)
