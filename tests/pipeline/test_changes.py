"""What tables of changes show, beside a model that knows all changes at once, whatever order they come in."""

from __future__ import annotations

import random
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

import pytest

from ottla.pipeline.changes import END_AT, START_AT, Changes, changed, merged, scd_type_of
from ottla.pipeline.definitions import Flow, Kind
from ottla.pipeline.errors import BadDefinition
from ottla.pipeline.tables.reading import CHANGED_AT, DELETED, SEQUENCE

pytestmark = [pytest.mark.xdist_group("spark"), pytest.mark.timeout(1200)]

SCHEMA = "id INT, name STRING, seen INT, tags MAP<STRING, TIMESTAMP>, at INT, gone BOOLEAN"
TAGS = (None, {}, {"a": None}, *({"a": datetime(2026, 1, 1, 0, 0, 0, micros, UTC)} for micros in (1, 2)))


@pytest.fixture(autouse=True)
def few_partitions(spark: Any, kept_settings: None) -> None:
    """As runs of pipelines set it."""
    spark.conf.set("spark.sql.shuffle.partitions", "2")


class Change(NamedTuple):
    id: int
    name: str | None
    seen: int
    tags: Any
    at: int | None
    gone: bool | None


def flow_of(**more: Any) -> Flow:
    changes = Changes(sequence_by="at", deletes="gone", **more)
    return Flow(name="people", kind=Kind.TABLE, function=lambda: None, line=1, keys=("id",), changes=changes)


def table_of(spark: Any, flow: Flow, batches: Sequence[Sequence[Change]], there: Any = None) -> Any:
    """The table after some micro-batches, as `merged` makes it of what it had made before."""
    assert flow.changes is not None
    for batch in batches:
        rows = changed(spark.createDataFrame(batch, SCHEMA), flow.changes, "people")
        there = merged(there if there is not None else rows.limit(0), rows, flow)
        # As a table has them: of files, and not of a plan that grows.
        there = spark.createDataFrame(there.collect(), there.schema)
    return there


def shown(table: Any, *columns: str) -> list[tuple[Any, ...]]:
    return sorted((tuple(row) for row in table.where(f"NOT {DELETED}").select(*columns).collect()), key=repr)


def modelled(changes: Sequence[Change], tracked: Sequence[str]) -> list[tuple[Any, ...]]:
    """id, name, seen, start and end of what SCD 2 shows."""
    rows: list[tuple[Any, ...]] = []
    for key in {change.id for change in changes}:
        once = {change.at: change for change in changes if change.id == key}
        order = sorted(once.values(), key=lambda change: (change.at is not None, change.at or 0))
        runs: list[list[Change]] = []
        for change in order:
            last = runs[-1][-1] if runs else None
            if last is None or last.gone or change.gone or any(getattr(last, n) != getattr(change, n) for n in tracked):
                runs.append([])
            runs[-1].append(change)
        ends = [run[0].at for run in runs[1:]] + [None]
        rows += [
            (key, run[-1].name, run[-1].seen, run[0].at, end)
            for run, end in zip(runs, ends, strict=True)
            if not run[-1].gone
        ]
    return sorted(rows, key=repr)


def random_changes(chance: random.Random, count: int) -> list[Change]:
    """Each of a sequence of its own within its key, so that their order decides nothing."""
    places = [(key, at) for key in range(4) for at in (None, *range(count))]
    return [
        Change(
            key, chance.choice(("a", "b", None)), chance.randrange(9), chance.choice(TAGS), at, chance.random() < 0.15
        )
        for key, at in chance.sample(places, count)
    ]


@pytest.mark.parametrize(
    ("tracking", "tracked"),
    [
        ({}, ("name", "tags")),
        pytest.param({"tracked": ("name",)}, ("name",), marks=pytest.mark.slow),
        pytest.param({"except_tracked": ("name",)}, ("tags",), marks=pytest.mark.slow),
    ],
    ids=["all", "some", "all-but-some"],
)
def test_history_in_any_order(spark: Any, tracking: dict[str, Any], tracked: tuple[str, ...]) -> None:
    """`seen` differs nearly always: it is shown as it was last, and is left out of what is tracked by each of them."""
    if "tracked" not in tracking:
        tracking = {"except_tracked": (*tracking.get("except_tracked", ()), "seen")}
    flow = flow_of(except_columns=("gone", "at"), scd_type=2, **tracking)
    chance = random.Random(7)
    changes = random_changes(chance, 40)
    table = table_of(spark, flow, [changes[part::3] for part in range(3)])
    assert shown(table, "id", "name", "seen", START_AT, END_AT) == modelled(changes, tracked)
    # The same again, as a backfill brings it, changes nothing.
    table = table_of(spark, flow, [changes[:20]], there=table)
    assert shown(table, "id", "name", "seen", START_AT, END_AT) == modelled(changes, tracked)


