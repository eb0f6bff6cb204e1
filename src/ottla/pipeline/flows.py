"""One flow at work: its query, what the query's progress says, and what the flow has counted."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from ottla.pipeline.definitions import Kind
from ottla.pipeline.errors import ANEW, BadDefinition, FlowFailed, PipelineError
from ottla.pipeline.places import Places, offsets_of, query_of, read_json
from ottla.pipeline.planning import PlannedFlow
from ottla.pipeline.status import FAILED, RUNNING, FlowStatus, write_status
from ottla.pipeline.tables.files import now_ms
from ottla.pipeline.tables.log import TableLog, TableState
from ottla.pipeline.tables.stream import version_of
from ottla.pipeline.tables.upkeep import EVERY_VERSION
from ottla.pipeline.writing import DEAD, DROPPED, FAILED_PREFIX, PASSED_PREFIX, ROWS_IN, ROWS_OUT, TableWriter
from ottla.spark.options import client_settings
from ottla.spark.sink.ledger import ledger_entry

#: Between two looks at a query that runs.
LOOK_SECONDS: Final = 0.5
#: What Spark says where a process of Python's that it has started takes more than ten seconds to call back, as on a
#: machine with much other work when all flows start. That is no setting of Spark's.
SLOW_START: Final = "Python worker failed to connect back"
#: Of one query in one run.
STARTS_MAX: Final = 5
#: What Ottla's own classes say, in the middle of what Spark and Java say around it.
_OURS: Final = re.compile(r"^(?:[\w.: ]*\s)?ottla(?:\.\w+)+: (.+)$", re.MULTILINE)
#: Spark's code of the SQL standard.
_STATE: Final = re.compile(r" SQLSTATE: \w{5}")
#: The last line of a traceback of Python's.
_PYTHON: Final = re.compile(r"^([A-Za-z_]\w*(?:Error|Exception)(?:: .+)?)$", re.MULTILINE)
_JAVA: Final = re.compile(r"^(?:Caused by: )?(?:[a-z]\w*\.)+\w+: (.+)$", re.MULTILINE)
_ERROR_CHARACTERS_MAX: Final = 1000
_NEEDS_KEYS: Final = "STREAMING_OUTPUT_MODE.UNSUPPORTED_OPERATION"
#: What is said where a function reads, or remembers, something else than the one that wrote the flow's checkpoint.
_OF_ANOTHER_FUNCTION: Final = re.compile(
    "STATE_STORE_(?:KEY|VALUE)_SCHEMA_NOT_COMPATIBLE|STREAMING_STATEFUL_OPERATOR_"
    "|sources in the checkpoint offsets|another source's offsets"
)


class RunningFlow:
    def __init__(self, planned: PlannedFlow, places: Places, pipeline: str, kafka: dict[str, str]) -> None:
        self.planned = planned
        self.flow = planned.flow
        self.status = FlowStatus(flow=self.flow.name, kind=self.flow.kind.value)
        self.query: Any = None
        self._places = places
        self._pipeline = pipeline
        self._kafka = kafka
        self._writer: TableWriter | None = None
        #: The same table's as the writer's, which belongs to the thread that Spark calls.
        self._log: TableLog | None = None
        if self.flow.kind is Kind.TABLE:
            self._writer = TableWriter(planned, places, pipeline, kafka)
            self._log = TableLog(places.table(self.flow.name))
        self._go_on_counting()
        #: The last progress that was taken in: of which run of the query, which micro-batch, and when it began.
        self._taken: tuple[str, int, str] | None = None
        #: What the query was started with, and how often it may be again.
        self._started: tuple[Any, Mapping[str, Any]] | None = None
        self._starts_left = STARTS_MAX

    @property
    def name(self) -> str:
        return self.flow.name

    def start(self, frame: Any, trigger: Mapping[str, Any]) -> None:
        """Raises PipelineError for what Spark refuses at once."""
        if self._started is None and self.flow.kind is Kind.SINK:
            self._take_ledger()
        self._started = (frame, trigger)
        self._starts_left -= 1
        if self._writer is not None:
            self._writer.fault = None
        try:
            self.query = self._writing(frame, trigger).start()
        except Exception as error:
            raise self._failed(error) from error

    def _writing(self, frame: Any, trigger: Mapping[str, Any]) -> Any:
        writing = (
            frame.writeStream.queryName(f"{self._pipeline}.{self.name}")
            .option("checkpointLocation", self._places.checkpoint(self.name))
            .outputMode("update" if self.flow.keys else "append")
            .trigger(**trigger)
        )
        if self._writer is not None:
            return writing.foreachBatch(self._writer)
        return writing.format("ottla").options(**self._sink_options()).option("topic", self.flow.topic)

    def end(self, looked: Callable[[], None]) -> None:
        """Waits for a query that ends by itself; `looked` is called now and then. Raises FlowFailed."""
        while True:
            try:
                if self.query.awaitTermination(LOOK_SECONDS):
                    return
            except Exception as error:
                self._start_again(error)
            self.look()
            looked()

    def look(self) -> None:
        """Takes in what the query says of itself. Raises FlowFailed where it has ended with an error."""
        error = self.query.exception()
        if error is not None:
            self._start_again(error)
        recent = list(self.query.recentProgress)
        places = [(str(one.runId), int(one.batchId), str(one.timestamp)) for one in recent]
        # By where they stand, and not by their times: clocks are set back.
        first = places.index(self._taken) + 1 if self._taken in places else 0
        for progress in recent[first:]:
            self._take(progress)
        self._taken = places[-1] if places else self._taken
        self.note()

    def note(self) -> None:
        """Writes the status as it is now."""
        if self._log is not None:
            take_counts(self.status, self._log.state())
        self.status.updated_ms = now_ms()
        write_status(self._places, self.status)

    def stop(self, state: str) -> None:
        if self.query is not None and self.query.isActive:
            self.query.stop()
        if self.status.state == RUNNING:
            self.status.state = state
            self.note()

    def commit_group(self, tracking: Any) -> None:
        """What the query has read, to its group: a listener hears of the last micro-batch some time later."""
        progress = None if self.query is None else self.query.lastProgress
        if progress is not None:
            tracking.take(progress)

    def read_by(self, flows: list[RunningFlow]) -> None:
        """All flows of the pipeline: files that one of them has still to read, or that its frame names, are kept."""
        if self._writer is not None:
            readers = [flow for flow in flows if self.name in flow.planned.tables]
            self._writer.read_by_all = lambda: min((one.has_read() for one in readers), default=EVERY_VERSION)
            self._writer.in_frames = lambda: set().union(*(flow.planned.snapshots.get(self.name, ()) for flow in flows))

    def has_read(self) -> int:
        """The version of its tables that the flow has finished with, as its checkpoint says; -1 before any.

        Sources stand in the checkpoint without names: with several tables the slowest counts for each.
        """
        found = [version_of(one) for one in offsets_of(self._places.checkpoint(self.name))]
        return min((one for one in found if one is not None), default=-1)

    def _start_again(self, error: Exception) -> None:
        """A query whose Python did not start in time goes on where it stood. Raises PipelineError for all else."""
        if SLOW_START not in str(error) or not self._starts_left:
            raise self._failed(error)
        assert self._started is not None
        self.start(*self._started)

    def _take(self, progress: Any) -> None:
        """An idle query reports progress too, under the number of the micro-batch that is to come."""
        status = self.status
        status.rows_a_second = round(progress.processedRowsPerSecond or 0.0, 1)
        status.late += sum(one.numRowsDroppedByWatermark for one in progress.stateOperators)
        is_new = status.batch is None or progress.batchId > status.batch
        if self._log is None and progress.numInputRows and is_new:
            status.batch = progress.batchId
            status.rows_in += progress.numInputRows
            status.rows_out += max(0, progress.sink.numOutputRows)
        lag, unknown = lag_sum(progress.sources)
        if lag is not None:
            status.lag, status.lag_unknown = lag, unknown

    def _go_on_counting(self) -> None:
        """From where the last run stood: a table's log says that, and its status what no log has."""
        if self._log is not None:
            take_counts(self.status, self._log.state())
        there = read_json(self._places.status(self.flow.name)) or {}
        names = ["late"]
        if self._log is None and query_of(self._places.checkpoint(self.name)) is not None:
            names += ["batch", "rows_in", "rows_out"]
        for name in names:
            if isinstance(there.get(name), int):
                setattr(self.status, name, there[name])

    def _take_ledger(self) -> None:
        """The last micro-batch of a sink that was finished, if the run that wrote it died before it had counted it."""
        query = query_of(self._places.checkpoint(self.name))
        if query is None:
            return
        options = self._sink_options()
        entry = ledger_entry(options["ottla.query"], client_settings(options))
        counted = -1 if self.status.batch is None else self.status.batch
        if entry is None or entry.query_id != query or entry.finished <= counted:
            return
        self.status.batch = entry.finished
        if entry.finished == entry.batch:
            self.status.rows_in += entry.rows
            self.status.rows_out += entry.rows

    def _sink_options(self) -> dict[str, str]:
        return {**self._kafka, "ottla.query": f"{self._pipeline}.{self.name}", **self.flow.options}

    def _failed(self, error: Exception) -> PipelineError:
        cause = self._writer.fault if self._writer is not None else None
        text = str(cause) if isinstance(cause, PipelineError) else said(cause or error)
        if _NEEDS_KEYS in str(error):
            keys = "Give the table keys (rows are replaced as they change)"
            if self.flow.kind is Kind.SINK:
                keys = "Put it in a table with keys, which the sink reads"
            text = f"{text} {keys}, or give the frame a watermark (rows are added when their window is over)"
            return BadDefinition(f"{self.flow.text}: {text}")
        if _OF_ANOTHER_FUNCTION.search(str(error)) and ANEW not in text:
            text = f"{text[:_ERROR_CHARACTERS_MAX]} Its function was another one before: give that back, or {ANEW}"
            if self.flow.kind is Kind.SINK:
                text += ", with the sink's name freed (docs/pipelines.md)"
        self.status.state = FAILED
        self.status.error = text[:_ERROR_CHARACTERS_MAX]
        self.note()
        if isinstance(cause, PipelineError):
            return cause
        return FlowFailed(f"{self.flow.text}: {text[:_ERROR_CHARACTERS_MAX]}")


