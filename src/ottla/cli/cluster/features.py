"""Show the feature levels of the cluster, or set one: --upgrade or --downgrade transaction.version=N.

A level is what all brokers may do. At transaction.version 2 each transaction has an epoch of its own; clients take the
older protocol with their next connection where it is lower.
"""

from __future__ import annotations

import argparse

from ottla.cli import options as shared
from ottla.cli.faults import OK, UsageFault


def arguments(parser: argparse.ArgumentParser) -> None:
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--upgrade", metavar="NAME=LEVEL", help="set a level up")
    which.add_argument("--downgrade", metavar="NAME=LEVEL", help="set a level down")
    parser.add_argument("--dry-run", action="store_true", help="let the controller check it, and change nothing")
    shared.connection(parser)
    shared.output(parser)


def run(options: argparse.Namespace) -> int:
    from ottla.cli.connecting import run as run_on_loop

    return run_on_loop(_features(options))


async def _features(options: argparse.Namespace) -> int:
    from ottla.cli.connecting import admin
    from ottla.cli.output import show, show_rows
    from ottla.client.admin.results import FeatureChange

    asked = options.upgrade or options.downgrade
    if asked is None:
        if options.dry_run:
            raise UsageFault("say what to check: --upgrade or --downgrade NAME=LEVEL")
        async with admin(options) as client:
            found = await client.describe_features()
        rows = [
            {"feature": name, "level": one.level, "least": one.least, "most": one.most} for name, one in found.items()
        ]
        show_rows(options.output, rows, {"feature": "FEATURE", "level": "LEVEL", "least": "LEAST", "most": "MOST"})
        return OK
    name, level = _asked(asked)
    change = FeatureChange.UPGRADE if options.upgrade else FeatureChange.SAFE_DOWNGRADE
    async with admin(options) as client:
        await client.update_features({name: level}, change, validate_only=options.dry_run)
    data = {"feature": name, "level": level, "dry_run": options.dry_run}
    show(options.output, data, f"{name} {'would be' if options.dry_run else 'is'} {level}\n")
    return OK


def _asked(text: str) -> tuple[str, int]:
    name, _, level = text.partition("=")
    if not name or not (level.isascii() and level.isdigit() and len(level) < 5):
        raise UsageFault(f"{text!r} is no NAME=LEVEL, as in transaction.version=2")
    return name, int(level)
