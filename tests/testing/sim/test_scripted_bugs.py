"""Bugs that random schedules hardly ever meet: in a history that is written out, the named invariant finds each."""

from __future__ import annotations

import pytest
from tests.testing.sim.planted.scripted import SCRIPTED, Plant, ScriptedBug, run_script

from ottla.testing.sim.invariants import InvariantBroken

BUGS = pytest.mark.parametrize("bug", SCRIPTED, ids=lambda bug: bug.name)
IN_PAIRS = [(bug, plant) for bug in SCRIPTED if len(bug.plants) > 1 for plant in bug.plants]


@BUGS
def test_the_broker_as_it_is_comes_through(bug: ScriptedBug) -> None:
    run_script(bug.script)


@BUGS
def test_the_invariant_finds_the_bug(bug: ScriptedBug, monkeypatch: pytest.MonkeyPatch) -> None:
    for plant in bug.plants:
        plant(monkeypatch)
    with pytest.raises(InvariantBroken) as found:
        run_script(bug.script)
    assert found.value.name == bug.caught_by


@pytest.mark.parametrize(("bug", "plant"), IN_PAIRS, ids=[plant.__name__ for _, plant in IN_PAIRS])
def test_each_of_two_is_caught_by_the_other(bug: ScriptedBug, plant: Plant, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)
    run_script(bug.script)
