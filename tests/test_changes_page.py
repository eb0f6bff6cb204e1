"""`docs/changes.md` names files that are there, and five at most for each change that has no list of its own."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "changes.md").read_text(encoding="utf-8")
PATH = re.compile(r"`((?:[\w<>]+/)*[\w<>-]+\.(?:py|md|schema|c|svg|toml))`( \(new)?")
ROWS = [line.split(" | ") for line in PAGE.splitlines() if re.match(r"\| +\d* +\| ", line)]
FILES_MAX = 5


def is_there(name: str) -> bool:
    return any((place / name).exists() for place in (ROOT, ROOT / "src" / "ottla"))


def test_every_file_on_the_page_is_there() -> None:
    named = {name for name, new in PATH.findall(PAGE) if not new and "<" not in name}
    missing = {name for name in named if not is_there(name)}
    # The first column of tests names a neighbour without its folder.
    assert {name for name in missing if not list((ROOT / "tests").rglob(name))} == set()
    assert len(named) > 80


def test_there_are_twenty_changes() -> None:
    assert [row[0].strip("| ") for row in ROWS if row[0].strip("| ")] == [str(number) for number in range(1, 21)]


@pytest.mark.parametrize("row", ROWS, ids=[row[1] for row in ROWS])
def test_a_change_touches_five_files_at_most(row: list[str]) -> None:
    assert len(row) == 4, "number, change, files, shown by"
    # Behind the semicolon stands what only some of these changes need, or what they leave as it is.
    files = {name for name, _ in PATH.findall(row[2].split("; ")[0])}
    assert len(files) <= FILES_MAX, files
