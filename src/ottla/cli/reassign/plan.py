"""Propose on which brokers partitions shall be, and change nothing. The JSON is for `ottla reassign run --file`.

It moves as little as leads to even numbers: to brokers that were added, away from those that are left out, or for more
or fewer copies.
"""

from __future__ import annotations

import argparse

from ottla.cli import options as shared
from ottla.cli.counting import are, counted
from ottla.cli.faults import OK, UsageFault
from ottla.cli.numbers import replica_count


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
        topics = await client.describe_topics(names)
    copies = options.replication_factor
    if copies is not None and copies > len(racks):
        raise UsageFault(
            f"--replication-factor {copies}: there {are(len(racks))} {counted(len(racks), 'broker')} to use"
        )
    current = {
        TopicPartition(topic.name, one.partition): one.replicas for topic in topics.values() for one in topic.partitions
    }
    wanted = placed(current, racks, copies)
    print(written({tp: replicas for tp, replicas in wanted.items() if replicas != list(current[tp])}))
    return OK
