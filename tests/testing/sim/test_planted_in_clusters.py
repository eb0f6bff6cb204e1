"""Bugs planted in a cluster's replication and control are found, each by the invariant that is to catch it."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from tests.searches import slow
from tests.testing.sim.planted import control, replication, transactions
from tests.testing.sim.planted.registry import PLANTED, Planted, found_by

#: Every change of the broker changes what a seed does: one of so many behind the kept one finds it then.
SEEDS_BEHIND = 12
#: Bugs that every run looks for though another one breaks the same invariant: each is a step of the protocol that is
#: easily left out. Some 25 s of CPU together.
NAMED = frozenset(
    {
        control.bounce_unseen,
        control.lease_not_renewed,
        control.old_generation_accepted,
        control.partition_epoch_ignored,
        control.stale_controller_obeyed,
        control.watches_lost_after_a_reconnect,
        replication.counted_before_the_checks,
        replication.joiner_counted_late,
        replication.two_fetchers,
        transactions.aborts_across_segments_missed,
        transactions.open_forgotten_by_a_restart,
    }
)


def found_among(planted: Planted, first: int, count: int) -> tuple[int, str] | None:
    for seed in range(first, first + count):
        caught = found_by(planted, seed)
        if caught is not None:
            return seed, caught
    return None


def one_for_each_invariant_and_the_named() -> list[Any]:
    """The others run with `./test --slow`."""
    cases, shown = [], set[str]()
    for planted in PLANTED:
        is_shown = planted.caught_by <= shown and planted.plant not in NAMED
        cases.append(slow(planted) if is_shown else planted)
        shown |= planted.caught_by
    return cases


@pytest.mark.parametrize("planted", one_for_each_invariant_and_the_named(), ids=lambda planted: planted.name)
def test_a_kept_seed_finds_it(planted: Planted, monkeypatch: pytest.MonkeyPatch) -> None:
    planted.plant(monkeypatch)
    found = found_among(planted, planted.seed, SEEDS_BEHIND)
    assert found is not None
    assert found[1] in planted.caught_by, f"seed {found[0]}"


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("planted", PLANTED, ids=lambda planted: planted.name)
def test_fresh_seeds_find_it(planted: Planted, monkeypatch: pytest.MonkeyPatch) -> None:
    planted.plant(monkeypatch)
    first = Random().randrange(1 << 32)
    found = found_among(planted, first, 2_000)
    print(f"\n{planted.name}: {found}, counted from {first}")
    assert found is not None
    assert found[1] in planted.caught_by
