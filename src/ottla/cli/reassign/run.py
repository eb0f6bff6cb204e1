"""Begin to move partitions to other brokers, as a file of `ottla reassign plan` says.

Without --yes it shows what would be moved. The moves go on in the cluster: `ottla reassign status` shows them. A
partition on its way elsewhere goes to the new place from where it is.
"""

from __future__ import annotations

import argparse

from ottla.cli import options as shared
from ottla.cli.faults import OK


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--file", metavar="FILE", required=True, help="where partitions shall be")
    shared.confirmation(parser)
    shared.connection(parser)
    shared.output(parser)


def run(options: argparse.Namespace) -> int:
    from ottla.cli.connecting import run as run_on_loop

    return run_on_loop(_run(options))


async def _run(options: argparse.Namespace) -> int:
    from ottla.cli.broker_ids import check_brokers
    from ottla.cli.connecting import admin
    from ottla.cli.group.partitions import PartitionChoice, existing
    from ottla.cli.output import show
    from ottla.cli.plan import show_plan
    from ottla.cli.reassign.files import read
    from ottla.model import TopicPartition

    wanted = read(options.file)
    if not wanted:
        show(options.output, [], f"{options.file} names no partition: nothing has to be moved\n")
        return OK
    async with admin(options) as client:
        check_brokers(await client.describe_cluster(), (broker for replicas in wanted.values() for broker in replicas))
        moved = await existing(client, [PartitionChoice(tp.topic, (tp.partition,)) for tp in sorted(wanted)])
        now = {
            TopicPartition(topic.name, one.partition): list(one.replicas)
            for topic in (await client.describe_topics(sorted({tp.topic for tp in moved}))).values()
            for one in topic.partitions
        }
        rows = [
            {"topic": tp.topic, "partition": tp.partition, "replicas": now[tp], "wanted": wanted[tp]} for tp in moved
        ]
        columns = {"topic": "TOPIC", "partition": "PARTITION", "replicas": "REPLICAS", "wanted": "WANTED"}
        show_plan(options.output, "To be moved:", rows, columns, confirmed=options.yes)
        await client.alter_partition_reassignments(wanted)
    return OK
