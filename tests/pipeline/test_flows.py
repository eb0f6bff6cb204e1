"""What a flow takes in of its query's progress."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

from ottla.pipeline.definitions import Flow, Kind
from ottla.pipeline.flows import RunningFlow
from ottla.pipeline.places import Places
from ottla.pipeline.planning import PlannedFlow
from ottla.pipeline.tables.log import Commit, TableLog


def progress(batch: int, at: str, *, late: int = 0) -> Any:
    """Of five rows."""
    return SimpleNamespace(
        runId="run",
        batchId=batch,
        timestamp=at,
        numInputRows=5,
        processedRowsPerSecond=1.0,
        stateOperators=[SimpleNamespace(numRowsDroppedByWatermark=late)],
        sources=[],
        sink=SimpleNamespace(numOutputRows=5),
    )


def test_each_progress_counts_once_though_the_clock_is_set_back(tmp_path: Path) -> None:
    flow = Flow(name="out", kind=Kind.SINK, function=lambda: None, line=1, topic="out")
    running = RunningFlow(PlannedFlow(flow=flow), Places(str(tmp_path)), "shop", {})
    recent: list[Any] = []
    running.query = SimpleNamespace(exception=lambda: None, recentProgress=recent)
    for batch, at in enumerate(("12:00:00", "11:00:00", "11:00:01")):
        recent.append(progress(batch, f"2026-11-01T{at}.000Z", late=1))
        for _ in range(2):
            running.look()
        del recent[:-2]  # Spark keeps the last ones
    status = running.status
    assert (status.batch, status.rows_in, status.rows_out, status.late) == (2, 15, 15, 3)


def test_a_table_has_its_counts_before_it_has_begun(tmp_path: Path) -> None:
    """A scraper that looks while a run starts took nothing for a counter that was reset, and then all for what came."""
    places = Places(str(tmp_path))
    counts = {"in": 5, "out": 3, "dropped": 2, "dead": 2, "failed:positive": 2}
    TableLog(places.table("orders")).commit(Commit(kind="append", written_ms=1, query="q", batch=7, counts=counts))
    flow = Flow(name="orders", kind=Kind.TABLE, function=lambda: None, line=1)
    status = RunningFlow(PlannedFlow(flow=flow), places, "shop", {}).status
    assert (status.batch, status.rows_in, status.rows_out, status.dropped, status.dead) == (7, 5, 3, 2, 2)
    assert status.failed == {"positive": 2}
