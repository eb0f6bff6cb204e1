"""Forget a cluster's name."""

from __future__ import annotations

import argparse

from ottla.cli import options as shared
from ottla.cli.faults import OK
from ottla.cli.parser import completed_by


def arguments(parser: argparse.ArgumentParser) -> None:
    completed_by(parser.add_argument("name", metavar="NAME", help="which"), shared.profile_names)
    shared.output(parser)


def run(options: argparse.Namespace) -> int:
    from ottla.cli.output import show
    from ottla.cli.profiles import changed_profiles

    with changed_profiles() as profiles:
        profiles.remove(options.name)
    show(options.output, {"name": options.name, "removed": True}, f"removed {options.name}\n")
    return OK
