"""What members of a group send each other, as Kafka writes it, so that clients of different makers share one group.

    version int16, then a ConsumerProtocolSubscription or a ConsumerProtocolAssignment of that version

The coordinator carries both without looking inside. A newer version begins like the newest that is known here and may
have more behind it, so it is read as that; bytes behind the end are left alone.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from ottla.model import TopicPartition
from ottla.protocol.errors import DecodeError
from ottla.protocol.fields import INT16
from ottla.protocol.generated.consumer_protocol_assignment import AssignedPartitions, ConsumerProtocolAssignment
from ottla.protocol.generated.consumer_protocol_subscription import ConsumerProtocolSubscription, OwnedPartitions

#: The protocol type of JoinGroup: groups of consumers, as opposed to Kafka Connect's workers.
PROTOCOL_TYPE: Final = "consumer"
VERSION_MAX: Final = 3
NO_GENERATION: Final = -1

_VERSION: Final = INT16


class Subscription(NamedTuple):
    """A member as its leader sees it."""

    topics: frozenset[str]
    #: The assignor's own.
    user_data: bytes | None = None
    #: What the member has, and keeps until it is given something else; nothing where all is given up before joining.
    owned: tuple[TopicPartition, ...] = ()
    #: In which it got that; -1 where it does not say.
    generation: int = NO_GENERATION
    rack: str | None = None
    #: Of a static member; not in the bytes, but beside them.
    instance_id: str | None = None


class Assignment(NamedTuple):
    partitions: tuple[TopicPartition, ...] = ()
    user_data: bytes | None = None


def encode_subscription(subscription: Subscription, version: int = VERSION_MAX) -> bytes:
    message = ConsumerProtocolSubscription(
        topics=sorted(subscription.topics),
        user_data=subscription.user_data,
        owned_partitions=[
            OwnedPartitions(topic=topic, partitions=numbers) for topic, numbers in _by_topic(subscription.owned).items()
        ],
        generation_id=subscription.generation,
        rack_id=subscription.rack,
    )
    return _VERSION.pack(version) + message.encode(version)


def decode_subscription(data: bytes | memoryview, instance_id: str | None = None) -> Subscription:
    """Raises DecodeError."""
    message, _ = ConsumerProtocolSubscription.decode(data, _version(data), _VERSION.size)
    user_data = message.user_data
    return Subscription(
        frozenset(message.topics),
        None if user_data is None else bytes(user_data),
        tuple(TopicPartition(one.topic, number) for one in message.owned_partitions for number in one.partitions),
        message.generation_id,
        message.rack_id,
        instance_id,
    )


def encode_assignment(assignment: Assignment, version: int = VERSION_MAX) -> bytes:
    message = ConsumerProtocolAssignment(
        assigned_partitions=[
            AssignedPartitions(topic=topic, partitions=numbers)
            for topic, numbers in _by_topic(assignment.partitions).items()
        ],
        user_data=assignment.user_data,
    )
    return _VERSION.pack(version) + message.encode(version)


def decode_assignment(data: bytes | memoryview) -> Assignment:
    """No bytes at all are an assignment of nothing: a leader forgot the member. Raises DecodeError."""
    if not data:
        return Assignment()
    message, _ = ConsumerProtocolAssignment.decode(data, _version(data), _VERSION.size)
    user_data = message.user_data
    return Assignment(
        tuple(
            dict.fromkeys(
                TopicPartition(one.topic, number) for one in message.assigned_partitions for number in one.partitions
            )
        ),
        None if user_data is None else bytes(user_data),
    )


def _version(data: bytes | memoryview) -> int:
    if len(data) < _VERSION.size:
        raise DecodeError(f"{len(data)} bytes where a version number should be")
    (version,) = _VERSION.unpack_from(data)
    if version < 0:
        raise DecodeError(f"version {version} of a consumer's protocol")
    return min(int(version), VERSION_MAX)


def _by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    topics: dict[str, list[int]] = {}
    for topic, number in partitions:
        topics.setdefault(topic, []).append(number)
    return topics
