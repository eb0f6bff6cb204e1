"""Requests that come in crowds are served a slice at a time, in their order, and others come between."""

from __future__ import annotations

import asyncio
import struct

import pytest

from ottla.handlers.calls.peer import RequestBuffer
from ottla.handlers.routes import PATIENT
from ottla.ports import File
from ottla.ports.memory.clock import Timeline, VirtualClock
from ottla.ports.network import READABLE
from ottla.server.buffers import FIRST_READ_BYTES, Buffer
from ottla.server.connection import Connection
from ottla.server.listeners import ServedListener
from ottla.server.round_bounds import PATIENT_A_ROUND
from ottla.server.rounds import Rounds

PRODUCE, JOIN_GROUP, METADATA = 0, 11, 3


def frame(key: int, number: int) -> bytes:
    return struct.pack(">ihhi", 8, key, 0, number)


class Line:
    """A channel on which frames have arrived."""

    def __init__(self, *frames: bytes) -> None:
        self.arrived = bytearray(b"".join(frames))
        self.peer, self.peer_port = "peer", 1

    def receive_into(self, view: memoryview) -> int:
        if not self.arrived:
            raise BlockingIOError
        size = min(len(view), len(self.arrived))
        view[:size] = self.arrived[:size]
        del self.arrived[:size]
        return size

    def send(self, data: bytes | bytearray | memoryview) -> int:
        return len(data)

    def send_buffers(self, buffers: object) -> int:
        raise NotImplementedError

    def send_file(self, file: File, position: int, count: int) -> int:
        raise NotImplementedError

    def watch(self, *, reading: bool, writing: bool) -> None:
        """Nothing is told of it."""

    def close(self) -> None:
        """Nothing is held."""


class Record:
    """A dispatch that notes what it is given, round by round."""

    def __init__(self) -> None:
        self.rounds: list[list[tuple[int, int]]] = []
        self.hot: dict[int, object] = {}
        self.patient = PATIENT
        self.began_ms = 0

    @property
    def round(self) -> Record:
        return self

    def serve(self, connection: Connection, buffer: RequestBuffer, start: int, end: int) -> None:
        key, _, number = struct.unpack_from(">hhi", buffer.data, start)
        self.rounds[-1].append((key, number))

    def begin(self) -> None:
        self.rounds.append([])

    def end(self) -> None:
        """Nothing was staged."""


class Room:
    def __init__(self) -> None:
        self.rounds = Rounds(VirtualClock(Timeline()), 1 << 20, lambda _: None)
        self.record = Record()
        self.rounds.open(self.record)  # type: ignore[arg-type]
        self.listener = ServedListener("PLAINTEXT")

    def connected(self, *frames: bytes) -> Connection:
        return Connection(Line(*frames), self.listener, 0, self.rounds.touched)

    def run(self, *connections: Connection) -> None:
        self.rounds.run([(connection, READABLE) for connection in connections])

    async def drain(self) -> None:
        """The rounds that a backlog asks for."""
        before = -1
        while before != len(self.record.rounds):
            before = len(self.record.rounds)
            # One turn of the loop may leave it to the network.
            await asyncio.sleep(0)
            await asyncio.sleep(0)


@pytest.fixture
def room() -> Room:
    return Room()


def test_a_crowd_is_served_in_slices_and_in_its_order(room: Room) -> None:
    async def scenario() -> None:
        room.run(*(room.connected(frame(JOIN_GROUP, number)) for number in range(3 * PATIENT_A_ROUND + 5)))
        await room.drain()

    asyncio.run(scenario())
    assert [len(each) for each in room.record.rounds if each] == [PATIENT_A_ROUND] * 3 + [5]
    assert [number for each in room.record.rounds for _, number in each] == list(range(3 * PATIENT_A_ROUND + 5))


