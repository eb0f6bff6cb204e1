"""The sink against Apache Kafka: rows of every kind, the ledger of finished micro-batches, a size that is refused."""

from __future__ import annotations

import asyncio

import pyarrow as pa
import pytest
from tests.client.reading import read_all
from tests.interop.broker import Broker
from tests.spark.sink.conftest import frame

from ottla.arrow.schema import HEADERS_TYPE
from ottla.client.sync import Admin
from ottla.spark.sink import batch_writer
from ottla.spark.sink.clients import kept_clients
from ottla.spark.sink.errors import RowsNotWritten
from ottla.spark.sink.ledger import Ledger

pytestmark = [pytest.mark.java, pytest.mark.xdist_group("kafka-tools")]

TOPIC = "rows-of-the-sink"
ROWS = pa.record_batch(
    {
        "value": ["1", None, "3"],
        "key": ["a", None, None],
        "partition": pa.array([0, None, 1], pa.int32()),
        "headers": pa.array([[{"key": "h", "value": None}, {"key": "h", "value": b"\xff"}], None, []], HEADERS_TYPE),
    }
)


def test_kafka_is_written_like_ottla(apache_kafka: Broker) -> None:
    settings = {"bootstrap.servers": apache_kafka.bootstrap}
    with Admin(settings) as admin:
        admin.create_topic(TOPIC, 2, 1)
    given = {f"kafka.{name}": value for name, value in settings.items()} | {"topic": TOPIC}
    schema = frame("value string, key string, partition int, headers headers")
    many = pa.record_batch({"value": [f"{number}" for number in range(5000)]})
    batch_writer(schema, False, given).write(iter([ROWS]))
    batch_writer(frame("value string"), False, {**given, "kafka.batch.size": "3000"}).write(iter([many]))
    found = asyncio.run(read_all(apache_kafka.bootstrap, TOPIC))
    assert sorted(int(one.value or b"-1") for one in found) == sorted([-1, 1, 3, *range(5000)])
    kinds = {(one.partition, one.key, one.value, one.headers) for one in found}
    assert (0, b"a", b"1", (("h", None), ("h", b"\xff"))) in kinds
    assert (1, None, b"3", ()) in kinds


def test_the_ledger_lies_in_kafka(apache_kafka: Broker) -> None:
    settings = {"bootstrap.servers": apache_kafka.bootstrap}

    async def told(batches: int) -> tuple[str, int] | None:
        ledger = Ledger(settings, "on-kafka")
        for batch in range(batches):
            await ledger.finish("id", batch, 7)
        entry = await ledger.entry()
        await ledger.close()
        return None if entry is None else (entry.query_id, entry.finished)

    assert asyncio.run(told(0)) is None
    assert asyncio.run(told(3)) == ("id", 2)
    assert asyncio.run(told(0)) == ("id", 2), "another process"


def test_what_kafka_refuses_is_said_with_its_option(apache_kafka: Broker) -> None:
    given = {"kafka.bootstrap.servers": apache_kafka.bootstrap, "topic": f"{TOPIC}-small"}
    with Admin({"bootstrap.servers": apache_kafka.bootstrap}) as admin:
        admin.create_topic(f"{TOPIC}-small", 1, 1, {"max.message.bytes": "1000"})
    large = pa.record_batch({"value": ["x" * 5000]})
    with pytest.raises(RowsNotWritten, match=r"max\.message\.bytes"):
        batch_writer(frame("value string"), False, given).write(iter([large]))
    assert not kept_clients()._producers
