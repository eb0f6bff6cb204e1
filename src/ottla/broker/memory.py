"""What this broker was told of the cluster, for a controller in its place that cannot read a node of the tree.

The controller before it may have known more. What nobody remembers is gone for clients with the next announcement that
names everything; what this broker has served until now must not be.
"""

from __future__ import annotations

from collections.abc import Mapping

from ottla.controller.deciding.context import TopicContext, VersionedState
from ottla.coordination.znodes import LeaderAndIsr
from ottla.metadata import MetadataCache
from ottla.metadata.updates import DEFAULT_BROKER


class BrokerMemory:
    """Implements `Memory`."""

    def __init__(self, metadata: MetadataCache) -> None:
        self._metadata = metadata

    def topic(self, name: str) -> TopicContext | None:
        found = self._metadata.topic(name)
        if found is None:
            return None
        topic = TopicContext(name, found.id, {}, configs=dict(self._metadata.topic_config(name)))
        for state in found.partitions:
            number = state.partition
            topic.replicas[number] = state.replicas
            if state.adding_replicas:
                topic.adding[number] = state.adding_replicas
            if state.removing_replicas:
                topic.removing[number] = state.removing_replicas
            known = LeaderAndIsr(state.controller_epoch, state.leader, state.leader_epoch, state.isr)
            topic.states[number] = VersionedState(known, state.partition_epoch)
        return topic

    def broker_overrides(self, broker: str) -> Mapping[str, str]:
        metadata = self._metadata
        return metadata.default_broker_config() if broker == DEFAULT_BROKER else metadata.broker_config(int(broker))

    def group_overrides(self, group: str) -> Mapping[str, str]:
        return self._metadata.group_config(group)
