"""The same definition as a stream, as a catch-up and as a backfill; windows with late rows; changes; state."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Any

import pytest
from deltalake import DeltaTable
from tests.pipeline.conftest import Pipeline, headers

from ottla.pipeline.backfill import Range, backfill
from ottla.pipeline.places import Places
from ottla.pipeline.tables.log import TableLog
from ottla.pipeline.tables.upkeep import SMALL_FILES_MAX

pytestmark = [pytest.mark.xdist_group("spark"), pytest.mark.timeout(1200)]

MINUTE = 60_000
#: 2026-11-01 12:00 in UTC.
NOON = 1_793_534_400_000

WINDOWS = """
@table
def raw():
    return read_topic("TOPIC", maxOffsetsPerTrigger=4)

@table(time="at", keep_record=True)
@expect_on_time("at", "10m")
def clicks():
    return decode_json(read_stream("raw"), "id INT, at TIMESTAMP, user STRING")

@table(keys=["window", "user"])
def counts():
    rows = read_stream("clicks").withWatermark("at", "10 minutes")
    return rows.groupBy(F.window("at", "5 minutes"), "user").agg(F.count("*").alias("clicks"))
"""


def click(number: int, minutes: float, user: str = "a") -> dict[str, Any]:
    at = datetime.fromtimestamp((NOON + minutes * MINUTE) / 1000, UTC)
    return {"id": number, "at": at.isoformat(), "user": user}


def counts(pipeline: Pipeline) -> list[tuple[int, str, int]]:
    """Minutes after noon, user, clicks."""
    rows = pipeline.rows("counts", "unix_millis(window.start)", "user", "clicks")
    return [((start - NOON) // MINUTE, user, count) for start, user, count in rows]


@pytest.mark.slow
def test_late_rows_and_a_backfill(pipeline: Pipeline) -> None:
    pipeline.define(WINDOWS)
    pipeline.send(click(1, 0), click(2, 1, "b"), click(3, 30))
    pipeline.catch_up()
    pipeline.send(click(4, 21), click(5, 2), click(6, 31))
    run = pipeline.catch_up()
    # 2 minutes after noon is more than 10 minutes before 30.
    assert pipeline.rows("clicks", "id") == [(1,), (2,), (3,), (4,), (6,)]
    status = {flow.name: flow.status for flow in run.flows}
    assert (status["clicks"].failed["on time"], status["clicks"].dead, status["counts"].late) == (1, 1, 0)
    (letter,) = pipeline.records(f"{pipeline.topic}-dlq")
    assert headers(letter)["ottla.dlq.reason"] == "on time: at is later than allowed"
    assert counts(pipeline) == [(0, "a", 1), (0, "b", 1), (20, "a", 1), (30, "a", 2)]

    # A backfill takes the late row in; a second one changes nothing.
    ever = Range(0, 4_000_000_000_000)
    before = pipeline.rows("raw", "partition", "offset")
    for _ in range(2):
        filled = backfill(pipeline.run(), ever)
        assert pipeline.rows("raw", "partition", "offset") == before
        assert pipeline.rows("clicks", "id") == [(1,), (2,), (3,), (4,), (5,), (6,)]
        assert counts(pipeline) == [(0, "a", 2), (0, "b", 1), (20, "a", 1), (30, "a", 2)]
        assert filled == {"raw": 6, "clicks": 6, "counts": 4}
    # The streams go on where they stood.
    pipeline.send(click(7, 32))
    pipeline.catch_up()
    assert len(pipeline.rows("raw", "offset")) == 7
    assert counts(pipeline)[-1] == (30, "a", 3)


SAME = """
@table
def raw():
    return read_topic("TOPIC", maxOffsetsPerTrigger=3)

@table(time="at", format="delta")
@expect_or_drop("has a user", "user IS NOT NULL")
def clicks():
    rows = decode_json(read_stream("raw"), "id INT, at TIMESTAMP, user STRING")
    return rows.withColumn("weight", F.lit(WEIGHT))

