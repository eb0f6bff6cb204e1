"""All flows of a pipeline: as streams until they are stopped, or once over all that is there.

stream      each flow is a query; they run side by side, and the first that fails ends all
catch-up    one flow after the other, each behind those that it reads; each ends when it has read what there is
backfill    `backfill.py`

Invariants: one run at a time has the folder (`held`), and nothing runs before all flows are planned and checked. What
is done of a table is what its log says, and of a sink what the ledger says; the status is only shown. So a run may end
anywhere: the next one goes on from those two, and a table has each row once (a sink once at least, or as its options
say).
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from typing import Any, Final

import ottla.spark
from ottla.client.sync import Admin
from ottla.pipeline.errors import NotFound
from ottla.pipeline.flows import LOOK_SECONDS, RunningFlow, take_counts
from ottla.pipeline.loading import PipelineFile
from ottla.pipeline.places import Places
from ottla.pipeline.planning import Plan, PlannedFlow
from ottla.pipeline.status import DONE, STOPPED, FlowStatus
from ottla.pipeline.tables.delta import publish
from ottla.pipeline.tables.files import now_ms, write_files
from ottla.pipeline.tables.log import Commit, TableLog
from ottla.pipeline.tables.stream import TableSource
from ottla.pipeline.tables.upkeep import EVERY_VERSION, delete_unused
from ottla.pipeline.writing import (
    DEAD,
    DROPPED,
    ROWS_IN,
    ROWS_OUT,
    check,
    last_of_each_key,
    refuse_failed,
    stored,
    with_bucket,
)
from ottla.spark.options import client_settings

#: `transformWithState` takes no other store; the one that Spark has by default keeps all state in memory.
_STATE_STORE: Final = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"

#: Called with the flows' states, again and again while they run.
Show = Callable[[list[FlowStatus]], None]


class PipelineRun:
    """Of one file in one folder. `kafka` are options that begin with `kafka.`."""

    def __init__(self, spark: Any, file: PipelineFile, places: Places, kafka: dict[str, str], show: Show) -> None:
        self.spark = spark
        prepare(spark)
        self.file = file
        self.places = places
        self.kafka = kafka
        self.show = show
        self.plan = Plan(self.spark, file, places, kafka)
        #: Each behind those that it reads; none before the folder is held.
        self.flows: list[RunningFlow] = []

    def catch_up(self) -> None:
        """Each flow up to what was there when it began."""
        with self.held():
            self.read_all()

    def read_all(self) -> None:
        """The same, where the pipeline is held already."""
        for flow in self.flows:
            if not flow.planned.is_stream:
                self._whole(flow)
                continue
            flow.start(self.plan.frame_of_now(flow.planned), {"availableNow": True})
            flow.end(lambda: self.show(self._statuses()))
            flow.look()
            flow.stop(DONE)
            self.show(self._statuses())

    def stream(self, interval_s: float, stopped: Callable[[], bool] = lambda: False) -> None:
        """Until `stopped` says so or a flow fails."""
        with self.held():
            trigger = {"processingTime": f"{round(interval_s * 1000)} milliseconds"}
            for flow in self.flows:
                if flow.planned.is_stream:
                    flow.start(self.plan.frame_of_now(flow.planned), trigger)
                else:
                    self._whole(flow)
            running = [flow for flow in self.flows if flow.planned.is_stream]
            while not stopped():
                for flow in running:
                    flow.look()
                self.show(self._statuses())
                time.sleep(LOOK_SECONDS)

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Everything is planned and checked before anything runs, and stopped whatever happens."""
        with self.places.held(self.file.name):
            planned = self.plan.make()
            self._check_topics(planned)
            self.flows = [RunningFlow(one, self.places, self.file.name, self.kafka) for one in planned]
            for flow in self.flows:
                flow.read_by(self.flows)
                if flow.flow.delta:  # a run may have died before Delta's log had its last commit
                    publish(TableLog(self.places.table(flow.name)))
            tracking = ottla.spark.track(self.spark, self.kafka)
            try:
                yield
            finally:
                for flow in self.flows:
                    with contextlib.suppress(Exception):  # the fault that ended the run is what is said
                        flow.stop(STOPPED)
                    with contextlib.suppress(Exception):
                        flow.commit_group(tracking)
                with contextlib.suppress(Exception):
                    tracking.stop()

    def _whole(self, flow: RunningFlow) -> None:
        """A table without a stream: all of it, in place of what was there."""
        write_whole(flow.planned, self.plan.frame_of_now(flow.planned), self.places)
        take_counts(flow.status, TableLog(self.places.table(flow.name)).state())
        flow.stop(DONE)

    def _check_topics(self, planned: list[PlannedFlow]) -> None:
        wanted = {topic: (one.flow, "reads") for one in planned for topic in one.topics}
        wanted |= {one.flow.topic: (one.flow, "writes to") for one in planned if one.flow.topic is not None}
        if not wanted:
            return
        with Admin(client_settings(self.kafka)) as admin:
            there = set(admin.list_topics(internal=True))
        for topic, (flow, does) in wanted.items():
            if topic not in there:
                raise NotFound(
                    f"{flow.text} {does} the topic {topic}, which is not there: `ottla topic create {topic}` creates "
                    "it, and --bootstrap-server says in which cluster"
                )

    def _statuses(self) -> list[FlowStatus]:
        return [flow.status for flow in self.flows]


def write_whole(planned: PlannedFlow, frame: Any, places: Places) -> None:
    """The rows of a frame without a stream, in place of all that a table had."""
    flow = planned.flow
    log = TableLog(places.table(flow.name))
    state = log.state()
    checked = check(frame, planned.rules, {})
    try:
        refuse_failed(flow, planned.rules, checked)
        good = stored(checked.frame, planned.rules, planned.schema)
        if flow.keys:
            good = with_bucket(last_of_each_key(good, flow), flow)
        added = write_files(good, log, bucketed=bool(flow.keys))
    finally:
        checked.frame.unpersist()
    rows = sum(file.rows for file in added)
    # What it says is of the table as it is, not of all times that it was computed.
    now = {ROWS_IN: rows, **checked.counts, ROWS_OUT: rows, DEAD: 0, DROPPED: checked.counts.get(DROPPED, 0)}
    log.commit(
        Commit(
            kind="replace",
            written_ms=now_ms(),
            added=added,
            removed=tuple(state.files),
            schema=planned.schema.jsonValue(),
            keys=flow.keys,
            counts={name: count - state.counts.get(name, 0) for name, count in now.items()},
        )
    )
    if flow.delta:
        publish(log)
    # No stream reads such a table, and what reads it as it is begins behind this.
    delete_unused(log, now_ms(), EVERY_VERSION)


def prepare(spark: Any) -> None:
    """Sets what pipelines need and the user has not set, and registers the sources."""
    defaults = {
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": str(spark.sparkContext.defaultParallelism),
        "spark.sql.streaming.stateStore.providerClass": _STATE_STORE,
        # A table's own log says which micro-batches are done; this is what `look` reads.
        "spark.sql.streaming.numRecentProgressUpdates": "20",
    }
    given = {name for name, _ in spark.sparkContext.getConf().getAll()}
    for name, value in defaults.items():
        if name not in given:
            spark.conf.set(name, value)
    spark.dataSource.register(ottla.spark.OttlaDataSource)
    spark.dataSource.register(TableSource)
