"""Questions about transactions to their coordinators, before a transaction's first batch in a partition (KIP-890).

Clients up to Produce 11 and TxnOffsetCommit 4 have added the partition themselves, and the coordinator is asked whether
it is there. Later ones leave it to the partition's leader to add it. Either way no batch is written of a transaction
that its coordinator does not know to be ongoing, since nobody would end that.

    ask ─▶ in the line of the coordinator's broker ─end of the round─▶ asked ─▶ answered: the future has a code
                 ▲                                                       └ CONCURRENT_TRANSACTIONS, where it adds ─┐
                 └───────── when the transaction before it has ended, which is waited for a while ◀────────────────┘

Questions of one round go together. To another broker one request is under way at a time, with all that came since the
last one; this broker's own coordinator is called. That one says when the transaction before has ended. Another one is
asked again, soon at first, since markers take a millisecond or two, and then after longer pauses.

The marker of the transaction before may also come while a question is under way, which another broker's coordinator
then takes up when all is over: it answers that the new transaction is ongoing, and what was begun before the marker is
void. Then it is asked once more, where each transaction has an epoch of its own.
"""

from __future__ import annotations

import asyncio
import traceback
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from ottla import logs
from ottla.config.slices import TransactionsConfig
from ottla.coordinators.caller import Now
from ottla.metadata import MetadataCache
from ottla.model import NO_BROKER, TRANSACTION_TOPIC, BrokerId, ErrorCode, TopicPartition
from ottla.ports import Clock
from ottla.protocol.generated.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from ottla.replication.round import Participant, Round
from ottla.steps import TURN_MS, is_stray
from ottla.transactions.asked import ProducerPartitions

if TYPE_CHECKING:
    from ottla.interbroker.links import BrokerLinks
    from ottla.transactions.coordinator import TransactionCoordinator

log_event = logs.logger("handlers")

#: In one request to another broker, and asked in one round of this one's own coordinator.
QUESTIONS_A_REQUEST_MAX: Final = 1_000
#: Of all requests that wait; what comes beyond is refused for now, which clients try again after.
QUESTIONS_MAX: Final = 100_000
#: Before another broker is asked about the same once more; then twice as long, up to what is configured.
FIRST_PAUSE_MS: Final = 1
#: How long another broker may take over an answer: then it is asked again by the client that tries again.
ANSWER_MS_MAX: Final = 5_000

#: AddPartitionsToTxn: the first with many transactions, and the newest.
_BATCHED_SINCE: Final = 4
_NEWEST: Final = 5
#: A request that adds partitions for its client is of one that has an epoch for each transaction.
_ADDING_CLIENT: Final = 2

#: What the answers of coordinators are to those who write.
_AS_TO_WRITERS: Final = {
    ErrorCode.PRODUCER_FENCED: ErrorCode.INVALID_PRODUCER_EPOCH,
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: ErrorCode.INVALID_TXN_STATE,
}


class TransactionQuestion(NamedTuple):
    transactional_id: str
    producer_id: int
    producer_epoch: int
    tp: TopicPartition
    #: Whether the partition is to be added. Else it is asked whether it was.
    adds: bool


class Asker(Protocol):
    """Who waits for the answer, and keeps what was begun with the question."""

    def begin(self) -> None:
        """Called each time before the coordinator is asked: the marker of the transaction before, which makes void what
        was begun before it, may come while a question waits for its turn, or for the other's end."""

    def holds(self) -> bool:
        """Whether no marker has made it void."""


class _Asked:
    __slots__ = ("asker", "future", "pause_ms", "question", "until_ms")

    def __init__(
        self, question: TransactionQuestion, asker: Asker, future: asyncio.Future[ErrorCode], until_ms: int
    ) -> None:
        self.question = question
        self.asker = asker
        self.future = future
        #: For so long it is asked again where the transaction before it has not ended yet.
        self.until_ms = until_ms
        #: Before the next time, where nobody says when that is.
        self.pause_ms = FIRST_PAUSE_MS


