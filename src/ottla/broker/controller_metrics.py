"""The controller in numbers, under the names that Kafka has for them. Brokers that are not the controller show 0."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ottla.controller.controller import ClusterController
from ottla.controller.deciding.context import TopicContext
from ottla.controller.numbers import ControllerNumbers
from ottla.metrics import Registry
from ottla.metrics.buckets import Summary
from ottla.metrics.times import RecentTimes, Times
from ottla.model import NO_BROKER
from ottla.ports import Clock


class ControllerReadings:
    def __init__(self, controller: Callable[[], ClusterController | None], clock: Clock) -> None:
        self._controller = controller
        self._clock = clock
        self._elections = RecentTimes(clock.monotonic_ms())
        self._waits = RecentTimes(clock.monotonic_ms())
        #: By broker: the times of its present registration, and those of the last minutes.
        self._calls: dict[int, tuple[Times, RecentTimes]] = {}

    def _active(self) -> ClusterController | None:
        controller = self._controller()
        return controller if controller is not None and controller.tenure.lost is None else None

    def is_active(self) -> int:
        return int(self._active() is not None)

    def topics(self) -> int:
        active = self._active()
        return 0 if active is None else len(active.context.topics)

    def to_delete(self) -> int:
        active = self._active()
        return 0 if active is None else len(active.context.deleting)

    def waiting_for_brokers(self) -> int:
        """Topics whose deletion waits until brokers are there that have replicas of them."""
        active = self._active()
        if active is None:
            return 0
        context = active.context
        return sum(
            any(broker not in context.brokers for replicas in topic.replicas.values() for broker in replicas)
            for topic in self._deleting(active)
        )

    def replicas_to_delete(self) -> int:
        active = self._active()
        return 0 if active is None else sum(sum(map(len, one.replicas.values())) for one in self._deleting(active))

    def replicas_without_a_broker(self) -> int:
        active = self._active()
        if active is None:
            return 0
        brokers = active.context.brokers
        return sum(
            broker not in brokers
            for topic in self._deleting(active)
            for replicas in topic.replicas.values()
            for broker in replicas
        )

    @staticmethod
    def _deleting(active: ClusterController) -> list[TopicContext]:
        context = active.context
        return [context.topics[name] for name in context.deleting if name in context.topics]

    def calls_to_brokers(self) -> list[tuple[tuple[str, ...], float]]:
        active = self._active()
        waiting = {} if active is None else active.tenure.announcer.waiting
        return [((str(broker),), count) for broker, count in sorted(waiting.items())]

    def calls(self) -> float:
        return sum(count for _, count in self.calls_to_brokers())

    def call_times(self) -> Iterator[tuple[tuple[str, ...], Summary]]:
        active = self._active()
        of_each = {} if active is None else active.tenure.announcer.times
        for gone in self._calls.keys() - of_each.keys():
            del self._calls[gone]
        for broker, times in sorted(of_each.items()):
            kept = self._calls.get(broker)
            if kept is None or kept[0] is not times:
                kept = self._calls[broker] = times, RecentTimes(self._clock.monotonic_ms())
            yield (str(broker),), kept[1].summary(times, self._clock.monotonic_ms())

    def waiting_events(self) -> int:
        active = self._active()
        return 0 if active is None else len(active.tenure.events)

    def partitions(self) -> Iterator[float]:
        active = self._active()
        if active is not None:
            for topic in list(active.context.topics.values()):
                yield len(topic.replicas)

    def offline(self) -> Iterator[float]:
        """Those that nobody has ever led are among them."""
        active = self._active()
        if active is not None:
            for topic in list(active.context.served_topics()):
                for partition in list(topic.replicas):
                    known = topic.states.get(partition)
                    yield known is None or known.state.leader == NO_BROKER

    def imbalanced(self) -> Iterator[float]:
        active = self._active()
        if active is not None:
            for topic in list(active.context.served_topics()):
                for partition, replicas in list(topic.replicas.items()):
                    known = topic.states.get(partition)
                    yield known is not None and replicas[:1] != (known.state.leader,)

    def unclean_elections(self) -> int:
        controller = self._controller()
        return 0 if controller is None else controller.numbers.unclean_elections

    def election_times(self) -> Summary:
        return self._summary(self._elections, lambda numbers: numbers.elections)

    def event_waits(self) -> Summary:
        return self._summary(self._waits, lambda numbers: numbers.waits)

    def _summary(self, recent: RecentTimes, times_of: Callable[[ControllerNumbers], Times]) -> Summary:
        controller = self._controller()
        times = Times() if controller is None else times_of(controller.numbers)
        return recent.summary(times, self._clock.monotonic_ms())


def register_controller_metrics(
    registry: Registry, controller: Callable[[], ClusterController | None], clock: Clock
) -> None:
    readings = ControllerReadings(controller, clock)
    state, stats = "kafka_controller_kafkacontroller_", "kafka_controller_controllerstats_"
    gauge = registry.gauge
    gauge(f"{state}activecontrollercount", "1 on the broker that is the controller.", readings.is_active)
    gauge(f"{state}globaltopiccount", "Topics, on the controller; 0 on others.", readings.topics)
    gauge(f"{state}topicstodeletecount", "Topics whose deletion has not ended, on the controller.", readings.to_delete)
    registry.sum(
        f"{state}globalpartitioncount", "Partitions of all topics, on the controller; 0 on others.", readings.partitions
    )
    registry.sum(
        f"{state}offlinepartitionscount",
        "Partitions without a leader, on the controller; 0 on others.",
        readings.offline,
    )
    registry.sum(
        f"{state}preferredreplicaimbalancecount",
        "Partitions that another replica than the first one leads, or nobody, on the controller; 0 on others.",
        readings.imbalanced,
    )
    gauge(
        "kafka_controller_controllereventmanager_eventqueuesize",
        "Changes that wait for their turn, on the controller; 0 on others.",
        readings.waiting_events,
    )
    gauge(
        f"{state}topicsineligibletodeletecount",
        "Topics whose deletion waits for brokers that are not there, on the controller.",
        readings.waiting_for_brokers,
    )
    gauge(
        f"{state}replicastodeletecount",
        "Replicas of topics whose deletion has not ended, on the controller.",
        readings.replicas_to_delete,
    )
    gauge(
        f"{state}replicasineligibletodeletecount",
        "Of these, those on brokers that are not there.",
        readings.replicas_without_a_broker,
    )
    registry.summaries(
        "kafka_controller_controllereventmanager_eventqueuetimems",
        "Milliseconds that changes wait for their turn; quantiles of the last five minutes.",
        (),
        lambda: [((), readings.event_waits())],
    )
    channels = "kafka_controller_controllerchannelmanager_"
    gauge(f"{channels}totalqueuesize", "Calls that brokers have still to answer, on the controller.", readings.calls)
    registry.gauges(
        f"{channels}queuesize",
        "Calls that a broker has still to answer, on the controller.",
        ("broker_id",),
        readings.calls_to_brokers,
    )
    registry.summaries(
        f"{channels}requestrateandqueuetimems",
        "Milliseconds that what a broker is to hear waits for its call; quantiles of the last five minutes.",
        ("broker_id",),
        readings.call_times,
    )
    registry.gauges(
        f"{stats}uncleanleaderelections_total",
        "Leaders elected from outside the in-sync set.",
        (),
        lambda: [((), readings.unclean_elections())],
        type_="counter",
    )
    registry.summaries(
        f"{stats}leaderelectionrateandtimems",
        "Milliseconds of a set of elections, until the tree has them; quantiles of the last five minutes.",
        (),
        lambda: [((), readings.election_times())],
    )
