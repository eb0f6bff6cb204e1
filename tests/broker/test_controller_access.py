"""A request finds the active controller, wherever it is by then, and is never made twice where that does harm."""

from __future__ import annotations

from collections.abc import Coroutine, Sequence
from typing import Any, TypeVar

import pytest

from ottla.broker.controller_access import ControllerAccess
from ottla.broker.controller_link import RemoteController
from ottla.controller.interface import (
    ConfigChanges,
    ConfigOverrides,
    ConfigResult,
    ConfigTarget,
    ConfigTargetType,
    ElectionKind,
    IsrChange,
    NewPartitions,
    PartitionResult,
    ProducerIdRange,
    Reassignment,
    TopicCreation,
    TopicRef,
    TopicToCreate,
)
from ottla.coordination.errors import ConnectionLoss
from ottla.interbroker.links import LinkLost, LinkRefused
from ottla.metadata import MetadataCache, MetadataUpdate, PartitionState
from ottla.model import BrokerId, Epoch, ErrorCode, TopicId, TopicPartition
from ottla.ports.memory import memory_ports
from ottla.protocol.generated.allocate_producer_ids import AllocateProducerIdsRequest, AllocateProducerIdsResponse
from ottla.protocol.generated.alter_configs import AlterConfigsRequest, AlterConfigsResponse
from ottla.protocol.generated.alter_configs import AlterConfigsResourceResponse as Replaced
from ottla.protocol.generated.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    ResponsePartitionData,
    ResponseTopicData,
)
from ottla.protocol.generated.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)
from ottla.protocol.generated.controlled_shutdown import (
    ControlledShutdownRequest,
    ControlledShutdownResponse,
    RemainingPartition,
)
from ottla.protocol.generated.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopicResult,
)
from ottla.protocol.generated.create_topics import (
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from ottla.protocol.generated.delete_topics import DeletableTopicResult, DeleteTopicsRequest, DeleteTopicsResponse
from ottla.protocol.generated.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    ReplicaElectionResult,
)
from ottla.protocol.generated.elect_leaders import PartitionResult as Elected
from ottla.protocol.generated.incremental_alter_configs import (
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from ottla.protocol.generated.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)
from ottla.protocol.message import Message

T = TypeVar("T")
ID = TopicId(bytes(range(16)))
HIDDEN = TopicId(b"\x09" * 16)
NOT = ErrorCode.NOT_CONTROLLER


class Own:
    """The controller in this process."""

    def __init__(self) -> None:
        self.created = 0

    async def create_topics(
        self, topics: Sequence[TopicToCreate], *, validate_only: bool = False, timeout_ms: int | None = None
    ) -> list[TopicCreation]:
        self.created += 1
        return [TopicCreation(topic.name, topic_id=ID) for topic in topics]


class Place:
    """Where the controller is: in this process, or on another broker that answers as it is told."""

    def __init__(self) -> None:
        self.lost: str | None = None
        self.here: Own | None = None
        #: The next answers of another broker, or what its link raises.
        self.answers: list[Message | Exception] = []
        self.asked: list[Any] = []
        self.notes: list[tuple[str, bytes]] = []
        self.fault: Exception | None = None
        self.metadata = MetadataCache()

    def own(self) -> Any:
        return self.here

    def remote(self, left_ms: int) -> RemoteController | None:
        return RemoteController(self, left_ms, 4321, self.metadata) if self.answers else None

    async def call(self, request: Message, version: int, *, timeout_ms: int) -> Message:
        raw = request.encode(version)
        self.asked.append(type(request).decode(raw, version)[0])
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        raw = answer.encode(version)
        return type(answer).decode(raw, version)[0]

    async def leave_note(self, path: str, data: bytes) -> None:
        if self.fault is not None:
            raise self.fault
        self.notes.append((path, data))


@pytest.fixture
def place() -> Place:
    return Place()


def ask(place: Place, method: str, *args: Any, **options: Any) -> Any:
    ports = memory_ports(seed=1)
    work: Coroutine[Any, Any, Any] = getattr(ControllerAccess(place, ports.clock), method)(*args, **options)
    return ports.loop.run_until_complete(work)


