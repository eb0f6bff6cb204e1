"""Admin's view of transactions: what coordinators know of them, and ends for those that nobody else would end."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Sequence

from ottla.client.admin.logs import describe_producers
from ottla.client.admin.transaction_results import OpenTransaction, TransactionDescription, TransactionListing
from ottla.client.errors import KafkaError, error_of
from ottla.client.producing.sequences import ProducerIdentity
from ottla.client.wire.cluster import Cluster
from ottla.client.wire.coordinators import TRANSACTION, ask_coordinators
from ottla.client.wire.leaders import ask_leaders, by_topic
from ottla.model import ErrorCode, TopicPartition
from ottla.protocol.generated import describe_transactions as describing
from ottla.protocol.generated import list_transactions as listing
from ottla.protocol.generated import write_txn_markers as marking
from ottla.protocol.generated.init_producer_id import InitProducerIdRequest, InitProducerIdResponse

#: ListTransactions filters by duration since; by a pattern of the id since.
_DURATION_SINCE = 1
_PATTERN_SINCE = 2
#: An administrator who fences opens no transaction: what Kafka's own admin client gives.
_FENCING_TIMEOUT_MS = 1


async def list_transactions(
    cluster: Cluster,
    *,
    states: Sequence[str],
    producer_ids: Sequence[int],
    duration_ms: int | None,
    pattern: str | None,
) -> list[TransactionListing]:
    request = listing.ListTransactionsRequest(
        state_filters=list(states),
        producer_id_filters=list(producer_ids),
        duration_filter=-1 if duration_ms is None else duration_ms,
        transactional_id_pattern=pattern,
    )
    at_least = _PATTERN_SINCE if pattern is not None else _DURATION_SINCE if duration_ms is not None else 0

    async def ask(broker: int) -> list[TransactionListing]:
        answer = await cluster.ask(broker, request, listing.ListTransactionsResponse, at_least=at_least)
        if answer.error_code:
            raise error_of(answer.error_code, about=f"broker {broker}")
        return [
            TransactionListing(
                transactional_id=one.transactional_id,
                producer_id=one.producer_id,
                state=one.transaction_state,
                coordinator=broker,
            )
            for one in answer.transaction_states
        ]

    async def attempt() -> list[TransactionListing]:
        # Anew each time: a broker that has gone is not asked again, its transactions are with others now.
        await cluster.updated()
        listed = await asyncio.gather(*(ask(broker) for broker in sorted(cluster.metadata.nodes)))
        return list({one.transactional_id: one for part in listed for one in part}.values())

    return sorted(await cluster.retrying(attempt), key=lambda one: one.transactional_id)


async def describe_transactions(
    cluster: Cluster, transactional_ids: Iterable[str]
) -> dict[str, TransactionDescription]:
    async def ask(
        node: int, ids: Sequence[str], results: dict[str, TransactionDescription], errors: dict[str, KafkaError]
    ) -> None:
        request = describing.DescribeTransactionsRequest(transactional_ids=list(ids))
        answer = await cluster.ask(node, request, describing.DescribeTransactionsResponse)
        for one in answer.transaction_states:
            if one.error_code:
                errors[one.transactional_id] = error_of(one.error_code, about=one.transactional_id)
                continue
            results[one.transactional_id] = TransactionDescription(
                transactional_id=one.transactional_id,
                coordinator=cluster.metadata.nodes.get(node),
                state=one.transaction_state,
                producer_id=one.producer_id,
                producer_epoch=one.producer_epoch,
                timeout_ms=one.transaction_timeout_ms,
                start_time_ms=one.transaction_start_time_ms if one.transaction_start_time_ms >= 0 else None,
                partitions=frozenset(
                    TopicPartition(topic.topic, number) for topic in one.topics for number in topic.partitions
                ),
            )

    return await ask_coordinators(cluster, transactional_ids, ask, key_type=TRANSACTION)


async def fence_producers(cluster: Cluster, transactional_ids: Iterable[str]) -> dict[str, ProducerIdentity]:
    """As a producer begins that then does nothing: the ids' producers are fenced, what is open is aborted."""

    async def ask(
        node: int, ids: Sequence[str], results: dict[str, ProducerIdentity], errors: dict[str, KafkaError]
    ) -> None:
        for one in ids:
            request = InitProducerIdRequest(transactional_id=one, transaction_timeout_ms=_FENCING_TIMEOUT_MS)
            answer = await cluster.ask(node, request, InitProducerIdResponse)
            if answer.error_code:
                errors[one] = error_of(answer.error_code, about=one)
            else:
                results[one] = ProducerIdentity(answer.producer_id, answer.producer_epoch)

    return await ask_coordinators(cluster, transactional_ids, ask, key_type=TRANSACTION)


