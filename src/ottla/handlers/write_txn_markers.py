"""WriteTxnMarkers (27), versions 1 and 2: a transaction coordinator has transactions ended in partitions led here.

Other brokers ask for it, and administrators who end a transaction that hangs (`kafka-transactions abort`): these need
the right to Alter the cluster. The answer comes when all markers are committed, or cannot be. From version 2 on the
markers of producers that have an epoch for each transaction are known, and checked more strictly.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from itertools import chain
from typing import Final

from ottla.coordinators.journal import EndMarker
from ottla.handlers.calls.call import Call, Services
from ottla.handlers.calls.later import GatheredAnswers, Later
from ottla.model import NO_PRODUCER_ID, ErrorCode, TopicPartition
from ottla.protocol.generated.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from ottla.security.authorizer import Operation
from ottla.steps import PIECE, Steps, pieces

#: What a batch without a producer has for its epoch.
NO_EPOCH: Final = -1
#: Partitions that get their markers in one round: each takes some twenty microseconds.
_PARTITIONS_A_ROUND: Final = 16


def handle(call: Call, request: WriteTxnMarkersRequest) -> Steps[WriteTxnMarkersResponse | Later]:
    if not (call.allowed_on_cluster(Operation.ALTER) or call.allowed_on_cluster(Operation.CLUSTER_ACTION)):
        return (yield from _refused(request, ErrorCode.CLUSTER_AUTHORIZATION_FAILED))
    answer = Later()
    yield from _write(call.services, request, answer.set)
    return answer


async def write_markers(services: Services, request: WriteTxnMarkersRequest) -> WriteTxnMarkersResponse:
    """For this broker's own coordinator, which nobody has to allow that. Answers when all markers are committed."""
    answered: asyncio.Future[Steps[WriteTxnMarkersResponse]] = asyncio.get_running_loop().create_future()

    def answer(response: Steps[WriteTxnMarkersResponse]) -> None:
        if not answered.done():
            answered.set_result(response)

    await services.turns.to_end(_write(services, request, answer))
    return await services.turns.to_end(await answered)


def _write(
    services: Services, request: WriteTxnMarkersRequest, answer: Callable[[Steps[WriteTxnMarkersResponse]], None]
) -> Steps[None]:
    """`answer` is called with the response once it is known."""
    asked: list[tuple[EndMarker, list[TopicPartition]]] = []
    for marker in request.markers:
        for piece in _partitions(marker):
            if piece:
                asked.append((_end(marker), piece))
            yield
    gathered = GatheredAnswers(len(asked), lambda codes: answer(_response(request, codes)))
    for place, (end, piece) in enumerate(asked):
        if _is_of_a_producer(end):
            services.markers.write(end, piece, gathered.place(place))
        else:
            gathered.place(place)([ErrorCode.UNKNOWN_SERVER_ERROR] * len(piece))
        yield


def _is_of_a_producer(end: EndMarker) -> bool:
    """Kafka's builder of markers takes no other, and knows no version of transactions below 0."""
    return end.producer_id != NO_PRODUCER_ID and end.producer_epoch != NO_EPOCH and end.transaction_version >= 0


def _end(marker: WritableTxnMarker) -> EndMarker:
    return EndMarker(
        producer_id=marker.producer_id,
        producer_epoch=marker.producer_epoch,
        coordinator_epoch=marker.coordinator_epoch,
        is_commit=marker.transaction_result,
        transaction_version=marker.transaction_version,
    )


def _partitions(marker: WritableTxnMarker) -> Iterator[list[TopicPartition]]:
    """In pieces for a round each. Some are empty: there may be any number of topics without partitions."""
    found: list[TopicPartition] = []
    for place, topic in enumerate(marker.topics, 1):
        for index in topic.partition_indexes:
            found.append(TopicPartition(topic.name, index))
            if len(found) == _PARTITIONS_A_ROUND:
                yield found
                found = []
        if place % PIECE == 0:
            yield []
    yield found


def _response(request: WriteTxnMarkersRequest, codes: list[list[ErrorCode]]) -> Steps[WriteTxnMarkersResponse]:
    every = chain.from_iterable(codes)
    return _answered(request, lambda: next(every))


def _refused(request: WriteTxnMarkersRequest, error: ErrorCode) -> Steps[WriteTxnMarkersResponse]:
    return _answered(request, lambda: error)


def _answered(request: WriteTxnMarkersRequest, code: Callable[[], ErrorCode]) -> Steps[WriteTxnMarkersResponse]:
    """`code` is called for one partition after the other."""
    response = WriteTxnMarkersResponse()
    for marker in request.markers:
        topics: list[WritableTxnMarkerTopicResult] = []
        for place, topic in enumerate(marker.topics):
            if place % PIECE == 0:
                yield  # also where they name no partition
            partitions: list[WritableTxnMarkerPartitionResult] = []
            for piece in pieces(topic.partition_indexes):
                partitions += [
                    WritableTxnMarkerPartitionResult(partition_index=index, error_code=code()) for index in piece
                ]
                yield
            topics.append(WritableTxnMarkerTopicResult(name=topic.name, partitions=partitions))
        response.markers.append(WritableTxnMarkerResult(producer_id=marker.producer_id, topics=topics))
        yield
    return response
