"""A client that sends what it is given and shows what comes back, over a plain socket."""

from __future__ import annotations

import socket
import struct
from typing import Any, NamedTuple, Self

from ottla.coordination.zookeeper.codes import NOTIFICATION_XID, PING_XID, OpCode
from ottla.coordination.zookeeper.frames import (
    decode_answer,
    decode_answer_header,
    decode_connect_answer,
    decode_event,
    encode_connect,
    encode_request,
)
from ottla.coordination.zookeeper.jute import JuteReader
from ottla.coordination.zookeeper.messages import AnswerHeader, ConnectAnswer, ConnectRequest, NodeEvent

SECONDS_MAX = 60.0


class Answer(NamedTuple):
    header: AnswerHeader
    #: Of an answer without an error.
    fields: Any


class Ended(Exception):
    """The server has closed the connection."""


class WireClient:
    def __init__(self, port: int, *, session: ConnectAnswer | None = None, timeout_ms: int = 10_000) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=SECONDS_MAX)
        self.events: list[NodeEvent] = []
        self._xid = 0
        #: What was asked and not answered, in order.
        self._asked: list[tuple[int, int]] = []
        self.connect(session, timeout_ms)

    def connect(self, session: ConnectAnswer | None, timeout_ms: int) -> None:
        known = (session.session_id, session.password) if session is not None else (0, bytes(16))
        self.send(encode_connect(ConnectRequest(0, 0, timeout_ms, *known)))
        self.session = decode_connect_answer(self.frame())

    def send(self, data: bytes) -> None:
        self.socket.sendall(data)

    def frame(self) -> bytes:
        (length,) = struct.unpack(">i", self._bytes(4))
        return self._bytes(length)

    def _bytes(self, count: int) -> bytes:
        data = b""
        while len(data) < count:
            piece = self.socket.recv(count - len(data))
            if not piece:
                raise Ended
            data += piece
        return data

    # Requests.

    def ask(self, op: int, request: tuple[Any, ...] | None = None, *, xid: int | None = None) -> int:
        """Sends a request and returns its xid."""
        if xid is None:
            self._xid += 1
            xid = self._xid
        self.send(encode_request(xid, OpCode(op), request))
        self._asked.append((xid, op))
        return xid

    def ask_raw(self, op: int, body: bytes) -> int:
        """The same with any bytes behind the header."""
        self._xid += 1
        self.send(struct.pack(">iii", 8 + len(body), self._xid, op) + body)
        self._asked.append((self._xid, op))
        return self._xid

    def answer(self) -> Answer:
        """The answer to the first request that is not answered; notifications before it are kept in `events`."""
        while True:
            header, reader = decode_answer_header(self.frame())
            if header.xid == NOTIFICATION_XID:
                self.events.append(decode_event(reader))
                continue
            if header.xid == PING_XID:
                self._asked = [each for each in self._asked if each[1] != OpCode.PING]
                return Answer(header, None)
            xid, op = self._asked.pop(0)
            assert header.xid == xid, f"the answer to {header.xid} where that to {xid} is due"
            return Answer(header, self._fields(op, header, reader))

    @staticmethod
    def _fields(op: int, header: AnswerHeader, reader: JuteReader) -> Any:
        return decode_answer(op, reader) if header.error == 0 else None

    def call(self, op: int, request: tuple[Any, ...] | None = None) -> Answer:
        self.ask(op, request)
        return self.answer()

    def close(self) -> None:
        self.socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
