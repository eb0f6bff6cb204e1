"""What this broker knows of the cluster: brokers, topics, leaders, overrides; and the updates that teach it."""

from __future__ import annotations

from ottla.metadata.cache import MetadataCache, TopicMetadata
from ottla.metadata.updates import BrokerEndpoints, Endpoint, MetadataUpdate, PartitionState

__all__ = ["BrokerEndpoints", "Endpoint", "MetadataCache", "MetadataUpdate", "PartitionState", "TopicMetadata"]
