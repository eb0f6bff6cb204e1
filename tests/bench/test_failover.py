"""The figures of `bench.failover`: gaps, percentiles, what a setting permits."""

from __future__ import annotations

import pytest
from bench.failover.cycles import kinds_of
from bench.failover.gaps import GAP_S_MAX, KILLS, Row, longest_gap, percentile
from bench.failover.losses import SETTINGS, Losses

from ottla.testing.histories import ClientHistory, FaultKind, HistoryFault


def test_the_longest_gap_begins_at_the_fault() -> None:
    assert longest_gap([1.0, 5.0, 5.25, 6.0], began=4.5) == 0.75
    assert longest_gap([1.0, 6.0, 6.25], began=5.0) == 1.0
    # Nobody ever wrote again.
    assert longest_gap([1.0], began=5.0) == GAP_S_MAX


@pytest.mark.parametrize(
    ("values", "share", "found"),
    [([3.0, 1.0, 2.0], 0.5, 2.0), ([3.0, 1.0, 2.0], 0.99, 3.0), ([1.0], 0.01, 1.0), (list(range(1, 101)), 0.9, 90)],
)
def test_a_percentile_is_a_value_that_was_measured(values: list[float], share: float, found: float) -> None:
    assert percentile(values, share) == found


def test_a_row_says_which_goals_are_missed() -> None:
    probe, client = Row("leader killed", KILLS, [0.3, 0.4, 0.5], [0.5, 0.6, 2.5], {}).lines()
    assert probe.endswith("goal p50 0.6, p99 1.2: ok")
    assert client.endswith("goal p50 1, p99 2: MISS")


def test_each_setting_permits_what_the_design_does() -> None:
    lost = HistoryFault(FaultKind.LOST, ("t", 0), "it is gone")
    unread = lost._replace(kind=FaultKind.UNREAD)
    forged = lost._replace(kind=FaultKind.UNWRITTEN)
    assert len(SETTINGS) == 12
    for setting in SETTINGS:
        found = Losses(setting, ClientHistory(), [lost, unread, forged], 0).not_permitted
        wanted = [forged] if setting.unclean else [unread, forged] if setting.acks != "all" else [lost, unread, forged]
        assert found == wanted


def test_the_seed_decides_the_order_of_cycles() -> None:
    assert list(kinds_of(5, 3, 2, seed=1)) == list(kinds_of(5, 3, 2, seed=1))
    assert sorted(kinds_of(2, 1, 1, seed=7)) == ["cut", "kill", "kill", "pause"]