#: Questions about one producer's transaction, all alike but for their partitions.
_Group = list[_Asked]


class _Line:
    """What waits for one broker: of each transactional id its questions in their order, those that are alike together.

    An answer names ids, so that a request has one kind of question of each. Of a client that asks about another epoch
    each time only its own questions wait the longer.
    """

    __slots__ = ("_by_id",)

    def __init__(self) -> None:
        #: The id that has waited for longest is the first.
        self._by_id: dict[str, deque[_Group]] = {}

    def __bool__(self) -> bool:
        return bool(self._by_id)

    def add(self, asked: _Asked) -> None:
        groups = self._by_id.setdefault(asked.question.transactional_id, deque())
        if groups and _are_alike(groups[-1][0].question, asked.question):
            groups[-1].append(asked)
        else:
            groups.append([asked])

    def taken(self) -> Iterator[_Group]:
        """The questions of one request, each when it is asked for."""
        room = QUESTIONS_A_REQUEST_MAX
        for transactional_id in list(islice(self._by_id, room)):
            if not room:
                break
            groups = self._by_id.pop(transactional_id)
            group = groups.popleft()
            if len(group) > room:
                groups.appendleft(group[room:])
                del group[room:]
            if groups:
                self._by_id[transactional_id] = groups
            room -= len(group)
            yield group

    def every(self) -> Iterator[_Asked]:
        return (asked for groups in self._by_id.values() for group in groups for asked in group)


def _are_alike(one: TransactionQuestion, other: TransactionQuestion) -> bool:
    return one._replace(tp=other.tp) == other


