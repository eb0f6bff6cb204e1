"""Admin: what is asked of a cluster beside its records.

    async with Admin(bootstrap_servers="localhost:9092") as admin:
        await admin.create_topic("orders", partitions=3, configs={"retention.ms": "86400000"})
        for partition in (await admin.describe_topic("orders")).partitions:
            print(partition.partition, partition.leader, partition.isr)

Methods that take several things give a mapping from each to its result if all went well. Otherwise they raise: the
only error there is, or `SomeFailed`, whose `errors` and `results` say what became of each.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any, Final, Self

from ottla.client.admin import configs as admin_configs
from ottla.client.admin import features as admin_features
from ottla.client.admin import group_offsets as admin_group_offsets
from ottla.client.admin import groups as admin_groups
from ottla.client.admin import logs as admin_logs
from ottla.client.admin import replicas as admin_replicas
from ottla.client.admin import topics as admin_topics
from ottla.client.admin import transactions as admin_transactions
from ottla.client.admin.arguments import (
    check_changes,
    check_configs,
    check_counts,
    check_moves,
    checked_brokers,
    checked_by_partition,
    checked_change,
    checked_commits,
    checked_groups,
    checked_isolation,
    checked_kind,
    checked_levels,
    checked_names,
    checked_new_partitions,
    checked_new_topics,
    checked_numbers,
    checked_producers,
    checked_replicas,
    checked_resources,
)
from ottla.client.admin.group_results import CommittedOffset, GroupDescription, GroupListing
from ottla.client.admin.results import (
    ClusterDescription,
    ConfigChange,
    ConfigEntry,
    ConfigResource,
    CreatedTopic,
    ElectionKind,
    FeatureChange,
    FeatureLevels,
    ListedOffset,
    LogDirDescription,
    NewTopic,
    ProducerDescription,
    Reassignment,
    TopicDescription,
)
from ottla.client.admin.transaction_results import OpenTransaction, TransactionDescription, TransactionListing
from ottla.client.arguments import (
    INT16_MAX,
    INT32_MAX,
    INT64_MAX,
    checked_integer,
    checked_partitions,
    checked_text,
    checked_topic,
)
from ottla.client.errors import KafkaError
from ottla.client.producing.sequences import ProducerIdentity
from ottla.client.settings import AdminSettings, parse_settings
from ottla.client.wire.cluster import Cluster
from ottla.client.wire.offsets import list_offsets
from ottla.client.wire.world import ClientPorts, real_world
from ottla.model import TopicPartition

#: The last of Kafka's codes that stand for a time: the earliest offset that is still to be uploaded.
_TIME_CODE_MIN: Final = -6
#: Brokers let no transaction be open for longer, unless `transaction.max.timeout.ms` says otherwise.
TRANSACTION_TIMEOUT_MS_MAX: Final = 900_000


class Admin:
    """One client; safe to use from several tasks of its loop."""

    def __init__(
        self, settings: Mapping[str, Any] | None = None, /, *, world: ClientPorts | None = None, **keywords: Any
    ) -> None:
        self.settings = parse_settings(AdminSettings, settings, keywords)
        self.cluster = Cluster(self.settings, world or real_world())

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        await self.cluster.close()

    # The cluster

    async def describe_cluster(self) -> ClusterDescription:
        return await self.cluster.retrying(lambda: admin_topics.describe_cluster(self.cluster))

    async def describe_features(self) -> dict[str, FeatureLevels]:
        """The cluster's features, as one of its brokers knows them."""
        return await self.cluster.retrying(lambda: admin_features.describe(self.cluster))

    async def update_features(
        self,
        levels: Mapping[str, int],
        change: FeatureChange = FeatureChange.UPGRADE,
        *,
        validate_only: bool = False,
        timeout_ms: int | None = None,
    ) -> None:
        """Sets levels, all of them or none. Brokers show it soon after this returns."""
        wanted = checked_levels(levels)
        await admin_features.update(
            self.cluster, wanted, checked_change(change), self._timeout(timeout_ms), validate_only=validate_only
        )

    # Topics

    async def list_topics(self, *, internal: bool = False) -> list[str]:
        """Names, sorted; Kafka's own topics only where they are asked for."""
        topics = await admin_topics.describe(self.cluster, None)
        return sorted(topic.name for topic in topics.values() if internal or not topic.internal)

    async def describe_topics(self, names: Iterable[str] | None = None) -> dict[str, TopicDescription]:
        """These topics, or all of them."""
        return await admin_topics.describe(self.cluster, None if names is None else checked_names(names, "topics"))

    async def describe_topic(self, name: str) -> TopicDescription:
        return (await self.describe_topics([checked_topic(name)]))[name]

    async def create_topics(
        self, topics: Sequence[NewTopic], *, validate_only: bool = False, timeout_ms: int | None = None
    ) -> dict[str, CreatedTopic]:
        wanted = checked_new_topics(topics)
        return await admin_topics.create(self.cluster, wanted, self._timeout(timeout_ms), validate_only=validate_only)

    async def create_topic(
        self,
        name: str,
        partitions: int = -1,
        replication_factor: int = -1,
        configs: Mapping[str, str | None] | None = None,
    ) -> CreatedTopic:
        created = await self.create_topics(
            [NewTopic(name, partitions, replication_factor, {} if configs is None else configs)]
        )
        return created[name]

    async def delete_topics(self, names: Iterable[str], *, timeout_ms: int | None = None) -> None:
        await admin_topics.delete(self.cluster, checked_names(names, "topics"), self._timeout(timeout_ms))

    async def delete_topic(self, name: str) -> None:
        await self.delete_topics([checked_topic(name)])

    async def create_partitions(
        self,
        counts: Mapping[str, int],
        *,
        assignments: Mapping[str, Sequence[Sequence[int]]] | None = None,
        validate_only: bool = False,
        timeout_ms: int | None = None,
    ) -> None:
        """Raises topics' numbers of partitions to `counts`; `assignments` name the new partitions' brokers."""
        check_counts(counts)
        placed = {} if assignments is None else checked_new_partitions(assignments)
        await admin_topics.create_partitions(
            self.cluster, counts, placed, self._timeout(timeout_ms), validate_only=validate_only
        )

    # Replicas

    async def elect_leaders(
        self,
        kind: ElectionKind = ElectionKind.PREFERRED,
        partitions: Iterable[TopicPartition] | None = None,
        *,
        timeout_ms: int | None = None,
    ) -> dict[TopicPartition, KafkaError | None]:
        """What became of each partition; ELECTION_NOT_NEEDED is an error of its own. Without `partitions` of all, and
        then only those are named that needed one."""
        chosen = None if partitions is None else checked_partitions(partitions)
        return await admin_replicas.elect_leaders(self.cluster, checked_kind(kind), chosen, self._timeout(timeout_ms))

    async def alter_partition_reassignments(
        self, replicas: Mapping[TopicPartition, Sequence[int] | None], *, timeout_ms: int | None = None
    ) -> None:
        """Begins to move partitions to these brokers, the first of which is to lead; None calls a move off."""
        wanted = checked_replicas(replicas)
        await admin_replicas.alter_reassignments(self.cluster, wanted, self._timeout(timeout_ms))

    async def list_partition_reassignments(
        self, partitions: Iterable[TopicPartition] | None = None, *, timeout_ms: int | None = None
    ) -> dict[TopicPartition, Reassignment]:
        """Those that are under way: of these partitions, or all."""
        chosen = None if partitions is None else checked_partitions(partitions)
        return await admin_replicas.list_reassignments(self.cluster, chosen, self._timeout(timeout_ms))

    # Configuration

    async def describe_configs(
        self,
        resources: Iterable[ConfigResource],
        *,
        names: Sequence[str] | None = None,
        synonyms: bool = False,
        documentation: bool = False,
    ) -> dict[ConfigResource, dict[str, ConfigEntry]]:
        """All configurations of each resource, or those with these names."""
        chosen = None if names is None else checked_names(names, "names")
        return await admin_configs.describe(
            self.cluster, checked_resources(resources), chosen, synonyms=synonyms, documentation=documentation
        )

    async def incremental_alter_configs(
        self, changes: Mapping[ConfigResource, Sequence[ConfigChange]], *, validate_only: bool = False
    ) -> None:
        """Changes what is named and leaves the rest."""
        check_changes(changes)
        await admin_configs.alter_incrementally(self.cluster, changes, validate_only=validate_only)

    async def alter_configs(
        self, configs: Mapping[ConfigResource, Mapping[str, str | None]], *, validate_only: bool = False
    ) -> None:
        """Replaces all that was set: what is not named goes back to its default."""
        check_configs(configs)
        await admin_configs.alter(self.cluster, configs, validate_only=validate_only)

    # Logs

    async def list_offsets(
        self, timestamps: Mapping[TopicPartition, int], *, isolation_level: int = 0
    ) -> dict[TopicPartition, ListedOffset]:
        """Offsets by EARLIEST, LATEST, MAX_TIMESTAMP or a time in ms: the first record as young, or offset -1."""
        asked = checked_by_partition(timestamps, "time", _TIME_CODE_MIN)
        return await list_offsets(self.cluster, asked, isolation_level=checked_isolation(isolation_level))

    async def delete_records(
        self, before: Mapping[TopicPartition, int], *, timeout_ms: int | None = None
    ) -> dict[TopicPartition, int]:
        """Deletes what lies before these offsets (-1: everything); gives each partition's new first offset."""
        offsets = checked_by_partition(before, "offset", -1)
        return await admin_logs.delete_records(self.cluster, offsets, self._timeout(timeout_ms))

    async def describe_log_dirs(
        self, brokers: Iterable[int] | None = None, topics: Mapping[str, Sequence[int]] | None = None
    ) -> dict[int, dict[str, LogDirDescription]]:
        """By broker (None: all) and path; with `topics` only those partitions are listed."""
        chosen = None if brokers is None else checked_brokers(brokers)
        wanted = None if topics is None else checked_numbers(topics)
        return await admin_logs.describe_log_dirs(self.cluster, chosen, wanted)

    async def alter_replica_log_dirs(self, moves: Mapping[int, Mapping[TopicPartition, str]]) -> None:
        """Moves replicas to directories: by broker and partition."""
        check_moves(moves)
        await admin_logs.alter_replica_log_dirs(self.cluster, moves)

    async def describe_producers(
        self, partitions: Iterable[TopicPartition]
    ) -> dict[TopicPartition, list[ProducerDescription]]:
        return await admin_logs.describe_producers(self.cluster, checked_partitions(partitions))

    # Transactions

    async def list_transactions(
        self,
        *,
        states: Iterable[str] | None = None,
        producer_ids: Iterable[int] | None = None,
        duration_ms: int | None = None,
        pattern: str | None = None,
    ) -> list[TransactionListing]:
        """All transactional ids, or those in these states ("Ongoing", "Empty", ...), of these producers, that have been
        open for longer than so long, whose whole id a regular expression (RE2) matches."""
        return await admin_transactions.list_transactions(
            self.cluster,
            states=[] if states is None else checked_names(states, "states"),
            producer_ids=[] if producer_ids is None else checked_producers(producer_ids),
            duration_ms=None if duration_ms is None else checked_integer(duration_ms, "duration_ms", INT64_MAX),
            pattern=None if pattern is None else checked_text(pattern, "pattern"),
        )

    async def describe_transactions(self, transactional_ids: Iterable[str]) -> dict[str, TransactionDescription]:
        """The error of one that nobody knows is TRANSACTIONAL_ID_NOT_FOUND."""
        ids = checked_names(transactional_ids, "transactional_ids")
        return await admin_transactions.describe_transactions(self.cluster, ids)

    async def fence_producers(self, transactional_ids: Iterable[str]) -> dict[str, ProducerIdentity]:
        """Puts their producers out, and has what these left open aborted."""
        ids = checked_names(transactional_ids, "transactional_ids")
        return await admin_transactions.fence_producers(self.cluster, ids)

    async def open_transactions(self, partitions: Iterable[TopicPartition]) -> list[OpenTransaction]:
        """Those that are open in these partitions, as their leaders know them."""
        return await admin_transactions.open_transactions(self.cluster, checked_partitions(partitions))

    async def find_hanging_transactions(
        self, partitions: Iterable[TopicPartition], *, max_transaction_timeout_ms: int = TRANSACTION_TIMEOUT_MS_MAX
    ) -> list[OpenTransaction]:
        """Those that are open in these partitions, longer than any may be, and that no coordinator will end."""
        older_than = checked_integer(max_transaction_timeout_ms, "max_transaction_timeout_ms", INT32_MAX)
        return await admin_transactions.find_hanging(self.cluster, checked_partitions(partitions), older_than)

    async def abort_transaction(
        self, partition: TopicPartition, producer_id: int, producer_epoch: int, coordinator_epoch: int = 0
    ) -> None:
        """Ends a hanging transaction in one partition: its leader writes the marker that no coordinator will."""
        (tp,) = checked_partitions([partition])
        producer = ProducerIdentity(
            checked_integer(producer_id, "producer_id", INT64_MAX),
            checked_integer(producer_epoch, "producer_epoch", INT16_MAX),
        )
        epoch = checked_integer(coordinator_epoch, "coordinator_epoch", INT32_MAX)
        await admin_transactions.abort_transaction(self.cluster, tp, producer, epoch)

    # Groups

    async def list_groups(
        self, *, states: Iterable[str] | None = None, types: Iterable[str] | None = None
    ) -> list[GroupListing]:
        """All groups, or those in these states ("Stable", "Empty", ...) and of these types ("classic", "consumer")."""
        chosen = [
            None if one is None else checked_names(one, what) for one, what in ((states, "states"), (types, "types"))
        ]
        return await admin_groups.list_groups(self.cluster, *chosen)

    async def describe_groups(self, group_ids: Iterable[str]) -> dict[str, GroupDescription]:
        """Classic groups and those of the newer protocol; the error of one that is not there is GROUP_ID_NOT_FOUND."""
        return await admin_groups.describe_groups(self.cluster, checked_names(group_ids, "groups"))

    async def describe_group(self, group_id: str) -> GroupDescription:
        return (await self.describe_groups([group_id]))[group_id]

    async def delete_groups(self, group_ids: Iterable[str]) -> None:
        """With all that they have committed. One that has members is refused: NON_EMPTY_GROUP."""
        await admin_groups.delete_groups(self.cluster, checked_names(group_ids, "groups"))

    async def delete_group(self, group_id: str) -> None:
        await self.delete_groups([group_id])

    async def list_groups_offsets(
        self,
        groups: Iterable[str] | Mapping[str, Iterable[TopicPartition] | None],
        *,
        require_stable: bool = False,
    ) -> dict[str, dict[TopicPartition, CommittedOffset]]:
        """What groups have committed: everything, or for these partitions. What nobody has committed is not there.

        With `require_stable` it waits for open transactions that hold offsets of the group.
        """
        wanted = checked_groups(groups)
        return await admin_group_offsets.list_group_offsets(self.cluster, wanted, require_stable=require_stable)

    async def list_group_offsets(
        self, group_id: str, partitions: Iterable[TopicPartition] | None = None, *, require_stable: bool = False
    ) -> dict[TopicPartition, CommittedOffset]:
        """The same of one group."""
        wanted = None if partitions is None else checked_partitions(partitions)
        found = await self.list_groups_offsets({checked_text(group_id, "group"): wanted}, require_stable=require_stable)
        return found[group_id]

    async def alter_group_offsets(self, group_id: str, offsets: Mapping[TopicPartition, int | CommittedOffset]) -> None:
        """Where the group goes on. Refused while it has members: UNKNOWN_MEMBER_ID."""
        wanted = checked_commits(offsets)
        checked_text(group_id, "group")
        await admin_group_offsets.alter_group_offsets(self.cluster, group_id, wanted)

    async def delete_group_offsets(self, group_id: str, partitions: Iterable[TopicPartition]) -> None:
        """Forgets these positions. Refused for topics that members subscribe to: GROUP_SUBSCRIBED_TO_TOPIC."""
        checked_text(group_id, "group")
        await admin_group_offsets.delete_group_offsets(self.cluster, group_id, checked_partitions(partitions))

    def _timeout(self, timeout_ms: int | None) -> int:
        return (
            self.settings.request_timeout_ms
            if timeout_ms is None
            else checked_integer(timeout_ms, "timeout_ms", INT32_MAX)
        )
