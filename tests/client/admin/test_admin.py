"""Admin against a broker: what it changes is there, what it cannot do has a name."""

from __future__ import annotations

import asyncio

import pytest
from tests.client.proxy import Action, Pass, Proxy, Reply, Request
from tests.client.reading import eventually
from tools.server_process import free_port

from ottla.client.admin.admin import Admin
from ottla.client.admin.results import (
    EARLIEST,
    LATEST,
    MAX_TIMESTAMP,
    ConfigChange,
    ConfigOperation,
    ConfigResource,
    ConfigSource,
    NewTopic,
)
from ottla.client.errors import (
    InvalidConfig,
    InvalidPartitions,
    InvalidReplicationFactor,
    InvalidTopic,
    KafkaError,
    LogDirNotFound,
    NoBrokerReached,
    OffsetOutOfRange,
    SomeFailed,
    TopicAlreadyExists,
    UnknownTopicOrPartition,
)
from ottla.client.producing.producer import Producer
from ottla.model import ZERO_TOPIC_ID, ErrorCode, TopicPartition
from ottla.protocol.apis import ApiKey
from ottla.protocol.generated.create_topics import CreatableTopicResult, CreateTopicsResponse
from ottla.protocol.generated.metadata import MetadataResponse


async def has_partitions(admin: Admin, topic: str, count: int) -> bool:
    try:
        return len((await admin.describe_topic(topic)).partitions) == count
    except UnknownTopicOrPartition:
        return count == 0


async def test_the_cluster(bootstrap: str) -> None:
    async with Admin(bootstrap_servers=bootstrap) as admin:
        cluster = await admin.describe_cluster()
    assert cluster.cluster_id
    (node,) = cluster.brokers
    assert f"{node.host}:{node.port}" == bootstrap
    assert cluster.controller_id == node.id


async def test_a_topics_life(bootstrap: str, new_name: str) -> None:
    async with Admin(bootstrap_servers=bootstrap) as admin:
        created = await admin.create_topic(new_name, 2, 1, {"retention.ms": "1234567"})
        assert (created.name, created.partitions, created.replication_factor) == (new_name, 2, 1)
        assert created.topic_id != ZERO_TOPIC_ID
        assert created.configs["retention.ms"] == "1234567"
        await eventually(lambda: has_partitions(admin, new_name, 2))
        assert new_name in await admin.list_topics()
        described = await admin.describe_topic(new_name)
        assert described.topic_id == created.topic_id
        assert not described.internal
        assert [one.partition for one in described.partitions] == [0, 1]
        node = (await admin.describe_cluster()).brokers[0].id
        assert all(
            (one.leader, one.replicas, one.isr, one.error) == (node, (node,), (node,), None)
            for one in described.partitions
        )
        await admin.create_partitions({new_name: 5})
        await eventually(lambda: has_partitions(admin, new_name, 5))
        await admin.delete_topic(new_name)
        await eventually(lambda: has_partitions(admin, new_name, 0))
        assert new_name not in await admin.list_topics()
        with pytest.raises(UnknownTopicOrPartition):
            await admin.describe_topic(new_name)


async def test_what_is_only_validated_does_not_happen(bootstrap: str, new_name: str) -> None:
    async with Admin(bootstrap_servers=bootstrap) as admin:
        await admin.create_topics([NewTopic(new_name, 1, 1)], validate_only=True)
        assert new_name not in await admin.list_topics()


async def test_a_topic_with_assigned_replicas(bootstrap: str, new_name: str) -> None:
    async with Admin(bootstrap_servers=bootstrap) as admin:
        node = (await admin.describe_cluster()).brokers[0].id
        await admin.create_topics([NewTopic(new_name, assignments={0: [node], 1: [node]})])
        await eventually(lambda: has_partitions(admin, new_name, 2))


@pytest.mark.parametrize(
    ("wanted", "error"),
    [
        (NewTopic("bad/name", 1, 1), InvalidTopic),
        (NewTopic("zero", 0, 1), InvalidPartitions),
        (NewTopic("many", 1, 5), InvalidReplicationFactor),
        (NewTopic("configured", 1, 1, {"no.such.config": "1"}), InvalidConfig),
        (NewTopic("configured", 1, 1, {"retention.ms": "soon"}), InvalidConfig),
    ],
)
async def test_topics_that_cannot_be(bootstrap: str, wanted: NewTopic, error: type[KafkaError]) -> None:
    async with Admin(bootstrap_servers=bootstrap) as admin:
        with pytest.raises(error) as caught:
            await admin.create_topics([wanted])
    assert not caught.value.retriable


