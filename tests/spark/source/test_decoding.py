"""Keys and values that tasks decode: the columns' types, bad records, and what `from_json` makes of them."""

from __future__ import annotations

import json
import pickle
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.formats.registry_server import registry_server
from tests.spark.source.conftest import Fill

import ottla.spark
from ottla.client.sync import Producer
from ottla.formats import encoder
from ottla.formats.registry.http import TRIES
from ottla.spark import OptionError, OttlaDataSource
from ottla.spark.source.columns import as_spark_wants
from ottla.spark.source.errors import ReadFailed
from ottla.spark.source.planning import batch_splits
from ottla.spark.source.settings import SourceSettings, source_settings
from ottla.spark.source.tasks import read_split
from ottla.testing import InProcessBroker

DDL = "id BIGINT, tags ARRAY<STRING>, _corrupt_record STRING"


def send(broker: InProcessBroker, topic: str, *values: bytes | None) -> None:
    with Producer(bootstrap_servers=broker.bootstrap) as producer:
        for number, value in enumerate(values):
            producer.send(topic, value, key=b"%d" % number, partition=0)


def settings_for(broker: InProcessBroker, topic: str, **options: Any) -> SourceSettings:
    return source_settings(
        {"kafka.bootstrap.servers": broker.bootstrap, "assign": f'{{"{topic}": [0]}}', **options}, stream=False
    )


def rows(settings: SourceSettings) -> list[dict[str, Any]]:
    return [
        row for split in batch_splits(settings) for batch in read_split(settings, split) for row in batch.to_pylist()
    ]


def test_both_columns(broker: InProcessBroker, topic: str) -> None:
    send(broker, topic, b'{"id": 1, "tags": ["a", null]}', None, b"bad")
    found = rows(settings_for(broker, topic, value_as=f"json:{DDL}", key_as="string", columns="value,key"))
    assert found == [
        {"value": {"id": 1, "tags": ["a", None], "_corrupt_record": None}, "key": "0"},
        {"value": None, "key": "1"},
        {"value": {"id": None, "tags": None, "_corrupt_record": "bad"}, "key": "2"},
    ]
    # What is not read is not decoded.
    assert rows(settings_for(broker, topic, value_as=f"json:{DDL}", columns="key"))[2] == {"key": b"2"}


def test_a_bad_record_fails_the_query_where_that_is_wanted(broker: InProcessBroker, topic: str) -> None:
    send(broker, topic, b'{"id": 1}', b'{"id": "x"}')
    given = {"value_as": f"json:{DDL}", "decode_mode": "failfast", "columns": "value"}
    said = f"{topic}-0: the value at offset 1 cannot be decoded: id: 'x' is no BIGINT; with decode_mode=PERMISSIVE"
    with pytest.raises(ReadFailed, match=said):
        rows(settings_for(broker, topic, **given))
    (row,) = rows(settings_for(broker, topic, **given, endingOffsets=f'{{"{topic}": {{"0": 1}}}}'))
    assert set(row) == {"value"}


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"value_as": "json"}, "value_as: json needs its columns behind a colon"),
        ({"key_as": "json:a TEXT"}, "key_as: the schema is wrong near .*: there is no type text"),
        ({"value_as": "yaml"}, "value_as: there is no format 'yaml'"),
        ({"value_as": "string", "decode_mode": "DROP"}, "decode_mode must be PERMISSIVE or FAILFAST, not 'DROP'"),
        ({"framing": "plain"}, "framing is for key_as or value_as: set one of them"),
    ],
)
def test_what_is_refused(options: dict[str, str], said: str) -> None:
    with pytest.raises(OptionError, match=said):
        source_settings({"kafka.bootstrap.servers": "a:1", "subscribe": "x", **options}, stream=False)


def test_settings_with_decoders_go_to_workers() -> None:
    given = {"kafka.bootstrap.servers": "a:1", "subscribe": "x", "value_as": f"json:{DDL}"}
    found = source_settings(given, stream=False)
    assert pickle.loads(pickle.dumps(found)) == found


