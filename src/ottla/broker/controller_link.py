"""The active controller on another broker: what may be asked of it, as Kafka's requests over a link.

One object is for one try. It raises `NotAsked` where nothing was sent, or the other broker says that it is not the one,
and `OutcomeUnknown` where it did not answer: who asks, and how often, is decided in `controller_access.py`. Requests go
in the versions of Kafka 3.9, in whose ZooKeeper mode any of its brokers may be the controller. They are made with the
rights of this broker, which has asked its own authorizer about the client before.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Protocol, TypeVar

from ottla.broker.controller_access import NotAsked, OutcomeUnknown
from ottla.controller.announcing.requests import error_code
from ottla.controller.interface import (
    ConfigChanges,
    ConfigOverrides,
    ConfigResult,
    DeletedTopic,
    ElectionKind,
    FeatureUpdate,
    IsrChange,
    IsrResult,
    NewPartitions,
    OngoingReassignment,
    PartitionResult,
    ProducerIdRange,
    Reassignment,
    ShutdownAnswer,
    TopicCreation,
    TopicRef,
    TopicResult,
    TopicToCreate,
)
from ottla.interbroker.links import LinkLost, LinkRefused
from ottla.metadata import MetadataCache, PartitionState
from ottla.model import NO_BROKER, NO_EPOCH, ZERO_TOPIC_ID, BrokerId, Epoch, ErrorCode, TopicId, TopicPartition
from ottla.protocol.generated import allocate_producer_ids as ids
from ottla.protocol.generated import alter_configs as replacing
from ottla.protocol.generated import alter_partition as isr
from ottla.protocol.generated import alter_partition_reassignments as reassigning
from ottla.protocol.generated import controlled_shutdown as leaving
from ottla.protocol.generated import create_partitions as growing
from ottla.protocol.generated import create_topics as creating
from ottla.protocol.generated import delete_topics as deleting
from ottla.protocol.generated import elect_leaders as electing
from ottla.protocol.generated import incremental_alter_configs as changing
from ottla.protocol.generated import list_partition_reassignments as listing
from ottla.protocol.generated import update_features as finalizing
from ottla.protocol.message import Message

T = TypeVar("T")

#: The controller answers when a request's own time is over; this is for the way of that answer.
_ANSWER_MS: Final = 1_000
#: Of a setting that stands at its topic.
_TOPIC_SOURCE: Final = 1


_ConfigAnswer = changing.AlterConfigsResourceResponse | replacing.AlterConfigsResourceResponse


class Link(Protocol):
    async def call(self, request: Message, version: int, *, timeout_ms: int) -> Message: ...


class RemoteController:
    """Implements `Controller`, for one try that has `left_ms` milliseconds."""

    def __init__(self, link: Link, left_ms: int, broker_epoch: int, metadata: MetadataCache) -> None:
        self._link = link
        self._left_ms = left_ms
        #: Of this broker.
        self._broker_epoch = broker_epoch
        self._metadata = metadata

    async def _ask(self, request: Message, version: int, answer: type[T]) -> T:
        try:
            found = await self._link.call(request, version, timeout_ms=self._left_ms + _ANSWER_MS)
        except LinkRefused as fault:
            raise NotAsked(str(fault)) from fault
        except LinkLost as fault:
            raise OutcomeUnknown(str(fault)) from fault
        assert isinstance(found, answer)
        return found

    # Topics.

    async def create_topics(
        self, topics: Sequence[TopicToCreate], *, validate_only: bool = False, timeout_ms: int | None = None
    ) -> list[TopicCreation]:
        request = creating.CreateTopicsRequest(
            topics=[
                creating.CreatableTopic(
                    name=topic.name,
                    num_partitions=topic.partitions,
                    replication_factor=topic.replication_factor,
                    assignments=[
                        creating.CreatableReplicaAssignment(partition_index=number, broker_ids=list(replicas))
                        for number, replicas in topic.assignments
                    ],
                    configs=[
                        creating.CreatableTopicConfig(name=name, value=value) for name, value in topic.configs.items()
                    ],
                )
                for topic in topics
            ],
            timeout_ms=self._left_ms,
            validate_only=validate_only,
        )
        answer = await self._ask(request, 7, creating.CreateTopicsResponse)
        found = {
            each.name: TopicCreation(
                each.name,
                error_code(each.error_code),
                each.error_message,
                TopicId(bytes(each.topic_id)),
                each.num_partitions,
                each.replication_factor,
                {
                    config.name: config.value
                    for config in each.configs or ()
                    if config.config_source == _TOPIC_SOURCE and config.value is not None
                },
            )
            for each in answer.topics
        }
        _check([each.error for each in found.values()])
        return [found.get(topic.name) or TopicCreation(topic.name, *_UNANSWERED) for topic in topics]

    async def delete_topics(self, topics: Sequence[TopicRef], *, timeout_ms: int | None = None) -> list[DeletedTopic]:
        request = deleting.DeleteTopicsRequest(
            topics=[deleting.DeleteTopicState(name=topic.name, topic_id=topic.id) for topic in topics],
            timeout_ms=self._left_ms,
        )
        answer = await self._ask(request, 6, deleting.DeleteTopicsResponse)
        results = [
            DeletedTopic(each.name, TopicId(bytes(each.topic_id)), error_code(each.error_code), each.error_message)
            for each in answer.responses
        ]
        _check([each.error for each in results])
        return results

    async def create_partitions(
        self, topics: Sequence[NewPartitions], *, validate_only: bool = False, timeout_ms: int | None = None
    ) -> list[TopicResult]:
        request = growing.CreatePartitionsRequest(
            topics=[
                growing.CreatePartitionsTopic(
                    name=topic.topic,
                    count=topic.total,
                    assignments=None
                    if topic.assignments is None
                    else [
                        growing.CreatePartitionsAssignment(broker_ids=list(replicas)) for replicas in topic.assignments
                    ],
                )
                for topic in topics
            ],
            timeout_ms=self._left_ms,
            validate_only=validate_only,
        )
        answer = await self._ask(request, 3, growing.CreatePartitionsResponse)
        results = [TopicResult(each.name, error_code(each.error_code), each.error_message) for each in answer.results]
        _check([each.error for each in results])
        return results

    # Settings.

    async def alter_configs(
        self, resources: Sequence[ConfigChanges | ConfigOverrides], *, validate_only: bool = False
    ) -> list[ConfigResult]:
        """Requests of one kind carry one kind of change each."""
        single = [each for each in resources if isinstance(each, ConfigChanges)]
        whole = [each for each in resources if isinstance(each, ConfigOverrides)]
        results: dict[tuple[int, str], ConfigResult] = {}
        answered: Iterable[_ConfigAnswer]
        if single:
            answered = (await self._alter_singly(single, validate_only=validate_only)).responses
            results |= _config_results(single, answered)
        if whole:
            answered = (await self._alter_whole(whole, validate_only=validate_only)).responses
            results |= _config_results(whole, answered)
        _check([each.error for each in results.values()])
        return [
            results.get((each.resource.type, each.resource.name)) or ConfigResult(each.resource, *_UNANSWERED)
            for each in resources
        ]

    async def _alter_singly(
        self, resources: Sequence[ConfigChanges], *, validate_only: bool
    ) -> changing.IncrementalAlterConfigsResponse:
        request = changing.IncrementalAlterConfigsRequest(
            resources=[
                changing.AlterConfigsResource(
                    resource_type=each.resource.type,
                    resource_name=each.resource.name,
                    configs=[
                        changing.AlterableConfig(name=name, config_operation=operation, value=value)
                        for name, operation, value in each.changes
                    ],
                )
                for each in resources
            ],
            validate_only=validate_only,
        )
        return await self._ask(request, 1, changing.IncrementalAlterConfigsResponse)

    async def _alter_whole(
        self, resources: Sequence[ConfigOverrides], *, validate_only: bool
    ) -> replacing.AlterConfigsResponse:
        request = replacing.AlterConfigsRequest(
            resources=[
                replacing.AlterConfigsResource(
                    resource_type=each.resource.type,
                    resource_name=each.resource.name,
                    configs=[
                        replacing.AlterableConfig(name=name, value=value) for name, value in each.overrides.items()
                    ],
                )
                for each in resources
            ],
            validate_only=validate_only,
        )
        return await self._ask(request, 2, replacing.AlterConfigsResponse)

    # What brokers ask for themselves.

    async def allocate_producer_ids(self, broker_id: BrokerId) -> ProducerIdRange:
        request = ids.AllocateProducerIdsRequest(broker_id=broker_id, broker_epoch=self._broker_epoch)
        answer = await self._ask(request, 0, ids.AllocateProducerIdsResponse)
        error = error_code(answer.error_code)
        _check([error])
        return ProducerIdRange(answer.producer_id_start, answer.producer_id_len, error)

    async def alter_isr(
        self, broker_id: BrokerId, changes: Sequence[IsrChange], *, broker_epoch: int = -1
    ) -> list[IsrResult]:
        topics: dict[str, isr.RequestTopicData] = {}
        names: dict[TopicId, str] = {}
        for change in changes:
            name = change.tp.topic
            topic_id = self._topic_id(change)
            if topic_id == ZERO_TOPIC_ID:
                continue
            topic = topics.setdefault(name, isr.RequestTopicData(topic_id=topic_id, partitions=[]))
            names[topic_id] = name
            epochs = change.isr_epochs or (-1,) * len(change.isr)
            topic.partitions.append(
                isr.RequestPartitionData(
                    partition_index=change.tp.partition,
                    leader_epoch=change.leader_epoch,
                    new_isr_with_epochs=[
                        isr.BrokerState(broker_id=member, broker_epoch=epoch)
                        for member, epoch in zip(change.isr, epochs, strict=True)
                    ],
                    partition_epoch=change.partition_epoch,
                )
            )
        epoch = self._broker_epoch if broker_epoch < 0 else broker_epoch
        request = isr.AlterPartitionRequest(broker_id=broker_id, broker_epoch=epoch, topics=list(topics.values()))
        answer = await self._ask(request, 3, isr.AlterPartitionResponse)
        whole = error_code(answer.error_code)
        _check([whole])
        if whole is not ErrorCode.NONE:
            return [IsrResult(change.tp, whole) for change in changes]
        found = {
            TopicPartition(names[TopicId(bytes(topic.topic_id))], each.partition_index): each
            for topic in answer.topics
            if TopicId(bytes(topic.topic_id)) in names
            for each in topic.partitions
        }
        return [self._isr_result(change, found.get(change.tp)) for change in changes]

    def _topic_id(self, change: IsrChange) -> TopicId:
        """The leader says it: clients may not be shown the topic yet."""
        if change.topic_id != ZERO_TOPIC_ID:
            return change.topic_id
        known = self._metadata.topic(change.tp.topic)
        return ZERO_TOPIC_ID if known is None else known.id

    def _isr_result(self, change: IsrChange, answer: isr.ResponsePartitionData | None) -> IsrResult:
        tp = change.tp
        if answer is None:
            return IsrResult(tp, ErrorCode.UNKNOWN_TOPIC_ID)
        error = error_code(answer.error_code)
        if error is not ErrorCode.NONE:
            return IsrResult(tp, error)
        known = self._metadata.partition(*tp) or PartitionState(
            *tp, self._topic_id(change), self._metadata.controller_epoch, NO_BROKER, NO_EPOCH, (), (), 0
        )
        state: PartitionState = known._replace(
            leader=BrokerId(answer.leader_id),
            leader_epoch=Epoch(answer.leader_epoch),
            isr=tuple(map(BrokerId, answer.isr)),
            partition_epoch=answer.partition_epoch,
        )
        return IsrResult(tp, error, state)

    async def shut_down(self, broker_id: BrokerId, broker_epoch: int) -> ShutdownAnswer:
        request = leaving.ControlledShutdownRequest(broker_id=broker_id, broker_epoch=broker_epoch)
        answer = await self._ask(request, 3, leaving.ControlledShutdownResponse)
        error = error_code(answer.error_code)
        _check([error])
        remaining = [TopicPartition(each.topic_name, each.partition_index) for each in answer.remaining_partitions]
        return ShutdownAnswer(error, tuple(remaining))

    # Leaders and replicas.

    async def elect_leaders(
        self, kind: ElectionKind, partitions: Sequence[TopicPartition] | None, *, timeout_ms: int | None = None
    ) -> tuple[ErrorCode, list[PartitionResult]]:
        named = None
        if partitions is not None:
            named = [
                electing.TopicPartitions(topic=topic, partitions=numbers)
                for topic, numbers in _by_topic(partitions).items()
            ]
        request = electing.ElectLeadersRequest(election_type=kind, topic_partitions=named, timeout_ms=self._left_ms)
        answer = await self._ask(request, 2, electing.ElectLeadersResponse)
        error = error_code(answer.error_code)
        results = [
            PartitionResult(
                TopicPartition(topic.topic, each.partition_id), error_code(each.error_code), each.error_message
            )
            for topic in answer.replica_election_results
            for each in topic.partition_result
        ]
        _check([error] if error is not ErrorCode.NONE or not results else [each.error for each in results])
        return error, results

    async def alter_reassignments(
        self, changes: Sequence[Reassignment], *, timeout_ms: int | None = None
    ) -> tuple[ErrorCode, list[PartitionResult]]:
        topics: dict[str, reassigning.ReassignableTopic] = {}
        for change in changes:
            topic = topics.setdefault(
                change.tp.topic, reassigning.ReassignableTopic(name=change.tp.topic, partitions=[])
            )
            replicas: list[int] | None = None if change.replicas is None else list(change.replicas)
            topic.partitions.append(
                reassigning.ReassignablePartition(partition_index=change.tp.partition, replicas=replicas)
            )
        request = reassigning.AlterPartitionReassignmentsRequest(timeout_ms=self._left_ms, topics=list(topics.values()))
        answer = await self._ask(request, 0, reassigning.AlterPartitionReassignmentsResponse)
        error = error_code(answer.error_code)
        _check([error])
        return error, [
            PartitionResult(
                TopicPartition(found.name, each.partition_index), error_code(each.error_code), each.error_message
            )
            for found in answer.responses
            for each in found.partitions
        ]

    async def update_features(
        self, updates: Sequence[FeatureUpdate], *, validate_only: bool = False, timeout_ms: int | None = None
    ) -> tuple[ErrorCode, str | None]:
        request = finalizing.UpdateFeaturesRequest(
            timeout_ms=self._left_ms,
            feature_updates=[
                finalizing.FeatureUpdateKey(
                    feature=each.feature, max_version_level=each.level, upgrade_type=each.upgrade_type
                )
                for each in updates
            ],
            validate_only=validate_only,
        )
        answer = await self._ask(request, 1, finalizing.UpdateFeaturesResponse)
        # A controller of Kafka 3.9 answers each feature by itself.
        failed = next((each for each in answer.results if each.error_code), answer)
        error = error_code(answer.error_code or failed.error_code)
        _check([error])
        return error, answer.error_message or (failed.error_message if error else None)

    async def reassignments(
        self, partitions: Sequence[TopicPartition] | None
    ) -> tuple[ErrorCode, list[OngoingReassignment]]:
        named = None
        if partitions is not None:
            named = [
                listing.ListPartitionReassignmentsTopics(name=topic, partition_indexes=numbers)
                for topic, numbers in _by_topic(partitions).items()
            ]
        request = listing.ListPartitionReassignmentsRequest(timeout_ms=self._left_ms, topics=named)
        answer = await self._ask(request, 0, listing.ListPartitionReassignmentsResponse)
        error = error_code(answer.error_code)
        _check([error])
        return error, [
            OngoingReassignment(
                TopicPartition(topic.name, each.partition_index),
                tuple(map(BrokerId, each.replicas)),
                tuple(map(BrokerId, each.adding_replicas)),
                tuple(map(BrokerId, each.removing_replicas)),
            )
            for topic in answer.topics
            for each in topic.partitions
        ]


#: Of something that was asked for and is not in the answer.
_UNANSWERED: Final = (ErrorCode.UNKNOWN_SERVER_ERROR, "The controller's answer does not mention it.")


def _check(errors: Sequence[ErrorCode]) -> None:
    if errors and all(error is ErrorCode.NOT_CONTROLLER for error in errors):
        raise NotAsked("the broker that was asked is not the controller")


def _by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for tp in partitions:
        found.setdefault(tp.topic, []).append(tp.partition)
    return found


def _config_results(
    asked: Sequence[ConfigChanges] | Sequence[ConfigOverrides],
    answered: Iterable[_ConfigAnswer],
) -> Mapping[tuple[int, str], ConfigResult]:
    resources = {(int(each.resource.type), each.resource.name): each.resource for each in asked}
    return {
        key: ConfigResult(resources[key], error_code(each.error_code), each.error_message)
        for each in answered
        if (key := (each.resource_type, each.resource_name)) in resources
    }
