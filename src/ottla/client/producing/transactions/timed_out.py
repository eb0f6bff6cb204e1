"""Whether the coordinator has aborted a transaction by itself, or another producer has taken the transactional id over.

Both are answered alike: the epoch is old. But the coordinator's own abort raises the epoch by one and leaves the
transaction aborted, while a producer that begins has none. A producer that names the raised epoch in InitProducerId
gets the next one only while nobody else has begun, so a producer whose time was over may go on without fencing anybody.
"""

from __future__ import annotations

from typing import Final

from ottla.client.errors import KafkaError
from ottla.client.producing.sequences import EPOCH_MAX, ProducerIdentity
from ottla.client.producing.transactions.calls import CoordinatorCalls
from ottla.client.producing.transactions.core import TransactionIdentity
from ottla.client.wire.coordinator import Coordinator
from ottla.protocol.generated.describe_transactions import DescribeTransactionsRequest, DescribeTransactionsResponse

#: How long to ask for the reason of a refusal, which is raised without one otherwise.
_TIMEOUT_MS: Final = 5_000
_ABORTED: Final = frozenset({"PrepareEpochFence", "PrepareAbort", "CompleteAbort"})


async def aborted_by_coordinator(
    calls: CoordinatorCalls, coordinator: Coordinator, identity: TransactionIdentity
) -> ProducerIdentity | None:
    """What the coordinator has in place of `identity`; None where it was taken over, or nobody can say."""
    try:
        answer = await calls.ask(
            coordinator,
            DescribeTransactionsRequest(transactional_ids=[identity.transactional_id]),
            DescribeTransactionsResponse,
            lambda answer: next((one.error_code for one in answer.transaction_states), 0),
            about=identity.transactional_id,
            timeout_ms=_TIMEOUT_MS,
        )
    except KafkaError:
        return None
    for one in answer.transaction_states:
        is_ours = one.transactional_id == identity.transactional_id and one.producer_id == identity.producer_id
        raised_once = identity.epoch < EPOCH_MAX and one.producer_epoch == identity.epoch + 1
        if is_ours and raised_once and one.transaction_state in _ABORTED:
            return ProducerIdentity(one.producer_id, one.producer_epoch)
    return None
