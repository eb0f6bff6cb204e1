"""A backfill: what the tables have between two times, computed again by the same functions, without a stream.

The flows catch up first, so that no stream comes by the range's rows once more behind the backfill. Then each table in
turn is computed from all that it reads, as it is now, and of the result the rows of the range replace those that the
table had. From all and not from the range: a window at the edge, or a row whose own time differs from its record's,
would be wrong else; Spark reads no more of a file than the range needs where the column says so.

    reads topics    all of the topic, up to where the stream stands; of records as they came, those of the range
    reads tables    rows of the range are replaced
    keys            of each key the last row of all, where that is in the range: it may replace one that is not
    changes         the same changes again: a change that is there already changes nothing

Rows stay that cannot be computed again, since what they were made of is gone (`losses`). What is gone is asked when all
has been read: a topic may lose records meanwhile.

Doing it again gives the same. One that dies in the middle is done again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

import ottla.spark
from ottla.pipeline.changes import merged
from ottla.pipeline.columns import quoted
from ottla.pipeline.definitions import Flow, Kind
from ottla.pipeline.errors import BadDefinition
from ottla.pipeline.losses import Losses
from ottla.pipeline.places import offsets_of
from ottla.pipeline.planning import Plan, PlannedFlow
from ottla.pipeline.running import PipelineRun, write_whole
from ottla.pipeline.tables.delta import publish
from ottla.pipeline.tables.files import frame_of, now_ms, write_files
from ottla.pipeline.tables.log import Commit, TableFile, TableLog
from ottla.pipeline.writing import check, last_of_each_key, refuse_failed, stored, with_bucket

#: Where nothing is said: the first of these that a table has.
_TIMES: Final = ("timestamp", "window")
#: Python's last year is 9999.
_PYTHON_MS_MAX: Final = 62_000_000_000_000
#: Spark counts microseconds in 64 bits.
_TIME_MS_MAX: Final = (2**63 - 1) // 1000
_POSITION: Final = ("topic", "partition", "offset")


class Range(NamedTuple):
    """From a time up to, and without, another; in milliseconds since 1970."""

    from_ms: int
    to_ms: int

    def holds(self, column: Any) -> Any:
        from pyspark.sql import functions as F  # noqa: N812 - as everybody calls them

        # As numbers: Spark has times that Python has not, and whoever means all of them names one.
        first, end = (F.timestamp_millis(F.lit(min(max(one, -_TIME_MS_MAX), _TIME_MS_MAX))) for one in self)
        return F.coalesce((column >= first) & (column < end), F.lit(False))


class TopicRead(NamedTuple):
    """What a function was given for `read_topic`."""

    topics: Sequence[str]
    options: dict[str, str]
    frame: Any


class BackfillPlan(Plan):
    """The same functions; what they read are frames of all that there is."""

    def __init__(self, streams: Plan, span: Range) -> None:
        super().__init__(streams.spark, streams.file, streams.places, streams.kafka)
        self.planned = dict(streams.planned)
        self._span = span
        #: By the flow whose function was called last.
        self._reads: list[TopicRead] = []

    def again(self, planned: PlannedFlow) -> Any:
        self._reads = []
        frame = super().again(planned)
        for read in self._reads:
            # Records as they came have no other time than their own, so the topic can be asked for those of the range.
            if read.frame is frame and planned.flow.time in {None, "timestamp"}:
                first = {
                    "startingTimestamp": str(max(0, self._span.from_ms)),
                    "startingOffsetsByTimestampStrategy": "latest",
                }
                frame = self._records(planned.flow.name, read.topics, {**first, **read.options})
                self._reads = [read._replace(frame=frame)]
                break
        return frame

    def topic(self, topics: Sequence[str], starting: str, options: dict[str, str]) -> Any:
        given = {name: value for name, value in options.items() if not name.lower().endswith("pertrigger")}
        frame = self._records(self._noted[-1].flow.name, topics, given)
        self._reads.append(TopicRead(topics, given, frame))
        return frame

    def positions(self) -> Any:
        """Of all records that the function which was called last has read."""
        first, *more = (read.frame.select(*_POSITION) for read in self._reads)
        for one in more:
            first = first.unionByName(one)
        return first

    def stream(self, name: str) -> Any:
        return self.snapshot(name)

    def _records(self, flow: str, topics: Sequence[str], options: dict[str, str]) -> Any:
        given = {"subscribe": ",".join(topics), "includeHeaders": "true", **self.kafka, **options}
        return ottla.spark.read(self.spark, given).drop("timestampType").where(self._below(flow))

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


def backfill(run: PipelineRun, span: Range, say: Callable[[str], None] = lambda line: None) -> dict[str, int]:
    """How many rows of the range were computed for each table, by its name; of changes, all. Sinks get nothing.

    `say` is called with what is to be known of rows that stay as they are.
    """
    with run.held():
        for flow in run.flows:
            if flow.flow.kind is Kind.TABLE and flow.planned.is_stream and flow.flow.changes is None:
                time_of(flow.flow, flow.planned.schema)
        run.read_all()
        plan, losses = BackfillPlan(run.plan, span), Losses(run.places, run.kafka)
        tables = [flow.planned for flow in run.flows if flow.flow.kind is Kind.TABLE]
        return {one.flow.name: _filled(plan, one, span, losses, say) for one in tables}


def time_of(flow: Flow, schema: Any) -> Any:
    """The column that the range is of. Raises BadDefinition where there is none."""
    from pyspark.sql import functions as F  # noqa: N812
    from pyspark.sql.types import StructType, TimestampType

    name = _time_name(flow, schema)
    kind = schema[name].dataType
    if isinstance(kind, StructType) and "start" in kind.fieldNames():
        return F.col(f"{quoted(name)}.start")
    if not isinstance(kind, TimestampType):
        raise BadDefinition(f"{flow.text}: the column {name} is {kind.simpleString()}, and must be a timestamp")
    return F.col(quoted(name))


def _time_name(flow: Flow, schema: Any) -> str:
    names = [flow.time] if flow.time is not None else [name for name in _TIMES if name in schema.fieldNames()]
    if not names:
        raise BadDefinition(
            f"{flow.text} has no column timestamp or window, so a backfill does not know which rows to replace: "
            'say it by @table(time="column")'
        )
    if names[0] not in schema.fieldNames():
        raise BadDefinition(f"{flow.text} has time={names[0]!r}, and no such column: {', '.join(schema.fieldNames())}")
    return names[0]


def _filled(plan: BackfillPlan, planned: PlannedFlow, span: Range, losses: Losses, say: Callable[[str], None]) -> int:
    flow = planned.flow
    log = TableLog(plan.places.table(flow.name))
    if not planned.is_stream:
        write_whole(planned, plan.again(planned), plan.places)
        return sum(file.rows for file in log.state().files.values())
    frame = plan.again(planned)
    inside = None if flow.changes is not None else span.holds(time_of(flow, planned.schema))
    # A key's last row may be of another time than those before it, unless the time is a part of the key.
    if inside is not None and (not flow.keys or _time_name(flow, planned.schema) in flow.keys):
        frame = frame.where(inside)
    rules = tuple(rule for rule in planned.rules if rule.late_ms is None)
    checked = check(frame if rules else frame.persist(), rules, {}, counted=inside)
    try:
        in_range = checked if inside is None else replace(checked, frame=checked.frame.where(inside))
        refuse_failed(flow, rules, in_range)
        checked.frame.count()  # nothing is read from here on
        span = _known_part(planned, span, losses, say)
        return _replaced(plan, log, planned, stored(checked.frame, rules, planned.schema), span)
    finally:
        checked.frame.unpersist()


def _known_part(planned: PlannedFlow, span: Range, losses: Losses, say: Callable[[str], None]) -> Range:
    """What of the range can be computed again."""
    flow, since = planned.flow, losses.since(planned)
    losses.fills(planned, max(span.from_ms, since.ms), span.to_ms)
    is_compared = _has_positions(planned) and not losses.made_again(planned)
    if flow.changes is not None or is_compared or since.ms <= span.from_ms:
        return span
    say(
        f"{flow.name}: rows before {_text(since.ms)} stay as they are: {since.lost_by} has lost {since.lost} that "
        "they may be made of"
    )
    return span._replace(from_ms=min(since.ms, span.to_ms))


def _replaced(plan: BackfillPlan, log: TableLog, planned: PlannedFlow, good: Any, span: Range) -> int:
    flow, state = planned.flow, log.state()
    old = list(state.files.values())
    if flow.changes is None and not flow.keys:
        old = _with_rows_inside(plan.spark, log, planned, span)
    kept = frame_of(plan.spark, log, old, planned.schema)
    if flow.changes is not None:
        result = merged(kept, good, flow)
    else:
        inside = span.holds(time_of(flow, planned.schema))
        if flow.keys:
            good = last_of_each_key(good, flow, _order(planned))
        good = good.where(inside)
        rest = kept.where(~inside)
        if _has_positions(planned):
            rest = rest.unionByName(_lost(plan, kept.where(inside), good))
        result = merged(rest, good, flow) if flow.keys else rest.unionByName(good)
    new = good.count()
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
            keys=flow.keys,
        )
    )
    if flow.delta:
        publish(log)
    return int(new)


def _order(planned: PlannedFlow) -> Any:
    """By what the last row of a key is known; None: by where it stands, as records do.

    Files of tables are read in no order, and joins keep none.
    """
    return time_of(planned.flow, planned.schema) if planned.tables or planned.snapshots else None


def _with_rows_inside(spark: Any, log: TableLog, planned: PlannedFlow, span: Range) -> list[TableFile]:
    from pyspark.sql import functions as F  # noqa: N812

    files = list(log.state().files.values())
    inside = span.holds(time_of(planned.flow, planned.schema))
    rows = frame_of(spark, log, files, planned.schema).where(inside)
    names = {row[0].rpartition("/")[2] for row in rows.select(F.input_file_name()).distinct().collect()}
    return [file for file in files if file.path.rpartition("/")[2] in names]


def _has_positions(planned: PlannedFlow) -> bool:
    """Whether each row says which record it was."""
    return bool(planned.topics) and not planned.tables and set(_POSITION) <= set(planned.schema.fieldNames())


def _lost(plan: BackfillPlan, inside: Any, good: Any) -> Any:
    """The rows whose records the topic has no more; what a rule leaves out now is none of them."""
    away = inside.join(good.select(*_POSITION), list(_POSITION), "left_anti")
    # The topic is read once more where there are some, which is seldom.
    return away if away.isEmpty() else away.join(plan.positions(), list(_POSITION), "left_anti")


def _text(ms: int) -> str:
    if not -_PYTHON_MS_MAX < ms < _PYTHON_MS_MAX:  # a record may say any time
        return f"{ms} ms since 1970"
    return datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
