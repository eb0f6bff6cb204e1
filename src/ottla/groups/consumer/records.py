"""The records in which consumer groups are kept: Kafka's types 3 to 8 and 16 of the offsets topic.

A key is its type (int16) and the fields of its schema; a value is its version (int16, 0) and the fields of its schema.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from ottla.coordinators.journal import JournalRecord
from ottla.groups.consumer.member import ClassicProtocol, Member, Owned, Partitions, ResolvedRegex
from ottla.groups.consumer.states import MemberState
from ottla.model import TopicId
from ottla.protocol.errors import DecodeError
from ottla.protocol.fields import INT16
from ottla.protocol.generated.consumer_group_classic_member import ClassicProtocol as StoredProtocol
from ottla.protocol.generated.consumer_group_classic_member import ConsumerGroupClassicMember
from ottla.protocol.generated.consumer_group_current_member_assignment_key import (
    ConsumerGroupCurrentMemberAssignmentKey,
)
from ottla.protocol.generated.consumer_group_current_member_assignment_value import (
    ConsumerGroupCurrentMemberAssignmentValue,
    TopicPartitions,
)
from ottla.protocol.generated.consumer_group_member_metadata_key import ConsumerGroupMemberMetadataKey
from ottla.protocol.generated.consumer_group_member_metadata_value import ConsumerGroupMemberMetadataValue
from ottla.protocol.generated.consumer_group_metadata_key import ConsumerGroupMetadataKey
from ottla.protocol.generated.consumer_group_metadata_value import ConsumerGroupMetadataValue
from ottla.protocol.generated.consumer_group_partition_metadata_key import ConsumerGroupPartitionMetadataKey
from ottla.protocol.generated.consumer_group_regular_expression_key import ConsumerGroupRegularExpressionKey
from ottla.protocol.generated.consumer_group_regular_expression_value import ConsumerGroupRegularExpressionValue
from ottla.protocol.generated.consumer_group_target_assignment_member_key import ConsumerGroupTargetAssignmentMemberKey
from ottla.protocol.generated.consumer_group_target_assignment_member_value import (
    ConsumerGroupTargetAssignmentMemberValue,
    TopicPartition,
)
from ottla.protocol.generated.consumer_group_target_assignment_metadata_key import (
    ConsumerGroupTargetAssignmentMetadataKey,
)
from ottla.protocol.generated.consumer_group_target_assignment_metadata_value import (
    ConsumerGroupTargetAssignmentMetadataValue,
)
from ottla.protocol.message import Message
from ottla.protocol.primitives import Buffer

GROUP_EPOCH: Final = 3
PARTITION_METADATA: Final = 4
MEMBER: Final = 5
TARGET_EPOCH: Final = 6
TARGET: Final = 7
CURRENT: Final = 8
REGEX: Final = 16

KEY_TYPES: Final[dict[int, type[Message]]] = {
    GROUP_EPOCH: ConsumerGroupMetadataKey,
    PARTITION_METADATA: ConsumerGroupPartitionMetadataKey,
    MEMBER: ConsumerGroupMemberMetadataKey,
    TARGET_EPOCH: ConsumerGroupTargetAssignmentMetadataKey,
    TARGET: ConsumerGroupTargetAssignmentMemberKey,
    CURRENT: ConsumerGroupCurrentMemberAssignmentKey,
    REGEX: ConsumerGroupRegularExpressionKey,
}

_VERSION_0: Final = b"\0\0"
#: Of a member's value: whether it speaks the classic protocol.
_CLASSIC_TAG: Final = 0
_NOT_CLASSIC: Final = b"\0"


def _record(record_type: int, key: Message, value: Message | None) -> JournalRecord:
    return JournalRecord(
        INT16.pack(record_type) + key.encode(0), None if value is None else _VERSION_0 + value.encode(0)
    )


def of_value(record_type: int, key: Message, value: bytes | bytearray) -> JournalRecord:
    """With a value that is encoded by now, in version 0."""
    return JournalRecord(INT16.pack(record_type) + key.encode(0), _VERSION_0 + bytes(value))


# The group.


def group_epoch(group_id: str, epoch: int, metadata_hash: int) -> JournalRecord:
    value = ConsumerGroupMetadataValue(epoch=epoch, metadata_hash=metadata_hash)
    return _record(GROUP_EPOCH, ConsumerGroupMetadataKey(group_id=group_id), value)


def group_epoch_tombstone(group_id: str) -> JournalRecord:
    return _record(GROUP_EPOCH, ConsumerGroupMetadataKey(group_id=group_id), None)


def partition_metadata_tombstone(group_id: str) -> JournalRecord:
    """Older coordinators kept the topics themselves where a hash stands now."""
    return _record(PARTITION_METADATA, ConsumerGroupPartitionMetadataKey(group_id=group_id), None)


def target_epoch(group_id: str, epoch: int, timestamp_ms: int) -> JournalRecord:
    value = ConsumerGroupTargetAssignmentMetadataValue(assignment_epoch=epoch, assignment_timestamp=timestamp_ms)
    return _record(TARGET_EPOCH, ConsumerGroupTargetAssignmentMetadataKey(group_id=group_id), value)


def target_epoch_tombstone(group_id: str) -> JournalRecord:
    return _record(TARGET_EPOCH, ConsumerGroupTargetAssignmentMetadataKey(group_id=group_id), None)


def regex(group_id: str, pattern: str, resolved: ResolvedRegex) -> JournalRecord:
    value = ConsumerGroupRegularExpressionValue(
        topics=sorted(resolved.topics), version=resolved.version, timestamp=resolved.timestamp_ms
    )
    key = ConsumerGroupRegularExpressionKey(group_id=group_id, regular_expression=pattern)
    return _record(REGEX, key, value)


def regex_tombstone(group_id: str, pattern: str) -> JournalRecord:
    key = ConsumerGroupRegularExpressionKey(group_id=group_id, regular_expression=pattern)
    return _record(REGEX, key, None)


# A member.


def member(group_id: str, one: Member) -> JournalRecord:
    return _record(
        MEMBER,
        ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=one.id),
        member_value(one, sorted(one.topic_names)),
    )


def member_value(one: Member, names: list[str]) -> ConsumerGroupMemberMetadataValue:
    return ConsumerGroupMemberMetadataValue(
        instance_id=one.instance_id,
        rack_id=one.rack_id,
        client_id=one.client_id,
        client_host=one.client_host,
        subscribed_topic_names=names,
        subscribed_topic_regex=one.topic_regex,
        rebalance_timeout_ms=one.rebalance_timeout_ms,
        server_assignor=one.assignor,
        unknown_tags={_CLASSIC_TAG: _classic_tag(one.classic)},
    )


def target(group_id: str, member_id: str, partitions: Partitions) -> JournalRecord:
    key = ConsumerGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id)
    return _record(TARGET, key, target_value(partitions))


def target_value(partitions: Partitions) -> ConsumerGroupTargetAssignmentMemberValue:
    return ConsumerGroupTargetAssignmentMemberValue(
        topic_partitions=[
            TopicPartition(topic_id=topic, partitions=sorted(partitions[topic])) for topic in sorted(partitions)
        ]
    )


def current(group_id: str, one: Member) -> JournalRecord:
    value = ConsumerGroupCurrentMemberAssignmentValue(
        member_epoch=one.epoch,
        previous_member_epoch=one.previous_epoch,
        state=int(one.state),
        assigned_partitions=stored_owned(one.assigned),
        partitions_pending_revocation=stored_owned(one.pending_revocation),
    )
    return _record(CURRENT, ConsumerGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=one.id), value)


def member_tombstones(group_id: str, member_id: str) -> list[JournalRecord]:
    """In the order in which replay takes a member apart."""
    return [
        _record(CURRENT, ConsumerGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member_id), None),
        _record(TARGET, ConsumerGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id), None),
        _record(MEMBER, ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=member_id), None),
    ]


def group_tombstones(group_id: str, member_ids: Iterable[str], patterns: Iterable[str]) -> list[JournalRecord]:
    """Everything of a group: its members' parts, then its own."""
    by_member = [member_tombstones(group_id, member_id) for member_id in member_ids]
    return [
        *(records[0] for records in by_member),
        *(records[1] for records in by_member),
        target_epoch_tombstone(group_id),
        *(records[2] for records in by_member),
        *(regex_tombstone(group_id, pattern) for pattern in patterns),
        partition_metadata_tombstone(group_id),
        group_epoch_tombstone(group_id),
    ]


