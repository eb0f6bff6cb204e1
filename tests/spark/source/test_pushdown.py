"""Filters as bounds: never fewer rows than the filters leave."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

import pytest
from pyspark.sql.datasource import (
    EqualTo,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    LessThan,
    LessThanOrEqual,
    Not,
    StringStartsWith,
)

from ottla.model import TopicPartition
from ottla.spark.source.pushdown import PushedBounds, pushed_of

PARTITION, OFFSET, TIMESTAMP = ("partition",), ("offset",), ("timestamp",)


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def test_bounds_of_numbers() -> None:
    filters = [
        GreaterThan(OFFSET, 4),
        LessThanOrEqual(OFFSET, 9),
        GreaterThanOrEqual(OFFSET, 2),
        LessThan(PARTITION, 3),
    ]
    assert pushed_of(filters) == PushedBounds(offset_min=5, offset_max=9, partition_max=2)
    assert pushed_of([EqualTo(OFFSET, 7)]) == PushedBounds(offset_min=7, offset_max=7)


def test_partitions_by_name() -> None:
    found = pushed_of([In(PARTITION, (1, 2, 5)), In(PARTITION, (2, 5, 9)), LessThan(PARTITION, 5)])
    assert [number for number in range(10) if found.keeps(TopicPartition("orders", number))] == [2]


def test_a_time_is_a_lower_bound_alone() -> None:
    assert pushed_of([LessThan(TIMESTAMP, at("2026-01-01"))]) == PushedBounds()
    found = pushed_of([GreaterThanOrEqual(TIMESTAMP, at("1970-01-01T00:00:01.000500"))])
    assert found.time_ms_min == 1001
    assert pushed_of([GreaterThan(TIMESTAMP, at("1970-01-01T00:00:01.001"))]).time_ms_min == 1002


def test_what_says_nothing_of_offsets_is_left_to_spark() -> None:
    others: list[Any] = [IsNotNull(OFFSET), Not(EqualTo(OFFSET, 3)), StringStartsWith(("topic",), "o")]
    assert pushed_of(others) == PushedBounds()


@pytest.mark.parametrize("seed", range(50))
def test_no_row_that_passes_the_filters_is_cut_off(seed: int) -> None:
    chance = Random(seed)
    kinds = {
        EqualTo: int.__eq__,
        GreaterThan: int.__gt__,
        GreaterThanOrEqual: int.__ge__,
        LessThan: int.__lt__,
        LessThanOrEqual: int.__le__,
    }
    chosen = [(chance.choice(list(kinds)), chance.choice((PARTITION, OFFSET)), chance.randrange(8)) for _ in range(3)]
    found = pushed_of([kind(name, number) for kind, name, number in chosen])
    for partition in range(8):
        for offset in range(8):
            row = {PARTITION: partition, OFFSET: offset}
            if all(kinds[kind](row[name], number) for kind, name, number in chosen):
                assert found.keeps(TopicPartition("orders", partition))
                assert (found.offset_min or 0) <= offset
                assert found.offset_max is None or offset <= found.offset_max


@pytest.mark.parametrize("seed", range(20))
def test_bounds_of_times_are_the_least_milliseconds_that_pass(seed: int) -> None:
    chance = Random(seed)
    lower = {GreaterThan: datetime.__gt__, GreaterThanOrEqual: datetime.__ge__, EqualTo: datetime.__ge__}
    epoch = at("1970-01-01")
    chosen = [
        (kind, epoch + timedelta(microseconds=5000 + chance.choice((-1, 0, 1, 999)) + 1000 * chance.randrange(20)))
        for kind in chance.choices((*lower, LessThan, LessThanOrEqual), k=2)
    ]
    # As PySpark makes them: without a zone, in this machine's.
    given = [bound.astimezone().replace(tzinfo=None) if chance.randrange(2) else bound for _, bound in chosen]
    found = pushed_of([kind(TIMESTAMP, bound) for (kind, _), bound in zip(chosen, given, strict=True)])
    of_lower = [(lower[kind], bound) for kind, bound in chosen if kind in lower]
    passing = [
        ms for ms in range(40) if all(passes(epoch + timedelta(milliseconds=ms), bound) for passes, bound in of_lower)
    ]
    assert found.time_ms_min == (passing[0] if of_lower else None)
