"""Answers the shell's completion. Only the verb that is being typed is loaded."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

from ottla.cli.verbs import VERBS, below, find

if TYPE_CHECKING:
    from ottla.client.admin.admin import Admin

#: A user who pressed the tab key waits this long for names from a broker, and then gets none.
LIVE_NAMES_SECONDS_MAX = 1.0


def complete() -> None:
    """Prints what fits and ends the process, if the shell asked for completion; returns otherwise."""
    import argcomplete

    typed = os.environ.get("COMP_LINE", "")[: _point()]
    argcomplete.autocomplete(parser_for(typed.split()[1:]), always_complete_options="long")


def _point() -> int | None:
    text = os.environ.get("COMP_POINT", "")
    return int(text) if text.isascii() and text.isdigit() else None


def parser_for(words: list[str]) -> argparse.ArgumentParser:
    """All verbs by name, and all options of the one that the words begin with."""
    parser = argparse.ArgumentParser(prog="ottla", allow_abbrev=False)
    parser.add_argument("--version", action="store_true")
    verbs = parser.add_subparsers()
    made: dict[str, argparse.ArgumentParser] = {}
    groups: dict[str, Any] = {}
    found = find(words)
    chosen = found[0] if found else None
    for verb, module, summary in VERBS:
        group, _, name = verb.rpartition(" ")
        if group and group not in groups:
            if group not in made:  # some are verbs themselves
                about = ", ".join(each.split()[1] for each, _ in below(group))
                made[group] = verbs.add_parser(group, help=about)
            groups[group] = made[group].add_subparsers()
        made[verb] = (groups[group] if group else verbs).add_parser(name, help=summary, allow_abbrev=False)
        if verb == chosen:
            from importlib import import_module

            import_module(f"ottla.cli.{module}").arguments(made[verb])
    return parser


def topic_names(prefix: str, parsed_args: argparse.Namespace, **_: object) -> list[str]:
    """The cluster's topics that begin with what was typed; none where no broker answers at once."""

    async def ask(client: Admin) -> list[str]:
        return await client.list_topics(internal=True)

    return _asked(ask, prefix, parsed_args)


def group_names(prefix: str, parsed_args: argparse.Namespace, **_: object) -> list[str]:
    """The same of groups."""

    async def ask(client: Admin) -> list[str]:
        return [group.group_id for group in await client.list_groups()]

    return _asked(ask, prefix, parsed_args)


def _asked(
    ask: Callable[[Admin], Coroutine[Any, Any, list[str]]], prefix: str, options: argparse.Namespace
) -> list[str]:
    import asyncio

    from ottla.cli.connecting import admin
    from ottla.cli.faults import CommandFault

    async def bounded() -> list[str]:
        async with asyncio.timeout(LIVE_NAMES_SECONDS_MAX), admin(options) as client:
            return await ask(client)

    try:
        return [name for name in asyncio.run(bounded()) if name.startswith(prefix)]
    except (CommandFault, OSError, TimeoutError):
        return []
