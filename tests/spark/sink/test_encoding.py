"""Keys and values that tasks encode: `key_as` and `value_as` of the sink."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.types import LongType, StringType, StructField, StructType
from tests.formats.registry_server import registry_server
from tests.spark.sink.conftest import Read

from ottla.formats import decoder, encoder
from ottla.formats.registry import _opened
from ottla.spark.options import OptionError
from ottla.spark.sink import batch_writer
from ottla.spark.sink.errors import BadSinkColumns
from ottla.testing.in_process import InProcessBroker

ORDER = StructType([StructField("id", LongType()), StructField("note", StringType())])
SCHEMA = StructType([StructField("value", ORDER)])
ROWS = [{"id": 1, "note": None}, {"id": 2, "note": "two"}, None]

AVRO = {
    "type": "record",
    "name": "Order",
    "fields": [{"name": "id", "type": "long"}, {"name": "note", "type": ["null", "string"]}],
}
PROTOBUF = 'syntax = "proto3";\nmessage Order { int64 id = 1; optional string note = 2; }\n'


@pytest.fixture
def avro(tmp_path: Path) -> str:
    file = tmp_path / "order.avsc"
    file.write_text(json.dumps(AVRO))
    return f"avro:{file}"


@pytest.fixture
def protobuf(tmp_path: Path) -> str:
    file = tmp_path / "order.proto"
    file.write_text(PROTOBUF)
    return f"protobuf:{file}#Order"


def write(on: str, topic: str, values: list[Any], **options: str) -> None:
    dotted = {name.replace("__", "."): one for name, one in options.items()}
    writer = batch_writer(SCHEMA, False, {"kafka.bootstrap.servers": on, "topic": topic, **dotted})
    order = pa.struct([("id", pa.int64()), ("note", pa.string())])
    rows = pa.record_batch({"value": pa.array(values, order)})
    pickle.loads(pickle.dumps(writer)).write(iter([rows]))


@pytest.mark.parametrize("kind", ["avro", "protobuf", "json"])
def test_values_by_a_format(
    kind: str, avro: str, protobuf: str, ottla_broker: InProcessBroker, topic: str, read: Read
) -> None:
    spec = {"avro": avro, "protobuf": protobuf, "json": "json:id BIGINT, note STRING"}[kind]
    write(ottla_broker.bootstrap, topic, ROWS, value_as=spec)
    values = [one.value for one in read(topic)]
    assert values[2] is None
    column, errors = decoder(spec).decode(pa.array(values, pa.binary()))
    assert errors.null_count == len(values)
    assert column.to_pylist() == ROWS


@pytest.mark.xdist_group("spark")
@pytest.mark.timeout(600)  # a JVM starts, on a machine with other work
def test_json_says_what_to_json_says(spark: Any) -> None:
    columns = (
        *("1.50 AS a", "cast(0 AS DECIMAL(20, 10)) AS b", "cast('-inf' AS DOUBLE) AS c", "cast(1.1 AS FLOAT) AS d"),
        *("array(2.5, null) AS e", "map('x', cast('nan' AS FLOAT), 'y', null) AS f", "map(1, 2.50) AS g", "X'01' AS h"),
        *("named_struct('m', map('k', cast(0.1 AS FLOAT)), 'n', null) AS i", "date'2024-01-02' AS j", "'ü\"' AS k"),
    )
    row = f"struct({', '.join(columns)})"
    both = spark.sql(f"SELECT to_json({row}) AS theirs, {row} AS ours").toArrow()
    ours = encoder("json").encode(both.column("ours").combine_chunks()).to_pylist()
    assert [one.decode() for one in ours] == both.column("theirs").to_pylist()


def test_a_registry_has_the_schema_before_a_row_is_written(
    avro: str, tmp_path: Path, ottla_broker: InProcessBroker, topic: str, read: Read
) -> None:
    folder = str(tmp_path / "schemas")
    write(ottla_broker.bootstrap, topic, ROWS, value_as=avro, schema__registry__url=folder)
    assert (tmp_path / "schemas" / f"{topic}-value").is_dir()
    raw = pa.array([one.value for one in read(topic)], pa.binary())
    column, _ = decoder("avro:registry", schema_registry_url=folder, topic=topic).decode(raw)
    assert column.to_pylist() == ROWS


def test_a_registry_that_is_away_ends_the_planning_and_no_task(
    ottla_broker: InProcessBroker, topic: str, read: Read
) -> None:
    options = {"kafka.bootstrap.servers": ottla_broker.bootstrap, "topic": topic, "value_as": "avro:registry"}
    with registry_server() as registry:
        registry.add(f"{topic}-value", json.dumps(AVRO))
        options["schema.registry.url"] = registry.url
        planned = pickle.dumps(batch_writer(SCHEMA, False, options))
    _opened.cache_clear()  # another process knows nothing of what was asked before
    with pytest.raises(OptionError, match=r"the schema registry is not reached: .* Connection refused"):
        batch_writer(SCHEMA, False, options)
    # A task has the schema with it.
    rows = pa.record_batch({"value": pa.array(ROWS, pa.struct([("id", pa.int64()), ("note", pa.string())]))})
    pickle.loads(planned).write(iter([rows]))
    assert len(read(topic)) == len(ROWS)


def test_a_value_that_the_schema_does_not_have_is_named_with_its_row(
    tmp_path: Path, ottla_broker: InProcessBroker, topic: str
) -> None:
    file = tmp_path / "strict.avsc"
    fields = [{"name": "id", "type": "long"}, {"name": "note", "type": "string"}]
    file.write_text(json.dumps({**AVRO, "fields": fields}))
    with pytest.raises(BadSinkColumns, match=r"row 1: the value is none that value_as can write: .*note"):
        write(ottla_broker.bootstrap, topic, [ROWS[1], ROWS[0]], value_as=f"avro:{file}")


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"value_as": "avro:/nowhere/order.avsc"}, r"value_as: .*/nowhere/order\.avsc"),
        ({"value_as": "arvo:x"}, r"value_as: "),
        ({"value_as": "avro:registry"}, r"value_as: .*schema\.registry\.url"),
        ({"value_as": "string", "schema__registry__ulr": "x"}, r"did you mean schema\.registry\.url"),
        ({"value_as": "string", "subject__name__stratgey": "x"}, r"did you mean subject\.name\.strategy"),
        ({"value_as": "string", "http__read__timeout": "9"}, r"did you mean http\.read\.timeout\.ms"),
    ],
)
def test_what_cannot_be_meant_is_said_before_a_row_is_written(options: dict[str, str], text: str) -> None:
    with pytest.raises(OptionError, match=text):
        write("localhost:9", "orders", ROWS, **options)


def test_a_key_that_is_not_there() -> None:
    given = {"kafka.bootstrap.servers": "localhost:9", "topic": "orders", "key_as": "string"}
    with pytest.raises(BadSinkColumns, match="key_as encodes the column key, and the frame has none"):
        batch_writer(StructType([StructField("value", StringType())]), False, given)
