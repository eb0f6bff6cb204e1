"""Request frames for the load generator, and the constants with which the null server answers.

The load generator copies bytes and knows no protocol, so it is given where things stand in them. Positions are found by
encoding a message twice with one field changed: the first byte that differs.
"""

from __future__ import annotations

import os
import struct
import time
from dataclasses import dataclass

from ottla.protocol.generated.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopicResult,
)
from ottla.protocol.generated.api_versions import ApiVersion, ApiVersionsResponse
from ottla.protocol.generated.end_txn import EndTxnResponse
from ottla.protocol.generated.fetch import (
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)
from ottla.protocol.generated.find_coordinator import FindCoordinatorResponse
from ottla.protocol.generated.init_producer_id import InitProducerIdResponse
from ottla.protocol.generated.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from ottla.protocol.generated.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from ottla.protocol.header import RequestHeader, encode_request, encode_response
from ottla.protocol.message import Message
from ottla.records.record import Record, encode_batch

PRODUCE, FETCH, METADATA, API_VERSIONS, INIT_PRODUCER_ID = 0, 1, 3, 18, 22
FIND_COORDINATOR, ADD_PARTITIONS, END_TXN = 10, 24, 26
#: The oldest flexible versions: what a client of today speaks at least, and the last that name their topics.
PRODUCE_VERSION, FETCH_VERSION = 9, 12
METADATA_VERSION = 9

VALUE_SIZE = 100
TOPIC = "bench"


@dataclass(frozen=True, kw_only=True)
class Frame:
    """A request, and where its answer has the error code of its only partition."""

    request: bytes
    error_position: int
    #: Bytes of record batches that one request brings.
    payload: int = 0
    #: Where a fetch has its offset; -1 in other requests.
    offset_position: int = -1


def batch(records: int, value_size: int = VALUE_SIZE) -> bytes:
    """Uncompressed records of random bytes, all of now."""
    now = int(time.time() * 1000)
    value = os.urandom(value_size)
    return encode_batch([Record(offset=n, timestamp=now, key=None, value=value, headers=()) for n in range(records)])


