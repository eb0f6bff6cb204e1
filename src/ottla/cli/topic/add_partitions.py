"""Add partitions to topics: so many to each. There is no way back, and keys go to other partitions from then on.

`ottla topic alter TOPIC --partitions N` says how many a topic shall have in all.
"""

from __future__ import annotations

import argparse

from ottla.cli import options as shared
from ottla.cli.faults import OK, UsageFault
from ottla.cli.numbers import partition_count


def arguments(parser: argparse.ArgumentParser) -> None:
    shared.topics(parser, "the topics")
    shared.patterns(parser)
    parser.add_argument("-n", "--num", type=partition_count, metavar="N", required=True, help="how many to add to each")
    parser.add_argument("--force", action="store_true", help="to internal topics as well, which count on their number")
    parser.add_argument("--dry-run", action="store_true", help="let the broker check it, and change nothing")
    shared.connection(parser)
    shared.output(parser)


def run(options: argparse.Namespace) -> int:
    from ottla.cli.connecting import run as run_on_loop

    return run_on_loop(_add(options))


async def _add(options: argparse.Namespace) -> int:
    from ottla.cli.connecting import admin
    from ottla.client.errors import SomeFailed

    if not shared.topics_of(options):
        raise UsageFault("a topic is missing: give TOPIC or --topic TOPIC")
    async with admin(options) as client:
        described = await client.describe_topics(await shared.chosen_topics(client, options))
        internal = [topic.name for topic in described.values() if topic.internal]
        if internal and not options.force:
            raise UsageFault(f"{', '.join(internal)}: internal; --force adds partitions all the same")
        counts = {name: len(topic.partitions) + options.num for name, topic in sorted(described.items())}
        try:
            await client.create_partitions(counts, validate_only=options.dry_run)
        except SomeFailed as error:
            _show({name: count for name, count in counts.items() if name in error.results}, options)
            raise
    _show(counts, options)
    return OK


def _show(counts: dict[str, int], options: argparse.Namespace) -> None:
    from ottla.cli.counting import counted
    from ottla.cli.output import show

    done = "could have" if options.dry_run else "now has"
    data = [{"topic": name, "partitions": count, "altered": not options.dry_run} for name, count in counts.items()]
    lines = [f"{name} {done} {counted(count, 'partition')}\n" for name, count in counts.items()]
    show(options.output, data, "".join(lines))