async def test_some_of_several_fail(bootstrap: str, topic: str, new_name: str) -> None:
    fresh = new_name + "-fresh"
    async with Admin(bootstrap_servers=bootstrap) as admin:
        with pytest.raises(SomeFailed, match="1 of 2 failed") as caught:
            await admin.create_topics([NewTopic(topic, 1, 1), NewTopic(fresh, 1, 1)])
        assert isinstance(caught.value.errors[topic], TopicAlreadyExists)
        assert caught.value.results[fresh].name == fresh
        with pytest.raises(SomeFailed) as caught:
            await admin.delete_topics([fresh, "no-such-topic"])
        assert list(caught.value.errors) == ["no-such-topic"]


async def test_configurations(bootstrap: str, topic: str) -> None:
    resource = ConfigResource.topic(topic)
    async with Admin(bootstrap_servers=bootstrap) as admin:

        async def entry(name: str) -> tuple[str | None, ConfigSource]:
            found = (await admin.describe_configs([resource], names=[name]))[resource][name]
            return found.value, found.source

        assert await entry("cleanup.policy") == ("delete", ConfigSource.DEFAULT_CONFIG)
        await admin.incremental_alter_configs(
            {
                resource: [
                    ConfigChange("segment.ms", "70000"),
                    ConfigChange("cleanup.policy", "compact", ConfigOperation.APPEND),
                ]
            }
        )
        assert await entry("segment.ms") == ("70000", ConfigSource.TOPIC_CONFIG)
        assert (await entry("cleanup.policy"))[0] == "delete,compact"
        await admin.incremental_alter_configs({resource: [ConfigChange("segment.ms", None, ConfigOperation.DELETE)]})
        assert (await entry("segment.ms"))[1] is ConfigSource.DEFAULT_CONFIG
        await admin.alter_configs({resource: {"retention.bytes": "99999"}})
        assert (await entry("cleanup.policy"))[0] == "delete"  # what is not named goes back
        whole = (await admin.describe_configs([resource], synonyms=True, documentation=True))[resource]
        assert len(whole) > 20
        assert whole["retention.bytes"].documentation
        assert whole["retention.bytes"].synonyms[0].value == "99999"
        with pytest.raises(InvalidConfig):
            await admin.incremental_alter_configs({resource: [ConfigChange("segment.ms", "soon")]})
        with pytest.raises(UnknownTopicOrPartition):
            await admin.describe_configs([ConfigResource.topic("no-such-topic")])


async def test_a_brokers_configuration(bootstrap: str) -> None:
    async with Admin(bootstrap_servers=bootstrap) as admin:
        node = (await admin.describe_cluster()).brokers[0].id
        resource = ConfigResource.broker(node)
        found = (await admin.describe_configs([resource, ConfigResource.broker("")]))[resource]
        assert found["log.segment.bytes"].value == str(2**30)
        with pytest.raises(KafkaError, match="no broker 4711"):
            await admin.describe_configs([ConfigResource.broker(4711)])


async def test_a_broker_that_cannot_be_asked_hides_nothing_of_the_others(bootstrap: str, topic: str) -> None:
    async with Admin(bootstrap_servers=bootstrap) as admin:
        node = (await admin.describe_cluster()).brokers[0].id
        there, missing = ConfigResource.topic(topic), ConfigResource.broker(4711)
        with pytest.raises(SomeFailed) as described:
            await admin.describe_configs([missing, there])
        assert (set(described.value.errors), set(described.value.results)) == ({missing}, {there})
        change = [ConfigChange("retention.ms", "1234567")]
        with pytest.raises(SomeFailed) as altered:
            await admin.incremental_alter_configs({missing: change, there: change})
        assert (set(altered.value.errors), set(altered.value.results)) == ({missing}, {there})
        with pytest.raises(SomeFailed) as replaced:
            await admin.alter_configs({missing: {}, there: {}})
        assert (set(replaced.value.errors), set(replaced.value.results)) == ({missing}, {there})
        with pytest.raises(SomeFailed) as found:
            await admin.describe_log_dirs([4711, node])
        assert (set(found.value.errors), set(found.value.results)) == ({4711}, {node})
        (path,) = found.value.results[node]
        tp = TopicPartition(topic, 0)
        with pytest.raises(SomeFailed) as moved:
            await admin.alter_replica_log_dirs({4711: {tp: path}, node: {tp: path}})
        assert (set(moved.value.errors), set(moved.value.results)) == ({(4711, tp)}, {(node, tp)})


async def test_offsets_and_deleted_records(bootstrap: str, topic: str) -> None:
    tp = TopicPartition(topic, 0)
    async with Producer(bootstrap_servers=bootstrap) as producer:
        for timestamp in 1000, 3000, 2000:
            await producer.send(topic, b"x", timestamp=timestamp)
    async with Admin(bootstrap_servers=bootstrap) as admin:

        async def listed(timestamp: int) -> tuple[int, int]:
            found = (await admin.list_offsets({tp: timestamp}))[tp]
            return found.offset, found.timestamp

        assert await listed(EARLIEST) == (0, -1)
        assert await listed(LATEST) == (3, -1)
        assert await listed(MAX_TIMESTAMP) == (1, 3000)
        assert await listed(1500) == (1, 3000)
        assert await listed(5000) == (-1, -1)
        assert await admin.delete_records({tp: 2}) == {tp: 2}
        assert (await listed(EARLIEST))[0] == 2
        with pytest.raises(OffsetOutOfRange):
            await admin.delete_records({tp: 4})
        with pytest.raises(SomeFailed) as caught:
            await admin.list_offsets({tp: LATEST, TopicPartition(topic, 9): LATEST})
        assert list(caught.value.results) == [tp]


