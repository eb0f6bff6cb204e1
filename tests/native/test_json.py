"""The compiled reader of JSON's columns: against rows that are read one by one, damaged or not."""

from __future__ import annotations

import json
import locale
import threading
from array import array
from itertools import count
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.native.conftest import NOTHING_COMPILED
from tests.native.other_threads import another_thread_runs_during
from tests.native.test_avro import arguments, mutated, shown
from tests.searches import examples

from ottla.formats.ddl import parsed_ddl
from ottla.formats.json import JsonDecoder
from ottla.formats.json_programs import Kind, program_of

compiled = pytest.importorskip("ottla.native.json", reason=NOTHING_COMPILED)

EVERYTHING = """flag BOOLEAN, tiny TINYINT, small SMALLINT, number INT, large BIGINT, single FLOAT, double DOUBLE,
    text STRING, day DATE, at TIMESTAMP, here TIMESTAMP_NTZ, price DECIMAL(10, 2), list ARRAY<INT>,
    inner STRUCT<x: DOUBLE, more: ARRAY<STRUCT<y: STRING>>>, map MAP<STRING, BIGINT>, _corrupt_record STRING"""
VALUE: dict[str, Any] = {
    "flag": True,
    "tiny": -128,
    "small": 32767,
    "number": -(2**31),
    "large": 123456789012345678,
    "single": 0.1,
    "double": 1.7976931348623157e308,
    "text": 'h\u00e9 \U0001f600 "quoted" \\ \n',
    "other": {"deep": [1, {"a": None}, "x", True, -0.5e-3]},
    "day": "2024-02-29",
    "at": "2024-02-29T23:59:59.123456+05:30",
    "here": "1969-12-31 23:59:59.5",
    "price": 12345678.9,
    "list": [1, None, 2],
    "inner": {"x": None, "more": [{"y": "z"}, {}, None]},
    "map": {"a": 1, "b": None, "": 3},
}


def check(reading: JsonDecoder, rows: Any) -> Any:
    """Both ways give the same; the column."""
    column, faults = reading.decode(rows)
    column.validate(full=True)
    wanted, their_faults = reading._one_by_one(rows)
    assert column.type == wanted.type
    assert faults.to_pylist() == their_faults.to_pylist()
    assert column.equals(wanted) or shown(column) == shown(wanted)
    return column


def of(ddl: str) -> JsonDecoder:
    return JsonDecoder(parsed_ddl(ddl))


TEXTS = st.text(max_size=6) | st.sampled_from(
    ["\ud83d\ude00", "\ud800", '"', "\\", "\x1f", "true", "1.5", "NaN", "2024-01-02"]
)
NUMBERS = (
    st.integers(-300, 300)
    | st.sampled_from([sign * 2**bits + step for bits in (7, 15, 31, 63) for sign in (1, -1) for step in (-1, 0)])
    | st.floats()
    | st.floats(width=16)
)
TIMES = st.datetimes().map(str) | st.datetimes().map(lambda time: time.isoformat() + "Z") | st.dates().map(str)
ANY: Any = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXTS | TIMES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=6,
)
KINDS: Any = {
    "BOOLEAN": st.booleans(),
    **dict.fromkeys(("TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE"), NUMBERS),
    **dict.fromkeys(
        ("DECIMAL(5, 2)", "DECIMAL(2, 2)", "DECIMAL(38, 0)"), NUMBERS | st.decimals(-999, 999, places=2).map(float)
    ),
    **dict.fromkeys(("DATE", "TIMESTAMP", "TIMESTAMP_NTZ"), TIMES | NUMBERS),
    "STRING": TEXTS,
    "BINARY": TEXTS,
}


@st.composite
def types(draw: st.DrawFn, names: Any, depth: int = 2) -> tuple[str, Any]:
    """A type, and values most of which are of it."""
    kind = draw(st.sampled_from(["simple", "simple", "simple", "ARRAY", "MAP", "STRUCT"])) if depth else "simple"
    if kind == "simple":
        name = draw(st.sampled_from(sorted(KINDS)))
        return name, st.none() | KINDS[name] | KINDS[name] | KINDS[name] | ANY
    if kind == "STRUCT":
        fields = {f"f{next(names)}": draw(types(names, depth - 1)) for _ in range(draw(st.integers(1, 3)))}
        text = ", ".join(f"{name}: {one}" for name, (one, _) in fields.items())
        return f"STRUCT<{text}>", st.fixed_dictionaries({}, optional={name: of for name, (_, of) in fields.items()})
    inner, values = draw(types(names, depth - 1))
    if kind == "ARRAY":
        return f"ARRAY<{inner}>", st.lists(values, max_size=3)
    return f"MAP<STRING, {inner}>", st.dictionaries(TEXTS, values, max_size=3)


