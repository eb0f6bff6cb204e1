"""Rules of several columns, whole dictionaries of rules, and rows that come behind Spark's own watermark."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Any

import pytest
from tests.pipeline.conftest import Pipeline

from ottla.pipeline import writing
from ottla.pipeline.errors import ExpectationFailed

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("spark"), pytest.mark.timeout(1200)]

MINUTE = 60_000
#: 2026-11-01 12:00 in UTC.
NOON = 1_793_534_400_000


def row(number: int, at: float, seen: float = 0, user: str | None = "ann") -> dict[str, Any]:
    """Minutes after noon."""
    at, seen = (datetime.fromtimestamp((NOON + one * MINUTE) / 1000, UTC).isoformat() for one in (at, seen))  # type: ignore[assignment]
    return {"id": number, "at": at, "seen": seen, "user": user}


RULES = """
@table
@expect_on_time("at", "10m", name="at in time")
@expect_on_time("seen", "1h", name="seen in time")
@expect_all({"has a user": "user IS NOT NULL", "small": "id < 100"})
@expect_all_or_drop({"positive": "id > 0", "a short name": "coalesce(length(user), 0) < 5"})
def clicks():
    return decode_json(read_topic("TOPIC"), "id INT, at TIMESTAMP, seen TIMESTAMP, user STRING")
"""


def test_each_rule_counts_and_each_column_of_time_has_its_youngest(pipeline: Pipeline) -> None:
    pipeline.define(RULES)
    # A row that is dropped says nothing of the time, however young it is.
    pipeline.send(row(1, at=130), row(-5, at=1000), row(200, at=130, user=None), row(2, at=130, user="Methuselah"))
    (flow,) = pipeline.catch_up().flows
    assert pipeline.rows("clicks", "id") == [(1,), (200,)]
    rules = {"decodes": 0, "at in time": 0, "seen in time": 0, "has a user": 1, "small": 1, "positive": 1}
    assert flow.status.failed == {**rules, "a short name": 1}
    assert flow.status.passed == {name: 4 - broken for name, broken in flow.status.failed.items()}
    assert (flow.status.rows_in, flow.status.dropped, flow.status.dead) == (4, 2, 2)

    pipeline.send(row(3, at=125, seen=1), row(4, at=100, seen=2), row(5, at=126, seen=-61))
    (flow,) = pipeline.catch_up().flows
    assert sorted(pipeline.rows("clicks", "id")) == [(1,), (3,), (200,)]
    assert flow.status.failed == {**rules, "a short name": 1, "at in time": 1, "seen in time": 1}

    pipeline.define(RULES.replace("expect_all_or_drop", "expect_all_or_fail"))
    pipeline.send(row(6, at=130), row(7, at=130, user="Methuselah"))
    with pytest.raises(ExpectationFailed, match=r"1 of 2 rows break 'a short name' .*nothing of this micro-batch was"):
        pipeline.catch_up()
    assert sorted(pipeline.rows("clicks", "id")) == [(1,), (3,), (200,)]


def test_a_rule_that_asks_what_time_it_is(pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch) -> None:
    """A row that was counted as good is written, however long that takes."""
    limit = time.time() + 15
    pipeline.define(
        f"""
        @table
        @expect_or_drop("young", "unix_millis(current_timestamp()) < {limit * 1000:.0f}")
        def clicks():
            return decode_json(read_topic("TOPIC"), "id INT")
        """
    )

    def checked_slowly(*arguments: Any) -> writing.CheckedFrame:
        checked = check(*arguments)
        while time.time() <= limit:
            time.sleep(0.1)
        return checked

    check = writing.check
    monkeypatch.setattr(writing, "check", checked_slowly)
    pipeline.send({"id": 1}, {"id": 2})
    (flow,) = pipeline.catch_up().flows
    assert flow.status.rows_in - flow.status.dropped == flow.status.rows_out == len(pipeline.rows("clicks", "id"))


def test_rows_that_spark_drops_behind_a_watermark_are_counted(pipeline: Pipeline) -> None:
    pipeline.define(
        """
        @table(keys=["window"])
        def counts():
            rows = decode_json(read_topic("TOPIC"), "id INT, at TIMESTAMP").withWatermark("at", "10 minutes")
            return rows.groupBy(F.window("at", "5 minutes")).agg(F.count("*").alias("clicks"))
        """
    )
    pipeline.send(row(1, at=0), row(2, at=30))
    (flow,) = pipeline.catch_up().flows
    assert flow.status.late == 0
    pipeline.send(row(3, at=2), row(4, at=31))
    (flow,) = pipeline.catch_up().flows
    assert flow.status.late == 1
    assert sorted(pipeline.rows("counts", "minute(window.start)", "clicks")) == [(0, 1), (30, 2)]
    # Of all runs.
    (flow,) = pipeline.catch_up().flows
    assert flow.status.late == 1