async def abort_transaction(
    cluster: Cluster, partition: TopicPartition, producer: ProducerIdentity, coordinator_epoch: int
) -> None:
    """Has the leader write the marker that the coordinator has not: for a transaction that hangs in this partition."""

    async def ask(
        leader: int,
        group: Sequence[TopicPartition],
        results: dict[TopicPartition, None],
        errors: dict[TopicPartition, KafkaError],
    ) -> None:
        marker = marking.WritableTxnMarker(
            producer_id=producer.producer_id,
            producer_epoch=producer.epoch,
            transaction_result=False,
            coordinator_epoch=coordinator_epoch,
            topics=[
                marking.WritableTxnMarkerTopic(name=topic, partition_indexes=numbers)
                for topic, numbers in by_topic(group).items()
            ],
        )
        request = marking.WriteTxnMarkersRequest(markers=[marker])
        answer = await cluster.ask(leader, request, marking.WriteTxnMarkersResponse)
        for one in answer.markers:
            for topic in one.topics:
                for answered in topic.partitions:
                    tp = TopicPartition(topic.name, answered.partition_index)
                    if answered.error_code:
                        errors[tp] = error_of(answered.error_code, about=str(tp))
                    else:
                        results[tp] = None

    await ask_leaders(cluster, [partition], ask)


async def open_transactions(cluster: Cluster, partitions: Sequence[TopicPartition]) -> list[OpenTransaction]:
    """Those that these partitions' leaders know of."""
    described = await describe_producers(cluster, partitions)
    return [
        OpenTransaction(
            partition=tp,
            producer_id=one.producer_id,
            producer_epoch=one.producer_epoch,
            coordinator_epoch=one.coordinator_epoch,
            start_offset=one.transaction_start_offset,
            last_timestamp=one.last_timestamp,
        )
        for tp, producers in described.items()
        for one in producers
        if one.transaction_start_offset is not None
    ]


async def find_hanging(
    cluster: Cluster, partitions: Sequence[TopicPartition], older_than_ms: int
) -> list[OpenTransaction]:
    """Transactions that are open in these partitions and that no coordinator will end.

    Of a transaction that its coordinator does not know of, or does not know this partition of, no marker will come.
    Only those are looked at whose last batch is older than any transaction may become.
    """
    oldest = cluster.world.clock.wall_ms() - older_than_ms
    candidates = [one for one in await open_transactions(cluster, partitions) if one.last_timestamp < oldest]
    if not candidates:
        return []
    known = await _partitions_by_producer(cluster, {one.producer_id for one in candidates})
    return [one for one in candidates if one.partition not in known.get(one.producer_id, ())]


async def _partitions_by_producer(
    cluster: Cluster, producer_ids: Collection[int]
) -> dict[int, frozenset[TopicPartition]]:
    """The partitions that coordinators will still end these producers' transactions in."""
    listed = await list_transactions(
        cluster, states=[], producer_ids=sorted(producer_ids), duration_ms=None, pattern=None
    )
    found: dict[int, frozenset[TopicPartition]] = {}
    for one in listed:
        try:
            described = await describe_transactions(cluster, [one.transactional_id])
        except KafkaError as error:
            if error.code is not ErrorCode.TRANSACTIONAL_ID_NOT_FOUND:
                raise
            continue  # it has expired since it was listed
        found[one.producer_id] = described[one.transactional_id].partitions
    return found
