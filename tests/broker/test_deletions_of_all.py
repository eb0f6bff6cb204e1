"""A deletion stays in a compacted log until every replica has it: one that was away must not show the key again."""

from __future__ import annotations

import asyncio

import pytest
from tests.broker.simulated_cluster import SimulatedCluster, until

from ottla.model import ErrorCode, TopicPartition
from ottla.protocol.generated.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from ottla.records.batch import iterate
from ottla.records.record import Record, decode_batch, encode_batch
from ottla.storage.log.log import Log

TABLE = TopicPartition("table", 0)
CLEANING = {
    "log.cleaner.enable": "true",
    "log.cleaner.backoff.ms": "100",
    "controlled.shutdown.enable": "false",
    "replica.lag.time.max.ms": "2000",
}
CONFIGS = {
    "cleanup.policy": "compact",
    "segment.bytes": "1000",
    "min.cleanable.dirty.ratio": "0.01",
    "delete.retention.ms": "500",
    "min.insync.replicas": "1",
}


async def write(cluster: SimulatedCluster, broker: int, key: bytes, value: bytes | None) -> None:
    batch = encode_batch([Record(0, cluster.brokers[broker].ports.clock.wall_ms(), key, value)])
    data = [TopicProduceData(name="table", partition_data=[PartitionProduceData(index=0, records=batch)])]
    answer = await cluster.client(broker).ask(ProduceRequest(acks=-1, timeout_ms=5_000, topic_data=data), 9)
    assert answer.responses[0].partition_responses[0].error_code == ErrorCode.NONE


async def fill(cluster: SimulatedCluster, broker: int, name: bytes) -> None:
    """Some segments of other keys."""
    for number in range(40):
        await write(cluster, broker, b"%s%d" % (name, number % 3), b"." * 60)


def log_of(cluster: SimulatedCluster, broker: int) -> Log:
    replicas = cluster.broker(broker).services.replicas
    role = replicas.leaders.get(TABLE) or replicas.followers[TABLE]
    log: Log = role.log
    return log


def records_of(cluster: SimulatedCluster, broker: int, key: bytes) -> list[bytes | None]:
    found: list[bytes | None] = []
    for segment in log_of(cluster, broker).places.segments:
        data = bytes(cluster.brokers[broker].ports.disk.content(segment.path())[: segment.size])
        for at, _ in iterate(data, 0, len(data)):
            found += [record.value for record in decode_batch(data, at) if record.key == key]
    return found


@pytest.mark.parametrize("source", [1, 2], ids=["of its leader", "of one that was a follower"])
def test_a_replica_that_was_away_does_not_show_a_deleted_key(source: int) -> None:
    """It reads what it lacks out of a log that was cleaned meanwhile."""

    async def scenario(cluster: SimulatedCluster) -> None:
        await cluster.start()
        assert await cluster.create(1, "table", {0: (1, 2, 3)}, CONFIGS) is ErrorCode.NONE
        await until(lambda: cluster.leader("table", 0, 1) == 1)
        await write(cluster, 1, b"key", b"value")
        await fill(cluster, 1, b"a")
        await until(lambda: log_of(cluster, 3).end_offset == log_of(cluster, 1).end_offset)
        cluster.brokers[3].kill()
        await until(lambda: cluster.broker(1).metadata.partition("table", 0).isr == (1, 2))
        await write(cluster, 1, b"key", None)
        # Each time some segments are dirty, and the deletion's time is over.
        for name in (b"b", b"c", b"d", b"e"):
            await fill(cluster, 1, name)
            await asyncio.sleep(2.0)
        both = [records_of(cluster, number, b"key") for number in (1, 2)]
        assert both == [[None], [None]]
        if source == 2:
            await cluster.leave(1, "kill")
            await until(lambda: cluster.leader("table", 0, 2) == 2)
        await cluster.brokers[3].started()
        await until(lambda: 3 in cluster.broker(source).metadata.partition("table", 0).isr)
        assert records_of(cluster, 3, b"key")[-1:] in ([], [None])
        if source == 1:
            # All have it: it goes when its time is over.
            for name in (b"f", b"g"):
                await fill(cluster, 1, name)
                await asyncio.sleep(2.0)
            assert [records_of(cluster, number, b"key") for number in (1, 2, 3)] == [[], [], []]

    with SimulatedCluster(3, properties=CLEANING) as cluster:
        cluster.run(scenario(cluster))
