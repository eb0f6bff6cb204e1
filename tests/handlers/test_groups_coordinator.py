"""FindCoordinator creates the offsets topic when it is first needed, and names the leader of the group's partition."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import pytest
from tests.handlers.groups import PROPERTIES, commit, fetch, find, group_broker, wait_loaded
from tests.server.conftest import SECONDS_MAX, BrokerThread, Peer

from ottla.controller.interface import TopicRef
from ottla.model import OFFSETS_TOPIC, TRANSACTION_TOPIC, ErrorCode
from ottla.protocol.generated.api_versions import ApiVersionsRequest, ApiVersionsResponse
from ottla.protocol.generated.create_topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse
from ottla.protocol.generated.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
)
from ottla.protocol.generated.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from ottla.protocol.generated.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from ottla.protocol.generated.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from ottla.protocol.generated.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from ottla.records.record import Record, encode_batch

NONE, NOT_AVAILABLE = ErrorCode.NONE, ErrorCode.COORDINATOR_NOT_AVAILABLE
TOPIC_RESOURCE = 2
#: Lowest and highest version of each API of groups that Kafka 4.3 serves, by key.
KAFKAS_VERSIONS = {
    8: (2, 10),  # OffsetCommit
    9: (1, 10),  # OffsetFetch
    10: (0, 6),  # FindCoordinator
    11: (0, 9),  # JoinGroup
    12: (0, 4),  # Heartbeat
    13: (0, 5),  # LeaveGroup
    14: (0, 5),  # SyncGroup
    15: (0, 6),  # DescribeGroups
    16: (0, 5),  # ListGroups
    42: (0, 2),  # DeleteGroups
    47: (0, 0),  # OffsetDelete
    68: (0, 1),  # ConsumerGroupHeartbeat
    69: (0, 1),  # ConsumerGroupDescribe
}


def overrides(peer: Peer, topic: str) -> dict[str, str]:
    asked = DescribeConfigsResource(resource_type=TOPIC_RESOURCE, resource_name=topic, configuration_keys=None)
    (result,) = peer.ask(DescribeConfigsRequest(resources=[asked]), 1, DescribeConfigsResponse).results
    return {config.name: config.value for config in result.configs if config.config_source == 1}


def offsets_partitions(broker: BrokerThread) -> int:
    topic = broker.look(lambda b: b.metadata.topic(OFFSETS_TOPIC))
    return 0 if topic is None else len(topic.partitions)


def test_the_first_answer_comes_when_the_offsets_topic_is_there(tmp_path: Path) -> None:
    with group_broker(tmp_path, offsets_topic_segment_bytes="2097152") as broker, broker.connect() as peer:
        assert offsets_partitions(broker) == 0
        answer = find(peer, version=3)
        assert (answer.error_code, answer.node_id, answer.host, answer.port) == (NONE, 7, "127.0.0.1", broker.port)
        assert answer.error_message == "NONE"
        assert offsets_partitions(broker) == int(PROPERTIES["offsets.topic.num.partitions"])
        assert overrides(peer, OFFSETS_TOPIC) == {
            "cleanup.policy": "compact",
            "compression.type": "producer",
            "segment.bytes": "2097152",
        }


def test_many_first_uses_create_it_once(tmp_path: Path) -> None:
    answers: list[Any] = []
    with group_broker(tmp_path) as broker:

        def ask(number: int) -> None:
            with broker.connect() as peer:
                answers.append(find(peer, f"group-{number}", version=number % 4))

        threads = [threading.Thread(target=ask, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert [answer.error_code for answer in answers] == [NONE] * 8
        assert offsets_partitions(broker) == 5


@pytest.mark.parametrize("version", [4, 5, 6])
def test_several_groups_in_one_request(client: Peer, grouped: BrokerThread, version: int) -> None:
    answer = client.ask(FindCoordinatorRequest(coordinator_keys=["a", "b", ""]), version, FindCoordinatorResponse)
    assert [(each.key, each.error_code, each.node_id, each.port) for each in answer.coordinators] == [
        (key, NONE, 7, grouped.port) for key in ("a", "b", "")
    ]
    assert {each.error_message for each in answer.coordinators} == {""}


@pytest.mark.parametrize("version", [0, 1, 2, 3])
def test_one_group_in_a_request(client: Peer, grouped: BrokerThread, version: int) -> None:
    answer = find(client, version=version)
    assert (answer.error_code, answer.node_id, answer.port) == (NONE, 7, grouped.port)


def test_transactions_and_share_groups_have_no_coordinator(client: Peer) -> None:
    answer = client.ask(FindCoordinatorRequest(key="x", key_type=1), 3, FindCoordinatorResponse)
    assert (answer.error_code, answer.node_id) == (NOT_AVAILABLE, -1)
    for key_type, key in ((1, "x"), (2, f"g:{'A' * 22}:0")):
        batched = FindCoordinatorRequest(coordinator_keys=[key], key_type=key_type)
        assert client.ask(batched, 6, FindCoordinatorResponse).coordinators[0].error_code == NOT_AVAILABLE


def test_a_coordinator_of_an_unknown_kind(client: Peer) -> None:
    answer = client.ask(FindCoordinatorRequest(key="x", key_type=7), 3, FindCoordinatorResponse)
    assert answer.error_code == ErrorCode.INVALID_REQUEST


def test_a_replication_factor_that_cannot_be_met(tmp_path: Path, log_lines: list[str]) -> None:
    with group_broker(tmp_path, offsets_topic_replication_factor="3") as broker, broker.connect() as peer:
        assert find(peer).error_code == NOT_AVAILABLE
        assert find(peer, version=6).coordinators[0].error_code == NOT_AVAILABLE
        assert offsets_partitions(broker) == 0
    assert "replication factor of 3 cannot be reached" in "".join(log_lines)


def test_made_by_hand_beforehand_with_other_settings(tmp_path: Path) -> None:
    with group_broker(tmp_path) as broker, broker.connect() as peer:
        topic = CreatableTopic(name=OFFSETS_TOPIC, num_partitions=2, replication_factor=1)
        (made,) = peer.ask(CreateTopicsRequest(topics=[topic], timeout_ms=60_000), 5, CreateTopicsResponse).topics
        assert made.error_code == NONE
        broker.create_topic("t", 1)
        assert find(peer).error_code == NONE
        assert offsets_partitions(broker) == 2
        wait_loaded(peer, "g")
        assert commit(peer, "g", {("t", 0): 7}) == {("t", 0): NONE}


def asked_until_it_is_there(peer: Peer, request: MetadataRequest) -> list[Any]:
    """All answers about one topic, up to the first without an error."""
    answers: list[Any] = []
    deadline = time.monotonic() + SECONDS_MAX
    while not answers or answers[-1].error_code != NONE:
        answers += peer.ask(request, 8, MetadataResponse).topics
        assert time.monotonic() < deadline, "it is not made"
    return answers


def test_metadata_that_may_create_topics_creates_it_as_it_is_to_be(tmp_path: Path) -> None:
    with group_broker(tmp_path) as broker, broker.connect() as peer:
        asked = MetadataRequest(topics=[MetadataRequestTopic(name=OFFSETS_TOPIC)], allow_auto_topic_creation=True)
        first, *_, topic = asked_until_it_is_there(peer, asked)
        assert (first.error_code, first.is_internal) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, True)
        assert (topic.error_code, topic.is_internal, len(topic.partitions)) == (NONE, True, 5)
        assert overrides(peer, OFFSETS_TOPIC)["cleanup.policy"] == "compact"


def test_an_administrator_configures_it_like_any_topic(tmp_path: Path) -> None:
    with group_broker(tmp_path) as broker, broker.connect() as peer:
        find(peer)
        change = AlterableConfig(name="min.cleanable.dirty.ratio", config_operation=0, value="0.1")
        resource = AlterConfigsResource(resource_type=TOPIC_RESOURCE, resource_name=OFFSETS_TOPIC, configs=[change])
        request = IncrementalAlterConfigsRequest(resources=[resource])
        assert peer.ask(request, 1, IncrementalAlterConfigsResponse).responses[0].error_code == NONE
        assert overrides(peer, OFFSETS_TOPIC)["min.cleanable.dirty.ratio"] == "0.1"


def test_deleted_it_takes_groups_and_offsets_with_it_and_is_made_anew(tmp_path: Path) -> None:
    with group_broker(tmp_path) as broker, broker.connect() as peer:
        broker.create_topic("t", 1)
        find(peer)
        wait_loaded(peer, "g")
        assert commit(peer, "g", {("t", 0): 7}) == {("t", 0): NONE}
        services = broker.broker.services
        assert services is not None
        (deleted,) = broker.run(services.controller.delete_topics([TopicRef(OFFSETS_TOPIC)]))
        assert deleted.error == NONE
        refused = commit(peer, "g", {("t", 0): 8})
        assert refused[("t", 0)] in (NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR)
        assert find(peer).error_code == NONE
        wait_loaded(peer, "g")
        assert fetch(peer, "g", {"t": [0]}) == {("t", 0): -1}


def test_clients_cannot_write_to_it(client: Peer) -> None:
    """Whether there is the partition is asked before, as by Kafka."""
    data = encode_batch([Record(0, 1, b"k", b"v")])
    find(client, version=3)
    missing = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    for name, expected in ((OFFSETS_TOPIC, ErrorCode.INVALID_TOPIC_EXCEPTION), (TRANSACTION_TOPIC, missing)):
        part = PartitionProduceData(index=0, records=data)
        request = ProduceRequest(
            acks=-1, timeout_ms=1000, topic_data=[TopicProduceData(name=name, partition_data=[part])]
        )
        answer = client.ask(request, 9, ProduceResponse).responses[0].partition_responses[0]
        assert answer.error_code == expected


def test_every_version_that_kafka_serves_is_offered(client: Peer) -> None:
    request = ApiVersionsRequest(client_software_name="test", client_software_version="1")
    offered = client.ask(request, 4, ApiVersionsResponse).api_keys
    served = {each.api_key: (each.min_version, each.max_version) for each in offered}
    assert {key: served.get(key) for key in KAFKAS_VERSIONS} == KAFKAS_VERSIONS


@pytest.mark.parametrize("version", [0, 2, 3, 4])
def test_group_version_is_among_the_features(client: Peer, version: int) -> None:
    request = ApiVersionsRequest(client_software_name="test", client_software_version="1")
    answer = client.ask(request, version, ApiVersionsResponse)
    finalized = [(each.name, each.min_version_level, each.max_version_level) for each in answer.finalized_features]
    supported = [(each.name, each.min_version, each.max_version) for each in answer.supported_features]
    assert finalized == ([("group.version", 1, 1), ("transaction.version", 2, 2)] if version >= 3 else [])
    # A range that begins at 0 cannot be told to older clients.
    assert supported == ([("group.version", 0, 1), ("transaction.version", 0, 2)] if version >= 4 else [])
    assert (answer.finalized_features_epoch >= 0) == (version >= 3)


def test_without_the_newer_protocol_group_version_is_0(tmp_path: Path) -> None:
    with group_broker(tmp_path, group_coordinator_rebalance_protocols="classic") as broker, broker.connect() as peer:
        request = ApiVersionsRequest(client_software_name="test", client_software_version="1")
        answer = peer.ask(request, 4, ApiVersionsResponse)
        assert [each.name for each in answer.finalized_features] == ["transaction.version"]
        assert [each.name for each in answer.supported_features] == ["group.version", "transaction.version"]