def created(error: ErrorCode = ErrorCode.NONE) -> CreateTopicsResponse:
    setting = CreatableTopicConfigs(name="retention.ms", value="1", config_source=1)
    default = CreatableTopicConfigs(name="cleanup.policy", value="delete", config_source=5)
    result = CreatableTopicResult(
        name="t",
        topic_id=ID,
        error_code=error,
        error_message=None,
        num_partitions=2,
        replication_factor=3,
        configs=[setting, default],
    )
    return CreateTopicsResponse(topics=[result])


TOPIC = TopicToCreate("t", assignments=((0, (BrokerId(1), BrokerId(2))),), configs={"retention.ms": "1"})


def test_a_request_goes_to_the_controller_here_while_it_is_the_active_one(place: Place) -> None:
    place.here = Own()
    (result,) = ask(place, "create_topics", [TOPIC])
    assert (result.error, place.here.created, place.asked) == (ErrorCode.NONE, 1, [])


def test_a_request_goes_over_the_link_to_another(place: Place) -> None:
    place.answers = [created()]
    assert ask(place, "create_topics", [TOPIC], timeout_ms=5_000) == [
        TopicCreation("t", ErrorCode.NONE, None, ID, 2, 3, {"retention.ms": "1"})
    ]
    (request,) = place.asked
    assert isinstance(request, CreateTopicsRequest)
    assert (request.timeout_ms, request.validate_only) == (5_000, False)
    (topic,) = request.topics
    assert [(each.partition_index, each.broker_ids) for each in topic.assignments] == [(0, [1, 2])]
    assert [(each.name, each.value) for each in topic.configs] == [("retention.ms", "1")]


def test_it_follows_a_controller_that_moves(place: Place) -> None:
    place.answers = [created(NOT), LinkRefused("gone"), created(NOT), created()]
    (result,) = ask(place, "create_topics", [TOPIC])
    assert result.error is ErrorCode.NONE
    assert len(place.asked) == 4


@pytest.mark.parametrize(
    ("method", "arguments"),
    [
        ("create_topics", ([TOPIC],)),
        ("delete_topics", ([TopicRef("t")],)),
        ("create_partitions", ([NewPartitions("t", 3)],)),
    ],
)
def test_what_may_have_been_done_is_not_asked_for_again(place: Place, method: str, arguments: tuple[Any, ...]) -> None:
    place.answers = [LinkLost("cut"), created()]
    (result,) = ask(place, method, *arguments)
    assert result.error is ErrorCode.REQUEST_TIMED_OUT
    assert "is not known" in result.message
    assert len(place.asked) == 1


@pytest.mark.parametrize(("kind", "times"), [(ElectionKind.PREFERRED, 2), (ElectionKind.UNCLEAN, 1)])
def test_an_unclean_election_is_not_asked_for_again(place: Place, kind: ElectionKind, times: int) -> None:
    """Whoever it gave the lead to may have taken records since, and be gone for a moment."""
    place.answers = [LinkLost("cut"), ElectLeadersResponse()]
    error, _ = ask(place, "elect_leaders", kind, [TopicPartition("t", 0)])
    assert error is (ErrorCode.NONE if times > 1 else ErrorCode.REQUEST_TIMED_OUT)
    assert len(place.asked) == times


def test_a_check_may_be_asked_for_twice(place: Place) -> None:
    place.answers = [LinkLost("cut"), created()]
    (result,) = ask(place, "create_topics", [TOPIC], validate_only=True)
    assert result.error is ErrorCode.NONE


def test_time_is_up_where_nobody_is_the_controller(place: Place) -> None:
    (result,) = ask(place, "create_topics", [TOPIC], timeout_ms=1_000)
    assert result.error is ErrorCode.REQUEST_TIMED_OUT
    (result,) = ask(place, "delete_topics", [TopicRef("t")], timeout_ms=0)
    assert result.error is ErrorCode.REQUEST_TIMED_OUT


def test_a_request_without_a_time_of_its_own_has_that_of_the_broker(place: Place) -> None:
    ports = memory_ports(seed=1)
    access = ControllerAccess(place, ports.clock, timeout_ms=2_000)
    (result,) = ports.loop.run_until_complete(access.delete_topics([TopicRef("t")]))
    assert result.error is ErrorCode.REQUEST_TIMED_OUT
    assert 1_500 <= ports.clock.monotonic_ms() < 4_000


