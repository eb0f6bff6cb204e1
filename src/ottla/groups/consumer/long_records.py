"""Records of members that name thousands of topics, or have a hundred thousand partitions: made step by step.

An array is written in pieces, each as the array of a whole value of which only the elements are taken. They stand one
behind another, as if they had been written at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from ottla.coordinators.journal import JournalRecord
from ottla.groups.consumer import records
from ottla.groups.consumer.assignors.ordering import in_order
from ottla.groups.consumer.member import Member, Owned, Partitions
from ottla.model import TopicId
from ottla.protocol.generated.consumer_group_current_member_assignment_key import (
    ConsumerGroupCurrentMemberAssignmentKey,
)
from ottla.protocol.generated.consumer_group_current_member_assignment_value import (
    ConsumerGroupCurrentMemberAssignmentValue,
)
from ottla.protocol.generated.consumer_group_member_metadata_key import ConsumerGroupMemberMetadataKey
from ottla.protocol.generated.consumer_group_member_metadata_value import ConsumerGroupMemberMetadataValue
from ottla.protocol.generated.consumer_group_target_assignment_member_key import ConsumerGroupTargetAssignmentMemberKey
from ottla.protocol.primitives import put_compact_count
from ottla.steps import Steps, pieces

#: The count of a short array, and of an empty one.
_COUNT: Final = 1
#: There are none.
_TAGS: Final = 1
#: A piece has fewer elements than a count of one byte can say.
_TOPICS_A_STEP: Final = 32
#: Of one piece; a topic may have ten thousand of them, which take a millisecond.
_PARTITIONS_A_STEP: Final = 2_048

_NO_NAMES: Final = ConsumerGroupMemberMetadataValue().encode(0)
#: Four strings that are empty or missing stand before the names.
_BEFORE_NAMES: Final = 4
_NOTHING: Final = ConsumerGroupCurrentMemberAssignmentValue().encode(0)
#: Two empty arrays and the tags stand at the end.
_BEFORE_ASSIGNED: Final = len(_NOTHING) - 2 * _COUNT - _TAGS


class StoredNames(NamedTuple):
    """The names that a member subscribes to, as elements of an array."""

    number: int
    elements: bytes


def stored_names(names: Iterable[str]) -> Steps[StoredNames]:
    """Raises EncodeError."""
    elements = bytearray()
    count = 0
    after = len(_NO_NAMES) - _BEFORE_NAMES - _COUNT
    for piece in pieces(names):
        written = ConsumerGroupMemberMetadataValue(subscribed_topic_names=list(piece)).encode(0)
        elements += written[_BEFORE_NAMES + _COUNT : len(written) - after]
        count += len(piece)
        yield
    return StoredNames(count, bytes(elements))


def member(group_id: str, one: Member, names: StoredNames) -> JournalRecord:
    """As `records.member`, with its names in this order."""
    whole = records.member_value(one, [])
    before = ConsumerGroupMemberMetadataValue(
        instance_id=whole.instance_id,
        rack_id=whole.rack_id,
        client_id=whole.client_id,
        client_host=whole.client_host,
    )
    at = len(before.encode(0)) - len(_NO_NAMES) + _BEFORE_NAMES
    written = whole.encode(0)
    value = bytearray(written[:at])
    put_compact_count(value, names.number)
    value += names.elements
    value += written[at + _COUNT :]
    key = ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=one.id)
    return records.of_value(records.MEMBER, key, value)


def current(group_id: str, one: Member) -> Steps[JournalRecord]:
    """As `records.current`. What a member has does not change: it gets another."""
    head = ConsumerGroupCurrentMemberAssignmentValue(
        member_epoch=one.epoch, previous_member_epoch=one.previous_epoch, state=int(one.state)
    )
    written = head.encode(0)
    value = bytearray(written[:_BEFORE_ASSIGNED])
    for owned in (one.assigned, one.pending_revocation):
        put_compact_count(value, len(owned))
        yield from _put_owned(value, owned)
    value += written[_BEFORE_ASSIGNED + 2 * _COUNT :]
    key = ConsumerGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=one.id)
    return records.of_value(records.CURRENT, key, value)


def target(group_id: str, member_id: str, partitions: Partitions) -> Steps[JournalRecord]:
    """As `records.target`, of what does not change. Does not yield where it is short."""
    value = bytearray()
    put_compact_count(value, len(partitions))
    piece: dict[TopicId, frozenset[int]] = {}
    room = _PARTITIONS_A_STEP
    for topic in (yield from in_order(partitions, bytes)):
        piece[topic] = partitions[topic]
        room -= len(partitions[topic])
        if room <= 0 or len(piece) == _TOPICS_A_STEP:
            value += records.target_value(piece).encode(0)[_COUNT:-_TAGS]
            piece = {}
            room = _PARTITIONS_A_STEP
            yield
    value += records.target_value(piece).encode(0)[_COUNT:]
    key = ConsumerGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id)
    return records.of_value(records.TARGET, key, value)


def _put_owned(out: bytearray, owned: Owned) -> Steps[None]:
    piece: dict[TopicId, Mapping[int, int]] = {}
    room = _PARTITIONS_A_STEP
    for topic in (yield from in_order(owned, bytes)):
        piece[topic] = owned[topic]
        room -= len(owned[topic])
        if room <= 0 or len(piece) == _TOPICS_A_STEP:
            out += _elements(piece)
            piece = {}
            room = _PARTITIONS_A_STEP
            yield
    out += _elements(piece)


def _elements(owned: Owned) -> bytes:
    written = ConsumerGroupCurrentMemberAssignmentValue(assigned_partitions=records.stored_owned(owned)).encode(0)
    return written[_BEFORE_ASSIGNED + _COUNT : len(written) - _COUNT - _TAGS]
