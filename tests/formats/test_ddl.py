"""Spark's DDL: what it means, and what is refused by name."""

from __future__ import annotations

import pyarrow as pa
import pytest

from ottla.formats.ddl import arrow_type_of, parsed_ddl
from ottla.formats.errors import BadSpec


def test_every_type() -> None:
    text = """a boolean, b BYTE, c short, d INT, e long, f real, g double, h string, i binary, j date,
        k timestamp, l timestamp_ntz, m decimal, n numeric(20, 3), `o p``q` array<int>,
        r map<string, array<bigint>>, s struct<t: int not null, u struct<v string>>"""
    assert arrow_type_of(parsed_ddl(text)) == pa.struct(
        [
            *(("a", pa.bool_()), ("b", pa.int8()), ("c", pa.int16()), ("d", pa.int32()), ("e", pa.int64())),
            *(("f", pa.float32()), ("g", pa.float64()), ("h", pa.string()), ("i", pa.binary()), ("j", pa.date32())),
            *(("k", pa.timestamp("us", tz="UTC")), ("l", pa.timestamp("us"))),
            *(("m", pa.decimal128(10, 0)), ("n", pa.decimal128(20, 3))),
            ("o p`q", pa.list_(pa.field("element", pa.int32()))),
            ("r", pa.map_(pa.string(), pa.list_(pa.field("element", pa.int64())))),
            ("s", pa.struct([("t", pa.int32()), ("u", pa.struct([("v", pa.string())]))])),
        ]
    )


@pytest.mark.parametrize(
    "text",
    [
        "a INT, b STRUCT<c: STRING>",
        "a INT COMMENT 'it''s', b STRUCT<c: STRING>",
        "a INT COMMENT 'it\\'s, b', b STRUCT<c: STRING COMMENT \"x\"> NOT NULL COMMENT ''",
        "struct<a:int,b:struct<c:string>>",
        " STRUCT < a INT, b STRUCT<c STRING> > ",
        "`a` INT NOT NULL, b STRUCT<c: STRING NOT NULL>",
    ],
)
def test_ways_to_write_the_same(text: str) -> None:
    inner = pa.struct([("c", pa.string())])
    assert arrow_type_of(parsed_ddl(text)) == pa.struct([("a", pa.int32()), ("b", inner)])


def test_columns_of_the_names_of_words() -> None:
    assert [name for name, _ in parsed_ddl("struct INT, comment STRING, not BOOLEAN").fields] == [
        "struct",
        "comment",
        "not",
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "has no column"),
        ("a", "a name is missing"),
        ("a int b int", "a comma is missing"),
        ("a int,, b int", "a name is missing"),
        ("a int,", "a name is missing"),
        ("a int comment", "a text in quotes is missing"),
        ("a int comment 'x", "a text in quotes is missing"),
        ("a int comment 'x' b int", "a comma is missing"),
        ("struct<a int", "a comma or > is missing"),
        ("struct<a int>, b int", "something stands behind the struct"),
        ("struct<>", "has no column"),
        ("a struct<b int,>", "a name is missing"),
        ("a text", "there is no type text"),
        ("a int, a string", "there are two columns a"),
        ("a array<int", "> is missing"),
        ("a array int", "< is missing"),
        ("a map<int, int>", "keys of a map are names of members"),
        ("a struct<b int; c int>", "a comma or > is missing"),
        ("a decimal(39)", "1 to 38 digits"),
        ("a decimal(3, 4)", "1 to 38 digits"),
        ("a decimal(x)", "x is no number of digits"),
        ("a int not", "NULL is missing behind NOT"),
        ("a " + "array<" * 100 + "int" + ">" * 100, "more than 64 types within each other"),
        (", ".join(f"c{number} int" for number in range(10_001)), "more than 10000 columns"),
    ],
)
def test_what_is_refused(text: str, said: str) -> None:
    with pytest.raises(BadSpec, match=said):
        parsed_ddl(text)
