"""Connections of which nothing more is read: their clients have ended their side, or have sent what is no request.

They end when they have what they are owed, and nobody looks at them in between.
"""

from __future__ import annotations

import asyncio
import struct
from typing import Any

import pytest
from tests.server.test_patient_requests import METADATA, PRODUCE, Line, Room, frame

from ottla.handlers.calls.peer import Slot
from ottla.ports.network import BROKEN, READABLE, WRITABLE
from ottla.server.connection import Connection

BAD_FRAME = struct.pack(">i", -1) + bytes(10)
#: Too long to be put aside while it waits: there is room behind it, so that its connection is read from.
LONG = struct.pack(">ihhi", 8 + 20_000, METADATA, 0, 1) + bytes(20_000)
ANSWER = b"answer"


class Ended(Line):
    """A channel whose client sends no more; it takes what there is room for."""

    def __init__(self, *frames: bytes) -> None:
        super().__init__(*frames)
        self.taken = 0
        self.room = 1 << 30
        self.is_closed = False

    def receive_into(self, view: memoryview) -> int:
        return super().receive_into(view) if self.arrived else 0

    def send(self, data: bytes | bytearray | memoryview) -> int:
        sent = min(len(data), self.room)
        if not sent:
            raise BlockingIOError
        self.room -= sent
        self.taken += sent
        return sent

    def close(self) -> None:
        self.is_closed = True


@pytest.fixture
def room() -> Room:
    return Room()


def connected(room: Room, *frames: bytes) -> tuple[Connection, Any, list[Slot]]:
    """A connection whose Produce requests wait, its channel, and the places of their answers."""
    waiting: list[Slot] = []

    def serve(connection: Connection, *_: object) -> None:
        waiting.append(Slot())
        connection.hold(waiting[-1])

    room.record.hot = {PRODUCE: serve}
    channel: Any = Ended(*frames)
    return Connection(channel, room.listener, 0, room.rounds.touched), channel, waiting


async def rests(room: Room) -> bool:
    """Whether rounds come to an end."""
    for _ in range(20):
        before = len(room.record.rounds)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        if before == len(room.record.rounds):
            return True
    return False


@pytest.mark.parametrize(
    "behind",
    [LONG, LONG[:-2], frame(METADATA, 1)[:-2], frame(METADATA, 1)[:5], BAD_FRAME + bytes(len(LONG))],
    ids=["whole", "cut short", "short and cut short", "its beginning", "bad"],
)
def test_what_stands_behind_a_wait_is_looked_at_when_that_is_over(room: Room, behind: bytes) -> None:
    connection, channel, waiting = connected(room, frame(PRODUCE, 0), behind)

    async def scenario() -> None:
        room.run(connection)
        room.run(connection)  # which reads the end
        assert connection.peer_gone
        assert await rests(room)
        assert not channel.is_closed
        connection.fill(waiting[0], ANSWER)
        assert await rests(room)

    asyncio.run(scenario())
    assert channel.is_closed
    assert channel.taken == len(ANSWER)
    served = [request for each in room.record.rounds for request in each]
    assert served == ([(METADATA, 1)] if behind == LONG else [])


def test_one_that_is_refused_and_named_once_more_still_gets_what_it_is_owed(room: Room) -> None:
    """As by a round that was over before its turn had come."""
    connection, channel, waiting = connected(room, frame(PRODUCE, 0), BAD_FRAME)

    async def scenario() -> None:
        room.run(connection)
        room.run(connection)
        assert await rests(room)
        assert not channel.is_closed
        connection.fill(waiting[0], ANSWER)
        assert await rests(room)

    asyncio.run(scenario())
    assert channel.is_closed
    assert channel.taken == len(ANSWER)


def test_one_that_is_refused_and_breaks_ends_at_once(room: Room) -> None:
    connection, channel, _ = connected(room, frame(PRODUCE, 0), BAD_FRAME)

    async def scenario() -> None:
        room.run(connection)
        room.rounds.run([(connection, READABLE | BROKEN)])
        assert await rests(room)

    asyncio.run(scenario())
    assert channel.is_closed


@pytest.mark.parametrize("size", [1_000, 200_000])
def test_a_refusal_that_comes_late_costs_nobody_an_answer_that_is_on_its_way(room: Room, size: int) -> None:
    """Of a request that is decoded in steps, behind one whose answer the socket has not taken yet."""
    connection, channel, _ = connected(room, frame(METADATA, 0), frame(METADATA, 1), frame(METADATA, 2))
    channel.room = 100
    served: list[int] = []

    def serve(connection: Connection, *_: object) -> None:
        served.append(len(served))
        if len(served) == 1:
            connection.answer(bytes(size))
        else:
            connection.answer_later(None)

    room.record.serve = serve  # type: ignore[method-assign,assignment]

    async def scenario() -> None:
        room.run(connection)
        connection.refuse()
        assert await rests(room)
        channel.room = 1 << 30
        room.rounds.run([(connection, WRITABLE)])
        assert await rests(room)

    asyncio.run(scenario())
    assert channel.taken == size
    assert channel.is_closed
    assert served == [0, 1]


def test_a_fault_while_the_last_answers_leave_ends_the_connection(room: Room) -> None:
    connection, channel, waiting = connected(room, frame(PRODUCE, 0), BAD_FRAME)

    async def scenario() -> None:
        room.run(connection)
        connection.answer(None)  # type: ignore[arg-type] - no answer: a fault of ours
        assert await rests(room)

    asyncio.run(scenario())
    assert channel.is_closed
    assert waiting
