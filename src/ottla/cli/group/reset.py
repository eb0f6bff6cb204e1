"""Move where groups go on. Prints the plan, and carries it out with --yes, while nobody is in the groups.

ottla group reset billing --topic orders --to-datetime 2026-11-21T10:00           only shows what would be done
ottla group reset billing --topic orders:0,1 --shift-by -100 --yes
ottla group reset billing --all-topics --to-current --export > positions.csv      keeps them
ottla group reset billing --from-file positions.csv --yes                         and brings them back

Offsets that are not there become the nearest that are. A group that does not exist yet is made.
"""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any

from ottla.cli import options as shared
from ottla.cli.faults import NOT_CONFIRMED, OK, CommandFault, UsageFault
from ottla.cli.group import chosen, partitions, scopes

if TYPE_CHECKING:
    from ottla.cli.group.resetting import OffsetChange
    from ottla.cli.group.scopes import Scope
    from ottla.client.admin.admin import Admin
    from ottla.model import TopicPartition

_COLUMNS = {"group": "GROUP", "topic": "TOPIC", "partition": "PARTITION", "current": "CURRENT", "new": "NEW"}


def arguments(parser: argparse.ArgumentParser) -> None:
    chosen.arguments(parser, "the groups to move")
    shared.connection(parser)
    where = parser.add_argument_group("in which partitions (not with --from-file)")
    partitions.arguments(where, "all of a topic's, or these; may be given again")
    where.add_argument("--all-topics", action="store_true", help="wherever the group has committed")
    scopes.arguments(parser)
    done = parser.add_argument_group("what becomes of it")
    shared.confirmation(done)
    done.add_argument("--execute", action="store_true", help="the same as --yes, as Kafka's script has it")
    done.add_argument("--dry-run", action="store_true", help="only print the plan, and call that done")
    done.add_argument("--export", action="store_true", help="print the plan as CSV, for --from-file")
    shared.output(parser)


def run(options: argparse.Namespace) -> int:
    from ottla.cli.connecting import run as run_on_loop

    return run_on_loop(_reset(options))


async def _reset(options: argparse.Namespace) -> int:
    from ottla.cli.connecting import admin
    from ottla.cli.group.activity import known_groups, refuse_active
    from ottla.cli.group.each import for_each

    names, scope, confirmed = chosen.named_groups(options), scopes.scope_of(options), _is_confirmed(options)
    topics = partitions.chosen(options)
    if (scope.rows is not None) + bool(topics) + options.all_topics != 1:
        raise UsageFault("say in which partitions: --topic TOPIC or --all-topics; with --from-file neither")
    async with admin(options) as client:
        groups = await chosen.chosen_groups(client, names)
        plan = await _planned(client, groups, topics, scope, all_groups=names is None)
        refuse_active(
            await known_groups(client, list(dict.fromkeys(one.group for one in plan))), "a group is moved only"
        )
        _show(plan, options, single=names is not None and len(names) == 1)
        if confirmed:
            wanted: dict[str, dict[TopicPartition, int]] = {}
            for one in plan:
                wanted.setdefault(one.group, {})[one.partition] = one.new
            await for_each(wanted, lambda group: client.alter_group_offsets(group, wanted[group]))
    if not confirmed and plan and not options.dry_run and not options.export:
        raise CommandFault("nothing was done; add --yes to do this", NOT_CONFIRMED)
    if confirmed and plan and options.output == "table" and not options.export:
        print("done")
    return OK


def _is_confirmed(options: argparse.Namespace) -> bool:
    if options.dry_run and (options.yes or options.execute):
        raise UsageFault("give --dry-run, or --yes (--execute)")
    if options.export and options.output != "table":
        raise UsageFault("--export prints CSV: leave out --output")
    return bool(options.yes or options.execute)


async def _planned(
    client: Admin, groups: list[str], topics: list[partitions.PartitionChoice], scope: Scope, *, all_groups: bool
) -> list[OffsetChange]:
    from ottla.cli.group.resetting import changes, partitions_of_file

    committed = {
        group: {tp: one.offset for tp, one in found.items()}
        for group, found in (await client.list_groups_offsets(groups)).items()
    }
    wanted: dict[str, list[TopicPartition]]
    if scope.rows is not None:
        wanted = partitions_of_file(scope, groups, all_groups=all_groups)
    elif topics:
        listed = await partitions.existing(client, topics)
        wanted = dict.fromkeys(groups, listed)
    else:
        wanted = {group: sorted(committed[group]) for group in groups}
    return await changes(client, wanted, scope, committed)


def _show(plan: list[OffsetChange], options: argparse.Namespace, *, single: bool) -> None:
    from ottla.cli.output import show_rows

    if options.export:
        from ottla.cli.group.offset_csv import Row, written

        rows = [Row(None if single else one.group, one.partition, one.new) for one in plan]
        sys.stdout.write(written(rows))
        return
    if options.output == "table":
        print("positions to be moved:" if plan else "there is nothing to move: no position was committed")
    columns = {**_COLUMNS, "note": ""} if any(one.asked is not None for one in plan) else _COLUMNS
    if plan or options.output != "table":
        show_rows(options.output, [_row(one) for one in plan], columns)
    sys.stdout.flush()


def _row(change: OffsetChange) -> dict[str, Any]:
    note = None
    if change.asked is not None:
        there = f"the first is {change.start}" if change.asked < change.start else f"the end is {change.end}"
        note = f"{change.asked} is not there: {there}"
    return {
        "group": change.group,
        "topic": change.partition.topic,
        "partition": change.partition.partition,
        "current": change.current,
        "new": change.new,
        "start": change.start,
        "end": change.end,
        "note": note,
    }