@st.composite
def rows_of_schemas(draw: st.DrawFn) -> tuple[str, list[bytes | None]]:
    fields = {f"c{number}": draw(types(count())) for number in range(draw(st.integers(1, 4)))}
    ddl = ", ".join(f"{name} {kind}" for name, (kind, _) in fields.items())
    values = st.fixed_dictionaries({}, optional={**{name: of for name, (_, of) in fields.items()}, "other": ANY})
    chance = Random(draw(st.integers(0, 2**32)))
    rows = []
    for value in draw(st.lists(values, min_size=1, max_size=5)):
        is_ascii, indent = chance.random() < 0.5, chance.choice((None, None, 1))
        rows.append(json.dumps(value, ensure_ascii=is_ascii, indent=indent).encode(errors="surrogatepass"))
    damaged = [mutated(row, chance) for row in rows]
    return ddl + draw(st.sampled_from(["", ", _corrupt_record STRING"])), [*rows, None, *damaged]


@examples(500)
@given(rows_of_schemas())
def test_at_random(drawn: tuple[str, list[bytes | None]]) -> None:
    ddl, rows = drawn
    check(of(ddl), pa.array(rows, pa.binary()))


@pytest.mark.parametrize("seed", range(3))
def test_everything_damaged(seed: int) -> None:
    raws = [json.dumps(VALUE, ensure_ascii=is_ascii).encode() for is_ascii in (True, False)]
    chance = Random(seed)
    marks = [*b'"\\{}[],:0-.eE tnu\x00\xff']
    rows = [*raws]
    for _ in range(1_000):
        raw = bytearray(mutated(chance.choice(raws), chance))
        if raw:
            raw[chance.randrange(len(raw))] = chance.choice(marks)
        rows += [bytes(raw), mutated(chance.choice(raws), chance)]
    check(of(EVERYTHING), pa.array(rows))


def test_sound_rows_are_read_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = pa.array([json.dumps(VALUE).encode(), b'{"_corrupt_record": 5}'] * 2)
    wanted = of(EVERYTHING)._one_by_one(rows)[0]
    monkeypatch.setattr(JsonDecoder, "_in_python", None)
    assert of(EVERYTHING).decode(rows)[0].equals(wanted)


def test_parts_of_an_array() -> None:
    rows = pa.array([b'{"a": 1}', None, b"{}", b"{", b' {"a": null} ', b"", b'{"a": "x"}'] * 3)
    for offset in range(10):
        for length in range(10):
            check(of("a INT"), rows.slice(offset, length))


@pytest.mark.parametrize(
    "text",
    [
        r'{"a": "\u00e9\u0041\ud83d\ude00\/\b\f\n\r\t\"\\"}',
        r'{"a": "\ud83d"}',
        r'{"a": "\ude00\ud83d"}',
        r'{"a": "\ud83d\u0041"}',
        r'{"a": "\uD83D\uDE0"}',
        r'{"a": "\x41"}',
        r'{"a": "\u004"}',
        r'{"\u0061": "x"}',
        r'{"b": "\ud83d", "a": "x"}',
        r'{"b\"": 1, "a": [1, "\ud83d"]}',
        '{"a": "\t"}',
        '{"a": "\x7f"}',
        '{"a": tru}',
        '{"a": {"x": [1, 2.50]} }',
        '{"a": 1.50e3 }',
        '{"a": [}',
        '{"a": "x",}',
        '{"a" "x"}',
        '{"a": "x"} x',
        "\ufeff{}",
        '{"a": ' + "[" * 200 + "]" * 200 + "}",
        '{"b": ' + "[" * 60 + "]" * 60 + ', "a": 1}',
    ],
)
def test_texts(text: str) -> None:
    for ddl in ("a STRING", "a STRING, _corrupt_record STRING", '`b"` INT, a STRING', "a MAP<STRING, STRING>"):
        check(of(ddl), pa.array([text.encode()]))


