"""Many schedules, one after the other or in several processes, counted, and ended by the first that finds something.

A schedule counts only where somebody was elected, a log was cut or an ISR changed. What a seed finds it finds again:
its trace is the same byte for byte, in every process and under any hash seed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

from ottla.testing.sim.profiles import PROFILES, Profile
from ottla.testing.sim.schedule import ClusterSchedule, ScheduleFailed, ScheduleOutcome
from ottla.testing.sim.tree_machine import ServedTree


class SeedResult(NamedTuple):
    """What a seed has shown: an outcome, or what was wrong."""

    seed: int
    outcome: ScheduleOutcome | None
    invariant: str = ""
    message: str = ""


@dataclass(slots=True)
class Tally:
    """What schedules have done, all together."""

    schedules: int = 0
    #: Of those with elections, truncations or ISR changes.
    counted: int = 0
    calls: int = 0
    acknowledged: int = 0
    #: How often each kind of event occurred, and in how many schedules.
    events: Counter[str] = field(default_factory=Counter)
    within: Counter[str] = field(default_factory=Counter)
    failures: list[SeedResult] = field(default_factory=list)

    def add(self, found: SeedResult) -> None:
        self.schedules += 1
        outcome = found.outcome
        if outcome is None:
            self.failures.append(found)
            return
        self.counted += outcome.counts
        self.calls += outcome.calls
        self.acknowledged += outcome.acknowledged
        self.events.update(outcome.events)
        self.within.update(kind for kind, count in outcome.events.items() if count)

    def rows(self) -> list[tuple[str, int, float]]:
        """Kind, how often, and the share of the schedules in which it occurred; the most frequent first."""
        sound = max(1, self.schedules - len(self.failures))
        return [(kind, count, self.within[kind] / sound) for kind, count in self.events.most_common() if count]


def schedule(seed: int, profile: Profile) -> ClusterSchedule:
    return ClusterSchedule(seed, profile, ServedTree)


def run_one(seed: int, name: str) -> SeedResult:
    try:
        return SeedResult(seed, schedule(seed, PROFILES[name]).run())
    except ScheduleFailed as failed:
        return SeedResult(seed, None, failed.invariant, str(failed))


def run_many(seeds: Iterable[int], name: str, jobs: int = 1) -> Iterator[SeedResult]:
    """In order of the seeds."""
    if jobs == 1:
        for seed in seeds:
            yield run_one(seed, name)
        return
    with ProcessPoolExecutor(jobs) as pool:
        yield from pool.map(partial(run_one, name=name), seeds)
