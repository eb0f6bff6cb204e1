"""What may be asked of the controller: every change of topics, partitions and overrides goes through it.

Handlers hold this protocol and nothing else: one broker is its own controller, in a cluster the call travels to the
active one. Requests are answered item by item, in their order, and never raise: what went wrong is an error code with a
sentence. `timeout_ms` bounds all waiting. A request whose turn comes later than that changes nothing; one that has had
its turn, and whose brokers take longer, is carried out all the same. Both are answered REQUEST_TIMED_OUT.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import Final, NamedTuple, Protocol

from ottla.metadata.updates import PartitionState
from ottla.model import ZERO_TOPIC_ID, BrokerId, Epoch, ErrorCode, TopicId, TopicPartition

#: For a number of partitions or replicas: what the broker's configuration says.
BROKER_DEFAULT: Final = -1
#: Producer ids are handed to brokers in blocks of this many, as in Kafka.
PRODUCER_ID_BLOCK_SIZE: Final = 1000


class TopicToCreate(NamedTuple):
    name: str
    partitions: int = BROKER_DEFAULT
    replication_factor: int = BROKER_DEFAULT
    #: (partition, replicas) where the placement is the caller's; then both numbers above are BROKER_DEFAULT.
    assignments: tuple[tuple[int, tuple[BrokerId, ...]], ...] = ()
    configs: Mapping[str, str | None] = {}


class TopicCreation(NamedTuple):
    name: str
    error: ErrorCode = ErrorCode.NONE
    message: str | None = None
    topic_id: TopicId = ZERO_TOPIC_ID
    partitions: int = -1
    replication_factor: int = -1
    #: The topic's overrides.
    configs: Mapping[str, str] = {}


class TopicRef(NamedTuple):
    """A topic by its name or, where that is None, by its id."""

    name: str | None
    id: TopicId = ZERO_TOPIC_ID


class DeletedTopic(NamedTuple):
    #: None where only an unknown id was given.
    name: str | None
    id: TopicId = ZERO_TOPIC_ID
    error: ErrorCode = ErrorCode.NONE
    message: str | None = None


class NewPartitions(NamedTuple):
    topic: str
    #: How many the topic shall have in all.
    total: int
    #: The replicas of each added partition; None leaves them to the controller.
    assignments: tuple[tuple[BrokerId, ...], ...] | None = None


class TopicResult(NamedTuple):
    topic: str
    error: ErrorCode = ErrorCode.NONE
    message: str | None = None


class ConfigTargetType(IntEnum):
    """Kafka's numbers, of those that have overrides in the tree."""

    TOPIC = 2
    BROKER = 4
    GROUP = 32


class ConfigTarget(NamedTuple):
    type: ConfigTargetType
    #: A topic, a broker's id, "" for all brokers, or a group.
    name: str


class ConfigChanges(NamedTuple):
    """Single changes of a resource's overrides."""

    resource: ConfigTarget
    #: (name, operation 0 set, 1 delete, 2 append, 3 subtract, value)
    changes: tuple[tuple[str, int, str | None], ...]


class ConfigOverrides(NamedTuple):
    """All overrides of a resource: what is not named is no longer overridden."""

    resource: ConfigTarget
    overrides: Mapping[str, str | None]


class ConfigResult(NamedTuple):
    resource: ConfigTarget
    error: ErrorCode = ErrorCode.NONE
    message: str | None = None


class ProducerIdRange(NamedTuple):
    """A block of ids that nobody else was ever given. On an error `length` is 0."""

    first: int
    length: int
    error: ErrorCode = ErrorCode.NONE
    message: str | None = None


class IsrChange(NamedTuple):
    """What a leader asks its ISR to become (AlterPartition)."""

    tp: TopicPartition
    leader_epoch: Epoch
    partition_epoch: int
    isr: tuple[BrokerId, ...]
    #: The registration of each of them, in the same order; empty where the leader is of a version that does not say.
    #: A follower that has registered again since is not taken: it may have lost what it had.
    isr_epochs: tuple[int, ...] = ()
    #: Zero where the leader does not say it. Another topic may have the name by now.
    topic_id: TopicId = ZERO_TOPIC_ID


class IsrResult(NamedTuple):
    tp: TopicPartition
    error: ErrorCode
    #: As it is now, with or without the change; None where the partition is unknown.
    state: PartitionState | None = None


