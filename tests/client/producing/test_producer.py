"""The producer against a broker that is well."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.client.conftest import make_topic
from tests.client.reading import read_all, values_of

from ottla.client.admin.admin import Admin
from ottla.client.admin.results import ConfigChange, ConfigResource, NewTopic
from ottla.client.consuming.consumer import Consumer
from ottla.client.errors import ClientClosed, KafkaError, SerializationFailed, UnknownTopicOrPartition
from ottla.client.producing.batches import Delivery
from ottla.client.producing.partitioners import murmur2_partitioner
from ottla.client.producing.producer import Producer
from ottla.client.records import ProducerRecord
from ottla.client.sync import Producer as SyncProducer
from ottla.model import TopicPartition


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
async def test_what_is_sent_is_read(bootstrap: str, topic: str, codec: str) -> None:
    headers = (("trace", b"\x00\x01"), ("empty", b""), ("null", None))
    sent: list[dict[str, Any]] = [
        {"value": b"plain"},
        {"value": b"keyed", "key": b"k"},
        {"value": None, "key": b"tombstone"},
        {"value": b"", "key": b""},
        {"value": b"with headers", "headers": headers, "timestamp": 1_700_000_000_123},
        {"value": bytes(range(256)) * 300},
    ]
    async with Producer(bootstrap_servers=bootstrap, compression_type=codec) as producer:
        deliveries = [await producer.send(topic, **one) for one in sent]
        places = [await delivery for delivery in deliveries]
    assert [place.offset for place in places] == list(range(len(sent)))
    assert places[4].timestamp == 1_700_000_000_123
    records = await read_all(bootstrap, topic)
    assert [(one.key, one.value, one.headers) for one in records] == [
        (one.get("key"), one["value"], one.get("headers", ())) for one in sent
    ]
    assert [one.timestamp for one in records] == [place.timestamp for place in places]


async def test_keys_keep_to_their_partition(bootstrap: str, wide_topic: str) -> None:
    async with Producer(bootstrap_servers=bootstrap) as producer:
        for n in range(40):
            await producer.send(wide_topic, b"%d" % n, key=b"key-%d" % (n % 7))
    for record in await read_all(bootstrap, wide_topic):
        assert record.partition == murmur2_partitioner(wide_topic, record.key, 4)


async def test_the_seeds_keys_go_to_the_partition_of_their_number(bootstrap: str, wide_topic: str) -> None:
    """Keys 0 to 3, five messages each, four partitions: each key's number is its partition's."""
    async with Producer(bootstrap_servers=bootstrap, partitioner="integer_key", key_serializer="str") as producer:
        for i in range(1, 6):
            for j in range(4):
                await producer.send(wide_topic, b"The %d message for key %d" % (i, j), key=str(j))
    records = await read_all(bootstrap, wide_topic)
    assert len(records) == 20
    assert all(record.partition == int(record.key) for record in records)


async def test_records_without_a_key_fill_batches_and_spread(bootstrap: str, wide_topic: str) -> None:
    async with Producer(bootstrap_servers=bootstrap, batch_size=1000) as producer:
        for _ in range(400):
            await producer.send(wide_topic, b"x" * 50)
    counts = [0, 0, 0, 0]
    for record in await read_all(bootstrap, wide_topic):
        counts[record.partition] += 1
    assert sum(counts) == 400
    assert min(counts) > 0


@pytest.mark.parametrize("ignores_keys", [False, True])  # as in Kafka, that is the default partitioner's alone
async def test_a_partitioner_of_ones_own(bootstrap: str, wide_topic: str, ignores_keys: bool) -> None:
    async with Producer(
        bootstrap_servers=bootstrap,
        partitioner=lambda topic, key, count: count - 1,
        partitioner_ignore_keys=ignores_keys,
    ) as producer:
        for _ in range(2):  # of more than a batch: without their keys they would go to two partitions
            assert (await producer.send_and_wait(wide_topic, bytes(20_000), key=b"k")).partition == 3
        assert (await producer.send_and_wait(wide_topic, b"x", partition=1)).partition == 1
    async with Producer(bootstrap_servers=bootstrap, partitioner=lambda topic, key, count: count) as producer:
        with pytest.raises(KafkaError, match="chose partition 4: the last one is 3"):
            await producer.send(wide_topic, b"x")


async def test_serializers_by_name_and_a_whole_record(bootstrap: str, topic: str) -> None:
    async with Producer(bootstrap_servers=bootstrap, key_serializer="int64", value_serializer="json") as producer:
        await producer.send_record(ProducerRecord(topic=topic, key=5, value={"a": 1}, headers=(("h", b"1"),)))
        with pytest.raises(SerializationFailed, match="the key cannot be serialized"):
            await producer.send(topic, {}, key="five")
    (record,) = await read_all(bootstrap, topic, key_deserializer="int64", value_deserializer="json")
    assert (record.key, record.value, record.headers) == (5, {"a": 1}, (("h", b"1"),))


async def test_text_needs_a_serializer(bootstrap: str, topic: str) -> None:
    async with Producer(bootstrap_servers=bootstrap) as producer:
        with pytest.raises(SerializationFailed, match="name a value_serializer"):
            await producer.send(topic, "text")


@pytest.mark.parametrize("acks", ["all", 1, 0])
async def test_acks(bootstrap: str, topic: str, acks: Any) -> None:
    async with Producer(bootstrap_servers=bootstrap, acks=acks) as producer:
        place = await producer.send_and_wait(topic, b"x")
        assert place.offset == (-1 if acks == 0 else 0)
    async with Consumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest") as consumer:
        consumer.assign([TopicPartition(topic, 0)])
        assert [record.value for record in await consumer.poll()] == [b"x"]


async def test_more_than_a_socket_takes_without_acknowledgement(bootstrap: str, new_name: str) -> None:
    """Four requests of 6 MB at once: no answer says when the next may be written, only the socket does."""
    await make_topic(bootstrap, new_name, partitions=4, max_message_bytes="10000000")
    megabytes = 1024 * 1024
    async with Producer(
        bootstrap_servers=bootstrap,
        acks=0,
        linger_ms=60_000,
        batch_size=8 * megabytes,
        max_request_size=10 * megabytes,
        buffer_memory=64 * megabytes,
    ) as producer:
        for n in range(240):
            await producer.send(new_name, bytes(25_000 * 4), partition=n % 4)
        await producer.flush()
    async with Consumer(bootstrap_servers=bootstrap) as consumer:
        partitions = await consumer.partitions_for(new_name)
        while sum((await consumer.end_offsets(partitions)).values()) < 240:
            pass


async def test_call_backs_and_what_a_delivery_knows(bootstrap: str, topic: str) -> None:
    told: list[Delivery] = []
    async with Producer(bootstrap_servers=bootstrap, linger_ms=10_000) as producer:
        delivery = await producer.send(topic, b"x", on_delivery=told.append)
        assert not delivery.done()
        with pytest.raises(asyncio.InvalidStateError):
            delivery.result()
        await producer.flush()  # does not wait for linger
        assert delivery.done()
        assert delivery.result().offset == 0
        assert delivery.exception() is None
        assert told == [delivery]
        delivery.add_done_callback(told.append)
        assert told == [delivery, delivery]
        assert await delivery == await delivery


async def test_a_call_back_that_raises_harms_nobody(bootstrap: str, topic: str) -> None:
    reported: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: reported.append(context))

    def broken(_: Delivery) -> None:
        raise RuntimeError("mine")

    async with Producer(bootstrap_servers=bootstrap) as producer:
        await (await producer.send(topic, b"x", on_delivery=broken))
        await producer.send_and_wait(topic, b"y")
    assert "call-back" in reported[0]["message"]


async def test_the_brokers_time_where_the_topic_says_so(bootstrap: str, topic: str) -> None:
    async with Admin(bootstrap_servers=bootstrap) as admin:
        change = ConfigChange("message.timestamp.type", "LogAppendTime")
        await admin.incremental_alter_configs({ConfigResource.topic(topic): [change]})
    async with Producer(bootstrap_servers=bootstrap) as producer:
        place = await producer.send_and_wait(topic, b"x", timestamp=5)
    (record,) = await read_all(bootstrap, topic)
    assert record.timestamp == place.timestamp > 5
    assert record.timestamp_type == 1


async def test_a_topic_is_created_by_writing_to_it(bootstrap: str, new_name: str) -> None:
    async with Producer(bootstrap_servers=bootstrap) as producer:
        await producer.send_and_wait(new_name, b"x")
    assert await values_of(bootstrap, new_name) == [b"x"]


async def test_a_partition_that_comes_later(bootstrap: str, topic: str) -> None:
    async with Producer(bootstrap_servers=bootstrap) as producer, Admin(bootstrap_servers=bootstrap) as admin:
        with pytest.raises(UnknownTopicOrPartition, match=r"has no partition 2: it has 1, numbered from 0$"):
            await producer.send(topic, b"x", partition=2)
        await admin.create_partitions({topic: 3})
        assert (await producer.send_and_wait(topic, b"x", partition=2)).partition == 2


async def test_a_topic_that_is_made_again_with_fewer_partitions(bootstrap: str, wide_topic: str) -> None:
    async with Producer(bootstrap_servers=bootstrap) as producer, Admin(bootstrap_servers=bootstrap) as admin:
        await producer.send_and_wait(wide_topic, b"x", partition=2)
        await admin.delete_topics([wide_topic])
        await admin.create_topics([NewTopic(wide_topic, 1)])
        await producer.cluster.updated()
        assert len(producer.cluster.metadata.topics[wide_topic].partitions) == 1
        with pytest.raises(UnknownTopicOrPartition, match=r"has no partition 2: it has 1, numbered from 0$"):
            await producer.send(wide_topic, b"x", partition=2)


async def test_many_tasks_share_a_producer(bootstrap: str, wide_topic: str) -> None:
    async with Producer(bootstrap_servers=bootstrap, buffer_memory=20_000, batch_size=500) as producer:

        async def task(number: int) -> None:
            for n in range(50):
                await producer.send(wide_topic, b"%d" % n, key=b"task-%d" % number)

        await asyncio.gather(*(task(number) for number in range(8)))
    by_key: dict[bytes, list[int]] = {}
    for record in await read_all(bootstrap, wide_topic):
        by_key.setdefault(record.key, []).append(int(record.value))
    assert by_key == {b"task-%d" % number: list(range(50)) for number in range(8)}


async def test_a_flush_behind_the_close_says_that_it_is_closed(bootstrap: str, topic: str) -> None:
    """In both kinds of producers, transactional or not, though closing itself waits for what was sent."""
    async with Producer(bootstrap_servers=bootstrap, linger_ms=60_000, delivery_timeout_ms=120_000) as producer:
        delivery = await producer.send(topic, b"one")
    assert (await delivery).offset == 0
    transactional = Producer(bootstrap_servers=bootstrap, transactional_id=topic)
    await transactional.init_transactions()
    await transactional.begin()
    await transactional.send(topic, b"aborted")
    await transactional.close()
    for closed in (producer, transactional):
        with pytest.raises(ClientClosed, match="is closed"):
            await closed.flush()
    in_threads = SyncProducer(bootstrap_servers=bootstrap)
    in_threads.close()
    with pytest.raises(ClientClosed, match="is closed"):
        in_threads.flush()
