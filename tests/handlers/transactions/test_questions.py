"""Questions to coordinators: gathered by rounds, asked here or over a link, again while the last transaction ends."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from tests.replication.journal_world import JournalWorld
from tests.storage.log_world import World, batch, marker, put

from ottla.config import Config
from ottla.coordinators.caller import Now
from ottla.handlers.transactions.questions import TransactionQuestion, TransactionQuestions
from ottla.handlers.transactions.verifying import FirstBatch, ProducedTransaction, first_batch
from ottla.interbroker.links import LinkLost
from ottla.metadata import MetadataCache
from ottla.metadata.updates import MetadataUpdate, PartitionState
from ottla.model import NO_BROKER, TRANSACTION_TOPIC, BrokerId, Epoch, ErrorCode, TopicId, TopicPartition
from ottla.protocol.generated.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopicResult,
    AddPartitionsToTxnTransaction,
)
from ottla.storage.errors import AppendRefused
from ottla.storage.log.append import Origin
from ottla.storage.log.log import Log
from ottla.transactions.asked import ProducerPartitions, Reply

TP = TopicPartition("orders", 0)
HERE, THERE = BrokerId(1), BrokerId(2)


class Unmarked:
    """Who waits for an answer, and hears of no marker. Calls when the coordinator is about to be asked."""

    def __init__(self, asked: Callable[[], None] = lambda: None) -> None:
        self.begin = asked

    def holds(self) -> bool:
        return True


class Coordinator:
    """Answers as it is told to."""

    def __init__(self) -> None:
        self.adding: list[tuple[ProducerPartitions, Reply[ErrorCode]]] = []
        self.verifies_with = ErrorCode.NONE
        #: To what is added, at once; what comes behind the last is left to the test.
        self.answers: list[ErrorCode] = []
        #: Whether it says when an id is at rest; who waits for that.
        self.says_when = False
        self.waiting: list[Callable[[], None]] = []

    def partition_for(self, transactional_id: str) -> int:
        return 0 if transactional_id.startswith("here") else 1

    def add_partitions(self, now: Now, asked: ProducerPartitions, client_version: int, reply: Reply[ErrorCode]) -> None:
        assert client_version == 2
        if self.answers:
            reply(self.answers.pop(0))
        else:
            self.adding.append((asked, reply))

    def when_at_rest(self, transactional_id: str, until_ms: int, call: Callable[[], None]) -> bool:
        if self.says_when:
            self.waiting.append(call)
        return self.says_when

    def verify_partitions(self, asked: ProducerPartitions) -> dict[TopicPartition, ErrorCode]:
        return dict.fromkeys(asked.partitions, self.verifies_with)

    def verify_one(self, transactional_id: str, producer_id: int, epoch: int, tp: TopicPartition) -> ErrorCode:
        return self.verifies_with


class Link:
    """To the other broker, which answers as it is told to."""

    def __init__(self) -> None:
        self.requests: list[AddPartitionsToTxnRequest] = []
        self.answers: list[asyncio.Future[ErrorCode]] = []

    def to(self, broker: BrokerId) -> Link:
        assert broker == THERE
        return self

    async def call(
        self, request: AddPartitionsToTxnRequest, version: int, *, timeout_ms: int, at_least: int
    ) -> AddPartitionsToTxnResponse:
        assert (version, at_least) == (5, 4)
        self.requests.append(request)
        self.answers.append(asyncio.get_running_loop().create_future())
        error = await self.answers[-1]
        if error is ErrorCode.NETWORK_EXCEPTION:
            raise LinkLost("gone")
        return AddPartitionsToTxnResponse(
            results_by_transaction=[_result(each, error) for each in request.transactions]
        )


def _result(asked: AddPartitionsToTxnTransaction, error: ErrorCode) -> AddPartitionsToTxnResult:
    return AddPartitionsToTxnResult(
        transactional_id=asked.transactional_id,
        topic_results=[
            AddPartitionsToTxnTopicResult(
                name=topic.name,
                results_by_partition=[
                    AddPartitionsToTxnPartitionResult(partition_index=index, partition_error_code=error)
                    for index in topic.partitions
                ],
            )
            for topic in asked.topics
        ],
    )


class Room:
    """Questions of one broker, in virtual time; `here...` is coordinated by it, and any other id by another."""

    def __init__(self) -> None:
        self.world = JournalWorld()
        self.coordinator = Coordinator()
        self.link = Link()
        self.metadata = MetadataCache()
        settings = Config.parse({}).transactions
        self.questions = TransactionQuestions(
            HERE,
            self.metadata,
            self.world.ports.clock,
            self.world.this_round,
            lambda: settings,
            lambda: self.coordinator,  # type: ignore[arg-type, return-value]
            lambda: self.link,  # type: ignore[arg-type, return-value]
        )
        self.world.this_round.join(self.questions)
        self.lead()

    def ask(self, question: TransactionQuestion) -> asyncio.Future[ErrorCode]:
        """As one who keeps no note of it."""
        return self.questions.ask(question, Unmarked())

    def lead(self, *leaders: BrokerId) -> None:
        states = [
            PartitionState(
                topic=TRANSACTION_TOPIC,
                partition=number,
                topic_id=TopicId(bytes(15) + b"t"),
                controller_epoch=Epoch(1),
                leader=leader,
                leader_epoch=Epoch(1),
                isr=(leader,),
                replicas=(leader,),
                partition_epoch=0,
            )
            for number, leader in enumerate(leaders or (HERE, THERE))
        ]
        assert self.metadata.apply(MetadataUpdate(controller_epoch=Epoch(1), partitions=states))

    async def soon(self) -> None:
        """Rounds and tasks have had their turns."""
        for _ in range(10):
            await asyncio.sleep(0)


def question(
    name: str = "here", *, adds: bool = True, partition: int = 0, producer: int = 7, epoch: int = 1
) -> TransactionQuestion:
    return TransactionQuestion(name, producer, epoch, TopicPartition("orders", partition), adds)


def scene(play: Callable[[Room], Coroutine[Any, Any, None]]) -> None:
    room = Room()
    room.world.run(play(room))


def test_questions_about_one_transaction_go_together() -> None:
    async def play(room: Room) -> None:
        asked = [room.ask(question(partition=each)) for each in (0, 1)]
        await room.soon()
        ((group, reply),) = room.coordinator.adding
        assert group == ProducerPartitions("here", 7, 1, frozenset({TopicPartition("orders", n) for n in (0, 1)}))
        assert not any(each.done() for each in asked)
        reply(ErrorCode.NONE)
        assert [each.result() for each in asked] == [ErrorCode.NONE] * 2

    scene(play)


def test_this_brokers_coordinator_says_at_once_whether_a_partition_was_added() -> None:
    async def play(room: Room) -> None:
        assert room.questions.answer_now(question(adds=False)) is ErrorCode.NONE
        room.coordinator.verifies_with = ErrorCode.PRODUCER_FENCED
        assert room.questions.answer_now(question(adds=False)) is ErrorCode.INVALID_PRODUCER_EPOCH
        assert room.questions.answer_now(question()) is None
        assert room.questions.answer_now(question("there", adds=False)) is None

    scene(play)


def test_one_request_is_under_way_to_another_broker() -> None:
    async def play(room: Room) -> None:
        first = room.ask(question("there"))
        await room.soon()
        later = [room.ask(question("there", partition=each, adds=False)) for each in (1, 2)]
        await room.soon()
        assert len(room.link.requests) == 1
        room.link.answers[0].set_result(ErrorCode.NONE)
        await room.soon()
        assert first.result() is ErrorCode.NONE
        (group,) = room.link.requests[1].transactions
        assert (group.transactional_id, group.producer_id, group.producer_epoch, group.verify_only) == (
            "there",
            7,
            1,
            True,
        )
        assert [(topic.name, topic.partitions) for topic in group.topics] == [("orders", [1, 2])]
        room.link.answers[1].set_result(ErrorCode.TRANSACTION_ABORTABLE)
        await room.soon()
        assert [each.result() for each in later] == [ErrorCode.TRANSACTION_ABORTABLE] * 2

    scene(play)


def test_another_epoch_of_a_producer_is_asked_about_by_itself() -> None:
    async def play(room: Room) -> None:
        asked = [room.ask(question("there", epoch=epoch)) for epoch in (1, 2)]
        await room.soon()
        assert [len(each.transactions) for each in room.link.requests] == [1]
        room.link.answers[0].set_result(ErrorCode.PRODUCER_FENCED)
        await room.soon()
        room.link.answers[1].set_result(ErrorCode.NONE)
        await room.soon()
        assert [each.result() for each in asked] == [ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.NONE]

    scene(play)


class CountedQuestion(TransactionQuestion):
    """Counts how often it is compared with another one."""

    compared = 0

    def __eq__(self, other: object) -> bool:
        CountedQuestion.compared += 1
        return tuple.__eq__(self, other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = TransactionQuestion.__hash__


@pytest.mark.parametrize("name", ["here", "there"])
def test_many_epochs_of_one_producer_are_each_looked_at_once(name: str) -> None:
    """All that waited were compared with the first for each request."""

    async def play(room: Room) -> None:
        CountedQuestion.compared = 0
        count = 500
        room.coordinator.answers = [ErrorCode.PRODUCER_FENCED] * count
        asked = [room.ask(CountedQuestion(*question(name, epoch=epoch))) for epoch in range(count)]
        while not all(each.done() for each in asked):
            await room.soon()
            for answer in room.link.answers:
                if not answer.done():
                    answer.set_result(ErrorCode.PRODUCER_FENCED)
        assert CountedQuestion.compared <= 2 * count

    scene(play)


def test_who_asks_about_one_epoch_waits_for_nobody_with_many() -> None:
    async def play(room: Room) -> None:
        for epoch in range(100):
            room.ask(question("there", epoch=epoch))
        room.ask(question("there too"))
        await room.soon()
        assert [each.transactional_id for each in room.link.requests[0].transactions] == ["there", "there too"]
        room.questions.close()

    scene(play)


@pytest.mark.parametrize("turns", range(5))
def test_a_question_that_comes_just_when_the_last_one_is_answered(turns: int) -> None:
    """In a round of the network, and nothing else happens."""

    async def play(room: Room) -> None:
        room.ask(question("there"))
        await room.soon()
        room.link.answers[0].set_result(ErrorCode.NONE)
        for _ in range(turns):
            await asyncio.sleep(0)
        with room.world.round():
            room.ask(question("there", partition=1))
        await room.soon()
        assert len(room.link.requests) == 2
        room.questions.close()

    scene(play)


def test_a_broker_that_does_not_answer_and_a_topic_that_is_not_there() -> None:
    async def play(room: Room) -> None:
        asked = room.ask(question("there"))
        await room.soon()
        room.link.answers[0].set_result(ErrorCode.NETWORK_EXCEPTION)
        await room.soon()
        assert asked.result() is ErrorCode.NETWORK_EXCEPTION
        room.lead(HERE, NO_BROKER)
        assert room.ask(question("there")).result() is ErrorCode.COORDINATOR_NOT_AVAILABLE
        waits = room.ask(question())
        room.questions.close()
        assert waits.result() is ErrorCode.COORDINATOR_NOT_AVAILABLE

    scene(play)


def test_it_is_asked_again_when_the_coordinator_says_that_the_transaction_before_has_ended() -> None:
    """And not before: no pause is made, nothing is asked in vain."""

    async def play(room: Room) -> None:
        room.coordinator.says_when = True
        begun_ms, events = room.world.ports.clock.monotonic_ms(), list[str]()
        asker = Unmarked(lambda: events.append("asked"))
        asked = [room.questions.ask(question(partition=each), asker) for each in (0, 1)]
        await room.soon()
        assert events == ["asked"] * 2
        room.coordinator.adding.pop()[1](ErrorCode.CONCURRENT_TRANSACTIONS)
        (at_rest,) = room.coordinator.waiting
        await room.soon()
        assert (room.coordinator.adding, len(events)) == ([], 2)
        at_rest()
        await room.soon()
        assert events == ["asked"] * 4
        ((group, reply),) = room.coordinator.adding
        assert len(group.partitions) == 2
        reply(ErrorCode.NONE)
        assert [each.result() for each in asked] == [ErrorCode.NONE] * 2
        assert room.world.ports.clock.monotonic_ms() == begun_ms

    scene(play)


@pytest.mark.parametrize(
    ("ends_after", "pauses_ms"), [(1, [1]), (3, [1, 2, 4]), (1_000, [1, 2, 4, 8, 16, 20, 20, 20, 9])]
)
def test_where_nobody_says_when_it_is_asked_again_after_growing_pauses(ends_after: int, pauses_ms: list[int]) -> None:
    """For a tenth of a second in all."""

    async def play(room: Room) -> None:
        clock, begun_ms, asked_ms = room.world.ports.clock, room.world.ports.clock.monotonic_ms(), list[int]()
        room.coordinator.answers = [ErrorCode.CONCURRENT_TRANSACTIONS] * ends_after + [ErrorCode.NONE]
        found = await room.questions.ask(question(), Unmarked(lambda: asked_ms.append(clock.monotonic_ms())))
        assert found is (ErrorCode.NONE if ends_after < 1_000 else ErrorCode.CONCURRENT_TRANSACTIONS)
        assert asked_ms[0] == begun_ms
        assert [then - before for before, then in itertools.pairwise(asked_ms)] == pauses_ms

    scene(play)


def assert_void(first: FirstBatch, log: Log) -> None:
    with pytest.raises(AppendRefused) as refused:
        first.check(log)
    assert refused.value.error is ErrorCode.INVALID_TXN_STATE


@pytest.mark.parametrize("ends_meanwhile", [False, True])
def test_a_marker_that_comes_before_the_batch_is_seen(ends_meanwhile: bool) -> None:
    async def play(room: Room) -> None:
        log = World().open()
        records = batch(b"v", producer=(7, 1, 0), transactional=True)
        transaction = ProducedTransaction("here", adds=True, knows_abortable=True)
        first = first_batch(room.questions, log, TP, records, transaction)
        assert isinstance(first, FirstBatch)
        await room.soon()
        room.coordinator.adding.pop()[1](ErrorCode.NONE)
        if not ends_meanwhile:
            first.check(log)
            put(log, records)
            assert first_batch(room.questions, log, TP, records, transaction) is None
            return
        put(log, marker(7, 2, aborts=True), origin=Origin.COORDINATOR)
        assert_void(first, log)

    scene(play)


def test_the_marker_of_the_transaction_before_makes_nothing_void() -> None:
    """A client is answered when the end of its transaction is decided, and begins the next one before the marker."""

    async def play(room: Room) -> None:
        log = World().open()
        put(log, batch(b"v", producer=(7, 0, 0), transactional=True))
        records = batch(b"v", producer=(7, 1, 0), transactional=True)
        transaction = ProducedTransaction("here", adds=True, knows_abortable=True)
        room.coordinator.answers = [ErrorCode.CONCURRENT_TRANSACTIONS]
        first = first_batch(room.questions, log, TP, records, transaction)
        assert isinstance(first, FirstBatch)
        await room.soon()
        assert not room.coordinator.answers
        put(log, marker(7, 1, aborts=True), origin=Origin.COORDINATOR)
        await asyncio.sleep(0.02)
        await room.soon()
        room.coordinator.adding.pop()[1](ErrorCode.NONE)
        assert await first.answer is ErrorCode.NONE
        first.check(log)

    scene(play)


@pytest.mark.parametrize("markers", [1, 3])
def test_the_marker_of_the_transaction_before_may_come_while_a_question_is_under_way(markers: int) -> None:
    """Another broker's coordinator takes the question up when all is over, and says that the new one is ongoing."""

    async def play(room: Room) -> None:
        log = World().open()
        put(log, batch(b"v", producer=(7, 0, 0), transactional=True))
        records = batch(b"v", producer=(7, 1, 0), transactional=True)
        first = first_batch(room.questions, log, TP, records, ProducedTransaction("there", True, True))
        assert isinstance(first, FirstBatch)
        for number in range(markers):
            await room.soon()
            put(log, marker(7, 1, aborts=True), origin=Origin.COORDINATOR)
            room.link.answers[number].set_result(ErrorCode.NONE)
            await asyncio.sleep(0.02)
        assert not first.answer.done()
        room.link.answers[markers].set_result(ErrorCode.NONE)
        assert await first.answer is ErrorCode.NONE
        first.check(log)

    scene(play)


