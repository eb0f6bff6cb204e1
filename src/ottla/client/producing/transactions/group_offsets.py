"""A group's positions as part of a transaction: seen by the group when it commits, and never where it aborts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ottla.client.admin.group_results import CommittedOffset
from ottla.client.arguments import (
    INT32_MAX,
    a_kind_of,
    checked_committable,
    checked_integer,
    checked_partitions,
    checked_text,
)
from ottla.client.consuming.group.membership import NO_MEMBER, GroupMetadata
from ottla.client.consuming.group.wire import NO_GENERATION
from ottla.client.errors import BadArgument
from ottla.client.producing.transactions.calls import CoordinatorCalls, code_of_all
from ottla.client.producing.transactions.core import EPOCH_A_TRANSACTION, TransactionIdentity
from ottla.client.wire.coordinator import Coordinator
from ottla.client.wire.leaders import by_topic
from ottla.model import TopicPartition
from ottla.protocol.generated.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
)

#: An offset to commit: a number, or (offset, metadata, leader epoch), of which only the first must be there.
Committable = int | tuple[int] | tuple[int, str] | tuple[int, str, int]

#: Members of groups are fenced since; the group need not be added to the transaction before since.
_WITH_MEMBER: Final = 3
_ADDS_GROUP: Final = 5


def checked_offsets(given: object) -> dict[TopicPartition, CommittedOffset]:
    if not isinstance(given, Mapping):
        raise BadArgument(f"offsets must be a mapping of partitions to offsets, not {a_kind_of(given)}")
    partitions = checked_partitions(given)
    return {
        tp: CommittedOffset(*checked_committable(tp, one)) for tp, one in zip(partitions, given.values(), strict=True)
    }


def checked_group(given: object) -> GroupMetadata:
    """What `group_metadata()` gives, or a group's id alone: then no member of it is fenced."""
    if isinstance(given, GroupMetadata):
        return GroupMetadata(
            checked_text(given.group_id, "group: its id"),
            checked_integer(given.generation, "group: its generation", INT32_MAX, least=NO_GENERATION),
            checked_text(given.member_id, "group: its member's id"),
            None if given.instance_id is None else checked_text(given.instance_id, "group: its member's instance id"),
        )
    if not isinstance(given, str):
        raise BadArgument(f"group must be what group_metadata() gives, or a group's id, not {a_kind_of(given)}")
    return GroupMetadata(checked_text(given, "group"), NO_GENERATION, NO_MEMBER, None)


async def commit_offsets(
    calls: CoordinatorCalls,
    coordinator: Coordinator,
    identity: TransactionIdentity,
    offsets: Mapping[TopicPartition, CommittedOffset],
    group: GroupMetadata,
    timeout_ms: int,
) -> None:
    """Asks the group's coordinator to keep them until the transaction ends."""

    def partition(topic: str, number: int) -> TxnOffsetCommitRequestPartition:
        wanted = offsets[TopicPartition(topic, number)]
        return TxnOffsetCommitRequestPartition(
            partition_index=number,
            committed_offset=wanted.offset,
            committed_leader_epoch=wanted.leader_epoch,
            committed_metadata=wanted.metadata,
        )

    request = TxnOffsetCommitRequest(
        transactional_id=identity.transactional_id,
        group_id=group.group_id,
        producer_id=identity.producer_id,
        producer_epoch=identity.epoch,
        generation_id=group.generation,
        member_id=group.member_id,
        group_instance_id=group.instance_id,
        topics=[
            TxnOffsetCommitRequestTopic(name=topic, partitions=[partition(topic, one) for one in numbers])
            for topic, numbers in by_topic(offsets).items()
        ],
    )
    newer = identity.version >= EPOCH_A_TRANSACTION
    names_member = group.generation != NO_GENERATION or group.member_id or group.instance_id is not None
    await calls.ask(
        coordinator,
        request,
        TxnOffsetCommitResponse,
        lambda answer: code_of_all(
            offsets,
            ((topic.name, one.partition_index, one.error_code) for topic in answer.topics for one in topic.partitions),
        ),
        about=f"offsets of {group.group_id}",
        timeout_ms=timeout_ms,
        at_least=_ADDS_GROUP if newer else _WITH_MEMBER if names_member else 0,
        at_most=None if newer else _ADDS_GROUP - 1,
    )
