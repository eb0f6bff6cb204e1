"""Add partitions to a topic. There is no way back, and keys go to other partitions from then on.

Settings of a topic are changed with `ottla config alter --topic TOPIC`.
"""

from __future__ import annotations

import argparse

from ottla.cli import options as shared
from ottla.cli.faults import OK
from ottla.cli.numbers import partition_count


def arguments(parser: argparse.ArgumentParser) -> None:
    shared.topic(parser)
    shared.connection(parser)
    parser.add_argument(
        "--partitions", type=partition_count, metavar="N", required=True, help="how many it shall have in all"
    )
    parser.add_argument("--replica-assignment", metavar="IDS,...", help="the brokers of each new partition: 1:2,2:3")
    parser.add_argument("--if-exists", action="store_true", help="do not fail if there is no such topic")
    parser.add_argument("--dry-run", action="store_true", help="let the broker check it, and change nothing")
    shared.output(parser)


def run(options: argparse.Namespace) -> int:
    from ottla.cli.connecting import run as run_on_loop

    return run_on_loop(_alter(options))


async def _alter(options: argparse.Namespace) -> int:
    from ottla.cli.connecting import admin
    from ottla.cli.counting import counted
    from ottla.cli.output import show
    from ottla.cli.topic.create import replica_assignment
    from ottla.client.errors import UnknownTopicOrPartition

    name = shared.topic_of(options)
    placed = replica_assignment(options.replica_assignment)
    async with admin(options) as client:
        try:
            await client.create_partitions(
                {name: options.partitions},
                assignments={name: placed} if placed else None,
                validate_only=options.dry_run,
            )
        except UnknownTopicOrPartition:
            if not options.if_exists:
                raise
            show(options.output, {"topic": name, "altered": False}, f"there is no topic {name}\n")
            return OK
    done = "could have" if options.dry_run else "now has"
    data = {"topic": name, "altered": not options.dry_run, "partitions": options.partitions}
    show(options.output, data, f"{name} {done} {counted(options.partitions, 'partition')}\n")
    return OK
