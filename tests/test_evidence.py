"""docs/audit/evidence.md names tests, files and rows of the bench that exist, so that what shows a claim can be run."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest
from bench.cluster.command import every_scenario as every_cluster_scenario
from bench.command import every_scenario

REPOSITORY = Path(__file__).resolve().parent.parent
PAGE = REPOSITORY / "docs" / "audit" / "evidence.md"
FOLDERS = ("tests/", "src/", "bench/", "docs/", ".ci/")
FILES = ("pyproject.toml", "LICENSE", "README.md", "CHANGELOG.md")

SPAN = re.compile(r"`([^`]+)`")
LINK = re.compile(r"\]\(([^)]+)\)")
ONLY = re.compile(r"--only (\S+)")


def claims(text: str) -> list[str]:
    """Each item of the page's lists, on one line."""
    items = re.findall(r"^- .*(?:\n  .*)*", text, re.MULTILINE)
    return [" ".join(item.split()) for item in items]


def faults(text: str) -> list[str]:
    """What the page says of this repository and what is not so."""
    found = []
    for claim in claims(text):
        _, arrow, shown_by = claim.partition(" → ")
        if not arrow or not (SPAN.search(shown_by) or LINK.search(shown_by)):
            found.append(f"nothing shows: {claim}")
        found += [f"no page {page}" for page in LINK.findall(shown_by) if not (PAGE.parent / page).is_file()]
        file = ""
        for span in SPAN.findall(shown_by):
            path, colons, name = span.partition("::")
            if path.startswith(FOLDERS) or path in FILES:
                file = path
                if not (REPOSITORY / path).exists():
                    found.append(f"no file {path}")
                    continue
            if colons and not defines(file, name):
                found.append(f"no {name} in {file or 'any file'}")
        asked = ONLY.findall(shown_by.replace("`", " "))
        found += [f"no row {name} in the bench" for name in asked if name not in rows()]
    return found


@cache
def rows() -> frozenset[str]:
    """The bench makes its frames with its scenarios, which takes a second."""
    return frozenset(scenario.name for scenario in (*every_scenario(), *every_cluster_scenario()))


def defines(file: str, name: str) -> bool:
    return (REPOSITORY / file).is_file() and f"def {name}(" in (REPOSITORY / file).read_text()


def test_what_the_page_names_is_there() -> None:
    text = PAGE.read_text()
    assert len(claims(text)) > 200
    assert faults(text) == []


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ("- A file → `tests/test_nothing.py`", "no file tests/test_nothing.py"),
        ("- A test → `tests/test_logs.py::test_nothing`", "no test_nothing in tests/test_logs.py"),
        ("- Half a name → `tests/test_logs.py::test_a_line`", "no test_a_line in tests/test_logs.py"),
        (
            "- A second →\n  `tests/test_logs.py::test_levels`,\n  `::test_nothing`",
            "no test_nothing in tests/test_logs.py",
        ),
        ("- A test of no file → `::test_levels`", "no test_levels in any file"),
        ("- A page → [nothing](nothing.md)", "no page nothing.md"),
        ("- A row → `python -m bench --only nothing`", "no row nothing in the bench"),
        ("- A claim → trust us", "nothing shows: - A claim → trust us"),
        ("- A claim", "nothing shows: - A claim"),
    ],
)
def test_what_is_made_up_is_found(line: str, fault: str) -> None:
    sound = "- Levels → `tests/test_logs.py::test_levels`\n"
    assert faults(sound) == []
    assert faults(sound + line + "\n" + sound) == [fault]
