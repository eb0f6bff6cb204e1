"""TxnOffsetCommit (28), versions 0 to 5: a group's positions as a part of a producer's transaction.

They are seen once the transaction is committed. The first ones of a transaction wait until its coordinator has answered
for it: up to version 4 the client has added the group's partition of the offsets topic by AddOffsetsToTxn, from version
5 on this broker has it added. From version 3 on the commit may name a member of the group, whose generation fences it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from ottla.coordinators.journal import TransactionalProducer
from ottla.groups.no_shard import NoShard
from ottla.groups.offsets.committing import ALL_COMMITTED, TransactionalWriter, commit_refused, committed
from ottla.groups.shard import GroupShard
from ottla.handlers.calls.call import Call, Services
from ottla.handlers.calls.group_calls import allowed_on_group, caller_of
from ottla.handlers.calls.later import Later
from ottla.handlers.calls.turns import PausingSteps
from ottla.handlers.transactions.questions import TransactionQuestion
from ottla.model import OFFSETS_TOPIC, ErrorCode, TopicPartition
from ottla.protocol.generated.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from ottla.protocol.generated.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)
from ottla.records.batch import NO_SEQUENCE
from ottla.security.authorizer import Operation, Resource
from ottla.steps import Steps, pieces, taken
from ottla.storage.log.producers.verifying import Verification

#: From this version on partitions are added to the transaction here, and not by the client before.
ADDS_SINCE: Final = 5
#: Before it clients take TRANSACTION_ABORTABLE for an error that they do not know.
_ABORTABLE_SINCE: Final = 4
#: Before it clients take COORDINATOR_LOAD_IN_PROGRESS for the end of their transactions.
_LOADING_SINCE: Final = 2
#: Topics with what their partitions are answered.
_Answered = list[TxnOffsetCommitResponseTopic]


def handle(call: Call, request: TxnOffsetCommitRequest) -> PausingSteps[TxnOffsetCommitResponse | Later]:
    if not call.allowed(Operation.WRITE, Resource.TRANSACTIONAL_ID, request.transactional_id):
        return (yield from _all_refused(call, request, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED))
    if not allowed_on_group(call, Operation.READ, request.group_id):
        return (yield from _all_refused(call, request, ErrorCode.GROUP_AUTHORIZATION_FAILED))
    refused: _Answered = []
    commit = yield from _commit(call, request, refused)
    if not commit.topics:
        return TxnOffsetCommitResponse(throttle_time_ms=call.throttle_ms(), topics=refused)
    answer = Later()

    def reply(response: OffsetCommitResponse) -> None:
        answer.set(_answered(call, commit, response, refused))

    producer = TransactionalProducer(request.producer_id, request.producer_epoch)
    writer = yield from _verified(call, request, producer)
    if isinstance(writer, ErrorCode):
        reply((yield from commit_refused(commit, writer)))
        return answer
    # The partition may be led elsewhere by now, which the commit says.
    shard = call.services.groups.shard_for_member(request.group_id)
    yield from shard.txn_offset_commit(caller_of(call), writer, commit, reply)
    return answer


def _verified(
    call: Call, request: TxnOffsetCommitRequest, producer: TransactionalProducer
) -> PausingSteps[TransactionalWriter | ErrorCode]:
    """What the commit is written as, where the transaction is ongoing and has the group's partition; else why not. The
    commit looks, before each of its writes, whether the transaction has ended since."""
    services, adds = call.services, call.version >= ADDS_SINCE
    shard = services.groups.shard_for_member(request.group_id)
    if not shard.is_loaded or not (adds or services.questions.verifies):
        return TransactionalWriter(producer)  # the commit says why there is no shard
    if shard.has_open(producer):
        return TransactionalWriter(producer, Verification(producer.producer_epoch, NO_SEQUENCE))
    if shard.is_behind(producer):
        return ErrorCode.INVALID_PRODUCER_EPOCH
    asked = _AskedAbout(services, request.group_id, producer)
    partition = TopicPartition(OFFSETS_TOPIC, services.groups.partition_for(request.group_id))
    question = TransactionQuestion(request.transactional_id, *producer, partition, adds)
    known = services.questions.answer_now(question)
    if known is None:
        answer = _CoordinatorsAnswer(services.questions.ask(question, asked))
        yield answer
        known = answer.future.result()
    if known == ErrorCode.NONE:
        return TransactionalWriter(producer, asked.verification)
    if known == ErrorCode.TRANSACTION_ABORTABLE and call.version < _ABORTABLE_SINCE:
        return ErrorCode.INVALID_TXN_STATE
    if known == ErrorCode.NETWORK_EXCEPTION:
        # Clients try again after this one without looking for another coordinator of the group.
        return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    return known


class _AskedAbout:
    """A transaction, with what its coordinator is asked by. Implements `Asker`."""

    def __init__(self, services: Services, group_id: str, producer: TransactionalProducer) -> None:
        self._services = services
        self._group_id = group_id
        self._producer = producer
        self.begin()

    def begin(self) -> None:
        self.verification = self._shard().begin_verifying(self._producer)

    def holds(self) -> bool:
        return self._shard().is_verified(self._producer, self.verification)

    def _shard(self) -> GroupShard | NoShard:
        return self._services.groups.shard_for_member(self._group_id)


class _CoordinatorsAnswer:
    """Implements `Pause`."""

    def __init__(self, future: asyncio.Future[ErrorCode]) -> None:
        self.future = future

    def wait(self, resume: Callable[[], None]) -> None:
        self.future.add_done_callback(lambda _: resume())


def _commit(call: Call, request: TxnOffsetCommitRequest, refused: _Answered) -> Steps[OffsetCommitRequest]:
    """What is left to commit; what is not stands in `refused`."""
    commit = OffsetCommitRequest(
        group_id=request.group_id,
        generation_id_or_member_epoch=request.generation_id,
        member_id=request.member_id,
        group_instance_id=request.group_instance_id,
        retention_time_ms=-1,
    )
    metadata = call.services.metadata
    for topic in request.topics:
        known = metadata.topic(topic.name)
        if not call.allowed_on_topic(Operation.READ, topic.name):
            refused.append((yield from _refused_topic(topic, ErrorCode.TOPIC_AUTHORIZATION_FAILED)))
            continue
        missing: list[TxnOffsetCommitResponsePartition] = []
        there = OffsetCommitRequestTopic(name=topic.name)
        for piece in taken(topic.partitions):
            for partition in piece:
                index = partition.partition_index
                if known is None or known.partition(index) is None:
                    error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                    missing.append(TxnOffsetCommitResponsePartition(partition_index=index, error_code=error))
                    continue
                there.partitions.append(
                    OffsetCommitRequestPartition(
                        partition_index=index,
                        committed_offset=partition.committed_offset,
                        committed_leader_epoch=partition.committed_leader_epoch,
                        committed_metadata=partition.committed_metadata,
                    )
                )
            yield
        if missing:
            refused.append(TxnOffsetCommitResponseTopic(name=topic.name, partitions=missing))
        if there.partitions:
            commit.topics.append(there)
        yield
    return commit


# -- answers


def _all_refused(call: Call, request: TxnOffsetCommitRequest, error: ErrorCode) -> Steps[TxnOffsetCommitResponse]:
    topics: _Answered = []
    for topic in request.topics:
        topics.append((yield from _refused_topic(topic, error)))
    return TxnOffsetCommitResponse(throttle_time_ms=call.throttle_ms(), topics=topics)


def _refused_topic(topic: TxnOffsetCommitRequestTopic, error: ErrorCode) -> Steps[TxnOffsetCommitResponseTopic]:
    partitions: list[TxnOffsetCommitResponsePartition] = []
    for piece in pieces(topic.partitions):
        partitions += [
            TxnOffsetCommitResponsePartition(partition_index=each.partition_index, error_code=error) for each in piece
        ]
        yield
    return TxnOffsetCommitResponseTopic(name=topic.name, partitions=partitions)


def _known_to(version: int, error: int) -> int:
    if version < _LOADING_SINCE and error == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    return error


def _answered(
    call: Call, commit: OffsetCommitRequest, response: OffsetCommitResponse, refused: _Answered
) -> Steps[TxnOffsetCommitResponse]:
    if response is ALL_COMMITTED:
        response = yield from committed(commit)
    topics: dict[str, TxnOffsetCommitResponseTopic] = {}
    for some in pieces(refused):
        for topic in some:
            known = topics.setdefault(topic.name, topic)
            if known is not topic:
                known.partitions += topic.partitions
        yield
    for answered in response.topics:
        topic = topics.setdefault(answered.name, TxnOffsetCommitResponseTopic(name=answered.name))
        for piece in pieces(answered.partitions):
            topic.partitions += [
                TxnOffsetCommitResponsePartition(
                    partition_index=each.partition_index, error_code=_known_to(call.version, each.error_code)
                )
                for each in piece
            ]
            yield
    return TxnOffsetCommitResponse(throttle_time_ms=call.throttle_ms(), topics=list(topics.values()))