def test_others_come_between_and_late_ones_of_the_crowd_behind(room: Room) -> None:
    async def scenario() -> None:
        room.run(*(room.connected(frame(JOIN_GROUP, number)) for number in range(2 * PATIENT_A_ROUND)))
        room.run(room.connected(frame(JOIN_GROUP, 1000)), room.connected(frame(METADATA, 7)))
        await room.drain()

    asyncio.run(scenario())
    first, second, *others = room.record.rounds
    assert first == [(JOIN_GROUP, number) for number in range(PATIENT_A_ROUND)]
    assert second[0] == (METADATA, 7)
    assert second[1:] == [(JOIN_GROUP, number) for number in range(PATIENT_A_ROUND, 2 * PATIENT_A_ROUND)]
    assert [each for each in others if each] == [[(JOIN_GROUP, 1000)]]


def test_what_one_connection_asks_stays_in_its_order(room: Room) -> None:
    async def scenario() -> None:
        mixed = room.connected(frame(METADATA, 1), frame(JOIN_GROUP, 2), frame(METADATA, 3))
        room.run(*(room.connected(frame(JOIN_GROUP, number)) for number in range(100, 100 + PATIENT_A_ROUND)), mixed)
        await room.drain()

    asyncio.run(scenario())
    assert [number for each in room.record.rounds for _, number in each if number < 100] == [1, 2, 3]


def test_a_client_of_the_crowd_that_goes_away_is_forgotten(room: Room) -> None:
    async def scenario() -> None:
        crowd = [room.connected(frame(JOIN_GROUP, number)) for number in range(PATIENT_A_ROUND + 2)]
        room.run(*crowd)
        room.rounds.close_connection(crowd[PATIENT_A_ROUND])
        await room.drain()

    asyncio.run(scenario())
    served = [number for each in room.record.rounds for _, number in each]
    assert served == [*range(PATIENT_A_ROUND), PATIENT_A_ROUND + 1]


def test_a_crowd_that_waits_does_not_take_a_buffer_each(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int] = []
    plain = Buffer.__init__

    def count(buffer: Buffer, size: int) -> None:
        made.append(size)
        plain(buffer, size)

    monkeypatch.setattr(Buffer, "__init__", count)

    async def scenario() -> None:
        room.run(*(room.connected(frame(JOIN_GROUP, number)) for number in range(5 * PATIENT_A_ROUND)))
        room.run(*(room.connected() for _ in range(100)))
        await room.drain()

    asyncio.run(scenario())
    assert len([number for each in room.record.rounds for number in each]) == 5 * PATIENT_A_ROUND
    assert [size for size in made if size >= FIRST_READ_BYTES] == [FIRST_READ_BYTES]


def test_what_is_served_in_the_round_keeps_its_buffer_to_the_end(room: Room) -> None:
    """A hot handler reads there until then; what waits behind its frame has been moved away."""
    served: list[tuple[RequestBuffer, int]] = []

    def hot(connection: Connection, buffer: RequestBuffer, start: int, end: int, version: int, number: int) -> None:
        served.append((buffer, start))

    def still_there() -> None:
        seen.append([struct.unpack_from(">hhi", buffer.data, start)[2] for buffer, start in served])
        served.clear()

    seen: list[list[int]] = []
    room.record.hot = {PRODUCE: hot}
    room.record.end = still_there  # type: ignore[method-assign]

    async def scenario() -> None:
        crowd = [room.connected(frame(JOIN_GROUP, number)) for number in range(PATIENT_A_ROUND)]
        mixed = [room.connected(frame(PRODUCE, n), frame(JOIN_GROUP, n)) for n in range(1000, 1010)]
        room.run(*crowd, *mixed, *(room.connected(frame(PRODUCE, n)) for n in range(2000, 2010)))
        await room.drain()

    asyncio.run(scenario())
    assert [each for each in seen if each] == [[*range(1000, 1010), *range(2000, 2010)]]
    assert len([number for each in room.record.rounds for number in each]) == PATIENT_A_ROUND + 10
