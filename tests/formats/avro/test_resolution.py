"""Reading with another schema than the one that was written with."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ottla.formats.avro.columns import arrow_type_of
from ottla.formats.avro.encoding import writer_of
from ottla.formats.avro.resolution import EMPTY_ITEMS_MAX, Form, Unreadable, reader_of
from ottla.formats.avro.schema import parse_schema
from ottla.formats.errors import BadRecord, BadSpec
from ottla.records.errors import RecordError


def record(*fields: dict[str, Any], name: str = "R") -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": list(fields)}


def field(name: str, kind: Any, **more: Any) -> dict[str, Any]:
    return {"name": name, "type": kind, **more}


def read(writer: Any, reader: Any, value: Any, form: Form = Form.OBJECTS) -> Any:
    wrote, reads = parse_schema(json.dumps(writer)), parse_schema(json.dumps(reader))
    raw = bytearray()
    writer_of(wrote)(value, raw)
    found, end = reader_of(wrote, reads, form)(bytes(raw), 0)
    assert end == len(raw)
    return found


WITH_DEFAULTS = record(
    field("n", ["null", "int"], default=None),
    field("l", {"type": "array", "items": "int"}, default=[1]),
    field("b", "bytes", default="\u00ff"),
    field("r", record(field("x", "int", default=7), name="S"), default={}),
)
ENUM = {"type": "enum", "name": "E", "symbols": ["A", "B"]}


@pytest.mark.parametrize(
    ("writer", "reader", "value", "wanted"),
    [
        ("int", "long", 5, 5),
        ("int", "double", 5, 5.0),
        ("long", "float", 5, 5.0),
        ("float", "double", 0.5, 0.5),
        ("string", "bytes", "é", b"\xc3\xa9"),
        ("bytes", "string", b"a", "a"),
        ("int", ["null", "string", "long"], 5, 5),
        (["null", "int"], ["long", "null"], 5, 5),
        (["null", "int"], ["long", "null"], None, None),
        (["int", "string"], "int", 5, 5),
        ({"type": "array", "items": "int"}, {"type": "array", "items": "long"}, [1, 2], [1, 2]),
        ({"type": "map", "values": "int"}, {"type": "map", "values": "double"}, {"a": 1}, {"a": 1.0}),
        (ENUM, {**ENUM, "symbols": ["B", "C", "A"]}, "B", "B"),
        (ENUM, {**ENUM, "symbols": ["C", "B"], "default": "C"}, "A", "C"),
        ({**ENUM, "namespace": "x"}, {**ENUM, "namespace": "y"}, "A", "A"),
        (ENUM, {**ENUM, "name": "F", "aliases": ["E"]}, "A", "A"),
        (record(field("a", "int"), field("gone", {"type": "array", "items": "string"}), field("b", "int")),
         record(field("b", "long"), field("a", "int")), {"a": 1, "gone": ["x"], "b": 2}, {"b": 2, "a": 1}),
        (record(field("old", "int")), record(field("new", "int", aliases=["old"])), {"old": 1}, {"new": 1}),
        (record(field("old", "int"), field("new", "int")), record(field("new", "int", aliases=["old"])),
         {"old": 1, "new": 2}, {"new": 2}),
        (record(field("new", "int"), field("old", "int")), record(field("new", "int", aliases=["old"])),
         {"old": 1, "new": 2}, {"new": 2}),
        (record(field("a", "int"), field("b", "int")), record(field("b", "int", aliases=["a"]), field("a", "int")),
         {"a": 1, "b": 2}, {"a": 1, "b": 2}),
        (record(field("a", "int"), field("b", "int")), record(field("x", "int", aliases=["a", "b"])),
         {"a": 1, "b": 2}, {"x": 1}),
        (record(), WITH_DEFAULTS, {}, {"n": None, "l": [1], "b": b"\xff", "r": {"x": 7}}),
        (record(field("a", "int"), name="x.R"), record(field("a", "int"), name="y.Q"), {"a": 1}, {"a": 1}),
    ],
)  # fmt: skip
def test_what_can_be_read(writer: Any, reader: Any, value: Any, wanted: Any) -> None:
    assert read(writer, reader, value) == wanted


@pytest.mark.parametrize(
    ("writer", "reader", "said"),
    [
        ("long", "int", "long cannot be read as int"),
        ("string", ["null", "int"], "string cannot be read as null or int"),
        (record(field("a", "int")), record(field("b", "int")), "field b of R is not written, and has no default"),
        (record(field("a", "string")), record(field("a", "int")), "field a of R: string cannot be read as int"),
        (ENUM, {**ENUM, "name": "F"}, "the names differ"),
        ({"type": "fixed", "name": "F", "size": 4}, {"type": "fixed", "name": "F", "size": 5}, "has 4 bytes"),
        ({"type": "long", "logicalType": "timestamp-millis"}, {"type": "long", "logicalType": "timestamp-micros"},
         r"long \(timestamp-millis\) cannot be read as"),
        ({"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2},
         {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 3}, "cannot be read as"),
    ],
)  # fmt: skip
def test_what_cannot_be_read(writer: Any, reader: Any, said: str) -> None:
    with pytest.raises(Unreadable, match=said):
        reader_of(parse_schema(json.dumps(writer)), parse_schema(json.dumps(reader)), Form.OBJECTS)


def test_a_branch_that_cannot_be_read_is_the_records_own_error() -> None:
    assert read(["int", "string"], "int", 5) == 5
    with pytest.raises(BadRecord, match="string cannot be read as int"):
        read(["int", "string"], "int", "five")
    with pytest.raises(BadRecord, match="no symbol 'A', and no default"):
        read(ENUM, {**ENUM, "symbols": ["B"]}, "A")


def test_defaults_are_nobodys_in_common() -> None:
    wrote = parse_schema(json.dumps(record()))
    reads = parse_schema(json.dumps(record(field("l", {"type": "array", "items": "int"}, default=[]))))
    reader = reader_of(wrote, reads, Form.OBJECTS)
    first = reader(b"", 0)[0]
    first["l"].append(1)
    assert reader(b"", 0)[0] == {"l": []}


def test_a_record_in_itself() -> None:
    tree = record(field("n", "int"), field("next", ["null", "R"]))
    value = {"n": 1, "next": {"n": 2, "next": None}}
    assert read(tree, tree, value) == value
    longer = record(field("n", "long"), field("next", ["null", "R"]), field("x", "int", default=3))
    assert read(tree, longer, value) == {"n": 1, "next": {"n": 2, "next": None, "x": 3}, "x": 3}


def test_of_branches_with_one_last_part_of_the_name_the_whole_name_counts() -> None:
    """Versions of a record by their namespaces, where each also goes with the other."""
    union = [
        "null",
        record(field("x", "int"), name="shop.v1.Order"),
        record(field("x", "int"), field("y", "int", default=5), name="shop.v2.Order"),
    ]
    assert read(union, union, ("shop.v1.Order", {"x": 1})) == {"x": 1}
    assert read(union, union, ("shop.v2.Order", {"x": 1, "y": 2})) == {"x": 1, "y": 2}
    assert read(union, union, ("shop.v2.Order", {"x": 1, "y": 2}), Form.ARROW) == {"member1": {"x": 1, "y": 2}}
    # Of a third version the first that has its last part is taken, as before.
    third = [record(field("x", "int"), name="shop.v3.Order")]
    assert read(third, union, {"x": 1}, Form.ARROW) == {"member0": {"x": 1}}


def test_of_enums_with_one_last_part_of_the_name_the_whole_name_counts() -> None:
    union = [
        {"type": "enum", "name": "a.Kind", "symbols": ["A", "B"], "default": "A"},
        {"type": "enum", "name": "b.Kind", "symbols": ["B", "C"]},
    ]
    assert read(union, union, ("b.Kind", "C")) == "C"
    assert read(union, union, ("b.Kind", "B"), Form.ARROW) == {"member1": "B"}


def test_a_union_as_arrow_has_it() -> None:
    union = ["string", "null", "int"]
    assert read(union, union, "a", Form.ARROW) == {"member0": "a"}
    assert read(union, union, 5, Form.ARROW) == {"member1": 5}
    assert read(union, union, None, Form.ARROW) is None


def whole(schema: Any, raw: bytes) -> Any:
    parsed = parse_schema(json.dumps(schema))
    return reader_of(parsed, parsed, Form.OBJECTS)(raw, 0)


@pytest.mark.parametrize(
    ("schema", "raw", "said"),
    [
        ("int", b"\x80\x80\x80\x80\x20", "is no int"),
        ("long", b"\xff" * 11, "more than 10 bytes"),
        ("boolean", b"\x02", "no boolean"),
        ("bytes", b"\x09", "a length of -5"),
        ("string", b"\x0aab", "5 bytes are announced at byte 1, and 2 are there"),
        ("string", b"\x02\xff", "no UTF-8 at byte 1"),
        (ENUM, b"\x01", "no symbol -1"),
        (ENUM, b"\x04", "no symbol 2"),
        (["int"], b"\x01\x00", "no branch -1"),
        ({"type": "array", "items": "int"}, b"\xfe\xff\xff\xff\x0f", "items are announced"),
        ({"type": "array", "items": "null"}, b"\x02" + b"\xfe\xff\xff\xff\x0f", f"{EMPTY_ITEMS_MAX - 1} can be there"),
        ({"type": "array", "items": "int"}, b"\x01\x10\x00", "a block of 8 bytes"),
        ({"type": "map", "values": "null"}, b"\xfe\xff\xff\xff\x0f", "entries are announced"),
        ({"type": "bytes", "logicalType": "decimal", "precision": 2}, b"\x04\x7f\xff", "more than 2 digits"),
        ({"type": "bytes", "logicalType": "decimal", "precision": 2}, b"\x40" + bytes(32), "a decimal of 32 bytes"),
        ({"type": "int", "logicalType": "date"}, b"\xff\xff\xff\xff\x0f", "outside of the years"),
        ({"type": "string", "logicalType": "uuid"}, b"\x02a", "no UUID"),
        ({"type": "int", "logicalType": "time-millis"}, b"\x01", "no time of a day"),
    ],
)  # fmt: skip
def test_bytes_that_are_no_value(schema: Any, raw: bytes, said: str) -> None:
    with pytest.raises((BadRecord, RecordError), match=said):
        whole(schema, raw)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "no JSON"),
        ("[" * 100_000, "no JSON"),
        ("5", "no Avro schema"),
        ('"Order"', "'Order' that is not defined"),
        ('{"type": "record", "name": "R"}', "no list of fields"),
        ('{"type": "record", "name": "R-", "fields": []}', "the name 'R-'"),
        ('{"type": "record", "name": "R", "fields": [{"name": "a"}]}', "without 'type'"),
        ('["int", "int"]', "twice"),
        ('["int", ["null"]]', "a union with"),
        ("[]", "union of nothing"),
        ('{"type": "enum", "name": "E", "symbols": ["A", "A"]}', "a symbol twice"),
        ('{"type": "enum", "name": "E", "symbols": ["A"], "default": "B"}', "no symbol 'B'"),
        ('{"type": "fixed", "name": "F", "size": -1}', "a size of -1"),
        ('{"type": "fixed", "name": "string", "size": 1}', "defines string twice"),
        ('{"type": "array"}', "without 'items'"),
        ('[{"type": "fixed", "name": "F", "size": 1}, {"type": "fixed", "name": "F", "size": 2}]', "defines F twice"),
        ('{"type": "array", "items": ' * 80 + '"int"' + "}" * 80, "nested deeper"),
        (json.dumps([{"type": "fixed", "name": f"F{n}", "size": 1} for n in range(20_001)]), "more than 20000 parts"),
    ],
)
def test_schemas_that_are_none(text: str, said: str) -> None:
    with pytest.raises(BadSpec, match=said):
        parse_schema(text)


@pytest.mark.parametrize(("size", "digits"), [(1, 2), (2, 4), (4, 9), (8, 18), (16, 38)])
def test_a_decimal_has_no_more_digits_than_fit_into_its_bytes(size: int, digits: int) -> None:
    """As for all logical types that cannot be, a reader takes what is below; Java's does."""
    fits, too_many = (
        parse_schema(
            json.dumps({"type": "fixed", "name": "F", "size": size, "logicalType": "decimal", "precision": precision})
        )
        for precision in (digits, digits + 1)
    )
    assert (fits.logical, too_many.logical) == ("decimal", None)


