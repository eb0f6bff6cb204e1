"""Partitions of one broker whose followers a test plays, by real Fetch frames."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tests.server.conftest import BrokerThread, Peer

from ottla.metadata import BrokerEndpoints, MetadataUpdate, PartitionState
from ottla.model import BrokerId, Epoch, ErrorCode, TopicPartition
from ottla.protocol.generated.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic, ReplicaState
from ottla.replication.leader import Leader

US, FIRST, SECOND = 1001, 9, 10
ALL = (US, FIRST, SECOND)


def state_of(
    leader: Leader,
    *,
    leader_id: int = US,
    leader_epoch: int | None = None,
    replicas: Sequence[int] = ALL,
    isr: Sequence[int] | None = None,
    partition_epoch: int | None = None,
) -> PartitionState:
    """The next decision of a controller about a partition."""
    epoch = leader.epoch if leader_epoch is None else leader_epoch
    return PartitionState(
        topic=leader.tp.topic,
        partition=leader.tp.partition,
        topic_id=leader.log.topic_id,
        controller_epoch=Epoch(max(1, leader.controller_epoch)),
        leader=BrokerId(leader_id),
        leader_epoch=Epoch(epoch),
        isr=tuple(BrokerId(each) for each in (replicas if isr is None else isr)),
        replicas=tuple(BrokerId(each) for each in replicas),
        partition_epoch=leader.partition_epoch + 1 if partition_epoch is None else partition_epoch,
    )


def decide(running: BrokerThread, topic: str, **options: Any) -> ErrorCode:
    """What a controller would announce, between two rounds of the network."""

    def apply(broker: Any) -> ErrorCode:
        replicas = broker.services.replicas
        tp = TopicPartition(topic, options.pop("partition", 0))
        leader = replicas.leaders[tp]
        error: ErrorCode = replicas.apply([state_of(leader, **options)], lambda _: leader.log.config)[tp]
        broker.services.round.soon()
        return error

    return running.look(apply)


def register(running: BrokerThread, *brokers: tuple[int, int]) -> None:
    """Other brokers with their epochs live, as far as this one knows."""

    def apply(broker: Any) -> None:
        metadata = broker.services.metadata
        others = [BrokerEndpoints(BrokerId(each), (), None, epoch) for each, epoch in brokers]
        kept = [each for each in metadata.brokers.values() if each.id == US]
        metadata.apply(MetadataUpdate(controller_epoch=metadata.controller_epoch, brokers=[*kept, *others]))

    running.look(apply)


def look_at(running: BrokerThread, topic: str, partition: int = 0) -> Leader:
    """The leader; what is read of it may be a moment old."""
    return running.look(lambda broker: broker.services.replicas.leaders[TopicPartition(topic, partition)])  # type: ignore[union-attr]


class PlayedFollower:
    """Fetches as a follower does: what it has is only what the test says."""

    def __init__(self, peer: Peer, topic: str, replica: int = FIRST, *, broker_epoch: int = -1) -> None:
        self.peer = peer
        self.topic = topic
        self.replica = replica
        self.broker_epoch = broker_epoch

    def request(
        self,
        offset: int,
        *,
        version: int = 12,
        leader_epoch: int = -1,
        last_epoch: int = -1,
        max_wait_ms: int = 0,
        topic_id: bytes = bytes(16),
        **options: Any,
    ) -> FetchRequest:
        asked = FetchPartition(
            partition=0,
            fetch_offset=offset,
            current_leader_epoch=leader_epoch,
            last_fetched_epoch=last_epoch,
            log_start_offset=0,
            partition_max_bytes=1 << 20,
        )
        topic = FetchTopic(topic_id=topic_id, partitions=[asked])
        if version < 13:
            topic = FetchTopic(topic=self.topic, partitions=[asked])
        settings: dict[str, Any] = {
            "max_wait_ms": max_wait_ms,
            "min_bytes": 1,
            "max_bytes": 1 << 20,
            "topics": [topic],
            **options,
        }
        if version >= 15:
            settings["replica_state"] = ReplicaState(replica_id=self.replica, replica_epoch=self.broker_epoch)
        else:
            settings["replica_id"] = self.replica
        return FetchRequest(**settings)

    def send(self, offset: int, *, version: int = 12, **options: Any) -> None:
        self.peer.send(self.peer.frame(self.request(offset, version=version, **options), version))

    def answer(self, version: int = 12) -> Any:
        """The only partition's answer."""
        return self.peer.answer(FetchResponse, version).responses[0].partitions[0]

    def fetch(self, offset: int, *, version: int = 12, **options: Any) -> Any:
        self.send(offset, version=version, **options)
        return self.answer(version)
