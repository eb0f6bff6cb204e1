"""Say whether the cluster is healthy, and what is wrong if it is not. Exit code 0 or 10.

It is healthy when a controller is there, every broker answers, every partition has a leader and all of its replicas in
sync, and no log directory is offline.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any, Final

from ottla.cli import options as shared
from ottla.cli.faults import OK, UNHEALTHY
from ottla.cli.numbers import seconds

if TYPE_CHECKING:
    from ottla.client.admin.admin import Admin
    from ottla.client.admin.results import PartitionDescription

#: Partitions that a table names of each kind.
_NAMED_MAX: Final = 5
#: A broker that takes longer to answer does not answer: a person waits.
_ANSWER_MS_MAX: Final = 3_000


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-w", "--watch", action="store_true", help="say it again and again, until Ctrl-C")
    parser.add_argument("-e", "--exit-when-healthy", action="store_true", help="wait until it is, and end with 0")
    parser.add_argument("--interval", type=seconds, metavar="SECONDS", default=2.0, help="between two looks (2)")
    shared.connection(parser)
    shared.output(parser)


def run(options: argparse.Namespace) -> int:
    from ottla.cli.connecting import run as run_on_loop

    return run_on_loop(_health(options))


async def _health(options: argparse.Namespace) -> int:
    import asyncio

    from ottla.cli.connecting import admin
    from ottla.cli.output import show
    from ottla.cli.watching import watch

    async with admin(options) as client:

        async def looked() -> tuple[dict[str, Any], str]:
            found = await health(client)
            return found, _table(found)

        if options.watch and not options.exit_when_healthy:
            await watch(options.output, options.interval, looked, client.cluster)
        found, table = await looked()
        while options.exit_when_healthy and not found["healthy"]:
            await asyncio.sleep(options.interval)
            found, table = await looked()
    show(options.output, found, table)
    return OK if found["healthy"] else UNHEALTHY


async def health(client: Admin) -> dict[str, Any]:
    cluster = await client.describe_cluster()
    topics = await client.describe_topics()
    partitions = [(topic.name, one) for topic in topics.values() for one in topic.partitions]
    silent, offline = await _brokers(client, [node.id for node in cluster.brokers])
    found: dict[str, Any] = {
        "healthy": False,
        "controller": cluster.controller_id,
        "brokers": [node.id for node in cluster.brokers],
        "brokers_down": silent,
        "leaderless_partitions": [_name(topic, one) for topic, one in partitions if one.leader is None],
        "under_replicated_partitions": [_name(topic, one) for topic, one in partitions if _misses_replicas(one)],
        "offline_directories": offline,
    }
    wrong = ("brokers_down", "leaderless_partitions", "under_replicated_partitions", "offline_directories")
    found["healthy"] = cluster.controller_id is not None and not any(found[name] for name in wrong)
    return found


def _misses_replicas(partition: PartitionDescription) -> bool:
    return partition.leader is not None and len(partition.isr) < len(partition.replicas)


def _name(topic: str, partition: PartitionDescription) -> str:
    return f"{topic}-{partition.partition}"


async def _brokers(client: Admin, ids: list[int]) -> tuple[list[int], list[str]]:
    """Those that do not answer, and the log directories that are offline on the others."""
    import asyncio

    from ottla.client.errors import KafkaError

    silent: list[int] = []
    offline: list[str] = []
    for broker in ids:
        try:
            async with asyncio.timeout(_ANSWER_MS_MAX / 1000):
                directories = (await client.describe_log_dirs([broker]))[broker]
        except (KafkaError, TimeoutError):
            silent.append(broker)
            continue
        offline += [f"{broker}:{path}" for path, one in sorted(directories.items()) if one.error is not None]
    return silent, offline


_NEXT = {
    "brokers_down": "start them, or look at their logs",
    "leaderless_partitions": "their brokers are down, or the log directories are offline; `ottla topic describe "
    "--unavailable` shows them",
    "under_replicated_partitions": "a follower is down or slow; `ottla topic describe --under-replicated` shows them",
    "offline_directories": "mend the disk and start the broker again; its log says what was wrong",
}


def _table(found: dict[str, Any]) -> str:
    from ottla.cli.output import cell

    lines = [f"healthy: {'yes' if found['healthy'] else 'no'}"]
    controller = found["controller"]
    lines.append(
        f"controller: {'none; the brokers are electing one, or none can be' if controller is None else controller}"
    )
    lines.append(f"brokers: {cell(found['brokers'])}")
    for name, advice in _NEXT.items():
        listed = found[name]
        if listed:
            more = f" and {len(listed) - _NAMED_MAX} more" if len(listed) > _NAMED_MAX else ""
            named = ", ".join(map(str, listed[:_NAMED_MAX]))
            lines.append(f"{name.replace('_', ' ')}: {len(listed)} ({named}{more}): {advice}")
    return "".join(f"{line}\n" for line in lines)