def doubling(leaf: Any, levels: int, prefix: str = "T") -> Any:
    """A record that has two of the next, which have two of the next: a value has 2**levels of the last."""
    found = leaf
    for level in range(levels):
        name = f"{prefix}{level}"
        found = record(field("a", found), field("b", name_in(found)), name=name)
    return found


def name_in(schema: Any) -> Any:
    return schema["name"] if isinstance(schema, dict) else schema


def test_a_record_that_cannot_be_read_is_named_also_within_one_that_can() -> None:
    def schema(kind: str) -> Any:
        within = record(field("a", ["null", "A"], default=None), name="B")
        return [record(field("b", ["null", within]), field("x", kind), name="A"), "B"]

    assert read(schema("int"), schema("boolean"), ("B", {"a": None})) == {"a": None}
    with pytest.raises(BadRecord, match="field x of A: int cannot be read as boolean"):
        read(schema("int"), schema("boolean"), ("B", {"a": ("A", {"b": None, "x": 1})}))


def test_types_that_hold_each_other_twice() -> None:
    with pytest.raises(BadSpec, match="more than 1000 parts that take no byte"):
        parse_schema(json.dumps(doubling("null", 20)))
    large = parse_schema(json.dumps(doubling("long", 20)))
    with pytest.raises(IndexError):
        reader_of(large, large, Form.OBJECTS)(b"\x02" * 100, 0)
    with pytest.raises(BadSpec, match="a column of more than 10000 fields"):
        arrow_type_of(large)


