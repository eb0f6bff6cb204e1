"""The parts of a log own their fields: each is changed in the module of the class that has it, and nowhere else.

This goes over the syntax trees of all rooms that see logs. A syntax tree knows no types, so names have to do: no module
but the owner's may assign a field of that name, of anything but `self`; nor change what is in a list, dict or set of a
part; nor look at a field of a part that begins with an underscore. And nobody inherits from a part.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import ottla

ROOT = Path(ottla.__file__).parent
#: Classes whose fields are looked after, by the module that has them, below `storage/log`.
PARTS = {
    "log": "Log",
    "staging": "Staging",
    "durability": "Durability",
    "places": "Places",
    "leader_epochs": "LeaderEpochs",
    "epochs": "EpochCache",
    "flush": "Flush",
    "segment": "Segment",
    "indexes/segment_file": "SegmentFile",
    "indexes/indexed_file": "IndexedFile",
    "producers/memory": "ProducerMemory",
    "producers/producer_state": "ProducerStates",
    "producers/snapshots": "Snapshots",
}
#: What one class of `PARTS` inherits from the other is its own.
HEIRS = {"segment": "indexes/indexed_file", "indexes/indexed_file": "indexes/segment_file"}
#: Rooms that see logs.
ROOMS = ("storage", "replication", "handlers", "server", "broker", "testing")
CHANGING = {"add", "append", "clear", "discard", "extend", "insert", "pop", "popitem", "remove", "sort", "update"}
#: Fields of other things that are called alike.
OTHERS = {
    "storage/log/indexes/offset_index": {"index.offsets"},
    "storage/log/indexes/time_index": {"index.offsets"},
    "storage/log/open_files": {"oldest.used"},  # the segments' flag is theirs to set and its own to clear
    "storage/log/opening/recovery": {"self.report.end_offset"},
    "replication/writes": {"leader.dirty"},
    "handlers/list_offsets": {"answer.offset"},
    "handlers/offset_commit": {"topic.topic_id"},
    "handlers/offset_fetch": {"topic.topic_id"},
    "handlers/produce/checks": {"each.config"},
}


def fields_of(module: str, name: str, root: Path = ROOT) -> tuple[set[str], set[str]]:
    """All fields of a class, by its `__init__`; and those of them that are lists, dicts or sets."""
    tree = ast.parse((root / "storage/log" / f"{module}.py").read_text())
    (found,) = [node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == name]
    fields, containers = set(), set()
    for node in ast.walk(found):
        if isinstance(node, ast.AnnAssign):
            targets, value = [node.target], node.value
        elif isinstance(node, ast.Assign):
            targets, value = list(node.targets), node.value
        else:
            continue
        for target in targets:
            for each in target.elts if isinstance(target, ast.Tuple) else [target]:
                if isinstance(each, ast.Attribute) and ast.unparse(each.value) == "self":
                    fields.add(each.attr)
                    if isinstance(value, (ast.List, ast.ListComp, ast.Dict, ast.Set)):
                        containers.add(each.attr)
    return fields, containers


def heirs_of(module: str) -> Iterator[str]:
    for heir, parent in HEIRS.items():
        if parent == module:
            yield heir
            yield from heirs_of(heir)


def owners(root: Path = ROOT) -> tuple[dict[str, set[str]], set[str]]:
    """By the name of a field the modules that may assign it; and the names of lists, dicts and sets."""
    by_field: dict[str, set[str]] = {}
    all_containers: set[str] = set()
    for module, name in PARTS.items():
        fields, containers = fields_of(module, name, root)
        all_containers |= containers
        for field in fields:
            owning = by_field.setdefault(field, set())
            owning |= {f"storage/log/{each}" for each in (module, *heirs_of(module))}
    return by_field, all_containers


def foreign_changes(source: str, module: str, by_field: dict[str, set[str]], containers: set[str]) -> Iterator[str]:
    """What a module does to others' fields."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in CHANGING:
            changed, what = node.func.value, f"{node.func.attr}()"
            if not (isinstance(changed, ast.Attribute) and changed.attr in containers):
                continue
        elif isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load):
            changed, what = node.value, "an item"
            if not (isinstance(changed, ast.Attribute) and changed.attr in containers):
                continue
        elif isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load):
            changed, what = node, "assigned"
        elif isinstance(node, ast.Attribute) and node.attr.startswith("_") and not node.attr.startswith("__"):
            changed, what = node, "private"
        else:
            continue
        holder = ast.unparse(changed.value)
        if f"{holder}.{changed.attr}" in OTHERS.get(module, ()):
            continue
        if holder not in {"self", "cls"} and module not in by_field.get(changed.attr, {module}):
            yield f"{module}:{node.lineno}: {holder}.{changed.attr} ({what})"


def heirs_in(source: str, module: str) -> Iterator[str]:
    """The classes of a module that inherit from a part."""
    parts = {name: part for part, name in PARTS.items()}
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.ClassDef):
            continue
        for base in node.bases:
            part = parts.get(ast.unparse(base).rsplit(".", 1)[-1])
            if part is not None and HEIRS.get(module.removeprefix("storage/log/")) != part:
                yield f"{module}:{node.lineno}: {node.name} inherits from {ast.unparse(base)}"


def test_each_field_is_changed_by_its_owner_alone() -> None:
    by_field, containers = owners()
    found: list[str] = []
    for room in ROOMS:
        for path in sorted((ROOT / room).rglob("*.py")):
            module, source = path.relative_to(ROOT).with_suffix("").as_posix(), path.read_text()
            found += foreign_changes(source, module, by_field, containers)
            found += heirs_in(source, module)
    assert found == []


def test_all_parts_are_looked_at() -> None:
    """A field that is renamed or moves must not get out of sight."""
    by_field, containers = owners()
    assert by_field["recovery_point"] == by_field["certain_end"] == {"storage/log/durability"}
    assert by_field["start_offset"] == by_field["end_offset"] == {"storage/log/places"}
    assert by_field["next_offset"] == by_field["roll_size"] == {"storage/log/staging"}
    assert {"_buffers", "_batches", "_unsynced", "_unsynced_paths", "bases", "_spots"} <= containers


@pytest.mark.parametrize(
    "source",
    [
        "log.durability.recovery_point = 7",
        "self._log.places.end_offset += 1",
        "staging.roll_size, x = 1, 2",
        "del log.staging.waits_for",
        "for log.places.size in (): pass",
        "log.places.bases.append(1)",
        "log.places.bases[0] = 1",
        "len(log.durability._unsynced)",
        "class Faster(Staging): pass",
        "class Faster(staging.Staging): pass",
    ],
)
def test_a_foreign_hand_is_found(source: str) -> None:
    by_field, containers = owners()
    module = "storage/log/rolling"
    assert [*foreign_changes(source, module, by_field, containers), *heirs_in(source, module)]
    assert not [*foreign_changes("x = log.places.bases[0]; self.size = 1", module, by_field, containers)]
