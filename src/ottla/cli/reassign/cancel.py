"""Call moves of partitions off: they are again where they were before, and what was copied is removed."""

from __future__ import annotations

import argparse

from ottla.cli import options as shared
from ottla.cli.faults import OK


def arguments(parser: argparse.ArgumentParser) -> None:
    chosen = parser.add_mutually_exclusive_group(required=True)
    chosen.add_argument("--file", metavar="FILE", help="of the partitions in this file")
    chosen.add_argument("--all", action="store_true", help="of all that are under way")
    shared.confirmation(parser)
    shared.connection(parser)
    shared.output(parser)


def run(options: argparse.Namespace) -> int:
    from ottla.cli.connecting import run as run_on_loop

    return run_on_loop(_cancel(options))


async def _cancel(options: argparse.Namespace) -> int:
    from ottla.cli.connecting import admin
    from ottla.cli.output import show
    from ottla.cli.plan import show_plan
    from ottla.cli.reassign.files import read

    async with admin(options) as client:
        found = await client.list_partition_reassignments(None if options.all else read(options.file))
        if not found:
            show(options.output, [], "no partition is on its way\n")
            return OK
        rows = [
            {
                "topic": tp.topic,
                "partition": tp.partition,
                "stays": [broker for broker in one.replicas if broker not in one.adding],
                "removed": list(one.adding),
            }
            for tp, one in sorted(found.items())
        ]
        columns = {"topic": "TOPIC", "partition": "PARTITION", "stays": "STAYS ON", "removed": "REMOVED FROM"}
        show_plan(options.output, "To be called off:", rows, columns, confirmed=options.yes)
        await client.alter_partition_reassignments(dict.fromkeys(found))
    return OK