def test_a_late_change_parts_what_was_one(spark: Any) -> None:
    flow = flow_of(columns=("id", "name"), scd_type=2)
    first = [Change(1, "Ann", 0, None, 1, False), Change(1, "Ann", 0, None, 5, False)]
    assert shown(table_of(spark, flow, [first]), "name", START_AT, END_AT) == [("Ann", 1, None)]
    late = [Change(1, "Amy", 0, None, 3, False)]
    table = table_of(spark, flow, [first, late])
    assert shown(table, "name", START_AT, END_AT) == [("Amy", 3, 5), ("Ann", 1, 3), ("Ann", 5, None)]
    assert scd_type_of(table.columns) == 2
    # So does a deletion; and of one that is followed by another the first one counts.
    gone = [Change(1, None, 0, None, 4, True), Change(1, None, 0, None, 2, True), Change(1, "x", 0, None, 6, True)]
    assert shown(table_of(spark, flow, [first, late, gone]), "name", START_AT, END_AT) == [
        ("Amy", 3, 4),
        ("Ann", 1, 2),
        ("Ann", 5, 6),
    ]


def test_a_table_of_before_changes_kept_their_own_sequence(spark: Any) -> None:
    """Its rows are all shown, each from its own start; the next change brings them together."""
    flow = flow_of(columns=("id", "name"), scd_type=2)
    old = f"id INT, name STRING, {START_AT} INT, {END_AT} INT, {DELETED} BOOLEAN, {CHANGED_AT} INT"
    there = spark.createDataFrame([(1, "Ann", 1, 2, False, None), (1, "Ann", 2, None, False, None)], old)
    assert flow.changes is not None
    batch = changed(spark.createDataFrame([Change(1, "Amy", 0, None, 3, False)], SCHEMA), flow.changes, "people")
    table = merged(there, batch, flow)
    assert shown(table, "name", START_AT, END_AT) == [("Amy", 3, None), ("Ann", 1, 3)]


def test_what_spark_cannot_compare_is_tracked_too(spark: Any) -> None:
    """A variant, and arrays and structs that hold one."""
    flow = flow_of(columns=("id", "tags"), scd_type=2)
    texts = ['{"a": 1}', '{"a": 1}', '{"a": 2}', None, None]
    changes = [Change(1, text, 0, None, at, False) for at, text in enumerate(texts)]
    for made in ("parse_json(name)", "array(parse_json(name))", "struct(parse_json(name) AS one)"):
        frame = spark.createDataFrame(changes, SCHEMA).drop("tags").selectExpr("*", f"{made} AS tags")
        assert flow.changes is not None
        rows = changed(frame, flow.changes, "people")
        table = merged(rows.limit(0), rows, flow)
        assert shown(table, START_AT, END_AT) == [(0, 2), (2, 3), (3, None)], made


def test_the_newest_alone(spark: Any) -> None:
    flow = flow_of(except_columns=("gone",), scd_type=1)
    changes = random_changes(random.Random(8), 40)
    newest: dict[int, Change] = {}
    for change in changes:
        before = newest.get(change.id)
        if before is None or before.at is None or (change.at is not None and change.at > before.at):
            newest[change.id] = change
    wanted = sorted((one[:3] for one in newest.values() if not one.gone), key=repr)
    table = table_of(spark, flow, [changes[part::4] for part in range(4)])
    assert shown(table, "id", "name", "seen") == wanted
    assert (scd_type_of(table.columns), SEQUENCE in table.columns) == (1, True)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"columns": ("id", "nam")}, r"column_list has 'nam', and there is no such column: id, name, "),
        ({"except_columns": ("Gone",)}, r"except_column_list has 'Gone'"),
        ({"tracked": ("nam",)}, r"track_history_column_list has 'nam'"),
        ({"except_columns": ("at",), "except_tracked": ("at",)}, r"track_history_except_column_list has 'at'"),
    ],
)
def test_columns_that_are_not_there(spark: Any, more: dict[str, Any], said: str) -> None:
    changes = flow_of(scd_type=2, **more).changes
    assert changes is not None
    with pytest.raises(BadDefinition, match=said):
        changed(spark.createDataFrame([], SCHEMA), changes, "apply_changes of people")