def test_a_broker_that_stops_keeps_nobody_waiting(place: Place) -> None:
    place.lost = "stopping"
    (result,) = ask(place, "create_topics", [TOPIC])
    assert (result.error, result.message) == (NOT, "stopping")


def test_producer_ids_may_be_asked_for_twice(place: Place) -> None:
    place.answers = [
        LinkLost("cut"),
        AllocateProducerIdsResponse(error_code=NOT),
        AllocateProducerIdsResponse(producer_id_start=7000, producer_id_len=1000),
    ]
    assert ask(place, "allocate_producer_ids", BrokerId(3)) == ProducerIdRange(7000, 1000)
    assert [(each.broker_id, each.broker_epoch) for each in place.asked] == [(3, 4321)] * 3
    assert isinstance(place.asked[0], AllocateProducerIdsRequest)


def test_isrs_go_by_topic_ids_and_come_back_as_states(place: Place) -> None:
    members = (BrokerId(1), BrokerId(2))
    state = PartitionState("t", 0, ID, Epoch(1), BrokerId(1), Epoch(4), members, members, 9)
    place.metadata.apply(MetadataUpdate(controller_epoch=Epoch(1), partitions=[state, state._replace(partition=1)]))
    place.answers = [
        AlterPartitionResponse(error_code=NOT, topics=[]),
        AlterPartitionResponse(
            topics=[
                ResponseTopicData(
                    topic_id=ID,
                    partitions=[
                        ResponsePartitionData(
                            partition_index=0, leader_id=1, leader_epoch=4, isr=[1], partition_epoch=10
                        ),
                        ResponsePartitionData(partition_index=1, error_code=ErrorCode.INELIGIBLE_REPLICA),
                    ],
                ),
                ResponseTopicData(
                    topic_id=HIDDEN,
                    partitions=[
                        ResponsePartitionData(
                            partition_index=0, leader_id=1, leader_epoch=4, isr=[1, 2], partition_epoch=3
                        )
                    ],
                ),
            ]
        ),
    ]
    changes = [
        IsrChange(TopicPartition("t", 0), Epoch(4), 9, (BrokerId(1),), (4321,)),
        IsrChange(TopicPartition("t", 1), Epoch(4), 9, members),
        IsrChange(TopicPartition("gone", 0), Epoch(4), 9, members),
        IsrChange(TopicPartition("hidden", 0), Epoch(4), 2, members, topic_id=HIDDEN),
    ]
    done, refused, unknown, hidden = ask(place, "alter_isr", BrokerId(1), changes)
    assert done.error is ErrorCode.NONE
    assert done.state == state._replace(isr=(BrokerId(1),), partition_epoch=10)
    # A topic that is being made is shown to no client yet.
    assert hidden.state is not None
    assert (hidden.state.leader, hidden.state.isr, hidden.state.partition_epoch) == (1, members, 3)
    assert (refused.error, unknown.error) == (ErrorCode.INELIGIBLE_REPLICA, ErrorCode.UNKNOWN_TOPIC_ID)
    request = place.asked[-1]
    assert isinstance(request, AlterPartitionRequest)
    assert (request.broker_id, request.broker_epoch) == (1, 4321)
    first, second = request.topics[0].partitions
    assert [(each.broker_id, each.broker_epoch) for each in first.new_isr_with_epochs] == [(1, 4321)]
    assert [(each.broker_id, each.broker_epoch) for each in second.new_isr_with_epochs] == [(1, -1), (2, -1)]


def test_both_kinds_of_settings_in_one_call(place: Place) -> None:
    topic, broker = ConfigTarget(ConfigTargetType.TOPIC, "t"), ConfigTarget(ConfigTargetType.BROKER, "")
    place.answers = [
        IncrementalAlterConfigsResponse(
            responses=[AlterConfigsResourceResponse(error_message=None, resource_type=4, resource_name="")]
        ),
        AlterConfigsResponse(
            responses=[Replaced(error_code=40, error_message="no", resource_type=2, resource_name="t")]
        ),
    ]
    asked = [ConfigOverrides(topic, {"a": "1"}), ConfigChanges(broker, (("b", 0, "2"), ("c", 1, None)))]
    assert ask(place, "alter_configs", asked) == [
        ConfigResult(topic, ErrorCode.INVALID_CONFIG, "no"),
        ConfigResult(broker),
    ]
    single, whole = place.asked
    assert isinstance(single, IncrementalAlterConfigsRequest)
    assert isinstance(whole, AlterConfigsRequest)
    assert [(each.name, each.config_operation, each.value) for each in single.resources[0].configs] == [
        ("b", 0, "2"),
        ("c", 1, None),
    ]


