"""What the handlers of transactions share: whether a client may, and how older versions are answered."""

from __future__ import annotations

from typing import Final

from ottla.coordinators.caller import Now
from ottla.handlers.calls.call import Call
from ottla.model import ErrorCode
from ottla.security.authorizer import Operation, Resource


def now_of(call: Call) -> Now:
    return Now(call.now_ms, call.services.clock.monotonic_ms())


def may_write(call: Call, transactional_id: str) -> bool:
    return call.allowed(Operation.WRITE, Resource.TRANSACTIONAL_ID, transactional_id)


def may_describe(call: Call, transactional_id: str) -> bool:
    return call.allowed(Operation.DESCRIBE, Resource.TRANSACTIONAL_ID, transactional_id)


def in_words_of(version: int, fenced_since: int, error: ErrorCode) -> ErrorCode:
    """Clients of versions before `fenced_since` do not know PRODUCER_FENCED."""
    is_new = error is ErrorCode.PRODUCER_FENCED and version < fenced_since
    return ErrorCode.INVALID_PRODUCER_EPOCH if is_new else error


#: From these versions on clients have an epoch for each transaction (`transaction.version` 2).
ADD_PARTITIONS_V2: Final = 4
END_TXN_V2: Final = 5
