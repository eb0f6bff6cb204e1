"""`docs/cli.md` has every verb and every option that there is, and no other."""

from __future__ import annotations

import argparse
import re
import shlex
from importlib import import_module
from itertools import takewhile
from pathlib import Path
from typing import Final

import pytest

from ottla.cli import faults
from ottla.cli.parser import Parser
from ottla.cli.verbs import VERBS, find
from ottla.cli.where import parsing

PAGE: Final = (Path(__file__).parents[2] / "docs" / "cli.md").read_text(encoding="utf-8")
#: What the page says once for all verbs: of each, that asks a broker or shows something, and of all.
SHARED: Final = frozenset({"--bootstrap-server", "--command-config", "-o", "--output", "-h", "--help"})
#: On the page, and no verb's: of `ottla` itself.
OF_THE_PROGRAM: Final = frozenset({"--help", "--version"})


def options(verb: str) -> dict[str, list[str]]:
    """Each option's names, by each of them. What is not in the help is not looked for on the page either."""
    module = next(module for name, module, _ in VERBS if name == verb)
    work = import_module(f"ottla.cli.{module}")
    parser = Parser(f"ottla {verb}", work.__doc__ or "")
    work.arguments(parser)
    shown = [action for action in parser._actions if action.help != argparse.SUPPRESS]
    return {name: list(action.option_strings) for action in shown for name in action.option_strings}


def row(verb: str) -> str:
    """The line of the page's table of options."""
    groups = dict.fromkeys(tuple(names) for names in options(verb).values())
    own = [", ".join(f"`{name}`" for name in names) for names in groups if not SHARED.issuperset(names)]
    return f"| `{verb}` | {'; '.join(own) if own else 'none'} |"


def section(title: str) -> str:
    return PAGE.partition(f"## {title}\n")[2].partition("\n## ")[0]


def commands(line: str) -> list[list[str]]:
    """The words behind each `ottla` of a shell's line: of a pipe, of a substitution."""
    words = shlex.split(re.sub(r'"\$\((.*?)\)"', r"\1", line), comments=True)
    found: list[list[str]] = []
    for number, word in enumerate(words):
        if word == "ottla":
            found.append(list(takewhile(lambda word: word not in {"|", ">", "&&"}, words[number + 1 :])))
    return found


def test_every_verb_stands_in_the_first_table() -> None:
    rows = [line.split("|")[1] for line in PAGE.partition("\n## ")[0].splitlines() if line.startswith("| `")]
    named = [verb for cell in rows for verb in re.findall(r"`([^`]+)`", cell)]
    assert sorted(named) == sorted(verb for verb, _, _ in VERBS)


@pytest.mark.parametrize("verb", [verb for verb, _, _ in VERBS])
def test_every_option_stands_in_the_table_of_options(verb: str) -> None:
    rows = [line for line in section("Options").splitlines() if line.startswith(f"| `{verb}` |")]
    assert rows == [row(verb)]


def test_no_option_is_invented() -> None:
    known = OF_THE_PROGRAM.union(*(options(verb) for verb, _, _ in VERBS))
    assert set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", PAGE)) - known == set()


def test_what_is_shown_as_a_command_line_has_the_options_of_its_verb() -> None:
    shown = [words for line in PAGE.splitlines() if line.startswith("    ") for words in commands(line)]
    assert len(shown) > 15
    for words in shown:
        found = find(words)
        assert found is not None, words
        verb, _, rest = found
        given = {word.partition("=")[0] for word in rest if re.match(r"--?[a-zA-Z]", word)}
        assert given <= set(options(verb)), words


def test_verbs_that_ask_a_broker_share_its_options() -> None:
    for verb, _, _ in VERBS:
        if verb == "profile add":  # it keeps an address, and asks nobody
            continue
        names = set(options(verb)) & {"--bootstrap-server", "--command-config"}
        assert len(names) in {0, 2}, verb


def test_every_exit_code_has_its_row() -> None:
    rows = re.findall(r"^\| ([\d, ]+) \|", section("What scripts rely on"), re.MULTILINE)
    codes = {value for value in vars(faults).values() if type(value) is int}
    assert {int(number) for row in rows for number in row.split(",")} == codes


def test_every_function_of_an_expression_has_its_row() -> None:
    rows = [line for line in section("Which records").splitlines() if line.startswith("| `")]
    named = {name for line in rows for name in re.findall(r"`(\w+)\(", line.split(" | ")[0])}
    assert named == set(parsing._FUNCTIONS)
