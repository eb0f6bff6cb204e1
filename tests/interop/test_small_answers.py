"""Odd requests, word by word, and what Apache Kafka 4.3 answers: each is asked of either broker by the same lines."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient

from ottla.model import ZERO_TOPIC_ID, ErrorCode
from ottla.protocol.generated.alter_configs import AlterableConfig, AlterConfigsRequest, AlterConfigsResource
from ottla.protocol.generated.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from ottla.protocol.generated.create_topics import CreatableTopic, CreateTopicsRequest
from ottla.protocol.generated.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from ottla.protocol.generated.delete_topics import DeleteTopicsRequest, DeleteTopicState
from ottla.protocol.generated.describe_cluster import DescribeClusterRequest
from ottla.protocol.generated.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from ottla.protocol.generated.describe_log_dirs import DescribeLogDirsRequest
from ottla.protocol.generated.describe_producers import DescribeProducersRequest, TopicRequest
from ottla.protocol.generated.describe_topic_partitions import Cursor, DescribeTopicPartitionsRequest
from ottla.protocol.generated.describe_topic_partitions import TopicRequest as Named
from ottla.protocol.generated.fetch import FetchPartition, FetchRequest, FetchTopic
from ottla.protocol.generated.find_coordinator import FindCoordinatorRequest
from ottla.protocol.generated.incremental_alter_configs import AlterableConfig as Change
from ottla.protocol.generated.incremental_alter_configs import AlterConfigsResource as Changed
from ottla.protocol.generated.incremental_alter_configs import IncrementalAlterConfigsRequest
from ottla.protocol.generated.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from ottla.protocol.generated.metadata import MetadataRequest, MetadataRequestTopic
from ottla.protocol.generated.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from ottla.records.batch import TRANSACTIONAL, patch_crc
from ottla.records.record import Record, encode_batch
from tests.interop.conftest import create_topic
from tests.interop.group_wire import Peer

NONE, INVALID, UNKNOWN = ErrorCode.NONE, ErrorCode.INVALID_REQUEST, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
NOBODYS_ID = b"\3" * 16
TOPIC, BROKER = 2, 4
TIME = 1_700_000_000_000


@pytest.fixture
def peer(bootstrap: str) -> Iterator[Peer]:
    client = Peer(bootstrap, "odd")
    yield client
    client.close()


@pytest.fixture
def broker_id(peer: Peer) -> str:
    return str(peer.ask(DescribeClusterRequest(), 0).controller_id)


@pytest.fixture
def topic_id(peer: Peer, topic: str) -> bytes:
    identity: bytes = peer.ask(metadata((topic, ZERO_TOPIC_ID)), 12).topics[0].topic_id
    return identity


def records(count: int = 1, key: bytes | None = b"k", **options: Any) -> bytes:
    return encode_batch(
        [Record(offset=n, timestamp=TIME, key=key, value=b"v", headers=()) for n in range(count)], **options
    )


def produce(peer: Peer, topic: str, raw: bytes, version: int = 9) -> Any:
    data = [TopicProduceData(name=topic, partition_data=[PartitionProduceData(index=0, records=raw)])]
    answer = peer.ask(ProduceRequest(acks=-1, timeout_ms=60_000, topic_data=data), version)
    return answer.responses[0].partition_responses[0]


# -- Metadata


def metadata(*topics: tuple[str | None, bytes], **options: Any) -> MetadataRequest:
    asked = [MetadataRequestTopic(name=name, topic_id=topic_id) for name, topic_id in topics]
    return MetadataRequest(topics=asked, **{"allow_auto_topic_creation": False, **options})


@pytest.mark.parametrize("version", [10, 11])
def test_topics_have_names_below_version_12(peer: Peer, topic: str, topic_id: bytes, version: int) -> None:
    for name, given in ((topic, topic_id), (None, topic_id), (None, ZERO_TOPIC_ID), (topic, NOBODYS_ID)):
        answer = peer.ask(metadata((name, given), (topic, ZERO_TOPIC_ID)), version)
        assert (answer.brokers, answer.cluster_id, answer.controller_id) == ([], None, -1)
        assert [(each.error_code, each.name, each.topic_id) for each in answer.topics] == [
            (INVALID, name or "", given),
            (INVALID, topic, ZERO_TOPIC_ID),
        ]


@pytest.mark.parametrize("version", [12, 13])
def test_an_id_comes_before_a_name(peer: Peer, admin: AdminClient, topic: str, topic_id: bytes, version: int) -> None:
    create_topic(admin, f"{topic}-other")

    def found(*topics: tuple[str | None, bytes]) -> list[tuple[int, str | None, bytes]]:
        answer = peer.ask(metadata(*topics), version)
        return sorted((each.error_code, each.name or "", each.topic_id) for each in answer.topics)

    nobody = (ErrorCode.UNKNOWN_TOPIC_ID, "", NOBODYS_ID)
    here = (NONE, topic, topic_id)
    assert peer.ask(metadata((topic, NOBODYS_ID)), version).topics[0].name is None
    assert found((topic, NOBODYS_ID)) == [nobody]
    assert found((f"{topic}-other", topic_id)) == [here]
    assert found((f"{topic}-other", ZERO_TOPIC_ID), (None, topic_id)) == [here]
    assert found((None, topic_id), (None, NOBODYS_ID), (None, topic_id), (None, NOBODYS_ID)) == [here, nobody]


@pytest.mark.parametrize("version", [1, 4, 9, 12])
def test_a_topic_that_is_named_twice_is_told_once(peer: Peer, topic: str, version: int) -> None:
    options = {} if version >= 4 else {"allow_auto_topic_creation": True}
    names = [topic, topic] if version < 4 else [topic, f"{topic}-none", topic, f"{topic}-none"]
    answer = peer.ask(metadata(*((name, ZERO_TOPIC_ID) for name in names), **options), version)
    assert sorted(each.name for each in answer.topics) == sorted(set(names))


@pytest.mark.parametrize("version", [8, 9, 10])
def test_what_may_be_done_with_a_cluster(peer: Peer, version: int) -> None:
    answer = peer.ask(metadata(include_cluster_authorized_operations=True), version)
    assert answer.cluster_authorized_operations == 8096
    described = peer.ask(DescribeClusterRequest(include_cluster_authorized_operations=True), 0)
    assert described.cluster_authorized_operations == 8096


def test_what_may_be_done_with_a_topic_that_there_is_not(peer: Peer, topic: str) -> None:
    names = (topic, f"{topic}-none", "a b")
    asked = metadata(*((name, ZERO_TOPIC_ID) for name in names), include_topic_authorized_operations=True)
    for version in (8, 12):
        assert [each.topic_authorized_operations for each in peer.ask(asked, version).topics] == [3576] * 3
    pages = DescribeTopicPartitionsRequest(topics=[Named(name=name) for name in names])
    assert [each.topic_authorized_operations for each in peer.ask(pages, 0).topics] == [3576] * 3


# -- topics and their settings


@pytest.mark.parametrize("version", [5, 7])
def test_a_topic_that_is_not_created_has_no_settings(peer: Peer, topic: str, version: int) -> None:
    request = CreateTopicsRequest(topics=[CreatableTopic(name=topic, num_partitions=1, replication_factor=1)])
    (answer,) = peer.ask(request, version).topics
    assert (answer.error_code, answer.configs) == (ErrorCode.TOPIC_ALREADY_EXISTS, [])


def test_a_created_topic_has_the_settings_that_are_described(peer: Peer, new_name: str) -> None:
    request = CreateTopicsRequest(topics=[CreatableTopic(name=new_name, num_partitions=1, replication_factor=1)])
    (created,) = peer.ask(request, 7).topics
    all_of_it = DescribeConfigsResource(resource_type=TOPIC, resource_name=new_name, configuration_keys=None)
    (described,) = peer.ask(DescribeConfigsRequest(resources=[all_of_it]), 4).results
    assert sorted(each.name for each in created.configs) == sorted(each.name for each in described.configs)


@pytest.mark.parametrize(
    ("name", "value", "error"),
    [
        ("retention.ms", "5", UNKNOWN),
        ("retention.ms", "soon", ErrorCode.INVALID_CONFIG),
        ("nope", "5", ErrorCode.INVALID_CONFIG),
        ("retention.ms", None, INVALID),
    ],
)
def test_settings_of_a_topic_that_there_is_not(
    peer: Peer, new_name: str, name: str, value: str | None, error: ErrorCode
) -> None:
    changed = Changed(resource_type=TOPIC, resource_name=new_name, configs=[Change(name=name, value=value)])
    (answer,) = peer.ask(IncrementalAlterConfigsRequest(resources=[changed]), 1).responses
    assert answer.error_code == error
    replaced = AlterConfigsResource(
        resource_type=TOPIC, resource_name=new_name, configs=[AlterableConfig(name=name, value=value)]
    )
    (answer,) = peer.ask(AlterConfigsRequest(resources=[replaced]), 2).responses
    assert answer.error_code == error


def test_the_controllers_own_name_is_not_given_to_a_topic(peer: Peer) -> None:
    name = "__cluster_metadata"
    request = CreateTopicsRequest(
        topics=[CreatableTopic(name=name, num_partitions=1, replication_factor=1)], timeout_ms=60_000
    )
    (answer,) = peer.ask(request, 7).topics
    assert (answer.error_code, answer.error_message) == (
        INVALID,
        "Creation of internal topic __cluster_metadata is prohibited.",
    )
    for _ in range(2):
        (answer,) = peer.ask(metadata((name, ZERO_TOPIC_ID), allow_auto_topic_creation=True), 9).topics
        assert answer.error_code == UNKNOWN


def test_a_topic_that_is_named_twice_is_not_deleted(peer: Peer, topic: str, topic_id: bytes) -> None:
    def deleted(*topics: tuple[str | None, bytes]) -> list[tuple[int, str | None, str | None, bytes]]:
        states = [DeleteTopicState(name=name, topic_id=given) for name, given in topics]
        answer = peer.ask(DeleteTopicsRequest(topics=states, timeout_ms=60_000), 6)
        return [(each.error_code, each.error_message, each.name, each.topic_id) for each in answer.responses]

    name, by_id = (topic, ZERO_TOPIC_ID), (None, topic_id)
    twice = "The provided topic name maps to an ID that was already supplied."
    assert deleted(name, name) == [(INVALID, "Duplicate topic name.", topic, ZERO_TOPIC_ID)]
    assert deleted(by_id, by_id, by_id) == [(INVALID, "Duplicate topic id.", None, topic_id)]
    assert deleted(name, by_id) == [(INVALID, twice, topic, topic_id)]
    assert deleted(by_id, name) == [(INVALID, twice, topic, topic_id)]
    assert {error for error, *_ in deleted(by_id, by_id, name)} == {INVALID}
    answer = peer.ask(DeleteTopicsRequest(topic_names=[topic, topic], timeout_ms=60_000), 5)
    assert [(each.error_code, each.name) for each in answer.responses] == [(INVALID, topic)]
    assert peer.ask(metadata(name), 9).topics[0].error_code == NONE
    assert deleted(name) == [(NONE, None, topic, topic_id)]


@pytest.mark.parametrize(
    ("policy", "error"),
    [("", NONE), ("delete", NONE), ("compact", ErrorCode.POLICY_VIOLATION), ("compact,delete", NONE)],
)
def test_records_are_deleted_unless_the_topic_is_only_compacted(
    peer: Peer, admin: AdminClient, new_name: str, policy: str, error: ErrorCode
) -> None:
    create_topic(admin, new_name, **{"cleanup.policy": policy})
    assert produce(peer, new_name, records(3)).error_code == NONE
    asked = DeleteRecordsTopic(name=new_name, partitions=[DeleteRecordsPartition(partition_index=0, offset=2)])
    answer = peer.ask(DeleteRecordsRequest(topics=[asked], timeout_ms=60_000), 2).topics[0].partitions[0]
    assert (answer.error_code, answer.low_watermark) == (error, -1 if error else 2)


@pytest.mark.parametrize("whose", ["one", "all"])
@pytest.mark.parametrize(
    ("name", "operation", "value", "error"),
    [
        ("broker.id", 0, "7", INVALID),
        ("broker.rack", 0, "x", INVALID),
        ("num.io.threads", 0, "0", INVALID),
        ("num.io.threads", 0, "x", INVALID),
        ("log.retention.ms", 0, "9" * 40, INVALID),
        ("log.cleanup.policy", 0, "shred", INVALID),
        ("ssl.keystore.type", 0, "x", INVALID),
        ("num.io.threads", 2, "1", ErrorCode.INVALID_CONFIG),
        ("num.io.threads", 0, None, INVALID),
        ("num.io.threads", 9, "1", INVALID),
        ("log.cleanup.policy", 2, "compact", NONE),
    ],
)
def test_settings_of_brokers(
    peer: Peer, broker_id: str, whose: str, name: str, operation: int, value: str | None, error: ErrorCode
) -> None:
    change = Change(name=name, config_operation=operation, value=value)
    resource = Changed(resource_type=BROKER, resource_name=broker_id if whose == "one" else "", configs=[change])
    answer = peer.ask(IncrementalAlterConfigsRequest(resources=[resource], validate_only=True), 1)
    assert answer.responses[0].error_code == error
    if operation == 0 and value is not None:
        whole = AlterConfigsResource(
            resource_type=BROKER,
            resource_name=resource.resource_name,
            configs=[AlterableConfig(name=name, value=value)],
        )
        answer = peer.ask(AlterConfigsRequest(resources=[whole], validate_only=True), 2)
        assert answer.responses[0].error_code == error


def test_settings_of_topics_have_a_code_of_their_own(peer: Peer, topic: str) -> None:
    change = Change(name="retention.ms", config_operation=0, value="soon")
    resource = Changed(resource_type=TOPIC, resource_name=topic, configs=[change])
    answer = peer.ask(IncrementalAlterConfigsRequest(resources=[resource], validate_only=True), 1)
    assert answer.responses[0].error_code == ErrorCode.INVALID_CONFIG


@pytest.mark.parametrize("values", [("1000", "600000"), (None, "1000")])
def test_a_setting_is_not_given_twice(peer: Peer, topic: str, values: tuple[str | None, str]) -> None:
    given = [AlterableConfig(name="retention.ms", value=value) for value in values]
    whole = AlterConfigsResource(resource_type=TOPIC, resource_name=topic, configs=given)
    answer = peer.ask(AlterConfigsRequest(resources=[whole], validate_only=True), 2)
    assert answer.responses[0].error_code == INVALID


def test_moves_of_partitions_that_there_are_not(peer: Peer, topic: str) -> None:
    here = peer.ask(DescribeLogDirsRequest(topics=None), 4).results[0].log_dir
    for name, partition in ((f"{topic}-none", 0), (topic, 9), ("..", 0)):
        topics = [AlterReplicaLogDirTopic(name=name, partitions=[partition])]
        answer = peer.ask(AlterReplicaLogDirsRequest(dirs=[AlterReplicaLogDir(path=here, topics=topics)]), 2)
        assert answer.results[0].partitions[0].error_code == UNKNOWN


# -- looking


def test_a_cursor_that_points_nowhere(peer: Peer, topic: str) -> None:
    def ask(*names: str, cursor: tuple[str, int] | None = None, limit: int = 100) -> Any:
        begin = None if cursor is None else Cursor(topic_name=cursor[0], partition_index=cursor[1])
        topics = [Named(name=name) for name in names]
        return peer.ask(DescribeTopicPartitionsRequest(topics=topics, response_partition_limit=limit, cursor=begin), 0)

    none = f"{topic}-none"
    for cursor in ((topic, -1), (f"{topic}-", 0), ("a", 0)):
        answer = ask(topic, none, cursor=cursor)
        assert [(each.error_code, each.name) for each in answer.topics] == [(INVALID, topic), (INVALID, none)]
        assert answer.next_cursor is None
    # A page that is full, and behind it one that there is not.
    answer = ask(topic, none, limit=1)
    assert [(each.error_code, each.name) for each in answer.topics] == [(NONE, topic)]
    assert (answer.next_cursor.topic_name, answer.next_cursor.partition_index) == (none, 0)
    answer = ask(topic, none, cursor=(none, 0), limit=1)
    assert [(each.error_code, each.name) for each in answer.topics] == [(UNKNOWN, none)]
    assert answer.next_cursor is None
    answer = ask(topic, none, limit=2)
    assert [(each.error_code, each.name) for each in answer.topics] == [(NONE, topic), (UNKNOWN, none)]
    assert ask(cursor=("", -1)).topics == []


def test_producers_of_a_topic_that_there_cannot_be(peer: Peer, topic: str) -> None:
    asked = [TopicRequest(name=name, partition_indexes=[0]) for name in ("..", f"{topic}-none", topic)]
    answer = peer.ask(DescribeProducersRequest(topics=asked), 0)
    assert [each.partitions[0].error_code for each in answer.topics] == [
        ErrorCode.INVALID_TOPIC_EXCEPTION,
        UNKNOWN,
        NONE,
    ]


@pytest.mark.parametrize("version", [3, 5, 6])
def test_coordinators_of_share_groups(peer: Peer, version: int) -> None:
    identity = "A" * 21 + "Q"
    keys = {
        "g": False,
        "": False,
        "g:x:1": False,
        f"g:{identity}:x": False,
        f" :{identity}:1": False,
        f"g:{identity}:1:2": False,
        f"g:{identity}:1": True,
        f"g:{identity}:-1": True,
        f"g:{identity}:9999999999": False,
    }
    for key, sound in keys.items():
        if version < 4:
            error = peer.ask(FindCoordinatorRequest(key=key, key_type=2), version).error_code
        else:
            asked = FindCoordinatorRequest(coordinator_keys=[key], key_type=2)
            (found,) = peer.ask(asked, version).coordinators
            error = found.error_code
        expected = ErrorCode.COORDINATOR_NOT_AVAILABLE if sound and version >= 6 else INVALID
        assert error == expected, key


# -- reading


def fetch(peer: Peer, topic: str, version: int, topic_id: bytes = ZERO_TOPIC_ID, **options: Any) -> Any:
    of_partition = {
        "partition": 0,
        "fetch_offset": 0,
        "partition_max_bytes": 1 << 20,
        **{name: options.pop(name) for name in list(options) if name in FetchPartition.__slots__},
    }
    settings = {"max_wait_ms": 0, "min_bytes": 1, "max_bytes": 1 << 20, "session_epoch": -1, **options}
    one = FetchTopic(topic=topic, partitions=[FetchPartition(**of_partition)])
    if version >= 13:
        one.topic_id = topic_id
    return peer.ask(FetchRequest(topics=[one], **settings), version)


def numbers(answer: Any) -> tuple[int, int, int, int, bytes]:
    (only,) = answer.responses[0].partitions
    return (
        only.error_code,
        only.high_watermark,
        only.last_stable_offset,
        only.log_start_offset,
        bytes(only.records or b""),
    )


@pytest.mark.parametrize("version", [5, 12])
def test_who_asks_beyond_the_log_is_told_none_of_its_offsets(peer: Peer, topic: str, version: int) -> None:
    assert produce(peer, topic, records(3)).error_code == NONE
    nowhere = (ErrorCode.OFFSET_OUT_OF_RANGE, -1, -1, -1, b"")
    for offset in (4, 99, -1, -5):
        assert numbers(fetch(peer, topic, version, fetch_offset=offset)) == nowhere
        assert numbers(fetch(peer, topic, version, fetch_offset=offset, partition_max_bytes=0)) == nowhere
    if version >= 12:
        assert numbers(fetch(peer, topic, version, last_fetched_epoch=9)) == nowhere
        too_new = fetch(peer, topic, version, current_leader_epoch=99)
        assert numbers(too_new) == (ErrorCode.UNKNOWN_LEADER_EPOCH, -1, -1, -1, b"")


@pytest.mark.parametrize("version", [4, 12, 17])
def test_bytes_below_nought(peer: Peer, topic: str, topic_id: bytes, version: int) -> None:
    raw = records(3)
    assert produce(peer, topic, raw).error_code == NONE
    nothing = (ErrorCode.UNKNOWN_SERVER_ERROR, -1, -1, -1, b"")
    assert numbers(fetch(peer, topic, version, topic_id, max_bytes=-1)) == nothing
    assert numbers(fetch(peer, topic, version, topic_id, partition_max_bytes=-1)) == nothing
    for options in ({"max_bytes": 0}, {"partition_max_bytes": 0}, {"min_bytes": -1}, {"max_wait_ms": -1}):
        error, high_watermark, _, _, got = numbers(fetch(peer, topic, version, topic_id, **options))
        assert (error, high_watermark, len(got)) == (NONE, 3, len(raw))


@pytest.mark.parametrize("level", [5, -1])
@pytest.mark.parametrize("version", [4, 12, 17])
def test_a_level_of_isolation_that_there_is_not(
    peer: Peer, topic: str, topic_id: bytes, version: int, level: int
) -> None:
    error = ErrorCode.UNKNOWN_SERVER_ERROR
    for options in ({}, {"session_epoch": 0}) if version >= 12 else ({},):
        answer = fetch(peer, topic, version, topic_id, isolation_level=level, **options)
        assert (answer.error_code, answer.session_id) == (error if version >= 7 else NONE, 0)
        if version < 13:
            assert numbers(answer) == (error, -1, -1, -1, b"")
        else:
            assert answer.responses == []


@pytest.mark.parametrize("version", [2, 8])
def test_offsets_at_a_level_of_isolation_that_there_is_not(peer: Peer, topic: str, version: int) -> None:
    for name in (topic, f"{topic}-none"):
        partitions = [ListOffsetsPartition(partition_index=0, timestamp=-1)]
        topics = [ListOffsetsTopic(name=name, partitions=partitions)]
        answer = peer.ask(ListOffsetsRequest(replica_id=-1, isolation_level=5, topics=topics), version)
        (only,) = answer.topics[0].partitions
        assert (only.error_code, only.offset, only.timestamp) == (ErrorCode.UNKNOWN_SERVER_ERROR, -1, -1)


# -- writing


def test_more_replicas_in_sync_than_there_are(peer: Peer, admin: AdminClient, new_name: str) -> None:
    create_topic(admin, new_name, **{"min.insync.replicas": "3"})
    assert [produce(peer, new_name, records()).error_code for _ in range(3)] == [NONE] * 3


@pytest.mark.parametrize("version", [3, 9, 12])
def test_a_transaction_without_its_id(peer: Peer, topic: str, version: int) -> None:
    for options in ({}, {"producer_id": 4242, "producer_epoch": 0, "base_sequence": 0}):
        raw = bytearray(records(**options))
        raw[22] |= TRANSACTIONAL
        patch_crc(raw, 0)
        refused = produce(peer, topic, bytes(raw), version)
        assert refused.error_code == ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        assert produce(peer, topic, records(), version).error_code == NONE


@pytest.mark.parametrize("version", [3, 6, 7])
def test_zstd_in_versions_before_it(peer: Peer, topic: str, version: int) -> None:
    answer = produce(peer, topic, records(compression=4), version)
    assert answer.error_code == (ErrorCode.UNSUPPORTED_COMPRESSION_TYPE if version < 7 else NONE)
    assert produce(peer, topic, records(), version).error_code == NONE


#: What is wrong with a batch, and whether the answer names the log's start: Kafka looks at some before it has the log.
REFUSED: dict[str, tuple[Callable[[], bytes], ErrorCode, int]] = {
    "two batches": (lambda: records() + records(), ErrorCode.INVALID_RECORD, -1),
    "cut short": (lambda: records()[:-1], ErrorCode.INVALID_RECORD, -1),
    "checksum": (lambda: records()[:-1] + b"x", ErrorCode.CORRUPT_MESSAGE, -1),
    "no key": (lambda: records(key=None), ErrorCode.INVALID_RECORD, 0),
    "no sequence": (
        lambda: records(producer_id=7, producer_epoch=0, base_sequence=-1),
        ErrorCode.INVALID_RECORD,
        0,
    ),
    "too large": (lambda: records(3000), ErrorCode.MESSAGE_TOO_LARGE, -1),
    "zstd": (lambda: records(compression=4), ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, -1),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_refused_batch(peer: Peer, admin: AdminClient, new_name: str, name: str) -> None:
    create_topic(admin, new_name, **{"cleanup.policy": "compact", "max.message.bytes": "9000"})
    make, error, start = REFUSED[name]
    version = 6 if name == "zstd" else 8
    answer = produce(peer, new_name, make(), version)
    assert (answer.error_code, answer.base_offset, answer.log_start_offset) == (error, -1, start)


def test_a_record_ahead_of_its_time_is_named(peer: Peer, topic: str) -> None:
    late = [
        Record(offset=n, timestamp=TIME + (10**12 if n == 1 else 0), key=b"k", value=b"v", headers=()) for n in range(3)
    ]
    answer = produce(peer, topic, encode_batch(late), 8)
    assert (answer.error_code, answer.log_start_offset) == (ErrorCode.INVALID_TIMESTAMP, 0)
    ((index, message),) = [(each.batch_index, each.batch_index_error_message) for each in answer.record_errors]
    assert index == 1
    assert message.startswith(f"Timestamp {TIME + 10**12} of message with offset 1 is out of range. The timestamp")
