"""Protobuf as the serializer of a producer and a consumer: a registry, one that is away, and bad records."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ottla.client import Consumer, Producer, ProducerRecord
from ottla.client.errors import SchemaUnavailable, SerializationFailed
from ottla.formats.registry.http import TRIES
from tests.formats.registry_server import RegistryServer, registry_server

pytest.importorskip("google.protobuf")

SHOP = 'syntax = "proto3"; package shop; message Order { int64 id = 1; } message Click { string page = 1; }'
LATER = SHOP.replace("id = 1;", "id = 1; string note = 2;")


@pytest.fixture
def registry() -> Iterator[RegistryServer]:
    with registry_server() as served:
        yield served


@pytest.fixture
def shop(tmp_path: Path) -> str:
    path = tmp_path / "shop.proto"
    path.write_text(SHOP)
    return f"protobuf:{path}"


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ottla.formats.registry.http.PAUSE_S", 0.0)


def of_id(schema_id: int, place: bytes, message: bytes) -> bytes:
    """Confluent's header: the schema's id, and which of its messages it is."""
    return b"\0" + schema_id.to_bytes(4, "big") + place + message


async def read(settings: dict[str, str], topic: str, count: int, **deserializers: str) -> list[Any]:
    async with Consumer(settings, auto_offset_reset="earliest", **deserializers) as consumer:
        consumer.assign(await consumer.partitions_for(topic))
        found: list[Any] = []
        while len(found) < count:
            found += await consumer.poll(timeout_ms=20_000)
        return found


async def test_there_and_back(bootstrap: str, registry: RegistryServer, shop: str) -> None:
    settings = {"bootstrap.servers": bootstrap, "schema.registry.url": registry.url}
    words = {"key_serializer": f"{shop}#Click", "value_serializer": f"{shop}#Order"}
    async with Producer(settings, **words) as producer:
        await producer.send("messages-there", {"id": 1}, {"page": "a"})
        await producer.send_many([ProducerRecord(topic="messages-there", key={"page": "b"}, value={"id": 2})])
        await producer.send_and_wait("messages-there", None, {"page": "c"})
    assert sorted(registry.subjects) == ["messages-there-key", "messages-there-value"]
    (raw, *_) = [one.value for one in await read(settings, "messages-there", 3)]
    assert raw == of_id(registry.subjects["messages-there-value"][0], b"\0", b"\x08\x01")
    found = await read(
        settings, "messages-there", 3, key_deserializer="protobuf", value_deserializer="protobuf:registry"
    )
    assert [one.key.page for one in found] == ["a", "b", "c"]
    assert [None if one.value is None else one.value.id for one in found] == [1, 2, None]
    async with Producer(settings, value_serializer="protobuf:messages-there-value#Order") as again:
        await again.send_and_wait("messages-there", found[0].value)  # a message is a value too


async def test_what_a_later_schema_wrote_is_read(bootstrap: str, registry: RegistryServer) -> None:
    settings = {"bootstrap.servers": bootstrap, "schema.registry.url": registry.url}
    ids = [registry.add("messages-later-value", text, "PROTOBUF") for text in (SHOP, LATER)]
    async with Producer(bootstrap_servers=bootstrap) as plain:
        await plain.send_and_wait("messages-later", of_id(ids[0], b"\0", b"\x08\x01"))
        await plain.send_and_wait("messages-later", of_id(ids[1], b"\0", b"\x08\x02\x12\x01x"))
        await plain.send_and_wait("messages-later", of_id(ids[1], b"\x02\x02", b"\x0a\x01p"))  # its second message
    first, second, third = [
        one.value for one in await read(settings, "messages-later", 3, value_deserializer="protobuf")
    ]
    assert (first.id, second.id, second.note, third.page) == (1, 2, "x", "p")


async def test_a_registry_that_is_away(bootstrap: str, registry: RegistryServer, shop: str) -> None:
    settings = {"bootstrap.servers": bootstrap, "schema.registry.url": registry.url}
    async with Producer(settings, value_serializer=f"{shop}#Order") as producer:
        registry.faults = [(503, b"")] * TRIES
        with pytest.raises(SchemaUnavailable, match=r"POST /subjects/messages-away-value/versions: 503") as caught:
            await producer.send("messages-away", {"id": 1})
        assert caught.value.retriable
        await producer.send_and_wait("messages-away", {"id": 1})
    unknown = registry.add("messages-away-value", LATER, "PROTOBUF")
    async with Consumer(settings, auto_offset_reset="earliest", value_deserializer="protobuf") as consumer:
        consumer.assign(await consumer.partitions_for("messages-away"))
        assert [one.value.id for one in await consumer.poll(timeout_ms=20_000)] == [1]
        # Before there is a record that needs it: a poll that gives others has it fetched meanwhile.
        registry.faults = [(503, b"")] * TRIES
        async with Producer(bootstrap_servers=bootstrap) as plain:
            await plain.send_and_wait("messages-away", of_id(unknown, b"\0", b"\x08\x02"))
        with pytest.raises(SchemaUnavailable, match="503"):
            await consumer.poll(timeout_ms=20_000)
        assert [one.value.id for one in await consumer.poll(timeout_ms=20_000)] == [2]


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (b"", ""),
        (b"\0\0\0\0", ""),
        (b"\x01\0\0\0\x01\0\x08\x01", ""),
        (b"\0\0\0\0\x63\0\x08\x01", "Schema not found"),
        (b"\0\0\0\0\x01\x02\x0e\x08\x01", ""),
        (b"\0\0\0\0\x01\x02", ""),
        (b"\0\0\0\0\x01\0\x08", ""),
        (b"\0\0\0\0\x01\0\x0a\x05no", ""),
    ],
    ids=[
        "nothing",
        "half a header",
        "another header",
        "an unknown id",
        "no such message",
        "half a place",
        "cut",
        "long",
    ],
)
async def test_a_bad_record_is_named_and_read_on_behind(
    bootstrap: str, registry: RegistryServer, raw: bytes, said: str, request: pytest.FixtureRequest
) -> None:
    settings = {"bootstrap.servers": bootstrap, "schema.registry.url": registry.url}
    topic = f"messages-bad-{request.node.callspec.id.replace(' ', '-')}"
    assert registry.add(f"{topic}-value", SHOP, "PROTOBUF") == 1
    good = of_id(1, b"\0", b"\x08\x07")
    async with Producer(bootstrap_servers=bootstrap) as plain:
        for value in (good, raw, good):
            await plain.send_and_wait(topic, value)
    async with Consumer(settings, auto_offset_reset="earliest", value_deserializer="protobuf") as consumer:
        (tp,) = await consumer.partitions_for(topic)
        consumer.assign([tp])
        assert [one.value.id for one in await consumer.poll(timeout_ms=20_000)] == [7]
        for _ in range(2):  # it stays where it is
            with pytest.raises(SerializationFailed, match=f"offset 1 cannot be deserialized: .*{said}"):
                await consumer.poll(timeout_ms=20_000)
        consumer.seek(tp, 2)
        assert [one.value.id for one in await consumer.poll(timeout_ms=20_000)] == [7]


async def test_a_value_that_the_message_cannot_hold(bootstrap: str, registry: RegistryServer, shop: str) -> None:
    settings = {"bootstrap.servers": bootstrap, "schema.registry.url": registry.url}
    async with Producer(settings, value_serializer=f"{shop}#Order") as producer:
        for wrong in ({"id": "x"}, {"id": 2**63}, {"number": 1}):
            with pytest.raises(SerializationFailed, match="the value cannot be serialized"):
                await producer.send("messages-wrong", wrong)
        await producer.send_and_wait("messages-wrong", {"id": 1})
    async with Producer(settings, value_serializer="protobuf", auto_register_schemas=False) as latest:
        with pytest.raises(SchemaUnavailable, match="Subject 'messages-nobody-value' not found"):
            await latest.send("messages-nobody", {"id": 1})