def test_types_as_spark_wants_them() -> None:
    kind = pa.struct(
        [("a", pa.list_(pa.timestamp("ms", tz="+01:00"))), ("b", pa.map_(pa.string(), pa.large_list(pa.int8())))]
    )
    assert as_spark_wants(kind) == pa.struct(
        [
            ("a", pa.list_(pa.field("element", pa.timestamp("us", tz="UTC")))),
            ("b", pa.map_(pa.string(), pa.list_(pa.field("element", pa.int8())))),
        ]
    )


def test_times_in_nanoseconds_lose_what_spark_does_not_have(
    broker: InProcessBroker, topic: str, tmp_path: Path
) -> None:
    kind = {"type": "long", "logicalType": "timestamp-nanos"}
    fields = [{"name": "at", "type": kind}, {"name": "more", "type": {"type": "array", "items": kind}}]
    file = tmp_path / "event.avsc"
    file.write_text(json.dumps({"type": "record", "name": "Event", "fields": fields}))
    spec = f"avro:{file}"
    ns = 1_700_000_000_123_456_789
    send(broker, topic, encoder(spec).encode_one({"at": ns, "more": [ns]}))
    (row,) = rows(settings_for(broker, topic, value_as=spec, columns="value"))
    at = datetime.fromtimestamp(ns // 1_000_000_000, UTC).replace(microsecond=123_456)
    assert row == {"value": {"at": at, "more": [at]}}


ORACLE_DDL = """a INT, b BIGINT, c STRING, d DOUBLE, e BOOLEAN, f ARRAY<INT>, g STRUCT<x: INT, y: STRING>,
    h MAP<STRING, DOUBLE>, i DECIMAL(6, 2), j TIMESTAMP, k DATE, l FLOAT, m SMALLINT, n BINARY,
    o ARRAY<STRUCT<x: INT>>, p ARRAY<ARRAY<INT>>, q MAP<STRING, STRUCT<x: INT>>, _corrupt_record STRING"""
TEXTS = (
    *(
        b'{"a": 1, "b": 2, "c": "x", "d": 1.5, "e": true}',
        b"{}",
        b'{"zzz": 1}',
        b'{"a": null}',
        b"",
        b" ",
        b"null",
        b"[]",
    ),
    *(b"x", b"{", b'{"a": 1', b'{"a": 1.0}', b'{"a": "1"}', b'{"a": 2147483648}', b'{"b": 9223372036854775808}'),
    *(
        b'{"c": 1}',
        b'{"c": 1.10}',
        b'{"c": true}',
        b'{"c": { "x" : 1}}',
        b'{"c": [1 , 2]}',
        b'{"c": 1e5}',
        b'{"c": null}',
    ),
    *(b'{"d": 1}', b'{"d": "NaN"}', b'{"d": "-Infinity"}', b'{"d": "1.5"}', b'{"d": 1e400}', b'{"d": NaN}'),
    *(b'{"e": "true"}', b'{"e": 1}', b'{"f": [1, 2]}', b'{"f": []}', b'{"f": 1}', b'{"f": [1, null]}'),
    *(b'{"g": {"x": 1, "y": "z"}}', b'{"g": {"x": "bad", "y": "z"}}', b'{"g": []}', b'{"g": {}}'),
    *(b'{"h": {"k": 1, "l": 2.5}}', b'{"h": {}}', b'{"h": []}', b'{"i": 1.005}', b'{"i": "12.34"}', b'{"i": 12345}'),
    *(b'{"j": "2024-01-02T03:04:05Z"}', b'{"j": "2024-01-02 03:04:05.123456"}', b'{"j": "2024-01-02T03:04:05+02:00"}'),
    *(b'{"j": 1700000000}', b'{"j": "nope"}', b'{"j": "2024-01-02"}', b'{"k": "2024-02-29"}', b'{"k": "2023-02-29"}'),
    *(b'{"l": 1.1}', b'{"l": 3}', b'{"m": 32768}', b'{"m": -5}', b'{"n": "AQI="}', b'{"a": 1, "a": 2}', b'{"A": 1}'),
    *(b'{"i": "%s"}' % one for one in (b"1,0.5", b"1_0", b" 12 ", b"12\\n", b"+.5e1", b"-", b"5.", b"1d", b"\xd9\xa3")),
    *(b'{"d": "%s", "l": "%s"}' % (one, one) for one in (b"INF", b"+INF", b"Infinity", b"inf")),
    *(b'{"j": "2024%s"}' % one for one in (b"", b"-1", b"-1-2\\t", b"-01-02T", b"-01-02T03", b"-01-02 03:04Z", b"T03")),
    *(b'{"j": "2024-01-02T03:04:05%s"}' % one for one in (b".", b".1234567", b" UTC ", b"UT", b"GMT+2", b"ZZ", b"+")),
    *(b'{"j": "2024-01-02T03:04:05%s"}' % one for one in (b"+18:01", b"-18:00", b"+05:60", b"+530", b"+5:3", b"-0530")),
    *(b'{"k": "2024%s"}' % one for one in (b"", b"-2", b"-2-9 any", b"-02-29T", b"-02T", b"-02-", b"-02-29x", b"\\n")),
    *(b'{"j": "%s", "k": "%s"}' % (one, one) for one in (b"", b" 2024", b"x2024")),
    *(b'{"f": %s}' % one for one in (b'["x", 1]', b'[1, "x"]', b"[1, 2.5, 3]", b"[[1]]", b'[{"x": 1}]', b"[true]")),
    *(b'{"h": {"k": %s, "l": 2}}' % one for one in (b'"x"', b"true", b"[1]", b"null")),
    *(b'{"o": %s}' % one for one in (b'[{"x": "bad"}, {"x": 2}]', b'[1, {"x": 2}]', b'[null, {"x": 2}]', b"[[]]")),
    *(b'{"p": %s}' % one for one in (b'[[1, "x"], [2]]', b"[[1], null]", b"[1, [2]]", b"[[1], [null]]")),
    *(b'{"q": %s}' % one for one in (b'{"k": {"x": "bad"}}', b'{"k": 1}', b'{"k": {"x": 1}}', b'{"k": null}')),
    *(b'{"c": "\\u00fc\\n"}', b'{"c": "\xc3\xbc"}', b'  {"a": 1}  ', b'{"a": 1, "c": 5, "d": "x", "e": false}'),
)


#: `from_json` writes these anew (`1.1`, `{"x":1}`); here they stay as they are.
WRITTEN_ANEW = {b'{"c": 1.10}', b'{"c": 1e5}', b'{"c": { "x" : 1}}', b'{"c": [1 , 2]}'}


@pytest.mark.xdist_group("spark")
@pytest.mark.timeout(600)  # a JVM starts, on a machine with other work
def test_as_from_json_does_it(spark: Any, broker: InProcessBroker, topic: str) -> None:
    send(broker, topic, *TEXTS)
    options = {"kafka.bootstrap.servers": broker.bootstrap, "subscribe": topic}
    raw = spark.read.format("ottla").options(**options).load()
    parsed = raw.selectExpr("offset", f"from_json(cast(value as string), '{ORACLE_DDL}') as value")
    expected = {row.offset: row.value for row in parsed.collect()}
    decoded = ottla.spark.read(spark, options, value_as=f"json:{ORACLE_DDL}", columns=["offset", "value"])
    loaded = spark.read.format("ottla").options(**options, value_as=f"json:{ORACLE_DDL}", columns="offset,value").load()
    assert decoded.schema["value"].dataType == parsed.schema["value"].dataType
    assert loaded.schema == decoded.schema
    found = {row.offset: row.value for row in decoded.collect()}
    assert repr({row.offset: row.value for row in loaded.collect()}) == repr(found)
    different = {
        TEXTS[offset]: (found[offset], expected[offset])
        for offset in range(len(TEXTS))
        if repr(found[offset]) != repr(expected[offset]) and TEXTS[offset] not in WRITTEN_ANEW
    }
    assert different == {}
    assert decoded.selectExpr("sum(value.a)").collect()[0][0] == parsed.selectExpr("sum(value.a)").collect()[0][0]


def test_a_schema_of_another_format(broker: InProcessBroker, topic: str, tmp_path: Path) -> None:
    """What the room of formats has beside JSON, by a schema's file."""
    file = tmp_path / "order.avsc"
    fields = [{"name": "id", "type": "long"}, {"name": "tags", "type": {"type": "array", "items": "string"}}]
    file.write_text(json.dumps({"type": "record", "name": "Order", "fields": fields}))
    writing = encoder(f"avro:{file}", framing="plain")
    send(broker, topic, writing.encode_one({"id": 7, "tags": ["a"]}), b"", None)
    given = {"value_as": f"avro:{file}", "framing": "plain", "columns": "value"}
    found = rows(settings_for(broker, topic, **given))
    assert found == [{"value": {"id": 7, "tags": ["a"]}}, {"value": None}, {"value": None}]
    with pytest.raises(ReadFailed, match=f"{topic}-0: the value at offset 1 cannot be decoded"):
        rows(settings_for(broker, topic, **given, decode_mode="FAILFAST"))


def test_a_registry_that_goes_away_fails_the_task_and_makes_no_value_null(
    broker: InProcessBroker, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark runs the task again, and the registry may be back by then."""
    monkeypatch.setattr("ottla.formats.registry.http.PAUSE_S", 0.0)
    order = {"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]}
    with registry_server() as registry:
        given = {"schema.registry.url": registry.url, "columns": "value"}
        subject = f"{topic}-value"
        registry.add(subject, json.dumps({**order, "doc": "the writer's"}))
        registry.add(subject, json.dumps(order))
        # By the first schema, which nobody has asked for while it was planned.
        send(broker, topic, b"\0\0\0\0\1\x0e")
        settings = settings_for(broker, topic, value_as=f"avro:{subject}", **given)
        registry.faults = [(503, b"")] * TRIES
        with pytest.raises(ReadFailed, match=rf"{topic}-0: the value cannot be decoded for now: .*{registry.url}.*url"):
            rows(settings)
        assert rows(settings) == [{"value": {"id": 7}}]


def test_a_frame_that_is_older_than_its_registrys_latest_schema_is_to_be_loaded_again(tmp_path: Path) -> None:
    """A session makes the reader anew for each query of a frame."""
    options = {
        "kafka.bootstrap.servers": "localhost:1",
        "subscribe": "orders",
        "value_as": "avro:orders-value",
        "schema.registry.url": str(tmp_path),
    }
    (tmp_path / "orders-value").mkdir()
    fields = [{"name": "id", "type": "long"}]
    for version in (1, 2):
        order = {"type": "record", "name": "Order", "fields": fields[:version]}
        (tmp_path / "orders-value" / f"{version}.{version}.avsc").write_text(json.dumps(order))
        if version == 1:
            schema = OttlaDataSource(options).schema()
            OttlaDataSource(options).reader(schema)
            fields.append({"name": "note", "type": "string", "default": ""})
    for made in (OttlaDataSource(options).reader, OttlaDataSource(options).streamReader):
        with pytest.raises(OptionError, match=r"id:bigint,note:string>, not .*: load the frame again"):
            made(schema)


def test_a_topic_of_texts(broker: InProcessBroker, topic: str, fill: Fill) -> None:
    fill(broker.bootstrap, topic, 30)
    assert rows(settings_for(broker, topic, value_as="string", columns="value"))[1] == {"value": "3"}
