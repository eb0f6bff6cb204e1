"""What a producer knows of its transactions: synchronous, without clock and connections.

There are two generations of the protocol. In the first the coordinator is asked to add each partition before anything
is written to it, the epoch stays, and only a producer that is not sure of its sequence numbers has it raised. In the
second leaders add partitions themselves with the first batch, and the end of each transaction is answered with the next
epoch: a batch of an earlier transaction that comes late is refused by that. `transaction.version` among the cluster's
features says which one is spoken; it may change between two transactions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Final, NamedTuple

from ottla.client.errors import (
    KafkaError,
    ProducerFenced,
    TransactionAbortable,
    TransactionAborted,
    TransactionFailed,
    TransactionFault,
    WrongTransactionState,
)
from ottla.client.producing.sequences import Identities, ProducerIdentity
from ottla.client.producing.transactions.states import FAILING_CHANGES_NOTHING, NEXT, TransactionEvent, TransactionState
from ottla.client.producing.transactions.verdicts import FORGOTTEN
from ottla.model import TopicPartition

#: The generations of the protocol, as `transaction.version` counts them; 0 and 1 are the same to a client.
CLASSIC: Final = 1
EPOCH_A_TRANSACTION: Final = 2


class TransactionIdentity(NamedTuple):
    """An open transaction, for the process that ends it: plain values, which can be pickled or written to JSON."""

    transactional_id: str
    producer_id: int
    epoch: int
    #: The generation of the protocol in which it was begun, and has to be ended.
    version: int


class TransactionCore:
    def __init__(self, transactional_id: str, identities: Identities) -> None:
        self.transactional_id = transactional_id
        #: Shared with the partitions' sequences: they begin at 0 under each identity.
        self.identities = identities
        self.state = TransactionState.UNINITIALIZED
        self.version = CLASSIC
        #: How many were begun: by which a block knows whether its own is still the one that is open.
        self.number = 0
        #: Why the transaction failed, or why there will be no other.
        self.error: KafkaError | None = None
        #: Partitions that the coordinator knows of, or will with their first batch.
        self.partitions: set[TopicPartition] = set()
        #: Those that it has to add before anything is written to them.
        self.pending: set[TopicPartition] = set()
        self.groups: set[str] = set()
        #: The coordinator knows of the transaction, or may: it has to be ended there.
        self.started = False
        #: It knows, or takes the end of one that it does not know of.
        self.certain = False
        self.started_ms = 0
        #: The coordinator was asked to end it: no record can be a part of it any more.
        self.end_asked = False
        #: The next transaction needs an identity that was not used: sequence numbers are in doubt.
        self.needs_identity = False
        self._busy: str | None = None

    @property
    def takes_records(self) -> bool:
        return self.state is TransactionState.OPEN

    @property
    def identity(self) -> ProducerIdentity:
        current = self.identities.current
        assert current is not None
        return current

    def _on(self, event: TransactionEvent) -> None:
        self.state = NEXT[self.state, event]

    # One call after the other

    @contextmanager
    def busy(self, verb: str, *states: TransactionState) -> Iterator[None]:
        """While a call is under way; raises where it does not belong here, or another is under way."""
        if self._busy is not None:
            raise WrongTransactionState(f"{verb}: {self._busy} of this producer is under way: one call at a time")
        if self.state not in states:
            raise self.refusal(verb)
        self._busy = verb
        try:
            yield
        finally:
            self._busy = None

    @property
    def is_busy(self) -> bool:
        return self._busy is not None

    def refusal(self, verb: str) -> TransactionFault:
        """Why a call that belongs to another state is refused."""
        if self.state is TransactionState.OVER:
            assert self.error is not None
            return _copied(self.error, TransactionFailed)
        if self.state is TransactionState.FAILED and verb != "begin":
            return self.abortable()
        return WrongTransactionState(f"{verb}: {_WHY[self.state]}")

    def abortable(self) -> TransactionAbortable:
        """Why the transaction can only be aborted."""
        error = self.error
        if isinstance(error, TransactionAbortable):
            again = type(error)(str(error), code=error.code)
            again.__cause__ = error.__cause__
            return again
        made = TransactionAbortable(f"the transaction can only be aborted: {error}")
        made.__cause__ = error
        return made

    # Its identity

    def initialize(self) -> None:
        self._on(TransactionEvent.INIT)

    def initialized(self, identity: ProducerIdentity, version: int) -> None:
        self._on(TransactionEvent.INITIALIZED)
        self.identities.current = identity
        self.version = version
        self.needs_identity = False

    # A transaction's life

    def begin(self) -> None:
        self._on(TransactionEvent.BEGIN)
        self.number += 1
        self.error = None
        self.partitions.clear()
        self.pending.clear()
        self.groups.clear()
        self.started = self.certain = self.end_asked = False

    def start(self, now_ms: int) -> None:
        """The coordinator hears of the transaction now, or may."""
        if not self.started:
            self.started = True
            self.started_ms = now_ms
            self.certain = self.version >= EPOCH_A_TRANSACTION

    def refused(self) -> None:
        """The coordinator did not take what it was asked to add; without anything else there is no transaction."""
        self.started = self.certain

    def admits(self, partition: TopicPartition, now_ms: int) -> bool:
        """Whether a batch of this partition may go. One that may not is to be added first."""
        if self.state not in _SENDING:
            return False
        if partition in self.partitions:
            return True
        if self.version == CLASSIC:
            self.pending.add(partition)
            return False
        self.partitions.add(partition)
        self.start(now_ms)
        return True

    def added(self, partitions: Iterable[TopicPartition]) -> None:
        self.partitions.update(partitions)
        self.pending.difference_update(partitions)
        self.certain = True

    def group_added(self, group_id: str) -> None:
        self.groups.add(group_id)
        self.certain = True

    def offsets_unheard(self) -> None:
        """They may come late, and would be the next transaction's where that has the same epoch."""
        self.needs_identity |= self.version == CLASSIC

    def fail(self, error: KafkaError) -> bool:
        """Part of the transaction was not done: it can only be aborted. Whether that is news."""
        if self.state in FAILING_CHANGES_NOTHING:
            return False
        self._on(TransactionEvent.FAIL)
        self.error = error
        return True

    def batch_failed(self, *, stamped: bool) -> None:
        """A batch has no good end. Where it had a number, numbers are in doubt, whatever state this is."""
        if stamped:
            self.needs_identity = True

    def commit(self) -> None:
        self._on(TransactionEvent.COMMIT)

    def reopen(self) -> None:
        """The commit was given up before the coordinator was asked; a transaction that failed meanwhile stays so."""
        if self.state is TransactionState.COMMITTING:
            self._on(TransactionEvent.REOPEN)

    def abort(self) -> None:
        self._on(TransactionEvent.ABORT)

    @property
    def has_end(self) -> bool:
        """Whether the coordinator has anything to end."""
        return self.started and not (self.error is not None and self.error.code in FORGOTTEN)

    def ended(self, identity: ProducerIdentity | None) -> None:
        """`identity`: the next transaction's, where the coordinator has named one."""
        forgotten = self.started and not self.has_end
        self._on(TransactionEvent.ENDED)
        if identity is not None and identity != self.identities.current:
            self.identities.current = identity
            self.needs_identity = False
        elif forgotten:
            self.needs_identity = True

    def detach(self) -> TransactionIdentity:
        self._on(TransactionEvent.DETACH)
        return self.open_identity()

    def open_identity(self) -> TransactionIdentity:
        return TransactionIdentity(self.transactional_id, *self.identity, self.version)

    def over(self, error: KafkaError) -> TransactionFault:
        """There will be no other transaction; gives what to raise."""
        self._on(TransactionEvent.OVER)
        self.error = error
        return _copied(error, TransactionFailed)

    # What becomes of records

    def dropping(self) -> KafkaError | None:
        """The outcome of records that wait, where they are not to be sent any more."""
        if self.state is TransactionState.ABORTING:
            return TransactionAborted("the transaction was aborted before the record was sent")
        if self.state is TransactionState.FAILED:
            made = TransactionAborted(f"the record was not sent, since its transaction has failed: {self.error}")
            made.__cause__ = self.error
            return made
        return None


_SENDING: Final = frozenset({TransactionState.OPEN, TransactionState.COMMITTING})

_WHY: Final = {
    TransactionState.UNINITIALIZED: "no transaction is open: begin one",
    TransactionState.INITIALIZING: "no transaction is open: begin one",
    TransactionState.READY: "no transaction is open: begin one",
    TransactionState.OPEN: "a transaction is open: commit or abort it first",
    TransactionState.FAILED: "the last transaction has failed: abort it first",
    TransactionState.COMMITTING: "the transaction is being committed; where the answer was not heard, commit again",
    TransactionState.ABORTING: "the transaction is being aborted; where the answer was not heard, abort again",
    TransactionState.DETACHED: "the transaction was detached: finish it by its identity",
}


def _copied(error: KafkaError, kind: type[TransactionFault]) -> TransactionFault:
    """An exception of its own for each caller: one raised in several places collects all tracebacks."""
    if isinstance(error, ProducerFenced | TransactionFailed):
        made: TransactionFault = type(error)(str(error), code=error.code)
        made.__cause__ = error.__cause__
        return made
    made = kind(f"this producer can do no more transactions: {error}", code=error.code)
    made.__cause__ = error
    return made
