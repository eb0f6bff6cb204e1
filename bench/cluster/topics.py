"""Topics with replicas where a benchmark wants them, and what brokers say of them."""

from __future__ import annotations

import time

from bench.frames import METADATA_VERSION
from bench.wire import ANSWER_SECONDS_MAX, UNLIMITED, Wire, WireError, delete_topic, wait_for_offsets
from ottla.model import ErrorCode
from ottla.protocol.generated.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from ottla.protocol.generated.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponseTopic

METADATA, CREATE_TOPICS = 3, 19


def cluster_size(port: int) -> int:
    """How many brokers this one knows of, itself included."""
    with Wire(port) as wire:
        return len(wire.call(METADATA, METADATA_VERSION, MetadataRequest(topics=[])).brokers)


def described(port: int, topic: str) -> MetadataResponseTopic:
    with Wire(port) as wire:
        asked = MetadataRequest(topics=[MetadataRequestTopic(name=topic)])
        found: MetadataResponseTopic = wire.call(METADATA, METADATA_VERSION, asked).topics[0]
        return found


def ask_for_topic(port: int, topic: str, assignment: list[list[int]], **settings: str) -> None:
    """Creates a topic without retention, whose partitions have these replicas. The first of them leads."""
    rows = [CreatableReplicaAssignment(partition_index=number, broker_ids=ids) for number, ids in enumerate(assignment)]
    configs = {**UNLIMITED, **{key.replace("_", "."): value for key, value in settings.items()}}
    wanted = CreatableTopic(
        name=topic,
        num_partitions=-1,
        replication_factor=-1,
        assignments=rows,
        configs=[CreatableTopicConfig(name=key, value=value) for key, value in configs.items()],
    )
    deadline = time.monotonic() + ANSWER_SECONDS_MAX
    while True:
        with Wire(port) as wire:
            request = CreateTopicsRequest(topics=[wanted], timeout_ms=60_000)
            answer = wire.call(CREATE_TOPICS, 5, request).topics[0]
        if answer.error_code == ErrorCode.NONE:
            return
        # A topic of this name may still be on its way out.
        if answer.error_code != ErrorCode.TOPIC_ALREADY_EXISTS or time.monotonic() > deadline:
            raise WireError(f"CreateTopics: error {answer.error_code}, {answer.error_message}")
        time.sleep(0.05)


def wait_for_isr(port: int, topic: str, partitions: int, copies: int, deadline: float) -> None:
    """Until this broker says that each partition has a leader and so many replicas in sync."""
    while True:
        found = described(port, topic)
        whole = [each for each in found.partitions if each.leader_id >= 0 and len(each.isr_nodes) == copies]
        if found.error_code == ErrorCode.NONE and len(whole) == partitions:
            return
        if time.monotonic() > deadline:
            raise TimeoutError(f"{topic}: {len(whole)} of {partitions} partitions have {copies} replicas in sync")
        time.sleep(0.005)


def fresh_topic(port: int, topic: str, ids: list[int], **settings: str) -> None:
    """An empty topic of one partition with these replicas, led by the broker at this port, ready for use."""
    delete_topic(port, topic)
    ask_for_topic(port, topic, [ids], **settings)
    deadline = time.monotonic() + ANSWER_SECONDS_MAX
    wait_for_isr(port, topic, 1, len(ids), deadline)
    wait_for_offsets(port, topic, 1, deadline)
