"""What all parts of one shard share: its transactional ids, its timers, its journal."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

from ottla.config.slices import TransactionsConfig
from ottla.coordinators.caller import Now
from ottla.coordinators.journal import Journal, JournalRecord
from ottla.coordinators.long_work import Beside
from ottla.coordinators.timers import Timers
from ottla.model import ErrorCode
from ottla.steps import Steps, at_once
from ottla.transactions.records import PARTITIONS_AT_ONCE_MAX, transaction_value, transaction_value_steps
from ottla.transactions.resting import Rest
from ottla.transactions.states import ENDING, TransactionStatus
from ottla.transactions.transaction import Transaction

#: What a write was whose end took too long is asked again after so long.
DOUBT_MS: Final = 1_000

Done = Callable[[ErrorCode], None]


def _nobody_waits(_: ErrorCode) -> None:
    """The client was answered that it takes too long."""


class Counts:
    """What all shards of a broker hold, and what happened since it started."""

    __slots__ = ("aborted_by_timeout", "expired", "id_bytes", "ids", "ongoing", "partitions", "unwritten")

    def __init__(self) -> None:
        self.ids = 0
        #: Of the keys of all ids.
        self.id_bytes = 0
        self.ongoing = 0
        #: Of all transactions that are open or end, together.
        self.partitions = 0
        self.aborted_by_timeout = 0
        self.expired = 0
        #: Completions that the journal did not take, and that are written later.
        self.unwritten = 0

    def known(self, key: bytes) -> None:
        self.ids += 1
        self.id_bytes += len(key)

    def forgotten(self, key: bytes) -> None:
        self.ids -= 1
        self.id_bytes -= len(key)


class TransactionalId:
    """One transactional id.

    Only what is committed is decided upon, answered and acted on. While a change of it is written and not committed
    nothing else is decided of this id, and its clients are asked to come again.
    """

    __slots__ = ("committed", "deadline_ms", "id", "key", "written")

    def __init__(self, transactional_id: str, key: bytes, committed: Transaction | None = None) -> None:
        self.id = transactional_id
        self.key = key
        #: None while its first record is on its way.
        self.committed = committed
        #: Its next state, in the journal and not committed. None: it is at rest.
        self.written: Transaction | None = None
        #: By the monotonic clock: when its open transaction has lasted for too long.
        self.deadline_ms = 0

    @property
    def is_at_rest(self) -> bool:
        """Whether partitions may be added to its transaction now: nothing of it is on its way."""
        return self.written is None and (self.committed is None or self.committed.status not in ENDING)


class ShardState:
    """One partition of `__transaction_state`, as long as this broker coordinates its ids."""

    def __init__(
        self,
        partition: int,
        journal: Journal,
        settings: Callable[[], TransactionsConfig],
        counts: Counts,
        applied: Callable[[TransactionalId, Transaction | None, Now], None],
        one_by_one: Beside = at_once,
    ) -> None:
        self.partition = partition
        self.journal = journal
        #: Asked each time: settings may change.
        self.settings = settings
        self.counts = counts
        self.timers = Timers()
        self.rest = Rest(self.timers)
        self.ids: dict[str, TransactionalId] = {}
        #: Given up: another state of the same partition may be loaded, and would miss what is written from here.
        self.is_over = False
        #: Called with each state that was committed, and the one before.
        self._applied = applied
        self._one_by_one = one_by_one

    def write(self, changed: TransactionalId, then: Transaction, now: Now, done: Done) -> None:
        """Writes the id's next state, and has it take effect when it is committed; then `done` is called with NONE.

        With any other error the client does not know. Where it was refused nothing has changed; where its commit takes
        too long the id stays as it is until that is known, and takes the state on then.
        """
        assert changed.written is None, "what is on its way is waited for"
        if self.is_over:
            done(ErrorCode.NOT_COORDINATOR)
            return
        if len(then.partitions) > PARTITIONS_AT_ONCE_MAX:
            self.write_long(changed, lambda: then, now, done)
            return
        changed.written = then
        is_dead = then.status is TransactionStatus.DEAD
        self._hand_in(changed, None if is_dead else transaction_value(then), now, done)

    def write_long(
        self, changed: TransactionalId, then: Callable[[], Transaction | ErrorCode], now: Now, done: Done
    ) -> None:
        """The same of very many partitions, beside other requests: in steps, and one after the other, since the former
        state and the next one have their partitions each. `then` gives the next one, or why there is none."""
        assert changed.written is None
        assert changed.committed is not None
        changed.written = changed.committed  # nothing else is decided of this id meanwhile
        self._one_by_one(self._written_long(changed, then, now, done))

    def _written_long(
        self, changed: TransactionalId, then: Callable[[], Transaction | ErrorCode], now: Now, done: Done
    ) -> Steps[None]:
        refusal = ErrorCode.UNKNOWN_SERVER_ERROR
        try:
            found = ErrorCode.NOT_COORDINATOR if self.is_over else then()
            if not isinstance(found, Transaction):
                refusal = found
                return
            value = yield from transaction_value_steps(found)
            refusal = ErrorCode.NOT_COORDINATOR if self.is_over else ErrorCode.NONE
        finally:
            if refusal:
                self._forget_written(changed)
                done(refusal)
        if not refusal:
            changed.written = found
            self._hand_in(changed, value, now, done)

    def _hand_in(self, changed: TransactionalId, value: bytes | None, now: Now, done: Done) -> None:
        record = JournalRecord(changed.key, value)
        refusal = self.journal.write((record,), now.wall_ms, partial(self._ended, changed, now, done))
        if refusal:
            self._forget_written(changed)
            done(refusal)

    def _ended(self, changed: TransactionalId, now: Now, done: Done, error: ErrorCode) -> None:
        if not error:
            # Its client is answered before markers and timers have their turn: it waits, and they do not.
            self._take_on(changed, now, done)
            return
        if not self.is_over:
            # Lost with its journal, which has this shard given up in a moment; or still to be committed.
            self.timers.set(("doubt", changed.id), now.monotonic_ms + DOUBT_MS, partial(self._ask_again, changed))
        done(error)

    def _ask_again(self, changed: TransactionalId, now: Now) -> None:
        self.journal.when_settled(partial(self._settled, changed, now))

    def _settled(self, changed: TransactionalId, now: Now, error: ErrorCode) -> None:
        if not error:
            self._take_on(changed, now)
        elif not self.is_over:
            self.timers.set(("doubt", changed.id), now.monotonic_ms + DOUBT_MS, partial(self._ask_again, changed))

    def _take_on(self, changed: TransactionalId, now: Now, done: Done = _nobody_waits) -> None:
        before, then = changed.committed, changed.written
        if self.is_over or then is None:
            done(ErrorCode.NONE)
            return
        changed.written = None
        changed.committed = then
        self.count(before, then)
        if then.status is TransactionStatus.DEAD:
            self.ids.pop(changed.id, None)
            self.counts.forgotten(changed.key)
        try:
            done(ErrorCode.NONE)
        finally:  # whatever a fault of ours in an answer is, a decided end goes on
            self._applied(changed, before, now)
            if changed.is_at_rest:
                self.rest.has_come(changed.id)

    def _forget_written(self, changed: TransactionalId) -> None:
        changed.written = None
        if changed.committed is None and self.ids.pop(changed.id, None) is not None:
            self.counts.forgotten(changed.key)

    def count(self, before: Transaction | None, then: Transaction | None) -> None:
        ongoing = TransactionStatus.ONGOING
        self.counts.ongoing += (then is not None and then.status is ongoing) - (
            before is not None and before.status is ongoing
        )
        self.counts.partitions += (0 if then is None else len(then.partitions)) - (
            0 if before is None else len(before.partitions)
        )
