"""Answers that clients do not take share one bound: above it no long answer is made, and who stalls is closed."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from ottla.server import answer_memory
from ottla.server.answer_memory import CLOSED_AT_ONCE, HELD_BYTES_MAX, LARGE_BYTES, STALLED_MS, AnswerMemory


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
        await asyncio.wait_for(gone_on.wait(), 60)
        room.memory.close()

    asyncio.run(scenario())
    assert room.closed == [stalled]


@pytest.mark.parametrize("taken", [0, LARGE_BYTES - 1])
def test_who_sends_much_and_takes_next_to_nothing_is_closed_too(
    taken: int, room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bytes that a client sends, or takes one by one, do not keep its answers alive while others wait for the room."""
    monkeypatch.setattr(answer_memory, "_LOOK_S", 0.001)
    holder: Any = Holder()

    async def scenario() -> None:
        gone_on = asyncio.Event()
        room.memory.note(holder, 2 * HELD_BYTES_MAX)
        room.memory.wait(gone_on.set)
        for ms in range(0, 3 * STALLED_MS, STALLED_MS // 5):
            room.clock.ms = holder.last_active_ms = ms
            if not room.closed:
                room.memory.note(holder, 2 * HELD_BYTES_MAX - (taken if ms else 0))
            await asyncio.sleep(0.005)
        await asyncio.wait_for(gone_on.wait(), 60)
        room.memory.close()

    asyncio.run(scenario())
    assert room.closed == [holder]


def test_who_takes_its_answer_is_not_closed(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answer_memory, "_LOOK_S", 0.001)
    holder: Any = Holder()

    async def scenario() -> None:
        left = 2 * HELD_BYTES_MAX
        room.memory.note(holder, left)
        room.memory.wait(lambda: None)
        for ms in range(0, 3 * STALLED_MS, STALLED_MS // 5):
            room.clock.ms = ms
            left -= LARGE_BYTES // 4
            room.memory.note(holder, left)
            await asyncio.sleep(0.005)
        room.memory.close()

    asyncio.run(scenario())
    assert not room.closed


def test_a_fault_in_closing_one_costs_no_other_its_look(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answer_memory, "_LOOK_S", 0.001)
    first: Any = Holder()
    second: Any = Holder()
    closing: list[Any] = []

    def close(connection: Any) -> None:
        closing.append(connection)
        if len(closing) == 1:
            raise ValueError("planted")
        room.memory.note(connection, 0)

    memory = room.memory = AnswerMemory(room.clock, close)

    async def scenario() -> None:
        gone_on = asyncio.Event()
        memory.note(first, HELD_BYTES_MAX)
        memory.note(second, HELD_BYTES_MAX)
        room.clock.ms = STALLED_MS * 2
        memory.wait(gone_on.set)
        await asyncio.wait_for(gone_on.wait(), 60)
        memory.close()

    asyncio.run(scenario())
    assert {*closing} == {first, second}


def test_a_fault_of_one_who_goes_on_costs_no_other_its_turn(room: Room) -> None:
    holder: Any = Holder()
    resumed: list[bool] = []

    def broken() -> None:
        raise ValueError("planted")

    async def scenario() -> None:
        room.memory.note(holder, HELD_BYTES_MAX)
        room.memory.wait(broken)
        room.memory.wait(lambda: resumed.append(True))
        room.memory.note(holder, HELD_BYTES_MAX - 1)
        room.memory.close()

    asyncio.run(scenario())
    assert resumed == [True]


def test_a_crowd_that_stalls_is_closed_some_at_a_time(room: Room) -> None:
    crowd: list[Any] = [Holder() for _ in range(3 * CLOSED_AT_ONCE)]

    async def scenario() -> None:
        for holder in crowd:
            room.memory.note(holder, HELD_BYTES_MAX // CLOSED_AT_ONCE)
        # There is no room even when two thirds of them are gone.
        room.memory.wait(lambda: room.memory.wait(lambda: None))
        room.clock.ms += STALLED_MS + 1
        counts = []
        while len(room.closed) < len(crowd):
            before = len(room.closed)
            room.memory._look()
            counts.append(len(room.closed) - before)
            room.memory.wait(lambda: None)
        room.memory.close()
        assert counts == [CLOSED_AT_ONCE] * 3

    asyncio.run(scenario())


def test_one_that_ends_while_another_is_closed_does_not_end_the_look(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Closing one settles all that have ended: some of the others may have nothing left by then."""
    monkeypatch.setattr(answer_memory, "_LOOK_S", 0.001)
    first, second, third = (Holder() for _ in range(3))

    def close(connection: Any) -> None:
        room.close(connection)
        room.memory.note(second, 0)  # type: ignore[arg-type]

    async def scenario() -> None:
        room.memory = AnswerMemory(room.clock, close)
        for holder in (first, second, third):
            room.memory.note(holder, HELD_BYTES_MAX)  # type: ignore[arg-type]
        room.clock.ms = STALLED_MS + 1
        room.memory.wait(lambda: None)
        room.memory._look()
        room.memory.close()

    asyncio.run(scenario())
    assert room.closed == [first, third]
