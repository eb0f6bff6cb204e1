"""The compiled reader of Avro's columns: against rows that are read one by one, damaged or not."""

from __future__ import annotations

import json
import threading
from array import array
from collections.abc import Sequence
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.formats.avro.schemas import EVERYTHING, VALUE, pairs, renamed
from tests.formats.registry_server import RegistryServer, registry_server
from tests.native.conftest import NOTHING_COMPILED
from tests.native.other_threads import another_thread_runs_during
from tests.searches import examples

from ottla.formats import decoder
from ottla.formats.avro.decoding import AvroDecoder
from ottla.formats.avro.encoding import writer_of
from ottla.formats.avro.programs import Kind, NoProgram, Program, program_of
from ottla.formats.avro.schema import AvroSchema, parse_schema
from ottla.formats.framing import header
from ottla.formats.schema_decoder import SchemaDecoder

compiled = pytest.importorskip("ottla.native.avro", reason=NOTHING_COMPILED)

#: All of `EVERYTHING` that a program has.
COMPILED = {**EVERYTHING, "fields": [one for one in EVERYTHING["fields"] if one["name"] not in {"wide", "either"}]}
COMPILED_VALUE = {name: value for name, value in VALUE.items() if name not in {"wide", "either"}}
NUMBERS = ["null", "boolean", "int", "long", "float", "double", "bytes", "string"]


def of_text(text: str) -> AvroDecoder:
    """Of plain records, without a file."""

    class Source:
        framed = False

        def __init__(self) -> None:
            self.schema = parse_schema(text)

        def writer_schema(self, _id: int) -> AvroSchema:
            return self.schema

        def column_schema(self) -> AvroSchema:
            return self.schema

        given_schema = column_schema

    return AvroDecoder(Source())  # type: ignore[arg-type]


def check(reading: AvroDecoder, rows: Any) -> Any:
    """Both ways give the same; the column."""
    column, faults = reading.decode(rows)
    column.validate(full=True)
    wanted, their_faults = SchemaDecoder.decode(reading, rows)
    assert column.type == wanted.type
    assert faults.to_pylist() == their_faults.to_pylist()
    assert column.equals(wanted) or shown(column) == shown(wanted)
    return column


def shown(column: Any) -> str:
    """With numbers that are none; and times that Python does not have, where there are any."""
    try:
        return repr(column.to_pylist())
    except (ValueError, OverflowError):
        text: str = column.to_string(window=1_000_000, container_window=1_000_000)
        return text


def mutated(raw: bytes, chance: Random) -> bytes:
    data = bytearray(raw)
    for _ in range(chance.randrange(1, 4)):
        at = chance.randrange(len(data) + 1)
        if chance.random() < 0.3:
            del data[at:]
        elif chance.random() < 0.5:
            data[at:at] = bytes([chance.choice((0, 0x80, 0xFF, chance.randrange(256)))]) * chance.randrange(1, 12)
        elif at < len(data):
            data[at] = chance.randrange(256)
    return bytes(data)


@st.composite
def rows_of_schemas(draw: st.DrawFn) -> tuple[str, list[bytes | None]]:
    schema, values = draw(pairs())
    text = json.dumps(renamed(schema))
    write = writer_of(parse_schema(text))
    rows: list[bytes | None] = []
    for value in draw(st.lists(values, min_size=1, max_size=6)):
        raw = bytearray()
        write(value, raw)
        rows.append(bytes(raw))
    chance = Random(draw(st.integers(0, 2**32)))
    damaged = [mutated(row, chance) for row in rows if row is not None]
    return text, chance.sample([*rows, *damaged, None], 2 * len(rows) + 1)


@examples(500)
@given(rows_of_schemas())
def test_at_random(drawn: tuple[str, list[bytes | None]]) -> None:
    text, rows = drawn
    check(of_text(text), pa.array(rows, pa.binary()))


@pytest.mark.parametrize("seed", range(3))
def test_everything_damaged(seed: int) -> None:
    text = json.dumps(COMPILED)
    raw = bytearray()
    writer_of(parse_schema(text))(COMPILED_VALUE, raw)
    chance = Random(seed)
    rows = [mutated(bytes(raw), chance) for _ in range(2_000)]
    column = check(of_text(text), pa.array([*rows, bytes(raw)]))
    assert 0 < column.null_count < len(rows)


