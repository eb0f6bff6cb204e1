"""What an error means for the transaction in which it was met: whether it passes, is the transaction's end, or the
producer's.

A code that stands in no set is the producer's end: what nobody expects here must not be taken for something harmless.
"""

from __future__ import annotations

from enum import Enum
from typing import Final

from ottla.client.errors import ClientClosed, KafkaError, RequestTimedOut
from ottla.model import ErrorCode


class Verdict(Enum):
    #: Nobody knows what became of the question; it may be put again.
    UNHEARD = "unheard"
    ABORTABLE = "abortable"
    FENCED = "fenced"
    FATAL = "fatal"


#: A higher epoch of the same id is known.
FENCED: Final = frozenset({ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH})
#: The coordinator has forgotten the producer, after `transactional.id.expiration.ms`: there is nothing to end.
FORGOTTEN: Final = frozenset({ErrorCode.UNKNOWN_PRODUCER_ID, ErrorCode.INVALID_PRODUCER_ID_MAPPING})
_ABORTABLE: Final = FORGOTTEN | {
    ErrorCode.TRANSACTION_ABORTABLE,
    ErrorCode.OPERATION_NOT_ATTEMPTED,
    ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ErrorCode.INVALID_TOPIC_EXCEPTION,
    ErrorCode.UNKNOWN_TOPIC_ID,
    # Of a group's offsets.
    ErrorCode.GROUP_AUTHORIZATION_FAILED,
    ErrorCode.ILLEGAL_GENERATION,
    ErrorCode.UNKNOWN_MEMBER_ID,
    ErrorCode.FENCED_INSTANCE_ID,
    ErrorCode.STALE_MEMBER_EPOCH,
    ErrorCode.FENCED_MEMBER_EPOCH,
    ErrorCode.REBALANCE_IN_PROGRESS,
    ErrorCode.OFFSET_METADATA_TOO_LARGE,
    ErrorCode.INVALID_COMMIT_OFFSET_SIZE,
    ErrorCode.INVALID_GROUP_ID,
    ErrorCode.GROUP_ID_NOT_FOUND,
}
#: Of a batch: all others are the transaction's end only. An epoch that a leader does not know is one of them, since
#: the coordinator says with the abort whether that is a fence.
_FATAL_OF_BATCHES: Final = frozenset(
    {
        ErrorCode.PRODUCER_FENCED,
        ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
        ErrorCode.UNSUPPORTED_VERSION,
    }
)


def of_coordinator(error: KafkaError) -> Verdict:
    """Of an answer to what is asked in a transaction, when it is not asked again any more."""
    if error.retriable or isinstance(error, ClientClosed | RequestTimedOut):
        return Verdict.UNHEARD
    if error.code in FENCED:
        return Verdict.FENCED
    return Verdict.ABORTABLE if error.code in _ABORTABLE else Verdict.FATAL


def of_batch(error: KafkaError) -> Verdict:
    """Of a batch that was not written, or nobody knows whether it was."""
    if error.code is ErrorCode.PRODUCER_FENCED:
        return Verdict.FENCED
    return Verdict.FATAL if error.code in _FATAL_OF_BATCHES else Verdict.ABORTABLE
