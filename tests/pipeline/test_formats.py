"""Avro and Protobuf with ids of a registry: schemas that change while a flow runs, and a registry that is away."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest
from tests.formats.registry_server import RegistryServer, registry_server
from tests.pipeline.conftest import Pipeline, headers

from ottla.client.sync import Admin
from ottla.formats import decoder, encoder
from ottla.pipeline.errors import FlowFailed
from ottla.pipeline.tables.log import TableLog

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("spark"), pytest.mark.timeout(1200)]


@pytest.fixture
def registry() -> Iterator[RegistryServer]:
    with registry_server() as served:
        yield served


CLICKS = """
syntax = "proto3";
package shop;
message Click { string page = 1; int64 at = 2; optional string user = 3; }
"""
PROTOBUF = """
@table
def clicks():
    return decode(read_topic("TOPIC"), "protobuf", schema_registry_url="URL", subject="clicks-value")

@sink(topic="TOPIC-out", options={"value_as": "protobuf:FILE#Click", "schema.registry.url": "URL"})
def out():
    return read_stream("clicks").selectExpr("struct(page, at, user) AS value")
"""


def test_protobuf_from_a_topic_to_a_table_and_a_topic(pipeline: Pipeline, registry: RegistryServer) -> None:
    file = pipeline.folder / "shop.proto"
    file.write_text(CLICKS)
    pipeline.broker.create_topic(f"{pipeline.topic}-out", partitions=1)
    writing = encoder(f"protobuf:{file}#Click", schema_registry_url=registry.url, topic="clicks")
    good = [{"page": "/", "at": 1}, {"page": "/a", "at": 2, "user": "ann"}]
    pipeline.send(*(writing.encode_one(one) for one in good), b"\0\0\0\0\x63\0none", b"junk")
    pipeline.define(PROTOBUF.replace("URL", registry.url).replace("FILE", str(file)))
    pipeline.catch_up()
    rows = [("/", 1, None), ("/a", 2, "ann")]
    assert pipeline.rows("clicks", "page", "at", "user") == rows
    letters = {one.value: headers(one)["ottla.dlq.reason"] for one in pipeline.records(f"{pipeline.topic}-dlq")}
    assert set(letters) == {b"\0\0\0\0\x63\0none", b"junk"}
    assert "99" in letters[b"\0\0\0\0\x63\0none"]
    reading = decoder("protobuf", schema_registry_url=registry.url, subject=f"{pipeline.topic}-out-value")
    found = [reading.decode_one(one.value) for one in pipeline.records(f"{pipeline.topic}-out")]
    assert sorted((one.page, one.at) for one in found) == [("/", 1), ("/a", 2)]


def order(*more: dict[str, Any]) -> str:
    return json.dumps({"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}, *more]})


AVRO = """
@table
def orders():
    return decode(read_topic("TOPIC"), "avro", schema_registry_url="FOLDER", subject="orders-value")
"""


def test_a_schema_that_changes_while_a_flow_runs(pipeline: Pipeline) -> None:
    """The registry is a folder. What the flow began with is what it reads by; the next run has the new column."""
    folder = pipeline.folder / "schemas"
    (folder / "orders-value").mkdir(parents=True)
    (folder / "orders-value" / "1.17.avsc").write_text(order())
    note = {"name": "note", "type": ["null", "string"], "default": None}
    pipeline.define(AVRO.replace("FOLDER", str(folder)))

    def send(**value: Any) -> None:
        writing = encoder("avro", schema_registry_url=str(folder), subject="orders-value")
        pipeline.send(writing.encode_one(value))

    send(id=1)
    give_up = time.monotonic() + 600
    changed: list[int] = []

    def stopped() -> bool:
        assert time.monotonic() < give_up
        rows = sum(file.rows for file in TableLog(pipeline.places.table("orders")).state().files.values())
        if rows == 1 and not changed:
            changed.append(rows)
            (folder / "orders-value" / "2.23.avsc").write_text(order(note))
            send(id=2, note="new")
        return rows == 2

    pipeline.run().stream(0.1, stopped)
    assert pipeline.rows("orders", "*")[0][0] == 1
    assert pipeline.rows("orders", "id") == [(1,), (2,)]
    send(id=3, note="newer")
    pipeline.catch_up()
    assert pipeline.rows("orders", "id", "note") == [(1, None), (2, None), (3, "newer")]


AWAY = """
@table
def orders():
    return decode(read_topic("TOPIC"), "avro", schema_registry_url="URL", subject="orders-value")
"""


def test_a_registry_that_is_away_makes_no_good_record_bad(pipeline: Pipeline, registry: RegistryServer) -> None:
    registry.add("orders-value", order())
    writing = encoder("avro", schema_registry_url=registry.url, subject="orders-value")
    old = registry.add("other", order({"name": "x", "type": "int", "default": 0}))
    value = writing.encode_one({"id": 7})
    pipeline.send(value[:1] + old.to_bytes(4, "big") + value[5:] + b"\0")
    pipeline.define(AWAY.replace("URL", registry.url))
    run = pipeline.run()
    asked = len(registry.asked)
    registry.wanted_authorization = None
    known = registry.answer

    def answer(method: str, path: str, body: Any) -> tuple[int, Any]:
        return (503, {"message": "away"}) if path.startswith("/schemas/ids/") else known(method, path, body)

    registry.answer = answer  # type: ignore[method-assign]
    with pytest.raises(FlowFailed, match=r"table orders \(line \d+\): .*registry"):
        run.catch_up()
    assert any(path.startswith("GET /schemas/ids/") for path in registry.asked[asked:])
    with Admin(bootstrap_servers=pipeline.broker.bootstrap) as admin:
        assert f"{pipeline.topic}-dlq" not in admin.list_topics()
    registry.answer = known  # type: ignore[method-assign]
    pipeline.catch_up()
    assert pipeline.rows("orders", "id") == [(7,)]
    with Admin(bootstrap_servers=pipeline.broker.bootstrap) as admin:
        assert f"{pipeline.topic}-dlq" not in admin.list_topics()