def test_deletions_growth_elections_and_moves(place: Place) -> None:
    tp = TopicPartition("t", 1)
    place.answers = [
        DeleteTopicsResponse(responses=[DeletableTopicResult(name=None, topic_id=ID, error_code=100)]),
        CreatePartitionsResponse(results=[CreatePartitionsTopicResult(name="t", error_code=37, error_message="m")]),
        ElectLeadersResponse(
            replica_election_results=[
                ReplicaElectionResult(
                    topic="t", partition_result=[Elected(partition_id=1, error_code=84, error_message=None)]
                )
            ]
        ),
        AlterPartitionReassignmentsResponse(
            responses=[
                ReassignableTopicResponse(
                    name="t", partitions=[ReassignablePartitionResponse(partition_index=1, error_message=None)]
                )
            ]
        ),
        ListPartitionReassignmentsResponse(
            topics=[
                OngoingTopicReassignment(
                    name="t",
                    partitions=[
                        OngoingPartitionReassignment(
                            partition_index=1, replicas=[1, 2], adding_replicas=[2], removing_replicas=[1]
                        )
                    ],
                )
            ]
        ),
    ]
    (deleted,) = ask(place, "delete_topics", [TopicRef(None, ID)])
    assert (deleted.name, deleted.id, deleted.error) == (None, ID, ErrorCode.UNKNOWN_TOPIC_ID)
    (grown,) = ask(place, "create_partitions", [NewPartitions("t", 3, ((BrokerId(1),),))])
    assert (grown.error, grown.message) == (ErrorCode.INVALID_PARTITIONS, "m")
    assert ask(place, "elect_leaders", ElectionKind.UNCLEAN, [tp]) == (
        ErrorCode.NONE,
        [PartitionResult(tp, ErrorCode.ELECTION_NOT_NEEDED)],
    )
    assert ask(place, "alter_reassignments", [Reassignment(tp, None)]) == (ErrorCode.NONE, [PartitionResult(tp)])
    error, (ongoing,) = ask(place, "reassignments", None)
    assert (error, ongoing) == (ErrorCode.NONE, (tp, (1, 2), (2,), (1,)))
    kinds = [DeleteTopicsRequest, CreatePartitionsRequest, ElectLeadersRequest]
    kinds += [AlterPartitionReassignmentsRequest, ListPartitionReassignmentsRequest]
    assert [type(each) for each in place.asked] == kinds
    assert place.asked[3].topics[0].partitions[0].replicas is None
    assert place.asked[4].topics is None


def test_a_stop_is_answered_with_what_remains(place: Place) -> None:
    remaining = RemainingPartition(topic_name="t", partition_index=1)
    place.answers = [LinkLost("cut"), ControlledShutdownResponse(remaining_partitions=[remaining])]
    answer = ask(place, "shut_down", BrokerId(2), 99)
    assert (answer.error, answer.remaining) == (ErrorCode.NONE, (TopicPartition("t", 1),))
    assert isinstance(place.asked[0], ControlledShutdownRequest)
    assert [(each.broker_id, each.broker_epoch) for each in place.asked] == [(2, 99)] * 2


def test_failed_replicas_are_told_to_another_controller_by_the_tree(place: Place) -> None:
    assert ask(place, "replicas_failed", BrokerId(2), [TopicPartition("t", 0)]) is ErrorCode.NONE
    assert ask(place, "replicas_recovered", BrokerId(2), [TopicPartition("t", 0)]) is ErrorCode.NONE
    assert place.notes == [("/log_dir_event_notification/log_dir_event_", b'{"version":1,"broker":2,"event":1}')] * 2
    place.fault = ConnectionLoss("cut")
    assert ask(place, "replicas_failed", BrokerId(2), [TopicPartition("t", 0)]) is ErrorCode.NETWORK_EXCEPTION
