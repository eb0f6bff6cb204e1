"""Name the topics, with how many partitions and replicas each has."""

from __future__ import annotations

import argparse

from ottla.cli import options as shared
from ottla.cli.faults import OK


def arguments(parser: argparse.ArgumentParser) -> None:
    shared.connection(parser)
    parser.add_argument("--exclude-internal", action="store_true", help="leave out the cluster's own topics")
    shared.output(parser)


def run(options: argparse.Namespace) -> int:
    from ottla.cli.connecting import run as run_on_loop

    return run_on_loop(_list(options))


async def _list(options: argparse.Namespace) -> int:
    from ottla.cli.connecting import admin
    from ottla.cli.output import show_rows

    async with admin(options) as client:
        topics = await client.describe_topics()
    rows = [
        {
            "topic": topic.name,
            "partitions": len(topic.partitions),
            "replicas": max((len(each.replicas) for each in topic.partitions), default=0),
            "internal": topic.internal,
        }
        for topic in sorted(topics.values(), key=lambda topic: topic.name)
        if not (topic.internal and options.exclude_internal)
    ]
    show_rows(options.output, rows, {"topic": "TOPIC", "partitions": "PARTITIONS", "replicas": "REPLICAS"})
    return OK
