"""A long frame may be kept where it was received, whatever stands and comes behind it."""

from __future__ import annotations

import asyncio
import struct

import pytest
from tests.server.test_patient_requests import METADATA, Line, Record, Room

from ottla.handlers.calls.peer import RequestBuffer
from ottla.ports.network import READABLE
from ottla.server import buffers
from ottla.server.buffers import FIRST_READ_BYTES
from ottla.server.connection import Connection

LONG = 5_000


def frame(number: int, size: int) -> bytes:
    return struct.pack(">ihhi", 8 + size, METADATA, 0, number) + bytes([number]) * size


class Keeper(Record):
    """Keeps every frame, and holds the connection until it is told that it may go on."""

    def __init__(self) -> None:
        super().__init__()
        self.kept: list[tuple[int, bytes | bytearray | memoryview]] = []
        self.connection: Connection | None = None

    def serve(self, connection: Connection, buffer: RequestBuffer, start: int, end: int) -> None:
        (number,) = struct.unpack_from(">i", buffer.data, start + 4)
        self.kept.append((number, buffer.keep(start, end)))
        connection.answer_later(None)
        self.connection = connection


@pytest.mark.parametrize("behind", [0, 3, 11, 12, 40_000])
def test_a_kept_frame_stays_as_it_came(monkeypatch: pytest.MonkeyPatch, behind: int) -> None:
    monkeypatch.setattr(buffers, "_COPIED_BYTES_MAX", LONG // 2)
    sent = frame(1, LONG) + frame(2, 10) + frame(3, FIRST_READ_BYTES // 2) + frame(4, LONG) + frame(5, behind)
    sent += frame(6, 2 * FIRST_READ_BYTES) + frame(7, LONG) + frame(8, 1)
    room, keeper = Room(), Keeper()
    room.record = keeper
    room.rounds.open(keeper)  # type: ignore[arg-type]
    line = Line(sent)
    connection = Connection(line, room.listener, 0, room.rounds.touched)

    async def scenario() -> None:
        while len(keeper.kept) < 8:
            before = len(keeper.kept)
            if line.arrived:
                room.rounds.run([(connection, READABLE)])
            await room.drain()
            if len(keeper.kept) > before or connection.busy:
                connection.finish()
                await room.drain()

    asyncio.run(asyncio.wait_for(scenario(), 60))
    assert [number for number, _ in keeper.kept] == list(range(1, 9))
    for number, data in keeper.kept:
        assert bytes(data[8:]) == bytes([number]) * (len(data) - 8)
