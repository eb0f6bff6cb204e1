"""Name the clusters that `ottla profile add` has named; a star marks the one that is used."""

from __future__ import annotations

import argparse

from ottla.cli import options as shared
from ottla.cli.faults import OK


def arguments(parser: argparse.ArgumentParser) -> None:
    shared.output(parser)


def run(options: argparse.Namespace) -> int:
    from ottla.cli.output import show_rows
    from ottla.cli.profiles import read_profiles

    profiles = read_profiles()
    rows = [
        {
            "name": profile.name + ("*" if options.output == "table" and profile.name == profiles.current else ""),
            "current": profile.name == profiles.current,
            "brokers": profile.addresses,
            "settings": profile.settings,
            "description": profile.description,
        }
        for profile in profiles.all()
    ]
    columns = {"name": "NAME", "brokers": "BROKERS", "description": "DESCRIPTION"}
    if not rows and options.output == "table":
        print("there are no profiles; `ottla profile add NAME -b HOST:PORT` makes one")
        return OK
    show_rows(options.output, rows, columns)
    return OK
