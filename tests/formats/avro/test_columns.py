"""Avro as columns: the same values as one by one, bad rows beside good ones, schemas that change, damaged bytes."""

from __future__ import annotations

import datetime as dt
import json
import pickle
import tracemalloc
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from tests.formats.avro.schemas import EVERYTHING, VALUE
from tests.formats.registry_server import RegistryServer

from ottla.formats import decoder, encoder
from ottla.formats.avro.schema import parse_schema
from ottla.formats.errors import BadRecord, BadSpec, BadValue, RegistryUnreachable
from ottla.formats.framing import header
from ottla.formats.interface import RECORD_BYTES_MAX
from ottla.formats.registry.http import TRIES

ORDER = {
    "type": "record",
    "name": "Order",
    "fields": [{"name": "id", "type": "long"}, {"name": "note", "type": ["null", "string"], "default": None}],
}
CENTS = {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2}
MILLIS = {"type": "long", "logicalType": "timestamp-millis"}
WIDER = {
    **ORDER,
    "fields": [
        {"name": "id", "type": "int"},
        {"name": "colour", "type": "string"},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
    ],
}


def written(tmp_path: Path, schema: Any, name: str = "schema") -> str:
    path = tmp_path / f"{name}.avsc"
    path.write_text(json.dumps(schema))
    return f"avro:{path}"


def test_everything(tmp_path: Path) -> None:
    spec = written(tmp_path, EVERYTHING)
    raw = encoder(spec).encode_one(VALUE)
    column, errors = decoder(spec).decode(pa.array([raw, None, raw]))
    assert errors.to_pylist() == [None] * 3
    row = column[2].as_py()
    assert column[1].as_py() is None
    wanted = {**VALUE, "id": str(VALUE["id"]), "counts": list(VALUE["counts"].items())}
    wanted["either"] = {"member0": None, "member1": None, "member2": None, "member3": {"x": 1.0}}
    assert row == wanted
    assert column.type.field("price").type == pa.decimal128(10, 2)
    assert column.type.field("when_ms").type == pa.timestamp("us", "UTC")
    # And back: the bytes are the same.
    assert encoder(spec).encode(column).to_pylist() == [raw, None, raw]


def test_a_bad_record_is_a_null_and_a_text(tmp_path: Path) -> None:
    spec = written(tmp_path, ORDER)
    good = encoder(spec).encode_one({"id": 7})
    column, errors = decoder(spec).decode(pa.array([good, b"", good + b"x", b"\x02\x02\x0aab", None, good]))
    assert [row and row["id"] for row in column.to_pylist()] == [7, None, None, None, None, 7]
    assert errors.to_pylist() == [
        None,
        "the record ends within its value, after 0 bytes",
        "1 bytes are left behind the value",
        "5 bytes are announced at byte 3, and 2 are there",
        None,
        None,
    ]


def test_what_a_column_cannot_hold_is_a_rows_own_error(tmp_path: Path) -> None:
    spec = written(tmp_path, {"type": "long", "logicalType": "timestamp-millis"})
    late = encoder(spec).encode_one(2**62)
    column, errors = decoder(spec).decode(pa.array([late, encoder(spec).encode_one(5)]))
    assert column.cast(pa.int64()).to_pylist() == [None, 5000]
    assert "no time in microseconds" in errors[0].as_py()


def test_each_record_by_its_writers_schema(registry: RegistryServer) -> None:
    settings = {"schema.registry.url": registry.url, "topic": "orders"}
    registry.add("orders-value", json.dumps(WIDER))
    day = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
    old = encoder("avro", **settings).encode_one({"id": 1, "colour": "red", "at": day})
    registry.add("orders-value", json.dumps(ORDER))
    new = encoder("avro", **settings).encode_one({"id": 2, "note": "hello"})
    ours = decoder("avro", **settings)
    strange = header(99) + b"\x02\x00"
    column, errors = ours.decode(pa.array([old, new, strange, strange, b"\x01abcdef", b"\0\0"]))
    assert column.to_pylist()[:3] == [{"id": 1, "note": None}, {"id": 2, "note": "hello"}, None]
    said = errors.to_pylist()
    assert said[:2] == [None, None]
    assert said[2] == said[3]
    assert "/schemas/ids/99: Schema not found" in said[2]
    assert said[4] == "no schema id stands before the value: its first byte is 1, not 0"
    assert said[5] == "2 bytes are too few for a schema id: five stand before each value"
    assert registry.asked.count("GET /schemas/ids/99") == 1
    # One by one each is what was written.
    assert ours.decode_one(old) == {"id": 1, "colour": "red", "at": day}
    with pytest.raises(BadRecord, match="Schema not found"):
        ours.decode_one(strange)
    # Fields that the column's schema does not know.
    rescued, _ = decoder("avro", **settings, rescue_column="_rescued").decode(pa.array([old, new]))
    assert rescued.field("_rescued").to_pylist() == ['{"colour":"red","at":"2026-01-01 00:00:00+00:00"}', None]
    with pytest.raises(BadSpec, match="is a field of the schema"):
        _ = decoder("avro", **settings, rescue_column="note").arrow_type


