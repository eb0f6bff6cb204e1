"""JSON columns: what becomes of good and of bad records, and that both ways of reading make the same of every text."""

from __future__ import annotations

import json
import math
import pickle
from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.formats import decoder, encoder
from ottla.formats.ddl import parsed_ddl
from ottla.formats.errors import BadRecord, BadSpec, BadValue
from ottla.formats.interface import RECORD_BYTES_MAX
from ottla.formats.json import JsonDecoder
from ottla.native import compiled_json

SIMPLE = """id BIGINT, name STRING, amount DOUBLE, ok BOOLEAN, items ARRAY<STRUCT<sku: STRING, n: INT>>,
    _corrupt_record STRING"""


@pytest.fixture(scope="module", params=["compiled", "in Python"], autouse=True)
def way(request: pytest.FixtureRequest) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("OTTLA_PURE", raising=False)
        if request.param == "in Python":
            patch.setenv("OTTLA_PURE", "1")
        elif compiled_json() is None:
            pytest.skip("nothing is compiled: it takes a C compiler and Python's headers at installation")
        yield


def made(ddl: str) -> JsonDecoder:
    found = decoder(f"json:{ddl}")
    assert isinstance(found, JsonDecoder)
    return found


def columns(ddl: str, *texts: bytes | None) -> tuple[list[Any], list[Any]]:
    values, faults = made(ddl).decode(pa.array(texts, pa.binary()))
    return values.to_pylist(), faults.to_pylist()


def test_members_that_are_missing_unknown_or_null() -> None:
    values, faults = columns("a INT, b STRING", b'{"b": "x", "c": [1]}', b" { } ", b'{"a": null}', None)
    assert values == [{"a": None, "b": "x"}, {"a": None, "b": None}, {"a": None, "b": None}, None]
    assert faults == [None] * 4


def test_a_bad_member_is_null_and_the_others_stay() -> None:
    ddl = "a INT, b STRING, _corrupt_record STRING"
    values, faults = columns(ddl, b'{"a": 2147483648, "b": "x"}', b'{"a": 1.0, "b": 5}')
    assert values == [
        {"a": None, "b": "x", "_corrupt_record": '{"a": 2147483648, "b": "x"}'},
        {"a": None, "b": "5", "_corrupt_record": '{"a": 1.0, "b": 5}'},
    ]
    assert faults == ["a: 2147483648 is no INT", "a: 1.0 is no INT"]


@pytest.mark.parametrize(
    ("kind", "bad"),
    [
        ("ARRAY<INT>", b'[1, "x"]'),
        ("MAP<STRING, INT>", b'{"k": 1, "l": "x"}'),
        ("ARRAY<ARRAY<INT>>", b'[[1], [2, "x"]]'),
        ("MAP<STRING, ARRAY<INT>>", b'{"k": [1], "l": ["x"]}'),
        ("ARRAY<STRUCT<x: INT>>", b'[{"x": 1}, 2]'),
    ],
)
def test_a_list_or_a_map_with_a_value_that_does_not_fit_is_null(kind: str, bad: bytes) -> None:
    values, faults = columns(f"a {kind}, b INT", b'{"a": %s, "b": 7}' % bad)
    assert values == [{"a": None, "b": 7}]
    assert faults[0].startswith("a: ")


def test_an_object_in_a_list_stays_without_its_bad_member() -> None:
    ddl = "a ARRAY<STRUCT<x: INT, y: INT>>, m MAP<STRING, STRUCT<x: INT>>"
    values, faults = columns(ddl, b'{"a": [{"x": "bad", "y": 1}, null], "m": {"k": {"x": "bad"}, "l": null}}')
    assert values == [{"a": [{"x": None, "y": 1}, None], "m": [("k", {"x": None}), ("l", None)]}]
    assert faults == ["a: x: 'bad' is no INT"]


@pytest.mark.parametrize(
    "text",
    [b"{", b"nope", b"[1]", b"1", b"null", b'{"a": 1} {"a": 2}', b"{'a': 1}", b'{"a": 01}', b'\xff{"a": 1}', b'{"a"}'],
)
def test_what_is_no_object_is_all_nulls(text: bytes) -> None:
    values, faults = columns("a INT, _corrupt_record STRING", text)
    assert values == [{"a": None, "_corrupt_record": text.decode(errors="replace")}]
    assert faults[0].startswith("no JSON object: ")