def stored_owned(owned: Owned) -> list[TopicPartitions]:
    stored = []
    for topic in sorted(owned):
        partitions = sorted(owned[topic])
        epochs = [owned[topic][partition] for partition in partitions]
        stored.append(TopicPartitions(topic_id=topic, partitions=partitions, assignment_epochs=epochs))
    return stored


def _classic_tag(classic: ClassicProtocol | None) -> bytes:
    if classic is None:
        return _NOT_CLASSIC
    stored = ConsumerGroupClassicMember(
        session_timeout_ms=classic.session_timeout_ms,
        supported_protocols=[StoredProtocol(name=name, metadata=metadata) for name, metadata in classic.protocols],
    )
    return b"\1" + stored.encode(0)


# Reading. Whatever is wrong with the bytes is a DecodeError.


def decoded_key(record_type: int, key: Buffer, position: int) -> Message:
    """The key behind its type; `record_type` is one of KEY_TYPES."""
    found, end = KEY_TYPES[record_type].decode(key, 0, position)
    if end != len(key):
        raise DecodeError(f"{len(key) - end} bytes behind the key of a record of type {record_type}")
    return found


def decoded_value(kind: Callable[[Buffer, int, int], tuple[Message, int]], value: Buffer) -> Message:
    """A value by the `decode` of its type, in the version that it says."""
    if len(value) < INT16.size:
        raise DecodeError("a value without a version")
    (version,) = INT16.unpack_from(value, 0)
    found, _ = kind(value, version, INT16.size)
    return found


