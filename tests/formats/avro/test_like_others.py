"""The same bytes and the same values as fastavro and Confluent's serializers."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from tests.formats.avro.schemas import EVERYTHING, VALUE, values_of_schemas
from tests.formats.registry_server import RegistryServer
from tests.searches import examples

from ottla.formats import decoder, encoder
from ottla.formats.avro.encoding import writer_of
from ottla.formats.avro.resolution import Form, reader_of
from ottla.formats.avro.schema import parse_schema

fastavro = pytest.importorskip("fastavro")


def theirs(schema: Any, value: Any) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, schema, value)
    return out.getvalue()


def test_everything(tmp_path: Path) -> None:
    path = tmp_path / "everything.avsc"
    path.write_text(json.dumps(EVERYTHING))
    raw = encoder(f"avro:{path}").encode_one(VALUE)
    assert raw == theirs(EVERYTHING, VALUE)
    assert decoder(f"avro:{path}").decode_one(raw) == VALUE
    assert fastavro.schemaless_reader(io.BytesIO(raw), EVERYTHING, None) == VALUE


@examples(150)
@given(values_of_schemas())
def test_at_random(drawn: tuple[str, Any]) -> None:
    text, value = drawn
    schema = parse_schema(text)
    raw = bytearray()
    writer_of(schema)(value, raw)
    parsed = fastavro.parse_schema(json.loads(text))
    assert bytes(raw) == theirs(parsed, value)
    found, end = reader_of(schema, schema, Form.OBJECTS)(bytes(raw), 0)
    assert (found, end) == (value, len(raw))
    if raw:  # theirs takes no record without bytes
        assert found == fastavro.schemaless_reader(io.BytesIO(raw), parsed, None)


def test_confluents_serializers_give_the_same_bytes(registry: RegistryServer, tmp_path: Path) -> None:
    pytest.importorskip("confluent_kafka.schema_registry.avro", exc_type=ImportError)
    from confluent_kafka.schema_registry import SchemaRegistryClient, topic_subject_name_strategy
    from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
    from confluent_kafka.serialization import MessageField, SerializationContext

    text = json.dumps(EVERYTHING)
    (tmp_path / "everything.avsc").write_text(text)
    client = SchemaRegistryClient({"url": registry.url})
    context = SerializationContext("orders", MessageField.VALUE)
    by_topic = {"subject.name.strategy": topic_subject_name_strategy}
    registry.add("another", '"long"')  # so that an id is not the first one by chance
    serialize = AvroSerializer(client, text, conf=by_topic)
    raw = serialize(VALUE, context)
    ours = {"schema_registry_url": registry.url, "topic": "orders"}
    assert encoder(f"avro:{tmp_path}/everything.avsc", **ours).encode_one(VALUE) == raw
    assert encoder("avro", **ours).encode_one(VALUE) == raw
    assert list(registry.subjects) == ["another", "orders-value"]
    assert decoder("avro", **ours).decode_one(raw) == VALUE
    # And what ours has registered they read.
    other = encoder(f"avro:{tmp_path}/everything.avsc", **{**ours, "topic": "clicks", "is_key": "true"})
    deserialize = AvroDeserializer(client, conf=by_topic)
    assert deserialize(other.encode_one(VALUE), SerializationContext("clicks", MessageField.KEY)) == VALUE
    assert "clicks-key" in registry.subjects
