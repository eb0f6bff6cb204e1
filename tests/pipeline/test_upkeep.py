"""Files that a run deletes, and those that it must not: a clock that goes on by hours, and real frames."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.pipeline.conftest import Pipeline

from ottla.pipeline import running, writing
from ottla.pipeline.running import PipelineRun

pytestmark = [pytest.mark.xdist_group("spark"), pytest.mark.timeout(1200)]

HOUR_MS = 3_600_000

PRICES = """
@table(keys=["item"])
def prices():
    return decode_json(read_topic("TOPIC"), "item STRING, price INT")

@table
def total():
    return read("prices").agg(F.sum("price").alias("price"))
"""


class Clock:
    """That of the upkeep; files have times of their own."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._now = writing.now_ms
        self.later_ms = 0
        monkeypatch.setattr(writing, "_UPKEEP_EVERY", 1)
        for module in (writing, running):
            monkeypatch.setattr(module, "now_ms", lambda: self._now() + self.later_ms)


def again(run: PipelineRun, pipeline: Pipeline, price: int) -> None:
    """One more micro-batch of the prices alone."""
    pipeline.send({"item": "a", "price": price})
    prices = run.flows[0]
    prices.start(run.plan.frame_of_now(prices.planned), {"availableNow": True})
    prices.end(lambda: None)


@pytest.mark.slow
def test_what_a_frame_names_stays_as_long_as_its_flow(pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch)
    pipeline.define(PRICES)
    run = pipeline.run()
    with run.held():
        again(run, pipeline, 1)
        total = run.flows[1].planned
        frame = run.plan.frame_of_now(total)
        again(run, pipeline, 2)
        clock.later_ms = 2 * HOUR_MS
        again(run, pipeline, 3)
        assert frame.collect()[0]["price"] == 1
        assert run.plan.frame_of_now(total).collect()[0]["price"] == 3


def test_a_table_that_is_computed_in_whole_does_not_grow(pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch)
    pipeline.define("""
        from pyspark.sql import SparkSession

        @table
        def numbers():
            return SparkSession.active().range(3).coalesce(1)
    """)
    for _ in range(3):
        pipeline.catch_up()
        clock.later_ms += 2 * HOUR_MS
        assert len(list(Path(pipeline.places.table("numbers")).rglob("*.parquet"))) <= 2
    assert pipeline.rows("numbers", "id") == [(0,), (1,), (2,)]
