"""From definitions to frames: each function is called, and what it reads on the way is noted.

What a table reads is planned before the table, so the order in which tables are planned is one in which they can run.
A table that is read while it is being planned closes a cycle.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from ottla.pipeline.changes import MARK, NUMBER, RUN, scd_type_of
from ottla.pipeline.columns import check_key, check_stored, check_streamed
from ottla.pipeline.definitions import Flow, Kind
from ottla.pipeline.errors import ANEW, BadDefinition, BadState, PipelineError
from ottla.pipeline.expectations import DECODES, Action, Rule
from ottla.pipeline.loading import PipelineFile
from ottla.pipeline.places import Places
from ottla.pipeline.reading import ERROR, RECORD, answering
from ottla.pipeline.tables.delta import DELTA, check_delta
from ottla.pipeline.tables.files import frame_of
from ottla.pipeline.tables.log import TableLog
from ottla.pipeline.tables.reading import table_frame
from ottla.pipeline.tables.stream import FORMAT, PATH

#: Records of one micro-batch: so many of 100 bytes are a few hundred MB in Java.
_RECORDS_A_BATCH: Final = "1000000"
#: What rows are marked with while they are written.
OWN_COLUMNS: Final = frozenset({"_failed", "_bucket", MARK, NUMBER, RUN})


@dataclass(kw_only=True)
class PlannedFlow:
    """A table or a sink, ready to be started."""

    flow: Flow
    frame: Any = None
    #: Tables and topics that it reads.
    tables: set[str] = field(default_factory=set)
    topics: set[str] = field(default_factory=set)
    #: Of a table: the columns that it stores.
    schema: Any = None
    rules: tuple[Rule, ...] = ()
    #: Of tables that it reads as they are at one moment: the files that its frame names.
    snapshots: dict[str, set[str]] = field(default_factory=dict)

    @property
    def is_stream(self) -> bool:
        return bool(self.frame.isStreaming)


class Plan:
    """All flows of a file, as streams; `Backfill` plans them as frames without streams."""

    keeps_bad_rows = True

    def __init__(self, spark: Any, file: PipelineFile, places: Places, kafka: dict[str, str]) -> None:
        self.spark = spark
        self.file = file
        self.places = places
        #: Options that begin with `kafka.`.
        self.kafka = kafka
        #: In an order in which they can run.
        self.planned: dict[str, PlannedFlow] = {}
        #: What is being planned, the outermost first: flows, and whose reads are noted.
        self._open: list[Flow] = []
        self._noted: list[PlannedFlow] = []

    def make(self) -> list[PlannedFlow]:
        for flow in self.file.definitions.flows.values():
            if flow.kind is not Kind.VIEW:
                self._plan(flow)
        return list(self.planned.values())

    def frame_of_now(self, planned: PlannedFlow) -> Any:
        """The flow's frame; made anew where what `read` gives may have changed since."""
        return self.again(planned) if planned.snapshots else planned.frame

    def again(self, planned: PlannedFlow) -> Any:
        """The function is called once more."""
        noted = PlannedFlow(flow=planned.flow)
        self._noted.append(noted)
        try:
            frame = self._frame(planned.flow)
        finally:
            self._noted.pop()
        planned.snapshots = noted.snapshots
        return frame

    # What functions ask for while they run

    def topic(self, topics: Sequence[str], starting: str, options: dict[str, str]) -> Any:
        self._noted[-1].topics.update(topics)
        given = {
            "subscribe": ",".join(topics),
            "startingOffsets": starting,
            "includeHeaders": "true",
            "maxOffsetsPerTrigger": _RECORDS_A_BATCH,
            # So that the lag is seen wherever people look for lag.
            "kafka.group.id": f"{self.file.name}.{self._noted[-1].flow.name}",
            **self.kafka,
            **options,
        }
        if "maxBytesPerTrigger" in options:
            del given["maxOffsetsPerTrigger"]
        return self.spark.readStream.format("ottla").options(**given).load().drop("timestampType")

    def stream(self, name: str) -> Any:
        flow = self._asked(name)
        if flow.kind is Kind.VIEW:
            return self._frame(flow)
        if flow.changes is not None:
            raise BadDefinition(
                f"{self._open[-1].text} reads {name!r} as a stream, and rows of a table that takes in changes are "
                "replaced: read what apply_changes reads, or use read"
            )
        planned = self._plan(flow)
        if not planned.is_stream:
            raise BadDefinition(
                f"{self._open[-1].text} reads {name!r} as a stream, and that table is computed in whole: use read"
            )
        check_streamed(self._open[-1].text, name, planned.schema)
        self._noted[-1].tables.add(name)
        folder = self.places.table(name)
        return self.spark.readStream.format(FORMAT).schema(planned.schema).option(PATH, folder).load()

    def snapshot(self, name: str) -> Any:
        flow = self._asked(name)
        if flow.kind is Kind.VIEW:
            return self._frame(flow)
        planned = self._plan(flow)
        log = TableLog(self.places.table(name))
        state = log.state()
        self._noted[-1].snapshots.setdefault(name, set()).update(state.files)
        return (
            frame_of(self.spark, log, (), planned.schema)
            if state.schema is None
            else table_frame(self.spark, log, state)
        )

    # Planning

    def _asked(self, name: str) -> Flow:
        return self.file.definitions.flow(name, self._open[-1].text)

    def _plan(self, flow: Flow) -> PlannedFlow:
        there = self.planned.get(flow.name)
        if there is not None:
            return there
        planned = PlannedFlow(flow=flow)
        self._noted.append(planned)
        try:
            planned.frame = self._frame(flow)
        finally:
            self._noted.pop()
        self._check(planned)
        self.planned[flow.name] = planned
        return planned

    def _frame(self, flow: Flow) -> Any:
        if flow in self._open:
            names = [one.name for one in self._open[self._open.index(flow) :]]
            raise BadDefinition(
                f"tables read each other in a circle: {' reads '.join([*names, flow.name])}; "
                "have one of them read a topic or a table outside of it"
            )
        self._open.append(flow)
        try:
            with answering(self), explained(flow):
                frame = flow.function()
        finally:
            self._open.pop()
        if not hasattr(frame, "isStreaming"):
            raise BadDefinition(f"{flow.text} returned {type(frame).__name__}: it must return a frame")
        return frame

    def _check(self, planned: PlannedFlow) -> None:
        flow, frame = planned.flow, planned.frame
        if flow.kind is Kind.SINK:
            if not planned.is_stream:
                raise BadDefinition(f"{flow.text} reads without a stream: a sink needs read_stream or read_topic")
            return
        names = [name.lower() for name in frame.columns]
        for name in names:
            if name in OWN_COLUMNS or names.count(name) > 1:
                why = "the pipeline marks rows by" if name in OWN_COLUMNS else "is there twice"
                raise BadDefinition(f"{flow.text}: the column {name}, which {why}: give it another name by alias")
        for key in flow.keys:
            if key not in frame.columns:
                raise BadDefinition(f"{flow.text} has the key {key!r}, and no such column: {', '.join(frame.columns)}")
        if flow.dead_letters and RECORD not in frame.columns:
            raise BadDefinition(
                f"{flow.text} has dead_letters, and its frame no column {RECORD}: keep it in select, as decode_json "
                "gives it"
            )
        planned.rules = _rules(flow, frame)
        log = TableLog(self.places.table(flow.name))
        planned.schema = stored_schema(flow, frame.schema, log)
        check_stored(flow.text, planned.schema, self.spark)
        if planned.is_stream:
            for key in flow.keys:
                check_key(flow.text, key, planned.schema[key].dataType)
            check_keeping(flow, log)
        if flow.delta:
            check_delta(flow.text, planned.schema)
        elif os.path.isdir(log.path(DELTA)):
            raise BadState(
                f"{flow.text}: {log.path(DELTA)} is there, and would not follow the table any more: delete it, or say "
                '@table(format="delta")'
            )


