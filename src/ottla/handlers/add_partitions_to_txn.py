"""AddPartitionsToTxn (24), versions 0 to 5: partitions become part of a transaction, or are looked up in it.

Clients send versions 0 to 3, of one transaction, before they write to a partition. Brokers send later ones, of many,
about what clients write to them: whether it is in the transaction (`verify_only`), or to add it for the client. Several
of one transaction are answered together: all partitions are added or none.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ottla.handlers.calls.call import Call
from ottla.handlers.calls.later import GatheredAnswers, Later
from ottla.handlers.calls.transaction_calls import ADD_PARTITIONS_V2, in_words_of, may_write, now_of
from ottla.model import INTERNAL_TOPICS, ErrorCode, TopicPartition
from ottla.protocol.generated.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTopicResult,
)
from ottla.security.authorizer import Operation
from ottla.steps import PIECE, Steps, pieces
from ottla.transactions.asked import ProducerPartitions, Reply
from ottla.transactions.transaction import EPOCH_A_TRANSACTION

_FENCED_SINCE: Final = 2
#: Each takes a microsecond.
_PARTITIONS_A_STEP: Final = 64

_Errors = Mapping[TopicPartition, ErrorCode]
_Results = list[AddPartitionsToTxnTopicResult]


def handle(call: Call, request: AddPartitionsToTxnRequest) -> Steps[AddPartitionsToTxnResponse | Later]:
    if call.version < ADD_PARTITIONS_V2:
        return (yield from _of_client(call, request))
    if not call.allowed_on_cluster(Operation.CLUSTER_ACTION):
        return AddPartitionsToTxnResponse(
            throttle_time_ms=call.throttle_ms(), error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        )
    answer = Later()

    def done(results: list[Steps[AddPartitionsToTxnResult]]) -> None:
        answer.set(_gathered(call, results))

    gathered = GatheredAnswers(len(request.transactions), done)
    for place, one in enumerate(request.transactions):
        asked = yield from _asked(one.transactional_id, one.producer_id, one.producer_epoch, one.topics)
        refused = yield from _refused(call, asked, of_client=False)
        reply = gathered.place(place)
        if refused:
            reply(_result(call, one.transactional_id, one.topics, refused))
        elif one.verify_only:
            errors = call.services.transactions.verify_partitions(asked)
            reply(_result(call, one.transactional_id, one.topics, errors))
        else:
            given = _given(call, one.transactional_id, one.topics, asked, reply)
            call.services.transactions.add_partitions(now_of(call), asked, EPOCH_A_TRANSACTION, given)
        yield
    return answer


def _gathered(call: Call, results: list[Steps[AddPartitionsToTxnResult]]) -> Steps[AddPartitionsToTxnResponse]:
    response = AddPartitionsToTxnResponse(throttle_time_ms=call.throttle_ms(), results_by_transaction=[])
    for result in results:
        response.results_by_transaction.append((yield from result))
        yield
    return response


def _of_client(call: Call, request: AddPartitionsToTxnRequest) -> Steps[AddPartitionsToTxnResponse | Later]:
    topics = request.v3_and_below_topics
    asked = yield from asked_by_client(request)
    if not may_write(call, asked.transactional_id):
        refused: _Errors = dict.fromkeys(asked.partitions, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    else:
        refused = yield from refused_to_client(call, asked)
    if refused:
        return (yield from client_answer(call, topics, refused))
    answer = Later()

    def reply(error: ErrorCode) -> None:
        answer.set(client_answer(call, topics, dict.fromkeys(asked.partitions, error)))

    call.services.transactions.add_partitions_when_at_rest(now_of(call), asked, reply)
    return answer


def asked_by_client(request: AddPartitionsToTxnRequest) -> Steps[ProducerPartitions]:
    return _asked(
        request.v3_and_below_transactional_id,
        request.v3_and_below_producer_id,
        request.v3_and_below_producer_epoch,
        request.v3_and_below_topics,
    )


def refused_to_client(call: Call, asked: ProducerPartitions) -> Steps[_Errors]:
    """Empty where nothing is refused before the coordinator is asked, but for the transactional id."""
    return _refused(call, asked, of_client=True)


def _refused(call: Call, asked: ProducerPartitions, *, of_client: bool) -> Steps[_Errors]:
    """What a client may not write to, or what is not there. Then nothing is done of this transaction.

    To the topics of coordinators nobody may, whatever the access lists say: their partitions are added by brokers.
    """
    metadata, refused = call.services.metadata, dict[TopicPartition, ErrorCode]()
    allowed: dict[str, bool] = {}
    for piece in pieces(asked.partitions, _PARTITIONS_A_STEP):
        for tp in piece:
            if tp.topic not in allowed:
                allowed[tp.topic] = not of_client or (
                    tp.topic not in INTERNAL_TOPICS and call.allowed_on_topic(Operation.WRITE, tp.topic)
                )
            if not allowed[tp.topic]:
                refused[tp] = ErrorCode.TOPIC_AUTHORIZATION_FAILED
            elif metadata.partition(tp.topic, tp.partition) is None:
                refused[tp] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        yield
    if not refused:
        return refused
    rest = dict.fromkeys(asked.partitions, ErrorCode.OPERATION_NOT_ATTEMPTED)
    rest.update(refused)
    return rest


def _given(
    call: Call,
    transactional_id: str,
    topics: list[AddPartitionsToTxnTopic],
    asked: ProducerPartitions,
    reply: Reply[Steps[AddPartitionsToTxnResult]],
) -> Reply[ErrorCode]:
    def given(error: ErrorCode) -> None:
        reply(_result(call, transactional_id, topics, dict.fromkeys(asked.partitions, error)))

    return given


def _asked(
    transactional_id: str, producer_id: int, producer_epoch: int, topics: list[AddPartitionsToTxnTopic]
) -> Steps[ProducerPartitions]:
    partitions: set[TopicPartition] = set()
    for place, topic in enumerate(topics):
        if place % PIECE == 0:
            yield  # also where they name no partition
        for piece in pieces(topic.partitions, _PARTITIONS_A_STEP):
            partitions.update(TopicPartition(topic.name, number) for number in piece)
            yield
    return ProducerPartitions(transactional_id, producer_id, producer_epoch, frozenset(partitions))


def client_answer(
    call: Call, topics: list[AddPartitionsToTxnTopic], errors: _Errors
) -> Steps[AddPartitionsToTxnResponse]:
    results = yield from _results(call, topics, errors)
    return AddPartitionsToTxnResponse(throttle_time_ms=call.throttle_ms(), results_by_topic_v3_and_below=results)


def _result(
    call: Call, transactional_id: str, topics: list[AddPartitionsToTxnTopic], errors: _Errors
) -> Steps[AddPartitionsToTxnResult]:
    results = yield from _results(call, topics, errors)
    return AddPartitionsToTxnResult(transactional_id=transactional_id, topic_results=results)


def _results(call: Call, topics: list[AddPartitionsToTxnTopic], errors: _Errors) -> Steps[_Results]:
    """In the order of the request, each partition once."""
    found: dict[str, dict[int, None]] = {}
    for place, topic in enumerate(topics):
        if place % PIECE == 0:
            yield  # also where they name no partition
        numbers = found.setdefault(topic.name, {})
        for piece in pieces(topic.partitions, _PARTITIONS_A_STEP):
            numbers.update(dict.fromkeys(piece))
            yield
    results: _Results = []
    for place, (name, numbers) in enumerate(found.items()):
        if place % PIECE == 0:
            yield
        of_topic = AddPartitionsToTxnTopicResult(name=name, results_by_partition=[])
        for piece in pieces(numbers, _PARTITIONS_A_STEP):
            for number in piece:
                error = in_words_of(call.version, _FENCED_SINCE, errors[TopicPartition(name, number)])
                of_topic.results_by_partition.append(
                    AddPartitionsToTxnPartitionResult(partition_index=number, partition_error_code=error)
                )
            yield
        results.append(of_topic)
    return results
