"""What hinders replication, in numbers, under the names that Kafka has for them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import TYPE_CHECKING

from ottla.replication.leader import Leader
from ottla.replication.replicas import Replicas

if TYPE_CHECKING:
    from ottla.broker.broker import Broker


class ReplicationReadings:
    """0 before the broker has started."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    @property
    def _replicas(self) -> Replicas | None:
        services = self._broker.services
        return None if services is None else services.replicas

    def _leaders(self) -> list[Leader]:
        replicas = self._replicas
        return [] if replicas is None else list(replicas.leaders.values())

    def at_min_isr(self) -> Iterator[bool]:
        return map(_has_none_to_spare, self._leaders())

    def reassigning(self) -> Iterator[bool]:
        """As LeaderAndIsr says it; UpdateMetadata has no word for it."""
        return (bool(leader.adding_replicas or leader.removing_replicas) for leader in self._leaders())

    def offline(self) -> Iterator[bool]:
        """Replicas that the cluster has here, of which this broker can serve none."""
        replicas, own = self._replicas, self._broker.broker_id
        if replicas is None or len(replicas.directories.online_paths) == len(replicas.directories.paths):
            return
        for state in chain.from_iterable(topic.partitions for topic in list(self._broker.metadata.topics.values())):
            yield own in state.replicas and own in state.offline_replicas

    def producers(self) -> Iterator[int]:
        replicas = self._replicas
        logs = [] if replicas is None else list(replicas.directories.logs.values())
        return (log.producer_memory.count for log in logs)

    def failed_isr_updates(self) -> int:
        replicas = self._replicas
        return 0 if replicas is None else replicas.isr_changes.failures


def _has_none_to_spare(leader: Leader) -> bool:
    """As Kafka counts: a partition with fewer replicas than its topic asks for needs all of them."""
    isr = leader.isr
    return len(isr.members) == min(leader.log.config.min_insync_replicas, len(isr.replicas))


def register_replication_metrics(broker: Broker) -> None:
    registry, readings, replicas = broker.registry, ReplicationReadings(broker), "kafka_server_replicamanager_"
    registry.sum(
        f"{replicas}atminisrpartitioncount",
        "Partitions led here with as many in-sync replicas as a write with acks=all needs, and none to spare.",
        readings.at_min_isr,
    )
    registry.sum(
        f"{replicas}reassigningpartitions",
        "Partitions led here that are on their way to other brokers.",
        readings.reassigning,
    )
    registry.sum(
        f"{replicas}offlinereplicacount",
        "Replicas of this broker in log directories that failed.",
        readings.offline,
    )
    registry.sum(
        f"{replicas}produceridcount",
        "Producers that this broker's replicas remember, a count for each partition that one has written to.",
        readings.producers,
    )
    registry.gauges(
        f"{replicas}failedisrupdates_total",
        "Changes of an in-sync set that the controller refused.",
        (),
        lambda: [((), readings.failed_isr_updates())],
        type_="counter",
    )
