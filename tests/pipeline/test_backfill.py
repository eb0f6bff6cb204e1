"""A backfill of a part of the time, and of a time of which the records or the rows below are gone."""

from __future__ import annotations

import random
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow
import pytest
from pyarrow import parquet
from tests.pipeline.conftest import Pipeline

from ottla.client.sync import Admin
from ottla.client.wire.listed_offset import LATEST
from ottla.model import TopicPartition
from ottla.pipeline.backfill import BackfillPlan, Range, _filled, backfill
from ottla.pipeline.definitions import Flow, Kind
from ottla.pipeline.losses import Losses
from ottla.pipeline.places import Places
from ottla.pipeline.planning import PlannedFlow
from ottla.pipeline.tables.files import now_ms, write_files
from ottla.pipeline.tables.log import Commit, TableLog
from ottla.pipeline.tables.reading import read_table
from ottla.pipeline.tables.upkeep import retain
from ottla.pipeline.writing import with_bucket

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("spark"), pytest.mark.timeout(1200)]

MINUTE = 60_000
#: 2026-11-01 12:00 in UTC.
NOON = 1_793_534_400_000
EVER = Range(0, 4_000_000_000_000)
#: Before any day on which this runs.
OLD = 1_700_000_000_000


def click(number: int, at_ms: int) -> dict[str, Any]:
    return {"id": number, "at": datetime.fromtimestamp(at_ms / 1000, UTC).isoformat()}


def forget(pipeline: Pipeline, records: int) -> None:
    """The first records of each partition, where there are so many."""
    partitions = [TopicPartition(pipeline.topic, number) for number in range(2)]
    with Admin(bootstrap_servers=pipeline.broker.bootstrap) as admin:
        ends = {tp: one.offset for tp, one in admin.list_offsets(dict.fromkeys(partitions, LATEST)).items()}
        admin.delete_records({tp: min(end, records) for tp, end in ends.items()})


PART = """
@table
def raw():
    return read_topic("TOPIC", maxOffsetsPerTrigger=5)

@table(time="at")
def clicks():
    rows = decode_json(read_topic("TOPIC", maxOffsetsPerTrigger=5), "id INT, at TIMESTAMP")
    return rows.withColumn("weight", F.lit(WEIGHT)).drop("timestamp")

@table(keys=["window"])
def counts():
    rows = read_stream("clicks").withWatermark("at", "1 day").groupBy(F.window("at", "5 minutes"))
    return rows.agg(F.count("*").alias("clicks"), F.sum("weight").alias("weight"))
"""


def test_a_part_of_the_time(pipeline: Pipeline) -> None:
    """Ten of thirty minutes; their records say that they are a day older than their rows."""
    pipeline.define(PART.replace("WEIGHT", "1"))
    for number in range(30):
        at_ms = NOON + number * MINUTE
        pipeline.send(click(number, at_ms), timestamp=at_ms - 1440 * MINUTE, key="k")
    pipeline.catch_up()
    raw = pipeline.rows("raw", "partition", "offset", "timestamp")
    files = set(TableLog(pipeline.places.table("clicks")).state().files)
    pipeline.define(PART.replace("WEIGHT", "2"))
    for _ in range(2):
        filled = backfill(pipeline.run(), Range(NOON + 10 * MINUTE, NOON + 20 * MINUTE))
        assert filled == {"raw": 0, "clicks": 10, "counts": 2}
        assert pipeline.rows("clicks", "id", "weight") == [
            (number, 2 if 10 <= number < 20 else 1) for number in sorted(range(30), key=lambda one: repr((one,)))
        ]
        assert sorted(pipeline.rows("counts", "minute(window.start)", "clicks", "weight")) == [
            (minute, 5, 10 if minute in {10, 15} else 5) for minute in range(0, 30, 5)
        ]
        assert pipeline.rows("raw", "partition", "offset", "timestamp") == raw
    # Ten rows are two of the six files of five.
    assert len(files & set(TableLog(pipeline.places.table("clicks")).state().files)) == 4


LOST = """
@table
@expect_or_drop("has a sign", "length(value) > LENGTH")
def raw():
    return read_topic("TOPIC")

@table(time="at")
def clicks():
    rows = decode_json(read_topic("TOPIC"), "id INT, at TIMESTAMP")
    return rows.withColumn("weight", F.lit(WEIGHT))

@table(keys=["window"])
def counts():
    rows = decode_json(read_topic("TOPIC"), "id INT, at TIMESTAMP").withWatermark("at", "1 day")
    return rows.groupBy(F.window("at", "5 minutes")).agg(F.count("*").alias("clicks"), F.sum("id").alias("ids"))
"""


