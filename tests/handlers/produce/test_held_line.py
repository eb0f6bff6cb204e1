"""The line of what waits at one leader: its order, its deadlines, and how much of it is answered in one go."""

from __future__ import annotations

from typing import cast

from tests.replication.journal_world import NOW, JournalWorld
from tests.storage.log_world import batch

from ottla.config.log import LogConfig
from ottla.handlers.calls.peer import Peer, Slot
from ottla.handlers.produce.held import HeldProduce, HeldProduces
from ottla.handlers.produce.memo import ProduceMemo
from ottla.handlers.produce.waiting import ACKS_ALL
from ottla.handlers.routes import PRODUCE
from ottla.model import ErrorCode
from ottla.protocol.generated.produce import ProduceResponse
from ottla.protocol.header import decode_response_header

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
