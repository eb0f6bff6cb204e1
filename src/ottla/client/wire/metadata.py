"""What a client knows of a cluster: brokers, topics, partitions, leaders. A value, replaced as a whole.

A partition without a leader stays, and so does one that a broker forgets to mention while the topic is the same: the
number of partitions decides where a key goes, and it may only grow. News that are older than what is known (a smaller
leader epoch, from a broker that lags) are not taken.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from ottla.model import NO_BROKER, NO_EPOCH, ZERO_TOPIC_ID, ErrorCode
from ottla.protocol.generated.metadata import MetadataResponse, MetadataResponsePartition, MetadataResponseTopic

#: A topic that answers so is there: only its leaders, or this broker's knowledge of it, are not.
_PASSING: Final = frozenset({ErrorCode.LEADER_NOT_AVAILABLE, ErrorCode.UNKNOWN_SERVER_ERROR})


class Node(NamedTuple):
    """A broker and where it listens."""

    id: int
    host: str
    port: int
    rack: str | None = None


class Partition(NamedTuple):
    partition: int
    #: -1 while there is none.
    leader: int
    leader_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    offline_replicas: tuple[int, ...]
    error: ErrorCode


class Topic(NamedTuple):
    name: str
    #: Zeros where the broker is too old to say.
    topic_id: bytes
    #: By number, without gaps.
    partitions: tuple[Partition, ...]
    internal: bool

    @property
    def led(self) -> tuple[int, ...]:
        """The partitions that can be written to now."""
        return tuple(one.partition for one in self.partitions if one.leader >= 0)


class Metadata(NamedTuple):
    cluster_id: str | None
    controller_id: int
    nodes: dict[int, Node]
    topics: dict[str, Topic]
    #: What was asked for and is not there, with the reason.
    errors: dict[str, ErrorCode]
    #: Names of topics by their ids.
    names: dict[bytes, str]

    def leader(self, topic: str, partition: int) -> Partition | None:
        """The partition with its leader, or None where there is no such partition or nobody leads it."""
        found = self.topics.get(topic)
        if found is None or partition >= len(found.partitions):
            return None
        one = found.partitions[partition]
        return one if one.leader >= 0 and one.leader in self.nodes else None


EMPTY: Final = Metadata(None, -1, {}, {}, {}, {})


def merged(old: Metadata, answer: MetadataResponse, wanted: Iterable[str] | None) -> Metadata:
    """What is known after an answer about the `wanted` topics (None: all); other topics are forgotten."""
    nodes = {one.node_id: Node(one.node_id, one.host, one.port, one.rack) for one in answer.brokers}
    topics: dict[str, Topic] = {}
    errors: dict[str, ErrorCode] = {}
    for answered in answer.topics:
        name = answered.name
        if name is None:
            continue
        known = old.topics.get(name)
        error = error_code(answered.error_code)
        if error is ErrorCode.NONE:
            topics[name] = _topic(name, answered, known)
        else:
            errors[name] = error
            if known is not None and error in _PASSING:
                topics[name] = known
    if wanted is not None:
        for name in wanted:
            if name not in topics and name not in errors:
                errors[name] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    names = {one.topic_id: one.name for one in topics.values() if one.topic_id != ZERO_TOPIC_ID}
    return Metadata(answer.cluster_id, answer.controller_id, nodes, topics, errors, names)


def lacks_something(answer: MetadataResponse) -> bool:
    """Whether some topic is not there or nobody leads one of its partitions, as far as the broker knows that has
    answered."""
    return any(
        topic.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION or any(one.leader_id < 0 for one in topic.partitions)
        for topic in answer.topics
    )


def says_nothing(answer: MetadataResponse) -> bool:
    """Whether it comes of a broker that knows neither brokers nor topics: it has just started, and nobody has told it
    yet."""
    return not answer.brokers and all(topic.error_code for topic in answer.topics)


def _topic(name: str, answered: MetadataResponseTopic, known: Topic | None) -> Topic:
    same = known is not None and known.topic_id == answered.topic_id
    before = known.partitions if known is not None and same else ()
    by_number = {one.partition_index: one for one in answered.partitions if one.partition_index >= 0}
    # A number beyond the count that the answer itself has would be a lie that costs memory.
    count = max(len(before), len(by_number))
    partitions = []
    for number in range(count):
        one = by_number.get(number)
        last = before[number] if number < len(before) else None
        partitions.append(_leaderless(number, last) if one is None else _newer(_partition(one), last))
    return Topic(name, bytes(answered.topic_id), tuple(partitions), answered.is_internal)


def _partition(answered: MetadataResponsePartition) -> Partition:
    return Partition(
        answered.partition_index,
        answered.leader_id,
        answered.leader_epoch,
        tuple(answered.replica_nodes),
        tuple(answered.isr_nodes),
        tuple(answered.offline_replicas),
        error_code(answered.error_code),
    )


def _newer(answered: Partition, known: Partition | None) -> Partition:
    if known is not None and answered.leader_epoch != NO_EPOCH and answered.leader_epoch < known.leader_epoch:
        return known
    return answered


def _leaderless(number: int, known: Partition | None) -> Partition:
    if known is not None:
        return known._replace(leader=NO_BROKER, error=ErrorCode.LEADER_NOT_AVAILABLE)
    return Partition(number, NO_BROKER, NO_EPOCH, (), (), (), ErrorCode.LEADER_NOT_AVAILABLE)


def with_leader(
    old: Metadata, topic: str, topic_id: bytes, partition: int, leader: int, epoch: int, nodes: Iterable[Node]
) -> Metadata:
    """What an answer to Produce or Fetch says beside its error: the leader now (no round trip for Metadata needed).

    `topic_id` is that of the topic that was asked for, zeros where it was asked for by its name. Of one that has been
    made anew since it says nothing, and its epochs would count as newer than the next one's.
    """
    known = old.topics.get(topic)
    if known is None or partition >= len(known.partitions) or epoch <= known.partitions[partition].leader_epoch:
        return old
    if topic_id not in (ZERO_TOPIC_ID, known.topic_id):
        return old
    all_nodes = {**old.nodes, **{node.id: node for node in nodes}}
    if leader not in all_nodes:
        return old
    changed = known.partitions[partition]._replace(leader=leader, leader_epoch=epoch, error=ErrorCode.NONE)
    partitions = (*known.partitions[:partition], changed, *known.partitions[partition + 1 :])
    return old._replace(nodes=all_nodes, topics={**old.topics, topic: known._replace(partitions=partitions)})


def error_code(number: int) -> ErrorCode:
    """The code with this number; UNKNOWN_SERVER_ERROR for one of a newer broker."""
    try:
        return ErrorCode(number)
    except ValueError:
        return ErrorCode.UNKNOWN_SERVER_ERROR