def test_rows_whose_records_the_topic_has_lost_stay(pipeline: Pipeline) -> None:
    pipeline.define(LOST.replace("LENGTH", "0").replace("WEIGHT", "1"))
    for number in range(10):
        at_ms = NOON + number * MINUTE
        pipeline.send(click(number, at_ms), timestamp=at_ms, key="k")
    pipeline.send(7, timestamp=NOON + 10 * MINUTE, key="k")
    pipeline.catch_up()
    said: list[str] = []
    before = pipeline.rows("counts", "window.start", "clicks", "ids")
    forget(pipeline, 4)
    # What a stricter rule leaves out is not lost: the topic has it.
    pipeline.define(LOST.replace("LENGTH", "1").replace("WEIGHT", "2").replace('sum("id")', 'sum(F.col("id") * 2)'))
    backfill(pipeline.run(), EVER, said.append)
    assert sorted(row[0] for row in pipeline.rows("raw", "offset")) == list(range(10))
    # The oldest record that is left, of 12:04, may not be alone at its time.
    weights = [(number, 1 if number < 5 else 2) for number in range(10)]
    assert pipeline.rows("clicks", "id", "weight") == weights
    after = pipeline.rows("counts", "window.start", "clicks", "ids")
    assert [row[1:] for row in before] == [(5, 10), (5, 35)]
    assert [row[1:] for row in after] == [(5, 10), (5, 70)]
    assert said == [
        f"{table}: rows before 2026-11-01T12:04:00.001Z stay as they are: the topic {pipeline.topic} has lost records "
        "that they may be made of"
        for table in ("clicks", "counts")
    ]


def test_what_the_topic_loses_while_it_is_read_stays(pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch) -> None:
    """And a table whose only rule is that of late rows is computed again, without it."""
    pipeline.define(
        """
        @table(time="at")
        @expect_on_time("at", "1h")
        def clicks():
            rows = read_topic("TOPIC").selectExpr("get_json_object(CAST(value AS STRING), '$.at') AS at")
            return rows.withColumn("at", F.col("at").cast("timestamp"))
        """
    )
    for number in range(10):
        at_ms = NOON + number * MINUTE
        pipeline.send(click(number, at_ms), timestamp=at_ms, key="k")
    pipeline.catch_up()
    before, again, said = pipeline.rows("clicks", "at"), BackfillPlan.again, list[str]()

    def again_and_less(plan: BackfillPlan, planned: PlannedFlow) -> Any:
        forget(pipeline, 4)
        return again(plan, planned)

    monkeypatch.setattr(BackfillPlan, "again", again_and_less)
    assert backfill(pipeline.run(), EVER, said.append) == {"clicks": 5}
    assert pipeline.rows("clicks", "at") == before
    assert len(said) == 1


MADE_AGAIN = """
@table
def raw():
    return read_topic("TOPIC", failOnDataLoss=False)

@table(time="at")
def clicks():
    rows = decode_json(read_topic("TOPIC", failOnDataLoss=False), "id INT, at TIMESTAMP")
    return rows.withColumn("weight", F.lit(WEIGHT))
"""


def test_rows_of_a_topic_stay_that_was_deleted_and_made_again(pipeline: Pipeline) -> None:
    """Its records begin at offset 0, as if nothing was lost; at the offsets of the former ones are others now."""

    def sent(weight: int, *numbers: int, at_ms: int = OLD) -> None:
        pipeline.define(MADE_AGAIN.replace("WEIGHT", str(weight)))
        for number in numbers:
            pipeline.send(click(number, at_ms), timestamp=at_ms, key="k")

    sent(1, *range(10))
    pipeline.catch_up()
    pipeline.broker.delete_topic(pipeline.topic)
    pipeline.broker.create_topic(pipeline.topic, partitions=2)
    sent(1, *range(10, 13))
    pipeline.catch_up()
    raw = pipeline.rows("raw", "*")
    assert len(raw) == 13
    sent(2, 13, at_ms=now_ms())
    said: list[str] = []
    backfill(pipeline.run(), EVER, said.append)
    rows = pipeline.rows("raw", "*")
    assert ([row for row in rows if row in raw], len(rows)) == (raw, 14)
    assert sorted(pipeline.rows("clicks", "id", "weight")) == [(number, 1 + (number == 13)) for number in range(14)]
    assert [line.partition(":")[0] for line in said] == ["raw", "clicks"]
    assert all(line.endswith(f"the topic {pipeline.topic} has lost records that they may be made of") for line in said)


