"""Requests that come before a broker knows its cluster: what is held, in which order, and how much of it."""

from __future__ import annotations

from typing import Any

from ottla.handlers.calls.peer import RequestBuffer
from ottla.protocol.fields import REQUEST_FIELDS
from ottla.server.holding import HELD_BYTES_MAX, HeldRequests


class Brackets:
    began_ms = 0

    def __init__(self) -> None:
        self.said: list[str] = []

    def begin(self) -> None:
        self.said.append("begin")

    def end(self) -> None:
        self.said.append("end")


class Dispatch:
    """Says what it is asked to serve."""

    patient: frozenset[int] = frozenset()

    def __init__(self) -> None:
        self.round = Brackets()
        self.hot = {0: self._hot}

    def _hot(
        self, connection: Any, buffer: RequestBuffer, start: int, end: int, version: int, correlation: int
    ) -> None:
        self.round.said.append(f"hot {connection.name} {version} {correlation} {end - start}")

    def serve(self, connection: Any, buffer: RequestBuffer, start: int, end: int) -> None:
        key, _, correlation = REQUEST_FIELDS.unpack_from(buffer.data, start)
        if correlation == 666:
            raise ValueError("planted")
        self.round.said.append(f"{key} {connection.name} {correlation}")


class Connection:
    """What of a connection the holding uses."""

    def __init__(self, name: str) -> None:
        self.name = self.host = name
        self.is_open = True
        self.closed = False
        self.busy = False
        self.cancel: Any = None

    def answer_later(self, cancel: Any, *, waits: bool = False) -> None:
        self.busy, self.cancel = True, cancel

    def finish(self) -> None:
        self.busy, self.cancel = False, None

    def abort(self) -> None:
        self.closed = True


class Buffer:
    def __init__(self, key: int, correlation: int, size: int = 20) -> None:
        self.data = bytearray(b"....") + REQUEST_FIELDS.pack(key, 3, correlation) + bytes(size)
        self.view = memoryview(self.data)

    def keep(self, start: int, end: int) -> memoryview:
        return self.view[start:end]


def ask(held: HeldRequests, connection: Any, key: int, correlation: int, size: int = 20) -> None:
    buffer = Buffer(key, correlation, size)
    held.serve(connection, buffer, 4, len(buffer.data))


def test_brokers_are_served_and_clients_wait_in_their_order() -> None:
    dispatch = Dispatch()
    held = HeldRequests(dispatch)  # type: ignore[arg-type]
    a, b, c = Connection("a"), Connection("b"), Connection("c")
    ask(held, a, 3, 1)
    ask(held, b, 4, 2)
    ask(held, c, 0, 3)
    ask(held, b, 18, 4)
    assert dispatch.round.said == ["4 b 2", "18 b 4"]
    assert (a.busy, b.busy, c.busy) == (True, False, True)
    dispatch.round.said.clear()
    held.release()
    assert dispatch.round.said == ["begin", "3 a 1", "hot c 3 3 28", "end"]
    assert (a.busy, c.busy) == (False, False)
    dispatch.round.said.clear()
    held.release()
    assert dispatch.round.said == ["begin", "end"]


def test_a_client_that_has_gone_is_forgotten() -> None:
    dispatch = Dispatch()
    held = HeldRequests(dispatch)  # type: ignore[arg-type]
    gone, closed = Connection("gone"), Connection("closed")
    ask(held, gone, 3, 1)
    ask(held, closed, 3, 2)
    gone.cancel()
    closed.closed = True
    held.release()
    assert dispatch.round.said == ["begin", "end"]


def test_what_is_held_has_a_bound() -> None:
    held = HeldRequests(Dispatch())  # type: ignore[arg-type]
    size = HELD_BYTES_MAX // 8
    clients = [Connection(str(number)) for number in range(10)]
    for client in clients:
        ask(held, client, 0, 1, size)
    assert [client.closed for client in clients] == [False] * 7 + [True] * 3
    # Room that one leaves is another's.
    clients[0].cancel()
    late = Connection("late")
    ask(held, late, 0, 1, size)
    assert not late.closed


def test_a_fault_in_one_ends_that_one() -> None:
    dispatch = Dispatch()
    held = HeldRequests(dispatch)  # type: ignore[arg-type]
    bad, good = Connection("bad"), Connection("good")
    ask(held, bad, 3, 666)
    ask(held, good, 3, 2)
    held.release()
    assert (bad.closed, good.closed) == (True, False)
    assert dispatch.round.said == ["begin", "3 good 2", "end"]
