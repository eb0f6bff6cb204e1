"""Show the cluster: its id, its brokers, which of them is the controller, and how much is in it."""

from __future__ import annotations

import argparse

from ottla.cli import options as shared
from ottla.cli.faults import OK


def arguments(parser: argparse.ArgumentParser) -> None:
    shared.connection(parser)
    shared.output(parser)


def run(options: argparse.Namespace) -> int:
    from ottla.cli.connecting import run as run_on_loop

    return run_on_loop(_describe(options))


async def _describe(options: argparse.Namespace) -> int:
    from ottla.cli.connecting import admin
    from ottla.cli.output import show, table_of

    async with admin(options) as client:
        cluster = await client.describe_cluster()
        topics = await client.describe_topics()
    partitions = [partition for topic in topics.values() for partition in topic.partitions]
    brokers = [
        {
            "id": node.id,
            "host": node.host,
            "port": node.port,
            "rack": node.rack,
            "controller": node.id == cluster.controller_id,
            "leads": sum(partition.leader == node.id for partition in partitions),
            "replicas": sum(node.id in partition.replicas for partition in partitions),
        }
        for node in cluster.brokers
    ]
    data = {
        "cluster_id": cluster.cluster_id,
        "controller": cluster.controller_id,
        "topics": len(topics),
        "partitions": len(partitions),
        "leaderless": sum(partition.leader is None for partition in partitions),
        "under_replicated": sum(len(partition.isr) < len(partition.replicas) for partition in partitions),
        "brokers": brokers,
    }
    head = "".join(f"{name.replace('_', ' '):<17} {data[name]}\n" for name in data if name != "brokers")
    columns = {name: name.upper() for name in ("id", "host", "port", "rack", "controller", "leads", "replicas")}
    show(options.output, data, f"{head}\n{table_of(brokers, columns)}")
    return OK
