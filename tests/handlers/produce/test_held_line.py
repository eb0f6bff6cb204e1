"""The line of what waits at one leader: its order, its deadlines, and how much of it is answered in one go."""

from __future__ import annotations

from itertools import count
from typing import cast

import pytest
from tests.replication.journal_world import NOW, JournalWorld
from tests.storage.log_world import batch

from ottla.config.log import LogConfig
from ottla.handlers.calls.peer import Peer, Slot
from ottla.handlers.produce.held import ANSWERED_AT_ONCE, HeldProduce, HeldProduces
from ottla.handlers.produce.memo import ProduceMemo
from ottla.handlers.produce.waiting import ACKS_ALL, ACKS_LEADER
from ottla.handlers.routes import PRODUCE
from ottla.model import ErrorCode
from ottla.protocol.generated.produce import ProduceResponse
from ottla.protocol.header import decode_response_header
from ottla.replication.waiters import TURN_MS

VERSION = 9
LATE_MS = 1000


class Client:
    """What is filled in for it, in that order: base offsets, or errors."""

    closed = False

    def __init__(self) -> None:
        self.answers: list[tuple[int, int]] = []

    def fill(self, slot: Slot, data: bytes | bytearray) -> None:
        slot.data = data
        *_, at = decode_response_header(bytes(data[4:]), PRODUCE, VERSION)
        answer, _ = ProduceResponse.decode(bytes(data[4:]), VERSION, at)
        (found,) = answer.responses[0].partition_responses
        self.answers.append((found.error_code, found.base_offset))


class Line:
    def __init__(self, records: int, acks: int = ACKS_ALL) -> None:
        """Of a leader with so many records that its follower does not have."""
        self.world = JournalWorld(LogConfig(), replicas=(1, 2))
        leader = self.leader = self.world.leader
        with self.world.round():
            leader.log.stage(batch(*[b"v"] * records), leader.epoch, NOW)
            self.world.writes.staged(leader)
        self.waiters = self.world.replicas.waiters
        self.held = HeldProduces(leader, self.waiters, lambda *_: None)
        self.client = Client()
        self.memo = ProduceMemo(VERSION, b"", b"", acks, 0, leader, "t", policy=0)

    def hold(self, last: int, deadline_ms: int = LATE_MS) -> None:
        peer = cast("Peer", self.client)
        self.held.hold(HeldProduce(last, peer, Slot(), self.memo, 1, last, -1, 0, deadline_ms))

    def fetched(self, end: int) -> None:
        """By the follower; the watermark follows."""
        self.leader.follower_fetched(2, end)
        assert self.leader.high_watermark == end
        self.waiters.changed(self.leader.tp)

    @property
    def answers(self) -> list[tuple[int, int]]:
        return self.client.answers


def acknowledged(*offsets: int) -> list[tuple[int, int]]:
    return [(ErrorCode.NONE, each) for each in offsets]


def test_a_duplicate_has_its_place_by_its_offset() -> None:
    """It ends below those that were held before it."""
    line = Line(20)
    line.hold(10)
    line.hold(6)
    line.fetched(8)
    line.waiters.settle(0)
    assert line.answers == acknowledged(6)
    line.fetched(11)
    line.waiters.settle(0)
    assert line.answers == acknowledged(6, 10)


@pytest.mark.parametrize("acks", [ACKS_ALL, ACKS_LEADER])
def test_what_is_committed_is_acknowledged_however_late_its_turn_comes(acks: int) -> None:
    """Its time is over while others have their answers: the records are there, and a client would write them twice."""
    committed = ANSWERED_AT_ONCE + 88
    line = Line(committed + 1, acks)
    for last in range(committed + 1):
        line.hold(last)
    line.fetched(committed)
    line.waiters.expire(LATE_MS)
    # This broker's disk has the last one as well, which is enough for acks=1.
    last = (ErrorCode.NONE, committed) if acks == ACKS_LEADER else (ErrorCode.REQUEST_TIMED_OUT, -1)
    assert sorted(line.answers) == [*acknowledged(*range(committed)), last]
    assert line.held.is_empty
    assert len(line.waiters) == 0


def test_a_leader_that_has_resigned_says_so_to_those_that_are_late() -> None:
    held = 2 * ANSWERED_AT_ONCE + 88
    line = Line(held)
    for last in range(held):
        line.hold(last)
    # Each look at the clock finds the turn over.
    line.waiters.now_ms = count(1 << 60, TURN_MS).__next__
    line.world.lead(epoch=1, replicas=(1, 2), leader=2)
    assert len(line.held) == held - ANSWERED_AT_ONCE
    for _ in range(3):
        line.waiters.expire(LATE_MS)
    assert line.answers == [(ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)] * held


def test_one_that_comes_with_less_time_leaves_the_others_their_turn() -> None:
    line = Line(20)
    line.hold(5)
    line.fetched(8)
    line.hold(15, LATE_MS - 1)
    line.waiters.settle(0)
    assert line.answers == acknowledged(5)
    assert line.waiters.next_deadline_ms() == LATE_MS - 1
    line.waiters.expire(LATE_MS - 1)
    assert line.answers == [*acknowledged(5), (ErrorCode.REQUEST_TIMED_OUT, -1)]
