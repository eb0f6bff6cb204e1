"""What a broker's state looks like in numbers, under the names that dashboards for Kafka use.

All of it exists already somewhere in the broker and is read when somebody scrapes, so it costs nothing between. The
`kafka_topic_*` and `kafka_brokers` names are those of the exporter that most people run beside Kafka; each broker shows
those of partitions for the ones that it leads, so that each is there once and sums over brokers are right.
"""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterator
from itertools import islice

from ottla import __version__
from ottla.broker.adopting import keeps_everything
from ottla.broker.broker import Broker
from ottla.broker.cleaning_metrics import register_cleaning_metrics
from ottla.broker.controller_metrics import register_controller_metrics
from ottla.broker.fetching_metrics import register_fetching_metrics
from ottla.broker.replication_metrics import register_replication_metrics
from ottla.broker.session_metrics import register_session_metrics
from ottla.broker.waiting_metrics import register_waiting_metrics
from ottla.metrics import SERIES_MAX, Labels, Registry
from ottla.native import compiled_run
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

    def _leaders(self, at_most: int | None = None) -> list[Leader]:
        replicas = self._replicas
        return [] if replicas is None else list(islice(replicas.leaders.values(), at_most))

    def state(self) -> int:
        """By Kafka's numbers."""
        return 6 if self._broker.is_handing_over else {"starting": 1, "ready": 3, "stopping": 7}[self._broker.stage]

    def partitions(self) -> int:
        replicas = self._replicas
        return 0 if replicas is None else len(replicas.leaders) + len(replicas.followers)

    def led(self) -> int:
        replicas = self._replicas
        return 0 if replicas is None else len(replicas.leaders)

    def under_replicated(self) -> Iterator[bool]:
        return map(_lacks_replicas, self._leaders())

    def under_min_isr(self) -> Iterator[bool]:
        return (not leader.has_enough_replicas() for leader in self._leaders())

    def isr_shrinks(self) -> Iterator[tuple[Labels, float]]:
        replicas = self._replicas
        yield (), 0 if replicas is None else replicas.isr_changes.shrinks

    def isr_expands(self) -> Iterator[tuple[Labels, float]]:
        replicas = self._replicas
        yield (), 0 if replicas is None else replicas.isr_changes.expands

    def offline_directories(self) -> int:
        replicas = self._replicas
        if replicas is None:
            return 0
        return len(replicas.directories.paths) - len(replicas.directories.online_paths)

    def kept(self) -> Iterator[bool]:
        metadata = self._broker.metadata
        for name in list(metadata.topics):
            yield keeps_everything(metadata.topic_config(name))

    def brokers(self) -> int:
        return len(self._broker.metadata.brokers)

    def partitions_by_topic(self) -> Iterator[tuple[Labels, float]]:
        for topic in list(self._broker.metadata.topics.values()):
            yield (topic.name,), len(topic.partitions)

    def log_sizes(self) -> Iterator[tuple[Labels, float]]:
        replicas = self._replicas
        if replicas is not None:
            for tp, log in list(islice(replicas.directories.logs.items(), SERIES_MAX + 1)):
                yield (tp.topic, str(tp.partition)), log.size

    def of_each_led(self, number: Callable[[Leader], float]) -> Callable[[], Iterator[tuple[Labels, float]]]:
        def read() -> Iterator[tuple[Labels, float]]:
            # To copy ten thousand takes two milliseconds, when they are in no cache of the processor.
            for leader in self._leaders(SERIES_MAX + 1):
                yield (leader.tp.topic, str(leader.tp.partition)), number(leader)

        return read


def _lacks_replicas(leader: Leader) -> bool:
    return len(leader.isr.members) < len(leader.isr.replicas)


def register_broker_metrics(broker: Broker) -> None:
    """Adds a broker's numbers to its registry."""
    registry, numbers = broker.registry, BrokerNumbers(broker)
    register_cleaning_metrics(registry, lambda: broker.cleaning, broker.ports.clock)
    register_controller_metrics(registry, lambda: broker.controller, broker.ports.clock)
    register_fetching_metrics(
        registry,
        lambda: broker.fetchers,
        lambda: None if broker.services is None else broker.services.replicas.traffic,
    )
    register_replication_metrics(broker)
    register_session_metrics(broker)
    register_waiting_metrics(registry, lambda: None if broker.services is None else broker.services.replicas)
    replicas = "kafka_server_replicamanager_"
    gauge = registry.gauge
    gauge(f"{replicas}partitioncount", "Partitions on this broker.", numbers.partitions)
    gauge(f"{replicas}leadercount", "Partitions that this broker leads.", numbers.led)
    registry.sum(
        f"{replicas}underreplicatedpartitions",
        "Partitions led here whose in-sync replicas are not all of their replicas.",
        numbers.under_replicated,
    )
    registry.sum(
        f"{replicas}underminisrpartitioncount",
        "Partitions led here with fewer in-sync replicas than min.insync.replicas.",
        numbers.under_min_isr,
    )
    for name, text, read in (
        ("isrshrinks_total", "Replicas taken out of an in-sync set.", numbers.isr_shrinks),
        ("isrexpands_total", "Replicas taken into an in-sync set.", numbers.isr_expands),
    ):
        registry.gauges(f"{replicas}{name}", text, (), read, type_="counter")
    registry.gauges("kafka_log_log_size", "Bytes in a partition's segments.", _BY_PARTITION, numbers.log_sizes)
    gauge("kafka_log_logmanager_offlinelogdirectorycount", "Log directories that failed.", numbers.offline_directories)
    registry.sum(
        "ottla_topics_kept", "Topics that keep everything, as their own cleanup.policy is empty.", numbers.kept
    )
    gauge(
        "kafka_server_kafkaserver_brokerstate",
        "1 while it starts, 3 while it serves, 6 while it hands over what it leads, 7 while it stops.",
        numbers.state,
    )
    gauge("kafka_brokers", "Brokers in the cluster.", numbers.brokers)
    registry.gauges("kafka_topic_partitions", "Partitions of a topic.", ("topic",), numbers.partitions_by_topic)
    _register_led(registry, numbers)
    _register_build(registry)


def _register_led(registry: Registry, numbers: BrokerNumbers) -> None:
    own: Callable[[Leader], float]
    for name, text, own in (
        ("current_offset", "The offset that a partition's next committed record gets.", lambda led: led.high_watermark),
        ("oldest_offset", "A partition's first offset.", lambda led: led.log.start_offset),
        ("leader", "The id of the broker that leads a partition.", lambda led: led.isr.local),
        (
            "leader_is_preferred",
            "1 where a partition's leader is the first of its replicas.",
            lambda led: led.isr.replicas[0] == led.isr.local,
        ),
        ("replicas", "Replicas of a partition.", lambda led: len(led.isr.replicas)),
        ("in_sync_replica", "In-sync replicas of a partition.", lambda led: len(led.isr.members)),
        ("under_replicated_partition", "1 where not all replicas of a partition are in sync.", _lacks_replicas),
    ):
        registry.gauges(f"kafka_topic_partition_{name}", text, _BY_PARTITION, numbers.of_each_led(own))


def _register_build(registry: Registry) -> None:
    labels = ("version", "python", "compiled")
    values = (__version__, platform.python_version(), "no" if compiled_run() is None else "yes")
    registry.gauges("ottla_build_info", "What runs: always 1.", labels, lambda: [(values, 1)])
