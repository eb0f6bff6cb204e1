"""The states of a transactional producer, in a table in which a missing entry raises.

    UNINITIALIZED ── init ──> INITIALIZING ── initialized ──> READY <──────────── ended ─────────┐
                                                                │ begin                          │
                                                                v            commit              │
                                  DETACHED <── detach ──┐     OPEN ────────────────────> COMMITTING
                                                        │       │ fail                           │
                                                        │       v                 fail           │
                                                        │     FAILED <───────────────────────────┤
                                                        │       │ abort (or from OPEN)           │
                                                        │       v                                │
                                                        │    ABORTING ── ended ──> READY         │
                                                        └────────────────────────────────────────┘

From everywhere `over` leads to OVER: the producer was fenced, or may not go on for another reason. An identity may be
asked for anew while nothing is open (READY -> INITIALIZING): to raise its epoch, or since the protocol has changed.
"""

from __future__ import annotations

from enum import Enum
from typing import Final


class TransactionState(Enum):
    UNINITIALIZED = "uninitialized"
    INITIALIZING = "initializing"
    READY = "ready"
    OPEN = "open"
    FAILED = "failed"
    COMMITTING = "committing"
    ABORTING = "aborting"
    DETACHED = "detached"
    OVER = "over"


class TransactionEvent(Enum):
    INIT = "init"
    INITIALIZED = "initialized"
    BEGIN = "begin"
    FAIL = "fail"
    COMMIT = "commit"
    REOPEN = "reopen"
    ABORT = "abort"
    ENDED = "ended"
    DETACH = "detach"
    OVER = "over"


_S = TransactionState
_E = TransactionEvent

NEXT: Final = {
    (_S.UNINITIALIZED, _E.INIT): _S.INITIALIZING,
    (_S.INITIALIZING, _E.INIT): _S.INITIALIZING,
    (_S.READY, _E.INIT): _S.INITIALIZING,
    (_S.INITIALIZING, _E.INITIALIZED): _S.READY,
    (_S.READY, _E.BEGIN): _S.OPEN,
    (_S.OPEN, _E.FAIL): _S.FAILED,
    (_S.COMMITTING, _E.FAIL): _S.FAILED,
    (_S.OPEN, _E.COMMIT): _S.COMMITTING,
    # Its outcome was not heard in time: it is asked for again.
    (_S.COMMITTING, _E.COMMIT): _S.COMMITTING,
    # The caller gave up before the coordinator was asked.
    (_S.COMMITTING, _E.REOPEN): _S.OPEN,
    (_S.OPEN, _E.ABORT): _S.ABORTING,
    (_S.FAILED, _E.ABORT): _S.ABORTING,
    (_S.ABORTING, _E.ABORT): _S.ABORTING,
    (_S.COMMITTING, _E.ENDED): _S.READY,
    (_S.ABORTING, _E.ENDED): _S.READY,
    (_S.COMMITTING, _E.DETACH): _S.DETACHED,
    # A process has ended it that was given its identity: the next transaction needs a new one.
    (_S.DETACHED, _E.ENDED): _S.UNINITIALIZED,
    **{(state, _E.OVER): _S.OVER for state in _S},
}

#: In these a record that failed changes nothing: the transaction is being given up already, or there is none.
FAILING_CHANGES_NOTHING: Final = frozenset(_S) - {_S.OPEN, _S.COMMITTING}
