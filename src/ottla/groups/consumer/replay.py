"""Applies stored records to consumer groups: when a partition is loaded, and after each decision."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final

from ottla.groups.consumer import records
from ottla.groups.consumer.group import ConsumerGroup
from ottla.groups.consumer.member import LEFT, NOTHING_OWNED, Member, Partitions, ResolvedRegex
from ottla.groups.records.kinds import BadRecord
from ottla.protocol.errors import DecodeError
from ottla.protocol.generated.consumer_group_current_member_assignment_value import (
    ConsumerGroupCurrentMemberAssignmentValue,
)
from ottla.protocol.generated.consumer_group_member_metadata_value import ConsumerGroupMemberMetadataValue
from ottla.protocol.generated.consumer_group_metadata_value import ConsumerGroupMetadataValue
from ottla.protocol.generated.consumer_group_partition_metadata_value import ConsumerGroupPartitionMetadataValue
from ottla.protocol.generated.consumer_group_regular_expression_value import ConsumerGroupRegularExpressionValue
from ottla.protocol.generated.consumer_group_target_assignment_member_value import (
    ConsumerGroupTargetAssignmentMemberValue,
)
from ottla.protocol.generated.consumer_group_target_assignment_metadata_value import (
    ConsumerGroupTargetAssignmentMetadataValue,
)
from ottla.protocol.primitives import Buffer


def group_of(record_type: int, key: Buffer, position: int) -> tuple[str, Any]:
    """The group that a record is about, and its key. BadRecord where the bytes are no such key."""
    try:
        decoded: Any = records.decoded_key(record_type, key, position)
    except DecodeError as fault:
        raise BadRecord(str(fault)) from None
    return decoded.group_id, decoded


def apply(group: ConsumerGroup, record_type: int, key: Any, value: Buffer | None) -> bool:
    """Applies a record to its group. False: the group is no more. BadRecord leaves the group as it was."""
    if value is None:
        return _TOMBSTONES[record_type](group, key)
    try:
        _VALUES[record_type](group, key, value)
    except DecodeError as fault:
        raise BadRecord(str(fault)) from None
    return True


def put_targets(group: ConsumerGroup, targets: Mapping[str, Partitions], epoch: int) -> None:
    """What the records of these targets, and of their epoch behind them, say."""
    group.target.update(targets)
    group.assignment_epoch = epoch


def _member(group: ConsumerGroup, member_id: str) -> Member:
    return group.members.get(member_id) or Member(id=member_id)


def _put_group_epoch(group: ConsumerGroup, _key: Any, value: Buffer) -> None:
    decoded: Any = records.decoded_value(ConsumerGroupMetadataValue.decode, value)
    group.epoch = decoded.epoch
    group.metadata_hash = decoded.metadata_hash


def _drop_group(_group: ConsumerGroup, _key: Any) -> bool:
    return False


def _put_partition_metadata(group: ConsumerGroup, _key: Any, value: Buffer) -> None:
    records.decoded_value(ConsumerGroupPartitionMetadataValue.decode, value)
    group.has_partition_metadata = True


def _drop_partition_metadata(group: ConsumerGroup, _key: Any) -> bool:
    group.has_partition_metadata = False
    return True


def _put_member(group: ConsumerGroup, key: Any, value: Buffer) -> None:
    decoded: Any = records.decoded_value(ConsumerGroupMemberMetadataValue.decode, value)
    classic = records.classic_of(decoded)
    group.put_member(
        replace(
            _member(group, key.member_id),
            instance_id=decoded.instance_id,
            rack_id=decoded.rack_id,
            client_id=decoded.client_id,
            client_host=decoded.client_host,
            topic_names=frozenset(decoded.subscribed_topic_names),
            topic_regex=decoded.subscribed_topic_regex or "",
            rebalance_timeout_ms=decoded.rebalance_timeout_ms,
            assignor=decoded.server_assignor,
            classic=classic,
        )
    )


def _drop_member(group: ConsumerGroup, key: Any) -> bool:
    group.remove_member(key.member_id)
    return True


def _put_target_epoch(group: ConsumerGroup, _key: Any, value: Buffer) -> None:
    decoded: Any = records.decoded_value(ConsumerGroupTargetAssignmentMetadataValue.decode, value)
    group.assignment_epoch = decoded.assignment_epoch


def _drop_target_epoch(group: ConsumerGroup, _key: Any) -> bool:
    group.assignment_epoch = -1
    return True


def _put_target(group: ConsumerGroup, key: Any, value: Buffer) -> None:
    decoded: Any = records.decoded_value(ConsumerGroupTargetAssignmentMemberValue.decode, value)
    group.target[key.member_id] = records.partitions_of(decoded.topic_partitions)


def _drop_target(group: ConsumerGroup, key: Any) -> bool:
    group.target.pop(key.member_id, None)
    return True


def _put_current(group: ConsumerGroup, key: Any, value: Buffer) -> None:
    decoded: Any = records.decoded_value(ConsumerGroupCurrentMemberAssignmentValue.decode, value)
    group.put_member(
        replace(
            _member(group, key.member_id),
            epoch=decoded.member_epoch,
            previous_epoch=decoded.previous_member_epoch,
            state=records.state_of(decoded),
            assigned=records.owned_of(decoded.assigned_partitions, decoded.member_epoch),
            pending_revocation=records.owned_of(decoded.partitions_pending_revocation, decoded.member_epoch),
        )
    )


def _drop_current(group: ConsumerGroup, key: Any) -> bool:
    member = group.members.get(key.member_id)
    if member is not None:
        group.put_member(
            replace(member, epoch=LEFT, previous_epoch=LEFT, assigned=NOTHING_OWNED, pending_revocation=NOTHING_OWNED)
        )
    return True


def _put_regex(group: ConsumerGroup, key: Any, value: Buffer) -> None:
    decoded: Any = records.decoded_value(ConsumerGroupRegularExpressionValue.decode, value)
    group.topics_version += 1
    group.regexes[key.regular_expression] = ResolvedRegex(frozenset(decoded.topics), decoded.version, decoded.timestamp)


def _drop_regex(group: ConsumerGroup, key: Any) -> bool:
    group.topics_version += 1
    group.regexes.pop(key.regular_expression, None)
    return True


_VALUES: Final[dict[int, Callable[[ConsumerGroup, Any, Buffer], None]]] = {
    records.GROUP_EPOCH: _put_group_epoch,
    records.PARTITION_METADATA: _put_partition_metadata,
    records.MEMBER: _put_member,
    records.TARGET_EPOCH: _put_target_epoch,
    records.TARGET: _put_target,
    records.CURRENT: _put_current,
    records.REGEX: _put_regex,
}
_TOMBSTONES: Final[dict[int, Callable[[ConsumerGroup, Any], bool]]] = {
    records.GROUP_EPOCH: _drop_group,
    records.PARTITION_METADATA: _drop_partition_metadata,
    records.MEMBER: _drop_member,
    records.TARGET_EPOCH: _drop_target_epoch,
    records.TARGET: _drop_target,
    records.CURRENT: _drop_current,
    records.REGEX: _drop_regex,
}
