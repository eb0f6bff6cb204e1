"""What a coordinator of transactions is asked before something is written: for an identity, to add partitions, to add a
group's offsets."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from ottla.client.producing.sequences import ProducerIdentity
from ottla.client.producing.transactions.calls import CoordinatorCalls, code_of_all
from ottla.client.producing.transactions.core import CLASSIC, EPOCH_A_TRANSACTION, TransactionIdentity
from ottla.client.producing.transactions.finishing import END_WITH_EPOCH
from ottla.client.settings import ProducerSettings
from ottla.client.wire.connection import BrokerConnection
from ottla.client.wire.coordinator import Coordinator
from ottla.client.wire.leaders import by_topic
from ottla.model import TopicPartition
from ottla.protocol.apis import ApiKey
from ottla.protocol.generated.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from ottla.protocol.generated.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
)
from ottla.protocol.generated.init_producer_id import InitProducerIdRequest, InitProducerIdResponse

#: The feature whose level says which generation of the protocol is spoken.
_FEATURE: Final = "transaction.version"
#: The versions behind it are for two-phase commit.
_INIT_MAX: Final = 5
#: A producer may say since what it had, to go on.
_INIT_WITH_EPOCH: Final = 3
#: The versions behind it are for brokers.
_ADD_MAX: Final = 3
#: So many partitions are named where their being added fails.
_NAMED_MAX: Final = 3


def version_of(connection: BrokerConnection) -> int:
    """The generation of the protocol that its cluster speaks."""
    newer = connection.features.get(_FEATURE, 0) >= EPOCH_A_TRANSACTION
    return EPOCH_A_TRANSACTION if newer and connection.serves(ApiKey.END_TXN, END_WITH_EPOCH) else CLASSIC


async def ask_identity(
    calls: CoordinatorCalls, coordinator: Coordinator, settings: ProducerSettings, expected: ProducerIdentity | None
) -> tuple[ProducerIdentity, int]:
    """An identity that was not used, and the generation of the protocol.

    `expected` is what this producer had: a producer that has begun since is not fenced by one that only goes on.
    """
    request = InitProducerIdRequest(
        transactional_id=settings.transactional_id, transaction_timeout_ms=settings.transaction_timeout_ms
    )
    if expected is not None:
        request.producer_id, request.producer_epoch = expected
    version = CLASSIC

    def take(connection: BrokerConnection) -> None:
        nonlocal version
        version = version_of(connection)

    answer = await calls.ask(
        coordinator,
        request,
        InitProducerIdResponse,
        lambda answer: answer.error_code,
        about=f"the identity of {settings.transactional_id}",
        timeout_ms=settings.max_block_ms,
        at_least=0 if expected is None else _INIT_WITH_EPOCH,
        at_most=_INIT_MAX,
        on_connection=take,
    )
    return ProducerIdentity(answer.producer_id, answer.producer_epoch), version


async def add_partitions(
    calls: CoordinatorCalls,
    coordinator: Coordinator,
    identity: TransactionIdentity,
    partitions: Collection[TopicPartition],
    timeout_ms: int,
) -> None:
    named = sorted(partitions)
    request = AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=identity.transactional_id,
        v3_and_below_producer_id=identity.producer_id,
        v3_and_below_producer_epoch=identity.epoch,
        v3_and_below_topics=[
            AddPartitionsToTxnTopic(name=topic, partitions=numbers) for topic, numbers in by_topic(named).items()
        ],
    )
    await calls.ask(
        coordinator,
        request,
        AddPartitionsToTxnResponse,
        lambda answer: code_of_all(
            named,
            (
                (topic.name, one.partition_index, one.partition_error_code)
                for topic in answer.results_by_topic_v3_and_below
                for one in topic.results_by_partition
            ),
        ),
        about=f"{identity.transactional_id} with {', '.join(map(str, named[:_NAMED_MAX]))}",
        timeout_ms=timeout_ms,
        at_most=_ADD_MAX,
    )


async def add_offsets(
    calls: CoordinatorCalls, coordinator: Coordinator, identity: TransactionIdentity, group_id: str, timeout_ms: int
) -> None:
    request = AddOffsetsToTxnRequest(
        transactional_id=identity.transactional_id,
        producer_id=identity.producer_id,
        producer_epoch=identity.epoch,
        group_id=group_id,
    )
    await calls.ask(
        coordinator,
        request,
        AddOffsetsToTxnResponse,
        lambda answer: answer.error_code,
        about=f"offsets of {group_id}",
        timeout_ms=timeout_ms,
    )