RETAINED = """
@table(retain="1h")
def raw():
    return read_topic("TOPIC")

@table(time="at")
def clicks():
    rows = decode_json(read_stream("raw"), "id INT, at TIMESTAMP")
    return rows.withColumn("weight", F.lit(WEIGHT))
"""


def test_rows_stay_whose_rows_below_are_gone(pipeline: Pipeline) -> None:
    """The table below is retained; as long as the topic has the records, the backfill brings its rows back first."""

    def weighted(weight: int) -> None:
        pipeline.define(RETAINED.replace("WEIGHT", str(weight)))

    def forget_rows() -> None:
        raw = TableLog(pipeline.places.table("raw"))
        assert retain(raw, now_ms() + 120 * MINUTE, 60 * MINUTE)

    weighted(1)
    pipeline.send(click(1, NOON), click(2, NOON + 1), key="k")
    pipeline.catch_up()
    forget_rows()
    assert pipeline.rows("raw", "offset") == []
    weighted(2)
    said: list[str] = []
    backfill(pipeline.run(), EVER, said.append)
    assert len(pipeline.rows("raw", "offset")) == 2
    assert pipeline.rows("clicks", "id", "weight") == [(1, 2), (2, 2)]
    assert said == []

    forget_rows()
    forget(pipeline, 2)
    pipeline.send(click(3, now_ms()), key="k")
    weighted(3)
    backfill(pipeline.run(), EVER, said.append)
    assert pipeline.rows("clicks", "id", "weight") == [(1, 2), (2, 2), (3, 3)]
    (line,) = said
    assert line.startswith("clicks: rows before ")
    assert line.endswith(" stay as they are: the table raw has lost rows that they may be made of")


def test_all_times_that_spark_has(spark: Any, kept_settings: None) -> None:
    """Python's last year is 9999."""
    frame = spark.sql(
        "SELECT explode(array(timestamp'-0300-01-01', timestamp'1969-12-31', timestamp'+12000-01-01')) AS at"
    )

    def held(first: int, end: int) -> int:
        return int(frame.where(Range(first, end).holds(frame["at"])).count())

    assert (held(-(10**18), 10**18), held(0, 253_402_300_800_000), held(-1, 10**15), held(-(10**15), 0)) == (3, 0, 1, 2)


def test_rows_of_a_table_with_keys_are_counted_as_they_are_there(pipeline: Pipeline) -> None:
    pipeline.define(
        """
        @table(keys=["id"])
        def clicks():
            return decode_json(read_topic("TOPIC"), "id INT")
        """
    )
    pipeline.send(*({"id": number % 2} for number in range(6)))
    assert backfill(pipeline.run(), EVER) == {"clicks": 2}
    assert pipeline.rows("clicks", "id") == [(0,), (1,)]


def test_a_key_has_its_last_row_whatever_range_is_computed_again(
    spark: Any, kept_settings: None, tmp_path: Path
) -> None:
    """The range of the older row, and that of both; the younger one is in the larger file, which Spark reads first."""
    chance, files = random.Random(1), []
    for minute, length in ((0, 10), (30, 20_000)):
        at = datetime.fromtimestamp((NOON + minute * MINUTE) / 1000, UTC)
        files.append(str(tmp_path / f"{minute}.parquet"))
        row = {"id": [1], "at": pyarrow.array([at], pyarrow.timestamp("us", "UTC")), "more": [chance.randbytes(length)]}
        parquet.write_table(pyarrow.table(row), files[-1])
    rows = spark.read.parquet(*files)
    places = Places(str(tmp_path))
    flow = Flow(name="people", kind=Kind.TABLE, function=lambda: None, line=1, keys=("id",), time="at")
    stream = SimpleNamespace(isStreaming=True)
    planned = PlannedFlow(flow=flow, frame=stream, tables={"raw"}, schema=rows.schema)
    plan: Any = SimpleNamespace(spark=spark, places=places, again=lambda _: rows)
    log = TableLog(places.table("people"))
    added = write_files(with_bucket(spark.read.parquet(files[-1]), flow), log, bucketed=True)
    log.commit(Commit(kind="upsert", written_ms=1, query="q", batch=0, added=added, schema=rows.schema.jsonValue()))
    for span, filled in ((Range(NOON, NOON + MINUTE), 0), (EVER, 1)):
        assert _filled(plan, planned, span, Losses(places, {}), print) == filled
        found = read_table(spark, log.folder).selectExpr("id", "minute(at)").collect()
        assert [tuple(row) for row in found] == [(1, 30)]
