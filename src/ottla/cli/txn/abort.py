"""End a transaction that hangs in a partition: its leader writes the marker that no coordinator will write.

The transaction is named by the offset at which it begins, as `ottla txn find-hanging` shows it, or by its producer.
Prints what would be aborted, and does it with --yes. A transaction that its coordinator still knows is not for this: it
ends by its time-out.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from ottla.cli import options as shared
from ottla.cli.faults import NOT_FOUND, OK, CommandFault, UsageFault
from ottla.cli.numbers import offset_number, partition_number
from ottla.cli.txn.find_hanging import COLUMNS, row

if TYPE_CHECKING:
    from ottla.client.admin.transaction_results import OpenTransaction
    from ottla.model import TopicPartition


def arguments(parser: argparse.ArgumentParser) -> None:
    shared.topic(parser)
    parser.add_argument("-p", "--partition", type=partition_number, metavar="N", help="the partition that it hangs in")
    parser.add_argument("--start-offset", type=offset_number, metavar="OFFSET", help="where it begins there")
    parser.add_argument("--producer-id", type=offset_number, metavar="ID", help="instead: whose it is")
    parser.add_argument("--producer-epoch", type=partition_number, metavar="EPOCH", help="with --producer-id")
    parser.add_argument(
        "--coordinator-epoch",
        type=partition_number,
        metavar="EPOCH",
        help="with --producer-id (default: as it is known)",
    )
    shared.connection(parser)
    shared.confirmation(parser)
    shared.output(parser)


def run(options: argparse.Namespace) -> int:
    from ottla.cli.connecting import run as run_on_loop

    return run_on_loop(_abort(options))


async def _abort(options: argparse.Namespace) -> int:
    from ottla.cli.connecting import admin
    from ottla.cli.plan import show_plan
    from ottla.model import TopicPartition

    topic = shared.topic_of(options)
    if options.partition is None:
        raise UsageFault("--partition is missing")
    if (options.start_offset is None) == (options.producer_id is None):
        raise UsageFault("say which one: --start-offset OFFSET, or --producer-id ID")
    if options.producer_id is None and (options.producer_epoch, options.coordinator_epoch) != (None, None):
        raise UsageFault("--producer-epoch and --coordinator-epoch belong to --producer-id")
    partition = TopicPartition(topic, options.partition)
    async with admin(options) as client:
        found = _chosen(await client.open_transactions([partition]), partition, options)
        now_ms = client.cluster.world.clock.wall_ms()
        show_plan(options.output, "to be aborted:", [row(found, now_ms)], COLUMNS, confirmed=options.yes)
        epoch = options.coordinator_epoch if options.coordinator_epoch is not None else found.coordinator_epoch
        await client.abort_transaction(partition, found.producer_id, found.producer_epoch, epoch or 0)
    if options.output == "table":
        print("aborted")
    return OK


def _chosen(there: list[OpenTransaction], partition: TopicPartition, options: argparse.Namespace) -> OpenTransaction:
    for one in there:
        if options.start_offset is not None:
            if one.start_offset == options.start_offset:
                return one
        elif one.producer_id == options.producer_id and options.producer_epoch in {None, one.producer_epoch}:
            return one
    named = ", ".join(f"of producer {one.producer_id} from {one.start_offset} on" for one in there) or "none"
    raise CommandFault(f"{partition}: no such transaction is open there; open are: {named}", NOT_FOUND)