def _rules(flow: Flow, frame: Any) -> tuple[Rule, ...]:
    """The flow's, each a condition that Spark understands; before them that records could be decoded."""
    from pyspark.errors import PySparkException
    from pyspark.sql import functions as F  # noqa: N812 - as everybody calls them
    from pyspark.sql.types import BooleanType, TimestampType

    for rule in flow.rules:
        try:
            kind = frame.select(F.expr(rule.condition).alias("it")).schema["it"].dataType
        except PySparkException as error:
            raise BadDefinition(
                f"{flow.text}: expectation {rule.name!r}: {rule.condition!r} is no condition on its columns "
                f"({', '.join(frame.columns)}): {first_line(error)}"
            ) from error
        if rule.late_ms is None and not isinstance(kind, BooleanType):
            raise BadDefinition(
                f"{flow.text}: expectation {rule.name!r}: {rule.condition!r} is {kind.simpleString()}, not true or "
                "false: write a comparison"
            )
        if rule.late_ms is not None and not isinstance(kind, TimestampType):
            raise BadDefinition(
                f"{flow.text}: expect_on_time: {rule.condition} is {kind.simpleString()}: it must be a timestamp"
            )
    if ERROR in frame.columns:
        return (Rule(name=DECODES, condition=f"{ERROR} IS NULL", action=Action.DROP), *flow.rules)
    return flow.rules


