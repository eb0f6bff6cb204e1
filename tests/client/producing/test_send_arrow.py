"""`Producer.send_arrow()`: rows become the records that they say, behind what was sent before, through every fault."""

from __future__ import annotations

import asyncio
from typing import Any

import polars as pl
import pyarrow as pa
import pytest
from tests.client.conftest import make_topic
from tests.client.proxy import Action, Cut, Pass, Proxy, Request
from tests.client.reading import read_all

from ottla.arrow.schema import HEADERS_TYPE
from ottla.client import sync
from ottla.client.admin.admin import Admin
from ottla.client.consuming.consumer import Consumer
from ottla.client.errors import BadArgument, InvalidTopic, RecordTooLarge, UnknownTopicOrPartition
from ottla.client.producing.producer import Producer
from ottla.protocol.apis import ApiKey
from ottla.records.keyhash import partition_of_key

ROWS = 500


def table(count: int = ROWS, **more: Any) -> pa.Table:
    return pa.table({"value": [b"%d" % n + b"." * 40 for n in range(count)], **more})


def numbers(records: list[Any]) -> list[int]:
    return [int(one.value.rstrip(b".")) for one in records]


@pytest.mark.parametrize("settings", [{}, {"compression_type": "zstd"}, {"acks": 1}, {"enable_idempotence": False}])
async def test_rows_in_their_order(bootstrap: str, topic: str, settings: dict[str, Any]) -> None:
    async with Producer(bootstrap_servers=bootstrap, batch_size=2000, **settings) as producer:
        await producer.send(topic, b"-1")
        written = await producer.send_arrow(table(), topic)
        await producer.send_and_wait(topic, b"%d" % ROWS)
    assert numbers(await read_all(bootstrap, topic)) == list(range(-1, ROWS + 1))
    assert [(one.topic, one.partition) for one in written] == [(topic, 0)] * len(written)
    assert [one.offset for one in written] == [1 + sum(one.rows for one in written[:n]) for n in range(len(written))]
    assert sum(one.rows for one in written) == ROWS


async def test_every_column(bootstrap: str, wide_topic: str) -> None:
    rows = pa.table(
        {
            "key": [b"alice", None, b"bob"],
            "value": [b"1", None, b"3"],
            "partition": pa.array([None, 2, 3], pa.int32()),
            "timestamp": pa.array([5, None, 7], pa.timestamp("ms")),
            "headers": pa.array([[{"key": "h", "value": None}], None, []], HEADERS_TYPE),
        }
    )
    async with Producer(bootstrap_servers=bootstrap) as producer:
        await producer.send_arrow(rows, wide_topic)
    found = {one.partition: one for one in await read_all(bootstrap, wide_topic)}
    first = found[partition_of_key(b"alice", 4)]
    assert (first.key, first.value, first.timestamp, first.headers) == (b"alice", b"1", 5, (("h", None),))
    assert (found[2].key, found[2].value) == (None, None)
    assert (found[3].key, found[3].timestamp) == (b"bob", 7)


async def test_rows_without_a_key_are_spread(bootstrap: str, wide_topic: str) -> None:
    async with Producer(bootstrap_servers=bootstrap, batch_size=1000) as producer:
        await producer.send_arrow(table(), wide_topic)
    records = await read_all(bootstrap, wide_topic)
    assert sorted(numbers(records)) == list(range(ROWS))
    assert {one.partition for one in records} == {0, 1, 2, 3}


async def test_a_column_says_the_topic(bootstrap: str, topic: str) -> None:
    other = topic + "-other"
    await make_topic(bootstrap, other)
    names = [topic if n % 3 else other for n in range(ROWS)]
    async with Producer(bootstrap_servers=bootstrap) as producer:
        await producer.send_arrow(table(topic=names))
    assert numbers(await read_all(bootstrap, topic)) == [n for n in range(ROWS) if n % 3]
    assert numbers(await read_all(bootstrap, other)) == list(range(0, ROWS, 3))


async def test_what_was_read_can_be_written(bootstrap: str, topic: str) -> None:
    copy = topic + "-copy"
    await make_topic(bootstrap, copy)
    async with Producer(bootstrap_servers=bootstrap) as producer:
        await producer.send_arrow(table(), topic)
        async with Consumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest") as consumer:
            consumer.assign(await consumer.partitions_for(topic))
            read = 0
            while read < ROWS:
                batch = await consumer.poll_arrow()
                read += batch.num_rows
                await producer.send_arrow(batch, copy)
    first, second = [await read_all(bootstrap, name) for name in (topic, copy)]
    assert [one[2:8] for one in first] == [one[2:8] for one in second]


