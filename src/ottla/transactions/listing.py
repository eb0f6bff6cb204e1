"""What ListTransactions and DescribeTransactions answer: what is committed of transactional ids."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from ottla.coordinators.expressions import BadExpression, compiled
from ottla.model import ErrorCode
from ottla.protocol.generated.describe_transactions import TopicData, TransactionState
from ottla.protocol.generated.list_transactions import ListTransactionsRequest, ListTransactionsResponse
from ottla.protocol.generated.list_transactions import TransactionState as ListedTransaction
from ottla.steps import PIECE, Steps, pieces
from ottla.transactions.state import ShardState
from ottla.transactions.states import BY_KAFKA_NAME
from ottla.transactions.transaction import Transaction

#: Instructions of an expression times characters that make one step: about ten microseconds.
_WORK_A_STEP: Final = 4_096


def described(transactional_id: str, known: Transaction | None) -> TransactionState:
    if known is None:
        return TransactionState(error_code=ErrorCode.TRANSACTIONAL_ID_NOT_FOUND, transactional_id=transactional_id)
    topics: dict[str, list[int]] = {}
    for topic, partition in known.partitions:
        topics.setdefault(topic, []).append(partition)
    return TransactionState(
        transactional_id=transactional_id,
        transaction_state=known.status.kafka_name,
        transaction_timeout_ms=known.timeout_ms,
        transaction_start_time_ms=known.started_ms,
        producer_id=known.producer_id,
        producer_epoch=known.producer_epoch,
        topics=[TopicData(topic=topic, partitions=sorted(topics[topic])) for topic in sorted(topics)],
    )


def listed(
    request: ListTransactionsRequest, wall_ms: int, shards: Iterable[ShardState]
) -> Steps[ListTransactionsResponse]:
    response = ListTransactionsResponse()
    statuses = set()
    for name in dict.fromkeys(request.state_filters):
        if name in BY_KAFKA_NAME:
            statuses.add(BY_KAFKA_NAME[name])
        else:
            response.unknown_state_filters.append(name)
    matches: Callable[[str], bool] | None = None
    cost = 1
    if request.transactional_id_pattern:
        try:
            pattern = compiled(request.transactional_id_pattern, is_ascii=False)
        except BadExpression:
            return ListTransactionsResponse(error_code=ErrorCode.INVALID_REGULAR_EXPRESSION)
        cost = pattern.programsize
        matches = lambda name: pattern.fullmatch(name.encode(errors="surrogatepass")) is not None  # noqa: E731
    producers = frozenset(request.producer_id_filters)
    work = 0
    for shard in shards:
        for piece in pieces(list(shard.ids.values()), PIECE):
            for each in piece:
                known = each.committed
                if (
                    known is None
                    or (producers and known.producer_id not in producers)
                    or (request.state_filters and known.status not in statuses)
                    or (request.duration_filter >= 0 and wall_ms - known.started_ms <= request.duration_filter)
                ):
                    continue
                work += cost * len(each.id)
                if matches is None or matches(each.id):
                    response.transaction_states.append(
                        ListedTransaction(
                            transactional_id=each.id,
                            producer_id=known.producer_id,
                            transaction_state=known.status.kafka_name,
                        )
                    )
                if work >= _WORK_A_STEP:
                    work = 0
                    yield
            yield
    return response
