"""Announcements as Kafka 3.9's requests: LeaderAndIsr, UpdateMetadata and StopReplica, and what their answers say.

All of it in steps. A request carries `PARTITIONS_A_REQUEST` at most, so that neither end holds its loop while it is
encoded or decoded in one piece; many partitions go in several requests, in their order.

UpdateMetadata has no word for "everything": the last request of a whole update says FULL and names all topics, those
that came in requests before it without their partitions. A reader that looks at no more than partitions (Kafka's
brokers) learns the same. A deleted topic is one whose partitions have the leader `LEADER_DURING_DELETE`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import IntEnum
from typing import Final, NamedTuple

from ottla.controller.announcing.origin import Origin
from ottla.controller.deciding.orders import EPOCH_DURING_DELETE, ReplicaStop
from ottla.metadata.updates import BrokerEndpoints, PartitionState
from ottla.model import ZERO_TOPIC_ID, BrokerId, Epoch, ErrorCode, TopicId, TopicPartition
from ottla.protocol.generated.leader_and_isr import (
    LeaderAndIsrLiveLeader,
    LeaderAndIsrPartitionState,
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    LeaderAndIsrTopicState,
)
from ottla.protocol.generated.stop_replica import (
    StopReplicaPartitionState,
    StopReplicaRequest,
    StopReplicaResponse,
    StopReplicaTopicState,
)
from ottla.protocol.generated.update_metadata import (
    UpdateMetadataBroker,
    UpdateMetadataEndpoint,
    UpdateMetadataPartitionState,
    UpdateMetadataRequest,
    UpdateMetadataTopicState,
)
from ottla.steps import Steps, pieces

#: Some three milliseconds to encode, and a few kilobytes for each hundred.
PARTITIONS_A_REQUEST: Final = 500
#: Each takes some microseconds.
_PARTITIONS_A_STEP: Final = 16

#: Kafka's mark in the place of a leader.
LEADER_DURING_DELETE: Final = BrokerId(-2)

#: Kafka's numbers of security protocols.
SECURITY_PROTOCOLS: Final[Mapping[str, int]] = {"PLAINTEXT": 0, "SSL": 1, "SASL_PLAINTEXT": 2, "SASL_SSL": 3}


class RequestType(IntEnum):
    """Kafka's numbers: whether a request names everything. Controllers before 3.9 do not say."""

    UNKNOWN = 0
    INCREMENTAL = 1
    FULL = 2


class ShownTopic(NamedTuple):
    """Of a topic that a broker was shown."""

    id: TopicId
    #: One more than the highest number.
    partitions: int


def leader_and_isr(
    origin: Origin, states: Sequence[PartitionState], leaders: Sequence[LeaderAndIsrLiveLeader]
) -> Steps[LeaderAndIsrRequest]:
    topics: dict[str, LeaderAndIsrTopicState] = {}
    for piece in pieces(states, _PARTITIONS_A_STEP):
        for state in piece:
            topic = topics.get(state.topic)
            if topic is None:
                topic = topics[state.topic] = LeaderAndIsrTopicState(
                    topic_name=state.topic, topic_id=state.topic_id, partition_states=[]
                )
            topic.partition_states.append(
                LeaderAndIsrPartitionState(
                    partition_index=state.partition,
                    controller_epoch=state.controller_epoch,
                    leader=state.leader,
                    leader_epoch=state.leader_epoch,
                    isr=list(state.isr),
                    partition_epoch=state.partition_epoch,
                    replicas=list(state.replicas),
                    adding_replicas=list(state.adding_replicas),
                    removing_replicas=list(state.removing_replicas),
                    is_new=state.is_new,
                )
            )
        yield
    return LeaderAndIsrRequest(
        controller_id=origin.controller_id,
        controller_epoch=origin.controller_epoch,
        broker_epoch=origin.broker_epoch,
        type=RequestType.INCREMENTAL,
        topic_states=list(topics.values()),
        live_leaders=list(leaders),
    )


def live_leaders(
    states: Sequence[PartitionState], brokers: Mapping[BrokerId, BrokerEndpoints], listener: str
) -> Steps[list[LeaderAndIsrLiveLeader]]:
    """Where followers find the leaders of these partitions: on the listener of brokers among themselves."""
    wanted: dict[BrokerId, None] = {}
    for piece in pieces(states):
        wanted.update((state.leader, None) for state in piece)
        yield
    found: list[LeaderAndIsrLiveLeader] = []
    for leader in wanted:
        broker = brokers.get(leader)
        endpoint = None if broker is None else broker.endpoint(listener)
        if endpoint is not None:
            found.append(LeaderAndIsrLiveLeader(broker_id=leader, host_name=endpoint.host, port=endpoint.port))
    return found


