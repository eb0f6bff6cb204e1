"""Print the versions of Ottla, of Python, and of what else a report of a fault should name."""

from __future__ import annotations

import argparse

from ottla.cli import options as shared
from ottla.cli.faults import OK


def arguments(parser: argparse.ArgumentParser) -> None:
    shared.output(parser)


def run(options: argparse.Namespace) -> int:
    import platform
    from importlib.util import find_spec

    from ottla import __version__
    from ottla.cli.output import show

    data = {
        "ottla": __version__,
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "kafka": KAFKA,
        "compiled": find_spec("ottla.native.lane") is not None,
    }
    shown = {**data, "kafka": f"{KAFKA} (whose protocol it serves)", "compiled": "yes" if data["compiled"] else "no"}
    show(options.output, data, "".join(f"{name:<9} {value}\n" for name, value in shown.items()))
    return OK


#: Whose protocol, formats and names it has.
KAFKA = "4.3"
