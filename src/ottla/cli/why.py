"""Say how a partition came to be as it is, and what is wrong with it now, with the next step. Exit code 0 or 10.

The past is what the brokers have seen since they were started: who led, under which leader epoch, who was in sync.
Where leaderships began in the log is there as far back as the log.

ottla why orders 0
"""

from __future__ import annotations

import argparse
import time
from typing import TYPE_CHECKING, Any, Final

from ottla.cli import options as shared
from ottla.cli.faults import NOT_FOUND, OK, UNHEALTHY, CommandFault
from ottla.cli.numbers import partition_number

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ottla.cli.why_faults import FollowerView, PartitionView
    from ottla.client.admin.admin import Admin
    from ottla.client.admin.history import SeenPartition
    from ottla.client.admin.results import ClusterDescription, PartitionDescription
    from ottla.protocol.partition_history import PartitionHistory

#: A broker that takes longer to answer does not answer: a person waits.
_ANSWER_MS_MAX: Final = 3_000
_CHANGES: Final = {"time": "TIME", "leader": "LEADER", "leader_epoch": "EPOCH", "isr": "ISR", "replicas": "REPLICAS"}
_REPLICAS: Final = {
    "broker": "BROKER",
    "role": "ROLE",
    "in_sync": "IN SYNC",
    "end": "END",
    "fetched_ms_ago": "ASKED MS AGO",
    "caught_up_ms_ago": "CAUGHT UP MS AGO",
}


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("topic", metavar="TOPIC", help="the topic")
    parser.add_argument("partition", metavar="PARTITION", type=partition_number, help="its number")
    shared.connection(parser)
    shared.output(parser)


def run(options: argparse.Namespace) -> int:
    from ottla.cli.connecting import run as run_on_loop

    shared.check_name(options.topic)
    return run_on_loop(_why(options))


async def _why(options: argparse.Namespace) -> int:
    from ottla.cli.connecting import admin
    from ottla.cli.output import show
    from ottla.cli.why_faults import faults

    async with admin(options) as client:
        view, found = await _looked(client, options.topic, options.partition)
    found["wrong"] = faults(view)
    show(options.output, found, _table(found))
    return UNHEALTHY if found["wrong"] else OK


async def _looked(client: Admin, topic: str, partition: int) -> tuple[PartitionView, dict[str, Any]]:
    from ottla.cli.counting import counted

    cluster = await client.describe_cluster()
    partitions = (await client.describe_topic(topic)).partitions
    known = next((one for one in partitions if one.partition == partition), None)
    if known is None:
        raise CommandFault(f"{topic} has {counted(len(partitions), 'partition')}, and no {partition}", NOT_FOUND)
    live = [node.id for node in cluster.brokers]
    seen, silent, failed = await _asked(client, live, topic, partition)
    view = await _view(client, cluster, known, topic, seen, silent, failed)
    found: dict[str, Any] = {
        "topic": topic,
        "partition": partition,
        "leader": view.leader,
        "leader_epoch": view.leader_epoch,
        "replicas": list(view.replicas),
        "isr": list(view.isr),
        "min_isr": view.needed,
        "controller": view.controller,
        "replica_states": [_replica(view, broker) for broker in view.replicas],
        "epochs": await _epochs(client, view),
        **_past(seen),
    }
    return view, found


async def _asked(
    client: Admin, live: list[int], topic: str, partition: int
) -> tuple[dict[int, SeenPartition], list[int], dict[int, str]]:
    """What each broker knows of it, who does not answer, and whose log directory has failed."""
    import asyncio

    from ottla.client.admin.history import seen_partition
    from ottla.client.errors import KafkaError, UnsupportedVersion

    async def ask(broker: int) -> tuple[SeenPartition | None, str | None]:
        async with asyncio.timeout(_ANSWER_MS_MAX / 1000):
            try:
                seen = await seen_partition(client.cluster, broker, topic, partition, _ANSWER_MS_MAX)
            except UnsupportedVersion:
                seen = None  # Kafka's in ZooKeeper mode have no such API, and are none the worse for it
            directories = (await client.describe_log_dirs([broker], {topic: [partition]}))[broker]
        failed = next((path for path, one in sorted(directories.items()) if one.error is not None), None)
        return seen, failed

    answers = await asyncio.gather(*map(ask, live), return_exceptions=True)
    seen: dict[int, SeenPartition] = {}
    silent: list[int] = []
    failed: dict[int, str] = {}
    for broker, answer in zip(live, answers, strict=True):
        if isinstance(answer, KafkaError | TimeoutError):
            silent.append(broker)
        elif isinstance(answer, BaseException):
            raise answer
        else:
            one, path = answer
            if one is not None:
                seen[broker] = one
            if path is not None:
                failed[broker] = path
    return seen, silent, failed


