"""How much is received from one connection in one go."""

from __future__ import annotations

import asyncio
import struct

import pytest
from tests.server.test_kept_frames import Keeper
from tests.server.test_patient_requests import METADATA, Line, Room

from ottla.ports.network import READABLE
from ottla.server import incoming
from ottla.server.connection import Connection


class Flood(Line):
    """Has as much ready as there is room for, as a peer that sends while it is read from."""

    def __init__(self, sent: bytes) -> None:
        super().__init__(sent)
        self.taken: list[int] = []

    def receive_into(self, view: memoryview) -> int:
        received = super().receive_into(view)
        self.taken.append(received)
        return received


def test_a_long_frame_that_is_there_as_a_whole_is_received_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    most = 64 * 1024
    monkeypatch.setattr(incoming, "RECEIVE_BYTES_MAX", most, raising=False)
    size = 8 * most
    room, keeper = Room(), Keeper()
    room.record = keeper
    room.rounds.open(keeper)  # type: ignore[arg-type]
    line = Flood(struct.pack(">ihhi", 8 + size, METADATA, 0, 1) + bytes(size))
    connection = Connection(line, room.listener, 0, room.rounds.touched)  # type: ignore[arg-type]

    async def scenario() -> None:
        while not keeper.kept:
            room.rounds.run([(connection, READABLE)])
            await room.drain()

    asyncio.run(asyncio.wait_for(scenario(), 60))
    assert len(keeper.kept[0][1]) == size + 8
    assert max(line.taken) <= most
    assert len(line.taken) < 16