def test_of_one_epoch_for_all_transactions_what_a_marker_made_void_stays_so() -> None:
    """It may be of the transaction that the marker has ended, and its producer is in the next one."""

    async def play(room: Room) -> None:
        log = World().open()
        records = batch(b"v", producer=(7, 1, 0), transactional=True)
        first = first_batch(room.questions, log, TP, records, ProducedTransaction("there", False, True))
        assert isinstance(first, FirstBatch)
        await room.soon()
        put(log, marker(7, 1, aborts=True), origin=Origin.COORDINATOR)
        room.link.answers[0].set_result(ErrorCode.NONE)
        assert await first.answer is ErrorCode.NONE
        assert_void(first, log)

    scene(play)


def test_what_markers_make_void_again_and_again_is_refused() -> None:
    async def play(room: Room) -> None:
        log = World().open()
        records = batch(b"v", producer=(7, 1, 0), transactional=True)
        first = first_batch(room.questions, log, TP, records, ProducedTransaction("there", True, True))
        assert isinstance(first, FirstBatch)
        asked = 0
        while not first.answer.done():
            await asyncio.sleep(0.001)
            if len(room.link.answers) > asked:
                put(log, marker(7, 1, aborts=True), origin=Origin.COORDINATOR)
                room.link.answers[asked].set_result(ErrorCode.NONE)
                asked += 1
        assert 3 < asked < 20
        assert_void(first, log)

    scene(play)


