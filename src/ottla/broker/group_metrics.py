"""Consumer groups in numbers: what they have committed, how far behind they are, and what their coordinator does.

Everything is read from the coordinator when somebody scrapes. `kafka_consumergroup_*` are the names of the exporter
that most people run beside Kafka; the others are those that Kafka's own beans get in Prometheus.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Final

from ottla.broker.broker import Broker
from ottla.metrics import Labels
from ottla.model import TopicPartition

if TYPE_CHECKING:
    from ottla.groups.coordinator import GroupCoordinator

_BY_OFFSET: Final[Labels] = ("consumergroup", "topic", "partition")
_CLASSIC, _CONSUMER = "classic", "consumer"
_CLASSIC_STATES: Final = ("Empty", "PreparingRebalance", "CompletingRebalance", "Stable", "Dead")
_CONSUMER_STATES: Final = ("Empty", "Assigning", "Reconciling", "Stable", "Dead")


class GroupNumbers:
    """Reads a broker's coordinator. Before the broker has started there are no groups."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    @property
    def _groups(self) -> GroupCoordinator | None:
        services = self._broker.services
        return None if services is None else services.groups_on_demand.made

    def offsets(self) -> Iterator[tuple[Labels, float]]:
        groups = self._groups
        if groups is not None:
            for group, topic, partition, offset in groups.committed():
                yield (group, topic, str(partition)), offset

    def lags(self) -> Iterator[tuple[Labels, float]]:
        """Of the partitions that are led here: what others lead, only they know the end of."""
        services, groups = self._broker.services, self._groups
        if services is None or groups is None:
            return
        leaders = services.replicas.leaders
        for group, topic, partition, offset in groups.committed():
            leader = leaders.get(TopicPartition(topic, partition))
            if leader is not None:
                yield (group, topic, str(partition)), max(0, leader.high_watermark - offset)

    def _by_state(self) -> Counter[tuple[str, str]]:
        groups = self._groups
        return Counter() if groups is None else Counter(groups.kinds_and_states())

    def by_protocol(self) -> Iterator[tuple[Labels, float]]:
        counts = self._by_state()
        for protocol in (_CLASSIC, _CONSUMER):
            yield (protocol,), sum(count for (kind, _), count in counts.items() if kind == protocol)

    def consumer_states(self) -> Iterator[tuple[Labels, float]]:
        counts = self._by_state()
        for state in _CONSUMER_STATES:
            yield (state.lower(),), counts[_CONSUMER, state]

    def classic(self, state: str | None = None) -> int:
        """Classic groups, all or those in one state."""
        return sum(
            count for (kind, name), count in self._by_state().items() if kind == _CLASSIC and state in {None, name}
        )

    def rebalances(self) -> int:
        return 0 if self._groups is None else self._groups.counts.rebalances

    def commits(self) -> int:
        return 0 if self._groups is None else self._groups.counts.commits

    def deleted(self) -> int:
        return 0 if self._groups is None else self._groups.counts.deletions

    def expired(self) -> int:
        return 0 if self._groups is None else self._groups.counts.expired


def register_group_metrics(broker: Broker) -> None:
    """Adds the groups' numbers to a broker's registry."""
    registry, numbers = broker.registry, GroupNumbers(broker)
    registry.gauges("kafka_consumergroup_current_offset", "A group's committed offset.", _BY_OFFSET, numbers.offsets)
    registry.gauges(
        "kafka_consumergroup_lag",
        "Records between a group's committed offset and the high watermark, of partitions led by this broker.",
        _BY_OFFSET,
        numbers.lags,
    )
    coordinator = "kafka_server_group_coordinator_metrics_"
    registry.gauges(f"{coordinator}group_count", "Groups, by protocol.", ("protocol",), numbers.by_protocol)
    registry.gauges(
        f"{coordinator}consumer_group_count", "Groups of the newer protocol.", ("state",), numbers.consumer_states
    )
    classic = "kafka_coordinator_group_groupmetadatamanager_numgroups"
    registry.gauge(classic, "Classic groups.", numbers.classic)
    for state in _CLASSIC_STATES:
        registry.gauge(
            f"{classic}{state.lower()}", f"Classic groups in state {state}.", partial(numbers.classic, state)
        )
    for name, text, read in (
        ("group_completed_rebalance_count", "Generations of classic groups that were completed.", numbers.rebalances),
        ("offset_commit_count", "Offsets that were committed.", numbers.commits),
        ("offset_deletion_count", "Offsets that were deleted, by administrators or with topics.", numbers.deleted),
        ("offset_expiration_count", "Offsets that expired.", numbers.expired),
    ):
        registry.gauges(f"{coordinator}{name}", text, (), partial(_only, read), type_="counter")


def _only(read: Callable[[], int]) -> list[tuple[Labels, float]]:
    return [((), read())]
