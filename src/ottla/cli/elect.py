"""Have leaders elected. Exit code 0 where each partition has the leader that was asked for by now.

--preferred: the first assigned replica, where it is in sync. --unclean: any replica that is there, for partitions
without a leader; what the lost ones had and it has not is gone, so that without --yes these partitions are only shown.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Final

from ottla.cli import options as shared
from ottla.cli.faults import FAILED, OK
from ottla.cli.group import partitions

if TYPE_CHECKING:
    from collections.abc import Collection

    from ottla.client.admin.admin import Admin
    from ottla.client.errors import KafkaError
    from ottla.model import TopicPartition

_UNCLEAN: Final = "Nobody leads these. Any replica that is there will, and what it has not is gone:"
_PLAN: Final = {"topic": "TOPIC", "partition": "PARTITION", "replicas": "REPLICAS", "isr": "IN SYNC LAST"}


def arguments(parser: argparse.ArgumentParser) -> None:
    kind = parser.add_mutually_exclusive_group(required=True)
    kind.add_argument("--preferred", action="store_true", help="the first assigned replicas")
    kind.add_argument("--unclean", action="store_true", help="any replica that is there; records may be lost")
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("--all", action="store_true", help="of all partitions that need it")
    partitions.arguments(which, "of this topic, or of these partitions")
    parser.add_argument("--yes", action="store_true", help="do it; --unclean only shows its plan without this")
    shared.connection(parser)
    shared.output(parser)


def run(options: argparse.Namespace) -> int:
    from ottla.cli.connecting import run as run_on_loop

    for one in partitions.chosen(options):
        shared.check_name(one.topic)
    return run_on_loop(_elect(options))


async def _elect(options: argparse.Namespace) -> int:
    from ottla.cli.connecting import admin
    from ottla.cli.output import show_rows
    from ottla.client.admin.results import ElectionKind
    from ottla.model import ErrorCode

    async with admin(options) as client:
        asked = None if options.all else await partitions.existing(client, partitions.chosen(options))
        if options.unclean:
            asked = await _planned(client, asked, options)
        kind = ElectionKind.UNCLEAN if options.unclean else ElectionKind.PREFERRED
        results = {} if asked == [] else await client.elect_leaders(kind, asked)
    if not results and options.output == "table":
        print("each partition has a leader" if options.unclean else "each partition has its preferred leader")
        return OK
    failed = [error for error in results.values() if error and error.code != ErrorCode.ELECTION_NOT_NEEDED]
    rows = [{"topic": tp.topic, "partition": tp.partition, "result": _said(tp, results)} for tp in sorted(results)]
    show_rows(options.output, rows, {"topic": "TOPIC", "partition": "PARTITION", "result": "RESULT"})
    return FAILED if failed else OK


def _said(tp: TopicPartition, results: dict[TopicPartition, KafkaError | None]) -> str:
    from ottla.model import ErrorCode

    error = results[tp]
    if error is None:
        return "elected"
    return "leads already" if error.code == ErrorCode.ELECTION_NOT_NEEDED else str(error)


async def _planned(
    client: Admin, asked: Collection[TopicPartition] | None, options: argparse.Namespace
) -> list[TopicPartition]:
    """Those of the partitions, or of all, that nobody leads; returns only if they are to be elected for."""
    from ottla.cli.plan import show_plan
    from ottla.model import TopicPartition

    topics = await client.describe_topics(None if asked is None else sorted({tp.topic for tp in asked}))
    found = sorted(
        (TopicPartition(topic.name, one.partition), list(one.replicas), list(one.isr))
        for topic in topics.values()
        for one in topic.partitions
        if one.leader is None and (asked is None or TopicPartition(topic.name, one.partition) in asked)
    )
    rows = [
        {"topic": tp.topic, "partition": tp.partition, "replicas": replicas, "isr": isr} for tp, replicas, isr in found
    ]
    # One document is enough for a program, and what it wants is what became of them.
    if rows and (options.output == "table" or not options.yes):
        show_plan(options.output, _UNCLEAN, rows, _PLAN, confirmed=options.yes)
    return [tp for tp, _, _ in found]
