"""What a description of partitions says beyond Kafka's, where it is asked for: their past, and where replicas are."""

from __future__ import annotations

from typing import Final

from ottla.handlers.calls.call import Call
from ottla.model import TopicPartition
from ottla.protocol.generated.describe_topic_partitions import DescribeTopicPartitionsResponseTopic
from ottla.protocol.generated.partition_history import FollowerState, PartitionChange, PartitionHistory
from ottla.protocol.partition_history import HISTORY_TAG
from ottla.replication.isr_progress import FollowerProgress
from ottla.replication.leader import Leader
from ottla.steps import Steps

#: An age that stands for never.
_NEVER: Final = -1

__all__ = ["HISTORY_TAG", "add_histories"]


def add_histories(call: Call, topic: DescribeTopicPartitionsResponseTopic) -> Steps[None]:
    assert topic.name is not None
    for partition in topic.partitions:
        history = _history(call, TopicPartition(topic.name, partition.partition_index))
        partition.unknown_tags = {HISTORY_TAG: history.encode(0)}
        yield


def _history(call: Call, tp: TopicPartition) -> PartitionHistory:
    kept = call.services.metadata.history
    answer = PartitionHistory(
        changes=[
            PartitionChange(
                time_ms=change.time_ms,
                controller_epoch=change.state.controller_epoch,
                leader_id=change.state.leader,
                leader_epoch=change.state.leader_epoch,
                isr_nodes=list(change.state.isr),
                replica_nodes=list(change.state.replicas),
            )
            for change in (() if kept is None else kept.of(tp.topic, tp.partition))
        ],
        followers=[],
    )
    leader = call.services.replicas.leaders.get(tp)
    if leader is not None:
        _add_progress(answer, leader, call)
    return answer


def _add_progress(answer: PartitionHistory, leader: Leader, call: Call) -> None:
    """When followers asked is known in the time of a clock that nobody else has: it is said in that of the wall."""
    clock = call.services.clock
    wall_ahead_ms = clock.wall_ms() - clock.monotonic_ms()
    answer.high_watermark, answer.log_end_offset = leader.high_watermark, leader.log.end_offset
    answer.followers = [
        FollowerState(
            replica_id=follower.id,
            log_end_offset=follower.end,
            fetched_ms=_wall_ms(follower.last_fetch_ms, wall_ahead_ms, follower),
            caught_up_ms=_wall_ms(follower.caught_up_ms(), wall_ahead_ms, follower),
        )
        for follower in leader.isr.followers.values()
    ]


def _wall_ms(moment_ms: int, wall_ahead_ms: int, follower: FollowerProgress) -> int:
    return _NEVER if moment_ms < 0 or follower.last_fetch_ms < 0 else moment_ms + wall_ahead_ms
