"""Use a cluster that `ottla profile add` has named, from now on and in all terminals.

For one command there is --profile NAME, for one terminal $OTTLA_PROFILE.
"""

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
        brokers = profiles.named(options.name).brokers  # of one that no verb could use it is said before
        profiles.use(options.name)
    show(options.output, {"name": options.name, "brokers": brokers}, f"using {options.name} ({','.join(brokers)})\n")
    return OK
