"""Show how many bytes each partition takes, by broker and log directory.

Sizes are of segments, without their indexes. A replica that is being moved to another directory stands in both.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from ottla.cli import options as shared
from ottla.cli.faults import FAILED, OK, CommandFault

if TYPE_CHECKING:
    from ottla.client.admin.admin import Admin
    from ottla.client.admin.results import LogDirDescription

Row = dict[str, Any]
_COLUMNS = {"broker": "BROKER", "dir": "DIR", "topic": "TOPIC", "partition": "PARTITION", "size": "SIZE"}
#: What each choice of --aggregate-into leaves of the columns, as in rpk.
_KEYS = {"broker": ("broker",), "dir": ("broker", "dir"), "topic": ("broker", "dir", "topic")}


def arguments(parser: argparse.ArgumentParser) -> None:
    shared.topics(parser, "only these topics")
    shared.patterns(parser)
    parser.add_argument("--broker", metavar="ID,...", help="only these brokers (Kafka: --broker-list)")
    parser.add_argument("--broker-list", dest="broker", metavar="ID,...", help=argparse.SUPPRESS)
    parser.add_argument("--aggregate-into", choices=tuple(_KEYS), help="a line for each of these, with the sum")
    parser.add_argument("--sort-by-size", action="store_true", help="the largest first")
    parser.add_argument("-H", "--human-readable", action="store_true", help="in a table: sizes such as 1.5 MiB")
    shared.connection(parser)
    shared.output(parser)


def run(options: argparse.Namespace) -> int:
    from ottla.cli.connecting import run as run_on_loop

    return run_on_loop(_log_dirs(options))


async def _log_dirs(options: argparse.Namespace) -> int:
    from ottla.cli.broker_ids import broker_ids, check_brokers
    from ottla.cli.connecting import admin
    from ottla.cli.output import cell, show_rows
    from ottla.cli.sizes import ReadableSize

    brokers = None if options.broker is None else broker_ids("--broker", options.broker)
    async with admin(options) as client:
        names = await shared.chosen_topics(client, options)
        topics = await _partitions(client, names) if names else None
        if brokers is not None:
            check_brokers(await client.describe_cluster(), brokers)
        found = await client.describe_log_dirs(brokers, topics)
    rows = [row for broker, directories in sorted(found.items()) for row in _rows(broker, directories)]
    if options.aggregate_into:
        rows = _aggregated(rows, _KEYS[options.aggregate_into])
    if options.sort_by_size:
        rows.sort(key=lambda row: -row["size"])
    faulty = [(row["dir"], row["error"]) for row in rows if row.get("error")]
    rows = [row for row in rows if options.output != "table" or not row.get("error")]
    columns = {name: head for name, head in _COLUMNS.items() if not rows or name in rows[0]}
    if options.output == "table" and options.human_readable:
        rows = [{**row, "size": ReadableSize(row["size"])} for row in rows]
    show_rows(options.output, rows, columns)
    if faulty:
        message = "; ".join(f"{path}: {cell(reason)}" for path, reason in faulty)
        raise CommandFault(f"a log directory is offline: {message}", FAILED)
    return OK


async def _partitions(client: Admin, names: list[str]) -> dict[str, list[int]]:
    described = await client.describe_topics(names)
    return {name: [one.partition for one in described[name].partitions] for name in names}


def _rows(broker: int, directories: dict[str, LogDirDescription]) -> list[Row]:
    rows: list[Row] = []
    for path, directory in sorted(directories.items()):
        if directory.error is not None:
            nothing = {"topic": None, "partition": None, "size": 0}
            rows.append({"broker": broker, "dir": path, **nothing, "error": str(directory.error)})
        rows += [
            {
                "broker": broker,
                "dir": path,
                "topic": tp.topic,
                "partition": tp.partition,
                "size": replica.size,
                "offset_lag": replica.offset_lag,
                "is_future": replica.is_future,
            }
            for tp, replica in sorted(directory.replicas.items())
        ]
    return rows


def _aggregated(rows: list[Row], keys: tuple[str, ...]) -> list[Row]:
    sums: dict[tuple[Any, ...], Row] = {}
    for row in rows:
        key = tuple(row[name] for name in keys)
        one = sums.setdefault(key, {**{name: row[name] for name in keys}, "size": 0})
        one["size"] += row["size"]
        if row.get("error"):
            one["error"], one["dir"] = row["error"], row["dir"]
    return list(sums.values())
