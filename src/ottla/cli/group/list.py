"""Name the groups, with the state, the type and the protocol of each.

--state and --type take the words that a table of all groups shows, in any case: --state stable,empty --type classic.
"""

from __future__ import annotations

import argparse

from ottla.cli import options as shared
from ottla.cli.faults import OK, UsageFault

#: In the order in which a group goes through them.
STATES = (
    "Empty",
    "PreparingRebalance",
    "CompletingRebalance",
    "Assigning",
    "Reconciling",
    "Stable",
    "Dead",
    "NotReady",
)
TYPES = ("Classic", "Consumer", "Share", "Streams")


def arguments(parser: argparse.ArgumentParser) -> None:
    shared.connection(parser)
    parser.add_argument("--state", metavar="STATE,...", nargs="?", const="", help="only groups in these states")
    parser.add_argument("--type", metavar="TYPE,...", nargs="?", const="", help="only groups of these types")
    shared.output(parser)


def run(options: argparse.Namespace) -> int:
    from ottla.cli.connecting import run as run_on_loop

    return run_on_loop(_list(options))


async def _list(options: argparse.Namespace) -> int:
    from ottla.cli.connecting import admin
    from ottla.cli.output import show_rows

    states = _words("--state", options.state, STATES)
    types = [word.lower() for word in _words("--type", options.type, TYPES)]
    async with admin(options) as client:
        groups = await client.list_groups(states=states, types=types)
    rows = [
        {"group": group.group_id, "state": group.state, "type": group.type, "protocol": group.protocol_type or None}
        for group in groups
    ]
    show_rows(options.output, rows, {name: name.upper() for name in ("group", "state", "type", "protocol")})
    return OK


def _words(option: str, text: str | None, known: tuple[str, ...]) -> list[str]:
    """As the broker spells them; none where nothing (or, as Kafka's script has it, nothing behind it) was given."""
    spelt = {word.lower(): word for word in known}
    found = []
    for word in (text or "").split(","):
        if not word.strip():
            continue
        if word.strip().lower() not in spelt:
            raise UsageFault(f"{option}: there is no {word.strip()}; known are {', '.join(known)}")
        found.append(spelt[word.strip().lower()])
    return found
