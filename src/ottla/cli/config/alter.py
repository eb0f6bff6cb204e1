"""Change the settings of a topic or of brokers, at once and without a restart.

Values that hold commas stand in brackets: --add-config 'cleanup.policy=[compact,delete],retention.ms=1000'.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from ottla.cli import options as shared
from ottla.cli.config import resource
from ottla.cli.faults import NOT_FOUND, OK, CommandFault, UsageFault

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ottla.client.admin.admin import Admin
    from ottla.client.admin.results import ConfigEntry, ConfigResource

#: Settings of one listener are made by its name, so no list holds them.
_OF_A_LISTENER = "listener.name."


def arguments(parser: argparse.ArgumentParser) -> None:
    resource.arguments(parser)
    parser.add_argument(
        "--add-config",
        metavar="NAME=VALUE,...",
        action="append",
        default=[],
        help="set these; may be given again",
    )
    parser.add_argument(
        "--config", metavar="NAME=VALUE", action="append", default=[], help="set one; its value may have commas"
    )
    parser.add_argument(
        "--delete-config", metavar="NAME,...", action="append", default=[], help="back to what holds without it"
    )
    parser.add_argument("--dry-run", action="store_true", help="let the broker check it, and change nothing")
    shared.connection(parser)
    shared.output(parser)


def run(options: argparse.Namespace) -> int:
    from ottla.cli.connecting import run as run_on_loop

    return run_on_loop(_alter(options))


async def _alter(options: argparse.Namespace) -> int:
    from ottla.cli.assignments import assignment_lists, assignments, names
    from ottla.cli.connecting import admin
    from ottla.cli.output import show
    from ottla.client.admin.results import ConfigChange, ConfigOperation

    whose = resource.resource_of(options)
    added = {**assignment_lists("--add-config", options.add_config), **assignments("--config", options.config)}
    deleted = names(options.delete_config)
    if not added and not deleted:
        raise UsageFault("say what to change: --add-config NAME=VALUE or --delete-config NAME")
    both = sorted(set(added) & set(deleted))
    if both:
        raise UsageFault(f"{', '.join(both)} cannot be set and deleted at once")
    changes = [ConfigChange(name, value) for name, value in added.items()]
    changes += [ConfigChange(name, None, ConfigOperation.DELETE) for name in deleted]
    async with admin(options) as client:
        unset = await _not_set(client, whose, deleted) if deleted else []
        await client.incremental_alter_configs({whose: changes}, validate_only=options.dry_run)
    reset = [name for name in deleted if name not in unset]
    done = "could be changed" if options.dry_run else "changed"
    lines = [f"{done}: {', '.join([*added, *reset])}\n"] if added or reset else []
    lines += [f"was not set: {', '.join(unset)}\n"] if unset else []
    data = {
        "type": whose.type.name.lower(),
        "name": whose.name or None,
        "altered": bool(added or reset) and not options.dry_run,
        "set": added,
        "deleted": reset,
        "was_not_set": unset,
    }
    show(options.output, data, "".join(lines))
    return OK


async def _not_set(client: Admin, whose: ConfigResource, names: Sequence[str]) -> list[str]:
    """Those of the names that nobody has set there; a fault if one of them is no setting at all.

    Brokers, Kafka's too, are content with any name, so that a slip of the pen would pass for done.
    """
    from ottla.cli.config.describe import is_set_on

    described = (await client.describe_configs([whose]))[whose]
    known = {**described, **(await _of_any_broker(client) if not whose.name else {})}
    missing = [name for name in names if name not in described]
    strange = [name for name in missing if name not in known and not name.startswith(_OF_A_LISTENER)]
    if strange:
        raise CommandFault(f"there is no setting {', '.join(strange)}{_nearest(strange[0], known)}", NOT_FOUND)
    return [name for name in names if name not in described or not is_set_on(described[name], whose)]


def _nearest(name: str, known: Iterable[str]) -> str:
    from difflib import get_close_matches

    matches = get_close_matches(name, sorted(known), n=1)
    return f"; did you mean {matches[0]}?" if matches else ""


async def _of_any_broker(client: Admin) -> dict[str, ConfigEntry]:
    """All settings that can be set for all brokers; those that are set are shown, and no others."""
    from ottla.client.admin.results import ConfigResource

    cluster = await client.describe_cluster()
    whose = ConfigResource.broker(next(iter(cluster.brokers)).id)
    return (await client.describe_configs([whose]))[whose]
