"""How much goes in and out of each topic here, for metrics: added to once a partition and round, and by each answer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ottla.model import TopicPartition
from ottla.steps import Steps, pieces


class Traffic:
    """One topic's."""

    __slots__ = ("bytes_in", "bytes_out", "records_in")

    def __init__(self) -> None:
        self.records_in = 0
        self.bytes_in = 0
        #: To consumers; what followers read is not counted.
        self.bytes_out = 0

    def add(self, other: Traffic) -> None:
        self.records_in += other.records_in
        self.bytes_in += other.bytes_in
        self.bytes_out += other.bytes_out


class TrafficByTopic:
    def __init__(self) -> None:
        self._by_topic: dict[str, Traffic] = {}
        #: Of topics that are gone: the sum over all never falls.
        self.gone = Traffic()
        #: What was fetched from leaders, of all topics.
        self.replicated_bytes_in = 0
        #: What was sent to followers.
        self.replicated_bytes_out = 0
        #: Of these, of partitions that are on their way to the broker that fetches.
        self.reassigned_bytes_in = 0
        self.reassigned_bytes_out = 0

    def of(self, topic: str) -> Traffic:
        """The topic's, made on first use."""
        traffic = self._by_topic.get(topic)
        if traffic is None:
            traffic = self._by_topic[topic] = Traffic()
        return traffic

    def forgetting(self, given_up: Iterable[TopicPartition], here: Iterable[TopicPartition]) -> Steps[None]:
        """A topic that has no partition here any more is not scraped for ever."""
        topics = {tp.topic for tp in given_up}
        for piece in pieces(here):
            topics.difference_update(tp.topic for tp in piece)
            yield
        for topic in topics:
            gone = self._by_topic.pop(topic, None)
            if gone is not None:
                self.gone.add(gone)

    def __iter__(self) -> Iterator[tuple[str, Traffic]]:
        return iter(list(self._by_topic.items()))
