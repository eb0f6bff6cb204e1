"""The states of a transactional id, and what leads from one to the next. What is not in the table cannot happen.

                       ┌────────────────────────────── ADD ◀─┐
                       ▼                                     │
    Empty ── ADD ─▶ Ongoing ── COMMIT ─▶ PrepareCommit ── MARKED ─▶ CompleteCommit
      ▲                │ │                                                     │
      │                │ └──── ABORT ──▶ PrepareAbort ─── MARKED ─▶ CompleteAbort
      │                │                      ▲                                │
      │                └─ FENCE ─▶ PrepareEpochFence                           │
      └──────────────────────────── INITIALISE ◀───────────────────────────────┘

Empty              it has a producer, and no transaction yet
Ongoing            partitions were added
PrepareCommit      it is decided: markers go to all partitions, whatever crashes
PrepareAbort       the same
CompleteCommit     every partition has its marker; the next transaction may begin
CompleteAbort      the same
PrepareEpochFence  another producer, or the time-out, ends the transaction: under way to PrepareAbort, never stored
Dead               expired: a tombstone is written, and the id is forgotten; never stored

An abort may also come where no transaction is ongoing: of a client that ends each one under a new epoch, and that does
not know whether its first partition was added.
"""

from __future__ import annotations

from enum import Enum, IntEnum
from typing import Final


class TransactionStatus(IntEnum):
    """The numbers are those of the records."""

    EMPTY = 0
    ONGOING = 1
    PREPARE_COMMIT = 2
    PREPARE_ABORT = 3
    COMPLETE_COMMIT = 4
    COMPLETE_ABORT = 5
    DEAD = 6
    PREPARE_EPOCH_FENCE = 7

    @property
    def kafka_name(self) -> str:
        """As tools know it: `PrepareCommit`."""
        return KAFKA_NAMES[self]


KAFKA_NAMES: Final = {
    TransactionStatus.EMPTY: "Empty",
    TransactionStatus.ONGOING: "Ongoing",
    TransactionStatus.PREPARE_COMMIT: "PrepareCommit",
    TransactionStatus.PREPARE_ABORT: "PrepareAbort",
    TransactionStatus.COMPLETE_COMMIT: "CompleteCommit",
    TransactionStatus.COMPLETE_ABORT: "CompleteAbort",
    TransactionStatus.DEAD: "Dead",
    TransactionStatus.PREPARE_EPOCH_FENCE: "PrepareEpochFence",
}
BY_KAFKA_NAME: Final = {name: status for status, name in KAFKA_NAMES.items()}


class TransactionEvent(Enum):
    #: A producer asks for its id and epoch.
    INITIALISE = "initialise"
    #: Partitions, or a group's offsets.
    ADD = "add"
    COMMIT = "commit"
    ABORT = "abort"
    #: Another producer came with the same id, or the transaction has lasted for too long.
    FENCE = "fence"
    #: All partitions have their marker.
    MARKED = "marked"
    EXPIRE = "expire"


_S, _E = TransactionStatus, TransactionEvent
#: Where no transaction is under way.
IDLE: Final = frozenset({_S.EMPTY, _S.COMPLETE_COMMIT, _S.COMPLETE_ABORT})
#: Where the end is decided, and markers are on their way.
ENDING: Final = frozenset({_S.PREPARE_COMMIT, _S.PREPARE_ABORT})

#: Never stored.
DEAD_OR_UNDER_WAY: Final = frozenset({_S.DEAD, _S.PREPARE_EPOCH_FENCE})

NEXT: Final = {
    **dict.fromkeys([(status, _E.INITIALISE) for status in IDLE], _S.EMPTY),
    **dict.fromkeys([(status, _E.ADD) for status in (*IDLE, _S.ONGOING)], _S.ONGOING),
    (_S.ONGOING, _E.COMMIT): _S.PREPARE_COMMIT,
    **dict.fromkeys([(status, _E.ABORT) for status in (*IDLE, _S.ONGOING, _S.PREPARE_EPOCH_FENCE)], _S.PREPARE_ABORT),
    (_S.ONGOING, _E.FENCE): _S.PREPARE_EPOCH_FENCE,
    (_S.PREPARE_COMMIT, _E.MARKED): _S.COMPLETE_COMMIT,
    (_S.PREPARE_ABORT, _E.MARKED): _S.COMPLETE_ABORT,
    **dict.fromkeys([(status, _E.EXPIRE) for status in IDLE], _S.DEAD),
}


def after(status: TransactionStatus, event: TransactionEvent) -> TransactionStatus:
    """KeyError where the table has no entry: a fault of ours."""
    return NEXT[status, event]
