"""`Consumer.arrow()`: what a broker holds, as Arrow, is what `poll` gives; positions, faults and mixing the two."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka import Producer as Librdkafka
from tests.client.consuming.test_consumer import IMPATIENT, fill, flip, numbers
from tests.client.proxy import Action, Pass, Proxy, Request
from tests.client.reading import read_all

from ottla.arrow import COLUMNS, schema_of
from ottla.client import sync
from ottla.client.consuming.consumer import Consumer
from ottla.client.errors import BadArgument, ClientClosed, CorruptRecords, NotAssigned
from ottla.model import TopicPartition
from ottla.protocol.apis import ApiKey

#: Longer than a test may take: reading ends when all rows are there, and not when a broker is slow.
PATIENCE_MS = 600_000


def written_by_librdkafka(bootstrap: str, topic: str, codec: str, count: int) -> None:
    producer = Librdkafka({"bootstrap.servers": bootstrap, "compression.codec": codec, "linger.ms": 5})
    for n in range(count):
        producer.produce(
            topic,
            value=None if n % 7 == 0 else b"%d" % n + b"." * (n % 90),
            key=None if n % 3 == 0 else b"key-%d" % n,
            headers=[("n", b"%d" % n), ("none", None)] if n % 5 == 0 else None,
            timestamp=1_000_000 + n,
        )
    assert producer.flush(30) == 0


def rows(batches: list[Any]) -> list[dict[str, Any]]:
    return pa.Table.from_batches(batches).to_pylist() if batches else []


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
async def test_what_another_client_wrote(bootstrap: str, wide_topic: str, codec: str) -> None:
    written_by_librdkafka(bootstrap, wide_topic, codec, 300)
    expected = await read_all(bootstrap, wide_topic)
    batches = []
    async with Consumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest") as consumer:
        consumer.assign(await consumer.partitions_for(wide_topic))
        async for batch in consumer.arrow(columns=COLUMNS, timeout_ms=PATIENCE_MS):
            batch.validate(full=True)
            assert batch.schema == schema_of(COLUMNS)
            batches.append(batch)
            if sum(one.num_rows for one in batches) >= 300:
                break
        # There is no more, and it ends by itself.
        batches += [batch async for batch in consumer.arrow(columns=COLUMNS, timeout_ms=100)]
    found = rows([batch.set_column(5, "timestamp", batch["timestamp"].cast("int64")) for batch in batches])
    assert sorted(found, key=lambda row: (row["partition"], row["offset"])) == [
        {
            "key": one.key,
            "value": one.value,
            "topic": wide_topic,
            "partition": one.partition,
            "offset": one.offset,
            "timestamp": one.timestamp * 1000,
            "timestampType": one.timestamp_type,
            "headers": [{"key": name, "value": value} for name, value in one.headers],
        }
        for one in sorted(expected, key=lambda one: (one.partition, one.offset))
    ]
    assert len(found) == 300


async def values(consumer: Consumer, count: int, **options: Any) -> list[int]:
    found: list[int] = []
    while len(found) < count:
        batch = await consumer.poll_arrow(columns=["value"], **options)
        found += [int(value.rstrip(b".")) for value in batch.column(0).to_pylist()]
    return found


async def test_the_position_lies_behind_what_was_given_out(bootstrap: str, topic: str) -> None:
    await fill(bootstrap, topic, 40)
    tp = TopicPartition(topic, 0)
    async with Consumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest") as consumer:
        consumer.assign([tp])
        batch = await consumer.poll_arrow(max_rows=3)
        assert batch.column("offset").to_pylist() == [0, 1, 2]
        assert await consumer.position(tp) == 3
        consumer.seek(tp, 17)
        assert await values(consumer, 23, max_rows=4) == list(range(17, 40))
        assert await consumer.poll_arrow(timeout_ms=1) is None


async def test_a_group_goes_on_where_it_has_come_to(bootstrap: str, topic: str, new_name: str) -> None:
    await fill(bootstrap, topic, 40)
    settings = {"bootstrap_servers": bootstrap, "auto_offset_reset": "earliest", "group_id": new_name}
    async with Consumer(settings, enable_auto_commit=False) as consumer:
        consumer.subscribe([topic])
        batch = await consumer.poll_arrow(max_rows=5)
        await consumer.commit()
    read = batch.num_rows
    async with Consumer(settings) as consumer:
        consumer.subscribe([topic])
        assert await values(consumer, 40 - read) == list(range(read, 40))


async def test_records_and_rows_by_turns(bootstrap: str, topic: str) -> None:
    """Whatever lies ready for one way of reading, the other loses nothing and repeats nothing."""
    await fill(bootstrap, topic, 40)
    async with Consumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest") as consumer:
        consumer.assign([TopicPartition(topic, 0)])
        found = numbers(await consumer.poll(max_records=2))
        found += await values(consumer, 1, max_rows=2)
        found += numbers(await consumer.poll(max_records=2))
        async for record in consumer:
            found += numbers([record])
            break
        found += await values(consumer, 40 - len(found), max_rows=5)
        assert found == list(range(40))


async def test_partitions_come_in_turns(bootstrap: str, wide_topic: str) -> None:
    for partition in range(4):
        await fill(bootstrap, wide_topic, 40, partition=partition)
    async with Consumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest") as consumer:
        consumer.assign(await consumer.partitions_for(wide_topic))
        seen: list[int] = []
        async for batch in consumer.arrow(columns=["partition"], max_rows=1, timeout_ms=PATIENCE_MS):
            seen += batch.column(0).to_pylist()
            if len(seen) == 4 * 40:
                break
        assert await consumer.poll_arrow(timeout_ms=1) is None
        assert sorted(seen) == sorted([*range(4)] * 40)
        assert len(set(seen[-8:])) > 1


async def test_what_is_paused_is_not_given_out(bootstrap: str, topic: str) -> None:
    await fill(bootstrap, topic, 10)
    tp = TopicPartition(topic, 0)
    async with Consumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest") as consumer:
        consumer.assign([tp])
        assert await values(consumer, 1, max_rows=1) == [0]
        consumer.pause(tp)
        assert await consumer.poll_arrow(timeout_ms=1) is None
        consumer.resume(tp)
        assert await values(consumer, 9) == list(range(1, 10))


async def test_damage_comes_after_what_is_before_it_and_can_be_passed(bootstrap: str, topic: str) -> None:
    await fill(bootstrap, topic, 40)

    def rule(request: Request) -> Action:
        return Pass(lambda answer: flip(answer, 1000)) if request.key == ApiKey.FETCH else Pass()

    async with Proxy(bootstrap) as proxy:
        proxy.rule = rule
        async with Consumer(bootstrap_servers=proxy.bootstrap, auto_offset_reset="earliest", **IMPATIENT) as consumer:
            tp = TopicPartition(topic, 0)
            consumer.assign([tp])
            first = await values(consumer, 1)
            for _ in range(2):
                with pytest.raises(CorruptRecords, match=f"offset {len(first)}"):
                    await consumer.poll_arrow()
            proxy.rule = lambda _: Pass()
            consumer.seek(tp, 35)
            assert await values(consumer, 5) == list(range(35, 40))


async def test_what_is_asked_for_wrongly(bootstrap: str, topic: str) -> None:
    async with Consumer(bootstrap_servers=bootstrap) as consumer:
        with pytest.raises(NotAssigned):
            await consumer.poll_arrow()
        consumer.assign([TopicPartition(topic, 0)])
        with pytest.raises(BadArgument, match="values"):
            await consumer.poll_arrow(columns=["values"])
        with pytest.raises(BadArgument, match="max_rows"):
            await consumer.poll_arrow(max_rows=0)
    with pytest.raises(ClientClosed):
        await consumer.poll_arrow()
    async with Consumer(bootstrap_servers=bootstrap, value_deserializer="str") as consumer:
        consumer.assign([TopicPartition(topic, 0)])
        with pytest.raises(BadArgument, match="deserializers"):
            await consumer.poll_arrow()


def test_the_same_without_await(bootstrap: str, topic: str) -> None:
    written_by_librdkafka(bootstrap, topic, "lz4", 50)
    with sync.Consumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest") as consumer:
        consumer.assign(consumer.partitions_for(topic))
        found: list[int] = []
        for batch in consumer.arrow(columns=["offset"], max_rows=7, timeout_ms=PATIENCE_MS):
            found += batch.column(0).to_pylist()
            if len(found) >= 50:
                break
        assert list(consumer.arrow(timeout_ms=100)) == []
    assert found == list(range(50))
