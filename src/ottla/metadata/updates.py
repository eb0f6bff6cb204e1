"""What a controller announces to brokers, in the shape of LeaderAndIsr and UpdateMetadata.

One broker that is its own controller gets the same things through a call; in a cluster they come in requests. Where
they come from makes no difference to their readers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from ottla.model import NO_BROKER, BrokerId, Epoch, TopicId

#: The name under which overrides for all brokers stand beside those of single brokers.
DEFAULT_BROKER: Final = "<default>"


class Endpoint(NamedTuple):
    listener: str
    security_protocol: str
    host: str
    port: int


class BrokerEndpoints(NamedTuple):
    """A live broker."""

    id: BrokerId
    endpoints: tuple[Endpoint, ...]
    rack: str | None
    #: Of its registration: a broker that registers again gets a higher one.
    epoch: int

    def endpoint(self, listener: str) -> Endpoint | None:
        for endpoint in self.endpoints:
            if endpoint.listener == listener:
                return endpoint
        return None


class PartitionState(NamedTuple):
    """One partition as its controller last decided."""

    topic: str
    partition: int
    topic_id: TopicId
    controller_epoch: Epoch
    #: NO_BROKER while nobody can lead: the partition stays in the metadata, so that keys keep their partitions.
    leader: BrokerId
    leader_epoch: Epoch
    isr: tuple[BrokerId, ...]
    #: The first is the preferred leader.
    replicas: tuple[BrokerId, ...]
    #: Rises with each change of leader or ISR: the version of the partition's znode.
    partition_epoch: int
    offline_replicas: tuple[BrokerId, ...] = ()
    adding_replicas: tuple[BrokerId, ...] = ()
    removing_replicas: tuple[BrokerId, ...] = ()
    #: A replica of it may create its log; of another one a missing log means a lost disk.
    is_new: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataUpdate:
    """A change of what brokers know. What is None or empty stays as it is."""

    controller_epoch: Epoch
    #: Everything: what is not named is not there any more. Otherwise only what has changed.
    whole: bool = False
    cluster_id: str | None = None
    controller_id: BrokerId | None = None
    #: All live brokers.
    brokers: Sequence[BrokerEndpoints] | None = None
    partitions: Sequence[PartitionState] = ()
    topics_deleted: Sequence[str] = ()
    #: Topic -> all its overrides.
    topic_configs: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    #: Broker id as text, or DEFAULT_BROKER -> all its overrides.
    broker_configs: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    #: Group -> all its overrides.
    group_configs: Mapping[str, Mapping[str, str]] = field(default_factory=dict)


UNKNOWN_CONTROLLER: Final = NO_BROKER
