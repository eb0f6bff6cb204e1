"""What a broker's state looks like in numbers, under the names that dashboards for Kafka use.

All of it exists already somewhere in the broker and is read when somebody scrapes, so it costs nothing between. The
`kafka_topic_*` and `kafka_brokers` names are those of the exporter that most people run beside Kafka; each broker tells
them of the partitions that it leads.
"""

from __future__ import annotations

from collections.abc import Iterator

from ottla.broker.adopting import keeps_everything
from ottla.broker.broker import Broker
from ottla.broker.cleaning_metrics import register_cleaning_metrics
from ottla.metrics import Labels
from ottla.model import NO_BROKER
from ottla.replication.leader import Leader
from ottla.replication.replicas import Replicas

_BY_PARTITION: Labels = ("topic", "partition")


class BrokerNumbers:
    """Reads a broker. Before it has started every count is 0."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    @property
    def _replicas(self) -> Replicas | None:
        services = self._broker.services
        return None if services is None else services.replicas

    def _leaders(self) -> list[Leader]:
        replicas = self._replicas
        return [] if replicas is None else list(replicas.leaders.values())

    def partitions(self) -> int:
        replicas = self._replicas
        return 0 if replicas is None else len(replicas.leaders) + len(replicas.followers)

    def led(self) -> int:
        return len(self._leaders())

    def under_replicated(self) -> int:
        return sum(len(leader.isr.members) < len(leader.isr.replicas) for leader in self._leaders())

    def under_min_isr(self) -> int:
        return sum(not leader.has_enough_replicas() for leader in self._leaders())

    def offline_directories(self) -> int:
        replicas = self._replicas
        if replicas is None:
            return 0
        return len(replicas.directories.paths) - len(replicas.directories.online_paths)

    def is_controller(self) -> int:
        broker = self._broker
        return int(broker.services is not None and broker.metadata.controller_id == broker.broker_id)

    def leaderless(self) -> int:
        """Only the controller counts them, so that a sum over brokers is the cluster's."""
        if not self.is_controller():
            return 0
        topics = self._broker.metadata.topics.values()
        return sum(state.leader == NO_BROKER for topic in topics for state in topic.partitions)

    def kept(self) -> int:
        metadata = self._broker.metadata
        return sum(keeps_everything(metadata.topic_config(name)) for name in metadata.topics)

    def brokers(self) -> int:
        return len(self._broker.metadata.brokers)

    def partitions_by_topic(self) -> Iterator[tuple[Labels, float]]:
        for topic in self._broker.metadata.topics.values():
            yield (topic.name,), len(topic.partitions)

    def log_sizes(self) -> Iterator[tuple[Labels, float]]:
        replicas = self._replicas
        if replicas is not None:
            for tp, log in list(replicas.directories.logs.items()):
                yield (tp.topic, str(tp.partition)), log.size

    def newest_offsets(self) -> Iterator[tuple[Labels, float]]:
        for leader in self._leaders():
            yield (leader.tp.topic, str(leader.tp.partition)), leader.high_watermark

    def oldest_offsets(self) -> Iterator[tuple[Labels, float]]:
        for leader in self._leaders():
            yield (leader.tp.topic, str(leader.tp.partition)), leader.log.start_offset


def register_broker_metrics(broker: Broker) -> None:
    """Adds a broker's numbers to its registry."""
    registry, numbers = broker.registry, BrokerNumbers(broker)
    register_cleaning_metrics(registry, lambda: broker.cleaning, broker.ports.clock)
    replicas, controller = "kafka_server_replicamanager_", "kafka_controller_kafkacontroller_"
    gauge = registry.gauge
    gauge(f"{replicas}partitioncount", "Partitions on this broker.", numbers.partitions)
    gauge(f"{replicas}leadercount", "Partitions that this broker leads.", numbers.led)
    gauge(
        f"{replicas}underreplicatedpartitions",
        "Partitions led here whose in-sync replicas are not all of their replicas.",
        numbers.under_replicated,
    )
    gauge(
        f"{replicas}underminisrpartitioncount",
        "Partitions led here with fewer in-sync replicas than min.insync.replicas.",
        numbers.under_min_isr,
    )
    registry.counter(f"{replicas}isrshrinks_total", "Replicas taken out of an in-sync set.")
    registry.counter(f"{replicas}isrexpands_total", "Replicas taken into an in-sync set.")
    gauge(f"{controller}activecontrollercount", "1 on the broker that is the controller.", numbers.is_controller)
    gauge(f"{controller}offlinepartitionscount", "Partitions without a leader; 0 elsewhere.", numbers.leaderless)
    registry.counter(
        "kafka_controller_controllerstats_uncleanleaderelections_total", "Leaders elected from outside the in-sync set."
    )
    registry.gauges("kafka_log_log_size", "Bytes in a partition's segments.", _BY_PARTITION, numbers.log_sizes)
    gauge("kafka_log_logmanager_offlinelogdirectorycount", "Log directories that failed.", numbers.offline_directories)
    gauge("ottla_topics_kept", "Topics that keep everything, as their own cleanup.policy is empty.", numbers.kept)
    gauge("kafka_brokers", "Brokers in the cluster.", numbers.brokers)
    registry.gauges("kafka_topic_partitions", "Partitions of a topic.", ("topic",), numbers.partitions_by_topic)
    registry.gauges(
        "kafka_topic_partition_current_offset",
        "The offset that a partition's next committed record gets.",
        _BY_PARTITION,
        numbers.newest_offsets,
    )
    registry.gauges(
        "kafka_topic_partition_oldest_offset", "A partition's first offset.", _BY_PARTITION, numbers.oldest_offsets
    )
