"""Run simulated clusters with faults, and say what they have shown.

Each schedule is three to five brokers, their tree and their clients in one process, in virtual time, from one seed.
Brokers are killed and stand still, links are cut, sessions expire, and after every step the invariants of replication
are checked. The first schedule that finds something ends the run: its seed is printed, and finds the same again.

ottla sim --seeds 100
ottla sim --seeds 1 --first 4711 --trace
"""

from __future__ import annotations

import argparse
import os
from typing import Final

from ottla.cli.counting import counted
from ottla.cli.faults import FAILED, OK
from ottla.cli.numbers import count, signed_count

JOBS_PER_PROCESSOR_MAX: Final = 4


def arguments(parser: argparse.ArgumentParser) -> None:
    from ottla.testing.sim.profiles import PROFILES

    parser.add_argument("--seeds", type=count, metavar="N", default=20, help="how many schedules (default 20)")
    parser.add_argument("--first", type=signed_count, metavar="SEED", default=1, help="the first seed (default 1)")
    parser.add_argument("--profile", choices=sorted(PROFILES), default="any", help="which faults (default any)")
    parser.add_argument("--jobs", type=count, metavar="N", default=1, help="so many processes (default 1)")
    parser.add_argument("--trace", action="store_true", help="print everything that happens, of each schedule")


def run(options: argparse.Namespace) -> int:
    seeds = range(options.first, options.first + options.seeds)
    jobs = processes(options.jobs, options.seeds)
    return _traced(seeds, options.profile) if options.trace else _counted(seeds, options.profile, jobs)


def processes(jobs: int, seeds: int) -> int:
    """More than schedules, or many more than processors, would only take memory."""
    return min(jobs, seeds, JOBS_PER_PROCESSOR_MAX * (os.cpu_count() or 1))


def _traced(seeds: range, profile: str) -> int:
    from ottla.testing.sim.profiles import PROFILES
    from ottla.testing.sim.schedule import ScheduleFailed
    from ottla.testing.sim.search import schedule

    for seed in seeds:
        run = schedule(seed, PROFILES[profile])
        try:
            run.run()
        except ScheduleFailed as failed:
            print(run.trace)
            print(f"seed {seed} found {failed.invariant}")
            return FAILED
        print(run.trace)
    return OK


def _counted(seeds: range, profile: str, jobs: int) -> int:
    import time

    from ottla.testing.sim.search import Tally, run_many

    tally, began = Tally(), time.monotonic()
    for found in run_many(seeds, profile, jobs):
        tally.add(found)
        if tally.failures:
            print(found.message)
            print(f"seed {found.seed} of profile {profile!r} found {found.invariant}; again:")
            print(f"ottla sim --seeds 1 --first {found.seed} --profile '{profile}' --trace")
            return FAILED
    seconds = time.monotonic() - began
    print(f"{counted(tally.schedules, 'schedule')}, {tally.counted} of them with elections, truncations or ISR changes")
    print(f"{tally.calls:,} call-backs in {seconds:.1f} s; {tally.acknowledged:,} records acknowledged, none lost")
    for kind, occurred, share in tally.rows():
        print(f"{kind:20} {occurred:8,}  in {share:4.0%} of the schedules")
    return OK