@table(keys=["window", "user"], format="delta")
def counts():
    rows = read_stream("clicks").withWatermark("at", "1 day").groupBy(F.window("at", "5 minutes"), "user")
    return rows.agg(F.count("*").alias("clicks"), F.sum("weight").alias("weight"))
"""


@pytest.mark.slow
def test_a_stream_a_catch_up_and_a_backfill_make_the_same_tables(pipeline: Pipeline) -> None:
    """The backfill mends what another file had computed; the tables are those of Delta's readers too."""
    good = [click(number, number * 1.5, "abc"[number % 3]) for number in range(20)]
    pipeline.send(*good[:12], {"id": 99, "at": good[0]["at"]}, *good[12:], b"junk")
    made: dict[str, list[list[Any]]] = {}

    def tables() -> list[list[Any]]:
        return [
            pipeline.rows("raw", "topic", "partition", "offset", "timestamp", "value"),
            pipeline.rows("clicks", "*"),
            pipeline.rows("counts", "*"),
        ]

    def in_folder(name: str, weight: int) -> None:
        pipeline.define(SAME.replace("WEIGHT", str(weight)))
        pipeline.places = Places(str(pipeline.folder / name))

    in_folder("stream", weight=2)
    give_up = time.monotonic() + 600

    def stopped() -> bool:
        assert time.monotonic() < give_up
        counted = TableLog(pipeline.places.table("counts")).state().version >= 0
        return counted and sum(row[0] for row in pipeline.rows("counts", "clicks")) == len(good)

    pipeline.run().stream(0.1, stopped)
    made["stream"] = tables()
    in_folder("catch-up", weight=2)
    pipeline.catch_up()
    made["catch-up"] = tables()
    in_folder("backfill", weight=1)
    pipeline.catch_up()
    made["wrong"] = tables()
    in_folder("backfill", weight=2)
    for _ in range(2):
        backfill(pipeline.run(), Range(0, 4_000_000_000_000))
        made["backfill"] = tables()
        assert made["backfill"] == made["stream"]
    assert made["catch-up"] == made["stream"]
    assert made["wrong"] != made["stream"]
    assert [len(one) for one in made["stream"]] == [22, 20, 18]

    for name, columns in (("clicks", ["id", "weight"]), ("counts", ["user", "clicks"])):
        rows = DeltaTable(pipeline.places.table(name)).to_pyarrow_table().select(columns).to_pylist()
        assert sorted((tuple(row.values()) for row in rows), key=repr) == pipeline.rows(name, *columns)


CHANGES = """
@table
def raw():
    return read_topic("TOPIC")

@view
def people():
    return decode_json(read_stream("raw"), "id INT, name STRING, at INT, gone BOOLEAN").drop("timestamp")

apply_changes(target="now", source="people", keys=["id"], sequence_by="at", apply_as_deletes="gone",
              except_column_list=["gone"])
apply_changes(target="ever", source="people", keys=["id"], sequence_by="at", apply_as_deletes="gone",
              except_column_list=["gone", "at"], stored_as_scd_type=2)
"""


@pytest.mark.slow
def test_changes_in_any_order(pipeline: Pipeline) -> None:
    pipeline.define(CHANGES)
    pipeline.send(
        {"id": 1, "name": "Ann", "at": 1}, {"id": 2, "name": "Bob", "at": 1}, {"id": 2, "at": 5, "gone": True}
    )
    pipeline.catch_up()
    assert pipeline.rows("now", "*") == [(1, "Ann", 1)]
    # Older than what is there: of Bob after he was gone, of Ann between two.
    pipeline.send(
        {"id": 2, "name": "Rob", "at": 3}, {"id": 1, "name": "Amy", "at": 9}, {"id": 1, "name": "Ada", "at": 4}
    )
    pipeline.catch_up()
    assert pipeline.rows("now", "*") == [(1, "Amy", 9)]
    ever = [(1, "Ada", 4, 9), (1, "Amy", 9, None), (1, "Ann", 1, 4), (2, "Bob", 1, 3), (2, "Rob", 3, 5)]
    assert pipeline.rows("ever", "*") == ever
    backfill(pipeline.run(), Range(0, 4_000_000_000_000))
    assert pipeline.rows("ever", "*") == ever
    assert pipeline.rows("now", "*") == [(1, "Amy", 9)]


