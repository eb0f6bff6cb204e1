"""The first frame of a connection: a new session is opened, or an earlier one taken up again.

A session that is taken up again needs no write, so that it can be while the disk stands still. A client that knows its
password has it: the connection that had it before is closed. To anybody else it is over, as is one that has ended; and
the connection is closed, as by ZooKeeper.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from ottla import logs
from ottla.coordination.errors import CoordinationError, SessionExpired
from ottla.coordination.interface import SessionInfo
from ottla.coordination.served.connection import Connection
from ottla.coordination.served.rounds import BadFrame
from ottla.coordination.served.serving import Serving
from ottla.coordination.sessions import STORE_SESSION
from ottla.coordination.tree import OpenSession
from ottla.coordination.zookeeper.codes import OTTLA_PROTOCOL
from ottla.coordination.zookeeper.frames import decode_connect_request, encode_connect
from ottla.coordination.zookeeper.jute import JuteFault
from ottla.coordination.zookeeper.messages import ConnectAnswer, ConnectRequest

#: What stands for the password where there is no session.
_NO_PASSWORD: Final = bytes(16)

_log = logs.logger("tree")


class Greeting:
    def __init__(self, serving: Serving, greeted: Callable[[Connection], None]) -> None:
        """`greeted` is called with a connection that has its session from now on."""
        self._serving = serving
        self._greeted = greeted

    def serve(self, connection: Connection, frame: bytes) -> None:
        """Raises BadFrame."""
        self._serving.figures.received += 1
        try:
            request = decode_connect_request(frame)
        except JuteFault as fault:
            raise BadFrame(f"the first frame is no connect request: {fault}") from fault
        store = self._serving.store
        if store.fault is not None:
            # What is in memory of its sessions is not what the next start finds.
            raise BadFrame(store.fault)
        seen, known = request.last_zxid_seen, store.answered_zxid
        if seen > known:
            raise BadFrame(f"the client has seen transaction {seen:#x}, and this tree is at {known:#x}")
        connection.read_only_known = request.read_only is not None
        connection.timeout_ms = self._serving.limits.negotiated(request.timeout_ms)
        connection.greeting = True
        if request.session_id == 0:
            self._open(connection)
        elif self._serving.life.is_ending(request.session_id):
            # What becomes of it the store knows when it has come there. Behind its end is where its own requests are.
            action = partial(self._take_up, connection, request)
            store.submit_read(request.session_id, lambda _: action(), _ActionAnswer(self, connection))
        else:
            self._take_up(connection, request)

    # A new session.

    def _open(self, connection: Connection) -> None:
        store = self._serving.store
        session = store.sessions.new(connection.timeout_ms)
        store.submit_write(STORE_SESSION, [OpenSession(session)], _SessionAnswer(self, connection, session))

    def opened(self, connection: Connection, session: SessionInfo) -> None:
        if connection.closed:
            # Nobody knows its password.
            self._serving.life.begin(session.id, session.timeout_ms)
            self._serving.life.left_alone(session.id, 0)
            return
        self._begin(connection, session)

    def refused(self, connection: Connection, error: CoordinationError) -> None:
        self._serving.rounds.close(connection, f"no session could be opened: {error}")

    # One that was there.

    def _take_up(self, connection: Connection, request: ConnectRequest) -> None:
        session = self._serving.store.sessions.find(request.session_id)
        password = _NO_PASSWORD if session is None else session.password
        matches = hmac.compare_digest(password, request.password)
        if connection.closed:
            return
        if session is not None and matches:
            self._begin(connection, session)
        else:
            self.over(connection)

    def over(self, connection: Connection) -> None:
        """It asks for a session that is not there, or not for it."""
        self._answer(connection, ConnectAnswer(OTTLA_PROTOCOL, 0, 0, _NO_PASSWORD))
        connection.end_when_sent()

    def _begin(self, connection: Connection, session: SessionInfo) -> None:
        self._serving.life.begin(session.id, connection.timeout_ms)
        connection.session_id = session.id
        self._greeted(connection)
        answer = ConnectAnswer(OTTLA_PROTOCOL, connection.timeout_ms, session.id, session.password)
        self._answer(connection, answer)
        connection.greeting = False
        connection.greeted = True

    def _answer(self, connection: Connection, answer: ConnectAnswer) -> None:
        self._serving.figures.sent += 1
        connection.send(encode_connect(answer if connection.read_only_known else answer._replace(read_only=None)))


class _SessionAnswer:
    """Takes the store's answer."""

    __slots__ = ("_connection", "_greeting", "_session")

    def __init__(self, greeting: Greeting, connection: Connection, session: SessionInfo) -> None:
        self._greeting = greeting
        self._connection = connection
        self._session = session

    def done(self) -> bool:
        """Not where the connection has closed: the session may be there by now, and has to be ended."""
        return False

    def set_result(self, _: Any, /) -> None:
        self._greeting.opened(self._connection, self._session)

    def set_exception(self, error: CoordinationError, /) -> None:
        self._greeting.refused(self._connection, error)


class _ActionAnswer:
    """The same, where the action has done all."""

    __slots__ = ("_connection", "_greeting")

    def __init__(self, greeting: Greeting, connection: Connection) -> None:
        self._greeting = greeting
        self._connection = connection

    def done(self) -> bool:
        return self._connection.closed

    def set_result(self, _: Any, /) -> None: ...

    def set_exception(self, error: CoordinationError, /) -> None:
        if isinstance(error, SessionExpired):
            self._greeting.over(self._connection)
        else:
            self._greeting.refused(self._connection, error)
