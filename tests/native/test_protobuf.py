"""The compiled reader of Protobuf's columns: against rows that Google's library reads one by one, damaged or not."""

from __future__ import annotations

import os
import threading
from array import array
from collections.abc import Sequence
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import compute
from tests.formats.protobuf.shop import SHOP, VALUE
from tests.formats.protobuf.wires import ENUMS, IMPORTS, KEYS, mutated, sized, some_rows, sources, tag, varint
from tests.formats.registry_server import registry_server
from tests.native.conftest import NOTHING_COMPILED
from tests.native.other_threads import another_thread_runs_during
from tests.searches import examples

from ottla.formats import decoder
from ottla.formats.column_reading import NoProgram, Program
from ottla.formats.framing import header, indexes
from ottla.formats.protobuf.decoding import ProtobufDecoder
from ottla.formats.protobuf.encoding import ProtobufEncoder
from ottla.formats.protobuf.files import ProtobufSchema
from ottla.formats.protobuf.programs import Absent, Kind, program_of
from ottla.formats.protobuf.source_text import parse_proto
from ottla.formats.schema_decoder import SchemaDecoder

compiled = pytest.importorskip("ottla.native.protobuf", reason=NOTHING_COMPILED)

#: All of it that a program has.
COMPILED = SHOP.replace("google.protobuf.Struct anything = 34;", "")
COMPILED_VALUE = {name: value for name, value in VALUE.items() if name != "anything"}


class Source:
    """Of plain records, without a file."""

    framed = False
    names_its_schema = True

    def __init__(self, text: str) -> None:
        self._schema = ProtobufSchema([parse_proto(text, "it.proto")], None)

    def column_schema(self) -> ProtobufSchema:
        return self._schema


def of_text(text: str) -> ProtobufDecoder:
    return ProtobufDecoder(Source(text))  # type: ignore[arg-type]


def of_fields(fields: str, syntax: str = "proto3") -> ProtobufDecoder:
    return of_text(
        f'syntax = "{syntax}"; {IMPORTS} message M {{ {fields} message Inner {{ repeated int32 xs = 1; }} }}'
    )


def message_of(text: str) -> Any:
    return Source(text).column_schema().message


def raw_of(text: str, value: Any) -> bytes:
    return ProtobufEncoder(Source(text)).encode_one(value)  # type: ignore[arg-type]


def check(reading: ProtobufDecoder, rows: Any) -> Any:
    """Both ways give the same; the column."""
    column, faults = reading.decode(rows)
    column.validate(full=True)
    wanted, their_faults = SchemaDecoder.decode(reading, rows)
    assert column.type == wanted.type
    assert faults.to_pylist() == their_faults.to_pylist()
    assert column.equals(wanted) or shown(column) == shown(wanted)
    return column


def shown(column: Any) -> list[str]:
    """With numbers that are none, and times that Python does not have; what lies below a null is nothing."""
    said = [column.is_null().to_string(window=1_000_000)]
    if pa.types.is_map(column.type):
        column = column.cast(pa.list_(pa.struct([column.type.key_field, column.type.item_field])))
    if pa.types.is_struct(column.type):
        return said + [text for one in column.flatten() for text in shown(one)]
    if pa.types.is_list(column.type):
        lengths = compute.list_value_length(column).to_string(window=1_000_000)
        return [*said, lengths, *shown(column.flatten())]
    return [*said, column.to_string(window=1_000_000)]


@st.composite
def rows_of_schemas(draw: st.DrawFn) -> tuple[str, Sequence[bytes | None]]:
    text = draw(sources())
    return text, some_rows(message_of(text), Random(draw(st.integers(0, 2**32))), 6)


@examples(500)
@given(rows_of_schemas())
def test_at_random(drawn: tuple[str, Sequence[bytes | None]]) -> None:
    text, rows = drawn
    check(of_text(text), pa.array(rows, pa.binary()))


