"""No module needs, at run time, one that needs it: imports inside of functions count, those for types alone do not.

`lint-imports` holds the order of the rooms; this holds the order inside of each.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path

import ottla

ROOT = Path(ottla.__file__).parent


def modules() -> dict[str, ast.Module]:
    """By dotted name; not the generated ones, of which each imports what all of them do."""
    found = {}
    for path in ROOT.rglob("*.py"):
        parts = path.relative_to(ROOT.parent).with_suffix("").parts
        if "generated" not in parts:
            found[".".join(parts).removesuffix(".__init__")] = ast.parse(path.read_text(encoding="utf-8"))
    return found


def imported(node: ast.AST) -> Iterator[str]:
    """What is imported below a node, but for what `if TYPE_CHECKING` holds."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.expr) or (isinstance(child, ast.If) and _is_for_types(child.test)):
            continue
        if isinstance(child, ast.ImportFrom) and child.module is not None:
            # A name may be a module of that package, or something that the package itself has.
            yield from (f"{child.module}.{name.name}" for name in child.names)
        elif isinstance(child, ast.Import):
            yield from (name.name for name in child.names)
        yield from imported(child)


def _is_for_types(test: ast.expr) -> bool:
    return isinstance(test, ast.Name) and test.id == "TYPE_CHECKING"


def needs(trees: Mapping[str, ast.Module]) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for name, tree in trees.items():
        found[name] = set()
        for full in imported(tree):
            needed = full if full in trees else full.rpartition(".")[0]
            if needed in trees and needed != name:
                found[name].add(needed)
    return found


def circles(graph: Mapping[str, set[str]]) -> list[str]:
    """The modules that need themselves by way of others."""
    return sorted(name for name, its in graph.items() if name in reached(graph, its))


def reached(graph: Mapping[str, set[str]], begin: set[str]) -> set[str]:
    found: set[str] = set()
    left = set(begin)
    while left:
        found |= left
        left = set().union(*(graph[name] for name in left)) - found
    return found


def test_no_module_needs_one_that_needs_it() -> None:
    trees = modules()
    assert len(trees) > 700
    assert circles(needs(trees)) == []


def test_a_circle_is_found_wherever_its_imports_stand() -> None:
    trees = {
        "a": ast.parse("def later():\n    from b import thing\n"),
        "b": ast.parse("import a\nimport c\n"),
        "c": ast.parse("from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import b\n"),
        "d": ast.parse("import a\n"),
    }
    assert circles(needs(trees)) == ["a", "b"]
