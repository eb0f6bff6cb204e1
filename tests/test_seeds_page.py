"""docs/seeds.md names files, tests and pages that exist, for every section that it lists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.test_evidence import FOLDERS, LINK, REPOSITORY, SPAN, defines

PAGE = REPOSITORY / "docs" / "seeds.md"


def rows(text: str) -> list[str]:
    """Those of all tables, without their heads."""
    lines = [line for line in text.splitlines() if line.startswith("|") and not line.startswith("|---")]
    return [line for line in lines if not line.startswith(("| section |", "| matter |"))]


def faults(text: str) -> list[str]:
    found = []
    for row in rows(text):
        shown, file = False, ""
        for page in LINK.findall(row):
            shown = True
            if not (PAGE.parent / page.partition("#")[0]).is_file():
                found.append(f"no page {page}")
        for span in SPAN.findall(row):
            path, colons, name = span.partition("::")
            if path.startswith(FOLDERS):
                file, shown = path, True
                if not (REPOSITORY / path).exists():
                    found.append(f"no file {path}")
                    continue
            if colons and not defines(file, name):
                found.append(f"no {name} in {file or 'any file'}")
        if not shown and "64 bits" not in row:
            found.append(f"nothing shows: {row}")
    return found


def test_what_the_page_names_is_there() -> None:
    text = PAGE.read_text()
    assert len(re.findall(r"^## The \w+ text", text, re.MULTILINE)) == 5
    assert len(rows(text)) > 120
    assert faults(text) == []


@pytest.mark.parametrize(
    ("row", "fault"),
    [
        ("| a | `src/ottla/nothing.py` | b |", "no file src/ottla/nothing.py"),
        ("| a | b | `tests/test_logs.py::test_nothing` |", "no test_nothing in tests/test_logs.py"),
        ("| a | b | [page](nothing.md#part) |", "no page nothing.md#part"),
        ("| a | b | trust us |", "nothing shows: | a | b | trust us |"),
    ],
)
def test_what_is_made_up_is_found(row: str, fault: str) -> None:
    assert faults(f"| section | here | shown by |\n|---|---|---|\n{row}\n") == [fault]


def test_the_page_is_found_from_the_others() -> None:
    named = [path for path in (REPOSITORY / "docs").glob("*.md") if "seeds.md" in path.read_text()]
    assert [path.name for path in named] or Path(REPOSITORY / "README.md").read_text().count("seeds.md")
