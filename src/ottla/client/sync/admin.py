"""Admin for threads."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any, Self

from ottla.client.admin.admin import TRANSACTION_TIMEOUT_MS_MAX
from ottla.client.admin.admin import Admin as AsyncAdmin
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
from ottla.client.errors import KafkaError
from ottla.client.producing.sequences import ProducerIdentity
from ottla.client.sync.described import described_by
from ottla.client.sync.loop_thread import LoopThread
from ottla.client.wire.world import ClientPorts
from ottla.model import TopicPartition


@described_by(AsyncAdmin)
class Admin:
    """The methods and results of `ottla.client.Admin`."""

    def __init__(
        self, settings: Mapping[str, Any] | None = None, /, *, world: ClientPorts | None = None, **keywords: Any
    ) -> None:
        self._inner = AsyncAdmin(settings, world=world, **keywords)
        self.settings = self._inner.settings
        self._thread = LoopThread("ottla-admin")
        self._closed = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        if not self._closed:
            self._thread.check_may_wait()
            self._closed = True
            try:
                self._thread.run(self._inner.close)
            finally:
                self._thread.end()

    def describe_cluster(self) -> ClusterDescription:
        return self._thread.run(self._inner.describe_cluster)

    def describe_features(self) -> dict[str, FeatureLevels]:
        return self._thread.run(self._inner.describe_features)

    def update_features(
        self,
        levels: Mapping[str, int],
        change: FeatureChange = FeatureChange.UPGRADE,
        *,
        validate_only: bool = False,
        timeout_ms: int | None = None,
    ) -> None:
        self._thread.run(
            lambda: self._inner.update_features(levels, change, validate_only=validate_only, timeout_ms=timeout_ms)
        )

    def list_topics(self, *, internal: bool = False) -> list[str]:
        return self._thread.run(lambda: self._inner.list_topics(internal=internal))

    def describe_topics(self, names: Iterable[str] | None = None) -> dict[str, TopicDescription]:
        return self._thread.run(lambda: self._inner.describe_topics(names))

    def describe_topic(self, name: str) -> TopicDescription:
        return self._thread.run(lambda: self._inner.describe_topic(name))

    def create_topics(
        self, topics: Sequence[NewTopic], *, validate_only: bool = False, timeout_ms: int | None = None
    ) -> dict[str, CreatedTopic]:
        return self._thread.run(
            lambda: self._inner.create_topics(topics, validate_only=validate_only, timeout_ms=timeout_ms)
        )

    def create_topic(
        self,
        name: str,
        partitions: int = -1,
        replication_factor: int = -1,
        configs: Mapping[str, str | None] | None = None,
    ) -> CreatedTopic:
        return self._thread.run(lambda: self._inner.create_topic(name, partitions, replication_factor, configs))

    def delete_topics(self, names: Iterable[str], *, timeout_ms: int | None = None) -> None:
        self._thread.run(lambda: self._inner.delete_topics(names, timeout_ms=timeout_ms))

    def delete_topic(self, name: str) -> None:
        self._thread.run(lambda: self._inner.delete_topic(name))

    def create_partitions(
        self,
        counts: Mapping[str, int],
        *,
        assignments: Mapping[str, Sequence[Sequence[int]]] | None = None,
        validate_only: bool = False,
        timeout_ms: int | None = None,
    ) -> None:
        self._thread.run(
            lambda: self._inner.create_partitions(
                counts, assignments=assignments, validate_only=validate_only, timeout_ms=timeout_ms
            )
        )

    def elect_leaders(
        self,
        kind: ElectionKind = ElectionKind.PREFERRED,
        partitions: Iterable[TopicPartition] | None = None,
        *,
        timeout_ms: int | None = None,
    ) -> dict[TopicPartition, KafkaError | None]:
        return self._thread.run(lambda: self._inner.elect_leaders(kind, partitions, timeout_ms=timeout_ms))

    def alter_partition_reassignments(
        self, replicas: Mapping[TopicPartition, Sequence[int] | None], *, timeout_ms: int | None = None
    ) -> None:
        self._thread.run(lambda: self._inner.alter_partition_reassignments(replicas, timeout_ms=timeout_ms))

    def list_partition_reassignments(
        self, partitions: Iterable[TopicPartition] | None = None, *, timeout_ms: int | None = None
    ) -> dict[TopicPartition, Reassignment]:
        return self._thread.run(lambda: self._inner.list_partition_reassignments(partitions, timeout_ms=timeout_ms))

    def describe_configs(
        self,
        resources: Iterable[ConfigResource],
        *,
        names: Sequence[str] | None = None,
        synonyms: bool = False,
        documentation: bool = False,
    ) -> dict[ConfigResource, dict[str, ConfigEntry]]:
        return self._thread.run(
            lambda: self._inner.describe_configs(resources, names=names, synonyms=synonyms, documentation=documentation)
        )

    def incremental_alter_configs(
        self, changes: Mapping[ConfigResource, Sequence[ConfigChange]], *, validate_only: bool = False
    ) -> None:
        self._thread.run(lambda: self._inner.incremental_alter_configs(changes, validate_only=validate_only))

    def alter_configs(
        self, configs: Mapping[ConfigResource, Mapping[str, str | None]], *, validate_only: bool = False
    ) -> None:
        self._thread.run(lambda: self._inner.alter_configs(configs, validate_only=validate_only))

    def list_offsets(
        self, timestamps: Mapping[TopicPartition, int], *, isolation_level: int = 0
    ) -> dict[TopicPartition, ListedOffset]:
        return self._thread.run(lambda: self._inner.list_offsets(timestamps, isolation_level=isolation_level))

    def delete_records(
        self, before: Mapping[TopicPartition, int], *, timeout_ms: int | None = None
    ) -> dict[TopicPartition, int]:
        return self._thread.run(lambda: self._inner.delete_records(before, timeout_ms=timeout_ms))

    def describe_log_dirs(
        self, brokers: Iterable[int] | None = None, topics: Mapping[str, Sequence[int]] | None = None
    ) -> dict[int, dict[str, LogDirDescription]]:
        return self._thread.run(lambda: self._inner.describe_log_dirs(brokers, topics))

    def alter_replica_log_dirs(self, moves: Mapping[int, Mapping[TopicPartition, str]]) -> None:
        self._thread.run(lambda: self._inner.alter_replica_log_dirs(moves))

    def describe_producers(
        self, partitions: Iterable[TopicPartition]
    ) -> dict[TopicPartition, list[ProducerDescription]]:
        return self._thread.run(lambda: self._inner.describe_producers(partitions))

    def list_transactions(
        self,
        *,
        states: Iterable[str] | None = None,
        producer_ids: Iterable[int] | None = None,
        duration_ms: int | None = None,
        pattern: str | None = None,
    ) -> list[TransactionListing]:
        return self._thread.run(
            lambda: self._inner.list_transactions(
                states=states, producer_ids=producer_ids, duration_ms=duration_ms, pattern=pattern
            )
        )

    def describe_transactions(self, transactional_ids: Iterable[str]) -> dict[str, TransactionDescription]:
        return self._thread.run(lambda: self._inner.describe_transactions(transactional_ids))

    def fence_producers(self, transactional_ids: Iterable[str]) -> dict[str, ProducerIdentity]:
        return self._thread.run(lambda: self._inner.fence_producers(transactional_ids))

    def open_transactions(self, partitions: Iterable[TopicPartition]) -> list[OpenTransaction]:
        return self._thread.run(lambda: self._inner.open_transactions(partitions))

    def find_hanging_transactions(
        self, partitions: Iterable[TopicPartition], *, max_transaction_timeout_ms: int = TRANSACTION_TIMEOUT_MS_MAX
    ) -> list[OpenTransaction]:
        return self._thread.run(
            lambda: self._inner.find_hanging_transactions(
                partitions, max_transaction_timeout_ms=max_transaction_timeout_ms
            )
        )

    def abort_transaction(
        self, partition: TopicPartition, producer_id: int, producer_epoch: int, coordinator_epoch: int = 0
    ) -> None:
        self._thread.run(
            lambda: self._inner.abort_transaction(partition, producer_id, producer_epoch, coordinator_epoch)
        )

    def list_groups(
        self, *, states: Iterable[str] | None = None, types: Iterable[str] | None = None
    ) -> list[GroupListing]:
        return self._thread.run(lambda: self._inner.list_groups(states=states, types=types))

    def describe_groups(self, group_ids: Iterable[str]) -> dict[str, GroupDescription]:
        return self._thread.run(lambda: self._inner.describe_groups(group_ids))

    def describe_group(self, group_id: str) -> GroupDescription:
        return self._thread.run(lambda: self._inner.describe_group(group_id))

    def delete_groups(self, group_ids: Iterable[str]) -> None:
        self._thread.run(lambda: self._inner.delete_groups(group_ids))

    def delete_group(self, group_id: str) -> None:
        self._thread.run(lambda: self._inner.delete_group(group_id))

    def list_groups_offsets(
        self,
        groups: Iterable[str] | Mapping[str, Iterable[TopicPartition] | None],
        *,
        require_stable: bool = False,
    ) -> dict[str, dict[TopicPartition, CommittedOffset]]:
        return self._thread.run(lambda: self._inner.list_groups_offsets(groups, require_stable=require_stable))

    def list_group_offsets(
        self, group_id: str, partitions: Iterable[TopicPartition] | None = None, *, require_stable: bool = False
    ) -> dict[TopicPartition, CommittedOffset]:
        return self._thread.run(
            lambda: self._inner.list_group_offsets(group_id, partitions, require_stable=require_stable)
        )

    def alter_group_offsets(self, group_id: str, offsets: Mapping[TopicPartition, int | CommittedOffset]) -> None:
        self._thread.run(lambda: self._inner.alter_group_offsets(group_id, offsets))

    def delete_group_offsets(self, group_id: str, partitions: Iterable[TopicPartition]) -> None:
        self._thread.run(lambda: self._inner.delete_group_offsets(group_id, partitions))
