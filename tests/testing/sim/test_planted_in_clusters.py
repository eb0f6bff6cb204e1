"""Bugs planted in a cluster's replication and control are found, each by the invariant that is to catch it."""

from __future__ import annotations

from random import Random

import pytest
from tests.testing.sim.planted.registry import PLANTED, SEEDS_BEHIND, Planted, found_among


@pytest.mark.parametrize("planted", PLANTED, ids=lambda planted: planted.name)
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
