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
from ottla.broker.load_time_metrics import LoadTimesNow, register_load_times
from ottla.metrics import Labels
from ottla.model import TopicPartition

if TYPE_CHECKING:
    from ottla.groups.coordinator import GroupCoordinator

_BY_OFFSET: Final[Labels] = ("consumergroup", "topic", "partition")
_BY_TOPIC: Final[Labels] = ("consumergroup", "topic")
_CLASSIC, _CONSUMER = "classic", "consumer"
_CLASSIC_STATES: Final = ("Empty", "PreparingRebalance", "CompletingRebalance", "Stable", "Dead")
_CONSUMER_STATES: Final = ("Empty", "Assigning", "Reconciling", "Stable", "Dead")

Readings = Iterator[tuple[Labels, float] | None]
#: Group, topic, partition, and a number.
OfOffset = tuple[str, str, int, int]


class GroupNumbers:
    """Reads a broker's coordinator. Before the broker has started there are no groups."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        #: Groups by type and state, as the scrape of this number has found them.
        self._tally: Counter[tuple[str, str]] = Counter()
        self._tallied = 0

    @property
    def _groups(self) -> GroupCoordinator | None:
        services = self._broker.services
        return None if services is None else services.groups_on_demand.made

    # -- offsets

    def _offsets(self) -> Iterator[OfOffset]:
        groups = self._groups
        if groups is not None:
            yield from groups.committed()

    def _lags(self) -> Iterator[OfOffset | None]:
        """Of the partitions that are led here: what others lead, only they know the end of."""
        services = self._broker.services
        if services is None:
            return
        leaders = services.replicas.leaders
        for group, topic, partition, offset in self._offsets():
            leader = leaders.get(TopicPartition(topic, partition))
            yield None if leader is None else (group, topic, partition, max(0, leader.high_watermark - offset))

    def offsets(self) -> Readings:
        return _by_partition(self._offsets())

    def lags(self) -> Readings:
        return _by_partition(self._lags())

    def offset_sums(self) -> Readings:
        return _by_topic(self._offsets())

    def lag_sums(self) -> Readings:
        return _by_topic(self._lags())

    def load_times(self) -> LoadTimesNow | None:
        groups = self._groups
        return None if groups is None else (groups.led.load_times, groups.led.now().monotonic_ms)

    # -- groups

    def members(self) -> Readings:
        groups = self._groups
        if groups is not None:
            for group in groups.groups():
                yield (group.id,), len(group.members)

    def _tallying(self) -> Iterator[None]:
        """Counts the groups, once for all families of a scrape that show some of them."""
        scrape, groups = self._broker.registry.scrapes, self._groups
        if scrape == self._tallied:
            return
        tally: Counter[tuple[str, str]] = Counter()
        if groups is not None:
            for group in groups.groups():
                tally[group.type_name, group.state_name] += 1
                # A consumer group looks at all of its members to say its state.
                for _ in range(1 + len(group.members) // 8):
                    yield None
        self._tally, self._tallied = tally, scrape

    def by_protocol(self) -> Readings:
        yield from self._tallying()
        for protocol in (_CLASSIC, _CONSUMER):
            yield (protocol,), sum(count for (kind, _), count in self._tally.items() if kind == protocol)

    def consumer_states(self) -> Readings:
        yield from self._tallying()
        for state in _CONSUMER_STATES:
            yield (state.lower(),), self._tally[_CONSUMER, state]

    def classic(self, state: str | None = None) -> Readings:
        """Classic groups, all or those in one state."""
        yield from self._tallying()
        yield (
            (),
            sum(count for (kind, name), count in self._tally.items() if kind == _CLASSIC and state in {None, name}),
        )

    # -- what the coordinator has done

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
    group = "kafka_consumergroup_"
    for name, text, labels, readings in (
        ("current_offset", "A group's committed offset.", _BY_OFFSET, numbers.offsets),
        (
            "current_offset_sum",
            "A group's committed offsets in all partitions of a topic.",
            _BY_TOPIC,
            numbers.offset_sums,
        ),
        (
            "lag",
            "Records between a group's committed offset and the high watermark, of partitions led by this broker.",
            _BY_OFFSET,
            numbers.lags,
        ),
        ("lag_sum", "The lag in all partitions of a topic that this broker leads.", _BY_TOPIC, numbers.lag_sums),
        ("members", "Members of a group.", ("consumergroup",), numbers.members),
    ):
        registry.gauges(f"{group}{name}", text, labels, readings)
    coordinator = "kafka_server_group_coordinator_metrics_"
    registry.gauges(f"{coordinator}group_count", "Groups, by protocol.", ("protocol",), numbers.by_protocol)
    registry.gauges(
        f"{coordinator}consumer_group_count", "Groups of the newer protocol.", ("state",), numbers.consumer_states
    )
    classic = "kafka_coordinator_group_groupmetadatamanager_numgroups"
    registry.gauges(classic, "Classic groups.", (), numbers.classic)
    for state in _CLASSIC_STATES:
        text = f"Classic groups in state {state}."
        registry.gauges(f"{classic}{state.lower()}", text, (), partial(numbers.classic, state))
    for name, text, read in (
        ("group_completed_rebalance_count", "Generations of classic groups that were completed.", numbers.rebalances),
        ("offset_commit_count", "Offsets that were committed.", numbers.commits),
        ("offset_deletion_count", "Offsets that were deleted, by administrators or with topics.", numbers.deleted),
        ("offset_expiration_count", "Offsets that expired.", numbers.expired),
    ):
        registry.gauges(f"{coordinator}{name}", text, (), partial(_only, read), type_="counter")
    register_load_times(registry, "group", numbers.load_times)


def _by_partition(found: Iterator[OfOffset | None]) -> Readings:
    for each in found:
        if each is None:
            yield None
        else:
            group, topic, partition, number = each
            yield (group, topic, str(partition)), number


def _by_topic(found: Iterator[OfOffset | None]) -> Readings:
    """The sums over the partitions of a topic, which follow one another."""
    of, total = None, 0
    for each in found:
        if each is not None:
            group, topic, _, number = each
            if (group, topic) != of:
                if of is not None:
                    yield of, total
                of, total = (group, topic), 0
            total += number
        yield None
    if of is not None:
        yield of, total


def _only(read: Callable[[], int]) -> list[tuple[Labels, float]]:
    return [((), read())]