def test_sound_rows_are_read_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    text = json.dumps(COMPILED)
    raw = bytearray()
    writer_of(parse_schema(text))(COMPILED_VALUE, raw)
    reading = of_text(text)
    wanted = SchemaDecoder.decode(reading, pa.array([bytes(raw)] * 3))[0]
    monkeypatch.setattr(AvroDecoder, "_row_of", None)
    assert reading.decode(pa.array([bytes(raw)] * 3))[0].equals(wanted)


def test_parts_of_an_array() -> None:
    reading = of_text(json.dumps(["null", "string"]))
    rows = pa.array([b"\2\2a", None, b"\0", b"\2\2\xff", b"\2\4bc", b"", b"\4"] * 5)
    for offset in range(12):
        for length in range(12):
            check(reading, rows.slice(offset, length))
    assert reading.decode(rows.slice(0, 5))[0].to_pylist() == ["a", None, None, None, "bc"]


@pytest.mark.parametrize("kind", [pa.large_binary(), pa.binary_view()])
def test_other_arrays_are_read_one_by_one(kind: Any) -> None:
    rows = pa.array([b"\2a", None, b"\4"], kind)
    assert of_text('"string"').decode(rows)[0].to_pylist() == ["a", None, None]


def test_texts_are_those_of_python() -> None:
    """Each sequence of bytes of one character, and what lies beside it."""
    firsts = [
        0x7F,
        0x80,
        0xBF,
        0xC0,
        0xC1,
        0xC2,
        0xDF,
        0xE0,
        0xE1,
        0xEC,
        0xED,
        0xEE,
        0xEF,
        0xF0,
        0xF1,
        0xF3,
        0xF4,
        0xF5,
    ]
    seconds = [0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC0]
    texts = [
        bytes([first, second, *rest]) for first in firsts for second in seconds for rest in ([], [0x80], [0x80, 0xBF])
    ]
    texts += [before + text + after for text in texts for before, after in ((b"1234567", b""), (b"", b"123456789"))]
    rows = [bytes([2 * len(text)]) + text for text in texts]
    column = check(of_text('"string"'), pa.array(rows))
    assert 0 < column.null_count < len(rows)


@pytest.mark.parametrize("digits", [1, 9, 18, 19, 38, 39])
@pytest.mark.parametrize("size", [None, 16, 20])
def test_decimals_at_their_limits(digits: int, size: int | None) -> None:
    kind = {"type": "bytes"} if size is None else {"type": "fixed", "name": "F", "size": size}
    schema = {**kind, "logicalType": "decimal", "precision": digits, "scale": 1}
    numbers = [0, 1, -1, 127, 128, -128, -129, *(sign * 10**digits + step for sign in (1, -1) for step in (-1, 0, 1))]
    rows = []
    for number in numbers:
        for length in [size] if size is not None else range(20):
            if (number + (number < 0)).bit_length() < 8 * length:
                raw = number.to_bytes(length, "big", signed=True)
                rows.append(raw if size is not None else bytes([2 * length]) + raw)
    column = check(of_text(json.dumps(schema)), pa.array([*rows, b"\0"]))
    assert 0 < column.null_count < len(rows)