def test_unions_that_do_not_go_together_are_tried_once() -> None:
    """Each level of the reader's has two branches that fail at the bottom."""

    writes: Any = "string"
    reads: Any = "int"
    for level in range(28):
        writes = record(field("x", writes), name=f"W{level}")
        below = [one["name"] for one in reads] if isinstance(reads, list) else reads
        reads = [record(field("x", reads), name=f"R{level}a"), record(field("x", below), name=f"R{level}b")]
    with pytest.raises(Unreadable, match="cannot be read as"):
        reader_of(parse_schema(json.dumps(writes)), parse_schema(json.dumps(reads)), Form.OBJECTS)


def doubling_defaults(leaf: dict[str, Any], levels: int) -> Any:
    found = record(leaf, name="T")
    for level in range(levels):
        found = record(field("a", found, default={}), field("b", name_in(found), default={}), name=f"T{level}")
    return found


@pytest.mark.parametrize("form", [Form.OBJECTS, Form.ARROW])
def test_defaults_that_hold_each_other_twice(form: Form) -> None:
    reads = parse_schema(
        json.dumps(record(field("x", doubling_defaults(field("n", "long", default=1), 40), default={})))
    )
    with pytest.raises(BadSpec, match="a default that takes more than 100000 steps"):
        reader_of(parse_schema(json.dumps(record())), reads, form)
    with pytest.raises(BadSpec, match="a default that takes more than 100000 steps"):
        writer_of(reads)
    few = record(field("x", doubling_defaults(field("n", "long", default=1), 3), default={}))
    leaves = json.dumps(read(record(), few, {})).count('"n": 1')
    assert leaves == 8


def test_unions_whose_branches_no_default_fits_are_tried_to_a_bound() -> None:
    """Each level has two branches that fail at the bottom, and a default in which nothing is filled."""
    kind: Any = "int"
    given: Any = "x"
    for level in range(30):
        below = [one["name"] for one in kind] if isinstance(kind, list) else kind
        kind = [record(field("x", kind), name=f"R{level}a"), record(field("x", below), name=f"R{level}b")]
        given = {"x": given}
    with pytest.raises(BadSpec, match="a default that takes more than 100000 steps"):
        writer_of(parse_schema(json.dumps(record(field("x", kind, default=given)))))


def test_a_default_that_is_no_value() -> None:
    wrote, reads = parse_schema(json.dumps(record())), parse_schema(json.dumps(record(field("a", "int", default="x"))))
    with pytest.raises(BadSpec, match="the default 'x', which is no int"):
        reader_of(wrote, reads, Form.OBJECTS)
