"""What is not done for each recognised request of a transaction: to find out what it says, whether it is allowed, and
the answers that no memo has ready.
"""

from __future__ import annotations

from ottla.handlers.add_partitions_to_txn import allowed_to_client, answer_to_client
from ottla.handlers.calls.call import Call, Services
from ottla.handlers.calls.peer import Peer
from ottla.handlers.calls.transaction_calls import may_write
from ottla.handlers.end_txn import asked_to_end, ended_answer
from ottla.handlers.routes import ADD_PARTITIONS_TO_TXN
from ottla.handlers.transactions.memo import TransactionMemo
from ottla.model import ErrorCode
from ottla.protocol.errors import DecodeError
from ottla.protocol.fields import REQUEST_FIELDS
from ottla.protocol.generated.add_partitions_to_txn import AddPartitionsToTxnRequest
from ottla.protocol.generated.end_txn import EndTxnRequest
from ottla.protocol.header import decode_request_header, encode_response
from ottla.steps import at_once
from ottla.transactions.asked import ProducerAnswer


def understand(services: Services, peer: Peer, memo: TransactionMemo, key: int) -> None:
    """Finds out what a request says that came again; nothing where it is not recognised under the present policy and
    metadata, since something of it is refused, or it is counted.
    """
    number, generation = services.policy.number, services.metadata.generation
    memo.adds = memo.ends = None
    # Numbers first: what is asked under them may change only together with them.
    memo.policy, memo.seen_generation = number, generation
    try:
        call, request = _decoded(services, peer, memo, key, 0)
    except DecodeError:
        return
    if not services.policy.is_free(peer.principal, call.client_id) or not may_write(call, _id_of(request)):
        return
    if isinstance(request, EndTxnRequest):
        memo.ends = asked_to_end(call, request)
    else:
        memo.adds = at_once(allowed_to_client(call, request))
        if memo.adds is None:
            return
    memo.answered_with(bytes(_encoded(call, request, key, ErrorCode.NONE)))


def answer_of(
    services: Services, peer: Peer, memo: TransactionMemo, key: int, correlation: int, error: ErrorCode
) -> bytes | bytearray:
    """The answer where the request has failed, or its client may be held back by now."""
    call, request = _decoded(services, peer, memo, key, correlation)
    return _encoded(call, request, key, error)


def _id_of(request: AddPartitionsToTxnRequest | EndTxnRequest) -> str:
    if isinstance(request, EndTxnRequest):
        return request.transactional_id
    return request.v3_and_below_transactional_id


def _decoded(
    services: Services, peer: Peer, memo: TransactionMemo, key: int, correlation: int
) -> tuple[Call, AddPartitionsToTxnRequest | EndTxnRequest]:
    frame = REQUEST_FIELDS.pack(key, memo.version, correlation) + memo.tail
    header, position = decode_request_header(frame, 0)
    request_type = AddPartitionsToTxnRequest if key == ADD_PARTITIONS_TO_TXN else EndTxnRequest
    request, _ = request_type.decode(frame, memo.version, position)
    now_ms = services.round.wall_ms
    call = Call(
        *(services, memo.version, correlation, header.client_id, peer.principal, peer.host, peer.listener_name),
        *(now_ms, peer),
    )
    return call, request


def _encoded(
    call: Call, request: AddPartitionsToTxnRequest | EndTxnRequest, key: int, error: ErrorCode
) -> bytes | bytearray:
    if isinstance(request, EndTxnRequest):
        return encode_response(key, call.version, call.correlation_id, ended_answer(call, ProducerAnswer(error)))
    answer = at_once(answer_to_client(call, request, error))
    return encode_response(key, call.version, call.correlation_id, answer)
