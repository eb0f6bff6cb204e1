"""Answers that clients do not take share one bound: above it no long answer is made, and who stalls is closed."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from ottla.server import answer_memory
from ottla.server.answer_memory import HELD_BYTES_MAX, LARGE_BYTES, STALLED_MS, AnswerMemory


class Clock:
    def __init__(self) -> None:
        self.ms = 0

    def wall_ms(self) -> int:
        return self.ms

    def monotonic_ms(self) -> int:
        return self.ms


class Holder:
    def __init__(self, active_ms: int = 0) -> None:
        self.host = "peer"
        self.last_active_ms = active_ms


class Room:
    def __init__(self) -> None:
        self.clock = Clock()
        self.closed: list[Any] = []
        self.memory = AnswerMemory(self.clock, self.close)

    def close(self, connection: Any) -> None:
        self.closed.append(connection)
        self.memory.note(connection, 0)


@pytest.fixture
def room() -> Room:
    return Room()


def test_what_is_left_is_counted_once(room: Room) -> None:
    holder: Any = Holder()
    room.memory.note(holder, LARGE_BYTES * 3)
    room.memory.note(holder, LARGE_BYTES * 2)
    assert room.memory.bytes == LARGE_BYTES * 2
    room.memory.note(holder, LARGE_BYTES - 1)
    assert (room.memory.bytes, room.memory.held) == (0, {})


def test_small_rests_are_not_counted(room: Room) -> None:
    for _ in range(10):
        room.memory.note(Holder(), LARGE_BYTES - 1)  # type: ignore[arg-type]
    assert (room.memory.bytes, room.memory.held) == (0, {})


def test_whoever_waits_goes_on_when_there_is_room(room: Room) -> None:
    holder: Any = Holder()
    resumed: list[bool] = []

    async def scenario() -> None:
        room.memory.note(holder, HELD_BYTES_MAX)
        assert not room.memory.has_room
        room.memory.wait(lambda: resumed.append(True))
        room.memory.note(holder, HELD_BYTES_MAX - 1)
        room.memory.close()

    asyncio.run(scenario())
    assert resumed == [True]


def test_who_takes_nothing_is_closed_only_while_others_wait(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answer_memory, "_LOOK_S", 0.001)
    stalled: Any = Holder()

    async def scenario() -> None:
        gone_on = asyncio.Event()
        room.memory.note(stalled, HELD_BYTES_MAX)
        room.clock.ms = STALLED_MS * 2
        reading: Any = Holder(room.clock.ms)
        room.memory.note(reading, LARGE_BYTES)
        await asyncio.sleep(0.01)
        assert not room.closed, "nobody waits"
        room.memory.wait(gone_on.set)
        await asyncio.wait_for(gone_on.wait(), 10)
        room.memory.close()

    asyncio.run(scenario())
    assert room.closed == [stalled]