@pytest.mark.parametrize("seed", range(3))
def test_everything_damaged(seed: int) -> None:
    raw, chance = raw_of(COMPILED, COMPILED_VALUE), Random(seed)
    rows = [mutated(raw, chance) for _ in range(2_000)]
    column = check(of_text(COMPILED), pa.array([*rows, raw]))
    assert 0 < column.null_count < len(rows)


def test_everything_cut_off() -> None:
    raw = raw_of(COMPILED, COMPILED_VALUE)
    check(of_text(COMPILED), pa.array([raw[:size] for size in range(len(raw) + 1)]))


def read_at_once(reading: ProtobufDecoder, rows: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """All rows by compiled code."""
    wanted = check(reading, rows)
    with monkeypatch.context() as patch:
        patch.setattr(ProtobufDecoder, "_row_of", None)
        column, faults = reading.decode(rows)
    assert faults.null_count == len(rows)
    assert column.equals(wanted)
    return column


def test_sound_rows_are_read_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = pa.array([raw_of(COMPILED, COMPILED_VALUE), b"", raw_of(COMPILED, COMPILED_VALUE)])
    column = read_at_once(of_text(COMPILED), rows, monkeypatch)
    assert column[0].as_py() == COMPILED_VALUE
    assert column[1].as_py()["words"] == []


def test_what_writers_write_is_read_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lists that are packed or not, in parts; fields in any order; fields that a later schema has."""
    reading = of_fields("repeated int32 a = 1; repeated string b = 2; repeated Inner c = 3; repeated fixed32 d = 40;")
    pieces = [
        tag(1, 2) + sized(varint(1) + varint(-1) + varint(300)),
        tag(2, 2) + sized(b"x"),
        tag(1, 0) + varint(5),
        tag(3, 2) + sized(b""),
        tag(3, 2) + sized(tag(1, 0) + varint(9) + tag(7, 1) + bytes(8)),
        tag(2, 2) + sized(b""),
        tag(40, 2) + sized(b"\xff\xff\xff\xff\0\0\0\0"),
        tag(40, 5) + b"\1\0\0\0",
        tag(40, 2) + sized(b""),
        tag(99, 0) + varint(2**63),
        tag(2**29 - 1, 2) + sized(b"\xff"),
        tag(77, 5) + bytes(4),
    ]
    rows = [b"".join(pieces)]
    for seed in range(20):
        Random(seed).shuffle(pieces)
        rows.append(b"".join(pieces))
    column = read_at_once(reading, pa.array(rows), monkeypatch)
    assert column[0].as_py() == {
        "a": [1, -1, 300, 5],
        "b": ["x", ""],
        "c": [{"xs": []}, {"xs": [9]}],
        "d": [2**32 - 1, 0, 1],
    }


@pytest.mark.parametrize(
    ("fields", "syntax", "row"),
    [
        ("int32 x = 1;", "proto3", b"\x08\1\x08\2"),
        ("int32 x = 1;", "proto3", b"\x08\xff\xff\xff\xff\x1f"),
        ("int32 x = 1;", "proto3", b"\x08" + b"\xff" * 9 + b"\3"),
        ("int32 x = 1;", "proto3", b"\x08" + b"\xff" * 10 + b"\1"),
        ("int32 x = 1;", "proto3", b"\x88\0\1"),
        ("int32 x = 1;", "proto3", b"\x09" + bytes(8)),
        ("int32 x = 1;", "proto3", b"\0\1"),
        ("int32 x = 1;", "proto3", b"\x03\1"),
        ("int32 x = 1;", "proto3", b"\x13\x08\1\x14\x08\5"),
        ("int32 x = 1;", "proto3", b"\x14"),
        ("int32 x = 1;", "proto3", b"\x16\1"),
        ("int32 x = 1;", "proto3", b"\x12\x81\0\1"),
        ("bool x = 1;", "proto3", b"\x08\2"),
        ("string x = 1;", "proto3", b"\x0a\1\xff"),
        ("optional string x = 1;", "proto2", b"\x0a\1\xff"),
        ("Inner x = 1;", "proto3", b"\x0a\0\x0a\2\x08\5"),
        ("Inner x = 1;", "proto3", b"\x0a\2\x08\1\x0a\2\x10\5"),
        ("oneof o { int32 x = 1; Inner y = 2; }", "proto3", b"\x08\1\x12\0"),
        ("oneof o { int32 x = 1; Inner y = 2; }", "proto3", b"\x12\0\x08\1"),
        ("oneof o { Inner x = 1; Inner y = 2; }", "proto3", b"\x12\0\x0a\0\x12\2\x08\1"),
        ("required int32 x = 1;", "proto2", b""),
        ("required int32 x = 1; repeated int32 y = 2;", "proto2", b"\x10\1"),
        ("optional int32 x = 1 [default = 5];", "proto2", b""),
        ("repeated fixed32 x = 1;", "proto3", b"\x0a\3\0\0\0"),
        ("repeated int32 x = 1;", "proto3", b"\x0a\2\1\x80"),
        ("repeated string x = 1;", "proto3", b"\x08\1"),
        ("map<string, int32> x = 1;", "proto3", b"\x0a\5\x0a\1b\x10\1\x0a\5\x0a\1a\x10\2"),
        ("map<string, int32> x = 1;", "proto3", b"\x0a\5\x0a\1a\x10\1\x0a\5\x0a\1a\x10\2"),
        ("map<string, int32> x = 1;", "proto3", b"\x0a\0\x0a\0"),
        ("map<int32, Inner> x = 1;", "proto3", b"\x0a\2\x08\1"),
        ("map<int32, int32> x = 1;", "proto3", b"\x0a\6\x08\1\x10\1\x18\5"),
        ("map<int32, int32> x = 1;", "proto3", b"\x0a\6\x08\1\x10\1\x08\2"),
        ("google.protobuf.Timestamp x = 1;", "proto3", b"\x0a\4\x08\1\x08\2"),
        ("google.protobuf.Timestamp x = 1;", "proto3", b"\x0a\2\x18\1"),
        ("google.protobuf.Timestamp x = 1;", "proto3", b"\x0a\x0b\x10" + varint(-1)),
        ("google.protobuf.Timestamp x = 1;", "proto3", b"\x0a\x0b\x08" + varint(-(2**63))),
        ("google.protobuf.Duration x = 1;", "proto3", b"\x0a\x0b\x10" + varint(-1999)),
        ("google.protobuf.Int32Value x = 1;", "proto3", b"\x0a\4\x08\1\x08\2"),
        ("google.protobuf.Int32Value x = 1;", "proto3", b"\x0a\4\x08\1\x10\2"),
        ("google.protobuf.StringValue x = 1;", "proto3", b"\x0a\3\x0a\1\xff"),
    ],
)
def test_what_is_rare_or_not_sound(fields: str, syntax: str, row: bytes) -> None:
    check(of_fields(fields, syntax), pa.array([row, b"", row + b"\x08\1", row + b"\x9a\6\1a", row[:-1]]))


def test_an_enums_number_without_a_name() -> None:
    for syntax, label in (("proto3", ""), ("proto2", "optional")):
        reading = of_text(f'syntax = "{syntax}"; {ENUMS[syntax]} message M {{ {label} E e = 1; repeated E es = 2; }}')
        numbers = (0, 1, 2, 3, 4, 999, 1000, 1001, -1, -2, -3, 2**31 - 1, -(2**31), 2**31, -(2**31) - 1, 2**32 + 1)
        alone = [tag(1, 0) + varint(number) for number in numbers]
        packed = [tag(2, 2) + sized(varint(number) + varint(number)) for number in numbers]
        check(reading, pa.array([*alone, *packed, *(tag(2, 0) + varint(number) for number in numbers)]))


KEYS_AT_LIMITS = {
    "string": ["", "a", "ab", "b", "é", "\uffff", "\U0001f600"],
    "bool": [False, True],
    "uint32": [0, 1, 2**31, 2**32 - 1],
    "uint64": [0, 1, 2**63, 2**64 - 1],
    "int32": [-(2**31), -1, 0, 1, 2**31 - 1],
    "int64": [-(2**63), -1, 0, 1, 2**63 - 1],
}
LIKE = {"sint": "int", "sfixed": "int", "fixed": "uint"}


@pytest.mark.parametrize("kind", KEYS)
def test_entries_of_maps_are_read_in_the_order_of_their_keys(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    inner = "message Inner { map<string, int32> n = 1; int32 x = 2; }"
    text = (
        f'syntax = "proto3"; message M {{ map<{kind}, int32> m = 5; map<{kind}, Inner> ms = 2; int32 y = 3; {inner} }}'
    )
    keys = KEYS_AT_LIMITS[next((kind.replace(one, other) for one, other in LIKE.items() if kind.startswith(one)), kind)]
    value = {"m": {key: at for at, key in enumerate(keys)}, "ms": {key: {"n": {"b": 1, "a": 2}} for key in keys}}
    pieces = [raw_of(text, {name: {key: one}}) for name, pairs in value.items() for key, one in pairs.items()]
    rows = [b"".join(pieces), raw_of(text, value), b"", None]
    for seed in range(20):
        Random(seed).shuffle(pieces)
        rows.append(b"".join([*pieces[:5], b"\x18\1", *pieces[5:]]))
    column = read_at_once(of_text(text), pa.array(rows), monkeypatch)
    assert {tuple(key for key, _ in row["m"]) for row in column.to_pylist() if row and row["m"]} == {tuple(keys)}


def test_maps_of_several_messages_in_a_row_are_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    fields = "map<int32, int32> m = 1; repeated Holder hs = 2; map<int32, Holder> by = 3;"
    text = f'syntax = "proto3"; message M {{ {fields} message Holder {{ map<int32, int32> m = 1; }} }}'
    pairs = [(number, -number) for number in range(-2, 3)]
    holder = {"m": pairs}
    value = {"m": pairs, "hs": [holder, holder], "by": [(-1, holder), (5, holder)]}
    column = read_at_once(of_text(text), pa.array([raw_of(text, value)] * 3), monkeypatch)
    assert column.to_pylist() == [value] * 3


@pytest.mark.parametrize(
    "fields",
    [
        "google.protobuf.Struct x = 1;",
        "repeated google.protobuf.Value x = 1;",
        "map<string, google.protobuf.ListValue> x = 1;",
    ],
)
def test_there_is_no_program_for_json(fields: str) -> None:
    text = f'syntax = "proto3"; import "google/protobuf/struct.proto"; message M {{ {fields} }}'
    with pytest.raises(NoProgram):
        program_of(message_of(text))
    check(of_text(text), pa.array([b"", None, b"\xff"]))


def test_rows_that_are_no_structs() -> None:
    for name in ("timestamp.proto#Timestamp", "wrappers.proto#Int32Value"):
        file, _, kind = name.partition("#")
        text = f'syntax = "proto3"; import "google/protobuf/{file}"; message M {{ google.protobuf.{kind} x = 1; }}'
        with pytest.raises(NoProgram):
            program_of(message_of(text).fields[0].message_type)


def test_what_extends_a_message_is_checked() -> None:
    """The column has no extension, but a row whose extension is cut off is no message."""
    file: Any = parse_proto('syntax = "proto2"; message M { optional int32 x = 1; extensions 100 to 199; }', "it.proto")
    file.message_type[0].extension_range.add(start=100, end=200)
    file.extension.add(name="more", number=100, label=1, type=11, type_name=".M", extendee=".M")
    reading = of_text('syntax = "proto3"; message M { int32 x = 1; }')
    reading._source._schema = ProtobufSchema([file], None)  # type: ignore[attr-defined]
    column = check(reading, pa.array([b"\x08\1", b"\x08\1" + tag(100, 2) + sized(b"\x08")]))
    assert column.null_count == 1


def test_deep_messages() -> None:
    for depth in (40, 59, 62, 80):
        text = "".join(f"message M{n} {{ M{n + 1} m = 1; }} " for n in range(depth))
        text = f'syntax = "proto3"; {text} message M{depth} {{ int32 x = 1; }}'
        raw = b"\x08\5"
        for _ in range(depth):
            raw = tag(1, 2) + sized(raw)
        column = check(of_text(text), pa.array([raw, raw[:-1], b"", None]))
        assert column.null_count == 2


def test_a_message_without_fields() -> None:
    reading = of_text('syntax = "proto3"; message M { }')
    assert check(reading, pa.array([b"", None, b"\x08\1", b"\x08"])).to_pylist() == [{}, None, {}, None]


def test_parts_of_an_array() -> None:
    reading = of_fields("optional string a = 1; repeated int32 b = 2;")
    rows = pa.array([b"\x0a\1a", None, b"", b"\x0a\1\xff", b"\x12\2\1\2", b"\x0a", b"\x10\5\x0a\0"] * 5)
    for offset in range(12):
        for length in range(12):
            check(reading, rows.slice(offset, length))
    assert reading.decode(rows.slice(0, 5))[0].to_pylist() == [
        {"a": "a", "b": []},
        None,
        {"a": None, "b": []},
        None,
        {"a": None, "b": [1, 2]},
    ]


@pytest.mark.parametrize("kind", [pa.large_binary(), pa.binary_view()])
def test_other_arrays_are_read_one_by_one(kind: Any) -> None:
    rows = pa.array([b"\x08\1", None, b"\x08"], kind)
    assert of_fields("int32 x = 1;").decode(rows)[0].to_pylist() == [{"x": 1}, None, None]


# Headers

LATER = 'syntax = "proto3"; package p; message N { int32 y = 1; } message M { int64 id = 1; string note = 2; }'
EARLIER = 'syntax = "proto3"; package p; message M { int64 id = 1; message Inner { int64 id = 1; } }'


def test_rows_of_several_schemas() -> None:
    with registry_server() as registry:
        first = registry.add("s", EARLIER, kind="PROTOBUF")
        second = registry.add("s", LATER, kind="PROTOBUF")
        other = registry.add("o", '"long"')
        reading = decoder("protobuf:s#M", **{"schema.registry.url": registry.url})
        assert isinstance(reading, ProtobufDecoder)
        rows = [
            header(first) + indexes((0,)) + b"\x08\1",
            header(second) + indexes((1,)) + b"\x08\2\x12\1a",
            None,
            header(second) + indexes((0,)) + b"\x08\3",
            header(first) + indexes((0, 0)) + b"\x08\4",
            header(first) + b"\2\0" + b"\x08\5",
            header(first) + b"\x80\0" + b"\x08\6",
            header(first) + b"\1" + b"\x08\7",
            header(first) + b"\x7e\0",
            header(first) + b"\xff",
            header(other) + b"\0\x08\1",
            header(999) + b"\0\x08\1",
            header(first),
            b"\0\0",
            b"",
            b"\1\0\0\0\1\0\x08\1",
            header(first) + indexes((0,)) + b"\x08",
        ]
        column = check(reading, pa.array(rows))
        assert [one and one["id"] for one in column.to_pylist()] == [1, 2, None, None, None, 5, 6, *[None] * 10]
        for row in rows:
            if row is not None:
                check(reading, pa.array([row] * 3))
        many = [header(number) + b"\0" for number in range(100, 140)]
        assert check(reading, pa.array([*many, rows[0]])).null_count == 40


def test_rows_of_a_header_are_read_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    with registry_server() as registry:
        for text in (EARLIER, LATER):
            registry.add("s", text, kind="PROTOBUF")
        reading = decoder("protobuf:s#M", **{"schema.registry.url": registry.url})
        assert isinstance(reading, ProtobufDecoder)
        rows = [header(1) + b"\0\x08\1", header(2) + indexes((1,)) + b"\x08\2\x12\1a"]
        column = read_at_once(reading, pa.array([*rows, None, *rows]), monkeypatch)
        assert column[1].as_py() == {"id": 2, "note": "a"}


# What is no program


def arguments(program: Program, rows: Any, **changed: Any) -> list[Any]:
    validity, offsets, data = rows.buffers()
    given = {
        "nodes": program.nodes,
        "tables": program.tables,
        "columns": program.columns,
        "offsets": offsets,
        "data": data,
        "validity": validity,
        "first": 0,
        "count": len(rows),
        "header": b"",
    }
    return list({**given, **changed}.values())


def test_programs_at_random_are_refused_or_stay_within_their_memory() -> None:
    program = program_of(message_of(COMPILED))
    rows = pa.array([raw_of(COMPILED, COMPILED_VALUE)] * 3)
    chance = Random(1)
    refused = 0
    for _ in range(3_000):
        nodes, tables = array("i", program.nodes), array("i", program.tables)
        for _ in range(chance.randrange(1, 4)):
            given = chance.choice((nodes, nodes, nodes, tables))
            given[chance.randrange(len(given))] = chance.choice((-(2**31), -1, 0, 1, chance.randrange(200), 2**31 - 1))
        try:
            compiled.read(*arguments(program, rows, nodes=nodes, tables=tables))
        except ValueError:
            refused += 1
    assert 0 < refused < 3_000


ROOT = [0, Kind.MESSAGE, 0, -1, Absent.NULL, -1, 1, 1, 0]


def field_of(**changed: int) -> list[int]:
    usual = {"field": 1, "kind": Kind.INT64, "column": 1, "list": -1, "absent": 0, "oneof": -1, "first": 0, "count": 0}
    return list({**usual, "is_wrapped": 0, **changed}.values())


@pytest.mark.parametrize(
    "changed",
    [
        {"nodes": b""},
        {"nodes": array("i", ROOT)},
        {"nodes": array("i", field_of(column=0)), "columns": 1},
        {"nodes": array("i", [*ROOT, *field_of(kind=99)])},
        {"nodes": array("i", [*ROOT, *field_of(kind=-1)])},
        {"nodes": array("i", [*ROOT, *field_of(field=0)])},
        {"nodes": array("i", [*ROOT, *field_of(column=0)])},
        {"nodes": array("i", [*ROOT, *field_of(column=2)])},
        {"nodes": array("i", [*ROOT, *field_of(column=-1)])},
        {"nodes": array("i", [*ROOT, *field_of(list=1)])},
        {"nodes": array("i", [*ROOT, *field_of(list=0)])},
        {"nodes": array("i", [*ROOT, *field_of(absent=3)])},
        {"nodes": array("i", [*ROOT, *field_of(oneof=2)])},
        {"nodes": array("i", [*ROOT, *field_of(oneof=-2)])},
        {"nodes": array("i", [*ROOT, *field_of(kind=Kind.ENUM, count=1)])},
        {"nodes": array("i", [*ROOT, *field_of(kind=Kind.ENUM, first=2**31 - 1, count=2**31 - 1)])},
        {"nodes": array("i", [*ROOT, *field_of(kind=Kind.MESSAGE, first=2)])},
        {"nodes": array("i", [*ROOT, *field_of(kind=Kind.MESSAGE, absent=1, first=1, count=1)])},
        {"nodes": array("i", [*ROOT, *field_of(kind=Kind.MESSAGE, absent=1, first=2, is_wrapped=1)])},
        {"nodes": array("i", [*ROOT, *field_of(kind=Kind.ENTRY, absent=1, first=2)])},
        {"nodes": array("i", [*ROOT, *field_of(), *field_of(column=2)]), "columns": 3},
        {"nodes": array("i", [*ROOT[:7], 2, 0, *field_of(), *field_of(column=2)]), "columns": 3},
        {"nodes": array("i", [*ROOT, *field_of()]), "columns": 3},
        {"first": -1},
        {"first": 3},
        {"count": 4},
        {"count": -1},
        {"offsets": b""},
        {"validity": b""},
    ],
)
def test_what_is_no_program_or_no_row_is_refused(changed: dict[str, Any]) -> None:
    program = program_of(message_of('syntax = "proto3"; message M { int64 x = 1; }'))
    assert program.nodes == array("i", [*ROOT, *field_of()]).tobytes()
    with pytest.raises(ValueError, match=r"that is no program|the rows are not within"):
        compiled.read(*arguments(program, pa.array([b"\x08\2", None, b"\x08\4"]), **changed))


def test_programs_that_are_too_deep_are_refused() -> None:
    nodes = []
    for level in range(80):
        nodes += [min(level, 1), Kind.MESSAGE, level, -1, Absent.NULL, -1, level + 1, int(level < 79), 0]
    program = program_of(message_of('syntax = "proto3"; message M { int64 x = 1; }'))
    with pytest.raises(ValueError, match="that is no program"):
        compiled.read(*arguments(program, pa.array([b""]), nodes=array("i", nodes), columns=80))


def test_offsets_that_lead_elsewhere_are_bad_rows() -> None:
    program = program_of(message_of('syntax = "proto3"; message M { int64 x = 1; }'))
    offsets = array("i", [0, 2, 9, -1, 2, 4])
    found, bad = compiled.read(
        *arguments(program, pa.array([b"\x08\2", b"\x08\4", b"\x08\6"]), offsets=offsets, count=5)
    )
    assert list(array("i", bad)) == [1, 2, 3]
    assert found[1][:2] == (5, 3)


def test_negative_numbers_of_columns_are_refused() -> None:
    program = program_of(message_of('syntax = "proto3"; message M { int64 x = 1; }'))
    with pytest.raises(MemoryError):
        compiled.read(*arguments(program, pa.array([b""]), columns=-1))


def test_other_threads_go_on() -> None:
    program = program_of(message_of('syntax = "proto3"; message M { string x = 1; }'))
    given = arguments(program, pa.array([b"\x0a\x0a" + b"x" * 10] * 200_000))
    assert another_thread_runs_during(lambda: compiled.read(*given))


def test_several_threads_read_at_once() -> None:
    reading, rows = of_text(COMPILED), pa.array([raw_of(COMPILED, COMPILED_VALUE)] * 500)
    wanted = SchemaDecoder.decode(reading, rows)[0]
    found: list[Any] = []
    threads = [threading.Thread(target=lambda: found.append(reading.decode(rows)[0])) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 4
    assert all(one.equals(wanted) for one in found)


def test_nothing_is_kept_of_what_was_read() -> None:
    if os.environ.get("LD_PRELOAD"):  # sanitizers keep for a while what is freed
        return
    program = program_of(message_of(f'syntax = "proto3"; message M {{ {LISTED} }}'))
    sound = b"\x0a\1a\x10\1\x1a\3\x0a\1b\x1a\3\x0a\1a"
    given = arguments(program, pa.array([sound, sound[:-1], None, b""] * 5_000))
    turns, before = 200, 0
    for turn in range(turns + 50):
        compiled.read(*given)
        if turn == 50:
            before = _resident()
    # A byte of each row's, in one column of them, would be 20 kB a turn.
    assert _resident() - before < turns * 10_000


LISTED = "string a = 1; repeated int32 b = 2; map<string, int32> c = 3;"


def _resident() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096


def test_nothing_compiled_is_used_where_that_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTTLA_PURE", "1")
    monkeypatch.setattr(compiled, "read", None)
    assert of_fields("int32 x = 1;").decode(pa.array([b"\x08\2"]))[0].to_pylist() == [{"x": 2}]