def test_numbers_at_their_limits() -> None:
    logical = [
        ("int", "date", 1),
        ("int", "time-millis", 86_400_000),
        ("long", "time-micros", 86_400_000_000),
        ("long", "timestamp-millis", (2**63 - 1) // 1000),
        ("long", "timestamp-micros", 2**62),
        ("int", None, 2**31),
        ("long", None, 2**63 - 2),
    ]
    for kind, name, limit in logical:
        schema = kind if name is None else {"type": kind, "logicalType": name}
        rows = []
        for number in {0, 1, -1, *(sign * limit + step for sign in (1, -1) for step in (-1, 0, 1)), -(2**63)}:
            raw = bytearray()
            writer_of(parse_schema('"long"'))(number, raw)
            rows.append(bytes(raw))
        check(of_text(json.dumps(schema)), pa.array(rows))


def test_keys_that_come_twice() -> None:
    many = {f"k{number}": number for number in range(70)}
    text = json.dumps({"type": "map", "values": "int"})
    raw = bytearray()
    writer_of(parse_schema(text))(many, raw)
    twice = b"\4\2a\2\2a\4\0"
    apart = b"\2\2a\2\4\2b\2\2a\6\0"
    column = check(of_text(text), pa.array([twice, bytes(raw), apart, b"\2\2a\2\0", b"\0"]))
    assert column.to_pylist() == [[("a", 2)], list(many.items()), [("a", 3), ("b", 1)], [("a", 1)], []]


def test_blocks_with_a_size() -> None:
    rows = [b"\3\4\2\4\2\6\0", b"\3\x50\2\4\0", b"\3\1\2\4\0", b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\1\2\2\0"]
    column = check(of_text('{"type": "array", "items": "long"}'), pa.array(rows))
    assert column.to_pylist() == [[1, 2, 3], None, None, None]


# Two schemas

SUIT = EVERYTHING["fields"][8]["type"]
WRITERS: Sequence[Any] = (
    [{"name": "id", "type": "long"}, {"name": "note", "type": ["null", "string"]}],
    [
        {"name": "id", "type": "int"},
        {"name": "old", "type": {"type": "map", "values": ["null", SUIT]}},
    ],
    [{"name": "note", "type": "string"}, {"name": "id", "type": "long"}, {"name": "gone", "type": COMPILED}],
    [{"name": "id", "type": "string"}],
    [{"name": "key", "type": "long"}, {"name": "note", "type": ["string", "null"]}],
    [{"name": "id", "type": "long"}, {"name": "note", "type": ["null", "bytes"]}],
    [{"name": "id", "type": "long"}, {"name": "note", "type": ["null", "string", "int"]}],
)
READER = [
    {"name": "id", "type": "long", "aliases": ["key"]},
    {"name": "note", "type": ["null", "string"], "default": None},
    {"name": "more", "type": {"type": "array", "items": "int"}, "default": [1, 2]},
]
VALUES: Sequence[dict[str, Any]] = (
    {"id": 1, "note": "x"},
    {"id": 2, "old": {"a": None, "b": "SPADES"}},
    {"note": "y", "id": 3, "gone": COMPILED_VALUE},
    {"id": "4"},
    {"key": 5, "note": "z"},
    {"id": 6, "note": b"\xff"},
    {"id": 7, "note": "w"},
)


def record_of(fields: Any) -> str:
    return json.dumps({"type": "record", "name": "R", "fields": fields})


def test_rows_of_several_schemas() -> None:
    with registry_server() as registry:
        raws = [written(registry, fields, value) for fields, value in zip(WRITERS, VALUES, strict=True)]
        registry.add("s", record_of(READER))
        reading = decoder("avro:s", **{"schema.registry.url": registry.url})
        assert isinstance(reading, AvroDecoder)
        mixed = [raws[0], None, raws[3], b"\0", raws[1], raws[2], b"", raws[0][:-1], header(999) + b"x", *raws[4:]]
        column = check(reading, pa.array(mixed))
        assert [None if one is None else (one["id"], one["note"], one["more"]) for one in column.to_pylist()] == [
            (1, "x", [1, 2]),
            None,
            None,
            None,
            (2, None, [1, 2]),
            (3, "y", [1, 2]),
            None,
            None,
            None,
            (5, "z", [1, 2]),
            None,
            (7, "w", [1, 2]),
        ]
        for raw in raws:
            check(reading, pa.array([raw] * 3))
        many = [header(number) for number in range(100, 140)]
        assert check(reading, pa.array([*many, raws[0]])).null_count == 40


def written(registry: RegistryServer, fields: Any, value: dict[str, Any]) -> bytes:
    schema_id = registry.add("s", record_of(fields))
    raw = bytearray(header(schema_id))
    writer_of(parse_schema(record_of(fields)))(value, raw)
    return bytes(raw)


def test_types_that_hold_themselves_are_passed_over_row_by_row() -> None:
    twice = {
        "type": "record",
        "name": "T",
        "fields": [{"name": "left", "type": ["null", "T"]}, {"name": "right", "type": ["null", "T"]}],
    }
    writer = parse_schema(record_of([{"name": "id", "type": "int"}, {"name": "tree", "type": twice}]))
    with pytest.raises(NoProgram):
        program_of(writer, parse_schema(record_of([{"name": "id", "type": "int"}])))


@examples(100)
@given(st.sampled_from(NUMBERS), st.sampled_from(NUMBERS), st.binary(max_size=12))
def test_kinds_that_become_others(writer: str, reader: str, data: bytes) -> None:
    reading = of_text(json.dumps(reader))
    reading._source.writer_schema = lambda _: parse_schema(json.dumps(writer))  # type: ignore[method-assign]
    check(reading, pa.array([data, bytes(1), bytes(8), None]))


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
    schema = parse_schema(json.dumps(COMPILED))
    program = program_of(schema, schema)
    raw = bytearray()
    writer_of(schema)(COMPILED_VALUE, raw)
    rows = pa.array([bytes(raw)] * 3)
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


@pytest.mark.parametrize(
    "changed",
    [
        {"nodes": b""},
        {"nodes": array("i", [Kind.LONG, 0, 2, 0])},
        {"nodes": array("i", [Kind.OPTIONAL, -1, 1, 0])},
        {"nodes": array("i", [Kind.LIST, 0, 1, 0])},
        {"nodes": array("i", [99, 0, 1, 0])},
        {"nodes": array("i", [Kind.ENUM, 0, 1, 0]), "tables": array("i", [1])},
        {"nodes": array("i", [Kind.DECIMAL, 0, 1, 0]), "tables": array("i", [39, -1, 9])},
        {"nodes": array("i", [Kind.LONG, -1, 1, 0])},
        {"first": -1},
        {"first": 3},
        {"count": 4},
        {"count": -1},
        {"offsets": b""},
        {"validity": b""},
    ],
)
def test_what_is_no_program_or_no_row_is_refused(changed: dict[str, Any]) -> None:
    schema = parse_schema('"long"')
    with pytest.raises(ValueError, match=r"that is no program|the rows are not within"):
        compiled.read(*arguments(program_of(schema, schema), pa.array([b"\2", None, b"\4"]), **changed))


def test_offsets_that_lead_elsewhere_are_bad_rows() -> None:
    schema = parse_schema('"long"')
    offsets = array("i", [0, 1, 5, -1, 2, 3])
    found, bad = compiled.read(
        *arguments(program_of(schema, schema), pa.array([b"\2", b"\4", b"\6"]), offsets=offsets, count=5)
    )
    assert list(array("i", bad)) == [1, 2, 3]
    assert found[0][:2] == (5, 3)


def test_negative_numbers_of_columns_are_refused() -> None:
    schema = parse_schema('"long"')
    with pytest.raises(MemoryError):
        compiled.read(*arguments(program_of(schema, schema), pa.array([b"\2"]), columns=-1))


def test_other_threads_go_on() -> None:
    schema = parse_schema('"string"')
    given = arguments(program_of(schema, schema), pa.array([b"\x14" + b"x" * 10] * 200_000))
    assert another_thread_runs_during(lambda: compiled.read(*given))


def test_several_threads_read_at_once() -> None:
    text = json.dumps(COMPILED)
    raw = bytearray()
    writer_of(parse_schema(text))(COMPILED_VALUE, raw)
    reading, rows = of_text(text), pa.array([bytes(raw)] * 500)
    wanted = SchemaDecoder.decode(reading, rows)[0]
    found: list[Any] = []
    threads = [threading.Thread(target=lambda: found.append(reading.decode(rows)[0])) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 4
    assert all(one.equals(wanted) for one in found)


def test_nothing_compiled_is_used_where_that_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTTLA_PURE", "1")
    monkeypatch.setattr(compiled, "read", None)
    assert of_text('"long"').decode(pa.array([b"\2"]))[0].to_pylist() == [1]
