"""What the controller knows of the cluster: the tree's content, decoded, as of its last write.

Only the controller's own task changes it, and only after the tree took the write.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple, Protocol

from ottla.coordination.znodes import LeaderAndIsr, TopicAssignment
from ottla.metadata.updates import BrokerEndpoints, PartitionState
from ottla.model import NO_BROKER, NO_EPOCH, ZERO_TOPIC_ID, BrokerId, Epoch, TopicId
from ottla.steps import Steps, pieces

#: Each takes some microseconds.
_STATES_A_STEP: Final = 16


class VersionedState(NamedTuple):
    state: LeaderAndIsr
    #: Of the znode: conditional writes name it, and brokers know it as the partition's epoch.
    version: int


@dataclass(slots=True)
class TopicContext:
    name: str
    id: TopicId
    #: Partition -> replicas, in order.
    replicas: dict[int, tuple[BrokerId, ...]]
    adding: dict[int, tuple[BrokerId, ...]] = field(default_factory=dict)
    removing: dict[int, tuple[BrokerId, ...]] = field(default_factory=dict)
    #: Partitions whose state is in the tree; the others were never led.
    states: dict[int, VersionedState] = field(default_factory=dict)
    configs: dict[str, str] = field(default_factory=dict)
    #: Partitions whose state is in the tree, and cannot be read: it is left alone.
    damaged: set[int] = field(default_factory=set)
    #: When each state was written that was read, by transactions of the tree: not of those that were written since.
    written: dict[int, int] = field(default_factory=dict)
    #: Of the topic's znode, which its assignment is written under the condition of.
    version: int = 0

    @property
    def assignment(self) -> TopicAssignment:
        return TopicAssignment(self.id, self.replicas, self.adding, self.removing)


class Memory(Protocol):
    """What was known before of nodes of the tree that cannot be read now. None, or empty: nothing."""

    def topic(self, name: str) -> TopicContext | None: ...

    def broker_overrides(self, broker: str) -> Mapping[str, str]: ...

    def group_overrides(self, group: str) -> Mapping[str, str]: ...


@dataclass(slots=True)
class ClusterContext:
    """Remembers what it holds."""

    cluster_id: str = ""
    controller_epoch: Epoch = NO_EPOCH
    #: Live brokers.
    brokers: dict[BrokerId, BrokerEndpoints] = field(default_factory=dict)
    #: Of the live brokers those that want to stop: they serve, and neither lead nor join an ISR any more.
    shutting_down: set[BrokerId] = field(default_factory=set)
    topics: dict[str, TopicContext] = field(default_factory=dict)
    names: dict[TopicId, str] = field(default_factory=dict)
    #: Broker id as text, or DEFAULT_BROKER -> overrides. Each has its znode.
    broker_configs: dict[str, dict[str, str]] = field(default_factory=dict)
    #: Group -> overrides. Each has its znode, and at least one.
    group_configs: dict[str, dict[str, str]] = field(default_factory=dict)
    #: Topics with a znode under /config/topics, whether they exist or not.
    config_nodes: set[str] = field(default_factory=set)
    #: Topics whose deletion was begun: they are in the tree still, and nowhere else.
    deleting: set[str] = field(default_factory=set)
    #: Replicas whose log directory failed, as (topic, partition, broker). Forgotten at a start, which tries again.
    failed_replicas: set[tuple[str, int, BrokerId]] = field(default_factory=set)

    def topic(self, name: str) -> TopicContext | None:
        return self.topics.get(name)

    def broker_overrides(self, broker: str) -> Mapping[str, str]:
        return self.broker_configs.get(broker, {})

    def group_overrides(self, group: str) -> Mapping[str, str]:
        return self.group_configs.get(group, {})

    def add_topic(self, topic: TopicContext) -> None:
        self.topics[topic.name] = topic
        if topic.id != ZERO_TOPIC_ID:
            self.names[topic.id] = topic.name
        self.config_nodes.add(topic.name)

    def remove_topic(self, name: str) -> None:
        topic = self.topics.pop(name, None)
        if topic is not None:
            self.names.pop(topic.id, None)
        self.config_nodes.discard(name)
        self.deleting.discard(name)
        self.failed_replicas = {replica for replica in self.failed_replicas if replica[0] != name}

    def served_topics(self) -> Iterable[TopicContext]:
        return (topic for name, topic in self.topics.items() if name not in self.deleting)

    def is_served(self, topic: str, partition: int, broker: BrokerId) -> bool:
        """Whether the broker has a role in the partition, which it hears of."""
        failed = self.failed_replicas
        return broker in self.brokers and not (failed and (topic, partition, broker) in failed)

    def is_live(self, topic: str, partition: int, broker: BrokerId) -> bool:
        """Whether the replica may lead and be in sync."""
        return broker not in self.shutting_down and self.is_served(topic, partition, broker)

    def live_replicas(self, topic: str, partition: int, replicas: Iterable[BrokerId]) -> tuple[BrokerId, ...]:
        return tuple([broker for broker in replicas if self.is_live(topic, partition, broker)])

    def partition_state(self, topic: TopicContext, partition: int, *, is_new: bool = False) -> PartitionState:
        """As it is announced to brokers."""
        replicas = topic.replicas[partition]
        offline = tuple([broker for broker in replicas if not self.is_live(topic.name, partition, broker)])
        known = topic.states.get(partition)
        state = known.state if known else LeaderAndIsr(self.controller_epoch, NO_BROKER, Epoch(0), ())
        return PartitionState(
            topic.name,
            partition,
            topic.id,
            self.controller_epoch,
            state.leader,
            state.leader_epoch,
            # One object for both where they are equal: thousands of partitions share little else.
            replicas if state.isr == replicas else state.isr,
            replicas,
            known.version if known else 0,
            offline,
            topic.adding.get(partition, ()),
            topic.removing.get(partition, ()),
            is_new,
        )

    def states_of(
        self, partitions: Iterable[tuple[TopicContext, Iterable[int]]], *, is_new: bool = False
    ) -> Steps[list[PartitionState]]:
        states: list[PartitionState] = []
        for topic, numbers in partitions:
            for piece in pieces(numbers, _STATES_A_STEP):
                states += [self.partition_state(topic, partition, is_new=is_new) for partition in piece]
                yield
        return states