@pytest.mark.slow
def test_what_is_no_change_is_a_dead_letter(pipeline: Pipeline) -> None:
    pipeline.define(CHANGES)
    pipeline.send({"id": 1, "name": "Ann", "at": 1}, b"no JSON")
    pipeline.catch_up()
    assert pipeline.rows("now", "*") == [(1, "Ann", 1)]
    assert pipeline.rows("ever", "*") == [(1, "Ann", 1, None)]
    letters = pipeline.records(f"{pipeline.topic}-dlq")
    assert sorted((letter.value, headers(letter)["ottla.dlq.table"]) for letter in letters) == [
        (b"no JSON", "ever"),
        (b"no JSON", "now"),
    ]


@pytest.mark.slow
def test_a_stream_until_it_is_stopped(pipeline: Pipeline) -> None:
    pipeline.define(
        """
        @table
        def raw():
            return read_topic("TOPIC")

        @table
        def once():
            rows = decode_json(read_stream("raw"), "id INT")
            return deduplicate(rows, ["id"], time="timestamp", within="1 hour")

        @table
        def seen():
            return read("raw").groupBy("topic").count()
        """
    )
    pipeline.send({"id": 1}, {"id": 1}, {"id": 2})
    give_up = time.monotonic() + 600

    def stopped() -> bool:
        assert time.monotonic() < give_up
        return sum(file.rows for file in TableLog(pipeline.places.table("once")).state().files.values()) >= 2

    run = pipeline.run()
    run.stream(0.1, stopped)
    assert pipeline.rows("once", "id") == [(1,), (2,)]
    assert {flow.name: flow.status.state for flow in run.flows} == {"raw": "stopped", "once": "stopped", "seen": "done"}
    # A table that is computed in whole is so again with each run.
    pipeline.catch_up()
    assert pipeline.rows("seen", "count") == [(3,)]
    assert pipeline.rows("once", "id") == [(1,), (2,)]


@pytest.mark.slow
def test_any_state_and_keys_that_come_twice(pipeline: Pipeline) -> None:
    """A class of the file goes to the workers whole, since they cannot import the file."""
    pipeline.define(
        """
        from pyspark.sql import Row
        from pyspark.sql.streaming import StatefulProcessor

        class Counting(StatefulProcessor):
            def init(self, handle):
                self._count = handle.getValueState("count", "number BIGINT")

            def handleInputRows(self, key, rows, timers):
                number = self._count.get()[0] if self._count.exists() else 0
                for _ in rows:
                    number += 1
                    yield Row(user=key[0], number=number)
                self._count.update((number,))

            def close(self):
                pass

        @table
        def raw():
            return read_topic("TOPIC")

        @table(keys=["user"])
        def counted():
            rows = decode_json(read_stream("raw"), "user STRING").groupBy("user")
            return rows.transformWithState(Counting(), "user STRING, number BIGINT", "Update", "None")
        """
    )
    pipeline.send({"user": "a"}, {"user": "b"}, {"user": "a"})
    pipeline.catch_up()
    assert pipeline.rows("counted", "user", "number") == [("a", 2), ("b", 1)]
    pipeline.send({"user": "a"})
    pipeline.catch_up()
    assert pipeline.rows("counted", "user", "number") == [("a", 3), ("b", 1)]


@pytest.mark.slow
def test_small_files_become_one_while_it_runs(pipeline: Pipeline) -> None:
    pipeline.define(
        """
        @table
        def raw():
            return read_topic("TOPIC", maxOffsetsPerTrigger=2)

        @table
        def ids():
            return decode_json(read_stream("raw"), "id INT")
        """
    )
    pipeline.send(*({"id": number} for number in range(2 * SMALL_FILES_MAX)))
    pipeline.catch_up()
    state = TableLog(pipeline.places.table("raw")).state()
    assert len(state.files) < SMALL_FILES_MAX
    assert sorted(pipeline.rows("ids", "id")) == [(number,) for number in range(2 * SMALL_FILES_MAX)]
