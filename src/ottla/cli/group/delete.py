"""Delete groups with all that they have committed, or with --delete-offsets only their positions in topics.

Prints what would go, and does it with --yes. Groups are deleted while nobody is in them; positions may go while members
read other topics.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from ottla.cli import options as shared
from ottla.cli.faults import NOT_FOUND, OK, CommandFault, UsageFault
from ottla.cli.group import chosen, partitions

if TYPE_CHECKING:
    from ottla.client.admin.admin import Admin


def arguments(parser: argparse.ArgumentParser) -> None:
    chosen.arguments(parser, "the groups to delete")
    shared.connection(parser)
    parser.add_argument("--delete-offsets", action="store_true", help="only positions, in the topics of --topic")
    partitions.arguments(parser, "with --delete-offsets: a topic, or partitions of it; may be given again")
    parser.add_argument("--if-exists", action="store_true", help="ignore groups that do not exist")
    shared.confirmation(parser)
    shared.output(parser)


def run(options: argparse.Namespace) -> int:
    from ottla.cli.connecting import run as run_on_loop

    return run_on_loop(_delete(options))


async def _delete(options: argparse.Namespace) -> int:
    from ottla.cli.connecting import admin

    names, topics = chosen.named_groups(options), partitions.chosen(options)
    if options.delete_offsets and not topics:
        raise UsageFault("say in which topics: --delete-offsets --topic TOPIC[:N,...]")
    if topics and not options.delete_offsets:
        raise UsageFault("--topic belongs to --delete-offsets; without it whole groups are deleted")
    async with admin(options) as client:
        groups = await chosen.chosen_groups(client, names)
        if options.if_exists or names is None:
            groups = [group for group, found in (await _known(client, groups)).items() if found is not None]
        if options.delete_offsets:
            await _delete_offsets(client, groups, topics, options)
        else:
            await _delete_groups(client, groups, options)
    return OK


async def _known(client: Admin, groups: list[str]) -> dict[str, Any]:
    from ottla.cli.group.activity import known_groups

    return await known_groups(client, groups)


async def _delete_groups(client: Admin, groups: list[str], options: argparse.Namespace) -> None:
    from ottla.cli.group.activity import refuse_active
    from ottla.cli.plan import show_plan

    described = await client.describe_groups(groups) if groups else {}
    refuse_active(described, "a group is deleted only")
    committed = await client.list_groups_offsets(groups)
    rows = [{"group": group, "state": described[group].state, "positions": len(committed[group])} for group in groups]
    columns = {"group": "GROUP", "state": "STATE", "positions": "POSITIONS"}
    show_plan(options.output, "groups to delete:", rows, columns, confirmed=options.yes or not groups)
    await client.delete_groups(groups)
    if options.output == "table":
        print(f"deleted {', '.join(groups)}" if groups else "nothing to delete")


async def _delete_offsets(
    client: Admin, groups: list[str], topics: list[partitions.PartitionChoice], options: argparse.Namespace
) -> None:
    from ottla.cli.group.each import for_each
    from ottla.cli.plan import show_plan

    missing = [group for group, found in (await _known(client, groups)).items() if found is None]
    if missing:
        raise CommandFault(
            f"{', '.join(missing)}: there is no such group; `ottla group list` names the groups", NOT_FOUND
        )
    committed = await client.list_groups_offsets(groups)
    going = {group: partitions.among(committed[group], topics) for group in groups}
    rows = [
        {"group": group, "topic": tp.topic, "partition": tp.partition, "current": committed[group][tp].offset}
        for group, listed in going.items()
        for tp in listed
    ]
    columns = {name: name.upper() for name in ("group", "topic", "partition", "current")}
    title = "positions to forget:" if rows else "nothing was committed there:"
    show_plan(options.output, title, rows, columns, confirmed=options.yes or not rows)
    with_positions = [group for group, listed in going.items() if listed]
    await for_each(with_positions, lambda group: client.delete_group_offsets(group, going[group]))
    if options.output == "table" and rows:
        print("done")
