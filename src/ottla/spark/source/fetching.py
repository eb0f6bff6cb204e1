"""Fetches of one partition, from its leader and by its topic's id: a topic that was made again is another.

A leader that knows a replica in the rack of `kafka.client.rack` answers with its name and no records (KIP-392); the
next fetch goes there. What the replica does not give at once, or answers with an error, is asked of the leader, and so
is the rest of the split: a replica lags, and only the leader's word counts on what is there.

What is here asks once, and raises what the leader answers instead; to try again is the caller's work.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from ottla.client.errors import KafkaError, NotLeaderOrFollower, UnknownTopicOrPartition, error_of
from ottla.client.settings import ConsumerSettings
from ottla.client.wire.cluster import Cluster
from ottla.client.wire.connections import CONTROL
from ottla.client.wire.metadata import Node, Partition, Topic
from ottla.client.wire.offsets import READ_COMMITTED, READ_UNCOMMITTED
from ottla.model import NO_EPOCH, ZERO_TOPIC_ID, ErrorCode
from ottla.protocol.apis import ApiKey
from ottla.protocol.generated.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic, PartitionData
from ottla.records.batch import Readable
from ottla.spark.source.splits import Split

#: Topics are named by their ids from this version on.
_BY_ID: Final = 13
_ISOLATION: Final = 4
_LEADER_EPOCHS: Final = 9
_RACKS: Final = 11


class FetchedStretch(NamedTuple):
    """Whole batches, as they came."""

    #: What lies before and from `until` on is not wanted.
    first: int
    until: int
    buf: Readable
    end: int
    #: Behind the last of them.
    next_offset: int
    aborted: list[tuple[int, int]] | None
    #: Where they were read without the leader.
    file: str | None = None


class PartitionFetches:
    """For one split."""

    def __init__(self, settings: ConsumerSettings, split: Split) -> None:
        self.settings = settings
        self._split = split
        self._tp = split.tp
        self.isolation = READ_COMMITTED if settings.isolation_level == "read_committed" else READ_UNCOMMITTED
        #: The broker that the leader has sent us to.
        self.replica: int | None = None
        #: Empty as soon as a replica has failed: the leader does not send us away any more.
        self._rack = settings.client_rack

    async def leader(self, cluster: Cluster) -> tuple[Topic, Partition]:
        """Of the topic that was planned for; raises where another has its name, or nobody leads the partition."""
        tp = self._tp
        cluster.want([tp.topic])
        if tp.topic not in cluster.metadata.topics or self._is_another(cluster):
            await cluster.updated()  # what the link knows may be older than the plan
        topic = cluster.metadata.topics.get(tp.topic)
        if topic is None:
            code = cluster.metadata.errors.get(tp.topic, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            raise error_of(code, about=tp.topic)
        if self._is_another(cluster):
            raise UnknownTopicOrPartition(f"{tp.topic} was made again")
        leader = cluster.metadata.leader(*tp)
        if leader is None:
            raise NotLeaderOrFollower(f"{tp} has no leader now")
        return topic, leader

    async def answer(self, cluster: Cluster, offset: int) -> PartitionData:
        """What there is from an offset on, waiting for it as the settings say."""
        if self.replica is not None:
            try:
                answered = await self._records(cluster, offset, self.replica)
            except KafkaError:
                answered = None
            if answered is not None and answered.records is not None and len(answered.records):
                return answered
            self.replica, self._rack = None, ""
        answered = await self._records(cluster, offset, None)
        if answered.preferred_read_replica >= 0:
            self.replica = answered.preferred_read_replica
        return answered

    async def _records(self, cluster: Cluster, offset: int, replica: int | None) -> PartitionData:
        settings = self.settings
        return await self._asked(
            cluster,
            FetchPartition(fetch_offset=offset, partition_max_bytes=settings.max_partition_fetch_bytes),
            max_wait_ms=settings.fetch_max_wait_ms,
            min_bytes=settings.fetch_min_bytes,
            rack=self._rack,
            at_least=_ISOLATION,
            replica=replica,
        )

    async def word(self, cluster: Cluster, offset: int, epoch: int) -> PartitionData:
        """What the leader says of a log whose last batch before this offset is of this epoch, and of its own; at once,
        and with the records of one batch at most.
        """
        partition = FetchPartition(fetch_offset=offset, last_fetched_epoch=epoch, partition_max_bytes=1)
        # Without a rack, or a broker may send its asker to a replica that is nearer.
        return await self._asked(cluster, partition, max_wait_ms=0, min_bytes=0, rack="", at_least=_BY_ID)

    async def _asked(
        self,
        cluster: Cluster,
        wanted: FetchPartition,
        *,
        max_wait_ms: int,
        min_bytes: int,
        rack: str,
        at_least: int,
        replica: int | None = None,
    ) -> PartitionData:
        """Of the leader, or of a replica that it has named."""
        tp = self._tp
        topic, leader = await self.leader(cluster)
        broker = leader.leader if replica is None else replica
        # The lane of questions: this link has no others while it fetches, so one connection to a broker does.
        connection = await cluster.connections.to(broker, CONTROL)
        version = connection.version(ApiKey.FETCH, at_least=at_least)
        topic_id = self._split.topic_id if self._split.topic_id != ZERO_TOPIC_ID else topic.topic_id
        if topic_id == ZERO_TOPIC_ID:
            version = min(version, _BY_ID - 1)
        wanted.partition = tp.partition
        wanted.current_leader_epoch = leader.leader_epoch if version >= _LEADER_EPOCHS else NO_EPOCH
        request = FetchRequest(
            max_wait_ms=max_wait_ms,
            min_bytes=min_bytes,
            max_bytes=self.settings.fetch_max_bytes,
            isolation_level=self.isolation,
            rack_id=rack if version >= _RACKS else "",
            topics=[
                FetchTopic(topic_id=topic_id, partitions=[wanted])
                if version >= _BY_ID
                else FetchTopic(topic=tp.topic, partitions=[wanted])
            ],
        )
        timeout_ms = self.settings.request_timeout_ms + max_wait_ms
        answer = await connection.ask(request, FetchResponse, timeout_ms=timeout_ms, at_most=version)
        if answer.error_code:
            raise error_of(answer.error_code, about=str(tp))
        answered = next((one for of in answer.responses for one in of.partitions), None)
        if answered is None:
            raise NotLeaderOrFollower(f"{tp}: broker {broker} answered nothing")
        if answered.error_code:
            if answered.current_leader.leader_id >= 0:
                nodes = [Node(one.node_id, one.host, one.port, one.rack) for one in answer.node_endpoints]
                current = answered.current_leader
                cluster.learn_leader(tp, topic_id, current.leader_id, current.leader_epoch, nodes)
            raise error_of(answered.error_code, about=str(tp))
        return answered

    def is_gone(self, cluster: Cluster) -> bool:
        """Whether the cluster, as it was last asked, does not have the topic that was planned for."""
        return self._tp.topic not in cluster.metadata.topics or self._is_another(cluster)

    def _is_another(self, cluster: Cluster) -> bool:
        """Whether the topic that has the name now is another than was planned."""
        known = cluster.metadata.topics.get(self._tp.topic)
        return (
            known is not None
            and ZERO_TOPIC_ID not in {known.topic_id, self._split.topic_id}
            and (known.topic_id != self._split.topic_id)
        )
