"""argparse in this program's manner: a mistake costs one line, and abbreviations do not work.

An abbreviation that works today is a script that breaks when an option is added.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any, NoReturn

from ottla.cli.faults import UsageFault

Completer = Callable[..., list[str]]
#: What stands for these may be any bytes: names of files, what a record has in it, properties with either. All else is
#: text, which goes to brokers as UTF-8.
_ANY_BYTES = frozenset({"FILE", "FILE,...", "DIR", "TEXT", "FORMAT", "OUTPUT", "NAME=VALUE"})
#: Lines of a description that begin so are to be typed as they stand.
_EXAMPLES = ("ottla ", "bash: ", "zsh: ", "fish: ")


class Parser(argparse.ArgumentParser):
    def __init__(self, prog: str, description: str) -> None:
        super().__init__(
            prog=prog,
            description=description,
            allow_abbrev=False,
            formatter_class=_HelpFormatter,
        )

    def _get_value(self, action: argparse.Action, arg_string: str) -> Any:
        if action.metavar not in _ANY_BYTES and not is_text(arg_string):
            raise argparse.ArgumentError(action, f"'{arg_string[:40]}' is no UTF-8 text")
        return super()._get_value(action, arg_string)

    def error(self, message: str) -> NoReturn:
        raise UsageFault(f"{message} (see {self.prog} --help)")


def is_text(text: str) -> bool:
    """False for what the system gave as bytes that are no UTF-8: Python has surrogates in their place."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


class _HelpFormatter(argparse.HelpFormatter):
    """Prose as wide as the terminal, examples as they are, and an option's value once behind all of its names."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        from textwrap import fill

        def filled(lines: list[str]) -> list[str]:
            joined = " ".join(lines)
            return [fill(joined, width, initial_indent=indent, subsequent_indent=indent)] if joined else []

        out: list[str] = []
        prose: list[str] = []
        for line in text.strip().splitlines():
            if line and not line.startswith(_EXAMPLES):
                prose.append(line.strip())
                continue
            out += filled(prose)
            prose = []
            out.append(line)
        return "\n".join([*out, *filled(prose)])

    def _format_action_invocation(self, action: argparse.Action) -> str:
        if not action.option_strings or action.nargs == 0:
            return super()._format_action_invocation(action)
        default = self._get_default_metavar_for_optional(action)
        return f"{', '.join(action.option_strings)} {self._format_args(action, default)}"


def completed_by(action: argparse.Action, completer: Completer) -> argparse.Action:
    """Names what offers an argument's values to the shell."""
    held: Any = action
    held.completer = completer
    return action