async def test_a_lost_connection_repeats_no_row(bootstrap: str, topic: str) -> None:
    async with Proxy(bootstrap) as proxy:
        lost = 0

        def rule(request: Request) -> Action:
            nonlocal lost
            if request.key == ApiKey.PRODUCE and lost < 3:
                lost += 1
                return Cut(forwarded=lost != 2)
            return Pass()

        proxy.rule = rule
        async with Producer(
            bootstrap_servers=proxy.bootstrap, batch_size=2000, retry_backoff_ms=2, reconnect_backoff_ms=1
        ) as producer:
            await producer.send_arrow(table(), topic)
    assert lost == 3
    assert numbers(await read_all(bootstrap, topic)) == list(range(ROWS))


async def test_more_rows_than_memory(bootstrap: str, topic: str) -> None:
    async with Producer(bootstrap_servers=bootstrap, buffer_memory=4000, batch_size=16_384) as producer:
        await producer.send_arrow(table(), topic)
    assert numbers(await read_all(bootstrap, topic)) == list(range(ROWS))


async def test_a_batch_too_large_for_the_broker_is_split(bootstrap: str, new_name: str) -> None:
    await make_topic(bootstrap, new_name, max_message_bytes="1000")
    async with Producer(bootstrap_servers=bootstrap, batch_size=8000) as producer:
        written = await producer.send_arrow(table(), new_name)
        assert sum(one.rows for one in written) == ROWS
        with pytest.raises(RecordTooLarge):
            await producer.send_arrow(pa.table({"value": [b"x" * 2000]}), new_name)
    assert numbers(await read_all(bootstrap, new_name)) == list(range(ROWS))


async def test_rows_that_cannot_be_sent(bootstrap: str, topic: str) -> None:
    async with Producer(bootstrap_servers=bootstrap, max_request_size=1000) as producer:
        large = pa.table({"value": [b"x", b"y" * 2000]})
        with pytest.raises(RecordTooLarge, match=r"row 1: a record of 20.. bytes is over max.request.size, 1000"):
            await producer.send_arrow(large, topic)
        with pytest.raises(RecordTooLarge, match="row 1:"):
            await producer.send_arrow(large.append_column("topic", pa.array([topic, topic + "-other"])))
        with pytest.raises(BadArgument, match="row 0: there is no partition 1: the topic has 1"):
            await producer.send_arrow(pa.table({"value": [b"x"], "partition": [1]}), topic)
        with pytest.raises(BadArgument, match="no column 'value'"):
            await producer.send_arrow(pa.table({"key": [b"x"]}), topic)
        with pytest.raises(BadArgument, match="there is no topic"):
            await producer.send_arrow(table())
        with pytest.raises(BadArgument, match="row 1: it has no topic"):
            await producer.send_arrow(table(2, topic=[topic, None]))
        with pytest.raises((InvalidTopic, UnknownTopicOrPartition)):
            await producer.send_arrow(table(), "no such topic")
    for settings in ({"key_serializer": "str"}, {"partitioner": "round_robin"}):
        async with Producer(bootstrap_servers=bootstrap, **settings) as producer:
            with pytest.raises(BadArgument, match=r"serializers|partitioner"):
                await producer.send_arrow(table(), topic)


async def test_partitions_that_have_come_since_are_looked_for(bootstrap: str, topic: str) -> None:
    """As `send` does: what a producer knows of a topic may be minutes old."""
    async with Producer(bootstrap_servers=bootstrap) as producer, Admin(bootstrap_servers=bootstrap) as admin:
        await producer.send_arrow(table(1), topic)
        await admin.create_partitions({topic: 3})
        (written,) = await producer.send_arrow(table(2, partition=[2, 2]), topic)
        assert (written.partition, written.offset, written.rows) == (2, 0, 2)
        with pytest.raises(BadArgument, match="row 1: there is no partition 3: the topic has 3"):
            await producer.send_arrow(table(2, partition=[0, 3]), topic)


async def test_no_rows(bootstrap: str, topic: str) -> None:
    async with Producer(bootstrap_servers=bootstrap) as producer:
        assert await producer.send_arrow(pa.table({"value": pa.array([], pa.binary())}), topic) == []


def test_the_same_without_await(bootstrap: str, topic: str) -> None:
    with sync.Producer(bootstrap_servers=bootstrap) as producer:
        producer.send(topic, b"0")
        producer.send_arrow(pl.DataFrame({"value": ["1", "2"]}), topic)
    assert numbers(asyncio.run(read_all(bootstrap, topic))) == [0, 1, 2]
