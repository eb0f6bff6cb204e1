"""Requests as the tests of Produce and Fetch send them."""

from __future__ import annotations

from typing import Any

from tests.server.conftest import Peer

from ottla.protocol.generated.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic, ForgottenTopic
from ottla.protocol.generated.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from ottla.protocol.generated.produce import PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData
from ottla.records.record import Record, decode_batch, encode_batch


def batch(*values: bytes, timestamp: int = 1_700_000_000_000, **options: Any) -> bytes:
    records = [
        Record(offset=n, timestamp=timestamp, key=None, value=value, headers=()) for n, value in enumerate(values)
    ]
    return encode_batch(records, **options)


def produce_request(records: bytes | None, topic: str = "t", partition: int = 0, acks: int = -1) -> ProduceRequest:
    data = PartitionProduceData(index=partition, records=records)
    return ProduceRequest(
        acks=acks, timeout_ms=60_000, topic_data=[TopicProduceData(name=topic, partition_data=[data])]
    )


def produce(peer: Peer, records: bytes | None, version: int = 8, **options: Any) -> Any:
    """The only partition's answer."""
    response = peer.ask(produce_request(records, **options), version, ProduceResponse)
    return response.responses[0].partition_responses[0]


def fetch_request(offset: int = 0, topic: str = "t", partition: int = 0, **options: Any) -> FetchRequest:
    settings: dict[str, Any] = {"max_wait_ms": 0, "min_bytes": 1, "max_bytes": 1 << 20, **options}
    partition_max_bytes = settings.pop("partition_max_bytes", 1 << 20)
    current_leader_epoch = settings.pop("current_leader_epoch", -1)
    asked = FetchPartition(
        partition=partition,
        fetch_offset=offset,
        partition_max_bytes=partition_max_bytes,
        current_leader_epoch=current_leader_epoch,
    )
    return FetchRequest(topics=[FetchTopic(topic=topic, partitions=[asked])], **settings)


def fetch(peer: Peer, offset: int = 0, version: int = 11, **options: Any) -> Any:
    """The only partition's answer."""
    return peer.ask(fetch_request(offset, **options), version, FetchResponse).responses[0].partitions[0]


def values(answer: Any) -> list[bytes | None]:
    """The values of all whole batches in a fetch's answer."""
    data, found, at = bytes(answer.records or b""), [], 0
    while at + 12 <= len(data):
        size = 12 + int.from_bytes(data[at + 8 : at + 12], "big")
        if at + size > len(data):
            break
        found += [record.value for record in decode_batch(data, at)]
        at += size
    return found


def list_offset(
    peer: Peer, timestamp: int, topic: str = "t", partition: int = 0, version: int = 7, isolation_level: int = 0
) -> Any:
    asked = ListOffsetsPartition(partition_index=partition, timestamp=timestamp)
    topics = [ListOffsetsTopic(name=topic, partitions=[asked])]
    request = ListOffsetsRequest(replica_id=-1, isolation_level=isolation_level, topics=topics)
    return peer.ask(request, version, ListOffsetsResponse).topics[0].partitions[0]


__all__ = [
    "ForgottenTopic",
    "batch",
    "fetch",
    "fetch_request",
    "list_offset",
    "produce",
    "produce_request",
    "values",
]
