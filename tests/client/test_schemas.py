"""Avro as the serializer of a producer and a consumer, with schemas from a registry or a folder."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from ottla.client import Consumer, Producer, ProducerRecord, sync
from ottla.client.errors import SchemaUnavailable, SerializationFailed, SettingsError
from ottla.client.schemas import TOPICS_MAX, waiting_for_schemas
from ottla.client.serializers import serialized, serializer_for
from ottla.formats.registry.http import TRIES
from tests.formats.registry_server import RegistryServer, registry_server

ORDER = {"type": "record", "name": "Order", "namespace": "shop", "fields": [{"name": "id", "type": "long"}]}


@pytest.fixture
def registry() -> Iterator[RegistryServer]:
    with registry_server() as served:
        yield served


@pytest.fixture
def order(tmp_path: Path) -> str:
    path = tmp_path / "order.avsc"
    path.write_text(json.dumps(ORDER))
    return f"avro:{path}"


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ottla.formats.registry.http.PAUSE_S", 0.0)


async def test_there_and_back(bootstrap: str, registry: RegistryServer, order: str) -> None:
    settings = {"bootstrap.servers": bootstrap, "schema.registry.url": registry.url}
    async with Producer(settings, key_serializer=order, value_serializer=order) as producer:
        await producer.send("schemas-there", {"id": 1}, {"id": 10})
        records = [ProducerRecord(topic="schemas-there", key={"id": n}, value={"id": n}) for n in (2, 3)]
        await producer.send_many(records)
        assert producer.try_send("schemas-elsewhere", {"id": 4}) is None  # its schema is not registered yet
        await producer.send_and_wait("schemas-there", None, {"id": 4})
    assert sorted(registry.subjects) == ["schemas-there-key", "schemas-there-value"]
    assert len(registry.asked) == 2
    async with Consumer(
        settings, auto_offset_reset="earliest", key_deserializer="avro", value_deserializer="avro"
    ) as consumer:
        consumer.assign(await consumer.partitions_for("schemas-there"))
        found = []
        while len(found) < 4:
            found += [(record.key, record.value) for record in await consumer.poll(timeout_ms=20_000)]
    assert found == [({"id": 10}, {"id": 1}), ({"id": 2}, {"id": 2}), ({"id": 3}, {"id": 3}), ({"id": 4}, None)]
    assert registry.asked[2:] == []  # what this process has registered it knows


def test_from_threads_and_a_folder(bootstrap: str, tmp_path: Path, order: str) -> None:
    """The process that reads knows nothing of what was registered by the one that wrote: the folder does."""
    folder = tmp_path / "schemas"
    with sync.Producer(
        bootstrap_servers=bootstrap,
        schema_registry_url=str(folder),
        value_serializer=order,
        value_subject_name_strategy="io.confluent.kafka.serializers.subject.TopicRecordNameStrategy",
    ) as producer:
        producer.send("schemas-threads", {"id": 1})
        producer.send_many([ProducerRecord(topic="schemas-threads", value={"id": 2})])
    assert (folder / "schemas-threads-shop.Order" / "1.1.avsc").exists()
    with sync.Consumer(
        bootstrap_servers=bootstrap,
        schema_registry_url=folder.as_uri(),
        auto_offset_reset="earliest",
        value_deserializer="avro",
    ) as consumer:
        consumer.assign(consumer.partitions_for("schemas-threads"))
        found: list[object] = []
        while len(found) < 2:
            found += [record.value for record in consumer.poll(timeout_ms=20_000)]
    assert found == [{"id": 1}, {"id": 2}]


async def test_a_loop_goes_on_while_a_registry_is_asked(bootstrap: str, registry: RegistryServer, order: str) -> None:
    registry.faults = [None]
    settings = {"bootstrap.servers": bootstrap, "schema.registry.url": registry.url}
    async with (
        Producer(settings, value_serializer=order) as producer,
        Consumer(settings, auto_offset_reset="earliest", value_deserializer="avro") as consumer,
    ):
        sending = asyncio.create_task(producer.send_and_wait("schemas-slow", {"id": 1}))
        while not registry.asked:  # noqa: ASYNC110  # a thread is looked at, not a task
            await asyncio.sleep(0.001)  # until a thread has asked
        assert not sending.done()
        registry.go_on.set()
        await sending
        # Another process wrote with a schema that this one does not know.
        registry.go_on.clear()
        registry.faults = [None]
        unknown = registry.add("schemas-slow-value", json.dumps({**ORDER, "doc": "another"}))
        async with Producer(bootstrap_servers=bootstrap) as plain:
            await plain.send_and_wait("schemas-slow", b"\0" + unknown.to_bytes(4, "big") + b"\x04")
        consumer.assign(await consumer.partitions_for("schemas-slow"))
        first = await consumer.poll(timeout_ms=20_000)
        assert [record.value for record in first] == [{"id": 1}]
        assert await consumer.poll(timeout_ms=10) == []  # the time is up, and the thread goes on
        assert await consumer.poll(timeout_ms=0) == []
        registry.go_on.set()
        second = await consumer.poll(timeout_ms=20_000)
        assert [record.value for record in second] == [{"id": 2}]
        assert registry.asked.count(f"GET /schemas/ids/{unknown}") == 1


async def test_a_registry_that_is_away(bootstrap: str, registry: RegistryServer, order: str) -> None:
    settings = {"bootstrap.servers": bootstrap, "schema.registry.url": registry.url}
    async with Producer(settings, value_serializer=order) as producer:
        registry.faults = [(503, b"")] * TRIES
        with pytest.raises(SchemaUnavailable, match=r"POST /subjects/schemas-away-value/versions: 503") as caught:
            await producer.send("schemas-away", {"id": 1})
        assert caught.value.retriable
        await producer.send_and_wait("schemas-away", {"id": 1})
    unknown = registry.add("schemas-away-value", json.dumps({**ORDER, "doc": "another"}))
    async with Consumer(settings, auto_offset_reset="earliest", value_deserializer="avro") as consumer:
        consumer.assign(await consumer.partitions_for("schemas-away"))
        assert len(await consumer.poll(timeout_ms=20_000)) == 1
        # Before there is a record that needs it: a poll that gives others has it fetched meanwhile.
        registry.faults = [(503, b"")] * TRIES
        async with Producer(bootstrap_servers=bootstrap) as plain:
            await plain.send_and_wait("schemas-away", b"\0" + unknown.to_bytes(4, "big") + b"\x04")
            await plain.send_and_wait("schemas-away", b"\0\0\0\0\x63\x04")
        with pytest.raises(SchemaUnavailable, match="503"):
            await consumer.poll(timeout_ms=20_000)
        assert [record.value for record in await consumer.poll(timeout_ms=20_000)] == [{"id": 2}]
        # One that the registry does not have is the record's fault, as any that cannot be deserialized.
        for _ in range(2):
            with pytest.raises(SerializationFailed, match=r"offset 2 cannot be deserialized: .*Schema not found"):
                await consumer.poll(timeout_ms=20_000)


FRAMED = b"\0\0\0\0\x01\x02"  # an Order whose id is 1, of the registry's first schema


async def test_a_subject_that_nobody_has_registered(bootstrap: str, registry: RegistryServer) -> None:
    """It is the reader's own: no record of the topic can be read, and none of them is at fault."""
    settings = {"bootstrap.servers": bootstrap, "schema.registry.url": registry.url}
    assert registry.add("schemas-reader-value", json.dumps(ORDER)) == 1
    async with Producer(bootstrap_servers=bootstrap) as plain:
        await plain.send_and_wait("schemas-reader", FRAMED)
    async with Consumer(settings, auto_offset_reset="earliest", value_deserializer="avro:nobody-value") as consumer:
        consumer.assign(await consumer.partitions_for("schemas-reader"))
        async with asyncio.timeout(60):
            with pytest.raises(SchemaUnavailable, match="Subject 'nobody-value' not found"):
                await consumer.poll(timeout_ms=20_000)
        registry.add("nobody-value", json.dumps(ORDER))
        assert [record.value for record in await consumer.poll(timeout_ms=20_000)] == [{"id": 1}]