class TransactionQuestions(Participant):
    #: Before the journals: this broker's own coordinator may write into one of them for an answer.
    rank = 0

    def __init__(
        self,
        broker_id: BrokerId,
        metadata: MetadataCache,
        clock: Clock,
        this_round: Round,
        settings: Callable[[], TransactionsConfig],
        coordinator: Callable[[], TransactionCoordinator],
        links: Callable[[], BrokerLinks],
    ) -> None:
        """`coordinator` and `links` are made when they are first needed."""
        self._broker_id = broker_id
        self._metadata = metadata
        self._clock = clock
        self._round = this_round
        self._settings = settings
        self._coordinator = coordinator
        self._links = links
        #: By the broker that is asked.
        self._lines: dict[BrokerId, _Line] = {}
        #: One for each broker that is being asked.
        self._tasks: dict[BrokerId, asyncio.Task[None]] = {}
        self._count = 0
        self._closed = False

    @property
    def verifies(self) -> bool:
        """Whether clients that have added their partitions are to have done so."""
        return self._settings().partition_verification

    def close(self) -> None:
        self._closed = True
        for task in list(self._tasks.values()):
            task.cancel()
        lines, self._lines = self._lines, {}
        for line in lines.values():
            for asked in line.every():
                self._end(asked, ErrorCode.COORDINATOR_NOT_AVAILABLE)

    def answer_now(self, question: TransactionQuestion) -> ErrorCode | None:
        """The answer where this broker's coordinator has it without waiting for anything; else it is to be asked."""
        transactional_id, producer_id, epoch, tp, adds = question
        if adds or self._broker_of(transactional_id) != self._broker_id:
            return None
        return _to_writer(self._coordinator().verify_one(transactional_id, producer_id, epoch, tp))

    def ask(self, question: TransactionQuestion, asker: Asker) -> asyncio.Future[ErrorCode]:
        """NONE where the partition is in the transaction, which is ongoing."""
        future: asyncio.Future[ErrorCode] = asyncio.get_running_loop().create_future()
        until_ms = self._clock.monotonic_ms() + self._settings().add_partitions_retry_ms_max
        asked = _Asked(question, asker, future, until_ms)
        self._count += 1
        if self._count > QUESTIONS_MAX:
            self._end(asked, ErrorCode.COORDINATOR_NOT_AVAILABLE)
        else:
            self._line_up(asked)
        return future

    # -- lines

    def _broker_of(self, transactional_id: str) -> BrokerId:
        partition = self._coordinator().partition_for(transactional_id)
        state = self._metadata.partition(TRANSACTION_TOPIC, partition)
        return NO_BROKER if state is None else state.leader

    def _line_up(self, asked: _Asked) -> None:
        broker = self._broker_of(asked.question.transactional_id)
        if broker == NO_BROKER or self._closed:
            self._end(asked, ErrorCode.COORDINATOR_NOT_AVAILABLE)
            return
        line = self._lines.get(broker)
        if line is None:
            self._round.join(self)
            line = self._lines[broker] = _Line()
        line.add(asked)
        self._round.soon()

    def stage(self) -> None:
        """At the end of a round, before journals: this broker's coordinator may write into one of them."""
        if self._lines:
            for broker in list(self._lines):
                self._serve(broker)

    def failed(self, fault: Exception) -> None:
        """Those that wait are asked in the next round."""

    def _serve(self, broker: BrokerId) -> None:
        if broker == self._broker_id:
            line = self._lines.pop(broker)
            ends_ms = self._clock.monotonic_ms() + TURN_MS
            for group in line.taken():
                _begin(group)
                self._ask_here(group)
                if self._clock.monotonic_ms() >= ends_ms:
                    break  # of a transaction of ten thousand partitions each takes half a millisecond
            if line:
                self._lines[broker] = line
                self._round.soon()
        elif broker not in self._tasks:
            name = f"questions about transactions to broker {broker}"
            task = asyncio.get_running_loop().create_task(self._ask_all_there(broker), name=name)
            self._tasks[broker] = task
            task.add_done_callback(lambda _: self._all_asked(broker))

    # -- asking

    def _ask_here(self, group: _Group) -> None:
        question = group[0].question
        wanted = _of_producer(question, [asked.question.tp for asked in group])
        try:
            if question.adds:
                now = Now(self._clock.wall_ms(), self._clock.monotonic_ms())
                self._coordinator().add_partitions(now, wanted, _ADDING_CLIENT, partial(self._answered, group))
            else:
                found = self._coordinator().verify_partitions(wanted)
                for asked in group:
                    self._answered([asked], found[asked.question.tp])
        except Exception as fault:
            log_event.error("a transaction could not be asked about", error="".join(traceback.format_exception(fault)))
            for asked in group:
                if not asked.future.done():
                    self._answered([asked], ErrorCode.UNKNOWN_SERVER_ERROR)

    def _all_asked(self, broker: BrokerId) -> None:
        del self._tasks[broker]
        if self._lines.get(broker):
            self._round.soon()  # they came in a round between the task's end and this call

    async def _ask_all_there(self, broker: BrokerId) -> None:
        while line := self._lines.get(broker):
            groups = list(line.taken())
            for group in groups:
                _begin(group)
            await self._ask_there(broker, groups)
        self._lines.pop(broker, None)  # it is empty

    async def _ask_there(self, broker: BrokerId, groups: Sequence[_Group]) -> None:
        from ottla.interbroker.links import LinkFault

        left = [asked for group in groups for asked in group]
        error = ErrorCode.UNKNOWN_SERVER_ERROR
        try:
            link = self._links().to(broker)
            answer = await link.call(_request(groups), _NEWEST, timeout_ms=ANSWER_MS_MAX, at_least=_BATCHED_SINCE)
            assert isinstance(answer, AddPartitionsToTxnResponse)
            error = _code(answer.error_code)
            if not error:
                left = self._take_answer(answer, groups)
                error = ErrorCode.UNKNOWN_SERVER_ERROR  # of what it does not name
        except LinkFault:
            error = ErrorCode.NETWORK_EXCEPTION
        except (Exception, asyncio.CancelledError) as fault:
            if isinstance(fault, asyncio.CancelledError) and not is_stray(fault):
                error = ErrorCode.NETWORK_EXCEPTION
                raise
            log_event.error("a transaction could not be asked about", error="".join(traceback.format_exception(fault)))
        finally:
            for asked in left:
                self._answered([asked], error)

    def _take_answer(self, answer: AddPartitionsToTxnResponse, groups: Sequence[_Group]) -> list[_Asked]:
        """Those about which it says nothing."""
        errors = {
            (result.transactional_id, TopicPartition(topic.name, partition.partition_index)): partition
            for result in answer.results_by_transaction
            for topic in result.topic_results
            for partition in topic.results_by_partition
        }
        left: list[_Asked] = []
        for asked in (each for group in groups for each in group):
            found = errors.get((asked.question.transactional_id, asked.question.tp))
            if found is None:
                left.append(asked)
            else:
                self._answered([asked], _code(found.partition_error_code))
        return left

    # -- answers

    def _answered(self, group: _Group, error: ErrorCode) -> None:
        """All of one transaction."""
        left_ms = group[0].until_ms - self._clock.monotonic_ms()
        # Where one epoch stands for several transactions, what is late may belong to the one that the marker has ended.
        if left_ms > 0 and group[0].question.adds and not self._closed:
            if error == ErrorCode.CONCURRENT_TRANSACTIONS:
                self._ask_when_at_rest(group, left_ms)
                return
            void = [] if error else [asked for asked in group if not asked.asker.holds()]
            if void:
                self._ask_after_a_pause(void, left_ms)
                group = [asked for asked in group if asked.asker.holds()]
        for asked in group:
            self._end(asked, _to_writer(error))

    def _ask_when_at_rest(self, group: _Group, left_ms: int) -> None:
        first, ask = group[0], partial(self._ask_again, group)
        if not self._coordinator().when_at_rest(first.question.transactional_id, first.until_ms, ask):
            self._ask_after_a_pause(group, left_ms)

    def _ask_after_a_pause(self, group: _Group, left_ms: int) -> None:
        pause_ms = min(group[0].pause_ms, self._settings().add_partitions_retry_ms, left_ms)
        for asked in group:
            asked.pause_ms = 2 * pause_ms
        asyncio.get_running_loop().call_later(pause_ms / 1000, self._ask_again, group)

    def _ask_again(self, group: _Group) -> None:
        for asked in group:
            self._line_up(asked)

    def _end(self, asked: _Asked, error: ErrorCode) -> None:
        self._count -= 1
        if not asked.future.done():
            asked.future.set_result(error)