def test_an_empty_record_is_null() -> None:
    assert columns("a INT", b"", b" \n") == ([None, None], ["no JSON object: it is empty"] * 2)


def test_values_of_every_type() -> None:
    ddl = """a TINYINT, f FLOAT, d DOUBLE, e DOUBLE, bin BINARY, day DATE, t TIMESTAMP, u TIMESTAMP, n TIMESTAMP_NTZ,
        dec DECIMAL(5, 2), raw STRING, num STRING, m MAP<STRING, STRING>, l ARRAY<STRING>"""
    text = b"""{"a": -128, "f": 1.5, "d": 12345678901234567890, "e": "-Infinity", "bin": "AQI=", "day": "2024-02-29",
        "t": "2024-02-29T23:59:59.1234567-02:30", "u": 1700000000, "n": "2024-02-29 01:02", "dec": "-999.994",
        "raw": { "x" : [1,  {}]}, "num": 1.10, "m": {"k": [1, 2], "j": "v"}, "l": [{"a":1}, "b", true, null]}"""
    values, faults = columns(ddl, text)
    assert faults == [None]
    found = values[0]
    assert found == {
        "a": -128,
        "f": 1.5,
        "d": 12345678901234567890.0,
        "e": -math.inf,
        "bin": b"\1\2",
        "day": date(2024, 2, 29),
        "t": datetime(2024, 3, 1, 2, 29, 59, 123456, tzinfo=UTC),
        "u": datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC),
        "n": datetime.fromisoformat("2024-02-29T01:02"),
        "dec": Decimal("-999.99"),
        "raw": '{ "x" : [1,  {}]}',
        "num": "1.10",
        "m": [("k", "[1, 2]"), ("j", "v")],
        "l": ['{"a":1}', "b", "true", None],
    }
    assert made(ddl).decode_one(text)["raw"] == '{ "x" : [1,  {}]}'


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("BOOLEAN", '"true"'),
        ("BIGINT", "9223372036854775808"),
        ("BIGINT", "1e3"),
        ("BIGINT", "1" * 5000),
        ("BIGINT", '"1"'),
        ("DOUBLE", '"1.5"'),
        ("DOUBLE", "[]"),
        ("DATE", '"2024-02-30"'),
        ("DATE", "19000"),
        ("TIMESTAMP", '"2024-01-01T25:00:00"'),
        ("TIMESTAMP", '"2024-01-01T01:00:00+99:00"'),
        ("TIMESTAMP", '"9999-12-31T23:59:59-10:00"'),
        ("TIMESTAMP", "99999999999999"),
        ("TIMESTAMP", '"2024-01-01T01:00:00+18:01"'),
        ("TIMESTAMP", '"2024-01-01T01:00Z"'),
        ("TIMESTAMP", '"2024T01"'),
        ("TIMESTAMP_NTZ", '"2024-01-01T01:00:00Z"'),
        ("DECIMAL(5,2)", "1000"),
        ("DECIMAL(5,2)", "999.996"),
        ("DECIMAL(5,2)", '"NaN"'),
        ("DECIMAL(5,2)", '"1_0"'),
        ("DECIMAL(5,2)", '" 1"'),
        ("DOUBLE", '"INF"'),
        ("DECIMAL(5,2)", "1e999999999"),
        ("BINARY", '"*"'),
        ("ARRAY<INT>", "{}"),
        ("MAP<STRING, INT>", "[]"),
        ("STRUCT<x: INT>", '"x"'),
        ("STRING", '"\\ud800"'),
    ],
)
def test_what_does_not_fit(kind: str, value: str) -> None:
    values, faults = columns(f"a {kind}, b INT", b'{"a": %s, "b": 7}' % value.encode())
    assert values == [{"a": None, "b": 7}]
    assert faults[0].startswith("a: ")
    assert f"is no {kind.partition('<')[0]}" in faults[0]