@pytest.mark.parametrize(
    ("kind", "schema", "references", "said"),
    [
        ("AVRO", json.dumps({**ORDER, "fields": [{"name": "id", "type": "shop.Id"}]}), ["Id"], "to Id, .*nobody"),
        ("PROTOBUF", 'syntax = "proto3"; import "id.proto"; message Order { int64 id = 1; }', ["id.proto"],
         "refers to id.proto, .*nobody"),
        ("JSON", "{}", [], "one of Json, not of"),
    ],
    ids=["avro", "protobuf", "another kind"],
)  # fmt: skip
async def test_a_schema_that_nobody_can_read_is_the_records_fault(
    bootstrap: str, registry: RegistryServer, kind: str, schema: str, references: list[str], said: str
) -> None:
    """Its record is named, so that it can be passed over."""
    topic = f"schemas-unread-{kind.lower()}"
    refers = [{"name": one, "subject": "nobody", "version": 1} for one in references]
    assert registry.add(f"{topic}-value", schema, kind, refers) == 1
    async with Producer(bootstrap_servers=bootstrap) as plain:
        await plain.send_and_wait(topic, FRAMED[:5] + b"\0\x08\x01" if kind == "PROTOBUF" else FRAMED)
    settings = {"bootstrap.servers": bootstrap, "schema.registry.url": registry.url}
    spec = "protobuf" if kind == "PROTOBUF" else "avro"
    async with Consumer(settings, auto_offset_reset="earliest", value_deserializer=spec) as consumer:
        consumer.assign(await consumer.partitions_for(topic))
        async with asyncio.timeout(60):
            for _ in range(2):
                with pytest.raises(SerializationFailed, match=f"offset 0 cannot be deserialized: .*{said}"):
                    await consumer.poll(timeout_ms=20_000)


