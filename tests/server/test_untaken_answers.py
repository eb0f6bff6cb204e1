"""What clients leave untaken of large answers is counted, whichever way an answer was sent."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from ottla.ports.memory.clock import Timeline, VirtualClock
from ottla.security.session import Session
from ottla.server.answer_memory import LARGE_BYTES, AnswerMemory
from ottla.server.connection import Connection
from ottla.server.rounds import Rounds


class Full:
    """The channel of a client that takes nothing."""

    peer = "nobody"

    def receive_into(self, view: memoryview) -> int:
        raise BlockingIOError

    def send(self, data: bytes | memoryview) -> int:
        raise BlockingIOError

    def watch(self, *, reading: bool, writing: bool) -> None: ...

    def close(self) -> None: ...


@pytest.mark.parametrize("at_once", [True, False])
def test_an_answer_that_is_not_taken_is_counted(at_once: bool) -> None:
    clock = VirtualClock(Timeline())
    closed: list[Connection] = []
    rounds = Rounds(clock, 1 << 20, closed.append)
    memory = rounds.settling.sending.memory = AnswerMemory(clock, rounds.close_connection)
    channel: Any = Full()
    listener: Any = SimpleNamespace(session=Session("PLAINTEXT"))
    connection = Connection(channel, listener, 0, rounds.settling.touched.append)
    answer = bytes(LARGE_BYTES)
    if at_once:
        connection.answer_now(memoryview(answer))
    else:
        connection.answer(answer)
    rounds.run([])
    assert memory.bytes == LARGE_BYTES
    rounds.close_connection(connection)
    assert memory.bytes == 0
    assert closed == [connection]


class Taking(Full):
    """Takes so many bytes, and no more."""

    def __init__(self, takes: int) -> None:
        self._takes = takes

    def send(self, data: bytes | memoryview) -> int:
        if not self._takes:
            raise BlockingIOError
        sent = min(self._takes, len(data))
        self._takes -= sent
        return sent


@pytest.mark.parametrize("size", [60_000, 200_000])
def test_a_client_that_has_taken_most_of_its_answer_does_not_keep_the_whole(size: int) -> None:
    channel: Any = Taking(size - 1_000)
    listener: Any = SimpleNamespace(session=Session("PLAINTEXT"))
    rounds = Rounds(VirtualClock(Timeline()), 1 << 20, lambda _: None)
    connection = Connection(channel, listener, 0, rounds.settling.touched.append)
    connection.answer(bytes(size))
    for _ in range(3):
        rounds.run([])
    (left,) = connection.unsent
    assert isinstance(left, bytes)
    assert len(left) == 1_000
