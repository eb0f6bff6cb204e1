"""Refuses what would be undone by a group's members: they would commit their own positions over the new ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from ottla.cli.faults import CommandFault

if TYPE_CHECKING:
    from ottla.client.admin.admin import Admin
    from ottla.client.admin.group_results import GroupDescription

#: Members that a refusal names.
_NAMED_MAX = 3


async def known_groups(client: Admin, names: list[str]) -> dict[str, GroupDescription | None]:
    """Descriptions, or None for groups that are not there."""
    from ottla.cli.gone import still_there

    found = await still_there(client.describe_groups(names)) if names else {}
    return {name: found.get(name) for name in names}


def refuse_active(groups: Mapping[str, GroupDescription | None], what: str) -> None:
    active = [group for group in groups.values() if group is not None and group.is_active]
    if active:
        first = active[0]
        raise CommandFault(
            f"{what} while nobody is in it: {first.group_id} is {first.state}, {_members(first)}"
            f"{_others(len(active) - 1)}; stop them, wait until `ottla group describe` shows Empty, and try again"
        )


def _members(group: GroupDescription) -> str:
    named = [f"{one.client_id} on {one.host.removeprefix('/')}" for one in group.members[:_NAMED_MAX]]
    more = len(group.members) - len(named)
    return f"with {', '.join(named)}{f' and {more} more' if more > 0 else ''}" if named else "with members on their way"


def _others(count: int) -> str:
    return f", and {count} more group{'s are' if count > 1 else ' is'} active" if count else ""
