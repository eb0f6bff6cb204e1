"""Say whether the cluster is healthy, and what is wrong if it is not. Exit code 0 or 10.

It is healthy when a controller is there, every broker that has replicas is registered and answers, every partition has
a leader, all of its replicas in sync and as many as a write with acks=all needs, and no log directory is offline. With
--exit-when-healthy it is asked again until it is, also while no broker can be reached.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any, Final

from ottla.cli import options as shared
from ottla.cli.faults import OK, UNHEALTHY, UNREACHABLE, CommandFault
from ottla.cli.numbers import seconds
from ottla.cli.topic.describe import min_isr, needed_in_sync

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
    from ottla.cli.output import show

    found = await (_healthy(options) if options.exit_when_healthy else _looked(options))
    show(options.output, found, _table(found))
    return OK if found["healthy"] else UNHEALTHY


async def _healthy(options: argparse.Namespace) -> dict[str, Any]:
    """As soon as it is; until then standard error says what is waited for, each time that this changes."""
    import asyncio
    import sys

    said = ""
    while True:
        try:
            found = await _looked(options)
        except CommandFault as fault:
            if fault.code != UNREACHABLE and not _may_pass(fault):
                raise
            lacks = str(fault).partition(";")[0]  # brokers that start, or stop in the middle of an answer
        else:
            if found["healthy"]:
                return found
            lacks = _lacks(found)
        if lacks != said:
            said = lacks
            print(f"ottla: not healthy yet ({lacks}); waiting", file=sys.stderr, flush=True)
        await asyncio.sleep(options.interval)


def _lacks(found: dict[str, Any]) -> str:
    lacks = [f"{name.replace('_', ' ')}: {len(found[name])}" for name in _NEXT if found[name]]
    return ", ".join([*([] if found["controller"] is not None else ["no controller"]), *lacks])


async def _looked(options: argparse.Namespace) -> dict[str, Any]:
    from ottla.cli.connecting import admin
    from ottla.cli.watching import watch

    async with admin(options) as client:

        async def looked() -> tuple[dict[str, Any], str]:
            found = await health(client)
            return found, _table(found)

        if options.watch and not options.exit_when_healthy:
            await watch(options.output, options.interval, looked, client.cluster)
        return await health(client)


def _may_pass(fault: CommandFault) -> bool:
    from ottla.client.errors import KafkaError

    return isinstance(fault.__cause__, KafkaError) and fault.__cause__.retriable


async def health(client: Admin) -> dict[str, Any]:
    cluster = await client.describe_cluster()
    topics = await client.describe_topics()
    needed = await _min_isrs(client, list(topics))
    partitions = [(topic.name, one) for topic in topics.values() for one in topic.partitions]
    registered = [node.id for node in cluster.brokers]
    silent, offline = await _brokers(client, registered)
    gone = {broker for _, one in partitions for broker in one.replicas}.difference(registered)
    found: dict[str, Any] = {
        "healthy": False,
        "controller": cluster.controller_id,
        "brokers": registered,
        "brokers_down": sorted({*silent, *gone}),
        "leaderless_partitions": [_name(topic, one) for topic, one in partitions if one.leader is None],
        "under_min_isr_partitions": [
            _name(topic, one)
            for topic, one in partitions
            if one.leader is not None and len(one.isr) < needed_in_sync(one, needed.get(topic, 1))
        ],
        "under_replicated_partitions": [_name(topic, one) for topic, one in partitions if _misses_replicas(one)],
        "offline_directories": offline,
    }
    found["healthy"] = cluster.controller_id is not None and not any(found[name] for name in _NEXT)
    return found


async def _min_isrs(client: Admin, topics: list[str]) -> dict[str, int]:
    from ottla.client.admin.results import ConfigResource
    from ottla.client.errors import SomeFailed, UnknownTopicOrPartition

    if not topics:
        return {}
    try:
        found = await client.describe_configs(
            [ConfigResource.topic(name) for name in topics], names=["min.insync.replicas"]
        )
    except SomeFailed as some:
        found = some.results  # some were deleted meanwhile
    except UnknownTopicOrPartition:  # or the only one
        return {}
    return {resource.name: min_isr(settings) for resource, settings in found.items()}


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
    "under_min_isr_partitions": "writes with acks=all are refused; `ottla topic describe --under-min-isr` shows them",
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
