"""What consumers put into the classic protocol's opaque bytes: subscriptions, and assignments.

    version int16, then the fields of ConsumerProtocolSubscription or ConsumerProtocolAssignment in that version

A later version than we know begins with the fields of the last that we know.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from ottla.groups.consumer.member import Owned
from ottla.metadata.cache import MetadataCache
from ottla.model import TopicId
from ottla.protocol.errors import DecodeError
from ottla.protocol.fields import INT16
from ottla.protocol.generated.consumer_protocol_assignment import AssignedPartitions, ConsumerProtocolAssignment
from ottla.protocol.generated.consumer_protocol_subscription import ConsumerProtocolSubscription

#: The protocol type of all consumers.
CONSUMER: Final = "consumer"
VERSION_MAX: Final = 3


class EmbeddedAssignment(NamedTuple):
    topics: list[tuple[str, list[int]]]
    #: What an assignor of the client's own put there.
    user_data: bytes


def version_of(data: bytes) -> int:
    """DecodeError for bytes that are neither subscription nor assignment."""
    if len(data) < INT16.size:
        raise DecodeError("an embedded message without a version")
    (version,) = INT16.unpack_from(data, 0)
    if version < 0:
        raise DecodeError(f"an embedded message of version {version}")
    return int(min(version, VERSION_MAX))


def subscription(data: bytes) -> ConsumerProtocolSubscription:
    found, _ = ConsumerProtocolSubscription.decode(data, version_of(data), INT16.size)
    return found


def assignment(data: bytes) -> EmbeddedAssignment:
    """Empty bytes assign nothing: the member never got an assignment."""
    if not data:
        return EmbeddedAssignment([], b"")
    found, _ = ConsumerProtocolAssignment.decode(data, version_of(data), INT16.size)
    topics = [(entry.topic, entry.partitions) for entry in found.assigned_partitions]
    return EmbeddedAssignment(topics, bytes(found.user_data or b""))


def encoded_assignment(topics: Iterable[tuple[str, Iterable[int]]], version: int) -> bytes:
    entries = [AssignedPartitions(topic=name, partitions=sorted(partitions)) for name, partitions in sorted(topics)]
    return INT16.pack(version) + ConsumerProtocolAssignment(assigned_partitions=entries).encode(version)


def named(owned: Owned, metadata: MetadataCache) -> list[tuple[str, list[int]]]:
    """Topics by their names; those that were deleted are left out."""
    found = []
    for topic, partitions in owned.items():
        name = metadata.topic_name(topic)
        if name is not None:
            found.append((name, sorted(partitions)))
    return found


def with_ids(topics: Iterable[tuple[str, Iterable[int]]], metadata: MetadataCache) -> dict[TopicId, set[int]]:
    """Topics by their ids; those that do not exist are left out."""
    found: dict[TopicId, set[int]] = {}
    for name, partitions in topics:
        topic = metadata.topic(name)
        if topic is not None:
            found.setdefault(topic.id, set()).update(partitions)
    return found
