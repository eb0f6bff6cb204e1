"""Delete topics with all their records. Prints what would go, and does it with --yes."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from ottla.cli import options as shared
from ottla.cli.faults import OK, UsageFault

if TYPE_CHECKING:
    from ottla.client.admin.admin import Admin


def arguments(parser: argparse.ArgumentParser) -> None:
    shared.topics(parser, "the topics to delete")
    shared.patterns(parser)
    shared.connection(parser)
    shared.confirmation(parser)
    parser.add_argument("--if-exists", action="store_true", help="ignore topics that do not exist")
    shared.output(parser)


def run(options: argparse.Namespace) -> int:
    from ottla.cli.connecting import run as run_on_loop

    return run_on_loop(_delete(options))


async def _delete(options: argparse.Namespace) -> int:
    from ottla.cli.connecting import admin
    from ottla.cli.plan import show_plan
    from ottla.client.errors import SomeFailed

    if not shared.topics_of(options):
        raise UsageFault("name at least one topic to delete")
    async with admin(options) as client:
        names = await shared.chosen_topics(client, options)
        if options.if_exists:
            existing = await client.describe_topics()
            names = [name for name in names if name in existing]
        rows = [await _planned(client, name) for name in names]
        columns = {"topic": "TOPIC", "partitions": "PARTITIONS", "offsets": "OFFSETS"}
        show_plan(options.output, "topics to delete:", rows, columns, confirmed=options.yes or not names)
        if names:
            try:
                await client.delete_topics(names)
            except SomeFailed as error:
                if options.output == "table" and error.results:
                    print(f"deleted {', '.join(map(str, error.results))}")
                raise
    if options.output == "table":
        print(f"deleted {', '.join(names)}" if names else "nothing to delete")
    return OK


async def _planned(client: Admin, name: str) -> dict[str, Any]:
    from ottla.cli.offsets import EARLIEST, LATEST, offsets_of
    from ottla.model import TopicPartition

    topic = await client.describe_topic(name)
    led = [TopicPartition(name, each.partition) for each in topic.partitions if each.leader is not None]
    starts = await offsets_of(client.cluster, dict.fromkeys(led, EARLIEST))
    ends = await offsets_of(client.cluster, dict.fromkeys(led, LATEST))
    #: As many records at most: compaction and transactions leave gaps. None where nobody can say it.
    offsets = sum(ends[tp] - starts[tp] for tp in led) if len(led) == len(topic.partitions) else None
    return {"topic": name, "partitions": len(topic.partitions), "offsets": offsets}
