"""Find transactions that hang: open in a partition for longer than any may be, and unknown to every coordinator.

Readers of committed records stand before such a one for ever. It is looked for in the partitions of --topic, in those
that --broker leads, or in all; `ottla txn abort` ends what is found.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from ottla.cli import options as shared
from ottla.cli.faults import NOT_FOUND, OK, CommandFault, UsageFault
from ottla.cli.numbers import offset_number, partition_number

if TYPE_CHECKING:
    from ottla.client.admin.admin import Admin
    from ottla.client.admin.transaction_results import OpenTransaction
    from ottla.model import TopicPartition

#: In minutes: Kafka's default of `transaction.max.timeout.ms`.
TIMEOUT_MAX = 15

COLUMNS = {
    "topic": "TOPIC",
    "partition": "PARTITION",
    "producer_id": "PRODUCER",
    "producer_epoch": "EPOCH",
    "coordinator_epoch": "COORDINATOR EPOCH",
    "start_offset": "START",
    "last_timestamp": "LAST WRITTEN",
    "duration_minutes": "MINUTES",
}


def arguments(parser: argparse.ArgumentParser) -> None:
    shared.topics(parser, "the topics; all where none is named")
    parser.add_argument("--partition", type=partition_number, metavar="N", help="only this partition of the topic")
    parser.add_argument(
        "--broker", "--broker-id", type=partition_number, metavar="ID", help="only partitions that this broker leads"
    )
    parser.add_argument(
        "--max-transaction-timeout",
        type=offset_number,
        metavar="MINUTES",
        default=TIMEOUT_MAX,
        help=f"how long a transaction may be open ({TIMEOUT_MAX})",
    )
    shared.connection(parser)
    shared.output(parser)


def run(options: argparse.Namespace) -> int:
    from ottla.cli.connecting import run as run_on_loop

    return run_on_loop(_find(options))


async def _find(options: argparse.Namespace) -> int:
    from ottla.cli.connecting import admin
    from ottla.cli.output import show_rows

    topics = shared.topics_of(options)
    if options.partition is not None and len(topics) != 1:
        raise UsageFault("--partition belongs to one topic: give TOPIC")
    async with admin(options) as client:
        partitions = await _partitions(client, topics, options)
        found = await client.find_hanging_transactions(
            partitions, max_transaction_timeout_ms=min(options.max_transaction_timeout * 60_000, 2**31 - 1)
        )
        now_ms = client.cluster.world.clock.wall_ms()
    show_rows(options.output, [row(one, now_ms) for one in found], COLUMNS)
    return OK


async def _partitions(client: Admin, topics: list[str], options: argparse.Namespace) -> list[TopicPartition]:
    from ottla.cli.broker_ids import check_brokers
    from ottla.model import TopicPartition

    if options.broker is not None:
        check_brokers(await client.describe_cluster(), [options.broker])
    described = await client.describe_topics(topics or None)
    found = [
        TopicPartition(name, one.partition)
        for name, topic in described.items()
        for one in topic.partitions
        if one.leader is not None
        and options.partition in {None, one.partition}
        and options.broker in {None, one.leader}
    ]
    if options.partition is not None and options.broker is None and not found:
        raise CommandFault(f"{topics[0]} has no partition {options.partition} that is led", NOT_FOUND)
    return found


def row(one: OpenTransaction, now_ms: int) -> dict[str, Any]:
    return {
        "topic": one.partition.topic,
        "partition": one.partition.partition,
        "producer_id": one.producer_id,
        "producer_epoch": one.producer_epoch,
        "coordinator_epoch": one.coordinator_epoch,
        "start_offset": one.start_offset,
        "last_timestamp": one.last_timestamp,
        "duration_minutes": max(0, now_ms - one.last_timestamp) // 60_000,
    }
