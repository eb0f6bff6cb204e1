"""LeaderAndIsr, UpdateMetadata and StopReplica, as another broker's controller sends them, in every version."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.server.conftest import BrokerThread, Peer
from tests.server.test_connections import until

from ottla.controller.announcing.requests import RequestType
from ottla.model import ErrorCode
from ottla.protocol.generated.api_versions import ApiVersionsRequest, ApiVersionsResponse
from ottla.protocol.generated.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from ottla.protocol.generated.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    TopicRequest,
)
from ottla.protocol.generated.leader_and_isr import (
    LeaderAndIsrPartitionState,
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    LeaderAndIsrTopicState,
)
from ottla.protocol.generated.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from ottla.protocol.generated.stop_replica import (
    StopReplicaPartitionState,
    StopReplicaPartitionV0,
    StopReplicaRequest,
    StopReplicaResponse,
    StopReplicaTopicState,
    StopReplicaTopicV1,
)
from ottla.protocol.generated.update_metadata import (
    UpdateMetadataBroker,
    UpdateMetadataEndpoint,
    UpdateMetadataPartitionState,
    UpdateMetadataRequest,
    UpdateMetadataResponse,
    UpdateMetadataTopicState,
)

EPOCH = 1_000_000
TOPIC_ID = bytes(range(16))


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[BrokerThread]:
    with BrokerThread(str(tmp_path), **{"broker.id": "1"}) as started:
        yield started


@pytest.fixture
def peer(broker: BrokerThread) -> Iterator[Peer]:
    with broker.connect() as client:
        yield client


def own_epoch(broker: BrokerThread) -> int:
    return broker.look(lambda it: it.services.announced.broker_epoch)  # type: ignore[union-attr,attr-defined]


def roles(
    version: int, *numbers: int, epoch: int = EPOCH, broker_epoch: int = -1, **state: object
) -> LeaderAndIsrRequest:
    states = [
        LeaderAndIsrPartitionState(
            **{  # type: ignore[arg-type]
                "topic_name": "w" if version < 2 else "",
                "partition_index": number,
                "controller_epoch": epoch,
                "leader": 1,
                "leader_epoch": 5,
                "isr": [1],
                "replicas": [1],
                "is_new": version >= 1,
                **state,
            }
        )
        for number in numbers
    ]
    request = LeaderAndIsrRequest(controller_id=9, controller_epoch=epoch, broker_epoch=broker_epoch)
    if version < 2:
        request.ungrouped_partition_states = states
    else:
        topic_id = TOPIC_ID if version >= 5 else bytes(16)
        request.topic_states = [LeaderAndIsrTopicState(topic_name="w", topic_id=topic_id, partition_states=states)]
    return request


def errors(answer: LeaderAndIsrResponse, version: int) -> list[tuple[int, int]]:
    if version < 5:
        assert {each.topic_name for each in answer.partition_errors} <= {"w"}
        found = answer.partition_errors
    else:
        assert [topic.topic_id for topic in answer.topics] == [TOPIC_ID]
        found = answer.topics[0].partition_errors
    return [(each.partition_index, each.error_code) for each in found]


@pytest.mark.parametrize("version", range(8))
def test_roles_are_taken_on_in_every_version(broker: BrokerThread, peer: Peer, version: int) -> None:
    answer = peer.ask(roles(version, 0, 1), version, LeaderAndIsrResponse)
    assert answer.error_code == ErrorCode.NONE
    assert errors(answer, version) == [(0, 0), (1, 0)]
    led = broker.look(lambda it: sorted(tp for tp in it.services.replicas.leaders if tp.topic == "w"))  # type: ignore[union-attr]
    assert led == [("w", 0), ("w", 1)]


@pytest.mark.parametrize("version", [1, 4, 7])
def test_a_controller_that_was_replaced_is_obeyed_no_more(broker: BrokerThread, peer: Peer, version: int) -> None:
    assert errors(peer.ask(roles(version, 0), version, LeaderAndIsrResponse), version) == [(0, 0)]
    stale = peer.ask(roles(version, 1, epoch=EPOCH - 1), version, LeaderAndIsrResponse)
    assert stale.error_code == ErrorCode.STALE_CONTROLLER_EPOCH
    assert errors(stale, version) == [(1, ErrorCode.STALE_CONTROLLER_EPOCH)]
    assert peer.ask(UpdateMetadataRequest(controller_epoch=EPOCH - 1), 8, UpdateMetadataResponse).error_code == (
        ErrorCode.STALE_CONTROLLER_EPOCH
    )
    stopped = peer.ask(StopReplicaRequest(controller_epoch=EPOCH - 1), 4, StopReplicaResponse)
    assert stopped.error_code == ErrorCode.STALE_CONTROLLER_EPOCH
    assert broker.look(lambda it: list(it.services.replicas.leaders)) == [("w", 0)]  # type: ignore[union-attr]


def test_what_was_meant_for_an_earlier_life_is_refused(broker: BrokerThread, peer: Peer) -> None:
    own = own_epoch(broker)
    for request, version, kind in (
        (roles(7, 0, broker_epoch=own - 1), 7, LeaderAndIsrResponse),
        (UpdateMetadataRequest(controller_epoch=EPOCH, broker_epoch=own - 1), 8, UpdateMetadataResponse),
        (StopReplicaRequest(controller_epoch=EPOCH, broker_epoch=own - 1), 4, StopReplicaResponse),
    ):
        assert peer.ask(request, version, kind).error_code == ErrorCode.STALE_BROKER_EPOCH  # type: ignore[arg-type]
    # One that the broker has yet to learn itself, and its own.
    assert peer.ask(roles(7, 0, broker_epoch=own + 1), 7, LeaderAndIsrResponse).error_code == ErrorCode.NONE
    assert peer.ask(roles(7, 1, broker_epoch=own), 7, LeaderAndIsrResponse).error_code == ErrorCode.NONE


def test_each_partition_has_its_own_answer(broker: BrokerThread, peer: Peer) -> None:
    assert errors(peer.ask(roles(7, 0, 1), 7, LeaderAndIsrResponse), 7) == [(0, 0), (1, 0)]
    request = roles(7, 0, 1, 2, 3, -4, leader_epoch=4)
    of_others, without_itself = request.topic_states[0].partition_states[2:4]
    of_others.replicas = of_others.isr = [2, 3]
    without_itself.isr = [2]
    found = dict(errors(peer.ask(request, 7, LeaderAndIsrResponse), 7))
    assert found == {
        0: ErrorCode.STALE_CONTROLLER_EPOCH,
        1: ErrorCode.STALE_CONTROLLER_EPOCH,
        2: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        3: ErrorCode.INVALID_REQUEST,
        -4: ErrorCode.INVALID_TOPIC_EXCEPTION,
    }


def test_a_topic_name_never_leaves_its_folder(broker: BrokerThread, peer: Peer, tmp_path: Path) -> None:
    request = roles(7, 0)
    request.topic_states[0].topic_name = "../../escaped"
    answer = peer.ask(request, 7, LeaderAndIsrResponse)
    assert errors(answer, 7) == [(0, ErrorCode.INVALID_TOPIC_EXCEPTION)]
    assert not list(tmp_path.rglob("*escaped*"))
    assert not list(tmp_path.parent.glob("*escaped*"))


def stop(version: int, *numbers: int, delete: bool, leader_epoch: int = -2) -> StopReplicaRequest:
    request = StopReplicaRequest(controller_id=9, controller_epoch=EPOCH)
    if version < 3:
        request.delete_partitions = delete
    if version == 0:
        request.ungrouped_partitions = [
            StopReplicaPartitionV0(topic_name="w", partition_index=each) for each in numbers
        ]
    elif version < 3:
        request.topics = [StopReplicaTopicV1(name="w", partition_indexes=list(numbers))]
    else:
        states = [
            StopReplicaPartitionState(partition_index=each, leader_epoch=leader_epoch, delete_partition=delete)
            for each in numbers
        ]
        request.topic_states = [StopReplicaTopicState(topic_name="w", partition_states=states)]
    return request


@pytest.mark.parametrize("version", range(5))
def test_replicas_are_given_up_and_deleted_in_every_version(
    broker: BrokerThread, peer: Peer, version: int, tmp_path: Path
) -> None:
    assert peer.ask(roles(7, 0, 1), 7, LeaderAndIsrResponse).error_code == ErrorCode.NONE
    kept = peer.ask(stop(version, 0, delete=False), version, StopReplicaResponse)
    assert [(each.topic_name, each.partition_index, each.error_code) for each in kept.partition_errors] == [("w", 0, 0)]
    assert broker.look(lambda it: list(it.services.replicas.leaders)) == [("w", 1)]  # type: ignore[union-attr]
    assert (tmp_path / "logs" / "w-0").is_dir()
    gone = peer.ask(stop(version, 0, 1, 7, delete=True), version, StopReplicaResponse)
    assert [each.error_code for each in gone.partition_errors] == [0, 0, 0]
    assert not (tmp_path / "logs" / "w-0").is_dir()
    assert not (tmp_path / "logs" / "w-1").is_dir()


def test_a_stop_of_an_earlier_leadership_is_fenced(broker: BrokerThread, peer: Peer) -> None:
    assert peer.ask(roles(7, 0), 7, LeaderAndIsrResponse).error_code == ErrorCode.NONE
    late = peer.ask(stop(4, 0, delete=True, leader_epoch=4), 4, StopReplicaResponse)
    assert [each.error_code for each in late.partition_errors] == [ErrorCode.FENCED_LEADER_EPOCH]
    assert broker.look(lambda it: list(it.services.replicas.leaders)) == [("w", 0)]  # type: ignore[union-attr]
    assert peer.ask(stop(4, 0, delete=True, leader_epoch=5), 4, StopReplicaResponse).partition_errors[0].error_code == 0


def shown(
    version: int, *leaders: int, epoch: int = EPOCH, kind: RequestType = RequestType.INCREMENTAL
) -> UpdateMetadataRequest:
    states = [
        UpdateMetadataPartitionState(
            topic_name="w" if version < 5 else "",
            partition_index=number,
            controller_epoch=epoch,
            leader=leader,
            leader_epoch=1,
            isr=[2],
            zk_version=3,
            replicas=[2, 3],
            offline_replicas=[3] if version >= 4 else [],
        )
        for number, leader in enumerate(leaders)
    ]
    endpoint = UpdateMetadataEndpoint(
        port=1234, host="two", listener="PLAINTEXT" if version >= 3 else "", security_protocol=0
    )
    alive = UpdateMetadataBroker(id=2)
    if version == 0:
        alive.v0_host, alive.v0_port = "two", 1234
    else:
        alive.endpoints = [endpoint]
    if version >= 2:
        alive.rack = "r"
    request = UpdateMetadataRequest(controller_id=2, controller_epoch=epoch, live_brokers=[alive])
    if version >= 8:
        request.type = kind
    if version < 5:
        request.ungrouped_partition_states = states
    else:
        topic_id = TOPIC_ID if version >= 7 else bytes(16)
        request.topic_states = [UpdateMetadataTopicState(topic_name="w", topic_id=topic_id, partition_states=states)]
    return request


def test_a_partition_that_was_moved_away_unheard_is_led_no_more(broker: BrokerThread, peer: Peer) -> None:
    """Its log stays until the controller says otherwise. An older word, or one of another topic, changes nothing."""
    assert errors(peer.ask(roles(7, 0, leader_epoch=5), 7, LeaderAndIsrResponse), 7) == [(0, 0)]

    def led() -> bool:
        return broker.look(lambda it: ("w", 0) in it.services.replicas.leaders)  # type: ignore[union-attr]

    def update(leader_epoch: int, topic_id: bytes = TOPIC_ID) -> None:
        request = shown(8, 2)
        request.topic_states[0].topic_id = topic_id
        request.topic_states[0].partition_states[0].leader_epoch = leader_epoch
        assert peer.ask(request, 8, UpdateMetadataResponse).error_code == ErrorCode.NONE

    update(4)
    update(6, topic_id=bytes(range(1, 17)))
    assert led()
    update(6)
    assert not led()
    assert broker.look(lambda it: it.services.replicas.directories.get(("w", 0)) is not None)  # type: ignore[union-attr]


def test_a_replica_that_nobody_came_to_stop_is_set_aside_by_whoever_names_everything(
    broker: BrokerThread, peer: Peer, tmp_path: Path
) -> None:
    """A controller died behind the end of a move. An older word, or one of another topic, takes nothing away.

    What the broker had a role in until then it removes; what it has but found, as a start does, it keeps.
    """
    assert errors(peer.ask(roles(7, 0, 1, leader_epoch=5), 7, LeaderAndIsrResponse), 7) == [(0, 0), (1, 0)]
    assert peer.ask(stop(4, 0, delete=False), 4, StopReplicaResponse).error_code == ErrorCode.NONE

    def there() -> list[int]:
        return broker.look(lambda it: [log.tp.partition for log in it.logs() if log.tp.topic == "w"])

    def folders(number: int) -> list[str]:
        return [path.name.rpartition("-")[2] for path in (tmp_path / "logs").glob(f"w-{number}*")]

    def update(leader_epoch: int, kind: RequestType, topic_id: bytes = TOPIC_ID) -> None:
        request = shown(8, 2, 2, kind=kind)
        request.topic_states[0].topic_id = topic_id
        for state in request.topic_states[0].partition_states:
            state.leader_epoch = leader_epoch
        assert peer.ask(request, 8, UpdateMetadataResponse).error_code == ErrorCode.NONE

    update(4, RequestType.FULL)
    update(6, RequestType.FULL, topic_id=bytes(range(1, 17)))
    update(6, RequestType.INCREMENTAL)
    assert sorted(there()) == [0, 1]
    update(6, RequestType.FULL)
    assert there() == []
    until(lambda: folders(1) == [])
    assert folders(0) == ["stray"]
    # It may come back, with nothing.
    again = roles(7, 0, leader=2, leader_epoch=7, isr=[2], replicas=[1, 2])
    assert errors(peer.ask(again, 7, LeaderAndIsrResponse), 7) == [(0, 0)]
    assert there() == [0]


def test_a_broker_fetches_under_its_last_registration(broker: BrokerThread, peer: Peer) -> None:
    """The controller may have heard of it before the tree's answer comes to this broker. Under an older one no leader
    would have its followers back in sync."""
    own = own_epoch(broker)

    def fetches_under() -> int:
        return broker.look(lambda it: it.fetchers._around.broker_epoch())  # type: ignore[union-attr]

    alive = UpdateMetadataBroker(id=1, endpoints=[UpdateMetadataEndpoint(host="h", port=1, listener="PLAINTEXT")])
    request = UpdateMetadataRequest(controller_epoch=EPOCH, broker_epoch=own + 3, live_brokers=[alive])
    assert peer.ask(request, 8, UpdateMetadataResponse).error_code == ErrorCode.NONE
    assert fetches_under() == own + 3
    broker.look(lambda it: it.services.announced.registered(own + 5))  # type: ignore[union-attr,attr-defined]
    assert (own_epoch(broker), fetches_under()) == (own + 5, own + 5)


@pytest.mark.parametrize("version", range(9))
def test_metadata_is_taken_in_every_version(broker: BrokerThread, peer: Peer, version: int) -> None:
    assert peer.ask(shown(version, 2, -1), version, UpdateMetadataResponse).error_code == ErrorCode.NONE
    metadata = broker.broker.metadata
    (two,) = metadata.brokers.values()
    assert (two.id, two.endpoints, two.rack) == (
        2,
        (("PLAINTEXT", "PLAINTEXT", "two", 1234),),
        "r" if version > 1 else None,
    )
    topic = metadata.topic("w")
    assert topic is not None
    assert [(each.leader, each.partition_epoch, each.replicas) for each in topic.partitions] == [
        (2, 3, (2, 3)),
        (-1, 3, (2, 3)),
    ]
    assert topic.partitions[0].offline_replicas == ((3,) if version >= 4 else ())
    assert metadata.controller_id == 2
    # The leader of a partition that is deleted is -2.
    assert peer.ask(shown(version, -2), version, UpdateMetadataResponse).error_code == ErrorCode.NONE
    assert metadata.topic("w") is None


def test_a_full_request_takes_away_what_it_does_not_name(broker: BrokerThread, peer: Peer) -> None:
    broker.create_topic("old")
    metadata = broker.broker.metadata
    assert peer.ask(shown(8, 2), 8, UpdateMetadataResponse).error_code == ErrorCode.NONE
    assert sorted(metadata.topics) == ["old", "w"]
    last = shown(8, kind=RequestType.FULL)
    assert peer.ask(last, 8, UpdateMetadataResponse).error_code == ErrorCode.NONE
    assert sorted(metadata.topics) == ["w"]
    topic = metadata.topic("w")
    assert topic is not None
    assert len(topic.partitions) == 1


def test_a_late_deletion_of_a_topic_that_was_made_anew_is_passed_over(broker: BrokerThread, peer: Peer) -> None:
    assert peer.ask(shown(8, 2), 8, UpdateMetadataResponse).error_code == ErrorCode.NONE
    late = shown(8, -2)
    late.topic_states[0].topic_id = bytes(reversed(TOPIC_ID))
    assert peer.ask(late, 8, UpdateMetadataResponse).error_code == ErrorCode.NONE
    assert broker.broker.metadata.topic("w") is not None


def test_two_thousand_roles_in_one_frame(broker: BrokerThread, peer: Peer) -> None:
    """More than the controllers of ours send in one: its steps let others have their turns."""
    peer.send(peer.frame(roles(7, *range(300)), 7))
    with broker.connect() as other:
        assert other.ask(ApiVersionsRequest(), 0, ApiVersionsResponse).error_code == ErrorCode.NONE
    assert {error for _, error in errors(peer.answer(LeaderAndIsrResponse, 7), 7)} == {0}
    request = roles(7, *range(2000), leader_epoch=4)
    answer = peer.ask(request, 7, LeaderAndIsrResponse)
    assert len(errors(answer, 7)) == 2000


def test_requests_between_brokers_are_for_their_listeners_only(tmp_path: Path) -> None:
    properties = {
        "broker.id": "1",
        "listeners": "CLIENTS://127.0.0.1:0,BROKERS://127.0.0.1:0,CONTROL://127.0.0.1:0",
        "listener.security.protocol.map": "CLIENTS:PLAINTEXT,BROKERS:PLAINTEXT,CONTROL:PLAINTEXT",
        "inter.broker.listener.name": "BROKERS",
        "control.plane.listener.name": "CONTROL",
    }
    between = {4, 5, 6, 7, 56, 58, 67}
    with BrokerThread(str(tmp_path), **properties) as broker:
        for listener, serves in (("CLIENTS", False), ("BROKERS", True), ("CONTROL", True)):
            port = next(each.port for each in broker.broker.endpoints if each.listener == listener)
            for version in range(5):
                with Peer(port) as client:
                    answer = client.ask(_versions(version), version, ApiVersionsResponse)
                    advertised = {each.api_key for each in answer.api_keys}
                    assert advertised & between == (between if serves else set())
            with Peer(port) as client:
                client.send(client.frame(roles(7, 0), 7))
                if serves:
                    assert client.answer(LeaderAndIsrResponse, 7).error_code == ErrorCode.NONE
                else:
                    assert client.is_closed()


def _versions(version: int) -> ApiVersionsRequest:
    return (
        ApiVersionsRequest(client_software_name="t", client_software_version="1")
        if version > 2
        else ApiVersionsRequest()
    )


@pytest.mark.parametrize("version", range(14))
def test_a_leader_without_the_clients_listener_is_not_named(broker: BrokerThread, peer: Peer, version: int) -> None:
    request = shown(8, 2, 3, -1)
    request.live_brokers[0].endpoints[0].listener = "OTHER"
    assert peer.ask(request, 8, UpdateMetadataResponse).error_code == ErrorCode.NONE
    answer = peer.ask(
        MetadataRequest(topics=[MetadataRequestTopic(name="w")]) if version else MetadataRequest(topics=[]),
        version,
        MetadataResponse,
    )
    assert answer.brokers == []
    (topic,) = [each for each in answer.topics if each.name == "w"]
    unlisted = ErrorCode.LISTENER_NOT_FOUND if version >= 6 else ErrorCode.LEADER_NOT_AVAILABLE
    found = {each.partition_index: (each.error_code, each.leader_id) for each in topic.partitions}
    # The second one's leader is not alive, and the third has none.
    assert found == {
        0: (unlisted, -1),
        1: (ErrorCode.LEADER_NOT_AVAILABLE, -1),
        2: (ErrorCode.LEADER_NOT_AVAILABLE, -1),
    }
    if version >= 5:
        assert [each.offline_replicas for each in topic.partitions] == [[3]] * 3


@pytest.mark.parametrize("version", [0, 1])
def test_a_replica_that_is_away_is_left_out_for_clients_that_know_of_none(
    broker: BrokerThread, peer: Peer, version: int
) -> None:
    """As by Kafka, in version 0 alone."""
    assert peer.ask(shown(8, 2), 8, UpdateMetadataResponse).error_code == ErrorCode.NONE
    request = MetadataRequest(topics=[MetadataRequestTopic(name="w")])
    (topic,) = peer.ask(request, version, MetadataResponse).topics
    (partition,) = topic.partitions
    error, replicas = (ErrorCode.NONE, [2, 3]) if version else (ErrorCode.REPLICA_NOT_AVAILABLE, [2])
    assert (partition.error_code, partition.leader_id) == (error, 2)
    assert (partition.replica_nodes, partition.isr_nodes) == (replicas, [2])


def test_so_says_describe_topic_partitions(broker: BrokerThread, peer: Peer) -> None:
    request = shown(8, 2, -1)
    request.live_brokers[0].endpoints[0].listener = "OTHER"
    assert peer.ask(request, 8, UpdateMetadataResponse).error_code == ErrorCode.NONE
    asked = DescribeTopicPartitionsRequest(topics=[TopicRequest(name="w")])
    answer = peer.ask(asked, 0, DescribeTopicPartitionsResponse)
    assert [(each.error_code, each.leader_id) for each in answer.topics[0].partitions] == [
        (ErrorCode.LISTENER_NOT_FOUND, -1),
        (ErrorCode.LEADER_NOT_AVAILABLE, -1),
    ]
    cluster = peer.ask(DescribeClusterRequest(), 0, DescribeClusterResponse)
    assert (cluster.brokers, cluster.controller_id) == ([], 2)
