"""Partitions as Kafka's script takes them: `--topic orders` for all of a topic, `--topic orders:0,1` for two."""

from __future__ import annotations

import argparse
from collections.abc import Collection
from typing import TYPE_CHECKING, NamedTuple

from ottla.cli.faults import NOT_FOUND, CommandFault, UsageFault
from ottla.cli.parser import completed_by

if TYPE_CHECKING:
    from ottla.client.admin.admin import Admin
    from ottla.model import TopicPartition

PARTITION_MAX = 2**31 - 1


class PartitionChoice(NamedTuple):
    topic: str
    #: None for all.
    partitions: tuple[int, ...] | None


def arguments(parser: argparse._ActionsContainer, what: str) -> None:
    from ottla.cli.completing import topic_names

    action = parser.add_argument(
        "--topic", dest="topics", metavar="TOPIC[:N,...]", action="append", default=[], help=what
    )
    completed_by(action, topic_names)


def chosen(options: argparse.Namespace) -> list[PartitionChoice]:
    return [_parsed(text) for text in dict.fromkeys(options.topics)]


def _parsed(text: str) -> PartitionChoice:
    topic, colon, listed = text.partition(":")
    numbers = [number.strip() for number in listed.split(",")]
    plausible = all(number.isascii() and number.isdigit() and int(number[:11]) <= PARTITION_MAX for number in numbers)
    if not topic or (colon and not plausible):
        raise UsageFault(f"--topic: '{text}' is neither TOPIC nor TOPIC:N,N")
    return PartitionChoice(topic, tuple(dict.fromkeys(map(int, numbers))) if colon else None)


async def existing(client: Admin, wanted: Collection[PartitionChoice]) -> list[TopicPartition]:
    """All of them, in order; raises where a topic or partition does not exist."""
    from ottla.cli.counting import counted
    from ottla.model import TopicPartition

    described = await client.describe_topics(list(dict.fromkeys(one.topic for one in wanted)))
    found: dict[TopicPartition, None] = {}
    for one in wanted:
        known = [each.partition for each in described[one.topic].partitions]
        for number in one.partitions or ():
            if number not in known:
                raise CommandFault(f"{one.topic} has {counted(len(known), 'partition')}, and no {number}", NOT_FOUND)
        found.update(dict.fromkeys(TopicPartition(one.topic, each) for each in one.partitions or known))
    return sorted(found)


def among(partitions: Collection[TopicPartition], wanted: Collection[PartitionChoice]) -> list[TopicPartition]:
    """Those of `partitions` that were chosen: also of topics that are no more."""
    return sorted(
        tp
        for tp in partitions
        if any(tp.topic == one.topic and (one.partitions is None or tp.partition in one.partitions) for one in wanted)
    )
