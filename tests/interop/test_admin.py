"""Topics, configurations and log directories, through three admin clients."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import confluent_kafka
import pytest
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.admin import NewPartitions as AioNewPartitions
from aiokafka.admin import NewTopic as AioNewTopic
from confluent_kafka import KafkaError, KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ConfigSource,
    NewPartitions,
    NewTopic,
    OffsetSpec,
    ResourceType,
)
from kafka.admin import ConfigFilterType, KafkaAdminClient
from kafka.admin import ConfigResource as PythonConfigResource
from kafka.admin import ConfigResourceType as PythonConfigResourceType

from tests.interop.clients import SECONDS_MAX, Row, eventually, read_confluent, write_confluent
from tests.interop.conftest import create_topic


def refusal(call: Callable[[], Any]) -> int:
    """The error code with which ``call`` is refused."""
    with pytest.raises(KafkaException) as raised:
        call()
    code: int = raised.value.args[0].code()
    return code


def topic_config(admin: AdminClient, name: str) -> dict[str, ConfigEntry]:
    resource = ConfigResource(ResourceType.TOPIC, name)
    entries: dict[str, ConfigEntry] = admin.describe_configs([resource])[resource].result(SECONDS_MAX)
    return entries


def exists(admin: AdminClient, name: str) -> bool:
    return name in admin.list_topics(timeout=SECONDS_MAX).topics


def alter(
    admin: AdminClient, resource: tuple[ResourceType, str], operation: AlterConfigOpType, key: str, value: Any
) -> None:
    entry = ConfigEntry(key, value, incremental_operation=operation)
    changed = ConfigResource(*resource, incremental_configs=[entry])
    admin.incremental_alter_configs([changed])[changed].result(SECONDS_MAX)


def test_create_describe_and_delete(admin: AdminClient, new_name: str) -> None:
    create_topic(admin, new_name, partitions=3)
    described = admin.describe_topics(TopicCollection([new_name]))[new_name].result(SECONDS_MAX)
    assert described.name == new_name
    assert str(described.topic_id) != "AAAAAAAAAAAAAAAAAAAAAA"
    assert [partition.id for partition in described.partitions] == [0, 1, 2]
    assert all(len(partition.isr) == len(partition.replicas) == 1 for partition in described.partitions)
    listed = admin.list_topics(timeout=SECONDS_MAX).topics[new_name]
    assert sorted(listed.partitions) == [0, 1, 2]

    admin.delete_topics([new_name])[new_name].result(SECONDS_MAX)
    eventually(lambda: not exists(admin, new_name))
    gone = admin.describe_topics(TopicCollection([new_name]))[new_name]
    assert refusal(lambda: gone.result(SECONDS_MAX)) == KafkaError.UNKNOWN_TOPIC_OR_PART


def test_a_deleted_topic_comes_back_empty_and_with_another_id(
    bootstrap: str, admin: AdminClient, new_name: str
) -> None:
    create_topic(admin, new_name)
    write_confluent(bootstrap, new_name, [Row(None, b"old", (), 1)] * 3, "none")
    before = admin.describe_topics(TopicCollection([new_name]))[new_name].result(SECONDS_MAX)
    admin.delete_topics([new_name])[new_name].result(SECONDS_MAX)
    eventually(lambda: not exists(admin, new_name))
    create_topic(admin, new_name)
    after = admin.describe_topics(TopicCollection([new_name]))[new_name].result(SECONDS_MAX)
    assert str(before.topic_id) != str(after.topic_id)
    write_confluent(bootstrap, new_name, [Row(None, b"new", (), 1)], "none")
    assert [(found.offset, found.row.value) for found in read_confluent(bootstrap, new_name, 1)] == [(0, b"new")]


def test_refusals_of_create_topics(admin: AdminClient, topic: str, new_name: str) -> None:
    wrong = {
        KafkaError.TOPIC_ALREADY_EXISTS: NewTopic(topic, 1, 1),
        KafkaError.TOPIC_EXCEPTION: NewTopic("not a name", 1, 1),
        KafkaError.INVALID_REPLICATION_FACTOR: NewTopic(f"{new_name}-b", 1, 3),
        KafkaError.INVALID_CONFIG: NewTopic(f"{new_name}-c", 1, 1, config={"retention.ms": "soon"}),
    }
    for code, asked in wrong.items():
        created = admin.create_topics([asked])[asked.topic]
        assert refusal(lambda created=created: created.result(SECONDS_MAX)) == code


def test_validate_only_creates_nothing(admin: AdminClient, new_name: str) -> None:
    admin.create_topics([NewTopic(new_name, 2, 1)], validate_only=True)[new_name].result(SECONDS_MAX)
    assert not exists(admin, new_name)


def test_an_explicit_assignment_is_kept(admin: AdminClient, new_name: str) -> None:
    broker_id = next(iter(admin.list_topics(timeout=SECONDS_MAX).brokers))
    asked = NewTopic(new_name, num_partitions=2, replica_assignment=[[broker_id], [broker_id]])
    admin.create_topics([asked])[new_name].result(SECONDS_MAX)
    eventually(lambda: exists(admin, new_name))
    listed = admin.list_topics(timeout=SECONDS_MAX).topics[new_name].partitions
    assert [listed[n].replicas for n in sorted(listed)] == [[broker_id], [broker_id]]


def test_partitions_are_added_and_never_taken_away(bootstrap: str, admin: AdminClient, topic: str) -> None:
    write_confluent(bootstrap, topic, [Row(None, b"kept", (), 1)], "none")
    admin.create_partitions([NewPartitions(topic, 4)])[topic].result(SECONDS_MAX)
    eventually(lambda: sorted(admin.list_topics(timeout=SECONDS_MAX).topics[topic].partitions) == [0, 1, 2, 3])
    fewer = admin.create_partitions([NewPartitions(topic, 2)])[topic]
    assert refusal(lambda: fewer.result(SECONDS_MAX)) == KafkaError.INVALID_PARTITIONS
    assert [found.row.value for found in read_confluent(bootstrap, topic, 1)] == [b"kept"]


def test_a_topics_configuration_is_described_with_its_sources(admin: AdminClient, new_name: str) -> None:
    create_topic(admin, new_name, max_message_bytes="77777")
    entries = topic_config(admin, new_name)
    assert entries["max.message.bytes"].value == "77777"
    assert entries["max.message.bytes"].source == ConfigSource.DYNAMIC_TOPIC_CONFIG.value
    assert entries["cleanup.policy"].value == "delete"
    assert entries["cleanup.policy"].source == ConfigSource.DEFAULT_CONFIG.value
    assert not any(entry.is_read_only or entry.is_sensitive for entry in entries.values())


def test_incremental_changes_of_a_topics_configuration(admin: AdminClient, topic: str) -> None:
    alter(admin, (ResourceType.TOPIC, topic), AlterConfigOpType.SET, "retention.ms", "123456")
    alter(admin, (ResourceType.TOPIC, topic), AlterConfigOpType.APPEND, "cleanup.policy", "compact")
    eventually(lambda: set(topic_config(admin, topic)["cleanup.policy"].value.split(",")) == {"delete", "compact"})
    assert topic_config(admin, topic)["retention.ms"].value == "123456"
    alter(admin, (ResourceType.TOPIC, topic), AlterConfigOpType.SUBTRACT, "cleanup.policy", "compact")
    alter(admin, (ResourceType.TOPIC, topic), AlterConfigOpType.DELETE, "retention.ms", None)
    eventually(lambda: topic_config(admin, topic)["retention.ms"].source == ConfigSource.DEFAULT_CONFIG.value)
    assert topic_config(admin, topic)["cleanup.policy"].value == "delete"


@pytest.mark.parametrize(("key", "value"), [("retention.ms", "soon"), ("no.such.property", "1")])
def test_a_bad_change_of_configuration_is_refused(admin: AdminClient, topic: str, key: str, value: str) -> None:
    code = refusal(lambda: alter(admin, (ResourceType.TOPIC, topic), AlterConfigOpType.SET, key, value))
    assert code == KafkaError.INVALID_CONFIG
    assert topic_config(admin, topic)["retention.ms"].value == "-1"


def test_a_brokers_configuration(admin: AdminClient) -> None:
    broker_id = str(next(iter(admin.list_topics(timeout=SECONDS_MAX).brokers)))
    resource = ConfigResource(ResourceType.BROKER, broker_id)

    def broker_config() -> dict[str, ConfigEntry]:
        entries: dict[str, ConfigEntry] = admin.describe_configs([resource])[resource].result(SECONDS_MAX)
        return entries

    entries = broker_config()
    assert entries["log.dirs"].is_read_only
    assert not entries["log.retention.ms"].is_read_only
    alter(admin, (ResourceType.BROKER, broker_id), AlterConfigOpType.SET, "log.cleaner.threads", "2")
    eventually(lambda: broker_config()["log.cleaner.threads"].value == "2")
    alter(admin, (ResourceType.BROKER, broker_id), AlterConfigOpType.DELETE, "log.cleaner.threads", None)


def test_describe_cluster(admin: AdminClient, bootstrap: str) -> None:
    described = admin.describe_cluster().result(SECONDS_MAX)
    assert [f"{node.host}:{node.port}" for node in described.nodes] == [bootstrap]
    assert described.controller.id == described.nodes[0].id
    assert len(described.cluster_id) == 22


def test_deleted_records_are_gone_for_readers(bootstrap: str, admin: AdminClient, topic: str) -> None:
    rows = [Row(None, b"%d" % n, (), 1) for n in range(10)]
    write_confluent(bootstrap, topic, rows, "none")
    partition = TopicPartition(topic, 0, 6)
    assert admin.delete_records([partition])[partition].result(SECONDS_MAX).low_watermark == 6
    earliest = admin.list_offsets({TopicPartition(topic, 0): OffsetSpec.earliest()})
    assert next(iter(earliest.values())).result(SECONDS_MAX).offset == 6
    assert [found.offset for found in read_confluent(bootstrap, topic, 4, start=6)] == [6, 7, 8, 9]

    beyond = TopicPartition(topic, 0, 11)
    refused = admin.delete_records([beyond])[beyond]
    assert refusal(lambda: refused.result(SECONDS_MAX)) == KafkaError.OFFSET_OUT_OF_RANGE
    everything = TopicPartition(topic, 0, confluent_kafka.OFFSET_END)
    assert admin.delete_records([everything])[everything].result(SECONDS_MAX).low_watermark == 10


def test_kafka_pythons_admin_client(bootstrap: str, topic: str) -> None:
    write_confluent(bootstrap, topic, [Row(None, b"x" * 1000, (), 1)], "none")
    admin = KafkaAdminClient(bootstrap_servers=bootstrap)
    described = next(iter(admin.describe_topics([topic])))
    assert described["name"] == topic
    described = next(iter(admin.describe_topic_partitions([topic])["topics"]))
    assert described["name"] == topic
    assert topic in repr(admin.describe_log_dirs())
    resource = PythonConfigResource(PythonConfigResourceType.TOPIC, topic)
    assert "retention.ms" in repr(admin.describe_configs([resource], config_filter=ConfigFilterType.ALL))
    admin.close()


def test_aiokafkas_admin_client(bootstrap: str, new_name: str) -> None:
    async def run() -> None:
        admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
        await admin.start()
        try:
            await admin.create_topics([AioNewTopic(new_name, 2, 1)])
            described = await admin.describe_topics([new_name])
            assert [partition["partition"] for partition in described[0]["partitions"]] == [0, 1]
            await admin.create_partitions({new_name: AioNewPartitions(3)})
            assert len((await admin.describe_topics([new_name]))[0]["partitions"]) == 3
            await admin.delete_topics([new_name])
        finally:
            await admin.close()

    asyncio.run(run())
    eventually(lambda: not exists(AdminClient({"bootstrap.servers": bootstrap}), new_name))
