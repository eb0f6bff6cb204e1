"""What pages say of this code's places is there: files, classes with their methods, constants, tests.

A page is not a place for a name that was; a reader who looks for it loses more time than the page has saved.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "ottla"
#: `docs/changes.md` and `docs/audit/` have tests of their own; what this began with is others' words.
PAGES = [
    page
    for folder in ("docs", "docs/formats", "docs/decisions")
    for page in sorted((ROOT / folder).glob("*.md"))
    if page.name != "changes.md"
]
PAGES.append(ROOT / "CONTRIBUTING.md")
OWN = Path(__file__).name
ROOMS = ("src", "tests", "bench", "tools")
SPAN = re.compile(r"`([^`\n]+)`")
#: Files' names in examples, of what a reader is to make.
EXAMPLES = ("x.py", "test_x.py")
#: A path below the root or `src/ottla`, or its end.
FILE = re.compile(r"(?:[\w.-]+/)*[\w-]+\.(?:py|c|h|pyi|schema)(?:::\w+)?")
#: Kafka's own are in camel case.
METHOD = re.compile(r"([A-Z]\w+)\.([a-z_]+)(?:\(\))?")
#: Names of metrics are put together of pieces.
SNAKE = re.compile(r"(?!kafka_|ottla_)_?[a-z]+(?:_[a-z]+)+(?:\(\))?")


@cache
def files() -> tuple[str, ...]:
    """Each with a slash before it, so that a path's end can be looked for."""
    found = [*ROOT.glob("*.*"), *(path for room in ROOMS for path in (ROOT / room).rglob("*.*"))]
    return tuple(f"/{path.relative_to(ROOT).as_posix()}" for path in found)


@cache
def words() -> frozenset[str]:
    """All names in the code, but for the generated one and for what is planted here."""
    found: set[str] = set()
    for file in files():
        if file.endswith((".py", ".c", ".h", ".schema")) and "/generated/" not in file and not file.endswith(OWN):
            found.update(re.findall(r"\w+", (ROOT / file[1:]).read_text(encoding="utf-8")))
    return frozenset(found)


@cache
def classes() -> dict[str, str]:
    """The texts of all files that define a class of a name."""
    found: dict[str, str] = {}
    for path in SOURCE.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        for name in re.findall(r"^class (\w+)", text, re.MULTILINE):
            found[name] = found.get(name, "") + text
    return found


def faults(text: str) -> list[str]:
    found = []
    for span in SPAN.findall(text):
        if FILE.fullmatch(span):
            path, _, test = span.partition("::")
            if path.rpartition("/")[2] in EXAMPLES:
                continue
            there = [file for file in files() if file.endswith(f"/{path}")]
            if not there:
                found.append(f"no file {span}")
            elif test and not any(f"def {test}(" in (ROOT / file[1:]).read_text() for file in there):
                found.append(f"no test {span}")
        elif (method := METHOD.fullmatch(span)) and method[1] in classes():
            text_of = classes()[method[1]]
            if not re.search(rf"\b{method[2]}\b", text_of):
                found.append(f"no {span}")
        elif SNAKE.fullmatch(span) and span.removesuffix("()") not in words():
            found.append(f"no name {span}")
    return found


@pytest.mark.parametrize("page", PAGES, ids=[page.relative_to(ROOT).as_posix() for page in PAGES])
def test_what_a_page_names_is_there(page: Path) -> None:
    assert faults(page.read_text(encoding="utf-8")) == []


def test_what_is_not_there_is_found() -> None:
    assert faults("`storage/log/log.py`, `log.py`, `Replicas.take_on`, `tests/test_logs.py::test_levels`") == []
    assert faults("`storage/log/nothing.py`") == ["no file storage/log/nothing.py"]
    assert faults("`Replicas.nothing_of_it`") == ["no Replicas.nothing_of_it"]
    assert faults("`shard_for`, `shard_for_nobody`") == ["no name shard_for_nobody"]
    assert faults("`test_logs.py::test_nothing`") == ["no test test_logs.py::test_nothing"]
