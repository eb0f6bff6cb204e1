"""Create a topic. Numbers that are not given are the broker's defaults."""

from __future__ import annotations

import argparse

from ottla.cli import options as shared
from ottla.cli.faults import OK, UsageFault
from ottla.cli.numbers import partition_count, replica_count


def arguments(parser: argparse.ArgumentParser) -> None:
    shared.topic(parser)
    shared.connection(parser)
    parser.add_argument("--partitions", type=partition_count, metavar="N", help="how many partitions")
    parser.add_argument("--replication-factor", type=replica_count, metavar="N", help="how many replicas of each")
    parser.add_argument(
        "--replica-assignment",
        metavar="IDS,...",
        help="instead of both: each partition's brokers, such as 1:2,2:3 for two partitions",
    )
    parser.add_argument(
        "--config", metavar="NAME=VALUE", action="append", default=[], help="override a setting; may be given again"
    )
    parser.add_argument("--if-not-exists", action="store_true", help="be content if the topic exists already")
    parser.add_argument("--dry-run", action="store_true", help="let the broker check it, and create nothing")
    shared.output(parser)


def run(options: argparse.Namespace) -> int:
    from ottla.cli.connecting import run as run_on_loop

    return run_on_loop(_create(options))


async def _create(options: argparse.Namespace) -> int:
    from ottla.cli.assignments import assignments
    from ottla.cli.connecting import admin
    from ottla.client.admin.results import NewTopic
    from ottla.client.errors import TopicAlreadyExists

    placed = replica_assignment(options.replica_assignment)
    if placed and (options.partitions is not None or options.replication_factor is not None):
        raise UsageFault("--replica-assignment says it all: leave out --partitions and --replication-factor")
    new = NewTopic(
        shared.topic_of(options),
        options.partitions or -1,
        options.replication_factor or -1,
        assignments("--config", options.config),
        dict(enumerate(placed)),
    )
    async with admin(options) as client:
        try:
            created = (await client.create_topics([new], validate_only=options.dry_run))[new.name]
        except TopicAlreadyExists:
            if not options.if_not_exists:
                raise
            _show(options, {"topic": new.name, "created": False}, f"{new.name} exists already")
            return OK
    done = "could be created" if options.dry_run else "created"
    shown = {
        "topic": created.name,
        "created": not options.dry_run,
        "partitions": created.partitions,
        "replicas": created.replication_factor,
    }
    _show(options, shown, f"{done} {created.name}, partitions: {created.partitions}")
    return OK


def _show(options: argparse.Namespace, data: dict[str, object], line: str) -> None:
    from ottla.cli.output import show

    show(options.output, data, f"{line}\n")


def replica_assignment(text: str | None) -> list[list[int]]:
    """`1:2,2:3` as rows of broker ids, one a partition."""
    if text is None:
        return []
    try:
        rows = [[int(broker) for broker in row.split(":")] for row in text.split(",")]
    except ValueError:
        raise UsageFault(f"--replica-assignment: '{text}' is not made like 1:2,2:3") from None
    if any(broker < 0 for row in rows for broker in row):
        raise UsageFault("--replica-assignment: broker ids are not negative")
    return rows
