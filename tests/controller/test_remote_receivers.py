"""Another broker as the controller reaches it: what is said in which requests, and what its answers mean."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

import pytest

from ottla.controller.announcing.origin import AnnouncementRefused, BrokerNotReached, Origin
from ottla.controller.announcing.remote import RemoteReceiver
from ottla.controller.announcing.requests import PARTITIONS_A_REQUEST, RequestType
from ottla.controller.deciding.orders import EPOCH_DURING_DELETE, ReplicaStop
from ottla.interbroker.links import LinkLost
from ottla.metadata import BrokerEndpoints, Endpoint, MetadataUpdate, PartitionState
from ottla.model import BrokerId, Epoch, ErrorCode, TopicId, TopicPartition
from ottla.ports.memory import memory_ports
from ottla.protocol.generated.leader_and_isr import (
    LeaderAndIsrPartitionError,
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    LeaderAndIsrTopicError,
)
from ottla.protocol.generated.stop_replica import StopReplicaPartitionError, StopReplicaRequest, StopReplicaResponse
from ottla.protocol.generated.update_metadata import UpdateMetadataRequest, UpdateMetadataResponse
from ottla.protocol.message import Message

T = TypeVar("T")

ORIGIN = Origin(BrokerId(1), Epoch(7), 4321)
ID = TopicId(bytes(range(16)))
OTHER_ID = TopicId(bytes(range(1, 17)))
TWO = BrokerEndpoints(BrokerId(2), (Endpoint("PLAINTEXT", "PLAINTEXT", "two", 9092),), "r2", 99)
THREE = BrokerEndpoints(BrokerId(3), (Endpoint("OTHER", "SASL_SSL", "three", 9093),), None, 100)


def state(partition: int, topic: str = "t", topic_id: TopicId = ID, **fields: Any) -> PartitionState:
    brokers = (BrokerId(2), BrokerId(3))
    made = PartitionState(
        topic, partition, topic_id, Epoch(7), BrokerId(2), Epoch(4), brokers, brokers, 11, is_new=True
    )
    return made._replace(**fields)


def stop(partition: int, leader_epoch: int = EPOCH_DURING_DELETE) -> ReplicaStop:
    return ReplicaStop(TopicPartition("t", partition), leader_epoch, delete=True)


class Broker:
    """The other end: keeps what it was sent, as it stands on the wire, and answers as it is told."""

    def __init__(self) -> None:
        self.got: list[Any] = []
        self.versions: list[int] = []
        self.answers: dict[type[Message], Callable[[Any], Message]] = {
            LeaderAndIsrRequest: lambda _: LeaderAndIsrResponse(topics=[]),
            UpdateMetadataRequest: lambda _: UpdateMetadataResponse(),
            StopReplicaRequest: lambda _: StopReplicaResponse(partition_errors=[]),
        }
        #: How many calls from now on are lost.
        self.lost = 0
        #: How long each call may take.
        self.times_ms: list[int] = []

    async def call(self, request: Message, version: int, *, timeout_ms: int) -> Message:
        raw = request.encode(version)
        read, end = type(request).decode(raw, version)
        assert end == len(raw)
        assert read == request
        if self.lost:
            self.lost -= 1
            raise LinkLost("cut")
        self.got.append(read)
        self.times_ms.append(timeout_ms)
        self.versions.append(version)
        return self.answers[type(request)](read)


@pytest.fixture
def other() -> Broker:
    return Broker()


@pytest.fixture
def receiver(other: Broker) -> RemoteReceiver:
    return RemoteReceiver(other, ORIGIN, "PLAINTEXT", lambda: 0)


def run(work: Coroutine[Any, Any, T]) -> T:
    return memory_ports(seed=1).loop.run_until_complete(work)


def whole(*states: PartitionState) -> MetadataUpdate:
    return MetadataUpdate(
        controller_epoch=Epoch(7),
        whole=True,
        cluster_id="c",
        controller_id=BrokerId(1),
        brokers=[TWO, THREE],
        partitions=states,
        topic_configs={"t": {"retention.ms": "1"}},
    )


def test_roles_say_who_sends_them_and_where_leaders_are(other: Broker, receiver: RemoteReceiver) -> None:
    async def work() -> None:
        await receiver.on_metadata_update(whole())
        adding = (BrokerId(3),)
        await receiver.on_leader_and_isr(
            [state(0, adding_replicas=adding), state(1, leader=BrokerId(3)), state(0, "u", OTHER_ID)]
        )

    run(work())
    request = other.got[-1]
    assert other.versions[-1] == 7
    assert (request.controller_id, request.controller_epoch, request.broker_epoch) == ORIGIN
    assert request.type == RequestType.INCREMENTAL
    assert [(topic.topic_name, topic.topic_id, len(topic.partition_states)) for topic in request.topic_states] == [
        ("t", ID, 2),
        ("u", OTHER_ID, 1),
    ]
    first = request.topic_states[0].partition_states[0]
    assert (first.leader, first.leader_epoch, first.isr, first.partition_epoch, first.replicas) == (
        2,
        4,
        [2, 3],
        11,
        [2, 3],
    )
    assert (first.adding_replicas, first.removing_replicas, first.is_new) == ([3], [], True)
    # Broker 3 has no such listener.
    assert [(leader.broker_id, leader.host_name, leader.port) for leader in request.live_leaders] == [(2, "two", 9092)]


def test_many_partitions_go_in_several_requests_in_their_order(other: Broker, receiver: RemoteReceiver) -> None:
    states = [state(number) for number in range(2 * PARTITIONS_A_REQUEST + 1)]

    async def work() -> None:
        await receiver.on_leader_and_isr(states)
        await receiver.on_metadata_update(whole(*states))
        await receiver.on_stop_replicas([stop(each.partition) for each in states])

    run(work())
    for kind in (LeaderAndIsrRequest, UpdateMetadataRequest, StopReplicaRequest):
        requests = [each for each in other.got if isinstance(each, kind)]
        numbers = [[each.partition_index for each in request.topic_states[0].partition_states] for request in requests]
        assert [len(some) for some in numbers] == [PARTITIONS_A_REQUEST, PARTITIONS_A_REQUEST, 1]
        assert [each for some in numbers for each in some] == list(range(2 * PARTITIONS_A_REQUEST + 1))


def test_only_a_failed_directory_is_a_failure(other: Broker, receiver: RemoteReceiver) -> None:
    def answered(_: Any) -> Message:
        codes = (0, ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.STALE_CONTROLLER_EPOCH, 30_000)
        found = [LeaderAndIsrPartitionError(partition_index=at, error_code=code) for at, code in enumerate(codes)]
        return LeaderAndIsrResponse(
            topics=[
                LeaderAndIsrTopicError(topic_id=ID, partition_errors=found),
                LeaderAndIsrTopicError(topic_id=OTHER_ID, partition_errors=found),
            ]
        )

    other.answers[LeaderAndIsrRequest] = answered
    failed = run(receiver.on_leader_and_isr([state(number) for number in range(4)]))
    assert failed == {("t", 1): ErrorCode.KAFKA_STORAGE_ERROR}
    assert run(receiver.on_new_replicas([state(0)])) is False


@pytest.mark.parametrize("error", [ErrorCode.STALE_CONTROLLER_EPOCH, ErrorCode.STALE_BROKER_EPOCH])
def test_a_refusal_of_the_whole_raises(other: Broker, receiver: RemoteReceiver, error: ErrorCode) -> None:
    other.answers = {
        LeaderAndIsrRequest: lambda _: LeaderAndIsrResponse(error_code=error, topics=[]),
        UpdateMetadataRequest: lambda _: UpdateMetadataResponse(error_code=error),
        StopReplicaRequest: lambda _: StopReplicaResponse(error_code=error, partition_errors=[]),
    }
    for work in (
        receiver.on_leader_and_isr([state(0)]),
        receiver.on_metadata_update(whole(state(0))),
        receiver.on_stop_replicas([stop(0)]),
    ):
        with pytest.raises(AnnouncementRefused, match=error.name):
            run(work)


def test_the_last_request_of_a_whole_update_names_all_topics(other: Broker, receiver: RemoteReceiver) -> None:
    states = [state(number) for number in range(PARTITIONS_A_REQUEST)] + [state(0, "u", OTHER_ID)]
    run(receiver.on_metadata_update(whole(*states)))
    first, last = other.got
    assert other.versions == [8, 8]
    assert (first.type, last.type) == (RequestType.INCREMENTAL, RequestType.FULL)
    assert {topic.topic_name: len(topic.partition_states) for topic in last.topic_states} == {"t": 0, "u": 1}
    assert [(broker.id, broker.rack) for broker in last.live_brokers] == [(2, "r2"), (3, None)]
    assert [each.security_protocol for broker in last.live_brokers for each in broker.endpoints] == [0, 3]


def test_a_deleted_topic_is_told_by_its_partitions_until_that_was_heard(
    other: Broker, receiver: RemoteReceiver
) -> None:
    deletion = MetadataUpdate(controller_epoch=Epoch(7), topics_deleted=["t", "never"])

    async def work() -> None:
        await receiver.on_metadata_update(whole(state(0), state(1), state(0, "u", OTHER_ID)))
        other.got.clear()
        other.lost = 1
        with pytest.raises(BrokerNotReached):
            await receiver.on_metadata_update(deletion)
        await receiver.on_metadata_update(deletion)
        await receiver.on_metadata_update(deletion)

    run(work())
    (request,) = other.got
    (topic,) = request.topic_states
    assert (topic.topic_name, topic.topic_id) == ("t", ID)
    assert [(each.partition_index, each.leader, each.leader_epoch) for each in topic.partition_states] == [
        (0, -2, -2),
        (1, -2, -2),
    ]
    assert [broker.id for broker in request.live_brokers] == [2, 3]


def test_settings_alone_are_no_request(other: Broker, receiver: RemoteReceiver) -> None:
    async def work() -> None:
        await receiver.on_metadata_update(whole())
        other.got.clear()
        await receiver.on_metadata_update(
            MetadataUpdate(controller_epoch=Epoch(7), topic_configs={"t": {"retention.ms": "2"}})
        )

    run(work())
    assert other.got == []


def test_nothing_is_shown_before_live_brokers_are_known(other: Broker, receiver: RemoteReceiver) -> None:
    run(receiver.on_metadata_update(MetadataUpdate(controller_epoch=Epoch(7), partitions=[state(0)])))
    assert other.got == []


def test_replicas_that_could_not_be_deleted_are_answered(other: Broker, receiver: RemoteReceiver) -> None:
    other.answers[StopReplicaRequest] = lambda _: StopReplicaResponse(
        partition_errors=[
            StopReplicaPartitionError(topic_name="t", partition_index=0, error_code=0),
            StopReplicaPartitionError(topic_name="t", partition_index=1, error_code=56),
        ]
    )
    failed = run(receiver.on_stop_replicas([stop(0), stop(1, leader_epoch=9)]))
    assert failed == {("t", 1): ErrorCode.KAFKA_STORAGE_ERROR}
    (request,) = other.got
    assert [(each.leader_epoch, each.delete_partition) for each in request.topic_states[0].partition_states] == [
        (-2, True),
        (9, True),
    ]


def test_a_broker_has_as_long_as_is_configured(other: Broker, receiver: RemoteReceiver) -> None:
    """`controller.socket.timeout.ms`, which is half a minute by default."""
    run(receiver.on_metadata_update(whole()))
    run(RemoteReceiver(other, ORIGIN, "PLAINTEXT", lambda: 0, 7_000).on_metadata_update(whole()))
    assert set(other.times_ms[:1]) == {30_000}
    assert other.times_ms[-1] == 7_000
