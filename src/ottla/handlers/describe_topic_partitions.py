"""DescribeTopicPartitions (75), version 0: topics in the order of their names, page by page (KIP-966).

No names means all topics. A page ends after a number of partitions, and the cursor says where the next one begins.

A request with the tagged field 7001 gets the same tag in each partition: how it came to be as it is, and where its
replicas are (docs/decisions/partition-history.md). Kafka's brokers skip a tag that they do not know, as its clients do.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ottla.handlers.calls.call import Call
from ottla.handlers.calls.partition_history import HISTORY_TAG, add_histories
from ottla.handlers.calls.topic_partitions import leader_shown
from ottla.metadata import PartitionState, TopicMetadata
from ottla.model import ErrorCode, topic_name_fault
from ottla.protocol.generated.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
)
from ottla.security.authorizer import Operation, Resource
from ottla.steps import Steps, counted, in_order_of_names, pieces

#: Partitions of an answer that say their history: each has some kilobytes of it.
HISTORIES_MAX: Final = 100


def handle(call: Call, request: DescribeTopicPartitionsRequest) -> Steps[DescribeTopicPartitionsResponse]:
    metadata = call.services.metadata
    named = yield from counted(topic.name for topic in request.topics)
    begin = request.cursor
    if begin is not None and (begin.partition_index < 0 or (named and begin.topic_name not in named)):
        topics = yield from _refused(request)
        return DescribeTopicPartitionsResponse(throttle_time_ms=call.throttle_ms(), topics=topics)
    # A copy: topics come and go between two steps.
    in_order = yield from in_order_of_names(named or list(metadata.topics))
    names, hidden = yield from _names(call, in_order, "" if begin is None else begin.topic_name)
    limit = call.services.config.broker.describe_partitions_max
    wants_history = HISTORY_TAG in request.unknown_tags
    left = max(1, min(request.response_partition_limit, HISTORIES_MAX if wants_history else limit))
    topics = []
    cursor = None
    for name in names:
        yield
        if left == 0:
            # It may be one that does not exist: the next page says so.
            cursor = Cursor(topic_name=name, partition_index=0)
            break
        topic = metadata.topic(name)
        if topic is None and not named:
            continue  # deleted since the names were taken
        if topic is None:
            bad = topic_name_fault(name) is not None
            fault = _fault(name, ErrorCode.INVALID_TOPIC_EXCEPTION if bad else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            fault.topic_authorized_operations = call.authorized_operations(Resource.TOPIC, name)
            topics.append(fault)
            continue
        first = begin.partition_index if begin is not None and begin.topic_name == name else 0
        shown = topic.partitions[first : first + left]
        described = yield from _topic(call, topic, shown)
        if wants_history:
            yield from add_histories(call, described)
        topics.append(described)
        left -= len(shown)
        if first + len(shown) < len(topic.partitions):
            cursor = Cursor(topic_name=name, partition_index=first + len(shown))
            break
    if named:
        topics += [_fault(name, ErrorCode.TOPIC_AUTHORIZATION_FAILED) for name in hidden]
    return DescribeTopicPartitionsResponse(throttle_time_ms=call.throttle_ms(), topics=topics, next_cursor=cursor)


def _fault(name: str, error: ErrorCode) -> DescribeTopicPartitionsResponseTopic:
    return DescribeTopicPartitionsResponseTopic(error_code=error, name=name, partitions=[])


def _refused(request: DescribeTopicPartitionsRequest) -> Steps[list[DescribeTopicPartitionsResponseTopic]]:
    topics: list[DescribeTopicPartitionsResponseTopic] = []
    for piece in pieces(request.topics):
        topics += [_fault(topic.name, ErrorCode.INVALID_REQUEST) for topic in piece]
        yield
    return topics


def _names(call: Call, names: Sequence[str], begin: str) -> Steps[tuple[list[str], list[str]]]:
    """Those from `begin` on that may be shown, and those that are hidden from this client."""
    shown: list[str] = []
    hidden: list[str] = []
    for piece in pieces(names):
        for name in piece:
            if name >= begin:
                (shown if call.allowed_on_topic(Operation.DESCRIBE, name) else hidden).append(name)
        yield
    return shown, hidden


def _topic(
    call: Call, topic: TopicMetadata, shown: tuple[PartitionState, ...]
) -> Steps[DescribeTopicPartitionsResponseTopic]:
    partitions: list[DescribeTopicPartitionsResponsePartition] = []
    for piece in pieces(shown):
        partitions += [
            DescribeTopicPartitionsResponsePartition(
                error_code=error,
                partition_index=state.partition,
                leader_id=leader,
                leader_epoch=state.leader_epoch,
                replica_nodes=list(state.replicas),
                isr_nodes=list(state.isr),
                eligible_leader_replicas=[],
                last_known_elr=[],
                offline_replicas=list(state.offline_replicas),
            )
            for state, (error, leader) in [(state, leader_shown(call, state)) for state in piece]
        ]
        yield
    return DescribeTopicPartitionsResponseTopic(
        name=topic.name,
        topic_id=topic.id,
        is_internal=topic.is_internal,
        partitions=partitions,
        topic_authorized_operations=call.authorized_operations(Resource.TOPIC, topic.name),
    )
