"""Which groups a verb is about: as arguments, with Kafka's `--group`, or `--all-groups`."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from ottla.cli.faults import UsageFault
from ottla.cli.parser import completed_by

if TYPE_CHECKING:
    from ottla.client.admin.admin import Admin

#: Groups of other kinds (share, streams) keep no offsets that these verbs could show.
TYPES = ("classic", "consumer")


def arguments(parser: argparse.ArgumentParser, what: str) -> None:
    from ottla.cli.completing import group_names

    completed_by(parser.add_argument("groups", nargs="*", metavar="GROUP", help=what), group_names)
    named = parser.add_argument(
        "--group",
        dest="group_options",
        metavar="GROUP",
        action="append",
        default=[],
        help="the same, as Kafka's script has it; may be given again",
    )
    completed_by(named, group_names)
    parser.add_argument("--all-groups", action="store_true", help="all groups that there are")


def named_groups(options: argparse.Namespace) -> list[str] | None:
    """Without repetitions; None for all. Raises UsageFault where none is chosen, or both."""
    names = list(dict.fromkeys([*options.groups, *options.group_options]))
    if options.all_groups:
        if names:
            raise UsageFault("name groups, or give --all-groups")
        return None
    if not names:
        raise UsageFault("a group is missing: give GROUP, --group GROUP or --all-groups")
    if "" in names:
        raise UsageFault("a group's name is not empty")
    return names


async def chosen_groups(client: Admin, names: list[str] | None) -> list[str]:
    """The names, or those of all groups of consumers that there are now."""
    if names is not None:
        return names
    listed = await client.list_groups()
    return [
        group.group_id
        for group in listed
        if group.protocol_type in {"", "consumer"} and (group.type is None or group.type in TYPES)
    ]
