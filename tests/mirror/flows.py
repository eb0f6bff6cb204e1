"""Flows between two clusters in tests, and what is on both sides of them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import NamedTuple

from ottla.client.admin.admin import Admin
from ottla.client.consuming.consumer import Consumer
from ottla.client.errors import KafkaError
from ottla.client.producing.producer import Producer
from ottla.client.records import ConsumerRecord
from ottla.client.wire.connections import DATA
from ottla.client.wire.listed_offset import EARLIEST, LATEST
from ottla.mirror.flow import Flow
from ottla.mirror.properties import FlowSettings, parse_mirrors
from ottla.model import TopicPartition
from ottla.protocol.generated.produce import PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData

#: How long a test waits for what must come; no wait takes nearly so long.
SECONDS_MAX = 120.0


class Clusters(NamedTuple):
    """Where the two clusters of a test listen."""

    source: str
    target: str

    def properties(self, **more: str) -> dict[str, str]:
        """Those of a flow A->B; names have underscores for dots."""
        return {
            "clusters": "A, B",
            "A.bootstrap.servers": self.source,
            "B.bootstrap.servers": self.target,
            "A->B.enabled": "true",
            "replication.factor": "1",
            "offset-syncs.topic.replication.factor": "1",
            "checkpoints.topic.replication.factor": "1",
            **{name.replace("_", "."): value for name, value in more.items()},
        }

    def flow(self, **more: str) -> FlowSettings:
        return parse_mirrors(self.properties(**more)).flows[0]


async def mirror(clusters: Clusters, **more: str) -> Flow:
    """Copies all that is there now."""
    flow = Flow(clusters.flow(**more))
    await flow.run(exit_at_end=True)
    return flow


@asynccontextmanager
async def mirroring(clusters: Clusters, **more: str) -> AsyncIterator[Flow]:
    """A flow that goes on until the block ends."""
    flow = Flow(clusters.flow(**more))
    running = asyncio.ensure_future(flow.run())
    try:
        yield flow
    finally:
        running.cancel()
        (ended,) = await asyncio.gather(running, return_exceptions=True)
        if isinstance(ended, Exception):
            raise ended  # who waits for such a flow waits in vain: this is why


async def until(holds: Callable[[], object], what: str) -> None:
    """Waits for something to come true."""
    async with asyncio.timeout(SECONDS_MAX):
        while not holds():  # noqa: ASYNC110 - what is waited for has no event
            await asyncio.sleep(0.01)
    assert holds(), what


async def create(bootstrap: str, topic: str, partitions: int = 1, **configs: str) -> None:
    async with Admin(bootstrap_servers=bootstrap) as admin:
        await admin.create_topic(
            topic, partitions, 1, {name.replace("_", "."): value for name, value in configs.items()}
        )


async def produce(bootstrap: str, topic: str, values: Sequence[bytes], partition: int = 0, codec: str = "none") -> None:
    """In small batches."""
    async with Producer(bootstrap_servers=bootstrap, compression_type=codec, batch_size=500, linger_ms=0) as producer:
        for number, value in enumerate(values):
            headers = [("n", b"%d" % number)] if number % 3 == 0 else []
            key = None if number % 5 == 0 else b"k%d" % number
            await producer.send(
                topic, value, key, partition=partition, timestamp=1_700_000_000_000 + number, headers=headers
            )


async def append(bootstrap: str, topic: str, batch: bytes, partition: int = 0) -> int:
    """Writes a batch as it is; returns its offset."""
    async with Admin(bootstrap_servers=bootstrap) as admin:
        await admin.cluster.topic(topic)
        connection = await admin.cluster.connections.to(admin.cluster.metadata.leader(topic, partition).leader, DATA)
        request = ProduceRequest(
            acks=-1,
            timeout_ms=30_000,
            topic_data=[
                TopicProduceData(name=topic, partition_data=[PartitionProduceData(index=partition, records=batch)])
            ],
        )
        answer = await connection.ask(request, ProduceResponse, timeout_ms=30_000, at_most=9)
        told = answer.responses[0].partition_responses[0]
        assert not told.error_code, told.error_message
        return told.base_offset


async def records_of(bootstrap: str, topic: str, partition: int = 0) -> list[ConsumerRecord]:
    tp = TopicPartition(topic, partition)
    found: list[ConsumerRecord] = []
    async with Consumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest") as consumer:
        end = (await consumer.end_offsets([tp]))[tp]
        consumer.assign([tp])
        while await consumer.position(tp) < end:
            found += await consumer.poll(timeout_ms=5_000)
    return found


def contents(records: Sequence[ConsumerRecord]) -> list[tuple[object, ...]]:
    """What a copy keeps: times, keys, values and headers, in their order."""
    return [(one.timestamp, one.key, one.value, one.headers) for one in records]


async def limits(bootstrap: str, topic: str, partition: int = 0) -> tuple[int, int]:
    tp = TopicPartition(topic, partition)
    async with Admin(bootstrap_servers=bootstrap) as admin:
        first, last = [(await admin.list_offsets({tp: code}))[tp].offset for code in (EARLIEST, LATEST)]
    return first, last


async def is_there(bootstrap: str, topic: str) -> bool:
    async with Admin(bootstrap_servers=bootstrap) as admin:
        try:
            return topic in await admin.describe_topics([topic])
        except KafkaError:
            return False
