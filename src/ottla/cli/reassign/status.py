"""Show the moves of partitions that are under way: who has them, who is to get them, who gives them up."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from ottla.cli import options as shared
from ottla.cli.faults import OK
from ottla.cli.numbers import seconds

if TYPE_CHECKING:
    from ottla.client.admin.admin import Admin

_COLUMNS = {
    "topic": "TOPIC",
    "partition": "PARTITION",
    "replicas": "REPLICAS",
    "adding": "ADDING",
    "removing": "REMOVING",
}


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--file", metavar="FILE", help="of the partitions in this file alone")
    parser.add_argument("-w", "--watch", action="store_true", help="show it again and again, until Ctrl-C")
    parser.add_argument("--interval", type=seconds, metavar="SECONDS", default=2.0, help="between two looks (2)")
    shared.connection(parser)
    shared.output(parser)


def run(options: argparse.Namespace) -> int:
    from ottla.cli.connecting import run as run_on_loop

    return run_on_loop(_status(options))


async def _status(options: argparse.Namespace) -> int:
    from ottla.cli.connecting import admin
    from ottla.cli.output import show
    from ottla.cli.watching import watch

    async with admin(options) as client:

        async def looked() -> tuple[list[dict[str, Any]], str]:
            return await _under_way(client, options.file)

        if options.watch:
            await watch(options.output, options.interval, looked, client.cluster)
        rows, table = await looked()
    show(options.output, rows, table)
    return OK


async def _under_way(client: Admin, file: str | None) -> tuple[list[dict[str, Any]], str]:
    from ottla.cli.output import table_of
    from ottla.cli.reassign.files import read

    found = await client.list_partition_reassignments(None if file is None else read(file))
    rows = [
        {
            "topic": tp.topic,
            "partition": tp.partition,
            "replicas": list(one.replicas),
            "adding": list(one.adding),
            "removing": list(one.removing),
        }
        for tp, one in sorted(found.items())
    ]
    return rows, table_of(rows, _COLUMNS) if rows else "no partition is on its way\n"
