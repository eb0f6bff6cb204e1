"""A fetch session with one broker: partitions are named once, and then only what changes.

The first fetch (epoch 0) names all; the broker gives the session an id and keeps what it was sent; each further fetch
carries the next epoch and the differences. Whatever goes wrong, the next fetch names all again.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from ottla.model import TopicPartition
from ottla.protocol.generated.fetch import FetchPartition, FetchRequest, FetchTopic, ForgottenTopic

NO_SESSION: Final = 0
FULL: Final = 0
EPOCH_MAX: Final = 2**31 - 1


class WantedPartition(NamedTuple):
    """What is asked for of one partition."""

    topic_id: bytes
    offset: int
    leader_epoch: int
    fetched_epoch: int
    bytes_max: int


class FetchSession:
    __slots__ = ("_by_id", "_epoch", "_known", "id")

    def __init__(self) -> None:
        self.id = NO_SESSION
        self._epoch = FULL
        #: What the broker was last sent about each partition.
        self._known: dict[TopicPartition, WantedPartition] = {}
        self._by_id = False

    def fill(self, request: FetchRequest, wanted: dict[TopicPartition, WantedPartition], *, by_id: bool) -> None:
        """Writes into a request what the session needs to say to get `wanted`."""
        if by_id != self._by_id:
            self.restart()
            self._by_id = by_id
        request.session_id = self.id
        request.session_epoch = self._epoch
        if self._epoch == FULL:
            request.topics = _topics(wanted, by_id=by_id)
        else:
            changed = {tp: one for tp, one in wanted.items() if self._known.get(tp) != one}
            gone = [
                (tp, one.topic_id)
                for tp, one in self._known.items()
                if tp not in wanted or wanted[tp].topic_id != one.topic_id
            ]
            request.topics = _topics(changed, by_id=by_id)
            request.forgotten_topics_data = _forgotten(gone, by_id=by_id)
        self._known = wanted

    def answered(self, session_id: int) -> None:
        """The broker took the request; without a session id it keeps none for us."""
        if session_id == NO_SESSION:
            self.id, self._epoch = NO_SESSION, FULL
        else:
            self.id = session_id
            self._epoch = 1 if self._epoch in {FULL, EPOCH_MAX} and session_id else self._epoch + 1

    def restart(self) -> None:
        """Names everything next time; the broker closes the session that it may still keep."""
        self._epoch = FULL
        self._known = {}

    def forget(self) -> None:
        """The broker does not know the session."""
        self.id = NO_SESSION
        self.restart()


def _topics(wanted: dict[TopicPartition, WantedPartition], *, by_id: bool) -> list[FetchTopic]:
    topics: dict[str, FetchTopic] = {}
    for (name, partition), one in wanted.items():
        topic = topics.get(name)
        if topic is None:
            topic = topics[name] = FetchTopic(topic_id=one.topic_id) if by_id else FetchTopic(topic=name)
        topic.partitions.append(
            FetchPartition(
                partition=partition,
                current_leader_epoch=one.leader_epoch,
                fetch_offset=one.offset,
                last_fetched_epoch=one.fetched_epoch,
                partition_max_bytes=one.bytes_max,
            )
        )
    return list(topics.values())


def _forgotten(gone: list[tuple[TopicPartition, bytes]], *, by_id: bool) -> list[ForgottenTopic]:
    topics: dict[tuple[str, bytes], ForgottenTopic] = {}
    for (name, partition), topic_id in gone:
        topic = topics.get((name, topic_id))
        if topic is None:
            topic = ForgottenTopic(topic_id=topic_id) if by_id else ForgottenTopic(topic=name)
            topics[name, topic_id] = topic
        topic.partitions.append(partition)
    return list(topics.values())