@pytest.mark.parametrize("text", ["0", "-0", "-0.0", "1", "1.", ".5", "01", "+1", "1e5", "1E+5", "1e", "1e999", "1e-999", "-", "0x10", "9" * 19, "0.1234567890123456789", "9" * 70, "5e-324", "2.2250738585072011e-308", "16777217", "340282356779733661637539395458142568448"])  # fmt: skip  # noqa: E501
def test_numbers(text: str) -> None:
    for kind in ("INT", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL(5, 2)", "DECIMAL(38, 38)", "DECIMAL(38, 0)", "STRING"):
        check(of(f"a {kind}"), pa.array([b'{"a": %s}' % text.encode(), b'{"a": [%s]}' % text.encode()]))


def test_a_locale_with_another_point_changes_no_number() -> None:
    before = locale.setlocale(locale.LC_NUMERIC)
    try:
        for name in ("de_DE.UTF-8", "fr_FR.UTF-8", "C.UTF-8"):
            try:
                locale.setlocale(locale.LC_NUMERIC, name)
            except locale.Error:
                continue
            assert of("a DOUBLE").decode(pa.array([b'{"a": 1.5}']))[0].to_pylist() == [{"a": 1.5}]
    finally:
        locale.setlocale(locale.LC_NUMERIC, before)


def test_days_of_four_hundred_years() -> None:
    days = pa.array(range(-150_000, 3_000_000, 97), pa.int32()).cast(pa.date32())
    rows = pa.array([b'{"a": "%s"}' % day.encode() for day in days.cast(pa.string()).to_pylist()[:25_000]])
    assert check(of("a DATE"), rows).field("a").null_count == 0
    check(of("a TIMESTAMP"), rows)


# What is no program


def test_programs_at_random_are_refused_or_stay_within_their_memory() -> None:
    program = program_of(parsed_ddl(EVERYTHING))
    rows = pa.array([json.dumps(VALUE).encode()] * 3)
    chance = Random(1)
    refused = 0
    for _ in range(3_000):
        nodes = array("i", program.nodes)
        for _ in range(chance.randrange(1, 4)):
            nodes[chance.randrange(len(nodes))] = chance.choice((-(2**31), -1, 0, 1, chance.randrange(200), 2**31 - 1))
        try:
            compiled.read(*arguments(program, rows, nodes=nodes))
        except ValueError:
            refused += 1
    assert 0 < refused < 3_000


@pytest.mark.parametrize(
    "changed",
    [
        {"nodes": b""},
        {"columns": 1},
        {"columns": 3},
        {"nodes": array("i", [Kind.BIGINT, 1, 0, 0, 0]), "columns": 1},
        {"nodes": array("i", [Kind.RECORD, 1, 0, 0, 9]), "columns": 1},
        {"nodes": array("i", [Kind.RECORD, 2, 0, 0, 0, Kind.LIST, 2, 0, 0, 0]), "columns": 2},
        {"nodes": array("i", [Kind.RECORD, 2, 0, 0, 0, Kind.MAP, 2, 0, 0, 0]), "columns": 2},
        {"nodes": array("i", [Kind.RECORD, 2, 0, 0, 0, Kind.DECIMAL, 2, 3901, 0, 0]), "columns": 2},
        {"first": 3},
        {"offsets": b""},
        {"validity": b""},
    ],
)
def test_what_is_no_program_or_no_row_is_refused(changed: dict[str, Any]) -> None:
    rows = pa.array([b'{"a": 1}', None, b"{}"])
    with pytest.raises(ValueError, match=r"that is no program|the rows are not within"):
        compiled.read(*arguments(program_of(parsed_ddl("a BIGINT")), rows, **changed))


def test_other_threads_go_on() -> None:
    given = arguments(program_of(parsed_ddl("a STRING")), pa.array([b'{"a": "xxxxxxxx"}'] * 200_000))
    assert another_thread_runs_during(lambda: compiled.read(*given))


def test_several_threads_read_at_once() -> None:
    reading, rows = of(EVERYTHING), pa.array([json.dumps(VALUE).encode()] * 500)
    wanted = reading._one_by_one(rows)[0]
    found: list[Any] = []
    threads = [threading.Thread(target=lambda: found.append(reading.decode(rows)[0])) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 4
    assert all(one.equals(wanted) for one in found)
