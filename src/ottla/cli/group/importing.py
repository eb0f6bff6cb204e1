"""Commit the positions that consumers of Kafka 0.8 keep in ZooKeeper, so that the groups go on without it.

They stand in /consumers/GROUP/offsets. Prints the plan, and carries it out with --yes, while no consumer is in the
group: neither in the tree (/consumers/GROUP/ids and owners; --force takes the positions all the same) nor at the
brokers. What is committed replaces what the group had committed before. Topics that are not there are named and left
out.

ottla group import billing --zookeeper zk-1:2181,zk-2:2181/kafka            only shows what would be done
"""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any, NamedTuple

from ottla.cli import options as shared
from ottla.cli.faults import FAILED, NOT_CONFIRMED, NOT_FOUND, OK, CommandFault, UsageFault
from ottla.cli.group import chosen

if TYPE_CHECKING:
    from ottla.client.admin.admin import Admin
    from ottla.client.zookeeper_groups.group_tree import OldGroup
    from ottla.model import TopicPartition

_COLUMNS = {"group": "GROUP", "topic": "TOPIC", "partition": "PARTITION", "current": "CURRENT", "new": "NEW"}
#: Members, and partitions, that a message names.
_NAMED_MAX = 3


class PositionChange(NamedTuple):
    group: str
    partition: TopicPartition
    #: None where nothing was committed.
    current: int | None
    new: int
    #: Why it is left out; None where it is not.
    left_out: str | None


def arguments(parser: argparse.ArgumentParser) -> None:
    chosen.arguments(parser, "the groups to take over")
    parser.add_argument(
        "--zookeeper",
        metavar="HOST:PORT",
        required=True,
        help="the servers, separated by commas, and the chroot where there is one, as consumers' zookeeper.connect",
    )
    parser.add_argument("--force", action="store_true", help="also where consumers are in the group, in the tree")
    shared.connection(parser)
    shared.confirmation(parser)
    parser.add_argument("--dry-run", action="store_true", help="only print the plan, and call that done")
    shared.output(parser)


def run(options: argparse.Namespace) -> int:
    from ottla.cli.connecting import run as run_on_loop

    if options.dry_run and options.yes:
        raise UsageFault("give --dry-run or --yes")
    return run_on_loop(_import(options))


async def _import(options: argparse.Namespace) -> int:
    from ottla.cli.connecting import admin
    from ottla.cli.group.activity import known_groups, refuse_active
    from ottla.cli.group.each import for_each

    groups = await _groups_in_tree(options)
    if not options.force:
        _refuse_live(groups)
    async with admin(options) as client:
        refuse_active(await known_groups(client, [one.name for one in groups]), "a group is taken over only")
        plan = await _planned(client, groups)
        _show(plan, options)
        taken = [one for one in plan if one.left_out is None]
        if options.yes:
            wanted: dict[str, dict[TopicPartition, int]] = {}
            for one in taken:
                wanted.setdefault(one.group, {})[one.partition] = one.new
            await for_each(wanted, lambda group: client.alter_group_offsets(group, wanted[group]))
    return _end(groups, plan, options)


async def _groups_in_tree(options: argparse.Namespace) -> list[OldGroup]:
    from ottla.cli.znode.reading import tree_session
    from ottla.client.zookeeper_groups.group_tree import GroupTree

    names = chosen.named_groups(options)
    async with tree_session(options.zookeeper) as (session, chroot):
        tree = GroupTree(session, chroot)
        found = [(name, await tree.group(name)) for name in (await tree.names() if names is None else names)]
    missing = [name for name, group in found if group is None]
    if missing:
        listed = ", ".join(missing[:_NAMED_MAX])
        raise CommandFault(f"/consumers of {options.zookeeper} has no group {listed}", NOT_FOUND)
    return [group for _, group in found if group is not None]


def _refuse_live(groups: list[OldGroup]) -> None:
    from ottla.cli.counting import counted

    live = [group for group in groups if group.members]
    if live:
        first = live[0]
        named = ", ".join(first.members[:_NAMED_MAX]) + (", ..." if len(first.members) > _NAMED_MAX else "")
        owned = f", with {counted(len(first.owners), 'partition')}" if first.owners else ""
        others = len(live) - 1
        more = f" (and {counted(others, 'other group')} {'has' if others == 1 else 'have'} some)" if others else ""
        raise CommandFault(
            f"consumers are in {first.name}: {named}{owned}{more}; stop them, or give --force: what they commit after "
            "this is not seen",
            FAILED,
        )


async def _planned(client: Admin, groups: list[OldGroup]) -> list[PositionChange]:
    from ottla.cli.counting import counted

    wanted = {tp.topic for group in groups for tp in group.offsets}
    there = wanted.intersection(await client.list_topics(internal=True))
    described = await client.describe_topics(sorted(there)) if there else {}
    counts = {topic: len(one.partitions) for topic, one in described.items()}
    committed = await client.list_groups_offsets([group.name for group in groups]) if groups else {}
    plan = []
    for group in groups:
        for tp, offset in group.offsets.items():
            left_out = None
            if tp.topic not in counts:
                left_out = "there is no such topic"
            elif tp.partition >= counts[tp.topic]:
                left_out = f"the topic has {counted(counts[tp.topic], 'partition')}"
            before = committed[group.name].get(tp)
            plan.append(PositionChange(group.name, tp, before and before.offset, offset, left_out))
    return plan


def _show(plan: list[PositionChange], options: argparse.Namespace) -> None:
    from ottla.cli.output import show_rows

    if options.output == "table":
        print("positions to be committed:" if plan else "there is nothing to commit: the tree has no position")
    columns = {**_COLUMNS, "note": ""} if any(one.left_out is not None for one in plan) else _COLUMNS
    if plan or options.output != "table":
        show_rows(options.output, [_row(one) for one in plan], columns)
    sys.stdout.flush()


def _row(change: PositionChange) -> dict[str, Any]:
    return {
        "group": change.group,
        "topic": change.partition.topic,
        "partition": change.partition.partition,
        "current": change.current,
        "new": change.new,
        "note": None if change.left_out is None else f"left out: {change.left_out}",
    }


def _end(groups: list[OldGroup], plan: list[PositionChange], options: argparse.Namespace) -> int:
    """Raises CommandFault where something was not done, or could not be."""
    for group in groups:
        for fault in group.damaged:
            print(f"ottla: {fault}; it is left out", file=sys.stderr)
    taken = [one for one in plan if one.left_out is None]
    if taken and not options.yes and not options.dry_run:
        raise CommandFault("nothing was done; add --yes to do this", NOT_CONFIRMED)
    if taken and options.yes and options.output == "table":
        print("done")
    topics = sorted({one.partition.topic for one in plan if one.left_out is not None})
    if topics:
        named = ", ".join(topics[:_NAMED_MAX]) + (", ..." if len(topics) > _NAMED_MAX else "")
        raise CommandFault(f"left out, since they are not there: positions in {named}", NOT_FOUND)
    return FAILED if any(group.damaged for group in groups) else OK