def check_keeping(flow: Flow, log: TableLog) -> None:
    """Raises BadState for a stream's table that was kept in another way: by other keys, whose rows lie in other buckets
    or in none, or with changes of another kind, whose rows lack what says which is the later."""
    state = log.state()
    if not state.files:
        return
    if state.keys is not None and state.keys != flow.keys:
        now, before = (f"the keys {', '.join(keys)}" if keys else "no keys" for keys in (flow.keys, state.keys))
        raise BadState(
            f"{flow.text} has {now}, and {log.folder} was written with {before}: rows with the same keys would be "
            f"there twice; give them back, or {ANEW}"
        )
    kind = scd_type_of(one["name"] for one in (state.schema or {}).get("fields", ()))
    wanted = None if flow.changes is None else flow.changes.scd_type
    if state.schema is not None and kind != wanted:
        now, before = ("rows as they come" if one is None else f"changes as SCD {one}" for one in (wanted, kind))
        raise BadState(
            f"{flow.text} keeps {now}, and {log.folder} was written with {before}: the rows that are there would be "
            f"taken for others; give that back, or {ANEW}"
        )


def stored_schema(flow: Flow, schema: Any, log: TableLog) -> Any:
    """Columns that the table stores: those of before, and new ones. Raises BadState where one has another type."""
    from pyspark.sql.types import StructType

    left_out = {ERROR} if flow.keep_record else {ERROR, RECORD}
    now = StructType.fromJson(
        _nullable(StructType([one for one in schema.fields if one.name not in left_out]).jsonValue())
    )
    there = log.state().schema
    if there is None:
        return now
    before = StructType.fromJson(there)
    types = {one.name: one.dataType for one in now.fields}
    for one in before.fields:
        if one.name in types and types[one.name] != one.dataType:
            raise BadState(
                f"{flow.text}: the column {one.name} is {one.dataType.simpleString()} in {log.folder}, and would be "
                f"{types[one.name].simpleString()}: cast it, give it another name, or {ANEW}"
            )
    new = [one for one in now.fields if one.name not in before.fieldNames()]
    there_as = {one.name.lower(): one.name for one in before.fields}
    for one in new:
        if one.name.lower() in there_as:
            raise BadState(
                f"{flow.text}: the column {one.name} is {there_as[one.name.lower()]} in {log.folder}, and to Spark the "
                f"two names are one: give it back by alias, give it another name, or {ANEW}"
            )
    return StructType([*before.fields, *new])


def _nullable(part: Any) -> Any:
    """Spark's JSON of a type, with null allowed everywhere, as Parquet files are read."""
    if isinstance(part, list):
        return [_nullable(one) for one in part]
    if not isinstance(part, dict):
        return part
    flags = {"nullable", "containsNull", "valueContainsNull"}
    return {name: True if name in flags else _nullable(one) for name, one in part.items()}


class explained:  # noqa: N801 - used as `with explained(flow)`
    """What a function raises, with whose function it is."""

    def __init__(self, flow: Flow) -> None:
        self._flow = flow

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error is None or isinstance(error, PipelineError) or not isinstance(error, Exception):
            return
        raise BadDefinition(f"{self._flow.text}: {type(error).__name__}: {first_line(error)}") from error


def first_line(error: BaseException) -> str:
    """What Spark says in one line of its many."""
    return str(error).strip().partition("\n")[0].partition("; line ")[0]
