"""Have leaders elected. Exit code 0 where each partition has the leader that was asked for by now.

--preferred: the first assigned replica, where it is in sync. --unclean: any replica that is there, for partitions
without a leader; what the lost ones had and it has not is gone, so it needs --yes.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from ottla.cli import options as shared
from ottla.cli.faults import FAILED, OK, UsageFault

if TYPE_CHECKING:
    from ottla.client.errors import KafkaError
    from ottla.model import TopicPartition


def arguments(parser: argparse.ArgumentParser) -> None:
    kind = parser.add_mutually_exclusive_group(required=True)
    kind.add_argument("--preferred", action="store_true", help="the first assigned replicas")
    kind.add_argument("--unclean", action="store_true", help="any replica that is there; records may be lost")
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("--all", action="store_true", help="of all partitions that need it")
    which.add_argument(
        "--topic", metavar="TOPIC[:N,...]", action="append", dest="wanted", help="of this topic, or of these partitions"
    )
    shared.confirmation(parser)
    shared.connection(parser)
    shared.output(parser)


def run(options: argparse.Namespace) -> int:
    from ottla.cli.connecting import run as run_on_loop

    if options.unclean and not options.yes:
        raise UsageFault("--unclean may lose records for good; add --yes to do this")
    return run_on_loop(_elect(options))


async def _elect(options: argparse.Namespace) -> int:
    from ottla.cli.connecting import admin
    from ottla.cli.output import show_rows
    from ottla.client.admin.results import ElectionKind
    from ottla.model import ErrorCode, TopicPartition

    async with admin(options) as client:
        asked = None
        if not options.all:
            asked = []
            for topic, numbers in map(_partitions, options.wanted):
                described = await client.describe_topic(topic)
                asked += [TopicPartition(topic, number) for number in numbers or range(len(described.partitions))]
        kind = ElectionKind.UNCLEAN if options.unclean else ElectionKind.PREFERRED
        results = await client.elect_leaders(kind, asked)
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


def _partitions(text: str) -> tuple[str, list[int]]:
    topic, colon, numbers = text.partition(":")
    shared.check_name(topic)
    if not colon:
        return topic, []
    if not all(number.isdecimal() for number in numbers.split(",")):
        raise UsageFault(f"--topic {text}: give partitions as numbers, such as {topic}:0,1")
    return topic, [int(number) for number in numbers.split(",")]
