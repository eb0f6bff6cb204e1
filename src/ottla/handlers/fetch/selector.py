"""Which replica a consumer is to read from: one in its own rack, where the broker's configuration wants that (KIP-392).

Only a replica that is in sync and has what is asked for is named: a consumer would leave one that lags behind, and be
sent there again for ever. The leader is not named, since that is where the consumer is.
"""

from __future__ import annotations

from typing import Final

from ottla.handlers.calls.call import Services
from ottla.model import BrokerId
from ottla.replication.leader import Leader

#: Both of Kafka's names for it; another class could not be run here.
RACK_AWARE: Final = frozenset(
    {
        "org.apache.kafka.common.replica.RackAwareReplicaSelector",
        "org.apache.kafka.server.replica.RackAwareReplicaSelector",
    }
)


def selects_by_rack(services: Services) -> bool:
    """Whether consumers may read from followers at all."""
    return services.config.replication.selector in RACK_AWARE


def preferred_replica(services: Services, leader: Leader, rack: str, offset: int) -> int:
    """A replica in the consumer's rack; -1 for the leader."""
    brokers = services.metadata.brokers
    own = brokers.get(BrokerId(leader.leader_id))
    if own is not None and own.rack == rack:
        return -1
    best: tuple[int, int, int] | None = None
    for follower in leader.isr.followers.values():
        broker = brokers.get(BrokerId(follower.id))
        if broker is None or broker.rack != rack or follower.id not in leader.isr.members:
            continue
        if follower.end < offset or leader.log.start_offset > offset:
            continue
        # The one that has most, and of several the one that was caught up last.
        rank = (follower.end, follower.caught_up_ms(), -follower.id)
        if best is None or rank > best:
            best = rank
    return -1 if best is None else -best[2]