async def _view(
    client: Admin,
    cluster: ClusterDescription,
    known: PartitionDescription,
    topic: str,
    seen: Mapping[int, SeenPartition],
    silent: list[int],
    failed: dict[int, str],
) -> PartitionView:
    from ottla.cli.topic.describe import min_isr, needed_in_sync
    from ottla.cli.why_faults import PartitionView
    from ottla.client.admin.results import ConfigResource

    resource = ConfigResource.topic(topic)
    settings = (await client.describe_configs([resource], names=["min.insync.replicas"]))[resource]
    # The broker that was asked may be the last to hear of it.
    last = max(seen.values(), key=lambda one: one.leader_epoch, default=None)
    newest = known if last is None or last.leader_epoch <= known.leader_epoch else last
    led = None if newest.leader is None else seen.get(newest.leader)
    history = None if led is None or led.leader != newest.leader else led.history
    return PartitionView(
        topic=topic,
        partition=known.partition,
        leader=newest.leader,
        leader_epoch=newest.leader_epoch,
        replicas=known.replicas,
        isr=newest.isr,
        needed=needed_in_sync(known, min_isr(settings)),
        controller=cluster.controller_id,
        live=[node.id for node in cluster.brokers],
        silent=silent,
        # Of a failed directory nobody knows what it holds: it may be another partition's.
        failed_directories={broker: path for broker, path in failed.items() if broker in known.offline_replicas},
        others_say={broker: (one.leader, one.leader_epoch) for broker, one in seen.items()},
        leader_end=None if history is None or history.log_end_offset < 0 else history.log_end_offset,
        followers={} if history is None else _followers(history),
    )


def _followers(history: PartitionHistory) -> dict[int, FollowerView]:
    from ottla.cli.why_faults import FollowerView

    now_ms = round(time.time() * 1000)

    def ago(moment_ms: int) -> int | None:
        return None if moment_ms < 0 else max(0, now_ms - moment_ms)

    return {
        one.replica_id: FollowerView(
            end=one.log_end_offset, fetched_ms_ago=ago(one.fetched_ms), caught_up_ms_ago=ago(one.caught_up_ms)
        )
        for one in history.followers
    }


def _replica(view: PartitionView, broker: int) -> dict[str, Any]:
    is_leader = broker == view.leader
    follower = view.followers.get(broker)
    return {
        "broker": broker,
        "role": "leader" if is_leader else "follower" if broker in view.live else "down",
        "in_sync": broker in view.isr,
        "end": view.leader_end if is_leader else None if follower is None else follower.end,
        "fetched_ms_ago": None if follower is None else follower.fetched_ms_ago,
        "caught_up_ms_ago": None if follower is None else follower.caught_up_ms_ago,
    }


async def _epochs(client: Admin, view: PartitionView) -> list[dict[str, int]]:
    """The last one first; empty where nobody can say."""
    from ottla.client.admin.history import leader_epochs
    from ottla.client.errors import KafkaError

    if view.leader is None or view.leader in view.silent or view.leader not in view.live:
        return []
    try:
        found = await leader_epochs(
            client.cluster, view.leader, view.topic, view.partition, view.leader_epoch, _ANSWER_MS_MAX
        )
    except KafkaError:
        return []  # it has just given the partition up
    return [{"leader_epoch": one.leader_epoch, "offset": one.offset} for one in found]


def _past(seen: Mapping[int, SeenPartition]) -> dict[str, Any]:
    """As the broker says it that has seen the most."""
    histories = {broker: one.history for broker, one in seen.items() if one.history is not None}
    if not histories:
        return {"seen_by": None, "changes": []}
    broker, history = max(histories.items(), key=lambda one: len(one[1].changes))
    return {
        "seen_by": broker,
        "changes": [
            {
                "time": None if one.time_ms < 0 else _time(one.time_ms),
                "leader": one.leader_id if one.leader_id >= 0 else None,
                "leader_epoch": one.leader_epoch,
                "isr": list(one.isr_nodes),
                "replicas": list(one.replica_nodes),
                "controller_epoch": one.controller_epoch,
            }
            for one in history.changes
        ],
    }


def _time(moment_ms: int) -> str:
    from datetime import UTC, datetime

    return datetime.fromtimestamp(moment_ms / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _table(found: dict[str, Any]) -> str:
    from ottla.cli.output import cell, table_of

    led = "nobody leads" if found["leader"] is None else f"broker {found['leader']} leads"
    in_sync = f"in sync: {cell(found['isr'])} of {cell(found['replicas'])}"
    head = f"{found['topic']}-{found['partition']}: {led}, leader epoch {found['leader_epoch']}; {in_sync}"
    lines = [
        f"{head}; a write with acks=all needs {found['min_isr']}",
        "",
        *(f"- {fault}" for fault in found["wrong"] or ["nothing is wrong with it"]),
        "",
    ]
    text = "\n".join(lines) + "\n" + table_of(found["replica_states"], _REPLICAS)
    if found["changes"]:
        rows = [{**one, "time": one["time"] or "before"} for one in found["changes"]]
        text += f"\nAs broker {found['seen_by']} has seen it since it was started:\n{table_of(rows, _CHANGES)}"
    elif found["seen_by"] is not None:
        text += f"\nbroker {found['seen_by']} has seen no change since it was started\n"
    if found["epochs"]:
        listed = ", ".join(f"{one['leader_epoch']} from {one['offset']}" for one in reversed(found["epochs"]))
        text += f"\nleader epochs in the log: {listed}\n"
    return text
