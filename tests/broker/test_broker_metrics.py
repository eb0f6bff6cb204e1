"""A broker's state in numbers."""

from __future__ import annotations

from confluent_kafka import Producer

from ottla import testing


def numbers(text: str) -> dict[str, float]:
    return {name: float(value) for name, value in (line.rsplit(" ", 1) for line in text.splitlines() if line[0] != "#")}


def test_an_empty_broker() -> None:
    with testing.broker() as broker:
        seen = numbers(broker.metrics())
    assert seen["kafka_brokers"] == 1
    assert seen["kafka_controller_kafkacontroller_activecontrollercount"] == 1
    for name in (
        "kafka_server_replicamanager_partitioncount",
        "kafka_server_replicamanager_leadercount",
        "kafka_server_replicamanager_underreplicatedpartitions",
        "kafka_server_replicamanager_underminisrpartitioncount",
        "kafka_server_replicamanager_isrshrinks_total",
        "kafka_server_replicamanager_isrexpands_total",
        "kafka_controller_kafkacontroller_offlinepartitionscount",
        "kafka_controller_controllerstats_uncleanleaderelections_total",
        "kafka_log_logmanager_offlinelogdirectorycount",
    ):
        assert seen[name] == 0, name


def test_topics_are_counted_and_forgotten_with_their_deletion() -> None:
    with testing.broker() as broker:
        broker.create_topic("orders", partitions=2, configs={"retention.ms": "-1"})
        broker.create_topic("strict", configs={"min.insync.replicas": "2"})
        producer = Producer({"bootstrap.servers": broker.bootstrap})
        for _ in range(5):
            producer.produce("orders", b"x" * 100, partition=1)
        assert producer.flush(60) == 0
        seen = numbers(broker.metrics())
        assert seen["kafka_server_replicamanager_partitioncount"] == 3
        assert seen["kafka_server_replicamanager_leadercount"] == 3
        # It asks for two in sync and has one replica in all: that is enough.
        assert seen["kafka_server_replicamanager_underminisrpartitioncount"] == 0
        assert seen['kafka_topic_partitions{topic="orders"}'] == 2
        assert seen['kafka_topic_partition_current_offset{topic="orders",partition="0"}'] == 0
        assert seen['kafka_topic_partition_current_offset{topic="orders",partition="1"}'] == 5
        assert seen['kafka_topic_partition_oldest_offset{topic="orders",partition="1"}'] == 0
        assert seen['kafka_log_log_size{topic="orders",partition="1"}'] > 500
        broker.delete_topic("orders")
        assert not [name for name in numbers(broker.metrics()) if '"orders"' in name]
