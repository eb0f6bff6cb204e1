"""Varints, `struct` formats and offsets of fields stand in `protocol/` and `records/`; other rooms use their names."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

import ottla

SOURCE: Final = Path(ottla.__file__).parent
#: The two rooms of the wire and of batches.
HOMES: Final = ("protocol/", "records/")
#: Files with a format of their own, which nothing else reads or writes, and why.
OTHERS: Final = {
    "cli/input_format.py": "numbers in the form that the user names",
    "cli/number_forms.py": "numbers in the form that the user names",
    "client/producing/partitioners.py": "a key's UTF-16 units, as Java hashes a string",
    "client/serializers.py": "numbers as values of records, by the user's choice",
    "coordination/codec.py": "the tree's journal: docs/formats/coordination-journal.md",
    "coordination/journal.py": "the tree's journal: docs/formats/coordination-journal.md",
    "coordination/snapshot.py": "the tree's snapshot: docs/formats/coordination-journal.md",
    "coordination/zookeeper/forms.py": "ZooKeeper's wire: its Stat, 68 bytes that are read at once",
    "coordination/zookeeper/frames.py": "ZooKeeper's wire: headers of requests, answers and of a multi's operations",
    "coordination/zookeeper/jute.py": "ZooKeeper's wire: jute, an encoding that nothing of Kafka's has",
    "formats/avro/numbers.py": "Avro: numbers in values of records",
    "formats/framing.py": "the header of a value with a schema id, which is Confluent's",
    "javahash.py": "Java's hash of a text, over its UTF-16",
    "java_properties.py": "text: \\uXXXX",
    "testing/sim/observation.py": "a batch's head, read apart from the code that is looked at",
    "mirror/record_forms.py": "records of mirrors' own topics: docs/formats/mirror-topics.md",
    "model.py": "the version's bits and the dashes of a UUID",
    "ports/real/entropy.py": "a number out of random bytes",
    "ports/real/process_child.py": "the pipe between the loop and its worker process",
    "storage/formats/producer_snapshot.py": "a file of its own: docs/formats/producer-snapshot.md",
    "storage/log/indexes/offset_index.py": "a file of its own: docs/formats/indexes.md",
    "storage/log/indexes/time_index.py": "a file of its own: docs/formats/indexes.md",
    "storage/log/indexes/txn_index.py": "a file of its own: docs/formats/indexes.md",
}
#: The least offset that is one of a format: 0 to 3 also stand for a first element, a sign, a pair.
_OFFSET_MIN: Final = 4


def knows_a_format(tree: ast.AST) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module == "struct":
            # As a type, and the error that a read beyond the end raises.
            if any(name.name not in {"Struct", "error"} for name in node.names):
                yield node.lineno, "imports from struct"
        elif _uses_struct(node):
            yield node.lineno, ast.unparse(node)
        elif isinstance(node, ast.Attribute) and node.attr in {"from_bytes", "to_bytes"}:
            yield node.lineno, f"{node.attr}: a number's bytes"
        elif isinstance(node, ast.BinOp | ast.AugAssign) and _is_of_varint(node):
            yield node.lineno, f"seven bits of a byte: {ast.unparse(node)}"
        elif isinstance(node, ast.Compare) and _compares_with_the_top_bit(node):
            yield node.lineno, f"the top bit of a byte: {ast.unparse(node)}"
        elif isinstance(node, ast.Subscript) and _has_literal_offset(node):
            yield node.lineno, f"a place in bytes: {ast.unparse(node)}"


def _uses_struct(node: ast.AST) -> bool:
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Name) and node.func.id == "Struct"
    return isinstance(node, ast.Attribute) and ast.unparse(node.value) == "struct" and node.attr != "error"


def _number(node: ast.AST | None) -> int | None:
    return node.value if isinstance(node, ast.Constant) and type(node.value) is int else None


def _is_of_varint(node: ast.BinOp | ast.AugAssign) -> bool:
    sides = [node.value] if isinstance(node, ast.AugAssign) else [node.left, node.right]
    numbers = {_number(side) for side in sides}
    return (isinstance(node.op, ast.LShift | ast.RShift) and 7 in numbers) or (
        isinstance(node.op, ast.BitAnd | ast.BitOr) and not numbers.isdisjoint({0x7F, 0x80})
    )


def _compares_with_the_top_bit(node: ast.Compare) -> bool:
    sides = [node.left, *node.comparators]
    values = [side.value if isinstance(side, ast.NamedExpr) else side for side in sides]
    return any(_number(value) in {127, 128} for value in values) and any(
        isinstance(value, ast.Subscript) or (isinstance(value, ast.Name) and value.id == "byte") for value in values
    )


def _has_literal_offset(node: ast.Subscript) -> bool:
    place = node.slice
    if not isinstance(place, ast.Slice):
        return _adds_offset(place) or (isinstance(node.value, ast.Name) and _is_field_of_header(node.value.id, place))
    lower = _number(place.lower)
    return (lower is not None and lower >= _OFFSET_MIN) or _adds_offset(place.lower) or _adds_offset(place.upper)


def _is_field_of_header(name: str, place: ast.expr) -> bool:
    return name == "header" and _number(place) is not None


def _adds_offset(node: ast.expr | None) -> bool:
    """`at + 8`: a place, and a number that says how far behind it."""
    if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Add):
        return False
    return any((number := _number(side)) is not None and number >= _OFFSET_MIN for side in (node.left, node.right))


def faults_in(path: Path) -> list[str]:
    found = knows_a_format(ast.parse(path.read_text()))
    return [f"{path.relative_to(SOURCE)}:{line}: {what}" for line, what in sorted(found)]


def test_other_rooms_know_no_format_of_the_wire() -> None:
    faults = [
        fault
        for path in sorted(SOURCE.rglob("*.py"))
        if not (name := path.relative_to(SOURCE).as_posix()).startswith(HOMES) and name not in OTHERS
        for fault in faults_in(path)
    ]
    assert not faults, "give it a name in protocol/ or records/, and use that:\n" + "\n".join(faults)


@pytest.mark.parametrize("name", OTHERS)
def test_every_exception_is_one(name: str) -> None:
    assert faults_in(SOURCE / name)


@pytest.mark.parametrize(
    "line",
    [
        "form = struct.Struct('>i')",
        "read = Struct('>i').unpack_from",
        "from struct import unpack_from",
        "size = int.from_bytes(data[:4], 'big')",
        "value = number.to_bytes(4, 'big')",
        "value |= (byte & 0x7F) << shift",
        "value >>= 7",
        "while data[at] > 127: at += 1",
        "if (length := data[at]) < 128: pass",
        "crc = checksum(records[21:])",
        "length = data[at + 8 : at + 12]",
        "magic = data[at + 16]",
        "delta = header[6]",
    ],
)
def test_what_it_finds(line: str) -> None:
    assert list(knows_a_format(ast.parse(line)))


@pytest.mark.parametrize(
    "line", ["name = text[:40]", "pair = both[0], both[1]", "from struct import Struct, error", "few = lines[2:]"]
)
def test_what_is_none(line: str) -> None:
    assert not list(knows_a_format(ast.parse(line)))
