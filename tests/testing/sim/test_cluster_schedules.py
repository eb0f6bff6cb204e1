"""Whole clusters under schedules of faults: seeds that once found something, a hundred others, and that a seed repeats.

In `./test` these are the same each time: nothing there fails by chance. `--slow` draws fresh ones.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any, Final

import pytest
from tests.searches import spread

from ottla.testing.sim.profiles import PROFILES
from ottla.testing.sim.schedule import ClusterSchedule, ScheduleFailed
from ottla.testing.sim.search import SeedResult, Tally, run_many, schedule
from ottla.testing.sim.wire import Unreachable

REPOSITORY = Path(__file__).resolve().parents[3]
#: Profile and seed. What each has found stands in the log of its mend; most need the code of that day to find it again.
KEPT = (
    *(("any", 4), ("any", 3537052806), ("any", 128581963), ("any", 810000112), ("any", 683516296)),
    *(("links", 1), ("processes", 5), ("forgetful", 2), ("controllers", 1), ("quorum loss", 1), ("trimmed", 860000002)),
)
#: Where the seeds of `./test` begin.
FIRST = 0x28BDA14F
#: Schedules of one run of the tests, in parts that all workers share: more than a hundred.
PARTS, PART = 8, 13
#: What all of them call back at least, each part its share: each schedule does some sixty thousand.
CALLS = 3_000_000
#: Without what came into schedules later.
NEITHER: Final[Mapping[str, Any]] = {"compacts": 0.0, "carries": 0.0}
#: Of shorter schedules under several hash seeds.
HASHED = ("any", "controllers", "unclean", "disks", "forgetful", "transactions")


@pytest.mark.parametrize(("profile", "seed"), spread(3, KEPT))
def test_a_kept_seed_finds_nothing(profile: str, seed: int) -> None:
    # They were found when there was less beside the load.
    outcome = schedule(seed, replace(PROFILES[profile], transactions=0.0, alters=0.0, **NEITHER)).run()
    assert outcome.counts
    assert outcome.acknowledged > 0


@pytest.mark.parametrize(("profile", "seed"), [("settings", 26037), ("any", 683516298)])
def test_a_kept_seed_of_settings_that_change_finds_nothing(profile: str, seed: int) -> None:
    """A request was carried out once more when it had long been done elsewhere; a note was deleted before all had read
    it, where two clocks were a quarter of an hour apart."""
    assert schedule(seed, replace(PROFILES[profile], **NEITHER)).run().events["settings changed"] > 0


@pytest.mark.parametrize(
    ("profile", "seed", "event"),
    [
        ("compacted", 1, "logs cleaned"),
        ("directories", 188, "replicas sent to another directory"),
        ("vandals", 5, "nodes damaged and mended"),
    ],
)
def test_what_profiles_of_their_own_do(profile: str, seed: int, event: str) -> None:
    assert schedule(seed, PROFILES[profile]).run().events[event] > 0


def test_a_moved_replica_ends_at_a_broker_that_was_away() -> None:
    schedule(2, PROFILES["changes and faults"]).run()


class Patient(Random):
    """Draws a pause of ten times its mean each time, as one draw in twenty thousand is."""

    def expovariate(self, lambd: float = 1.0) -> float:
        return 10.0 / lambd


def test_no_pause_of_who_changes_topics_outlasts_the_load(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ottla.testing.sim.schedule.Random", Patient)
    outcome = schedule(1, replace(PROFILES["changes"], seconds=2.0, records=10)).run()
    assert outcome.events["topics made"] > 0


@pytest.mark.timeout(3600)
@pytest.mark.parametrize(
    "part", [pytest.param(each, marks=pytest.mark.xdist_group(f"schedules-{each}")) for each in range(PARTS)]
)
def test_a_hundred_schedules_find_nothing(part: int) -> None:
    first = FIRST + part * PART
    tally = Tally()
    for found in run_many(range(first, first + PART), "any"):
        tally.add(found)
        assert not tally.failures, found.message
    assert tally.counted == tally.schedules
    assert tally.calls > CALLS / PARTS


@pytest.mark.slow
@pytest.mark.timeout(6 * 3600)
@pytest.mark.parametrize("profile", [name for name in PROFILES if name != "quiet"])
def test_many_fresh_seeds_find_nothing(profile: str) -> None:
    first = Random().randrange(1 << 32)
    tally = Tally()
    for found in run_many(range(first, first + 1_000), profile, jobs=2):
        tally.add(found)
        assert not tally.failures, found.message
    print(f"\n{profile}: {tally.counted} of {tally.schedules} schedules, {tally.calls} call-backs, {tally.rows()}")


def traces(profiles: Sequence[str]) -> str:
    """Of a short schedule of each of these profiles, one after the other; members speak either protocol in turn.

    Every second one has transactions, whatever its seed draws.
    """
    found = ""
    for profile in profiles:
        number = HASHED.index(profile)
        newer = float(number % 2)
        named = replace(PROFILES[profile], seconds=12.0, records=40, operator=1.0, newer_members=newer)
        run = schedule(7, replace(named, transactions=1.0) if number % 2 else named)
        run.run()
        assert not number % 2 or run.transactions is not None
        found += run.trace
    return found


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("profiles", "hash_seeds"), [(HASHED[:2], ("1",)), pytest.param(HASHED, ("1", "2"), marks=pytest.mark.slow)]
)
def test_a_seed_gives_one_trace_whatever_the_hash_seed(profiles: Sequence[str], hash_seeds: Sequence[str]) -> None:
    here = traces(profiles)
    assert here.count("\n") > 200
    program = f"from tests.testing.sim.test_cluster_schedules import traces; print(traces({profiles}), end='')"
    for hash_seed in hash_seeds:
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": os.pathsep.join(sys.path)}
        there = subprocess.run(
            [sys.executable, "-c", program], cwd=REPOSITORY, env=environment, capture_output=True, text=True, check=True
        )
        assert there.stdout == here


def test_a_failure_names_its_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    async def broken(_: ClusterSchedule) -> None:
        raise Unreachable("planted")

    monkeypatch.setattr(ClusterSchedule, "_verify", broken)
    (found,) = run_many([3], "quiet")
    assert found.outcome is None
    assert "seed 3, profile 'quiet'" in found.message
    with pytest.raises(ScheduleFailed):
        schedule(3, PROFILES["quiet"]).run()


def test_schedules_in_which_nothing_happened_do_not_count() -> None:
    tally = Tally()
    (found,) = run_many([1], "quiet")
    tally.add(found)
    tally.add(SeedResult(2, None, "LogMatching", "..."))
    assert (tally.schedules, tally.counted, len(tally.failures)) == (2, 0, 1)
