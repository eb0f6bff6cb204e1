"""AddPartitionsToTxn (24), versions 0 to 5: partitions become part of a transaction, or are looked up in it.

Clients send versions 0 to 3, of one transaction, before they write to a partition. Brokers send later ones, of many,
about what clients write to them: whether it is in the transaction (`verify_only`), or to add it for the client. Several
of one transaction are answered together: all partitions are added or none.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final, NamedTuple

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
from ottla.steps import PIECE, Steps, pieces, taken
from ottla.transactions.asked import ProducerPartitions
from ottla.transactions.transaction import EPOCH_A_TRANSACTION

_FENCED_SINCE: Final = 2
#: Each takes a microsecond.
_PARTITIONS_A_STEP: Final = 64

_Results = list[AddPartitionsToTxnTopicResult]


class _Errors(NamedTuple):
    """What the partitions of one transaction are answered; each is taken out of both when it has its answer."""

    partitions: set[TopicPartition]
    #: Of those that are not here it is `rest`.
    of: dict[TopicPartition, ErrorCode]
    rest: ErrorCode = ErrorCode.NONE


#: A transaction, as it was asked about, and what its partitions are answered.
_Answered = tuple[str, list[AddPartitionsToTxnTopic], _Errors]


def handle(call: Call, request: AddPartitionsToTxnRequest) -> Steps[AddPartitionsToTxnResponse | Later]:
    if call.version < ADD_PARTITIONS_V2:
        return (yield from _of_client(call, request))
    if not call.allowed_on_cluster(Operation.CLUSTER_ACTION):
        return AddPartitionsToTxnResponse(
            throttle_time_ms=call.throttle_ms(), error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        )
    answer = Later()

    def done(answered: list[_Answered]) -> None:
        answer.set(_gathered(call, answered))

    gathered = GatheredAnswers(len(request.transactions), done)
    for place, one in enumerate(request.transactions):
        named = yield from _named(one.topics)
        asked = ProducerPartitions(one.transactional_id, one.producer_id, one.producer_epoch, named)
        errors = yield from _refused(call, named, of_client=False)
        give = partial(_give, gathered.place(place), one.transactional_id, one.topics)
        if errors is not None:
            give(errors)
        elif one.verify_only:
            give(_Errors(named, (yield from _verified(call, asked))))
        else:
            # A function by itself: of a hundred thousand that wait each takes what it holds.
            given = partial(_given, give, named)
            call.services.transactions.add_partitions(now_of(call), asked, EPOCH_A_TRANSACTION, given)
        yield
    return answer


def _give(
    give: Callable[[_Answered], None], transactional_id: str, topics: list[AddPartitionsToTxnTopic], errors: _Errors
) -> None:
    give((transactional_id, topics, errors))


def _given(give: Callable[[_Errors], None], named: set[TopicPartition], error: ErrorCode) -> None:
    give(_Errors(named, {}, error))


def _verified(call: Call, asked: ProducerPartitions) -> Steps[dict[TopicPartition, ErrorCode]]:
    found: dict[TopicPartition, ErrorCode] = {}
    for piece in pieces(asked.partitions, _PARTITIONS_A_STEP):
        found.update(call.services.transactions.verify_partitions(asked._replace(partitions=frozenset(piece))))
        yield
    return found


def _gathered(call: Call, answered: list[_Answered]) -> Steps[AddPartitionsToTxnResponse]:
    response = AddPartitionsToTxnResponse(throttle_time_ms=call.throttle_ms(), results_by_transaction=[])
    for some in taken(answered, 1):
        for transactional_id, topics, errors in some:
            results = yield from _results(call, topics, errors)
            result = AddPartitionsToTxnResult(transactional_id=transactional_id, topic_results=results)
            response.results_by_transaction.append(result)
        yield
    return response


def _of_client(call: Call, request: AddPartitionsToTxnRequest) -> Steps[AddPartitionsToTxnResponse | Later]:
    topics = request.v3_and_below_topics
    named = yield from _named(topics)
    asked = _asked(request, named)
    if not may_write(call, asked.transactional_id):
        errors = _Errors(named, {}, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
        return (yield from _client_answer(call, topics, errors))
    refused = yield from _refused(call, named, of_client=True)
    if refused is not None:
        return (yield from _client_answer(call, topics, refused))
    answer = Later()

    def reply(error: ErrorCode) -> None:
        answer.set(_client_answer(call, topics, _Errors(named, {}, error)))

    call.services.transactions.add_partitions_when_at_rest(now_of(call), asked, reply)
    return answer


def _asked(request: AddPartitionsToTxnRequest, named: set[TopicPartition]) -> ProducerPartitions:
    return ProducerPartitions(
        request.v3_and_below_transactional_id,
        request.v3_and_below_producer_id,
        request.v3_and_below_producer_epoch,
        named,
    )


def allowed_to_client(call: Call, request: AddPartitionsToTxnRequest) -> Steps[ProducerPartitions | None]:
    """What a client asks the coordinator for, unless some of it is refused before; the id is not looked at."""
    named = yield from _named(request.v3_and_below_topics)
    refused = yield from _refused(call, named, of_client=True)
    return _asked(request, named) if refused is None else None


def answer_to_client(
    call: Call, request: AddPartitionsToTxnRequest, error: ErrorCode
) -> Steps[AddPartitionsToTxnResponse]:
    """The same for each partition."""
    named = yield from _named(request.v3_and_below_topics)
    return (yield from _client_answer(call, request.v3_and_below_topics, _Errors(named, {}, error)))


def _refused(call: Call, named: set[TopicPartition], *, of_client: bool) -> Steps[_Errors | None]:
    """What a client may not write to, or what is not there. Then nothing is done of this transaction.

    To the topics of coordinators nobody may, whatever the access lists say: their partitions are added by brokers.
    """
    metadata, refused = call.services.metadata, dict[TopicPartition, ErrorCode]()
    allowed: dict[str, bool] = {}
    for piece in pieces(named, _PARTITIONS_A_STEP):
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
    return _Errors(named, refused, ErrorCode.OPERATION_NOT_ATTEMPTED) if refused else None


def _named(topics: list[AddPartitionsToTxnTopic]) -> Steps[set[TopicPartition]]:
    partitions: set[TopicPartition] = set()
    for place, topic in enumerate(topics):
        if place % PIECE == 0:
            yield  # also where they name no partition
        for piece in pieces(topic.partitions, _PARTITIONS_A_STEP):
            partitions.update(TopicPartition(topic.name, number) for number in piece)
            yield
    return partitions


def _client_answer(
    call: Call, topics: list[AddPartitionsToTxnTopic], errors: _Errors
) -> Steps[AddPartitionsToTxnResponse]:
    results = yield from _results(call, topics, errors)
    return AddPartitionsToTxnResponse(throttle_time_ms=call.throttle_ms(), results_by_topic_v3_and_below=results)


def _results(call: Call, topics: list[AddPartitionsToTxnTopic], errors: _Errors) -> Steps[_Results]:
    """In the order of the request, each partition once."""
    by_name: dict[str, AddPartitionsToTxnTopicResult] = {}
    left, of, rest = errors
    for some in taken(topics, PIECE):
        for topic in some:
            of_topic = by_name.get(topic.name)
            if of_topic is None:
                of_topic = AddPartitionsToTxnTopicResult(name=topic.name, results_by_partition=[])
                by_name[topic.name] = of_topic
            for piece in taken(topic.partitions, _PARTITIONS_A_STEP):
                for number in piece:
                    tp = TopicPartition(topic.name, number)
                    if tp in left:
                        left.remove(tp)
                        error = in_words_of(call.version, _FENCED_SINCE, of.pop(tp, rest))
                        of_topic.results_by_partition.append(
                            AddPartitionsToTxnPartitionResult(partition_index=number, partition_error_code=error)
                        )
                yield
        yield
    return list(by_name.values())
