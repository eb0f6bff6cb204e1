"""Propose on which brokers partitions shall be, and change nothing. The JSON is for `ottla reassign run --file`.

It moves as little as leads to even numbers: to brokers that were added, away from those that are left out, or for more
or fewer copies, which only --replication-factor asks for. What is on its way counts as being where it goes.
"""

from __future__ import annotations

import argparse
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from ottla.cli import options as shared
from ottla.cli.counting import are, counted
from ottla.cli.faults import OK, CommandFault, UsageFault
from ottla.cli.numbers import replica_count

if TYPE_CHECKING:
    from ottla.client.admin.results import Reassignment


def arguments(parser: argparse.ArgumentParser) -> None:
    shared.topics(parser, "the topics; all of them where none is named")
    shared.patterns(parser)
    parser.add_argument("--broker-list", metavar="ID,...", help="use these brokers alone (default: all that are there)")
    parser.add_argument(
        "--replication-factor", type=replica_count, metavar="N", help="have so many copies of each partition"
    )
    shared.connection(parser)


def run(options: argparse.Namespace) -> int:
    from ottla.cli.connecting import run as run_on_loop

    return run_on_loop(_plan(options))


async def _plan(options: argparse.Namespace) -> int:
    from ottla.cli.broker_ids import broker_ids, check_brokers
    from ottla.cli.connecting import admin
    from ottla.cli.reassign.files import written
    from ottla.cli.reassign.placing import placed
    from ottla.model import TopicPartition

    wanted_brokers = None if options.broker_list is None else broker_ids("--broker-list", options.broker_list)
    async with admin(options) as client:
        cluster = await client.describe_cluster()
        racks = {node.id: node.rack for node in cluster.brokers}
        if wanted_brokers is not None:
            check_brokers(cluster, wanted_brokers)
            racks = {broker: racks[broker] for broker in wanted_brokers}
        names = await shared.chosen_topics(client, options) if shared.topics_of(options) else None
        # Before the topics: a move that ends in between is then seen to have ended.
        under_way = await client.list_partition_reassignments()
        topics = await client.describe_topics(names)
    copies = options.replication_factor
    if copies is not None and copies > len(racks):
        raise UsageFault(
            f"--replication-factor {copies}: there {are(len(racks))} {counted(len(racks), 'broker')} to use"
        )
    current = {
        tp: destined(one.replicas, under_way.get(tp))
        for topic in topics.values()
        for one in topic.partitions
        for tp in (TopicPartition(topic.name, one.partition),)
    }
    if copies is None:
        refuse_fewer_copies(current.values(), len(racks))
    wanted = placed(current, racks, copies)
    print(written({tp: replicas for tp, replicas in wanted.items() if replicas != list(current[tp])}))
    return OK


def destined(replicas: Sequence[int], move: Reassignment | None) -> Sequence[int]:
    """Where a partition is once its move has ended: until then those that give it away count among its replicas."""
    if move is None or {*move.replicas} != {*replicas}:
        return replicas
    return [broker for broker in replicas if broker not in move.removing]


def refuse_fewer_copies(placements: Collection[Sequence[int]], brokers: int) -> None:
    """A broker that is down for an hour must not cost a copy: fewer are for --replication-factor to ask for."""
    sizes = [len(replicas) for replicas in placements]
    copies = max(sizes, default=0)
    if copies > brokers:
        number = sizes.count(copies)
        have = "has" if number == 1 else "have"
        raise CommandFault(
            f"{counted(number, 'partition')} {have} {copies} copies, and there {are(brokers)} "
            f"{counted(brokers, 'broker')} to use: --replication-factor {brokers} takes copies away"
        )
