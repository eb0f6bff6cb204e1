"""What Admin takes and gives: plain, typed values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum

from ottla.client.errors import KafkaError
from ottla.client.wire.listed_offset import (
    EARLIEST,
    EARLIEST_LOCAL,
    LATEST,
    LATEST_TIERED,
    MAX_TIMESTAMP,
    ListedOffset,
)
from ottla.client.wire.metadata import Node
from ottla.model import ZERO_TOPIC_ID, TopicPartition

__all__ = [
    "EARLIEST",
    "EARLIEST_LOCAL",
    "LATEST",
    "LATEST_TIERED",
    "MAX_TIMESTAMP",
    "ClusterDescription",
    "ConfigChange",
    "ConfigEntry",
    "ConfigOperation",
    "ConfigResource",
    "ConfigSource",
    "ConfigSynonym",
    "CreatedTopic",
    "ElectionKind",
    "ListedOffset",
    "LogDirDescription",
    "NewTopic",
    "PartitionDescription",
    "ProducerDescription",
    "Reassignment",
    "ReplicaSize",
    "ResourceType",
    "TopicDescription",
]


class ResourceType(IntEnum):
    """What has configuration."""

    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


class ConfigSource(IntEnum):
    """Where a configuration's value comes from."""

    UNKNOWN = 0
    TOPIC_CONFIG = 1
    DYNAMIC_BROKER_CONFIG = 2
    DYNAMIC_DEFAULT_BROKER_CONFIG = 3
    STATIC_BROKER_CONFIG = 4
    DEFAULT_CONFIG = 5
    DYNAMIC_BROKER_LOGGER_CONFIG = 6
    CLIENT_METRICS_CONFIG = 7
    GROUP_CONFIG = 8


class ConfigOperation(IntEnum):
    SET = 0
    DELETE = 1
    #: For values that are lists: adds to them and takes from them.
    APPEND = 2
    SUBTRACT = 3


@dataclass(frozen=True, slots=True)
class ConfigResource:
    type: ResourceType
    #: A topic's name, or a broker's id; the empty name stands for all brokers.
    name: str

    @classmethod
    def topic(cls, name: str) -> ConfigResource:
        return cls(ResourceType.TOPIC, name)

    @classmethod
    def broker(cls, broker_id: int | str) -> ConfigResource:
        return cls(ResourceType.BROKER, str(broker_id))


@dataclass(frozen=True, slots=True)
class ConfigChange:
    name: str
    value: str | None
    operation: ConfigOperation = ConfigOperation.SET


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigSynonym:
    name: str
    value: str | None
    source: ConfigSource


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigEntry:
    name: str
    #: None also where it is secret.
    value: str | None
    source: ConfigSource
    read_only: bool
    sensitive: bool
    #: Kafka's number of the value's type; 0 where the broker does not say.
    type: int = 0
    documentation: str | None = None
    synonyms: tuple[ConfigSynonym, ...] = ()


@dataclass(frozen=True, slots=True)
class NewTopic:
    """A topic to be created. -1 partitions or replicas stand for the brokers' defaults."""

    name: str
    partitions: int = -1
    replication_factor: int = -1
    configs: Mapping[str, str | None] = field(default_factory=dict)
    #: Instead of the two numbers: each partition's brokers, the preferred leader first.
    assignments: Mapping[int, Sequence[int]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class CreatedTopic:
    name: str
    topic_id: bytes = ZERO_TOPIC_ID
    #: -1 and empty where the broker is too old to say, or may not.
    partitions: int = -1
    replication_factor: int = -1
    configs: Mapping[str, str | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionDescription:
    partition: int
    #: None while nobody leads it.
    leader: int | None
    leader_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    offline_replicas: tuple[int, ...]
    error: KafkaError | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicDescription:
    name: str
    topic_id: bytes
    internal: bool
    partitions: tuple[PartitionDescription, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterDescription:
    cluster_id: str | None
    controller_id: int | None
    brokers: tuple[Node, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaSize:
    size: int
    #: How far it lies behind: the high watermark, or the replica that it will replace.
    offset_lag: int
    #: It is a copy that is being moved here.
    is_future: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class LogDirDescription:
    path: str
    error: KafkaError | None
    replicas: Mapping[TopicPartition, ReplicaSize]
    #: None where the broker does not say.
    total_bytes: int | None
    usable_bytes: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerDescription:
    """A producer that a partition remembers."""

    producer_id: int
    producer_epoch: int
    last_sequence: int
    last_timestamp: int
    coordinator_epoch: int | None
    #: Where its transaction begins that is open here.
    transaction_start_offset: int | None


class ElectionKind(IntEnum):
    #: Of the first assigned replica, where it is in sync.
    PREFERRED = 0
    #: Of any replica that is there, where none in sync is: what the others had and it has not is lost.
    UNCLEAN = 1


@dataclass(frozen=True, slots=True)
class Reassignment:
    """A partition on its way to other brokers."""

    #: All that have it, those that come and those that go among them.
    replicas: tuple[int, ...]
    adding: tuple[int, ...]
    removing: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FeatureLevels:
    """A feature of the cluster as a whole."""

    #: What all brokers do; 0 where the feature is off.
    level: int
    #: What the broker that was asked is able to do.
    least: int
    most: int


class FeatureChange(IntEnum):
    """Kafka's numbers: which way a level may go."""

    UPGRADE = 1
    SAFE_DOWNGRADE = 2
    #: Also where something is lost.
    UNSAFE_DOWNGRADE = 3
