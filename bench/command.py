"""``python -m bench``: all benchmarks, one table. ``--quick`` and ``--only NAME`` while developing.

Figures are medians. A goal that names another server is judged by ratios of pairs measured one after the other, so that
what slows this machine down slows both. Nothing else should run meanwhile.
"""

from __future__ import annotations

import argparse
import shlex
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tools.kafka_jars import JarsUnavailable, jars

from bench import (
    arrow,
    clients,
    compaction,
    dumping,
    formats,
    groups,
    lifecycle,
    machine,
    mirror,
    native,
    spark_decoding,
    spark_exactly_once,
    spark_formats,
    spark_micro_batch,
    spark_reading,
    spark_start,
    spark_writing,
    throughput,
    transactional_frames,
    transactional_idle,
    transactional_ids,
    transactions,
)
from bench.librdkafka import Librdkafka
from bench.results import Results, misses, table
from bench.scenario import QUIET_SHARE_MAX, Context, Effort, Scenario
from bench.servers import KAFKA, NULL, OTTLA, Places

_REPOSITORY = Path(__file__).resolve().parent.parent


def every_scenario() -> list[Scenario]:
    """In the order of the table: those that share servers come first."""
    return [
        *throughput.scenarios(),
        Librdkafka(),
        *clients.scenarios(),
        *arrow.shared_scenarios(),
        spark_reading.SparkReading(),
        spark_decoding.SparkDecoding(),
        spark_formats.SparkFormats(),
        spark_writing.SparkWriting(),
        spark_start.SparkPipelineStart(),
        spark_micro_batch.SparkMicroBatch(),
        spark_exactly_once.SparkExactlyOnce(),
        mirror.Mirroring(),
        *groups.shared_scenarios(),
        *transactions.shared_scenarios(),
        transactional_frames.SmallProduces(),
        *lifecycle.scenarios(),
        *groups.scenarios(),
        transactional_ids.ManyIds(),
        transactional_idle.IdleProducers(),
        *compaction.scenarios(),
        *arrow.scenarios(),
        formats.Formats(),
        dumping.Dumping(),
    ]


def add_choices(parser: argparse.ArgumentParser, names: Sequence[str], data: Path) -> None:
    """What can be said of every table."""
    parser.add_argument("--only", action="append", choices=names, metavar="NAME", help=f"one of: {', '.join(names)}")
    parser.add_argument("--quick", action="store_true", help="one short round of each: no figures for a document")
    parser.add_argument("--no-kafka", action="store_true", help="without Apache Kafka")
    parser.add_argument("--markdown", action="store_true", help="print the table as docs/performance.md has it")
    parser.add_argument("--rounds", type=int, help="rounds of each benchmark, or pairs of rounds")
    parser.add_argument("--data", type=Path, default=data, help="folder on the disk to measure")


def arguments(words: Sequence[str] | None = None) -> argparse.Namespace:
    names = [scenario.name for scenario in every_scenario()]
    parser = argparse.ArgumentParser(
        prog="python -m bench", description="Measure our broker against a null server and Apache Kafka."
    )
    add_choices(parser, names, _REPOSITORY / ".cache")
    parser.add_argument("--no-null", action="store_true", help="without the null server")
    parser.add_argument("--no-ottla", action="store_true", help="without our broker")
    return parser.parse_args(words)


def find_kafka(wanted: bool) -> Path | None:
    if not wanted:
        return None
    try:
        return jars()
    except JarsUnavailable as missing:
        print(f"without Apache Kafka: {missing}", file=sys.stderr)
        return None


def main(words: Sequence[str] | None = None) -> int:
    options = arguments(words)
    options.data.mkdir(parents=True, exist_ok=True)
    disk = machine.file_system(options.data)
    if disk in machine.MEMORY_FILE_SYSTEMS:
        print(f"{options.data} is on {disk}: name a folder on a real disk with --data", file=sys.stderr)
        return 2
    kafka_jars = find_kafka(not options.no_kafka)
    kinds = [OTTLA] * (not options.no_ottla) + [NULL] * (not options.no_null) + [KAFKA] * (kafka_jars is not None)
    effort = Effort.quick() if options.quick else Effort()
    if options.rounds:
        effort = Effort(**{**vars(effort), "rounds": options.rounds})
    scratch = Path(tempfile.mkdtemp(prefix="bench-", dir=options.data))
    places = Places(scratch=scratch, cache=_REPOSITORY / ".cache" / "bench", kafka_jars=kafka_jars)
    context = Context(places=places, kinds=kinds, effort=effort)
    if not native.is_native(native.command("load", places.cache)):
        context.tell("no C compiler: the load generator is in Python, and fast servers will wait for it")
    try:
        every = run(context, options.only)
    finally:
        context.stop_shared()
        shutil.rmtree(scratch, ignore_errors=True)
    report(every, context, options, words)
    return 0


def run(context: Context, only: Sequence[str] | None) -> list[Results]:
    every = []
    for scenario in every_scenario():
        if only and scenario.name not in only:
            continue
        if scenario.name == lifecycle.Start().name:
            context.stop_shared()  # from here on each benchmark has the machine for its own servers
        context.tell(f"{scenario.name}: {scenario.title}")
        context.look_around()
        every.append(scenario.run(context))
    return every


def report(
    every: Sequence[Results], context: Context, options: argparse.Namespace, words: Sequence[str] | None
) -> None:
    said = shlex.join(["python", "-m", "bench", *(sys.argv[1:] if words is None else words)])
    where = f"{machine.description()}, log on {machine.file_system(options.data)}"
    if context.disturbance > QUIET_SHARE_MAX:
        where += f"; NOT QUIET: others used up to {context.disturbance:.0%} of it"
    if options.markdown:
        print(f"`{said}` on {where}.\n")
    else:
        print(f"\n{said}\n{where}\n")
    print(table(every, markdown=options.markdown))
    missed = misses(every)
    open_goals = sum(results.judge(goal)[1] is None for results in every for goal in results.goals)
    print(f"\ngoals: {len(missed)} missed, {open_goals} not measured")
    for one in missed:
        print(f"  missed: {one}")
