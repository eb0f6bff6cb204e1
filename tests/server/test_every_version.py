"""Each API at every version that is advertised, over a socket: what it says and what it does.

APIs of groups have `tests/handlers/test_groups_*.py`, those of transactions `tests/handlers/test_transactions.py`,
Produce and Fetch their own tests beside them.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest
from tests.handlers.frames import batch, list_offset, produce
from tests.server.conftest import SECONDS_MAX, BrokerThread, Peer

from ottla.handlers.routes import BETWEEN_BROKERS, ROUTES
from ottla.model import ErrorCode
from ottla.protocol.apis import api
from ottla.protocol.generated.alter_configs import AlterableConfig, AlterConfigsRequest, AlterConfigsResource
from ottla.protocol.generated.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from ottla.protocol.generated.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from ottla.protocol.generated.api_versions import ApiVersionsRequest
from ottla.protocol.generated.create_acls import AclCreation, CreateAclsRequest
from ottla.protocol.generated.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from ottla.protocol.generated.create_topics import CreatableTopic, CreateTopicsRequest
from ottla.protocol.generated.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from ottla.protocol.generated.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from ottla.protocol.generated.delete_topics import DeleteTopicsRequest, DeleteTopicState
from ottla.protocol.generated.describe_acls import DescribeAclsRequest
from ottla.protocol.generated.describe_client_quotas import ComponentData, DescribeClientQuotasRequest
from ottla.protocol.generated.describe_cluster import DescribeClusterRequest
from ottla.protocol.generated.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from ottla.protocol.generated.describe_log_dirs import DescribableLogDirTopic, DescribeLogDirsRequest
from ottla.protocol.generated.describe_producers import DescribeProducersRequest, TopicRequest
from ottla.protocol.generated.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
)
from ottla.protocol.generated.describe_topic_partitions import TopicRequest as NamedTopic
from ottla.protocol.generated.describe_user_scram_credentials import DescribeUserScramCredentialsRequest, UserName
from ottla.protocol.generated.elect_leaders import ElectLeadersRequest
from ottla.protocol.generated.elect_leaders import TopicPartitions as ElectedTopic
from ottla.protocol.generated.find_coordinator import FindCoordinatorRequest
from ottla.protocol.generated.incremental_alter_configs import AlterableConfig as Change
from ottla.protocol.generated.incremental_alter_configs import (
    AlterConfigsResource as ChangedResource,
)
from ottla.protocol.generated.incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
)
from ottla.protocol.generated.init_producer_id import InitProducerIdRequest
from ottla.protocol.generated.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from ottla.protocol.generated.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsTopics,
)
from ottla.protocol.generated.metadata import MetadataRequest, MetadataRequestTopic
from ottla.protocol.generated.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from ottla.protocol.generated.update_features import FeatureUpdateKey, UpdateFeaturesRequest
from ottla.protocol.message import Message

TOPIC, BROKER = 2, 4
NONE = ErrorCode.NONE


class Scene:
    """A topic of one partition with five records of producer 9, made for one API and version."""

    def __init__(self, running: BrokerThread, peer: Peer, version: int, name: str) -> None:
        self.running, self.peer, self.version, self.name = running, peer, version, name
        running.create_topic(name)
        for sequence in range(5):
            stored = batch(b"v", timestamp=1000 + sequence, producer_id=9, producer_epoch=0, base_sequence=sequence)
            assert produce(peer, stored, topic=name).error_code == NONE

    def ask(self, request: Message) -> Any:
        return self.peer.ask(request, self.version, api(request.API_KEY).response_type())

    def partitions(self, name: str | None = None) -> int:
        wanted = self.name if name is None else name
        return self.running.look(
            lambda broker: len(broker.metadata.topics[wanted].partitions) if wanted in broker.metadata.topics else 0
        )

    def setting(self, name: str) -> str | None:
        return self.running.look(lambda broker: broker.metadata.topic_config(self.name).get(name))


def metadata(scene: Scene) -> None:
    answer = scene.ask(
        MetadataRequest(topics=[MetadataRequestTopic(name=scene.name), MetadataRequestTopic(name="no/")])
    )
    assert [(broker.host, broker.port) for broker in answer.brokers] == [("127.0.0.1", scene.running.port)]
    found, bad = answer.topics
    assert (found.error_code, found.name, len(found.partitions)) == (NONE, scene.name, 1)
    assert (bad.error_code, bad.partitions) == (ErrorCode.INVALID_TOPIC_EXCEPTION, [])
    everything = scene.ask(MetadataRequest(topics=[] if scene.version == 0 else None))
    assert scene.name in {topic.name for topic in everything.topics}
    if scene.version >= 4:
        asked = [MetadataRequestTopic(name=f"{scene.name}-none")]
        (missing,) = scene.ask(MetadataRequest(topics=asked, allow_auto_topic_creation=False)).topics
        assert missing.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    asked = [MetadataRequestTopic(name=f"{scene.name}-made")]
    (made,) = scene.ask(MetadataRequest(topics=asked)).topics
    assert (made.error_code, made.partitions) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, [])
    deadline = time.monotonic() + SECONDS_MAX
    while made.error_code != NONE and time.monotonic() < deadline:
        (made,) = scene.ask(MetadataRequest(topics=asked)).topics
    assert (made.error_code, len(made.partitions)) == (NONE, 1)
    if scene.version >= 12:
        by_id = [MetadataRequestTopic(name=None, topic_id=found.topic_id), MetadataRequestTopic(topic_id=b"\7" * 16)]
        named, unknown = scene.ask(MetadataRequest(topics=by_id)).topics
        assert (named.error_code, named.name) == (NONE, scene.name)
        assert (unknown.error_code, unknown.topic_id) == (ErrorCode.UNKNOWN_TOPIC_ID, b"\7" * 16)


def list_offsets(scene: Scene) -> None:
    # Timestamp: the version from which it may be asked for, and the offset.
    special = {-1: (1, 5), -2: (1, 0), -3: (7, 4), -4: (8, 0), -5: (9, -1), -6: (11, -1), 1003: (1, 3), 1005: (1, -1)}
    for timestamp, (since, offset) in special.items():
        asked = ListOffsetsTopic(
            name=scene.name, partitions=[ListOffsetsPartition(partition_index=0, timestamp=timestamp)]
        )
        answer = scene.ask(ListOffsetsRequest(replica_id=-1, topics=[asked])).topics[0].partitions[0]
        if scene.version < since:
            assert answer.error_code == ErrorCode.UNSUPPORTED_VERSION
        else:
            assert (answer.error_code, answer.offset) == (NONE, offset), timestamp


def find_coordinator(scene: Scene) -> None:
    """There is none in a cluster with too few brokers for the topics of coordinators."""
    for key_type in (0, 1) if scene.version >= 1 else (0,):
        if scene.version >= 4:
            answer = scene.ask(FindCoordinatorRequest(key_type=key_type, coordinator_keys=["a", "b"]))
            assert [each.key for each in answer.coordinators] == ["a", "b"]
            found = answer.coordinators
        elif scene.version >= 1:
            found = [scene.ask(FindCoordinatorRequest(key="a", key_type=key_type))]
        else:
            found = [scene.ask(FindCoordinatorRequest(key="a"))]
        for each in found:
            assert (each.error_code, each.node_id) == (ErrorCode.COORDINATOR_NOT_AVAILABLE, -1)


def api_versions(scene: Scene) -> None:
    answer = scene.ask(ApiVersionsRequest(client_software_name="test", client_software_version="1"))
    told = {each.api_key: (each.min_version, each.max_version) for each in answer.api_keys}
    assert answer.error_code == NONE
    assert {key: told[key] for key in ROUTES} == {k: (r.version_min, r.version_max) for k, r in ROUTES.items()}


def create_topics(scene: Scene) -> None:
    wanted = [CreatableTopic(name=name, num_partitions=3, replication_factor=1) for name in (f"{scene.name}-new", ".")]
    made, bad = scene.ask(CreateTopicsRequest(topics=wanted, timeout_ms=60_000)).topics
    assert (made.error_code, scene.partitions(made.name)) == (NONE, 3)
    assert bad.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
    (again,) = scene.ask(CreateTopicsRequest(topics=wanted[:1], timeout_ms=60_000)).topics
    assert again.error_code == ErrorCode.TOPIC_ALREADY_EXISTS
    only_asked = [CreatableTopic(name=f"{scene.name}-checked", num_partitions=1, replication_factor=1)]
    (checked,) = scene.ask(CreateTopicsRequest(topics=only_asked, timeout_ms=60_000, validate_only=True)).topics
    assert (checked.error_code, scene.partitions(checked.name)) == (NONE, 0)


def delete_topics(scene: Scene) -> None:
    names = [scene.name, f"{scene.name}-none"]
    if scene.version >= 6:
        topic_id = scene.running.look(lambda broker: broker.metadata.topics[scene.name].id)
        topics = [DeleteTopicState(name=None, topic_id=topic_id), DeleteTopicState(name=names[1])]
        answer = scene.ask(DeleteTopicsRequest(topics=topics, timeout_ms=60_000))
    else:
        answer = scene.ask(DeleteTopicsRequest(topic_names=names, timeout_ms=60_000))
    assert {each.name: each.error_code for each in answer.responses} == {
        names[0]: NONE,
        names[1]: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
    assert scene.partitions() == 0


def delete_records(scene: Scene) -> None:
    asked = [DeleteRecordsPartition(partition_index=0, offset=3), DeleteRecordsPartition(partition_index=5, offset=0)]
    request = DeleteRecordsRequest(topics=[DeleteRecordsTopic(name=scene.name, partitions=asked)], timeout_ms=60_000)
    done, unknown = scene.ask(request).topics[0].partitions
    assert (done.error_code, done.low_watermark) == (NONE, 3)
    assert unknown.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert list_offset(scene.peer, -2, topic=scene.name).offset == 3


def init_producer_id(scene: Scene) -> None:
    given = [
        scene.ask(InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1000)).producer_id
        for _ in range(3)
    ]
    assert sorted(set(given)) == given
    refused = scene.ask(InitProducerIdRequest(transactional_id="tx", transaction_timeout_ms=1000))
    assert (refused.error_code, refused.producer_id) == (ErrorCode.NOT_COORDINATOR, -1)


def offset_for_leader_epoch(scene: Scene) -> None:
    epoch = list_offset(scene.peer, -1, topic=scene.name).leader_epoch

    def ends(leader_epoch: int, current: int = -1, partition: int = 0, topic: str = scene.name) -> tuple[int, int, int]:
        asked = OffsetForLeaderPartition(partition=partition, leader_epoch=leader_epoch, current_leader_epoch=current)
        topics = [OffsetForLeaderTopic(topic=topic, partitions=[asked])]
        answer = scene.ask(OffsetForLeaderEpochRequest(topics=topics)).topics[0].partitions[0]
        return answer.error_code, answer.leader_epoch, answer.end_offset

    assert ends(epoch) == (NONE, epoch, 5)
    # A partition that nobody has written to knows its leader epoch too.
    empty = f"{scene.name}-empty"
    scene.running.create_topic(empty)
    assert ends(epoch, topic=empty) == (NONE, epoch, 0)
    assert list_offset(scene.peer, -2, topic=empty).leader_epoch == epoch
    assert ends(epoch + 7) == (NONE, -1, -1)
    assert ends(epoch, current=epoch + 1)[0] == ErrorCode.UNKNOWN_LEADER_EPOCH
    assert ends(epoch, partition=3)[0] == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def describe_configs(scene: Scene) -> None:
    asked = [
        DescribeConfigsResource(resource_type=TOPIC, resource_name=scene.name, configuration_keys=["segment.ms"]),
        DescribeConfigsResource(resource_type=BROKER, resource_name="1001", configuration_keys=["num.partitions"]),
        DescribeConfigsResource(resource_type=TOPIC, resource_name="nowhere", configuration_keys=None),
    ]
    topic, broker, unknown = scene.ask(DescribeConfigsRequest(resources=asked, include_synonyms=True)).results
    assert [(each.name, each.value) for each in topic.configs] == [("segment.ms", "604800000")]
    assert [(each.name, each.value) for each in broker.configs] == [("num.partitions", "1")]
    assert unknown.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert [synonym.name for synonym in topic.configs[0].synonyms] == ["log.roll.hours"]


def alter_configs(scene: Scene) -> None:
    def alter(value: str, *, validate_only: bool = False) -> int:
        resource = AlterConfigsResource(
            resource_type=TOPIC, resource_name=scene.name, configs=[AlterableConfig(name="retention.ms", value=value)]
        )
        answer = scene.ask(AlterConfigsRequest(resources=[resource], validate_only=validate_only))
        return int(answer.responses[0].error_code)

    assert (alter("5000"), scene.setting("retention.ms")) == (NONE, "5000")
    assert (alter("6000", validate_only=True), scene.setting("retention.ms")) == (NONE, "5000")
    assert (alter("soon"), scene.setting("retention.ms")) == (ErrorCode.INVALID_CONFIG, "5000")


def incremental_alter_configs(scene: Scene) -> None:
    def alter(operation: int, value: str | None, *, validate_only: bool = False) -> int:
        change = Change(name="cleanup.policy", config_operation=operation, value=value)
        resource = ChangedResource(resource_type=TOPIC, resource_name=scene.name, configs=[change])
        answer = scene.ask(IncrementalAlterConfigsRequest(resources=[resource], validate_only=validate_only))
        return int(answer.responses[0].error_code)

    assert (alter(2, "compact"), scene.setting("cleanup.policy")) == (NONE, "delete,compact")
    assert (alter(1, None, validate_only=True), scene.setting("cleanup.policy")) == (NONE, "delete,compact")
    assert (alter(1, None), scene.setting("cleanup.policy")) == (NONE, None)
    assert (alter(0, "shred"), scene.setting("cleanup.policy")) == (ErrorCode.INVALID_CONFIG, None)


def alter_replica_log_dirs(scene: Scene) -> None:
    here = scene.running.broker.config.storage.log_dirs[0]

    def move(path: str) -> int:
        topics = [AlterReplicaLogDirTopic(name=scene.name, partitions=[0])]
        answer = scene.ask(AlterReplicaLogDirsRequest(dirs=[AlterReplicaLogDir(path=path, topics=topics)]))
        return int(answer.results[0].partitions[0].error_code)

    assert move(here) == NONE
    assert move(f"{here}-elsewhere") == ErrorCode.LOG_DIR_NOT_FOUND


def describe_log_dirs(scene: Scene) -> None:
    asked = [DescribableLogDirTopic(topic=scene.name, partitions=[0])]
    (found,) = scene.ask(DescribeLogDirsRequest(topics=asked)).results
    assert (found.error_code, found.log_dir) == (NONE, scene.running.broker.config.storage.log_dirs[0])
    (topic,) = found.topics
    size = scene.running.look(lambda broker: next(log.size for log in broker.logs() if log.tp.topic == scene.name))
    assert [(each.partition_index, each.partition_size) for each in topic.partitions] == [(0, size)]
    (whole,) = scene.ask(DescribeLogDirsRequest(topics=None)).results
    assert scene.name in {each.name for each in whole.topics}


def create_partitions(scene: Scene) -> None:
    def grow(count: int, *, validate_only: bool = False) -> int:
        topics = [CreatePartitionsTopic(name=scene.name, count=count, assignments=None)]
        answer = scene.ask(CreatePartitionsRequest(topics=topics, timeout_ms=60_000, validate_only=validate_only))
        return int(answer.results[0].error_code)

    assert (grow(4, validate_only=True), scene.partitions()) == (NONE, 1)
    assert (grow(3), scene.partitions()) == (NONE, 3)
    assert (grow(2), scene.partitions()) == (ErrorCode.INVALID_PARTITIONS, 3)


def elect_leaders(scene: Scene) -> None:
    def elect(kind: int, partitions: list[int] | None) -> tuple[int, dict[int, tuple[int, str | None]]]:
        named = None if partitions is None else [ElectedTopic(topic=scene.name, partitions=partitions)]
        request = ElectLeadersRequest(topic_partitions=named, timeout_ms=60_000)
        if scene.version >= 1:
            request.election_type = kind
        answer = scene.ask(request)
        found = {
            each.partition_id: (each.error_code, each.error_message)
            for topic in answer.replica_election_results
            for each in topic.partition_result
        }
        return answer.error_code, found

    not_needed = (ErrorCode.ELECTION_NOT_NEEDED, "Leader election not needed for topic partition.")
    unknown = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"No such partition as {scene.name}-7")
    assert elect(0, [0, 7]) == (NONE, {0: not_needed, 7: unknown})
    # Of all partitions: those that need none are left out.
    assert elect(0, None) == (NONE, {})
    if scene.version >= 1:
        assert elect(1, [0]) == (NONE, {0: not_needed})
        refused = (ErrorCode.INVALID_REQUEST, "Unknown election type 5")
        assert elect(5, [0]) == (ErrorCode.INVALID_REQUEST, {0: refused})


def alter_partition_reassignments(scene: Scene) -> None:
    broker_id = scene.running.look(lambda broker: broker.broker_id)

    def move(replicas: list[int] | None, partition: int = 0) -> tuple[int, str | None]:
        moved = ReassignablePartition(partition_index=partition, replicas=replicas)
        topics = [ReassignableTopic(name=scene.name, partitions=[moved])]
        answer = scene.ask(AlterPartitionReassignmentsRequest(topics=topics, timeout_ms=60_000))
        assert (answer.error_code, answer.error_message) == (NONE, None)
        (topic,) = answer.responses
        (found,) = topic.partitions
        assert (topic.name, found.partition_index) == (scene.name, partition)
        return found.error_code, found.error_message

    assert move([broker_id]) == (NONE, None)
    assert move(None) == (ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, "No partition reassignment is in progress.")
    assert move([broker_id + 7])[0] == ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assert move([])[0] == ErrorCode.INVALID_REPLICA_ASSIGNMENT
    missing = f"Unable to find partition {scene.name}:4."
    assert move([broker_id], 4) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, missing)


def list_partition_reassignments(scene: Scene) -> None:
    named = [ListPartitionReassignmentsTopics(name=scene.name, partition_indexes=[0, 9])]
    for topics in (None, named, []):
        answer = scene.ask(ListPartitionReassignmentsRequest(topics=topics, timeout_ms=60_000))
        assert (answer.error_code, answer.error_message, answer.topics) == (NONE, None, [])


def update_features(scene: Scene) -> None:
    def update(level: int, kind: int = 1, name: str = "transaction.version") -> tuple[int, list[tuple[str, int, str]]]:
        update = FeatureUpdateKey(feature=name, max_version_level=level)
        if scene.version >= 1:
            update.upgrade_type = kind
        answer = scene.ask(UpdateFeaturesRequest(feature_updates=[update]))
        return answer.error_code, [(each.feature, each.error_code, each.error_message) for each in answer.results]

    taken = (NONE, [("transaction.version", NONE, "NONE")] if scene.version < 2 else [])
    refused = (ErrorCode.INVALID_UPDATE_VERSION, [])
    assert update(1) == update(3) == update(-1) == update(1, name="none") == update(0, name="group.version") == refused
    assert update(2) == taken
    if scene.version >= 1:
        assert update(1, 2) == taken
        assert update(2, 3) == refused
        assert update(0, 3) == update(2) == taken
    many = [FeatureUpdateKey(feature="transaction.version", max_version_level=2)] * 101
    assert scene.ask(UpdateFeaturesRequest(feature_updates=many)).error_code == ErrorCode.INVALID_REQUEST


def describe_cluster(scene: Scene) -> None:
    answer = scene.ask(DescribeClusterRequest())
    known = scene.running.look(lambda broker: (broker.metadata.cluster_id, broker.broker_id))
    assert (answer.cluster_id, answer.controller_id) == known
    assert [(each.broker_id, each.host, each.port) for each in answer.brokers] == [
        (known[1], "127.0.0.1", scene.running.port)
    ]
    if scene.version >= 1:
        refused = scene.ask(DescribeClusterRequest(endpoint_type=2))
        assert refused.error_code == ErrorCode.MISMATCHED_ENDPOINT_TYPE


def describe_producers(scene: Scene) -> None:
    asked = [TopicRequest(name=scene.name, partition_indexes=[0, 4])]
    found, unknown = scene.ask(DescribeProducersRequest(topics=asked)).topics[0].partitions
    (only,) = found.active_producers
    assert (only.producer_id, only.producer_epoch, only.last_sequence, only.last_timestamp) == (9, 0, 4, 1004)
    assert unknown.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def describe_acls(scene: Scene) -> None:
    request = DescribeAclsRequest(
        resource_type_filter=1,
        resource_name_filter=None,
        principal_filter=None,
        host_filter=None,
        operation=1,
        permission_type=1,
    )
    answer = scene.ask(request)
    assert (answer.error_code, answer.resources) == (ErrorCode.SECURITY_DISABLED, [])
    assert answer.error_message == "No Authorizer is configured on the broker"


def create_acls(scene: Scene) -> None:
    rule = AclCreation(resource_type=2, resource_name=scene.name, principal="User:a", host="*", operation=3)
    results = scene.ask(CreateAclsRequest(creations=[rule, rule])).results
    assert [(each.error_code, each.error_message) for each in results] == [
        (ErrorCode.SECURITY_DISABLED, "No Authorizer is configured.")
    ] * 2


def delete_acls(scene: Scene) -> None:
    gone = DeleteAclsFilter(resource_type_filter=1, resource_name_filter=None, principal_filter=None, host_filter=None)
    results = scene.ask(DeleteAclsRequest(filters=[gone, gone, gone])).filter_results
    assert [(each.error_code, each.matching_acls) for each in results] == [(ErrorCode.SECURITY_DISABLED, [])] * 3


def describe_client_quotas(scene: Scene) -> None:
    def asked(kind: str, match_type: int, match: str | None) -> Any:
        component = ComponentData(entity_type=kind, match_type=match_type, match=match)
        return scene.ask(DescribeClientQuotasRequest(components=[component]))

    answer = asked("user", 0, "a")
    assert (answer.error_code, answer.error_message, answer.entries) == (NONE, "", [])
    answer = asked("user", 1, "a")
    assert (answer.error_code, answer.entries) == (ErrorCode.INVALID_REQUEST, None)


def describe_user_scram_credentials(scene: Scene) -> None:
    users = [UserName(name=name) for name in ("a", "b", "a")]
    answer = scene.ask(DescribeUserScramCredentialsRequest(users=users))
    assert answer.error_code == NONE
    assert [(each.user, each.error_code) for each in answer.results] == [
        ("a", ErrorCode.DUPLICATE_RESOURCE),
        ("b", ErrorCode.RESOURCE_NOT_FOUND),
    ]
    assert scene.ask(DescribeUserScramCredentialsRequest(users=None)).results == []


def describe_topic_partitions(scene: Scene) -> None:
    names = [f"{scene.name}-{letter}" for letter in "cab"]
    for name in names:
        scene.running.create_topic(name, 3)
    pages: list[list[tuple[str, int]]] = []
    cursor: Cursor | None = None
    while True:
        request = DescribeTopicPartitionsRequest(
            topics=[NamedTopic(name=name) for name in names], response_partition_limit=2, cursor=cursor
        )
        page: DescribeTopicPartitionsResponse = scene.ask(request)
        pages.append([(topic.name, each.partition_index) for topic in page.topics for each in topic.partitions])
        if page.next_cursor is None:
            break
        cursor = Cursor(topic_name=page.next_cursor.topic_name, partition_index=page.next_cursor.partition_index)
    assert all(0 < len(each) <= 2 for each in pages)
    assert [each for page in pages for each in page] == [(name, n) for name in sorted(names) for n in range(3)]
    (fault,) = scene.ask(DescribeTopicPartitionsRequest(topics=[NamedTopic(name="nowhere")])).topics
    assert fault.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


CASES: dict[str, Callable[[Scene], None]] = {
    case.__name__: case
    for case in (
        list_offsets,
        metadata,
        find_coordinator,
        api_versions,
        create_topics,
        delete_topics,
        delete_records,
        init_producer_id,
        offset_for_leader_epoch,
        describe_configs,
        alter_configs,
        incremental_alter_configs,
        alter_replica_log_dirs,
        describe_log_dirs,
        create_partitions,
        elect_leaders,
        alter_partition_reassignments,
        list_partition_reassignments,
        describe_acls,
        create_acls,
        delete_acls,
        describe_client_quotas,
        describe_user_scram_credentials,
        update_features,
        describe_cluster,
        describe_producers,
        describe_topic_partitions,
    )
}
#: Tested with the groups that they are about.
GROUPS = {8, 9, 11, 12, 13, 14, 15, 16, 42, 47, 68, 69}
TRANSACTIONS = {24, 25, 26, 27, 28, 65, 66}
#: Tested in tests/handlers/test_requests_of_{controllers,brokers}.py.
ELSEWHERE = GROUPS | TRANSACTIONS | BETWEEN_BROKERS
SERVED = {route.module: route for key, route in ROUTES.items() if key not in ELSEWHERE}


def test_no_api_is_left_out() -> None:
    assert CASES.keys() == SERVED.keys()


@pytest.mark.parametrize(
    ("name", "version"),
    [(name, version) for name, route in SERVED.items() for version in range(route.version_min, route.version_max + 1)],
)
def test_it_answers_and_acts(running: BrokerThread, peer: Peer, name: str, version: int) -> None:
    CASES[name](Scene(running, peer, version, f"{name}-{version}"))