class ElectionKind(IntEnum):
    """Kafka's numbers."""

    #: Of the first assigned replica, where it is in the ISR.
    PREFERRED = 0
    #: Of any live replica, where nobody of the ISR is left.
    UNCLEAN = 1


class PartitionResult(NamedTuple):
    tp: TopicPartition
    error: ErrorCode = ErrorCode.NONE
    message: str | None = None


class ShutdownAnswer(NamedTuple):
    """Of a broker that wants to stop: it may once nothing remains."""

    error: ErrorCode
    #: What it still leads.
    remaining: tuple[TopicPartition, ...] = ()


class Reassignment(NamedTuple):
    tp: TopicPartition
    #: None cancels the one that is under way.
    replicas: tuple[BrokerId, ...] | None
    #: Whether as many replicas are asked for as there are: another number is refused.
    keeps_factor: bool = False


class OngoingReassignment(NamedTuple):
    tp: TopicPartition
    replicas: tuple[BrokerId, ...]
    adding: tuple[BrokerId, ...]
    removing: tuple[BrokerId, ...]


class UpgradeType(IntEnum):
    """Kafka's numbers. Both kinds of downgrade are the same for the features that can be set here."""

    UPGRADE = 1
    SAFE_DOWNGRADE = 2
    UNSAFE_DOWNGRADE = 3


class FeatureUpdate(NamedTuple):
    feature: str
    level: int
    #: As the request has it; others than those of `UpgradeType` are refused.
    upgrade_type: int


class Controller(Protocol):
    async def create_topics(
        self, topics: Sequence[TopicToCreate], *, validate_only: bool = False, timeout_ms: int | None = None
    ) -> list[TopicCreation]:
        """When this returns without an error, the topic's leaders serve it and Metadata shows it."""
        ...

    async def delete_topics(self, topics: Sequence[TopicRef], *, timeout_ms: int | None = None) -> list[DeletedTopic]:
        """When this returns without an error the topic is gone from Metadata, and stays gone."""
        ...

    async def create_partitions(
        self, topics: Sequence[NewPartitions], *, validate_only: bool = False, timeout_ms: int | None = None
    ) -> list[TopicResult]: ...

    async def alter_configs(
        self, resources: Sequence[ConfigChanges | ConfigOverrides], *, validate_only: bool = False
    ) -> list[ConfigResult]:
        """IncrementalAlterConfigs brings ConfigChanges, AlterConfigs brings ConfigOverrides."""
        ...

    async def allocate_producer_ids(self, broker_id: BrokerId) -> ProducerIdRange: ...

    async def alter_isr(
        self, broker_id: BrokerId, changes: Sequence[IsrChange], *, broker_epoch: int = -1
    ) -> list[IsrResult]:
        """From the leader of the partitions, and under which registration; -1 where it does not say."""
        ...

    async def shut_down(self, broker_id: BrokerId, broker_epoch: int) -> ShutdownAnswer:
        """From a broker that wants to stop: others lead its partitions, and it leaves their ISRs."""
        ...

    async def elect_leaders(
        self, kind: ElectionKind, partitions: Sequence[TopicPartition] | None, *, timeout_ms: int | None = None
    ) -> tuple[ErrorCode, list[PartitionResult]]:
        """Of all partitions where none are named: then only those that needed it are answered.

        Where the request as a whole is refused, one result stands for all partitions, for its message.
        """
        ...

    async def alter_reassignments(
        self, changes: Sequence[Reassignment], *, timeout_ms: int | None = None
    ) -> tuple[ErrorCode, list[PartitionResult]]: ...

    async def reassignments(
        self, partitions: Sequence[TopicPartition] | None
    ) -> tuple[ErrorCode, list[OngoingReassignment]]:
        """Those under way, of all partitions where none are named."""
        ...

    async def update_features(
        self, updates: Sequence[FeatureUpdate], *, validate_only: bool = False, timeout_ms: int | None = None
    ) -> tuple[ErrorCode, str | None]:
        """All of them or none. Brokers hear of it from the tree, soon after this returns."""
        ...

    async def replicas_failed(self, broker_id: BrokerId, partitions: Sequence[TopicPartition]) -> ErrorCode:
        """The log directory of these replicas failed: others lead from now on, or nobody."""
        ...

    async def replicas_recovered(self, broker_id: BrokerId, partitions: Sequence[TopicPartition]) -> ErrorCode:
        """There is room for these replicas, which could not be opened before. Again for the same: nothing."""
        ...
