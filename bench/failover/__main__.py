"""``python -m bench.failover gaps|trees|large|cycles|losses|alarms|power``: clusters of three processes under faults.

gaps      how long producers wait when something dies, against the goals
trees     what the death of the tree costs, or of a member of a real ensemble
large     how long a controller of 2,000 partitions and a coordinator of 1,000 groups are missed
losses    what each setting of acks, unclean elections and min.insync.replicas loses
alarms    whether anybody is taken for dead who is only busy
power     power cuts of all nodes at once, on a file system in an image of its own
cycles    one fault after the other, and whether anything that was acknowledged is lost, doubled or moved
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from bench import machine
from bench.failover import alarms, cycles, gaps, large, losses, power, trees
from ottla.testing.histories import summary


def arguments(words: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.failover", description=__doc__)
    verbs = parser.add_subparsers(dest="verb", required=True)
    long_run = verbs.add_parser("cycles", help="faults under load, and the history's check")
    long_run.add_argument("--kills", type=int, default=200)
    long_run.add_argument("--pauses", type=int, default=50)
    long_run.add_argument("--cuts", type=int, default=50)
    long_run.add_argument("--seed", type=int, default=1)
    long_run.add_argument("--keep", type=Path, help="folder for the processes' logs")
    waits = verbs.add_parser("gaps", help="how long producers wait when something dies")
    waits.add_argument("--times", type=int, default=30, help="of a kill; fewer of others")
    waits.add_argument(
        "--only", action="append", choices=gaps.ROWS, default=[], metavar="ROW", help=", ".join(gaps.ROWS)
    )
    waits.add_argument("--keep", type=Path, help="folder for the processes' logs")
    waits.add_argument("--java", action="store_true", help="Apache Kafka's own producer as well")
    of_trees = verbs.add_parser("trees", help="what the death of the tree costs")
    of_trees.add_argument("--times", type=int, default=5, help="of each kill")
    of_trees.add_argument("--ensemble", action="store_true", help="a real one of ZooKeeper as well")
    much = verbs.add_parser("large", help="failovers with much to take over")
    much.add_argument("--times", type=int, default=5)
    settings = verbs.add_parser("losses", help="what each setting loses")
    settings.add_argument("--times", type=int, default=40)
    settings.add_argument("--seed", type=int, default=1)
    settings.add_argument("--keep", type=Path, help="folder for the processes' logs")
    false = verbs.add_parser("alarms", help="whether anybody is taken for dead who is only busy")
    false.add_argument("--minutes", type=float, default=10.0)
    false.add_argument("--keep", type=Path, help="folder for the processes' logs")
    cuts = verbs.add_parser("power", help="power cuts of all nodes at once, with a flush before each answer")
    cuts.add_argument("--cuts", type=int, default=500)
    cuts.add_argument("--seed", type=int, default=1)
    return parser.parse_args(words)


def main(words: Sequence[str] | None = None) -> int:
    options = arguments(words)
    if options.verb == "gaps":
        print(machine.description())
        for row in gaps.run(options.times, options.only, options.keep, with_java=options.java):
            print("\n".join(row.lines()))
        return 0
    if options.verb == "trees":
        print(machine.description())
        for kills in trees.run(options.times, ensemble=options.ensemble):
            print("\n".join(kills.lines()))
        return 0
    if options.verb == "large":
        print(machine.description())
        print("\n".join(one.line() for one in large.run(options.times)))
        return 0
    if options.verb == "losses":
        found = losses.run(options.times, options.seed, options.keep)
        print("\n".join([losses.HEADINGS, *(one.line() for one in found)]))
        bugs = [fault for one in found for fault in one.not_permitted]
        print(summary(bugs) if bugs else "no setting lost what it must not")
        return 1 if bugs else 0
    if options.verb == "alarms":
        quiet = alarms.run(options.minutes, options.keep)
        print(quiet.report())
        return 1 if quiet.sessions_ended or quiet.isr_shrinks else 0
    if options.verb == "power":
        ended = power.run(options.cuts, options.seed)
        print(ended.report())
        print(summary(ended.faults) if ended.faults else "nothing that was acknowledged was lost, doubled or moved")
        return 1 if ended.faults else 0
    outcome = cycles.run(options.kills, options.pauses, options.cuts, options.seed, options.keep)
    print(cycles.report(outcome, options.seed))
    return 1 if outcome.faults else 0


if __name__ == "__main__":
    sys.exit(main())
