"""How much the system holds of an answer: what is configured, and less for clients on the same machine."""

from __future__ import annotations

import os
import socket
from collections import deque
from collections.abc import Callable

import pytest
from tests.server.conftest import BrokerThread
from tests.server.test_turns_of_connections import Nothing, SlowLine, answering_room

from ottla.broker.broker import Broker
from ottla.handlers.calls.peer import FilePiece
from ottla.protocol.generated.api_versions import ApiVersionsRequest, ApiVersionsResponse
from ottla.server.connection import SENT_A_TURN_BYTES, Connection
from ottla.server.listeners import LOCAL_SEND_BUFFER_BYTES

Make = Callable[..., BrokerThread]


def buffers(broker: Broker) -> list[int]:
    """Of the broker's ends; the system answers with twice what it was given."""
    assert broker._server is not None
    found = []
    for connection in broker._server._connections:
        with socket.socket(fileno=os.dup(connection.fileno())) as end:
            found.append(end.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF))
    return found


@pytest.mark.parametrize("chosen", ["", "-1", "8192", "102400"])
def test_the_send_buffer_is_as_configured(make_broker: Make, chosen: str) -> None:
    settings = {"socket_send_buffer_bytes": chosen} if chosen else {}
    with make_broker(**settings) as running, running.connect() as peer:
        peer.ask(ApiVersionsRequest(), 0, ApiVersionsResponse)
        size = int(chosen or LOCAL_SEND_BUFFER_BYTES)
        if size < 0:
            assert running.look(buffers) != [2 * LOCAL_SEND_BUFFER_BYTES]
        else:
            assert running.look(buffers) == [2 * size]


def test_who_is_elsewhere_has_what_the_system_gives(make_broker: Make) -> None:
    with make_broker() as running, running.connect() as peer:
        peer.socket.close()
        peer.socket = socket.create_connection(("127.0.0.1", running.port), timeout=10, source_address=("127.0.0.2", 0))
        peer.ask(ApiVersionsRequest(), 0, ApiVersionsResponse)
        assert 2 * LOCAL_SEND_BUFFER_BYTES not in running.look(buffers)[-1:]


def test_a_socket_that_took_less_than_a_piece_is_not_asked_again_in_its_turn() -> None:
    room, timeline, log = answering_room()
    line = SlowLine(timeline, 0, log)  # takes half a turn at once
    connection = Connection(line, room.listener, 0, room.rounds.touched)  # type: ignore[arg-type]
    connection.unsent = deque((FilePiece(Nothing(), 0, 4 * SENT_A_TURN_BYTES),))  # type: ignore[arg-type]
    connection.send_unsent()
    assert len(log) == 1