def test_half_a_surrogate_pair_in_a_maps_key_is_its_rows_fault() -> None:
    texts = [b'{"m": {"\\ud800": 1}, "n": 1}', b'{"m": {"\\ud83d\\ude00": 1}, "n": 2}', b'{"m": {"a": 1}, "n": 3}']
    column, errors = made("m MAP<STRING, INT>, n INT").decode(pa.array(texts))
    assert column.to_pylist() == [{"m": None, "n": 1}, {"m": [("😀", 1)], "n": 2}, {"m": [("a", 1)], "n": 3}]
    assert errors.to_pylist()[1:] == [None, None]
    assert "is no MAP" in errors[0].as_py()
    errors[0].as_py().encode()


def test_hostile_texts_are_bad_records_and_nothing_worse() -> None:
    deep = 200_000
    texts = [b'{"items": ' + b"[" * deep, b'{"x":' * deep + b"1" + b"}" * deep, b'{"id": ' + b"9" * deep + b"}"]
    _, faults = columns(SIMPLE, *texts)
    assert None not in faults
    for long in (b"{}" + b" " * RECORD_BYTES_MAX, b'{"more": "' + b"x" * RECORD_BYTES_MAX + b'"}'):
        assert "bytes, and" in (columns(SIMPLE, long)[1][0] or "")


#: Texts of all kinds: good ones, and ones that an edit has broken or made run into the next.
TEXTS = st.one_of(
    st.fixed_dictionaries(
        {},
        optional={
            "id": st.integers(-(2**64), 2**64) | st.floats() | st.text(max_size=3) | st.booleans(),
            "name": st.text(max_size=5) | st.integers() | st.lists(st.integers(), max_size=2),
            "amount": st.floats(allow_nan=False) | st.integers() | st.sampled_from(["NaN", "x"]),
            "ok": st.booleans() | st.none(),
            "items": st.lists(
                st.fixed_dictionaries({"sku": st.text(max_size=2), "n": st.integers(-3, 2**31)}), max_size=2
            ),
            "other": st.lists(st.none() | st.text(max_size=2), max_size=2),
        },
    ).map(lambda value: json.dumps(value).encode()),
    st.sampled_from(
        [
            *(
                b'{"id": 1}{"id": 2}',
                b'{"id": {}',
                b'{"id":1}\n',
                b'{"id"\n:1}',
                b'{"id":1}\r',
                b'{"id": 1, "id": 2}',
                b"",
            ),
            *(b'{"name": "\xff"}', b'{"name": "\0"}', b'{"id":1}\0{}', b'{"name": "\\ud800"}', b"{}", b" {}", b"{} "),
            *(
                b'{"amount": 1e999}',
                b'{"amount": -0}',
                b'{"amount": 01}',
                b'{"amount": NaN}',
                b'{"id": -0}',
                b'{"a":{}}',
            ),
            *(b'{"items": [null, {}]}', b'{"items": {}}', b'{"items": null}', b'{"name": "{\\u0000}"}', b"{//\n}"),
        ]
    ),
)


SPACES = st.sampled_from([b"", b"", b" ", b"\n", b"\r\n", b"\t ", b"\0", b"\x0b", b"\x0c", "\u00a0".encode()])
SPACED = st.builds(lambda before, text, behind: before + text + behind, SPACES, TEXTS, SPACES)


@given(st.lists(TEXTS | SPACED | st.none(), max_size=12))
def test_both_ways_of_reading_make_the_same(texts: list[bytes | None]) -> None:
    """A list is read at once if nothing is wrong with any, and in any case as each text alone, by Python, is."""
    reading = made(SIMPLE)
    given_values = pa.array(texts, pa.binary())
    values, faults = reading.decode(given_values)
    expected, expected_faults = reading._one_by_one(given_values)
    assert repr(values.to_pylist()) == repr(expected.to_pylist())  # by its text a NaN equals itself
    assert faults.to_pylist() == expected_faults.to_pylist()
    at_once = reading._at_once(given_values)
    assert at_once is None or repr(at_once.to_pylist()) == repr(expected.to_pylist())


@pytest.mark.parametrize(
    "texts",
    [
        [b'{"id":1}{"id":2}', b'{"id":', b"3}"],
        [b'{"id":1}{"id":2}', b'{"id":3}\0{}', b'{"id":4}'],
        [b'{"id":1}\n{"id":2}', b"", b'{"id":3}'],
        [b'{"items":[{}', b"{}]}", b'{"id":1}{"id":2}'],
    ],
)
def test_rows_that_would_run_into_each_other(texts: list[bytes]) -> None:
    reading, values = made(SIMPLE), pa.array(texts, pa.binary())
    assert reading._at_once(values) is None
    assert reading.decode(values)[0].to_pylist() == [reading._read(text)[0] for text in texts]


