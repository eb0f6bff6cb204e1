"""Ratios of one checkout's broker to another's are taken round by round."""

from __future__ import annotations

from bench.checkouts import lines


def test_a_ratio_is_the_median_of_pairs_that_were_measured_together() -> None:
    before = [{"rate": 10.0, "p50": 100.0}, {"rate": 20.0, "p50": 50.0}, {"rate": 40.0, "p50": 25.0}]
    after = [{"rate": 11.0, "p50": 100.0}, {"rate": 24.0, "p50": 60.0}, {"rate": 40.0, "p50": 20.0}]

    title, rate, p50 = lines("work", {"before": before, "this": after}, ["p50", "rate"])

    assert title == "work"
    assert "before 20.00 (1.000)" in rate
    assert "this 24.00 (1.100)" in rate
    assert "this 60.00 (1.000)" in p50


def test_what_a_table_does_not_measure_is_left_out() -> None:
    assert list(lines("work", {"this": [{"rate": 1.0, "cpu": 2.0}]}, ["cpu"]))[1:] == [
        "  us CPU a request   this 2.00 (1.000)"
    ]
