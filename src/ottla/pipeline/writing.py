"""One micro-batch of a table: checked by its rules, bad records to the dead letters, rows to files, then one commit.

planned again?     the table's log has this query's micro-batch: nothing is written
rules              counted, all in one job
dead letters       written, and a note that they were; what died half written is written again
files, commit      each row once, since a reader sees what a commit names, and nothing else
Delta's log        where the table has one: it follows what was committed
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any, Final

from ottla.pipeline.changes import MARK, first_of_each, merged
from ottla.pipeline.columns import quoted
from ottla.pipeline.dead_letters import send
from ottla.pipeline.definitions import BUCKETS, Flow
from ottla.pipeline.errors import BadState, ExpectationFailed
from ottla.pipeline.expectations import DECODES, Action, Rule
from ottla.pipeline.places import Places, query_of, read_json, write_json
from ottla.pipeline.planning import PlannedFlow
from ottla.pipeline.reading import ERROR, RECORD
from ottla.pipeline.tables.delta import publish
from ottla.pipeline.tables.files import BUCKET, frame_of, now_ms, write_files
from ottla.pipeline.tables.log import Commit, TableLog, TableState
from ottla.pipeline.tables.upkeep import compact, delete_unused, retain
from ottla.pipeline.topics import TopicsRead

#: The column that has the names of the rules that a row breaks.
FAILED: Final = "_failed"
#: What is counted, beside a `failed:` and a `passed:` for each rule.
ROWS_IN: Final = "in"
ROWS_OUT: Final = "out"
DROPPED: Final = "dropped"
DEAD: Final = "dead"
FAILED_PREFIX: Final = "failed:"
PASSED_PREFIX: Final = "passed:"
#: Where a checkpoint has what windows, joins and aggregates remember.
_STATE: Final = "state"
#: Micro-batches between two looks for files that nobody needs.
_UPKEEP_EVERY: Final = 20
#: Of a record.
_PLACE: Final = ("topic", "partition", "offset")
#: Spark counts microseconds in 64 bits.
_TIME_US_MIN: Final = -(2**63)


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedFrame:
    """A frame whose rows are marked, and what was counted of it."""

    #: Kept by Spark where there are rules, until it is given back by `unpersist`.
    frame: Any
    counts: dict[str, int]
    #: Of the rows that stay, by the column of an `expect_on_time`.
    youngest_us: dict[str, int]
    #: Of the records of rows that are left out, where they are known: others have another sum.
    dropped_sum: int = 0


class TableWriter:
    """What Spark calls with each micro-batch of one table."""

    def __init__(self, planned: PlannedFlow, places: Places, pipeline: str, kafka: dict[str, str]) -> None:
        self.flow = planned.flow
        self.log = TableLog(places.table(planned.flow.name))
        #: Of the last micro-batch that failed: Spark wraps it in text of its own.
        self.fault: Exception | None = None
        #: The last that was written.
        self.batch: int | None = None
        #: The version of the table that all its readers have read.
        self.read_by_all: Callable[[], int] = lambda: -1
        #: Its files that frames name which run.
        self.in_frames: Callable[[], AbstractSet[str]] = frozenset
        self._schema = planned.schema
        self._rules = planned.rules
        self._places = places
        self._pipeline = pipeline
        self._kafka = kafka
        self._topics = TopicsRead(places.checkpoint(planned.flow.name))

    def __call__(self, frame: Any, batch: int) -> None:
        try:
            self._write(frame, batch)
        except Exception as error:
            self.fault = error
            raise

    def _write(self, frame: Any, batch: int) -> None:
        checkpoint = self._places.checkpoint(self.flow.name)
        query = query_of(checkpoint)
        assert query is not None
        state = self.log.state()
        if not state.has(query, batch):
            check_follows(state, query, batch, self.log.folder)
            self._topics.note(batch)
            checked = check(frame, self._rules, state.youngest_us)
            try:
                self._commit(checked, state, query, batch)
            finally:
                checked.frame.unpersist()
        elif os.path.isdir(os.path.join(checkpoint, _STATE)):
            # Spark ends a query of which no task has computed the state of a micro-batch, though one that died had.
            frame.write.format("noop").mode("overwrite").save()
        self.batch = batch
        self._upkeep()
        if self.flow.delta:
            publish(self.log)

    def _commit(self, checked: CheckedFrame, state: TableState, query: str, batch: int) -> None:
        refuse_failed(self.flow, self._rules, checked)
        dead = self._dead_letters(checked, f"{query}/{batch}")
        good = stored(checked.frame, self._rules, self._schema)
        if self.flow.keys:
            commit = self._upsert(good, state)
        else:
            commit = Commit(kind="append", written_ms=now_ms(), added=write_files(good, self.log))
        rows = sum(file.rows for file in commit.for_streams)
        counts = {ROWS_IN: rows, **checked.counts, ROWS_OUT: rows, DEAD: dead}
        self.log.commit(
            Commit(
                kind=commit.kind,
                written_ms=commit.written_ms,
                query=query,
                batch=batch,
                added=commit.added,
                removed=commit.removed,
                changes=commit.changes,
                schema=self._schema.jsonValue() if state.schema != self._schema.jsonValue() else None,
                keys=self.flow.keys if state.keys != self.flow.keys else None,
                counts=counts,
                youngest_us=checked.youngest_us,
            )
        )

    def _dead_letters(self, checked: CheckedFrame, batch: str) -> int:
        """How many records went there; once where this is not the first attempt and an earlier one came so far.

        Unless other rows are dropped now: whoever restarts a run that has died may have changed the rules, and what a
        rule says may depend on the time, or on a table that is joined.
        """
        if not checked.counts.get(DROPPED) or self.flow.dead_letters is False or RECORD not in checked.frame.columns:
            return 0
        note = os.path.join(self._places.checkpoint(self.flow.name), "ottla-dead-letters.json")
        there = read_json(note)
        what = {"batch": batch, "counts": checked.counts, "sum": checked.dropped_sum}
        if there is not None and {name: there.get(name) for name in what} == what:
            return int(there["records"])
        records = send(checked.frame, self._rules, self._pipeline, self.flow.name, self._kafka)
        write_json(note, {**what, "records": records})
        return records

    def _upsert(self, good: Any, state: TableState) -> Commit:
        """The files of all keys' parts that the rows fall into, anew.

        The rows are written first, and read from there: in the plan of the merge they stand twice, and Spark would
        compute one of the two anew, cached or not, with all state behind it.
        """
        spark = good.sparkSession
        changes = write_files(last_of_each_key(good, self.flow), self.log)
        rows = with_bucket(frame_of(spark, self.log, changes, self._schema), self.flow)
        touched = {int(row[0]) for row in rows.select(BUCKET).distinct().collect()}
        old = [file for file in state.files.values() if file.bucket in touched]
        there = with_bucket(frame_of(spark, self.log, old, self._schema), self.flow)
        added = write_files(merged(there, rows, self.flow), self.log, bucketed=True)
        return Commit(
            kind="upsert",
            written_ms=now_ms(),
            added=added,
            removed=tuple(file.path for file in old),
            changes=changes,
        )

    def _upkeep(self) -> None:
        now = now_ms()
        if self.flow.retain_ms is not None:
            retain(self.log, now, self.flow.retain_ms)
        compact(self.log, now, self.flow.retain_ms)
        if self.batch is not None and self.batch % _UPKEEP_EVERY == _UPKEEP_EVERY - 1:
            delete_unused(self.log, now, self.read_by_all(), self.in_frames())


def check_follows(state: TableState, query: str, batch: int, folder: str) -> None:
    """Raises BadState where the checkpoint does not go with the table: rows would be there twice, or never."""
    others = [one for one in state.batches if one != query]
    if others:
        raise BadState(
            f"{folder} was written by the query {others[0]}, and this checkpoint's is {query}: give back the flow's "
            "folder in checkpoints/, or delete the table's folder too and run it anew"
        )

    before = state.batches.get(query, -1)
    if batch > before + 1:
        has = f"ends with micro-batch {before}" if state.batches else "has no micro-batch"
        raise BadState(
            f"{folder} {has}, and its checkpoint goes on with {batch}: rows in between would be missing; restore the "
            "table's folder, or delete the flow's in checkpoints/ too and run it anew"
        )


def check(frame: Any, rules: tuple[Rule, ...], youngest_us: Mapping[str, int], *, counted: Any = None) -> CheckedFrame:
    """Marks each row with the rules that it breaks, and counts all, or those for which `counted` is true. `youngest_us`
    are the times that the table has.

    Marked rows are kept: they are counted, then written, and the bad ones sent on. A source is read once for the three,
    and a rule that asks what time it is says the same in each.
    """
    from pyspark.sql import functions as F  # noqa: N812 - as everybody calls them

    if not rules:
        return CheckedFrame(frame=frame, counts={}, youngest_us={})
    # Of what could not be decoded no rule says anything: its fields are null.
    decoded = F.col(ERROR).isNull() if rules[0].name == DECODES else F.lit(True)
    broken = []
    for rule in rules:
        breaks = ~F.coalesce(_condition(rule, youngest_us), F.lit(False))
        if rule.name != DECODES:
            breaks &= decoded
        broken.append(F.when(breaks, F.lit(rule.name)).otherwise(F.lit(None).cast("string")))
    marked = frame.withColumn(FAILED, F.array_compact(F.array(*broken))).persist()
    numbers = [F.count(F.lit(1)).alias("rows"), F.count_if(_dropped(rules)).alias("dropped")]
    numbers += [
        F.count_if(F.array_contains(FAILED, rule.name)).alias(f"rule{number}") for number, rule in enumerate(rules)
    ]
    # A row that is left out says nothing of the time: a wrong year would make all that follow late.
    stays = ~_dropped(rules)
    times = sorted({rule.condition for rule in rules if rule.late_ms is not None})
    numbers += [
        F.max(F.when(stays, F.unix_micros(F.expr(column)))).alias(f"youngest{number}")
        for number, column in enumerate(times)
    ]
    numbers.append(_sum_of_records(marked, _dropped(rules)).alias("sum"))
    try:
        row = (marked if counted is None else marked.where(counted)).agg(*numbers).collect()[0]
    except BaseException:
        marked.unpersist()
        raise
    counts = {ROWS_IN: row["rows"], DROPPED: row["dropped"]}
    counts |= {f"{FAILED_PREFIX}{rule.name}": row[f"rule{number}"] for number, rule in enumerate(rules)}
    counts |= _passed(rules, counts)
    youngest = {column: row[f"youngest{number}"] for number, column in enumerate(times)}
    return CheckedFrame(
        frame=marked,
        counts=counts,
        youngest_us={column: one for column, one in youngest.items() if one is not None},
        dropped_sum=int(row["sum"] or 0),
    )


def _passed(rules: tuple[Rule, ...], counts: Mapping[str, int]) -> dict[str, int]:
    """Rows that have kept each rule. Of what could not be decoded no rule but that one says anything."""
    undecoded = counts.get(f"{FAILED_PREFIX}{DECODES}", 0)
    return {
        f"{PASSED_PREFIX}{rule.name}": counts[ROWS_IN]
        - counts[f"{FAILED_PREFIX}{rule.name}"]
        - (0 if rule.name == DECODES else undecoded)
        for rule in rules
    }


def _sum_of_records(frame: Any, chosen: Any) -> Any:
    """Of what tells records from others, in any order; null where no record is known."""
    from pyspark.sql import functions as F  # noqa: N812
    from pyspark.sql.types import StructType

    kind = frame.schema[RECORD].dataType if RECORD in frame.columns else None
    if not isinstance(kind, StructType) or not set(_PLACE) <= set(kind.fieldNames()):
        return F.max(F.lit(None).cast("decimal(38, 0)"))
    place = F.xxhash64(*(F.col(f"{RECORD}.{name}") for name in _PLACE))
    return F.sum(F.when(chosen, place.cast("decimal(38, 0)")))


def _condition(rule: Rule, youngest_us: Mapping[str, int]) -> Any:
    from pyspark.sql import functions as F  # noqa: N812

    if rule.late_ms is None:
        return F.expr(rule.condition)
    if rule.condition not in youngest_us:
        return F.lit(True)
    # As a number: Spark has times that Python has not, such as that of milliseconds which were read as seconds.
    bound_us = max(youngest_us[rule.condition] - rule.late_ms * 1000, _TIME_US_MIN)
    return F.coalesce(F.unix_micros(F.expr(rule.condition)) >= F.lit(bound_us), F.lit(True))


def _dropped(rules: tuple[Rule, ...]) -> Any:
    """Whether a marked row is left out."""
    from pyspark.sql import functions as F  # noqa: N812

    names = [F.lit(rule.name) for rule in rules if rule.action is Action.DROP]
    return F.arrays_overlap(F.col(FAILED), F.array(*names)) if names else F.lit(False)


def refuse_failed(flow: Flow, rules: tuple[Rule, ...], checked: CheckedFrame) -> None:
    for rule in rules:
        broken = checked.counts.get(f"{FAILED_PREFIX}{rule.name}", 0)
        if rule.action is Action.FAIL and broken:
            raise ExpectationFailed(
                f"{flow.text}: {broken} of {checked.counts[ROWS_IN]} rows break {rule.name!r} ({rule.condition}); the "
                f"first: {_sample(checked.frame, rule)}; nothing of this micro-batch was written: mend the "
                "data or the rule"
            )


def _sample(frame: Any, rule: Rule) -> str:
    from pyspark.errors import PySparkNotImplementedError
    from pyspark.sql import functions as F  # noqa: N812

    bad = frame.where(F.array_contains(FAILED, rule.name))
    if RECORD in frame.columns:
        row = bad.select(f"{RECORD}.topic", f"{RECORD}.partition", f"{RECORD}.offset").first()
        return f"offset {row['offset']} of {row['topic']}-{row['partition']}"
    shown = bad.drop(FAILED, ERROR)
    try:
        row = shown.first()
    # It has a time, or a type, that Python has not.
    except (ValueError, OverflowError, PySparkNotImplementedError):
        row = shown.select(*(F.col(quoted(name)).cast("string").alias(name) for name in shown.columns)).first()
    return str(row.asDict())[:300]


def stored(frame: Any, rules: tuple[Rule, ...], schema: Any) -> Any:
    """The rows and columns that the table takes."""
    from pyspark.sql import functions as F  # noqa: N812

    if any(rule.action is Action.DROP for rule in rules):
        frame = frame.where(~_dropped(rules))
    there = set(frame.columns)
    return frame.select(
        *(
            F.col(quoted(one.name)) if one.name in there else F.lit(None).cast(one.dataType).alias(one.name)
            for one in schema.fields
        )
    )


def last_of_each_key(frame: Any, flow: Flow, order: Any = None) -> Any:
    """Of rows with the same keys the one that stands last, or has most in `order`; changes are told apart by what they
    say themselves."""
    from pyspark.sql import Window
    from pyspark.sql import functions as F  # noqa: N812

    if flow.changes is not None:
        return frame
    numbered = frame.withColumn(MARK, F.monotonically_increasing_id())
    orders = [F.col(MARK).desc()] if order is None else [order.desc(), F.col(MARK).desc()]
    last = Window.partitionBy(*(F.col(quoted(key)) for key in flow.keys)).orderBy(*orders)
    return first_of_each(numbered, last).drop(MARK)


def with_bucket(frame: Any, flow: Flow) -> Any:
    """Spark's `hash` of the keys stays what it is over versions: bucketed tables of its own rest on it."""
    from pyspark.sql import functions as F  # noqa: N812

    return frame.withColumn(BUCKET, F.pmod(F.hash(*(F.col(quoted(key)) for key in flow.keys)), F.lit(BUCKETS)))
