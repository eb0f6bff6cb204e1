"""The checks that every request about partitions begins with: may the client, does it exist, does it lead here."""

from __future__ import annotations

from ottla.handlers.calls.call import Call
from ottla.model import ErrorCode, TopicPartition
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
