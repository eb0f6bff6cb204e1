"""Markers on their way to the leaders of partitions."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

import pytest
from tests.transactions.world import A, B, C, Clock

from ottla.coordinators.caller import Now
from ottla.coordinators.journal import EndMarker
from ottla.interbroker.links import LinkLost
from ottla.model import NO_BROKER, BrokerId, ErrorCode, TopicPartition
from ottla.protocol.generated.write_txn_markers import (
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from ottla.transactions import markers
from ottla.transactions.markers import Marked, MarkerLines, TransactionEnd

ONE, TWO, HERE = BrokerId(1), BrokerId(2), BrokerId(3)


class Brokers:
    """Implements `MarkerWriter`: brokers whose answers the test gives."""

    def __init__(self) -> None:
        self.asked: list[tuple[BrokerId, WriteTxnMarkersRequest]] = []
        self.answers: list[asyncio.Future[WriteTxnMarkersResponse]] = []
        self.broker_id = HERE
        #: What is written by a call.
        self.here: list[tuple[EndMarker, list[TopicPartition], Marked]] = []

    def write_here(self, end: EndMarker, partitions: Sequence[TopicPartition], marked: Marked) -> None:
        self.here.append((end, list(partitions), marked))

    async def write(self, broker: BrokerId, request: WriteTxnMarkersRequest) -> WriteTxnMarkersResponse:
        self.asked.append((broker, request))
        answer: asyncio.Future[WriteTxnMarkersResponse] = asyncio.get_running_loop().create_future()
        self.answers.append(answer)
        return await answer

    def answer(self, number: int, **errors: ErrorCode) -> None:
        """All partitions are written, but for those of these topics."""
        _, request = self.asked[number]
        self.answers[number].set_result(
            WriteTxnMarkersResponse(
                markers=[
                    WritableTxnMarkerResult(
                        producer_id=marker.producer_id,
                        topics=[
                            WritableTxnMarkerTopicResult(
                                name=topic.name,
                                partitions=[
                                    WritableTxnMarkerPartitionResult(
                                        partition_index=index, error_code=errors.get(topic.name, ErrorCode.NONE)
                                    )
                                    for index in topic.partition_indexes
                                ],
                            )
                            for topic in marker.topics
                        ],
                    )
                    for marker in request.markers
                ]
            )
        )

    def producers(self, number: int) -> list[int]:
        return [marker.producer_id for marker in self.asked[number][1].markers]


class Room:
    def __init__(self) -> None:
        self.brokers, self.clock = Brokers(), Clock()
        self.leaders: dict[TopicPartition, BrokerId] = {A: ONE, B: ONE, C: TWO}
        self.lines = MarkerLines(self.brokers, self.leaders.get, self.clock)
        self.done: list[int] = []

    def send(self, producer_id: int, *partitions: TopicPartition, owner: object = None) -> None:
        end = TransactionEnd(producer_id, 0, 5, True, 2, frozenset(partitions))

        def done(now: Now) -> None:
            self.done.append(producer_id)

        self.lines.send(owner, end, done)

    async def asked(self, count: int) -> None:
        await until(lambda: len(self.brokers.asked) >= count)

    async def over(self, count: int) -> None:
        await until(lambda: len(self.done) >= count)


async def until(condition: Callable[[], bool]) -> None:
    while not condition():  # noqa: ASYNC110 - pauses are timers of the loop
        await asyncio.sleep(0.001)


def in_room(scene: Callable[[Room], Awaitable[None]]) -> Room:
    room = Room()

    async def play() -> None:
        try:
            await asyncio.wait_for(scene(room), 60)
        finally:
            await room.lines.close()

    asyncio.run(play())
    return room


def test_each_leader_is_asked_for_its_own_partitions() -> None:
    async def scene(room: Room) -> None:
        room.send(7, A, B, C)
        await room.asked(2)
        found = {broker: request.markers[0] for broker, request in room.brokers.asked}
        assert {broker: [(t.name, t.partition_indexes) for t in one.topics] for broker, one in found.items()} == {
            ONE: [("a", [0, 1])],
            TWO: [("b", [0])],
        }
        one = found[ONE]
        assert (one.producer_id, one.producer_epoch, one.coordinator_epoch) == (7, 0, 5)
        assert (one.transaction_result, one.transaction_version) == (True, 2)
        room.brokers.answer(0)
        await asyncio.sleep(0)
        assert room.done == []
        room.brokers.answer(1)
        await room.over(1)
        assert len(room.lines) == 0

    in_room(scene)


def test_an_end_without_partitions_needs_nobody() -> None:
    async def scene(room: Room) -> None:
        room.send(7)
        assert room.done == [7]

    in_room(scene)


def test_what_comes_while_a_broker_is_asked_goes_together() -> None:
    async def scene(room: Room) -> None:
        room.send(1, A)
        await room.asked(1)
        for producer_id in (2, 3, 4):
            room.send(producer_id, A, B)
        room.brokers.answer(0)
        await room.asked(2)
        assert room.brokers.producers(1) == [2, 3, 4]
        room.brokers.answer(1)
        await room.over(4)
        assert room.done == [1, 2, 3, 4]

    in_room(scene)


def test_a_few_partitions_that_are_led_here_are_marked_by_a_call() -> None:
    async def scene(room: Room) -> None:
        room.leaders |= {A: HERE, B: HERE}
        room.send(7, B, A, C)
        ((end, partitions, marked),) = room.brokers.here
        assert end == EndMarker(7, 0, 5, True, 2)
        assert partitions == [A, B]
        marked([ErrorCode.NONE, ErrorCode.NOT_ENOUGH_REPLICAS])
        await room.asked(1)
        assert room.brokers.producers(0) == [7]
        room.brokers.answer(0)
        await until(lambda: len(room.brokers.here) == 2)
        _, partitions, marked = room.brokers.here[1]
        assert (partitions, room.done) == ([B], [])
        marked([ErrorCode.NONE])
        assert room.done == [7]
        assert len(room.lines) == 0

    in_room(scene)


def test_what_is_marked_here_and_was_given_up_meanwhile() -> None:
    async def scene(room: Room) -> None:
        room.leaders[A] = HERE
        room.send(7, A, owner="mine")
        room.lines.forget("mine")
        room.brokers.here[0][2]([ErrorCode.NONE])
        assert room.done == []

    in_room(scene)


def fails(_: Now) -> None:
    raise AssertionError("a fault of ours")


def send_in_vain(room: Room, producer_id: int, *partitions: TopicPartition) -> None:
    room.lines.send(None, TransactionEnd(producer_id, 0, 5, True, 2, frozenset(partitions)), fails)


def test_a_fault_behind_one_marker_is_no_others() -> None:
    async def scene(room: Room) -> None:
        room.leaders[A] = HERE
        send_in_vain(room, 1, A)
        room.brokers.here[0][2]([ErrorCode.NONE])

    in_room(scene)


def test_a_fault_behind_one_end_is_no_others_in_the_same_answer() -> None:
    async def scene(room: Room) -> None:
        room.send(1, A)
        await room.asked(1)
        send_in_vain(room, 2, A)
        room.send(3, A)
        room.brokers.answer(0)
        await room.asked(2)
        assert room.brokers.producers(1) == [2, 3]
        room.brokers.answer(1)
        await room.over(2)
        assert room.done == [1, 3]

    in_room(scene)


def test_a_fault_behind_an_end_without_partitions_is_no_others() -> None:
    async def scene(room: Room) -> None:
        send_in_vain(room, 1)

    in_room(scene)


def test_a_fault_behind_partitions_that_are_gone_leaves_the_others_their_turn() -> None:
    async def scene(room: Room) -> None:
        room.send(1, TopicPartition("gone", 0))
        send_in_vain(room, 2, TopicPartition("gone", 1))
        await asyncio.sleep(2 * markers.RETRY_S)
        room.clock.ms += markers.UNKNOWN_MS_MAX
        await room.over(1)

    in_room(scene)


def test_many_partitions_that_are_led_here_go_in_a_request() -> None:
    """Which is taken apart in steps."""

    async def scene(room: Room) -> None:
        many = [A._replace(partition=number) for number in range(markers.PARTITIONS_HERE_MAX + 1)]
        room.leaders |= dict.fromkeys(many, HERE)
        room.send(7, *many)
        await room.asked(1)
        assert room.brokers.here == []
        assert room.brokers.asked[0][0] == HERE
        room.brokers.answer(0)
        await room.over(1)

    in_room(scene)


def test_what_was_not_written_goes_to_the_leader_of_that_moment() -> None:
    async def scene(room: Room) -> None:
        room.send(1, A, C)
        await room.asked(2)
        assert [broker for broker, _ in room.brokers.asked] == [ONE, TWO]
        room.brokers.answer(1)
        room.leaders[A] = TWO
        room.brokers.answer(0, a=ErrorCode.NOT_LEADER_OR_FOLLOWER)
        await room.asked(3)
        assert room.brokers.asked[2][0] == TWO
        assert room.brokers.asked[2][1].markers[0].topics[0].name == "a"
        room.brokers.answer(2)
        await room.over(1)

    in_room(scene)


def test_a_broker_that_does_not_answer_and_a_partition_that_nobody_leads() -> None:
    async def scene(room: Room) -> None:
        room.leaders[B] = BrokerId(NO_BROKER)
        room.send(1, A, B)
        await room.asked(1)
        room.brokers.answers[0].set_exception(LinkLost("gone"))
        await room.asked(2)
        room.brokers.answer(1)
        room.leaders[B] = TWO
        await room.asked(3)
        assert room.brokers.asked[2][0] == TWO
        room.brokers.answer(2)
        await room.over(1)

    in_room(scene)


def test_a_broker_that_answers_nonsense_is_asked_again() -> None:
    async def scene(room: Room) -> None:
        room.send(1, A)
        await room.asked(1)
        room.brokers.answers[0].set_result(WriteTxnMarkersResponse(markers=[]))
        await room.asked(2)
        room.brokers.answer(1)
        await room.over(1)

    in_room(scene)


def test_partitions_that_are_gone_hold_nothing_up_for_ever() -> None:
    async def scene(room: Room) -> None:
        gone = TopicPartition("gone", 0)
        room.send(1, A, gone)
        await room.asked(1)
        room.brokers.answer(0)
        await asyncio.sleep(2 * markers.RETRY_S)
        assert room.done == []
        room.clock.ms += markers.UNKNOWN_MS_MAX
        await room.over(1)

    in_room(scene)


def test_a_replaced_coordinator_stops() -> None:
    async def scene(room: Room) -> None:
        room.send(1, A, C)
        await room.asked(2)
        room.brokers.answer(0, a=ErrorCode.TRANSACTION_COORDINATOR_FENCED)
        room.brokers.answer(1)
        await until(lambda: not len(room.lines))
        assert room.done == []

    in_room(scene)


def test_a_partition_with_a_later_epoch_holds_up_no_other_one() -> None:
    """It takes no marker any more. The transaction stayed as it was in all the others, for ever."""

    async def scene(room: Room) -> None:
        room.send(1, A, C)
        await room.asked(2)
        room.brokers.answer(0, a=ErrorCode.INVALID_PRODUCER_EPOCH)
        await asyncio.sleep(0)
        assert room.done == []
        room.brokers.answer(1)
        await until(lambda: not len(room.lines))
        assert room.done == [1]

    in_room(scene)


@pytest.mark.parametrize("is_one", [False, True])
def test_many_that_wait_for_one_leader_are_looked_at_some_at_a_time(is_one: bool) -> None:
    """All of them were, each tenth of a second; and all partitions of one transaction."""

    async def scene(room: Room) -> None:
        count = 4 * markers.PARTITIONS_ROUTED_AT_ONCE
        many = [A._replace(partition=number) for number in range(count)]
        room.leaders |= dict.fromkeys(many, BrokerId(NO_BROKER))
        looks = Looks(room.leaders)
        room.lines = MarkerLines(room.brokers, looks, room.clock)
        looks.begin()
        if is_one:
            room.send(1, *many)
        for number in () if is_one else range(count):
            looks.this_turn = 0
            room.send(number, many[number])
        await until(lambda: looks.all > 2 * count)
        # On a slow machine those that are new and those whose pause is over may have the same turn.
        assert looks.most <= 2 * markers.PARTITIONS_ROUTED_AT_ONCE
        room.leaders.update(dict.fromkeys(many, ONE))
        asked = 0
        while len(room.done) < (1 if is_one else count):
            await room.asked(asked + 1)
            room.brokers.answer(asked)
            asked += 1
            await asyncio.sleep(0)
        looks.is_over = True

    in_room(scene)


def test_large_transactions_that_end_in_the_same_moment_have_their_leaders_looked_up_in_turns() -> None:
    """Each had a piece looked up in each turn of the loop, and hundreds may end at once."""

    async def scene(room: Room) -> None:
        count = markers.PARTITIONS_ROUTED_AT_ONCE // 2 + 1
        many = [A._replace(partition=number) for number in range(5 * count)]
        room.leaders |= dict.fromkeys(many, ONE)
        looks = Looks(room.leaders)
        room.lines = MarkerLines(room.brokers, looks, room.clock)
        looks.begin()
        for number in range(5):
            room.send(number, *many[number * count : (number + 1) * count])
        await until(lambda: looks.all == 5 * count)
        assert looks.most <= markers.PARTITIONS_ROUTED_AT_ONCE
        asked = 0
        while len(room.done) < 5:
            await room.asked(asked + 1)
            room.brokers.answer(asked)
            asked += 1
            await asyncio.sleep(0)
        looks.is_over = True

    in_room(scene)


class Looks:
    """Leaders; counts how often one is looked up, at the most, in one turn of the loop."""

    def __init__(self, leaders: dict[TopicPartition, BrokerId]) -> None:
        self._leaders = leaders
        self.all = self.most = self.this_turn = 0
        self.is_over = False

    def __call__(self, tp: TopicPartition) -> BrokerId | None:
        self.all += 1
        self.this_turn += 1
        self.most = max(self.most, self.this_turn)
        return self._leaders.get(tp)

    def begin(self) -> None:
        self.this_turn = 0
        if not self.is_over:
            asyncio.get_running_loop().call_soon(self.begin)


def test_what_was_given_up_is_sent_no_more() -> None:
    async def scene(room: Room) -> None:
        room.send(1, A, owner="mine")
        await room.asked(1)
        room.send(2, A, owner="mine")
        room.send(3, A, owner="another's")
        room.lines.forget("mine")
        room.brokers.answer(0)
        await room.asked(2)
        assert room.brokers.producers(1) == [3]
        room.brokers.answer(1)
        await room.over(1)
        assert room.done == [3]

    in_room(scene)


def test_a_large_transaction_goes_in_several_requests() -> None:
    async def scene(room: Room) -> None:
        count = 2 * markers.PARTITIONS_A_REQUEST + 1
        many = [A._replace(partition=number) for number in range(count)]
        room.leaders |= dict.fromkeys(many, ONE)
        room.send(1, *many)
        sizes = list[int]()
        while sum(sizes) < count:
            number = len(sizes)
            await room.asked(number + 1)
            (marker,) = room.brokers.asked[number][1].markers
            sizes.append(len(marker.topics[0].partition_indexes))
            room.brokers.answer(number)
        await room.over(1)
        assert max(sizes) <= markers.PARTITIONS_A_REQUEST
        assert sum(sizes) == count

    in_room(scene)