#: A few to a column, so that all are often written alike.
TIMES = st.lists(
    st.sampled_from(
        [
            *(
                "2024-02-29T03:04:05Z",
                "2024-02-29 23:59:59.123456+05:30",
                "2024-02-29T03:04:05.1-11:00",
                "2023-02-29T03:04:05Z",
            ),
            *(
                "2024-02-29T03:04:05",
                "1600-01-01 00:00:00.000001",
                "2024-02-29",
                "2024-02-30",
                "0999-01-01",
                "9999-12-31",
            ),
            *("2024-02-29T24:00:00Z", "2024-02-29T03:04:60Z", "2024-02-29T03:04:05+24:00", "2024-02-29T3:04", "", "x"),
            *("2024-02-29T03:04:05.1234567Z", "8999-12-31T23:59:59-23:59", " 2024-02-29", "2024-02-29\n", 5, None),
        ]
    ),
    max_size=3,
)


@given(TIMES, st.sampled_from(["TIMESTAMP", "TIMESTAMP_NTZ", "DATE"]))
def test_both_ways_of_reading_make_the_same_of_times(times: list[Any], kind: str) -> None:
    reading = made(f"t {kind}")
    texts = pa.array([json.dumps({"t": time}).encode() for time in times], pa.binary())
    values, faults = reading.decode(texts)
    expected, expected_faults = reading._one_by_one(texts)
    assert values.equals(expected)
    assert faults.equals(expected_faults)


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("TIMESTAMP", "2024-02-29T03:04:05.25Z"),
        ("TIMESTAMP", "2024-02-29 03:04:05"),
        ("TIMESTAMP_NTZ", "2024-02-29T03:04:05"),
        ("DATE", "2024-02-29"),
    ],
)
def test_times_that_are_written_alike_are_read_at_once(kind: str, text: str) -> None:
    texts = pa.array([b'{"t": "%s"}' % text.encode(), b"{}"] * 3, pa.binary())
    found = made(f"t {kind}")._at_once(texts)
    assert found is not None
    assert found.equals(made(f"t {kind}")._one_by_one(texts)[0])


class CountingDecoder(JsonDecoder):
    rows = 0

    def _one_by_one(self, values: Any) -> tuple[Any, Any]:
        self.rows += len(values)
        return super()._one_by_one(values)


def test_space_around_an_object_does_not_make_it_be_read_alone() -> None:
    texts = [b'{"id": 1}\n', b' {"id": 2}', b'\t{"id": 3}\r\n', b'{"id": 4}' + b" " * 80, None] * 300
    reading = CountingDecoder(parsed_ddl("id BIGINT"))
    values, faults = reading.decode(pa.array(texts, pa.binary()))
    assert values.to_pylist() == [{"id": 1}, {"id": 2}, {"id": 3}, {"id": 4}, None] * 300
    assert faults.null_count == len(texts)
    assert reading.rows == 0


def test_a_bad_row_among_many_is_found() -> None:
    texts: list[bytes | None] = [b'{"id": %d, "name": "n%d"}' % (number, number) for number in range(3000)]
    texts[1234], texts[5] = b'{"id": "x"}', None
    reading = CountingDecoder(parsed_ddl(SIMPLE))
    values, faults = reading.decode(pa.array(texts, pa.binary()))
    assert [number for number, fault in enumerate(faults.to_pylist()) if fault] == [1234]
    assert [number for number, value in enumerate(values.to_pylist()) if value is None] == [5]
    assert [value["id"] for value in values.to_pylist() if value][:3] == [0, 1, 2]
    assert reading.rows < 300


def test_a_slice_of_a_column_and_an_empty_one() -> None:
    values = pa.array([b"bad", b'{"a": 1}', None, b'{"a": 2}'], pa.binary())
    found, faults = made("a INT").decode(values.slice(1))
    assert found.to_pylist() == [{"a": 1}, None, {"a": 2}]
    assert faults.null_count == 3
    assert made("a INT").decode(values.slice(0, 0))[0].type == made("a INT").arrow_type
    assert made("a INT").decode(pa.nulls(2, pa.binary()))[0].to_pylist() == [None, None]


