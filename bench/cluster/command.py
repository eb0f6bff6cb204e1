"""``python -m bench.cluster``: the rows of replication, one table. ``--quick`` and ``--only NAME`` while developing.

Figures are medians of rounds that were measured in turns. Goals name other servers of the same run.
"""

from __future__ import annotations

import argparse
import shlex
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from bench import machine, native
from bench.cluster import catching_up, librdkafka, partitions, throughput, transactions, tree_writes
from bench.cluster.brokers import ALONE, ClusterContext
from bench.command import add_choices, find_kafka
from bench.results import Results, misses, table
from bench.scenario import QUIET_SHARE_MAX, Effort
from bench.servers import KAFKA, OTTLA, Places

_REPOSITORY = Path(__file__).resolve().parents[2]
COLUMNS = (OTTLA, ALONE, KAFKA)


class Scenario(Protocol):
    """What the table has a few rows of."""

    @property
    def name(self) -> str: ...

    @property
    def title(self) -> str: ...

    def run(self, context: ClusterContext) -> Results: ...


def every_scenario() -> list[Scenario]:
    return [
        *throughput.scenarios(),
        librdkafka.Librdkafka(),
        *transactions.scenarios(),
        *partitions.scenarios(),
        *catching_up.scenarios(),
        *tree_writes.scenarios(),
    ]


def arguments(words: Sequence[str] | None = None) -> argparse.Namespace:
    names = [scenario.name for scenario in every_scenario()]
    parser = argparse.ArgumentParser(
        prog="python -m bench.cluster", description="Measure three brokers against one of ours and three of Kafka."
    )
    add_choices(parser, names, _REPOSITORY / ".cache")
    parser.add_argument("--no-one", action="store_true", help="without our unreplicated broker")
    return parser.parse_args(words)


def main(words: Sequence[str] | None = None) -> int:
    options = arguments(words)
    options.data.mkdir(parents=True, exist_ok=True)
    disk = machine.file_system(options.data)
    if disk in machine.MEMORY_FILE_SYSTEMS:
        print(f"{options.data} is on {disk}: name a folder on a real disk with --data", file=sys.stderr)
        return 2
    kafka_jars = find_kafka(not options.no_kafka)
    kinds = [OTTLA] + [ALONE] * (not options.no_one) + [KAFKA] * (kafka_jars is not None)
    effort = Effort.quick() if options.quick else Effort()
    if options.rounds:
        effort = Effort(**{**vars(effort), "rounds": options.rounds, "restarts": options.rounds})
    scratch = Path(tempfile.mkdtemp(prefix="bench-", dir=options.data))
    places = Places(scratch=scratch, cache=_REPOSITORY / ".cache" / "bench", kafka_jars=kafka_jars)
    context = ClusterContext(places=places, kinds=kinds, effort=effort)
    if not native.is_native(native.command("load", places.cache)):
        context.tell("no C compiler: the load generator is in Python, and takes most of the machine")
    every = []
    try:
        for scenario in every_scenario():
            if options.only and scenario.name not in options.only:
                continue
            context.tell(f"{scenario.name}: {scenario.title}")
            context.stop_clusters()
            context.look_around()
            every.append(scenario.run(context))
    finally:
        context.stop_clusters()
        shutil.rmtree(scratch, ignore_errors=True)
    report(every, context, options, words)
    return 0


def report(
    every: Sequence[Results], context: ClusterContext, options: argparse.Namespace, words: Sequence[str] | None
) -> None:
    said = shlex.join(["python", "-m", "bench.cluster", *(sys.argv[1:] if words is None else words)])
    where = f"{machine.description()}, logs on {machine.file_system(options.data)}"
    if context.disturbance > QUIET_SHARE_MAX:
        where += f"; NOT QUIET: others used up to {context.disturbance:.0%} of it"
    print(f"`{said}` on {where}.\n" if options.markdown else f"\n{said}\n{where}\n")
    print(table(every, markdown=options.markdown, columns=COLUMNS))
    missed = misses(every)
    open_goals = sum(results.judge(goal)[1] is None for results in every for goal in results.goals)
    print(f"\ngoals: {len(missed)} missed, {open_goals} not measured")
    for one in missed:
        print(f"  missed: {one}")
