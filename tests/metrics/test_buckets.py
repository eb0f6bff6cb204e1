"""Quantiles out of buckets, and what came lately."""

from __future__ import annotations

import math
from random import Random

import pytest

from ottla.metrics.buckets import KEPT_MAX, STEP_MS, WINDOW_MS, Buckets, RecentBuckets, quantile

BOUNDS = (1, 2, 5, 10)


def test_buckets_are_cumulative_and_end_at_infinity() -> None:
    assert list(Buckets(BOUNDS, (1, 0, 2, 0, 3), 9).cumulative()) == [(1, 1), (2, 1), (5, 3), (10, 3), (math.inf, 6)]


@pytest.mark.parametrize(
    ("counts", "share", "expected"),
    [
        ((100, 0, 0, 0, 0), 0.5, 0.5),
        ((100, 0, 0, 0, 0), 0.99, 0.99),
        ((50, 50, 0, 0, 0), 0.5, 1),
        ((50, 50, 0, 0, 0), 0.75, 1.5),
        ((0, 0, 10, 0, 0), 0.5, 3.5),
        ((0, 0, 0, 0, 7), 0.5, 10),
        ((99, 0, 0, 0, 1), 0.999, 10),
        ((1, 0, 0, 1, 0), 1.0, 10),
    ],
)
def test_quantiles_lie_inside_of_their_buckets(counts: tuple[int, ...], share: float, expected: float) -> None:
    assert quantile(BOUNDS, counts, share) == pytest.approx(expected)


def test_of_nothing_there_is_no_quantile() -> None:
    assert math.isnan(quantile(BOUNDS, (0, 0, 0, 0, 0), 0.5))


def test_quantiles_rise_with_their_share() -> None:
    random = Random(20260101)
    for _ in range(200):
        counts = [random.choice((0, 0, 1, random.randrange(1000))) for _ in range(len(BOUNDS) + 1)]
        found = [quantile(BOUNDS, counts, share) for share in (0.5, 0.75, 0.95, 0.99, 0.999)]
        assert found == sorted(found) or not any(counts)


def test_what_came_before_the_window_is_forgotten() -> None:
    recent, counts = RecentBuckets(2, 0), [0, 0]
    for minute in range(60):
        counts[0] += 1
        found = recent.since(counts, minute * STEP_MS)
        assert min(minute + 1, WINDOW_MS // STEP_MS) <= found[0] <= WINDOW_MS // STEP_MS + 1, minute
    assert recent.since(counts, 1_000 * STEP_MS) == [0, 0]


def test_however_often_somebody_looks_few_readings_are_kept() -> None:
    recent = RecentBuckets(1, 0)
    for number in range(100_000):
        recent.since([number], number * 10)
        assert len(recent._kept) <= KEPT_MAX


def test_seldom_looks_see_all_that_came_between_them() -> None:
    recent = RecentBuckets(1, 0)
    assert recent.since([5], 10 * WINDOW_MS) == [5]
    assert recent.since([9], 20 * WINDOW_MS) == [4]
