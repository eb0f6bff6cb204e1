"""What ListTransactions and DescribeTransactions answer: what is committed of transactional ids."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from operator import attrgetter
from typing import Final

from ottla.coordinators.expressions import BadExpression, compiled
from ottla.model import ErrorCode
from ottla.protocol.generated.describe_transactions import TopicData, TransactionState
from ottla.protocol.generated.list_transactions import ListTransactionsRequest, ListTransactionsResponse
from ottla.protocol.generated.list_transactions import TransactionState as ListedTransaction
from ottla.steps import PIECE, Steps, counted, pieces
from ottla.transactions.state import ShardState
from ottla.transactions.states import BY_KAFKA_NAME
from ottla.transactions.transaction import Transaction

#: Instructions of an expression times bytes that make one step: about ten microseconds.
_WORK_A_STEP: Final = 4_096
#: Instructions of an expression times bytes of one id, which is matched in one piece: five milliseconds. An id may
#: have 32 KB, a hundred times the length of a topic's name; ordinary expressions have some tens of instructions.
WORK_AN_ID_MAX: Final = 1_000_000
#: Topics of a transaction that are put in order, which people like to see: a step's work.
_SORTED_MAX: Final = 256


def describing(transactional_id: str, known: Transaction | None) -> Steps[TransactionState]:
    """In steps: of ten thousand partitions it takes some milliseconds."""
    if known is None:
        return TransactionState(error_code=ErrorCode.TRANSACTIONAL_ID_NOT_FOUND, transactional_id=transactional_id)
    partitions: dict[str, list[int]] = {}
    for piece in pieces(known.partitions):
        for topic, partition in piece:
            partitions.setdefault(topic, []).append(partition)
        yield
    topics: list[TopicData] = []
    for some in pieces(partitions.items()):
        topics += [TopicData(topic=topic, partitions=sorted(numbers)) for topic, numbers in some]
        yield
    if len(topics) <= _SORTED_MAX:
        topics.sort(key=attrgetter("topic"))
    return TransactionState(
        transactional_id=transactional_id,
        transaction_state=known.status.kafka_name,
        transaction_timeout_ms=known.timeout_ms,
        transaction_start_time_ms=known.started_ms,
        producer_id=known.producer_id,
        producer_epoch=known.producer_epoch,
        topics=topics,
    )


def listed(
    request: ListTransactionsRequest, wall_ms: int, shards: Iterable[ShardState]
) -> Steps[ListTransactionsResponse]:
    response = ListTransactionsResponse()
    statuses = set()
    for name in (yield from counted(request.state_filters)):
        if name in BY_KAFKA_NAME:
            statuses.add(BY_KAFKA_NAME[name])
        else:
            response.unknown_state_filters.append(name)
            if len(response.unknown_state_filters) % PIECE == 0:
                yield
    matches: Callable[[str], bool] | None = None
    #: Of one byte of an id.
    cost = 1
    if request.transactional_id_pattern:
        try:
            pattern = compiled(request.transactional_id_pattern, is_ascii=False)
        except BadExpression:
            return ListTransactionsResponse(error_code=ErrorCode.INVALID_REGULAR_EXPRESSION)
        cost = pattern.programsize
        matches = lambda name: pattern.fullmatch(name.encode(errors="surrogatepass")) is not None  # noqa: E731
    producers: set[int] = set()
    for some in pieces(request.producer_id_filters):
        producers.update(some)
        yield
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
                costs = cost * len(each.key)
                if costs > WORK_AN_ID_MAX:
                    return ListTransactionsResponse(error_code=ErrorCode.INVALID_REGULAR_EXPRESSION)
                work += costs
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
