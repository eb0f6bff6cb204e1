"""Create topics, all of them alike. Numbers that are not given are the broker's defaults."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from ottla.cli import options as shared
from ottla.cli.broker_ids import BROKER_ID_MAX
from ottla.cli.faults import OK, UsageFault
from ottla.cli.numbers import partition_count, replica_count

if TYPE_CHECKING:
    from ottla.client.admin.results import CreatedTopic


def arguments(parser: argparse.ArgumentParser) -> None:
    shared.topics(parser, "the topics")
    shared.connection(parser)
    parser.add_argument("-p", "--partitions", type=partition_count, metavar="N", help="how many partitions")
    parser.add_argument(
        "-r", "--replication-factor", "--replicas", type=replica_count, metavar="N", help="how many replicas of each"
    )
    parser.add_argument(
        "--replica-assignment",
        metavar="IDS,...",
        help="instead of both: each partition's brokers, such as 1:2,2:3 for two partitions",
    )
    parser.add_argument(
        "-c",
        "--config",
        "--topic-config",
        dest="config",
        metavar="NAME=VALUE",
        action="append",
        default=[],
        help="override a setting; may be given again",
    )
    parser.add_argument("--if-not-exists", action="store_true", help="do not fail if the topic exists already")
    parser.add_argument("--dry-run", action="store_true", help="let the broker check it, and create nothing")
    shared.output(parser)


def run(options: argparse.Namespace) -> int:
    from ottla.cli.connecting import run as run_on_loop

    return run_on_loop(_create(options))


async def _create(options: argparse.Namespace) -> int:
    from ottla.cli.assignments import assignments
    from ottla.cli.connecting import admin
    from ottla.cli.output import show
    from ottla.client.admin.results import NewTopic
    from ottla.client.errors import KafkaError, SomeFailed, TopicAlreadyExists

    placed = replica_assignment(options.replica_assignment)
    if placed and (options.partitions is not None or options.replication_factor is not None):
        raise UsageFault("--replica-assignment says it all: leave out --partitions and --replication-factor")
    configs = assignments("--config", options.config)
    new = [
        NewTopic(name, options.partitions or -1, options.replication_factor or -1, configs, dict(enumerate(placed)))
        for name in _names(options)
    ]
    there: set[str] = set()
    async with admin(options) as client:
        try:
            created = await client.create_topics(new, validate_only=options.dry_run)
        except KafkaError as error:
            errors = error.errors if isinstance(error, SomeFailed) else {new[0].name: error}
            there = {name for name, one in errors.items() if isinstance(one, TopicAlreadyExists)}
            if not options.if_not_exists or len(there) < len(errors):
                if isinstance(error, SomeFailed):
                    made = [_created(one, options) for one in error.results.values()]
                    if options.output == "table":
                        _show(options, made)
                    else:
                        show(options.output, made, "")
                raise
            created = error.results if isinstance(error, SomeFailed) else {}
    rows = [
        {"topic": one.name, "created": False, "exists": True}
        if one.name in there
        else _created(created[one.name], options)
        for one in new
    ]
    if options.output == "table":
        _show(options, rows)
    else:
        show(options.output, rows if len(rows) > 1 else rows[0], "")
    return OK


def _names(options: argparse.Namespace) -> list[str]:
    names = shared.topics_of(options)
    if not names:
        raise UsageFault("a topic is missing: give TOPIC or --topic TOPIC")
    for name in names:
        shared.check_name(name)
    return names


def _created(topic: CreatedTopic, options: argparse.Namespace) -> dict[str, object]:
    return {
        "topic": topic.name,
        "created": not options.dry_run,
        "partitions": topic.partitions,
        "replicas": topic.replication_factor,
    }


def _show(options: argparse.Namespace, rows: list[dict[str, object]]) -> None:
    """As people read it."""
    done = "could be created" if options.dry_run else "created"
    if options.output == "table":
        for row in rows:
            if "exists" in row:
                print(f"{row['topic']} exists already")
            else:
                print(f"{done} {row['topic']}, partitions: {row['partitions']}")


def replica_assignment(text: str | None) -> list[list[int]]:
    """`1:2,2:3` as rows of broker ids, one a partition."""
    if text is None:
        return []
    try:
        rows = [[int(broker) for broker in row.split(":")] for row in text.split(",")]
    except ValueError:
        raise UsageFault(f"--replica-assignment: '{text}' is not made like 1:2,2:3") from None
    for broker in (broker for row in rows for broker in row):
        if not 0 <= broker <= BROKER_ID_MAX:
            raise UsageFault(f"--replica-assignment: brokers' ids are from 0 to {BROKER_ID_MAX}, not {broker}")
    return rows
