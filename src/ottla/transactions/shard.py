"""One partition of `__transaction_state`: the transactional ids that hash to it. Synchronous.

A decision is made of what is committed, written, and takes effect when it is committed itself:

    request ─▶ decision ─▶ record ─▶ committed ─▶ answer
                                        └─ a decided end ─▶ markers ─▶ all written ─▶ record of the completion

Whatever crashes after the record of a decided end, a coordinator that loads the partition sends the markers again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Final, NamedTuple

from ottla import logs
from ottla.config.slices import TransactionsConfig
from ottla.coordinators.caller import Now
from ottla.coordinators.journal import Journal
from ottla.coordinators.long_work import Beside
from ottla.coordinators.timers import Timers
from ottla.model import TRANSACTION_TOPIC, ErrorCode
from ottla.protocol.errors import DecodeError, EncodeError
from ottla.steps import Steps, at_once, pieces, taken
from ottla.transactions.adding import added, answer_at_once, verified
from ottla.transactions.asked import (
    EndAsked,
    ProducerAnswer,
    ProducerInit,
    ProducerPartitions,
    Reply,
    Verified,
)
from ottla.transactions.ending import completed, ended, fenced
from ottla.transactions.expiring import Expiry
from ottla.transactions.initialising import initialised
from ottla.transactions.markers import MarkerLines, TransactionEnd
from ottla.transactions.records import PARTITIONS_AT_ONCE_MAX, read_key, read_short_value, read_value, transaction_key
from ottla.transactions.state import Counts, Done, ShardState, TransactionalId
from ottla.transactions.states import ENDING, TransactionStatus
from ottla.transactions.transaction import EPOCH_A_TRANSACTION, Transaction, Wanted

log_event = logs.logger("transactions")

#: Known to one broker: 1 GB of memory. More are refused with POLICY_VIOLATION; Kafka knows no such bound.
IDS_MAX: Final = 1_000_000
#: Their names, each of which is held twice and may have 32 KB; a million have 128 bytes each.
ID_BYTES_MAX: Final = 128 * 1024 * 1024
#: Partitions in all transactions of a broker that are open or end, each with an entry of its own: another gigabyte.
#: While there are so many, whoever adds some is asked to come again.
PARTITIONS_OPEN_MAX: Final = 5_000_000
#: After the journal refused what must be written: the completion of an end, or the abort of an overdue transaction.
RETRY_MS: Final = 1_000
#: Looked at in one step after a load, and let go of in one step.
_IDS_A_STEP: Final = 64

#: Calls with a producer id that nobody has had, or with the reason why there is none: at once or later.
FreshIds = Callable[[Callable[[int | ErrorCode], None]], None]


class ShardContext(NamedTuple):
    """What all shards of a broker have in common."""

    counts: Counts
    fresh_ids: FreshIds
    markers: MarkerLines
    #: The cluster's level of `transaction.version`.
    version: Callable[[], int]
    #: Has long work done; and what holds much memory, one after the other.
    beside: Beside = at_once
    one_by_one: Beside = at_once


class TransactionShard:
    def __init__(
        self, partition: int, journal: Journal, settings: Callable[[], TransactionsConfig], shared: ShardContext
    ) -> None:
        self.topic = TRANSACTION_TOPIC
        self.partition = partition
        self._shared = shared
        self.state = ShardState(partition, journal, settings, shared.counts, self._applied, shared.one_by_one)
        self.timers: Timers = self.state.timers
        self._expiry = Expiry(self.state)
        #: Whether all that the load has found is committed. Before nothing is answered from it.
        self.is_certain = False
        #: Whose end was decided before the load. None of them changes before it goes on.
        self._found_ending: list[TransactionalId] = []
        #: Completions that the journal did not take: of this shard, and among `Counts.unwritten`.
        self._unwritten = 0

    # Producers.

    def init_producer_id(self, now: Now, asked: ProducerInit, reply: Reply[ProducerAnswer]) -> None:
        self._init(now, asked, reply, None)

    def _init(self, now: Now, asked: ProducerInit, reply: Reply[ProducerAnswer], fresh_id: int | None) -> None:
        known = self.state.ids.get(asked.transactional_id)
        if known is not None and known.written is not None:
            reply(ProducerAnswer(ErrorCode.CONCURRENT_TRANSACTIONS))
            return
        committed = None if known is None else known.committed
        then = initialised(committed, asked, now.wall_ms, fresh_id)
        if then is Wanted.PRODUCER_ID:
            self._with_fresh_id(partial(self._init, now, asked, reply), reply)
        elif then is Wanted.FENCE:
            assert known is not None
            self._fence(known, now, lambda error: reply(ProducerAnswer(error or ErrorCode.CONCURRENT_TRANSACTIONS)))
        elif isinstance(then, Transaction):
            refusal = self._add_id(asked.transactional_id) if known is None else None
            if refusal is not None:
                reply(ProducerAnswer(refusal))
                return
            changed = self.state.ids[asked.transactional_id]
            answer = ProducerAnswer(ErrorCode.NONE, then.producer_id, then.producer_epoch)
            self.state.write(changed, then, now, lambda error: reply(ProducerAnswer(error) if error else answer))
        else:
            assert isinstance(then, ErrorCode)
            reply(ProducerAnswer(then))

    def _add_id(self, transactional_id: str) -> ErrorCode | None:
        """Why there is no room for it."""
        counts = self.state.counts
        if counts.ids >= IDS_MAX:
            return ErrorCode.POLICY_VIOLATION
        try:
            key = transaction_key(transactional_id)
        except EncodeError:
            return ErrorCode.UNKNOWN_SERVER_ERROR  # Kafka's, whose record has no room for such a string either
        if counts.id_bytes + len(key) > ID_BYTES_MAX:
            return ErrorCode.POLICY_VIOLATION
        self.state.ids[transactional_id] = TransactionalId(transactional_id, key)
        counts.known(key)
        return None

    def _with_fresh_id(self, go_on: Callable[[int], None], reply: Reply[ProducerAnswer]) -> None:
        """Goes on with a producer id that nobody has had; anything may have happened meanwhile."""

        def given(fresh_id: int | ErrorCode) -> None:
            if isinstance(fresh_id, ErrorCode):
                reply(ProducerAnswer(fresh_id))
            elif self.state.is_over:
                reply(ProducerAnswer(ErrorCode.NOT_COORDINATOR))
            else:
                go_on(fresh_id)

        self._shared.fresh_ids(given)

    # Transactions.

    def add_partitions(self, now: Now, asked: ProducerPartitions, client_version: int, reply: Reply[ErrorCode]) -> None:
        known = self.state.ids.get(asked.transactional_id)
        committed = None if known is None else known.committed
        is_changing = known is not None and known.written is not None
        answer = answer_at_once(committed, asked, is_changing=is_changing)
        if isinstance(answer, ErrorCode):
            reply(answer)
            return
        assert known is not None
        then = partial(self._with_more, answer, asked, client_version, now)
        if len(answer.partitions) + len(asked.partitions) > PARTITIONS_AT_ONCE_MAX:
            self.state.write_long(known, then, now, reply)
        elif isinstance(few := then(), ErrorCode):
            reply(few)
        else:
            self.state.write(known, few, now, reply)

    def _with_more(
        self, committed: Transaction, asked: ProducerPartitions, client_version: int, now: Now
    ) -> Transaction | ErrorCode:
        then = added(committed, asked, client_version, now.wall_ms)
        if isinstance(then, ErrorCode):
            return then
        more = len(then.partitions) - len(committed.partitions)
        if self.state.counts.partitions + more > PARTITIONS_OPEN_MAX:
            log_event.warning_limited("partitions are not added to a transaction: others have too many already")
            return ErrorCode.CONCURRENT_TRANSACTIONS
        return then

    def verify_partitions(self, asked: ProducerPartitions) -> Verified:
        return verified(self.committed(asked.transactional_id), asked)

    def when_at_rest(self, transactional_id: str, until_ms: int, call: Callable[[], None]) -> bool:
        known = self.state.ids.get(transactional_id)
        if known is None or known.is_at_rest or self.state.is_over:
            return False
        return self.state.rest.wait(transactional_id, until_ms, call)

    def end(self, now: Now, asked: EndAsked, reply: Reply[ProducerAnswer]) -> None:
        self._end(now, asked, reply, None)

    def _end(self, now: Now, asked: EndAsked, reply: Reply[ProducerAnswer], fresh_id: int | None) -> None:
        known = self.state.ids.get(asked.transactional_id)
        committed = None if known is None else known.committed
        is_changing = known is not None and known.written is not None
        then = ended(committed, asked, now.wall_ms, fresh_id, is_changing=is_changing)
        if isinstance(then, Wanted):
            self._with_fresh_id(partial(self._end, now, asked, reply), reply)
        elif isinstance(then, Transaction):
            assert known is not None
            is_new = asked.client_version >= EPOCH_A_TRANSACTION
            answer = _answer_to_end(asked, completed(then, now.wall_ms) if is_new else then)
            self.state.write(known, then, now, lambda error: reply(ProducerAnswer(error) if error else answer))
        elif then is ErrorCode.NONE:
            assert committed is not None
            reply(_answer_to_end(asked, committed))
        else:
            reply(ProducerAnswer(then))

    def _fence(self, known: TransactionalId, now: Now, done: Done) -> None:
        """Ends the open transaction of a producer that is replaced, or that has taken too long."""
        ends = known.committed
        if ends is None or ends.status is not _ONGOING:
            done(ErrorCode.CONCURRENT_TRANSACTIONS)
        else:
            self._end_fenced(known, ends, now, done)

    def _end_fenced(
        self, known: TransactionalId, ends: Transaction, now: Now, done: Done, fresh_id: int | None = None
    ) -> None:
        if known.written is not None or known.committed is not ends:
            # Something else came while a producer id was on its way: the next transaction may be open by now.
            done(ErrorCode.CONCURRENT_TRANSACTIONS)
            return
        then = fenced(ends, now.wall_ms, fresh_id, self._shared.version())
        if isinstance(then, Wanted):
            self._with_fresh_id(partial(self._end_fenced, known, ends, now, done), lambda answer: done(answer.error))
        else:
            self.state.write(known, then, now, done)

    def time_out(self, transactional_id: str, now: Now, done: Done) -> None:
        """Ends its open transaction as if its time were over; INVALID_TXN_STATE where none is open."""
        known = self.state.ids.get(transactional_id)
        if known is None or known.committed is None:
            done(ErrorCode.TRANSACTIONAL_ID_NOT_FOUND)
        elif known.written is not None or known.committed.status in ENDING:
            done(ErrorCode.CONCURRENT_TRANSACTIONS)
        elif known.committed.status is not _ONGOING:
            done(ErrorCode.INVALID_TXN_STATE)
        else:
            self._end_overdue(known, now, done)

    def committed(self, transactional_id: str) -> Transaction | None:
        known = self.state.ids.get(transactional_id)
        return None if known is None else known.committed

    # What follows from a state that is committed.

    def _applied(self, changed: TransactionalId, before: Transaction | None, now: Now) -> None:
        then = changed.committed
        assert then is not None
        if then.status in ENDING:
            self._send_markers(changed)
        elif then.status is _ONGOING and (before is None or before.status is not _ONGOING):
            self._open(changed, now, then.timeout_ms)

    def _open(self, changed: TransactionalId, now: Now, left_ms: int) -> None:
        """Looks at a transaction when its time is over. A timer of an earlier one goes off first and is set again."""
        changed.deadline_ms = now.monotonic_ms + left_ms
        timer, look_at_ms = ("deadline", changed.id), self._look_at(changed.deadline_ms)
        set_for_ms = self.timers.when_ms(timer)
        if set_for_ms is None or set_for_ms > look_at_ms:
            self.timers.set(timer, look_at_ms, partial(self._check_deadline, changed.id))

    def _look_at(self, deadline_ms: int) -> int:
        """As Kafka, which looks once in an interval: what is overdue then is ended together."""
        interval_ms = self.state.settings().abort_check_interval_ms
        return -(-deadline_ms // interval_ms) * interval_ms

    def _check_deadline(self, transactional_id: str, now: Now) -> None:
        """By its name: the timer may be of a time before the id was forgotten and came again."""
        changed = self.state.ids.get(transactional_id)
        if changed is None or changed.committed is None or changed.committed.status is not _ONGOING:
            return
        timer, check = ("deadline", transactional_id), partial(self._check_deadline, transactional_id)
        if changed.deadline_ms > now.monotonic_ms:
            self.timers.set(timer, self._look_at(changed.deadline_ms), check)
            return
        # Until it is ended: what is on its way just now may keep it open.
        self.timers.set(timer, now.monotonic_ms + RETRY_MS, check)
        if changed.written is None:
            self._end_overdue(changed, now, lambda _: None)

    def _end_overdue(self, changed: TransactionalId, now: Now, done: Done) -> None:
        def ended(error: ErrorCode) -> None:
            if not error:
                self.state.counts.aborted_by_timeout += 1
                log_event.warning_limited("a transaction was aborted: its time was over", id=changed.id[:_ID_SHOWN_MAX])
            done(error)

        self._fence(changed, now, ended)

    # Markers.

    def _send_markers(self, changed: TransactionalId) -> None:
        known = changed.committed
        assert known is not None
        end = TransactionEnd(
            producer_id=known.producer_id,
            producer_epoch=known.producer_epoch,
            coordinator_epoch=self.state.journal.epoch,
            committed=known.status is TransactionStatus.PREPARE_COMMIT,
            transaction_version=known.client_version,
            partitions=known.partitions,
        )
        self._shared.markers.send(self, end, partial(self._complete, changed))

    def _complete(self, changed: TransactionalId, now: Now) -> None:
        """All markers are written; again until the journal takes that."""
        known = changed.committed
        if self.state.is_over or known is None or known.status not in ENDING or changed.written is not None:
            return
        self.state.write(changed, completed(known, now.wall_ms), now, partial(self._completed, changed, now))

    def _completed(self, changed: TransactionalId, now: Now, error: ErrorCode) -> None:
        if error and changed.written is None and not self.state.is_over:
            self._count_unwritten(1)
            self.timers.set(
                ("complete", changed.id), now.monotonic_ms + RETRY_MS, partial(self._complete_again, changed)
            )

    def _complete_again(self, changed: TransactionalId, now: Now) -> None:
        self._count_unwritten(-1)
        self._complete(changed, now)

    def _count_unwritten(self, more: int) -> None:
        self._unwritten += more
        self.state.counts.unwritten += more

    # Loading.

    def replay(self, key: bytes | None, value: bytes | None, offset: int, producer_id: int) -> None:
        try:
            self._found(read_key(key), key, None if value is None else read_short_value(value))
        except DecodeError as fault:
            self._passed_over(offset, fault)

    def replay_long(self, key: bytes | None, value: bytes, offset: int) -> Steps[None]:
        try:
            transactional_id = read_key(key)
            then = yield from read_value(value)
        except DecodeError as fault:
            self._passed_over(offset, fault)
        else:
            self._found(transactional_id, key, then)

    def _passed_over(self, offset: int, fault: DecodeError) -> None:
        log_event.warning_limited(
            f"a record of {self.topic} was skipped",
            str(self.partition),
            interval_s=1.0,
            partition=self.partition,
            offset=offset,
            reason=str(fault),
        )

    def _found(self, transactional_id: str, key: bytes | None, then: Transaction | None) -> None:
        ids, counts = self.state.ids, self.state.counts
        known = ids.get(transactional_id)
        if then is None:
            if known is not None:
                self.state.count(known.committed, None)
                del ids[transactional_id]
                counts.forgotten(known.key)
            return
        if known is None:
            assert key is not None
            known = ids[transactional_id] = TransactionalId(transactional_id, bytes(key))
            counts.known(known.key)
        self.state.count(known.committed, then)
        known.committed = then

    def end_transaction(self, producer_id: int, *, committed: bool) -> None:
        """Nobody writes to this topic in transactions."""

    def loaded(self, now: Now) -> Iterator[None]:
        """What was found is taken on when it is certain that it is committed."""
        for piece in pieces(list(self.state.ids.values()), _IDS_A_STEP):
            for known in piece:
                if known.committed is None:
                    continue
                if known.committed.status is _ONGOING:
                    self._open(known, now, _left_ms(known.committed, now))
                elif known.committed.status in ENDING:
                    self._found_ending.append(known)
            yield
        self._expiry.start(now)
        self._ask_whether_certain(now)

    def _ask_whether_certain(self, now: Now) -> None:
        self.state.journal.when_found_committed(partial(self._found_committed, now))

    def _found_committed(self, now: Now, error: ErrorCode) -> None:
        if self.state.is_over:
            return
        if error:
            self.timers.set("certain", now.monotonic_ms + RETRY_MS, self._ask_whether_certain)
            return
        self.is_certain = True
        self._shared.beside(self._go_on())

    def _go_on(self) -> Steps[None]:
        """Ends that were decided before the load go on, and those alone: one that is decided meanwhile sends its own
        markers, and a second sending may reach a partition that has the producer's next transaction."""
        for piece in taken(self._found_ending, _IDS_A_STEP):
            if self.state.is_over:
                return
            for known in piece:
                self._send_markers(known)
            yield

    def held(self) -> Mapping[str, int]:
        return {"transactional_ids": len(self.state.ids)}

    def topics_deleted(self, names: Iterable[str], now: Now, known_ms: Mapping[str, int]) -> None:
        """The lines of markers find out which partitions are gone."""

    @property
    def unsettled_deletions(self) -> Mapping[str, int]:
        return {}

    def unload(self, error: ErrorCode, now: Now) -> None:
        self.state.is_over = True
        self._count_unwritten(-self._unwritten)
        self._shared.markers.forget(self)
        self._shared.beside(self._let_go(self.timers.clear()))
        self.state.rest.end()

    def _let_go(self, timers: Steps[None]) -> Steps[None]:
        """A hundred thousand ids take some tens of milliseconds."""
        ids, counts = self.state.ids, self.state.counts
        yield from timers
        while ids:
            for _ in range(min(len(ids), _IDS_A_STEP)):
                _, known = ids.popitem()
                counts.forgotten(known.key)
                self.state.count(known.committed, None)
            yield


_ONGOING: Final = TransactionStatus.ONGOING
#: Of an id, in a line of the log.
_ID_SHOWN_MAX: Final = 300


def _answer_to_end(asked: EndAsked, then: Transaction) -> ProducerAnswer:
    if asked.client_version < EPOCH_A_TRANSACTION:
        return ProducerAnswer(ErrorCode.NONE)
    return ProducerAnswer(ErrorCode.NONE, then.producer_id, then.producer_epoch)


def _left_ms(known: Transaction, now: Now) -> int:
    """A clock that was set back keeps none open for longer than a whole time-out from now.

    One that was set forward before the load, or another broker's that is ahead, cannot be told from time that has gone.
    """
    return max(0, min(known.timeout_ms, known.started_ms + known.timeout_ms - now.wall_ms))