def take_counts(status: FlowStatus, state: TableState) -> None:
    counts = state.counts
    status.rows_in, status.rows_out = counts.get(ROWS_IN, 0), counts.get(ROWS_OUT, 0)
    status.dropped, status.dead = counts.get(DROPPED, 0), counts.get(DEAD, 0)
    status.failed, status.passed = (
        {name.removeprefix(prefix): count for name, count in counts.items() if name.startswith(prefix)}
        for prefix in (FAILED_PREFIX, PASSED_PREFIX)
    )
    if state.batches:
        status.batch = max(state.batches.values())


def said(error: BaseException) -> str:
    """What is wrong, out of many lines of Spark's and Java's."""
    text = _STATE.sub("", str(error).strip())
    ours = _OURS.findall(text)
    if ours:
        return str(ours[-1])
    python = _PYTHON.findall(text)
    if "Traceback (most recent call last)" in text and python:
        return str(python[-1])
    first = text.partition("\n")[0]
    if "terminated with exception" in first:
        inner = first.partition("terminated with exception: ")[2]
        causes = _JAVA.findall(text)
        return inner if inner and inner != "null" else (causes[-1] if causes else first)
    return f"{type(error).__name__}: {first}"


def lag_sum(sources: Iterable[Any]) -> tuple[int | None, int]:
    """The sum of what is known, None where nothing is; and of how many sources it is not, which the sum lacks."""
    lags = [_lag(source.endOffset, source.latestOffset) for source in sources]
    known = [lag for lag in lags if lag is not None]
    return sum(known) if known else None, len(lags) - len(known)


def _lag(end: str | None, latest: str | None) -> int | None:
    """Records, or a table's versions."""
    if not end or not latest:
        return None
    read, there = json.loads(end), json.loads(latest)
    if not isinstance(read, dict) or not isinstance(there, dict):
        return None
    version, newest = version_of(read), version_of(there)
    if version is not None and newest is not None:
        return max(0, newest - version)
    total = 0
    for topic, partitions in there.items():
        if topic.startswith("#") or not isinstance(partitions, dict):
            continue
        for partition, offset in partitions.items():
            total += max(0, offset - read.get(topic, {}).get(partition, 0))
    return total