def _begin(group: _Group) -> None:
    for asked in group:
        asked.asker.begin()


def _code(number: int) -> ErrorCode:
    """Another broker may have one that is not known here."""
    return ErrorCode(number) if number in ErrorCode.__members__.values() else ErrorCode.UNKNOWN_SERVER_ERROR


def _to_writer(error: ErrorCode) -> ErrorCode:
    return _AS_TO_WRITERS.get(error, error)


def _of_producer(question: TransactionQuestion, partitions: Iterable[TopicPartition]) -> ProducerPartitions:
    transactional_id, producer_id, epoch, _, _ = question
    return ProducerPartitions(transactional_id, producer_id, epoch, frozenset(partitions))


def _request(groups: Sequence[_Group]) -> AddPartitionsToTxnRequest:
    request = AddPartitionsToTxnRequest()
    for group in groups:
        transactional_id, producer_id, epoch, _, adds = group[0].question
        topics: dict[str, dict[int, None]] = {}
        for asked in group:
            topics.setdefault(asked.question.tp.topic, {})[asked.question.tp.partition] = None
        request.transactions.append(
            AddPartitionsToTxnTransaction(
                transactional_id=transactional_id,
                producer_id=producer_id,
                producer_epoch=epoch,
                verify_only=not adds,
                topics=[AddPartitionsToTxnTopic(name=name, partitions=list(those)) for name, those in topics.items()],
            )
        )
    return request
