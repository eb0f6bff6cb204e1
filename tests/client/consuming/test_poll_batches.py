"""Batches as they were fetched: whole, undecoded, and in turn with records of the same partition."""

from __future__ import annotations

from ottla.client.admin.admin import Admin
from ottla.client.consuming.consumer import Consumer
from ottla.client.producing.producer import Producer
from ottla.model import TopicPartition
from ottla.records.batch import iterate
from ottla.records.record import decode_batch


async def test_batches_and_records_by_turns(bootstrap: str) -> None:
    tp = TopicPartition("batches-by-turns", 0)
    async with Admin(bootstrap_servers=bootstrap) as admin:
        await admin.create_topic(tp.topic, 1, 1)
    async with Producer(bootstrap_servers=bootstrap, batch_size=300, linger_ms=0) as producer:
        for number in range(60):
            await producer.send(tp.topic, b"%d" % number, partition=0)
    async with Consumer(bootstrap_servers=bootstrap, max_partition_fetch_bytes=500) as consumer:
        consumer.assign([tp])
        consumer.seek(tp, 0)
        values: list[bytes | None] = [record.value for record in await consumer.poll(max_records=3)]
        while len(values) < 60:
            fetched = await consumer.poll_batches()
            assert fetched is not None
            assert (fetched.partition, fetched.position) == (tp, len(values))
            for pos, _ in iterate(fetched.records, fetched.begin, fetched.end):
                # The first may begin before the place that was asked for.
                found = decode_batch(fetched.records, pos)
                values += [record.value for record in found if record.offset >= fetched.position]
            assert fetched.next_position == len(values) == await consumer.position(tp)
        assert await consumer.poll_batches(timeout_ms=1) is None
    assert values == [b"%d" % number for number in range(60)]