def partitions_of(entries: Iterable[TopicPartition]) -> Partitions:
    return {TopicId(bytes(entry.topic_id)): frozenset(entry.partitions) for entry in entries if entry.partitions}


def owned_of(entries: Iterable[TopicPartitions], epoch: int) -> Owned:
    """`epoch` is taken for partitions that an older coordinator stored without one."""
    owned = {}
    for entry in entries:
        epochs = entry.assignment_epochs
        if not epochs or len(epochs) != len(entry.partitions):
            epochs = [epoch] * len(entry.partitions)
        if entry.partitions:
            owned[TopicId(bytes(entry.topic_id))] = dict(zip(entry.partitions, epochs, strict=True))
    return owned


def classic_of(value: ConsumerGroupMemberMetadataValue) -> ClassicProtocol | None:
    tag = value.unknown_tags.get(_CLASSIC_TAG, _NOT_CLASSIC)
    if tag == _NOT_CLASSIC:
        return None
    if tag[:1] != b"\1":
        raise DecodeError("a member that is neither classic nor not")
    stored, end = ConsumerGroupClassicMember.decode(tag, 0, 1)
    if end != len(tag):
        raise DecodeError("bytes behind what is kept of a classic member")
    protocols = tuple((one.name, bytes(one.metadata)) for one in stored.supported_protocols)
    if not protocols:
        return None  # what Kafka reads where nothing was written: no classic member joins without a protocol
    return ClassicProtocol(stored.session_timeout_ms, protocols)


def state_of(value: ConsumerGroupCurrentMemberAssignmentValue) -> MemberState:
    return MemberState.stored(value.state)
