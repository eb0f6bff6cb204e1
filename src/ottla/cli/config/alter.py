"""Change the settings of a topic or of brokers, at once and without a restart.

Values that hold commas stand in brackets: --add-config 'cleanup.policy=[compact,delete],retention.ms=1000'.
"""

from __future__ import annotations

import argparse

from ottla.cli import options as shared
from ottla.cli.config import resource
from ottla.cli.faults import OK, UsageFault


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


def run(options: argparse.Namespace) -> int:
    from ottla.cli.connecting import run as run_on_loop

    return run_on_loop(_alter(options))


async def _alter(options: argparse.Namespace) -> int:
    from ottla.cli.assignments import assignment_lists, assignments, names
    from ottla.cli.connecting import admin
    from ottla.client.admin_results import ConfigChange, ConfigOperation

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
        await client.incremental_alter_configs({whose: changes}, validate_only=options.dry_run)
    done = "could be changed" if options.dry_run else "changed"
    print(f"{done}: {', '.join([*added, *deleted])}")
    return OK
