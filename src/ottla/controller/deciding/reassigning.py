"""Partitions that move to other brokers: their assignments on the way, as Kafka keeps them in the tree.

    origin    1 2 3          what they are moved from: the replicas without those that are adding
    target    3 4            what they are moved to: the replicas without those that are removing
    replicas  3 4 1 2        both, the target first; adding 4, removing 1 2

New replicas are added first. When the whole target is in sync, those that are removed leave the ISR, and with that the
partition has moved. Until then it can be called off, or be sent elsewhere: from the origin, wherever it was going.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ottla.controller.deciding.context import ClusterContext, TopicContext
from ottla.controller.deciding.creation import check_replicas
from ottla.controller.deciding.refusal import Refusal
from ottla.coordination.znodes import TopicAssignment
from ottla.model import BrokerId, ErrorCode

ReplicaIds = tuple[BrokerId, ...]


class PartitionAssignment(NamedTuple):
    replicas: ReplicaIds
    adding: ReplicaIds = ()
    removing: ReplicaIds = ()

    @property
    def origin(self) -> ReplicaIds:
        return _without(self.replicas, self.adding)

    @property
    def target(self) -> ReplicaIds:
        return _without(self.replicas, self.removing)

    @property
    def moves(self) -> bool:
        return bool(self.adding or self.removing)

    def to(self, target: ReplicaIds) -> PartitionAssignment:
        origin = self.origin
        every = target + _without(origin, target)
        return PartitionAssignment(every, _without(every, origin), _without(every, target))


def assignment_of(topic: TopicContext, partition: int) -> PartitionAssignment:
    return PartitionAssignment(
        topic.replicas[partition], topic.adding.get(partition, ()), topic.removing.get(partition, ())
    )


def with_assignments(topic: TopicContext, changed: dict[int, PartitionAssignment]) -> TopicAssignment:
    """The topic's assignment with that of some partitions changed."""
    replicas, adding, removing = dict(topic.replicas), dict(topic.adding), dict(topic.removing)
    for partition, assignment in changed.items():
        replicas[partition] = assignment.replicas
        for table, brokers in ((adding, assignment.adding), (removing, assignment.removing)):
            if brokers:
                table[partition] = brokers
            else:
                table.pop(partition, None)
    return TopicAssignment(topic.id, replicas, adding, removing)


def take(topic: TopicContext, assignment: TopicAssignment) -> None:
    """It is in the tree."""
    topic.replicas, topic.adding, topic.removing = assignment.replicas, assignment.adding, assignment.removing
    topic.version += 1


def known_topic(context: ClusterContext, name: str, partition: int) -> TopicContext:
    """Raises Refusal."""
    topic = context.topics.get(name)
    if topic is None or name in context.deleting:
        raise Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"Unable to find a topic named {name}.")
    if partition not in topic.replicas:
        raise Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"Unable to find partition {name}:{partition}.")
    return topic


def check_target(
    context: ClusterContext, current: PartitionAssignment, target: Sequence[BrokerId], *, keeps_factor: bool
) -> None:
    """Raises Refusal. Brokers that the partition is on already need not live."""
    includes = "The manual partition assignment includes"
    staying = set(current.origin)
    new = [broker for broker in target if broker not in staying]
    if len(set(target)) < len(target):
        twice = next(broker for index, broker in enumerate(target) if broker in target[:index])
        raise Refusal(ErrorCode.INVALID_REPLICA_ASSIGNMENT, f"{includes} the broker {twice} more than once.")
    if not target or new:
        check_replicas(context, new, None)
    if keeps_factor and len(target) != len(current.target):
        message = f"The replication factor is changed from {len(current.target)} to {len(target)}"
        raise Refusal(ErrorCode.INVALID_REPLICATION_FACTOR, message)


def _without(brokers: ReplicaIds, others: ReplicaIds) -> ReplicaIds:
    return tuple(broker for broker in brokers if broker not in others)
