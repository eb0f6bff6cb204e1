"""A batch on its way to the leader of a partition, as a producer's request that has nothing else in it."""

from __future__ import annotations

import asyncio
from typing import Final

from ottla.client.errors import NotLeaderOrFollower
from ottla.client.wire.cluster import Cluster
from ottla.client.wire.connection import BrokerConnection
from ottla.client.wire.connections import DATA
from ottla.model import ZERO_TOPIC_ID, TopicPartition
from ottla.protocol.apis import ApiKey
from ottla.protocol.generated.produce import PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData

#: Produce names topics by their ids from this version on.
_BY_ID: Final = 13
#: With zstd, and the versions before it would refuse such batches.
_AT_LEAST: Final = 7
_ALL_ISR: Final = -1


async def sendable_connection(cluster: Cluster, tp: TopicPartition) -> BrokerConnection:
    """To the leader, with room for a request. Raises KafkaError."""
    leader = cluster.metadata.leader(*tp)
    if leader is None:
        raise NotLeaderOrFollower(f"{tp} has no leader now")
    connection = cluster.connections.open(leader.leader, DATA)
    if connection is None:
        connection = await cluster.connections.to(leader.leader, DATA)
    if not connection.sendable:
        await connection.room(cluster.settings.request_timeout_ms)
    return connection


def send(
    cluster: Cluster, connection: BrokerConnection, tp: TopicPartition, topic_id: bytes, batch: bytes | bytearray
) -> asyncio.Future[ProduceResponse]:
    version = connection.version(ApiKey.PRODUCE, at_least=_AT_LEAST)
    if topic_id == ZERO_TOPIC_ID:
        version = min(version, _BY_ID - 1)
    topic = TopicProduceData(topic_id=topic_id) if version >= _BY_ID else TopicProduceData(name=tp.topic)
    topic.partition_data = [PartitionProduceData(index=tp.partition, records=memoryview(batch))]
    timeout_ms = cluster.settings.request_timeout_ms
    request = ProduceRequest(acks=_ALL_ISR, timeout_ms=timeout_ms, topic_data=[topic])
    return connection.send(request, ProduceResponse, version, timeout_ms)
