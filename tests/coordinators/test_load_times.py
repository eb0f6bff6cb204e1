"""How long loads took, of those that have ended lately."""

from __future__ import annotations

from math import isnan

from ottla.coordinators.load_times import LOADS_MAX, WINDOW_MS, LoadTimes


def test_the_longest_and_the_average_of_those_within_the_window() -> None:
    times = LoadTimes()
    assert isnan(times.longest_ms(0))
    assert isnan(times.average_ms(0))
    times.add(1_000, 30)
    times.add(2_000, 10)
    assert (times.longest_ms(2_000), times.average_ms(2_000)) == (30, 20)
    # The first one is forgotten when the window has passed it.
    assert times.longest_ms(1_000 + WINDOW_MS - 1) == 30
    assert times.longest_ms(1_000 + WINDOW_MS) == 10
    assert isnan(times.longest_ms(2_000 + WINDOW_MS))


def test_no_more_are_known_than_the_bound_says() -> None:
    times = LoadTimes()
    times.add(0, 7_000)
    for _ in range(LOADS_MAX):
        times.add(0, 1)
    assert times.longest_ms(0) == 1
