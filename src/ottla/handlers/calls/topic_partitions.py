"""What requests about partitions ask first: may the client, does it exist, does it lead here, and where else."""

from __future__ import annotations

from ottla.handlers.calls.call import Call
from ottla.metadata import PartitionState
from ottla.model import NO_BROKER, BrokerId, ErrorCode, TopicPartition
from ottla.replication.leader import Leader
from ottla.security.authorizer import Operation


def leader_for(call: Call, topic: str, partition: int, operation: Operation, epoch: int = -1) -> Leader | ErrorCode:
    """The leader here, or the error that the partition is answered with; `epoch` is the epoch the client thinks of."""
    if not call.allowed_on_topic(operation, topic):
        return ErrorCode.TOPIC_AUTHORIZATION_FAILED
    replicas = call.services.replicas
    tp = TopicPartition(topic, partition)
    leader = replicas.leaders.get(tp)
    if leader is None:
        return replicas.why_not_leader(tp)
    fenced = leader.fencing(epoch)
    return leader if fenced == ErrorCode.NONE else fenced


def leader_shown(call: Call, state: PartitionState) -> tuple[ErrorCode, BrokerId]:
    """The leader that a client is sent to, by the listener that it came by; nobody, with the reason, where there is
    none, or it is gone or seems to be, or has no such listener."""
    metadata = call.services.metadata
    leader = metadata.brokers.get(state.leader)
    if leader is None or leader.id in metadata.doubted or stands_aside(call, state):
        return ErrorCode.LEADER_NOT_AVAILABLE, NO_BROKER
    if leader.endpoint(call.listener) is None:
        return ErrorCode.LISTENER_NOT_FOUND, NO_BROKER
    return ErrorCode.NONE, leader.id


def stands_aside(call: Call, state: PartitionState) -> bool:
    """Whether this broker is its leader as far as it knows, and does not lead, since it may have been replaced."""
    replicas = call.services.replicas
    return state.leader == replicas.broker_id and TopicPartition(state.topic, state.partition) in replicas.aside