def batch_of_size(size: int) -> tuple[bytes, int]:
    """The largest batch of 100-byte records within ``size``; and how many records it holds."""
    one = len(batch(2)) - len(batch(1))
    records = max(1, size // one)
    while records > 1 and len(batch(records)) > size:
        records -= max(1, (len(batch(records)) - size) // (2 * one))
    while len(batch(records + 1)) <= size:
        records += 1
    return batch(records), records


def produce(
    data: bytes, *, topic: str = TOPIC, partitions: range = range(1), acks: int = 1, version: int = PRODUCE_VERSION
) -> Frame:
    """A Produce request with the same batch for each of ``partitions``."""
    parts = [PartitionProduceData(index=number, records=data) for number in partitions]
    message = ProduceRequest(
        acks=acks, timeout_ms=30_000, topic_data=[TopicProduceData(name=topic, partition_data=parts)]
    )
    good, bad = (produce_answer(topic, error, version) for error in (0, 1))
    return Frame(
        request=_request(PRODUCE, version, message),
        error_position=first_difference(good, bad) - 1,  # the low byte of a 16-bit code is the one that differs
        payload=len(data) * len(parts),
    )


def fetch(size: int, *, topic: str = TOPIC, version: int = FETCH_VERSION) -> Frame:
    """A Fetch request, outside any session, for ``size`` bytes of one partition."""

    def asking(offset: int) -> bytes:
        part = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=size)
        message = FetchRequest(
            max_wait_ms=500, min_bytes=1, max_bytes=50 << 20, topics=[FetchTopic(topic=topic, partitions=[part])]
        )
        return _request(FETCH, version, message)

    good, bad = (_fetch_answer(topic, error, b"", version) for error in (0, 1))
    return Frame(
        request=asking(0),
        error_position=first_difference(good, bad) - 1,
        payload=size,
        offset_position=first_difference(asking(0), asking(1)) - 7,
    )


def null_answers(port: int, fetch_bytes: int) -> bytes:
    """The null server's file: enough for librdkafka and its transactions, and for the load generator; a fetch brings
    ``fetch_bytes``."""
    served = {PRODUCE: (3, PRODUCE_VERSION), METADATA: (0, METADATA_VERSION), API_VERSIONS: (0, 3)}
    served |= {INIT_PRODUCER_ID: (0, 1), FIND_COORDINATOR: (0, 2), ADD_PARTITIONS: (0, 0), END_TXN: (0, 1)}
    versions = [ApiVersion(api_key=key, min_version=low, max_version=high) for key, (low, high) in served.items()]
    entries = [
        (API_VERSIONS, 3, ApiVersionsResponse(api_keys=versions)),
        (API_VERSIONS, 0, ApiVersionsResponse(api_keys=versions)),
        (METADATA, METADATA_VERSION, _metadata(port)),
        (METADATA, 1, _metadata(port)),
        (INIT_PRODUCER_ID, 1, InitProducerIdResponse(producer_id=1, producer_epoch=0)),
        (FIND_COORDINATOR, 2, FindCoordinatorResponse(node_id=1, host="127.0.0.1", port=port)),
        (ADD_PARTITIONS, 0, _added()),
        (END_TXN, 1, EndTxnResponse()),
    ]
    found = [entry(key, version, encode_response(key, version, 0, message)) for key, version, message in entries]
    found.append(entry(PRODUCE, PRODUCE_VERSION, produce_answer(TOPIC, 0, PRODUCE_VERSION)))
    records = os.urandom(fetch_bytes)
    found.append(entry(FETCH, FETCH_VERSION, _fetch_answer(TOPIC, 0, records, FETCH_VERSION)))
    return b"".join(found)


def metadata_question(version: int) -> bytes:
    """A request for the brokers, and no topic."""
    return _request(METADATA, version, MetadataRequest(topics=[]))


def _request(key: int, version: int, message: Message) -> bytes:
    return encode_request(RequestHeader(api_key=key, api_version=version, correlation_id=7, client_id="bench"), message)


def produce_answer(topic: str, error: int, version: int) -> bytes:
    part = PartitionProduceResponse(index=0, error_code=error, base_offset=0, log_start_offset=0)
    message = ProduceResponse(responses=[TopicProduceResponse(name=topic, partition_responses=[part])])
    return encode_response(PRODUCE, version, 0, message)


def _fetch_answer(topic: str, error: int, records: bytes, version: int) -> bytes:
    part = PartitionData(partition_index=0, error_code=error, records=records, aborted_transactions=None)
    message = FetchResponse(responses=[FetchableTopicResponse(topic=topic, partitions=[part])])
    return encode_response(FETCH, version, 0, message)


def _metadata(port: int) -> MetadataResponse:
    part = MetadataResponsePartition(
        partition_index=0, leader_id=1, leader_epoch=0, replica_nodes=[1], isr_nodes=[1], offline_replicas=[]
    )
    return MetadataResponse(
        brokers=[MetadataResponseBroker(node_id=1, host="127.0.0.1", port=port)],
        cluster_id="null",
        controller_id=1,
        topics=[MetadataResponseTopic(name=TOPIC, partitions=[part])],
    )


def _added() -> AddPartitionsToTxnResponse:
    part = AddPartitionsToTxnPartitionResult(partition_index=0)
    topic = AddPartitionsToTxnTopicResult(name=TOPIC, results_by_partition=[part])
    return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=[topic])


def entry(key: int, version: int, frame: bytes) -> bytes:
    return struct.pack(">HHI", key, version, len(frame)) + frame


def first_difference(one: bytes, other: bytes) -> int:
    assert len(one) == len(other)
    return next(at for at, (left, right) in enumerate(zip(one, other, strict=True)) if left != right)