async def test_directories(bootstrap: str, topic: str) -> None:
    tp = TopicPartition(topic, 0)
    async with Producer(bootstrap_servers=bootstrap) as producer:
        await producer.send_and_wait(topic, b"x" * 1000)
    async with Admin(bootstrap_servers=bootstrap) as admin:
        ((node, directories),) = (await admin.describe_log_dirs()).items()
        (directory,) = directories.values()
        assert directory.error is None
        assert 1000 < directory.replicas[tp].size < 2000
        assert (directory.replicas[tp].offset_lag, directory.replicas[tp].is_future) == (0, False)
        only = await admin.describe_log_dirs([node], {topic: [0]})
        assert set(only[node][directory.path].replicas) == {tp}
        with pytest.raises(LogDirNotFound):
            await admin.alter_replica_log_dirs({node: {tp: "/no/such/directory"}})


async def test_producers(bootstrap: str, topic: str) -> None:
    tp = TopicPartition(topic, 0)
    async with Admin(bootstrap_servers=bootstrap) as admin:
        assert await admin.describe_producers([tp]) == {tp: []}
        async with Producer(bootstrap_servers=bootstrap, batch_size=0) as producer:
            for _ in range(3):
                await producer.send_and_wait(topic, b"x")
        ((known,),) = (await admin.describe_producers([tp])).values()
        assert (known.last_sequence, known.producer_epoch) == (2, 0)
        assert known.transaction_start_offset is None


async def test_another_controller_is_asked(bootstrap: str, new_name: str) -> None:
    async with Proxy(bootstrap) as proxy:

        def rule(request: Request) -> Action:
            if request.key == ApiKey.CREATE_TOPICS and proxy.count(ApiKey.CREATE_TOPICS) == 1:
                refused = CreatableTopicResult(name=new_name, error_code=ErrorCode.NOT_CONTROLLER)
                return Reply(CreateTopicsResponse(topics=[refused]))
            return Pass()

        proxy.rule = rule
        async with Admin(bootstrap_servers=proxy.bootstrap, retry_backoff_ms=2) as admin:
            await admin.create_topic(new_name, 1, 1)
        assert proxy.count(ApiKey.CREATE_TOPICS) == 2


async def test_records_are_deleted_once_however_long_that_takes(bootstrap: str, topic: str) -> None:
    """Asked again, -1 would delete what was written meanwhile."""
    answered = asyncio.Event()

    def rule(request: Request) -> Action:
        if request.key != ApiKey.DELETE_RECORDS:
            return Pass()
        asyncio.get_running_loop().call_later(0.3, answered.set)
        return Pass(until=answered)

    async with (
        Proxy(bootstrap, rule) as proxy,
        Admin(bootstrap_servers=proxy.bootstrap, request_timeout_ms=100, retry_backoff_ms=2) as admin,
    ):
        assert await admin.delete_records({TopicPartition(topic, 0): -1}, timeout_ms=30_000)
    assert proxy.count(ApiKey.DELETE_RECORDS) == 1


async def test_a_broker_that_knows_nobody_yet_does_not_say_that_nothing_is_there(bootstrap: str, topic: str) -> None:
    """As one that has just started."""

    def nobody(answer: MetadataResponse) -> None:
        answer.brokers = []
        if answer.topics and len(answer.topics) == 1:
            answer.topics[0].error_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        else:
            answer.topics = []

    for look in (Admin.list_topics, Admin.describe_topics, lambda admin: admin.describe_topics([topic])):
        async with Proxy(bootstrap) as proxy, Admin(bootstrap_servers=proxy.bootstrap, retry_backoff_ms=2) as admin:
            proxy.rule = lambda _: Pass(nobody if proxy.count(ApiKey.METADATA) == 1 else None)
            assert topic in await look(admin)
            assert proxy.count(ApiKey.METADATA) >= 2


async def test_nobody_is_there() -> None:
    port = free_port()
    async with Admin(
        bootstrap_servers=f"127.0.0.1:{port}", default_api_timeout_ms=1_000, reconnect_backoff_ms=5, retry_backoff_ms=5
    ) as admin:
        with pytest.raises(NoBrokerReached, match=f"127.0.0.1:{port}"):
            await admin.list_topics()


async def test_one_dead_address_of_two_does_not_matter(bootstrap: str) -> None:
    async with Admin(bootstrap_servers=[f"127.0.0.1:{free_port()}", bootstrap]) as admin:
        assert (await admin.describe_cluster()).brokers