def test_decoders_go_to_workers() -> None:
    reading = made("a INT, b MAP<STRING, INT>")
    assert pickle.loads(pickle.dumps(reading)) == reading
    with pytest.raises(BadSpec, match="json needs its columns"):
        decoder("json")
    with pytest.raises(BadRecord, match="a: 'x' is no INT"):
        reading.decode_one(b'{"a": "x"}')


def test_the_way_back() -> None:
    writing = encoder("json")
    values = pa.array([{"a": 1, "b": "ü", "c": None}, None, {"a": 2, "b": "", "c": [1.5]}])
    assert writing.encode(values).to_pylist() == ['{"a":1,"b":"ü"}'.encode(), None, b'{"a":2,"b":"","c":[1.5]}']
    value = {"t": datetime(2024, 1, 2, tzinfo=UTC), "d": Decimal("1.50"), "x": b"\1\2"}
    assert writing.encode_one(value) == b'{"t":"2024-01-02T00:00:00+00:00","d":1.50,"x":"AQI="}'
    numbers = [Decimal("-0E-10"), None, Decimal("NaN")]
    value = {"l": numbers, "f": -math.inf, "t": 'a"', 3: {"d": Decimal(7), "n": None}}
    assert writing.encode_one(value) == b'{"l":[-0E-10,null,"NaN"],"f":"-Infinity","t":"a\\"","3":{"d":7}}'
    assert writing.encode(pa.array([1.0, math.nan, 1e300])).to_pylist() == [b"1.0", b'"NaN"', b"1e+300"]
    floats = pa.array([1.1, 0.1, 16777216.0, 1000.00006103515625, 3.4028235e38, None, math.inf], pa.float32())
    texts = [b"1.1", b"0.1", b"16777216.0", b"1000.00006", b"3.4028235e+38", None, b'"Infinity"']
    assert writing.encode(floats).to_pylist() == texts
    with pytest.raises(BadValue, match="row 1: no JSON"):
        writing.encode(pa.array([None, 5], pa.duration("s")))


def test_a_map_is_an_object_wherever_it_stands() -> None:
    writing = encoder("json")
    kind = pa.map_(pa.string(), pa.int32())
    inner = pa.struct([("m", kind), ("all", pa.list_(kind))])
    values = pa.array(
        [
            {"m": [("a", 1), ("b", None)], "all": [[("x", 1)], []]},
            {"m": [], "all": None},
            {"m": None, "all": []},
            None,
        ],
        inner,
    )
    encoded = writing.encode(values).to_pylist()
    assert encoded == [
        b'{"m":{"a":1,"b":null},"all":[{"x":1},{}]}',
        b'{"m":{}}',
        b'{"all":[]}',
        None,
    ]
    decoded, faults = columns("m MAP<STRING, INT>, all ARRAY<MAP<STRING, INT>>", *encoded)
    assert decoded[0] == {"m": [("a", 1), ("b", None)], "all": [[("x", 1)], []]}
    assert faults == [None] * 4
    of_numbers = pa.array([[(1, {"n": None})]], pa.map_(pa.int64(), pa.struct([("n", pa.int32())])))
    assert writing.encode(of_numbers).to_pylist() == [b'{"1":{}}']
    of_truths = pa.array([[(True, 1.5)]], pa.map_(pa.bool_(), pa.float64()))
    assert writing.encode(of_truths).to_pylist() == [b'{"true":1.5}']


@pytest.mark.parametrize("kind", [pa.timestamp("us"), pa.timestamp("us", "UTC"), pa.date32()])
def test_a_time_that_python_cannot_say_is_a_bad_value(kind: Any) -> None:
    late = pa.array([0, 4_000_000 if pa.types.is_date32(kind) else 2**60]).cast(
        pa.int32() if pa.types.is_date32(kind) else pa.int64()
    )
    values = pa.StructArray.from_arrays([late.cast(kind)], names=["t"])
    with pytest.raises(BadValue, match="row 1: no JSON"):
        encoder("json").encode(values)