def test_a_schema_that_changes_type(registry: RegistryServer) -> None:
    settings = {"schema.registry.url": registry.url, "subject": "orders"}
    changed = json.dumps(ORDER).replace("long", "string")
    registry.add("orders", changed)
    raw = encoder("avro", **settings).encode_one({"id": "seven"})
    registry.add("orders", json.dumps(ORDER))
    column, errors = decoder("avro:orders", **settings).decode(pa.array([raw]))
    assert column.null_count == 1
    assert errors[0].as_py() == (
        "schema 1 does not go with the reader's: field id of Order: string cannot be read as long"
    )
    registry.add("numbers", "syntax", kind="PROTOBUF")
    with pytest.raises(BadSpec, match="numbers: the schema is one of Protobuf, not of Avro"):
        _ = decoder("avro:numbers", **settings).arrow_type
    _, errors = decoder("avro:orders", **settings).decode(pa.array([header(3) + b"a"]))
    assert errors[0].as_py() == "schema 3 is one of Protobuf, not of Avro"


def test_a_registry_that_is_away_makes_no_record_bad(registry: RegistryServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ottla.formats.registry.http.PAUSE_S", 0.0)
    settings = {"schema.registry.url": registry.url, "topic": "orders"}
    schema_id = registry.add("orders-value", json.dumps(ORDER))
    ours = decoder("avro", **settings)
    values = pa.array([header(schema_id) + b"\x02\x00"])
    assert ours.arrow_type.field("id").type == pa.int64()
    registry.add("another", '"int"')
    other = pa.array([header(2) + b"\x02"])
    registry.faults = [(503, b"")] * TRIES
    with pytest.raises(RegistryUnreachable):
        ours.decode(other)
    assert ours.decode(values)[0].to_pylist() == [{"id": 1, "note": None}]
    assert "cannot be read as" in ours.decode(other)[1][0].as_py()


def test_it_is_pickled_with_its_schema(registry: RegistryServer, tmp_path: Path) -> None:
    """All tasks of a job have the schema that was planned, whatever is registered meanwhile."""
    settings = {"schema.registry.url": registry.url, "topic": "orders"}
    registry.add("orders-value", json.dumps(ORDER))
    ours, writes = decoder("avro", **settings), encoder("avro", **settings)
    raw = writes.encode_one({"id": 1})
    pickled, pickled_writes = pickle.dumps(ours), pickle.dumps(writes)
    registry.add("orders-value", json.dumps(WIDER))
    again = pickle.loads(pickled)
    assert again.arrow_type == ours.arrow_type
    assert again.decode(pa.array([raw]))[0].to_pylist() == [{"id": 1, "note": None}]
    asked = len(registry.asked)
    assert pickle.loads(pickled_writes).encode_one({"id": 1}) == raw
    assert len(registry.asked) == asked
    assert again == pickle.loads(pickled)
    spec = written(tmp_path, ORDER)
    pickled = pickle.dumps(decoder(spec))
    (tmp_path / "schema.avsc").unlink()  # an executor has no such file
    assert pickle.loads(pickled).arrow_type == ours.arrow_type


def test_references(registry: RegistryServer) -> None:
    registry.add(
        "money", json.dumps({"type": "record", "name": "Money", "fields": [{"name": "cents", "type": "long"}]})
    )
    refers = [{"name": "Money", "subject": "money", "version": 1}]
    bill = {"type": "record", "name": "Bill", "fields": [{"name": "total", "type": "Money"}]}
    registry.add("bills-value", json.dumps(bill), references=refers)
    settings = {"schema.registry.url": registry.url, "topic": "bills"}
    raw = encoder("avro", **settings).encode_one({"total": {"cents": 5}})
    ours = pickle.loads(pickle.dumps(decoder("avro", **settings)))
    assert ours.decode(pa.array([raw]))[0].to_pylist() == [{"total": {"cents": 5}}]


@pytest.mark.parametrize("seed", range(3))
def test_mutated_bytes_are_a_value_or_an_error(tmp_path: Path, seed: int) -> None:
    spec = written(tmp_path, EVERYTHING)
    raw = encoder(spec).encode_one(VALUE)
    chance = Random(seed)
    rows = []
    for _ in range(1500):
        data = bytearray(raw)
        for _ in range(chance.randrange(1, 4)):
            at = chance.randrange(len(data) + 1)
            if chance.random() < 0.3:
                del data[at:]
            elif chance.random() < 0.5:
                data[at:at] = bytes([chance.choice((0, 0x80, 0xFF, chance.randrange(256)))]) * chance.randrange(1, 12)
            elif at < len(data):
                data[at] = chance.randrange(256)
        rows.append(bytes(data))
    column, errors = decoder(spec).decode(pa.array(rows))
    column.validate(full=True)
    assert column.is_null().to_pylist() == errors.is_valid().to_pylist()
    assert 0 < column.null_count < len(rows)


def test_a_record_that_is_too_large(tmp_path: Path) -> None:
    raw = bytes(RECORD_BYTES_MAX + 1)
    ours = decoder(written(tmp_path, "bytes"))
    column, errors = ours.decode(pa.array([raw, b"\x02a"]))
    assert column.to_pylist() == [None, b"a"]
    assert errors[0].as_py() == f"{RECORD_BYTES_MAX + 1} bytes are more than a record may have, {RECORD_BYTES_MAX}"


def test_what_is_announced_takes_no_memory(tmp_path: Path) -> None:
    """Ten bytes announce 2**62 items, a length of as many, or blocks without an end."""
    huge = b"\xfe" + b"\xff" * 7 + b"\x7f"
    for schema, raw in (
        ({"type": "array", "items": "null"}, huge),
        ({"type": "array", "items": {"type": "array", "items": "null"}}, b"\x02" + huge),
        ({"type": "map", "values": "null"}, huge),
        ("bytes", huge),
        ({"type": "array", "items": "null"}, b"\x02" * 2000),
    ):
        ours = decoder(written(tmp_path, schema))
        tracemalloc.start()
        try:
            with pytest.raises(BadRecord):
                ours.decode_one(raw)
            assert tracemalloc.get_traced_memory()[1] < 1_000_000
        finally:
            tracemalloc.stop()


def test_deep_nesting_is_an_error(tmp_path: Path) -> None:
    chain = {"type": "record", "name": "N", "fields": [{"name": "next", "type": ["null", "N"]}]}
    ours = decoder(written(tmp_path, chain))
    assert ours.decode_one(b"\x02" * 50 + b"\x00")
    with pytest.raises(BadRecord, match="nested too deep"):
        ours.decode_one(b"\x02" * 1_000_000)
    with pytest.raises(BadSpec, match="record N contains itself"):
        ours.decode(pa.array([b"\x00"]))
    deep: dict[str, Any] = {"next": None}
    for _ in range(10_000):
        deep = {"next": deep}
    with pytest.raises(BadValue, match="nested too deep"):
        encoder(written(tmp_path, chain)).encode_one(deep)


@pytest.mark.parametrize(
    ("schema", "value", "said"),
    [
        ("int", 2**31, "2147483648 is no int"),
        ("int", True, "a bool is no int"),
        ("long", 1.5, "float '1.5' is no long"),
        ("string", None, "None is no string"),
        ("string", "\ud800", "UTF-8 cannot write"),
        ("float", 1e300, "no float of 32 bits"),
        ("boolean", 1, "no boolean"),
        (["null", "int"], "x", "str 'x' is no int"),
        (["int", "string"], b"x", "is no int or string"),
        (ORDER, {"id": "x"}, "id: str 'x' is no long"),
        (ORDER, {"id": 1, "nota": "x"}, "Order has no field 'nota'"),
        (ORDER, {}, "id: None is no long"),
        ({"type": "array", "items": "int"}, [1, "x"], r"\[1\]: str 'x'"),
        ({"type": "map", "values": "int"}, {"a": None}, r"\['a'\]: None"),
        ({"type": "enum", "name": "E", "symbols": ["A"]}, "B", "whose symbols are A"),
        ({"type": "fixed", "name": "F", "size": 2}, b"a", "of 2 bytes"),
        (CENTS, Decimal("1.234"), r"no decimal\(4, 2\)"),
        (CENTS, Decimal("1e99999"), r"no decimal\(4, 2\)"),
        (CENTS, Decimal("NaN"), r"no decimal\(4, 2\)"),
        (MILLIS, dt.datetime(2026, 1, 1, microsecond=1, tzinfo=dt.UTC), "no whole number of millis"),
        (MILLIS, dt.datetime(2026, 1, 1), "must be with a time zone"),  # noqa: DTZ001  # that is the fault
        ({"type": "string", "logicalType": "uuid"}, "x", "is no uuid"),
    ],
)  # fmt: skip
def test_values_that_cannot_be_written(tmp_path: Path, schema: Any, value: Any, said: str) -> None:
    with pytest.raises(BadValue, match=said):
        encoder(written(tmp_path, schema)).encode_one(value)


def test_columns_that_cannot_be_written(tmp_path: Path) -> None:
    ours = encoder(written(tmp_path, ORDER))
    with pytest.raises(BadValue, match="row 1: note: int '5' is no string"):
        ours.encode(pa.array([None, {"id": 1, "note": 5}], pa.struct([("id", pa.int64()), ("note", pa.int8())])))
    ours = encoder(written(tmp_path, {"type": "long", "logicalType": "timestamp-millis"}))
    with pytest.raises(BadValue, match=r"row 1: .* would lose data"):
        ours.encode(pa.array([1000, 1], pa.timestamp("us", "UTC")))
    with pytest.raises(BadValue, match="must be with a time zone"):
        ours.encode(pa.array([1], pa.timestamp("us")))
    assert ours.encode(pa.array([7], pa.timestamp("s", "Europe/Rome"))).to_pylist() == [b"\xb0\x6d"]


@pytest.mark.parametrize(
    ("schema", "rows"),
    [
        (
            {"type": "record", "name": "R", "fields": [{"name": "i", "type": "int"}, {"name": "n", "type": "null"}]},
            [b"\x02", b"\x04", b"\x06"],
        ),
        ({"type": "array", "items": "null"}, [b"\0", b"\x02\0", b"\x04\0"]),
        ({"type": "map", "values": "null"}, [b"\0", b"\x02\x02a\0", b"\x02\x02b\0"]),
        (["null"], [b"\0", b"\0", b"\0"]),
    ],
)
def test_slices_of_columns_with_nulls_alone(tmp_path: Path, schema: Any, rows: list[bytes]) -> None:
    spec = written(tmp_path, schema)
    column, errors = decoder(spec).decode(pa.array(rows))
    assert errors.null_count == 3
    for start in range(3):
        found = encoder(spec).encode(column[start:]).to_pylist()
        assert found == ([None] * 3 if column.null_count else rows)[start:]


def test_two_records_in_a_union() -> None:
    from ottla.formats.avro.encoding import writer_of

    cat = {"type": "record", "name": "Cat", "fields": [{"name": "lives", "type": "int", "default": 9}]}
    dog = {"type": "record", "name": "Dog", "fields": [{"name": "tail", "type": "int", "default": 1}]}
    write = writer_of(parse_schema(json.dumps([cat, dog])))

    def bytes_of(value: Any) -> bytes:
        out = bytearray()
        write(value, out)
        return bytes(out)

    assert bytes_of({"lives": 1}) == b"\x00\x02"
    assert bytes_of({"tail": 2}) == b"\x02\x04"
    assert bytes_of({}) == b"\x00\x12"
    assert bytes_of(("Dog", {})) == b"\x02\x02"


def test_a_datetime_is_no_date(tmp_path: Path) -> None:
    """It is one to Python; its time of day would be lost."""
    day = {"type": "int", "logicalType": "date"}
    micros = {"type": "long", "logicalType": "timestamp-micros"}
    when = dt.datetime(2026, 1, 2, 3, 4, 5, tzinfo=dt.UTC)
    spec = written(tmp_path, ["null", day, micros])
    assert decoder(spec).decode_one(encoder(spec).encode_one(when)) == when
    assert decoder(spec).decode_one(encoder(spec).encode_one(when.date())) == when.date()
    with pytest.raises(BadValue, match="datetime '2026-01-02"):
        encoder(written(tmp_path, day, "day")).encode_one(when)