async def test_a_schema_that_must_be_there(bootstrap: str, registry: RegistryServer, order: str) -> None:
    settings = {"bootstrap.servers": bootstrap, "schema.registry.url": registry.url}
    async with Producer(settings, value_serializer=order, auto_register_schemas=False) as producer:
        with pytest.raises(SchemaUnavailable, match="Schema not found"):
            await producer.send("schemas-must", {"id": 1})
        registry.add("schemas-must-value", json.dumps(ORDER))
        await producer.send_and_wait("schemas-must", {"id": 1})
        with pytest.raises(SerializationFailed, match="the value cannot be serialized: id: str 'x' is no long"):
            await producer.send("schemas-must", {"id": "x"})
    async with Producer(settings, value_serializer="avro") as latest:
        with pytest.raises(SchemaUnavailable, match="Subject 'schemas-nobody-value' not found"):
            await latest.send("schemas-nobody", {"id": 1})
        await latest.send_and_wait("schemas-must", {"id": 2})


def test_a_schema_file_is_read_once(order: str) -> None:
    """Topics come and go, more of them than encoders are kept, and the file may be gone by then."""
    serializer = serializer_for(order, "value.serializer")
    Path(order.partition(":")[2]).unlink()
    for number in range(TOPICS_MAX + 2):
        raw = waiting_for_schemas(lambda: serialized({"id": 1}, serializer, "value", f"topic-{number}"))  # noqa: B023
        assert raw == b"\x02"


def test_settings_that_cannot_be_meant(order: str) -> None:
    def refused(**settings: object) -> str:
        with pytest.raises(SettingsError) as caught:
            Producer(bootstrap_servers="localhost:1", **settings)
        return str(caught.value)

    assert refused(value_serializer="avro") == (
        "value.serializer: avro:registry needs schema.registry.url: a URL, or a folder"
    )
    assert "nowhere.avsc cannot be read" in refused(value_serializer="avro:nowhere.avsc")
    registry = {"schema_registry_url": "http://localhost:1"}
    assert "must be one of TopicNameStrategy" in refused(
        **registry, value_serializer=order, value_subject_name_strategy="MyStrategy"
    )
    producer = Producer(bootstrap_servers="localhost:1", basic_auth_user_info="ada:secret")
    assert "secret" not in repr(producer.settings)
    assert "must be http://host:port" in refused(schema_registry_url="ftp://x", value_serializer="avro")