def refused_roles(
    response: LeaderAndIsrResponse, names: Mapping[TopicId, str]
) -> Steps[dict[TopicPartition, ErrorCode]]:
    """The partitions with an error in an answer (from version 5 on by topics' ids); those of unknown ids are none."""
    failed: dict[TopicPartition, ErrorCode] = {}
    for topic in response.topics:
        name = names.get(TopicId(topic.topic_id))
        for piece in pieces(topic.partition_errors if name is not None else ()):
            for found in piece:
                if found.error_code != ErrorCode.NONE:
                    failed[TopicPartition(name or "", found.partition_index)] = error_code(found.error_code)
            yield
    for piece in pieces(response.partition_errors):
        for found in piece:
            if found.error_code != ErrorCode.NONE:
                failed[TopicPartition(found.topic_name, found.partition_index)] = error_code(found.error_code)
        yield
    return failed


def update_metadata(
    origin: Origin,
    states: Sequence[PartitionState],
    brokers: Sequence[UpdateMetadataBroker],
    all_topics: Mapping[str, ShownTopic] | None = None,
) -> Steps[UpdateMetadataRequest]:
    """With `all_topics` it is the last one of a whole update."""
    topics: dict[str, UpdateMetadataTopicState] = {}
    for piece in pieces(states, _PARTITIONS_A_STEP):
        for state in piece:
            topic = topics.get(state.topic)
            if topic is None:
                topic = topics[state.topic] = _topic(state.topic, state.topic_id)
            topic.partition_states.append(
                UpdateMetadataPartitionState(
                    partition_index=state.partition,
                    controller_epoch=state.controller_epoch,
                    leader=state.leader,
                    leader_epoch=state.leader_epoch,
                    isr=list(state.isr),
                    zk_version=state.partition_epoch,
                    replicas=list(state.replicas),
                    offline_replicas=list(state.offline_replicas),
                )
            )
        yield
    for piece_ in pieces(() if all_topics is None else all_topics.items()):
        for name, shown in piece_:
            if name not in topics:
                topics[name] = _topic(name, shown.id)
        yield
    return UpdateMetadataRequest(
        controller_id=origin.controller_id,
        controller_epoch=origin.controller_epoch,
        broker_epoch=origin.broker_epoch,
        type=RequestType.INCREMENTAL if all_topics is None else RequestType.FULL,
        topic_states=list(topics.values()),
        live_brokers=list(brokers),
    )


def _topic(name: str, topic_id: TopicId) -> UpdateMetadataTopicState:
    return UpdateMetadataTopicState(topic_name=name, topic_id=topic_id, partition_states=[])


def live_brokers(brokers: Iterable[BrokerEndpoints]) -> list[UpdateMetadataBroker]:
    return [
        UpdateMetadataBroker(
            id=broker.id,
            endpoints=[
                UpdateMetadataEndpoint(
                    port=endpoint.port,
                    host=endpoint.host,
                    listener=endpoint.listener,
                    security_protocol=SECURITY_PROTOCOLS.get(endpoint.security_protocol, 0),
                )
                for endpoint in broker.endpoints
            ],
            rack=broker.rack,
        )
        for broker in brokers
    ]


def deleted_topics(origin: Origin, topics: Mapping[str, ShownTopic]) -> Steps[list[PartitionState]]:
    """What stands in UpdateMetadata in place of topics that are being deleted."""
    leader, epoch = LEADER_DURING_DELETE, Epoch(EPOCH_DURING_DELETE)
    states: list[PartitionState] = []
    for name, topic in topics.items():
        for piece in pieces(range(topic.partitions)):
            states += [
                PartitionState(name, number, topic.id, origin.controller_epoch, leader, epoch, (), (), 0)
                for number in piece
            ]
            yield
    return states


def stop_replica(origin: Origin, stops: Sequence[ReplicaStop]) -> Steps[StopReplicaRequest]:
    topics: dict[str, StopReplicaTopicState] = {}
    for piece in pieces(stops, _PARTITIONS_A_STEP):
        for tp, leader_epoch, delete in piece:
            topic = topics.get(tp.topic)
            if topic is None:
                topic = topics[tp.topic] = StopReplicaTopicState(topic_name=tp.topic, partition_states=[])
            topic.partition_states.append(
                StopReplicaPartitionState(
                    partition_index=tp.partition, leader_epoch=leader_epoch, delete_partition=delete
                )
            )
        yield
    return StopReplicaRequest(
        controller_id=origin.controller_id,
        controller_epoch=origin.controller_epoch,
        broker_epoch=origin.broker_epoch,
        topic_states=list(topics.values()),
    )


def refused_stops(response: StopReplicaResponse) -> Steps[dict[TopicPartition, ErrorCode]]:
    failed: dict[TopicPartition, ErrorCode] = {}
    for piece in pieces(response.partition_errors):
        for found in piece:
            if found.error_code != ErrorCode.NONE:
                failed[TopicPartition(found.topic_name, found.partition_index)] = error_code(found.error_code)
        yield
    return failed


def error_code(number: int) -> ErrorCode:
    """A peer may be of a version that has more of them."""
    try:
        return ErrorCode(number)
    except ValueError:
        return ErrorCode.UNKNOWN_SERVER_ERROR


def names_of(states: Sequence[PartitionState]) -> dict[TopicId, str]:
    """Of topics with an id: answers name them by it."""
    return {state.topic_id: state.topic for state in states if state.topic_id != ZERO_TOPIC_ID}
