"""Show groups: where each is in its partitions and how far behind, who its members are, its state and coordinator.

Without a choice a table shows offsets and lag; --members and --state show those instead, --verbose more of each. JSON
and YAML hold everything always. LAG is in offsets: records at most.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from ottla.cli import options as shared
from ottla.cli.faults import OK
from ottla.cli.group import chosen
from ottla.cli.numbers import seconds

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ottla.client.admin.admin import Admin
    from ottla.client.admin.group_lag import PartitionLag
    from ottla.client.admin.group_results import GroupDescription, MemberDescription
    from ottla.model import TopicPartition


def arguments(parser: argparse.ArgumentParser) -> None:
    chosen.arguments(parser, "the groups to show")
    shared.connection(parser)
    view = parser.add_argument_group("what a table shows").add_mutually_exclusive_group()
    view.add_argument("--offsets", action="store_true", help="positions and lag of each partition (the default)")
    view.add_argument("--members", action="store_true", help="the members, with how many partitions each has")
    view.add_argument("--state", action="store_true", help="a line for each group")
    parser.add_argument("--verbose", action="store_true", help="more columns: assignments, epochs, metadata")
    parser.add_argument("-w", "--watch", action="store_true", help="show it again and again, until Ctrl-C")
    parser.add_argument("--interval", type=seconds, metavar="SECONDS", default=2.0, help="between two of them (2)")
    shared.output(parser)


def run(options: argparse.Namespace) -> int:
    from ottla.cli.connecting import run as run_on_loop

    return run_on_loop(_describe(options))


async def _describe(options: argparse.Namespace) -> int:
    from ottla.cli.connecting import admin
    from ottla.cli.output import show
    from ottla.cli.watching import watch

    names = chosen.named_groups(options)
    async with admin(options) as client:

        async def looked() -> tuple[list[dict[str, Any]], str]:
            groups = await described(client, names)
            return groups, _table(groups, options)

        if options.watch:
            await watch(options.output, options.interval, looked, client.cluster)
        groups, table = await looked()
    show(options.output, groups, table)
    return OK


def _table(groups: Sequence[dict[str, Any]], options: argparse.Namespace) -> str:
    from ottla.cli.group.tables import members_table, offsets_table, state_table

    if options.output != "table":
        return ""
    if not groups:
        return "there are no groups\n"
    if options.state:
        return state_table(groups, verbose=options.verbose)
    table = members_table if options.members else offsets_table
    return "\n".join(table(group, verbose=options.verbose) for group in groups)


async def described(client: Admin, names: list[str] | None) -> list[dict[str, Any]]:
    """Everything that there is to know of these groups, or of all, under the names that JSON has."""
    from ottla.cli.gone import still_there
    from ottla.client.admin.group_lag import group_lags

    asked = await chosen.chosen_groups(client, names)
    if not asked:
        return []
    groups = await still_there(client.describe_groups(asked), listed=names is None)
    committed = await client.list_groups_offsets(list(groups))
    lags = await group_lags(client.cluster, groups, committed)
    return [_group(groups[name], lags[name]) for name in asked if name in groups]


def _group(group: GroupDescription, lags: list[PartitionLag]) -> dict[str, Any]:
    node = group.coordinator
    known = [one.lag for one in lags if one.lag is not None]
    return {
        "group": group.group_id,
        "state": group.state,
        "type": group.type,
        "protocol": group.protocol_type or None,
        "assignor": group.assignor or None,
        "coordinator": None if node is None else {"id": node.id, "host": node.host, "port": node.port},
        "epoch": group.epoch,
        "assignment_epoch": group.assignment_epoch,
        #: A partition whose end went back (a topic made anew) does not make up for the others.
        "lag": sum(max(0, lag) for lag in known) if known else None,
        #: Partitions without a leader now, whose ends nobody says: the sum lacks theirs.
        "lag_unknown": sum(one.end is None and not one.gone for one in lags),
        "members": [_member(one) for one in sorted(group.members, key=lambda one: (one.client_id, one.member_id))],
        "partitions": [_partition(one) for one in lags],
    }


def _member(member: MemberDescription) -> dict[str, Any]:
    return {
        "member": member.member_id,
        "instance": member.instance_id,
        "client": member.client_id,
        "host": member.host,
        "rack": member.rack,
        "epoch": member.epoch,
        "upgraded": member.upgraded,
        "assignment": _named(member.assignment),
        "target": None if member.target is None else _named(member.target),
        "topics": None if member.topics is None else list(member.topics),
        "regex": member.regex,
    }


def _named(partitions: Iterable[TopicPartition]) -> list[dict[str, Any]]:
    return [{"topic": tp.topic, "partition": tp.partition} for tp in partitions]


def _partition(lag: PartitionLag) -> dict[str, Any]:
    committed, member = lag.committed, lag.member
    return {
        "topic": lag.partition.topic,
        "partition": lag.partition.partition,
        "current": None if committed is None else committed.offset,
        "end": lag.end,
        "lag": lag.lag,
        "leader_epoch": None if committed is None or committed.leader_epoch < 0 else committed.leader_epoch,
        "metadata": None if committed is None else committed.metadata,
        "member": None if member is None else member.member_id,
        "instance": None if member is None else member.instance_id,
        "host": None if member is None else member.host,
        "client": None if member is None else member.client_id,
    }