@pytest.mark.parametrize(
    ("answer", "version", "error"),
    [
        (ErrorCode.TRANSACTION_ABORTABLE, 10, ErrorCode.INVALID_TXN_STATE),
        (ErrorCode.TRANSACTION_ABORTABLE, 11, ErrorCode.TRANSACTION_ABORTABLE),
        (ErrorCode.CONCURRENT_TRANSACTIONS, 11, ErrorCode.NOT_ENOUGH_REPLICAS),
        (ErrorCode.NOT_COORDINATOR, 11, ErrorCode.NOT_ENOUGH_REPLICAS),
        (ErrorCode.PRODUCER_FENCED, 11, ErrorCode.INVALID_PRODUCER_EPOCH),
        (ErrorCode.INVALID_PRODUCER_ID_MAPPING, 11, ErrorCode.INVALID_PRODUCER_ID_MAPPING),
    ],
)
def test_what_a_coordinator_answers_is_said_in_words_that_the_producer_knows(
    answer: ErrorCode, version: int, error: ErrorCode
) -> None:
    async def play(room: Room) -> None:
        room.coordinator.verifies_with = answer
        transaction = ProducedTransaction.of_request("here", version)
        assert transaction is not None
        records = batch(b"v", producer=(7, 1, 0), transactional=True)
        with pytest.raises(AppendRefused) as refused:
            first_batch(room.questions, World().open(), TP, records, transaction)
        assert refused.value.error is error

    scene(play)
