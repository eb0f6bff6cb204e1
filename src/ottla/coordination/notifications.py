"""Znodes by which brokers and tools ask the controller for something: their JSON, as Kafka 3.9 writes it.

ISR changes and failed log directories are written into sequential nodes; preferred leaders are asked for in one node,
and moves of partitions in another.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from ottla.coordination.znode_json import (
    FAULTS,
    DamagedZnode,
    broker_ids,
    decode_object,
    encode_object,
    integer,
    text_of,
    words,
)
from ottla.model import BrokerId, TopicPartition

ISR_CHANGES: Final = "/isr_change_notification"
#: Of sequential nodes there. Brokers of Kafka before AlterPartition make them, and tests; ours ask the controller.
ISR_CHANGE_PREFIX: Final = f"{ISR_CHANGES}/isr_change_"
LOG_DIR_EVENTS: Final = "/log_dir_event_notification"
LOG_DIR_EVENT_PREFIX: Final = f"{LOG_DIR_EVENTS}/log_dir_event_"
CONFIG_CHANGES: Final = "/config/changes"
CONFIG_CHANGE_PREFIX: Final = f"{CONFIG_CHANGES}/config_change_"
PREFERRED_REPLICA_ELECTION: Final = "/admin/preferred_replica_election"
REASSIGN_PARTITIONS: Final = "/admin/reassign_partitions"


def encode_partitions(partitions: Iterable[TopicPartition]) -> bytes:
    """Of an ISR notification and of a request for preferred leaders, as Kafka's own make them; for tests."""
    listed = [{"topic": found.topic, "partition": found.partition} for found in partitions]
    return encode_object({"version": 1, "partitions": listed})


def decode_partitions(path: str, data: bytes) -> list[TopicPartition]:
    value = decode_object(path, data)
    try:
        return [TopicPartition(text_of(one["topic"]), integer(one["partition"])) for one in value["partitions"]]
    except FAULTS as fault:
        raise DamagedZnode(path, words(fault)) from fault


def encode_reassignments(targets: Mapping[TopicPartition, Sequence[BrokerId]]) -> bytes:
    """Of a request to move partitions: where each is to be."""
    listed = [
        {"topic": found.topic, "partition": found.partition, "replicas": list(replicas)}
        for found, replicas in targets.items()
    ]
    return encode_object({"version": 1, "partitions": listed})


def decode_reassignments(path: str, data: bytes) -> dict[TopicPartition, tuple[BrokerId, ...]]:
    value = decode_object(path, data)
    try:
        return {
            TopicPartition(text_of(one["topic"]), integer(one["partition"])): broker_ids(one["replicas"])
            for one in value["partitions"]
        }
    except FAULTS as fault:
        raise DamagedZnode(path, words(fault)) from fault


def encode_log_dir_failure(broker_id: int) -> bytes:
    return encode_object({"version": 1, "broker": broker_id, "event": 1})


def decode_log_dir_failure(path: str, data: bytes) -> BrokerId:
    value = decode_object(path, data)
    try:
        return BrokerId(integer(value["broker"]))
    except FAULTS as fault:
        raise DamagedZnode(path, words(fault)) from fault


def encode_config_change(entity_path: str) -> bytes:
    """Of a change of overrides; the path is like `topics/orders`."""
    return encode_object({"version": 2, "entity_path": entity_path})


def decode_config_change(path: str, data: bytes) -> str:
    """Version 1 is that of Kafka 0.9's tools, which Kafka 3.9 reads as well."""
    value = decode_object(path, data)
    try:
        if value.get("version") == 1:
            return f"{text_of(value['entity_type'])}/{text_of(value['entity_name'])}"
        return text_of(value["entity_path"])
    except FAULTS as fault:
        raise DamagedZnode(path, words(fault)) from fault
