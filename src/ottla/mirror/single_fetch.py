"""One record of a partition, with its batch: to look at the end of a copy, and at where that comes from."""

from __future__ import annotations

from typing import Final, NamedTuple

from ottla.client.errors import NotLeaderOrFollower, error_of
from ottla.client.wire.cluster import Cluster
from ottla.model import ErrorCode, TopicPartition
from ottla.protocol.generated.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from ottla.records.batch import BatchHeader, Readable, iterate
from ottla.records.legacy import is_legacy
from ottla.records.old_batches import as_batches
from ottla.records.record import Record, decode_batch

#: A broker gives the first batch whole, whatever its size; the rest is not wanted.
_BYTES: Final = 1
#: Topics are named by their ids from the next version on.
_BY_NAME_MAX: Final = 12
_AT_LEAST: Final = 4


class FoundRecord(NamedTuple):
    batch: BatchHeader
    record: Record


async def record_at(cluster: Cluster, tp: TopicPartition, offset: int) -> FoundRecord | None:
    """The first record at or behind an offset; None where the log has none there (any more). Raises KafkaError."""

    async def attempt() -> FetchResponse:
        leader = cluster.metadata.leader(*tp)
        if leader is None:
            await cluster.topic(tp.topic)
            leader = cluster.metadata.leader(*tp)
            if leader is None:
                raise NotLeaderOrFollower(f"{tp} has no leader now")
        request = FetchRequest(
            max_wait_ms=0,
            min_bytes=0,
            max_bytes=_BYTES,
            topics=[
                FetchTopic(
                    topic=tp.topic,
                    partitions=[
                        FetchPartition(partition=tp.partition, fetch_offset=offset, partition_max_bytes=_BYTES)
                    ],
                )
            ],
        )
        answer = await cluster.ask(leader.leader, request, FetchResponse, at_most=_BY_NAME_MAX, at_least=_AT_LEAST)
        code = answer.error_code or answer.responses[0].partitions[0].error_code
        if code and code != ErrorCode.OFFSET_OUT_OF_RANGE:
            raise error_of(code, about=str(tp))
        return answer

    cluster.want([tp.topic])
    answer = await cluster.retrying(attempt)
    buf: Readable = answer.responses[0].partitions[0].records or b""
    if is_legacy(buf, 0):
        buf = as_batches(buf, check_crcs=True)
    for pos, header in iterate(buf, 0, len(buf)):
        for record in decode_batch(buf, pos):
            if record.offset >= offset:
                return FoundRecord(header, record)
    return None
