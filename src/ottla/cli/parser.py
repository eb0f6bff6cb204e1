"""argparse in this program's manner: a mistake costs one line, and abbreviations do not work.

An abbreviation that works today is a script that breaks when an option is added.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any, NoReturn

from ottla.cli.faults import UsageFault

Completer = Callable[..., list[str]]


class Parser(argparse.ArgumentParser):
    def __init__(self, prog: str, description: str) -> None:
        super().__init__(
            prog=prog,
            description=description,
            allow_abbrev=False,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )

    def error(self, message: str) -> NoReturn:
        raise UsageFault(f"{message} (see {self.prog} --help)")


def completed_by(action: argparse.Action, completer: Completer) -> argparse.Action:
    """Names what offers an argument's values to the shell."""
    held: Any = action
    held.completer = completer
    return action
