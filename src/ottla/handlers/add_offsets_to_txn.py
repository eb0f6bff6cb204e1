"""AddOffsetsToTxn (25), versions 0 to 4: the group's partition of the offsets topic becomes part of a transaction."""

from __future__ import annotations

from typing import Final

from ottla.handlers.calls.call import Call
from ottla.handlers.calls.group_calls import allowed_on_group
from ottla.handlers.calls.later import Later
from ottla.handlers.calls.transaction_calls import in_words_of, may_write, now_of
from ottla.model import OFFSETS_TOPIC, ErrorCode, TopicPartition
from ottla.protocol.generated.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from ottla.security.authorizer import Operation
from ottla.transactions.asked import ProducerPartitions

_FENCED_SINCE: Final = 2


def handle(call: Call, request: AddOffsetsToTxnRequest) -> AddOffsetsToTxnResponse | Later:
    if not may_write(call, request.transactional_id):
        return _answered(call, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    if not allowed_on_group(call, Operation.READ, request.group_id):
        return _answered(call, ErrorCode.GROUP_AUTHORIZATION_FAILED)
    partition = TopicPartition(OFFSETS_TOPIC, call.services.groups.partition_for(request.group_id))
    asked = ProducerPartitions(
        request.transactional_id, request.producer_id, request.producer_epoch, frozenset((partition,))
    )
    answer = Later()
    transactions = call.services.transactions
    transactions.add_partitions_when_at_rest(now_of(call), asked, lambda error: answer.set(_answered(call, error)))
    return answer


def _answered(call: Call, error: ErrorCode) -> AddOffsetsToTxnResponse:
    return AddOffsetsToTxnResponse(
        throttle_time_ms=call.throttle_ms(), error_code=in_words_of(call.version, _FENCED_SINCE, error)
    )
