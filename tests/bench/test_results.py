"""Goals, medians of pairs, and a table that hides no miss."""

from __future__ import annotations

import pytest
from bench.results import Goal, Measure, Results, misses, table

RATE = Measure(name="rate", label="rate", unit="k/s", digits=1)


def measured(goals: list[Goal], **rounds: list[float]) -> Results:
    results = Results(title="work", measures=[RATE], goals=goals)
    for kind, figures in rounds.items():
        for figure in figures:
            results.add(kind, {"rate": figure})
    return results


def test_a_ratio_is_the_median_of_pairs_and_not_a_ratio_of_medians() -> None:
    results = measured([], ottla=[10.0, 40.0, 90.0], kafka=[10.0, 20.0, 300.0])
    assert results.ratio("rate", "kafka") == 1.0
    assert results.typical("ottla", "rate") == 40.0


def test_a_server_with_fewer_rounds_is_compared_by_its_own_median() -> None:
    assert measured([], ottla=[10.0, 20.0, 30.0], kafka=[5.0]).ratio("rate", "kafka") == 4.0


def test_the_best_round_counts_where_that_is_said() -> None:
    results = measured([Goal(measure="rate", at_least=30.0)], ottla=[10.0, 30.0, 20.0])
    assert results.judge(results.goals[0]) == (20.0, False)
    results.best_counts = True
    assert results.judge(results.goals[0]) == (30.0, True)


@pytest.mark.parametrize(
    ("goal", "verdict"),
    [
        (Goal(measure="rate", at_least=2.0, against="kafka"), True),
        (Goal(measure="rate", at_least=2.01, against="kafka"), False),
        (Goal(measure="rate", at_most=20.0), True),
        (Goal(measure="rate", at_most=19.0), False),
        (Goal(measure="rate", at_least=1.0, against="null"), None),
        (Goal(measure="rate", at_most=10.0, above="kafka"), True),
        (Goal(measure="rate", at_most=9.9, above="kafka"), False),
        (Goal(measure="rate", at_most=9.9, above="null"), None),
    ],
)
def test_a_goal_is_reached_missed_or_not_measured(goal: Goal, verdict: bool | None) -> None:
    results = measured([goal], ottla=[20.0], kafka=[10.0])
    assert results.judge(goal)[1] is verdict
    shown = table([results], markdown=False)
    assert ("MISS" in shown) == (verdict is False)
    assert ("not measured" in shown) == (verdict is None)
    assert bool(misses([results])) == (verdict is False)


def test_a_server_that_failed_is_a_miss() -> None:
    results = measured([], ottla=[1.0])
    results.failures["ottla"] = "LoadFailed: 3 errors"
    assert "LoadFailed: 3 errors" in table([results], markdown=True)
    assert misses([results]) == ["work: ottla failed"]
