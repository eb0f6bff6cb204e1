"""DescribeProducers (61), version 0: the producers whose state a partition's leader keeps.

A partition may have a hundred thousand producers, and a small request names it as often. It is looked at once, and an
answer has a bound: partitions beyond it get an error, and may be asked for with the next request.
"""

from __future__ import annotations

from typing import Final

from ottla.handlers.calls.call import Call
from ottla.handlers.calls.topic_partitions import leader_for
from ottla.handlers.calls.turns import PausingSteps
from ottla.model import ErrorCode, topic_name_fault
from ottla.protocol.generated.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicResponse,
)
from ottla.replication.leader import Leader
from ottla.security.authorizer import Operation
from ottla.steps import Steps, taken
from ottla.storage.errors import StorageFault
from ottla.storage.log.cold_reads import ColdPause, missing_producers

#: In one answer, repeated ones included: 20 MB of it, and 60 MB of objects until it is written. Only what one partition
#: has is answered, however much it is.
PRODUCERS_TOLD_MAX: Final = 500_000
TOO_MANY: Final = f"The answer would be of more than {PRODUCERS_TOLD_MAX} producers: ask for fewer partitions at once."

#: Answers that are given again to clients that ask again, beside those that list producers; of more there is a new one
#: each time.
SHORT_ANSWERS_KEPT_MAX: Final = 10_000

#: Each takes some microseconds, its producers aside.
_PARTITIONS_A_STEP: Final = 16
#: Each takes a microsecond, its partitions aside.
_TOPICS_A_STEP: Final = 32
#: Each takes a microsecond.
_PRODUCERS_A_STEP: Final = 64


def handle(call: Call, request: DescribeProducersRequest) -> PausingSteps[DescribeProducersResponse]:
    answer = _ProducersAnswer(call)
    topics: list[TopicResponse] = []
    for some in taken(request.topics, _TOPICS_A_STEP):
        for topic in some:
            partitions: list[PartitionResponse] = []
            for piece in taken(topic.partition_indexes, _PARTITIONS_A_STEP):
                for index in piece:
                    answered = yield from answer.partition(topic.name, index)
                    partitions.append(answered)
                yield None
            topics.append(TopicResponse(name=topic.name, partitions=partitions))
        yield None
    return DescribeProducersResponse(throttle_time_ms=call.throttle_ms(), topics=topics)


class _ProducersAnswer:
    """Partitions that were answered already, and how much there is still room for."""

    __slots__ = ("_call", "_is_full", "_listing", "_nobody", "_room", "_short", "_short_left")

    def __init__(self, call: Call) -> None:
        self._call = call
        #: By topic and partition: answers that list producers, and those that do not.
        self._listing: dict[tuple[str, int], PartitionResponse] = {}
        self._short: dict[str, dict[int, PartitionResponse]] = {}
        self._short_left = SHORT_ANSWERS_KEPT_MAX
        self._room = PRODUCERS_TOLD_MAX
        #: A partition did not fit: none is looked at any more.
        self._is_full = False
        self._nobody: list[ProducerState] = []

    def partition(self, topic: str, index: int) -> PausingSteps[PartitionResponse]:
        of_topic = self._short.get(topic)
        if of_topic is not None and (known := of_topic.get(index)) is not None:
            return known
        answered = self._listing.get((topic, index))
        if answered is None:
            leader = _leader(self._call, topic, index)
            if isinstance(leader, ErrorCode):
                return self._without(topic, index, leader, None)
            if self._is_full:
                return self._without(topic, index, ErrorCode.POLICY_VIOLATION, TOO_MANY)
            try:
                yield from _known_producers(self._call, leader)
                producers = yield from _producers(leader)
            except StorageFault as fault:
                return self._without(topic, index, ErrorCode.KAFKA_STORAGE_ERROR, str(fault))
            if not producers:
                return self._without(topic, index, ErrorCode.NONE, None)
            answered = PartitionResponse(partition_index=index, error_message=None, active_producers=producers)
        count = len(answered.active_producers)
        if self._is_full or (count > self._room and self._listing):
            self._is_full = True
            return self._without(topic, index, ErrorCode.POLICY_VIOLATION, TOO_MANY)
        self._listing[topic, index] = answered
        self._room -= min(count, self._room)
        return answered

    def _without(self, topic: str, index: int, error: ErrorCode, message: str | None) -> PartitionResponse:
        answer = PartitionResponse(
            partition_index=index, error_code=error, error_message=message, active_producers=self._nobody
        )
        if self._short_left:
            self._short_left -= 1
            self._short.setdefault(topic, {})[index] = answer
        return answer


def _leader(call: Call, topic: str, partition: int) -> Leader | ErrorCode:
    if topic_name_fault(topic) is not None:
        return ErrorCode.INVALID_TOPIC_EXCEPTION
    return leader_for(call, topic, partition, Operation.READ)


def _known_producers(call: Call, leader: Leader) -> PausingSteps[None]:
    """Behind a start a worker reads them first. Raises StorageFault."""
    while (missing := missing_producers(leader.log)) is not None:
        yield ColdPause(call.services.replicas.cold_reads, [missing])
        if missing.fault is not None:
            raise missing.fault


def _producers(leader: Leader) -> Steps[list[ProducerState]]:
    active = yield from leader.log.describing_producers()
    producers: list[ProducerState] = []
    for piece in taken(active, _PRODUCERS_A_STEP):
        producers += [
            ProducerState(
                producer_id=entry.producer_id,
                producer_epoch=entry.epoch,
                last_sequence=entry.last_sequence,
                last_timestamp=entry.last_timestamp,
                coordinator_epoch=entry.coordinator_epoch,
                current_txn_start_offset=entry.transaction_start_offset,
            )
            for entry in piece
        ]
        yield
    return producers
