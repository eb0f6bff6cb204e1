"""One connection to one server: the handshake, frames, and answers matched to requests in their order.

A server answers in the order of the requests, so that the next answer is the oldest request's: any other id means that
the two sides disagree, and the connection is given up. Pings alone are answered out of this order. Whatever is not as
it should be (a length, a field, an id, an early end) ends the connection with a reason, once, and never the process:
what becomes of the requests is the session's matter.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, Protocol, cast

from ottla.coordination.interface import Watch
from ottla.coordination.zookeeper.codes import AUTH_XID, NOTIFICATION_XID, PING_XID, OpCode
from ottla.coordination.zookeeper.frames import (
    decode_answer,
    decode_answer_header,
    decode_connect_answer,
    decode_event,
    encode_connect,
    encode_request,
)
from ottla.coordination.zookeeper.jute import LENGTH_BYTES, JuteFault, frame_length, frame_xid, put_xid
from ottla.coordination.zookeeper.messages import ConnectAnswer, ConnectRequest, NodeEvent

#: The children of one node may need more than a request can carry. Kafka gives its client the same four megabytes.
ANSWER_BYTES_MAX: Final = 4 * 1024 * 1024
_XID_MAX: Final = 2**31 - 1
_PING: Final = encode_request(PING_XID, OpCode.PING)


class KeeperAnswer(NamedTuple):
    zxid: int
    #: 0, or ZooKeeper's code; then there are no fields.
    error: int
    #: Of a multi a JuteReader before them.
    fields: Any


@dataclass(slots=True, eq=False)
class KeeperRequest:
    op: OpCode
    #: With the length before it. The xid is put in when it is sent. None while the frame is being made.
    frame: bytearray | None
    #: None: it is the session's own.
    answer: asyncio.Future[KeeperAnswer] | None
    #: Whether it may have changed something when its answer is lost.
    writes: bool
    #: Left with the answer: path on the server, and what is called.
    watch: tuple[str, Watch] | None = None
    #: So many connections were lost when it was the next to be answered.
    losses: int = 0
    xid: int = 0
    sent_ms: int = 0


class ConnectionOwner(Protocol):
    def answered(self, request: KeeperRequest, answer: KeeperAnswer) -> None: ...

    def notified(self, event: NodeEvent) -> None: ...

    def writable(self) -> None:
        """More may be sent."""
        ...

    def lost(self, connection: ServerConnection) -> None:
        """The connection has ended; `fault` says why, and `pending` what was not answered. Called once, and only
        after `start`."""
        ...


class ServerConnection(asyncio.Protocol):
    def __init__(self, server: str, now_ms: Callable[[], int]) -> None:
        self.server = server
        self._now_ms = now_ms
        self._transport: asyncio.Transport | None = None
        self._owner: ConnectionOwner | None = None
        self._shaken: asyncio.Future[ConnectAnswer] = asyncio.get_running_loop().create_future()
        self._buffer = bytearray()
        self._xid = 0
        #: Oldest first: the next answer is the first one's.
        self.pending: deque[KeeperRequest] = deque()
        #: Why it ended, once it has.
        self.fault: str | None = None
        #: Whether it ended since the answer to the oldest request was larger than any may be.
        self.answer_too_large = False
        self.writing_paused = False
        #: When the first request was sent of those since which nothing was received; None: nothing is awaited.
        self.awaiting_since_ms: int | None = None
        #: The server is known to have heard of the session then: when the last of that was sent which it has answered.
        #: Not when the answer was read: it may have waited in the socket for as long as this process stood still.
        self.proven_ms = now_ms()
        #: When the pings were sent that are not answered yet, oldest first.
        self.pings_sent_ms: deque[int] = deque()

    # Its life.

    async def shake_hands(self, request: ConnectRequest) -> ConnectAnswer:
        """Raises ConnectionResetError where there is no answer, or none that can be read."""
        assert self._transport is not None
        self.proven_ms = self._now_ms()
        self._transport.write(encode_connect(request))
        return await self._shaken

    def start(self, owner: ConnectionOwner) -> None:
        """From here on what comes goes to `owner`."""
        self._owner = owner
        if self.fault is not None:
            owner.lost(self)

    def end(self, fault: str) -> None:
        """Ends it, if it has not ended yet; the owner is called."""
        if self.fault is not None:
            return
        self.fault = fault
        self._buffer.clear()
        if self._transport is not None:
            self._transport.abort()
        if not self._shaken.done():
            self._shaken.set_exception(ConnectionResetError(fault))
            self._shaken.exception()
        if self._owner is not None:
            self._owner.lost(self)

    # Sending.

    def send(self, request: KeeperRequest) -> None:
        assert self.fault is None
        assert request.frame is not None
        self._xid = 1 if self._xid == _XID_MAX else self._xid + 1
        request.xid = self._xid
        request.sent_ms = self._now_ms()
        put_xid(request.frame, request.xid)
        self.pending.append(request)
        self._write(request.frame)

    def ping(self) -> None:
        self.pings_sent_ms.append(self._now_ms())
        self._write(_PING)

    def _write(self, frame: bytes | bytearray) -> None:
        assert self._transport is not None
        if self.awaiting_since_ms is None:
            self.awaiting_since_ms = self._now_ms()
        self._transport.write(frame)

    # Receiving.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        self.awaiting_since_ms = None
        self._buffer += data
        try:
            self._take_frames()
        except JuteFault as fault:
            self.end(f"{self.server} sent what cannot be read: {fault}")
            return
        if self.fault is None and self.pending and self.awaiting_since_ms is None:
            self.awaiting_since_ms = self._now_ms()

    def eof_received(self) -> None:
        self.end(f"{self.server} closed the connection")

    def connection_lost(self, error: Exception | None) -> None:
        self.end(f"the connection to {self.server} broke: {error or 'it was closed'}")

    def pause_writing(self) -> None:
        self.writing_paused = True

    def resume_writing(self) -> None:
        self.writing_paused = False
        if self._owner is not None and self.fault is None:
            self._owner.writable()

    def _take_frames(self) -> None:
        buffer, start = self._buffer, 0
        while self.fault is None and len(buffer) - start >= LENGTH_BYTES:
            length = frame_length(buffer, start)
            if not 0 <= length <= ANSWER_BYTES_MAX:
                self._refuse_length(length, start + LENGTH_BYTES)
                break
            end = start + LENGTH_BYTES + length
            if len(buffer) < end:
                break
            self._take(bytes(buffer[start + LENGTH_BYTES : end]))
            start = end
        if self.fault is None:
            del buffer[:start]

    def _refuse_length(self, length: int, position: int) -> None:
        """An answer that is too large ends the connection, as does garbage; the request it answers is to know."""
        if length > 0 and self._owner is not None:
            if len(self._buffer) - position < LENGTH_BYTES:
                return  # the xid comes with the next bytes
            xid = frame_xid(self._buffer, position)
            self.answer_too_large = bool(self.pending) and self.pending[0].xid == xid
        raise JuteFault(f"a frame of {length} bytes, where {ANSWER_BYTES_MAX} are the limit")

    def _take(self, frame: bytes) -> None:
        if not self._shaken.done():
            self._shaken.set_result(decode_connect_answer(frame))
            return
        owner = self._owner
        if owner is None:
            raise JuteFault("a frame before anything was asked")
        header, rest = decode_answer_header(frame)
        if header.xid == NOTIFICATION_XID:
            owner.notified(decode_event(rest))
        elif header.xid == PING_XID:
            if self.pings_sent_ms:
                self._prove(self.pings_sent_ms.popleft())
        elif header.xid != AUTH_XID:
            if not self.pending or self.pending[0].xid != header.xid:
                due = f"request {self.pending[0].xid}'s" if self.pending else "nobody's"
                raise JuteFault(f"an answer to request {header.xid}, where {due} was due")
            request = self.pending[0]
            # A multi's results may be thousands: the caller that waits for them reads them in steps.
            is_late = request.op == OpCode.MULTI
            fields = None if header.error else rest if is_late else decode_answer(request.op, rest)
            self.pending.popleft()  # not before its answer was read: what cannot be read has not answered it
            owner.answered(request, KeeperAnswer(header.zxid, header.error, fields))
            if self.fault is None:  # an answer that the session is over ends the connection
                self._prove(request.sent_ms)

    def _prove(self, sent_ms: int) -> None:
        # Pings overtake requests.
        self.proven_ms = max(self.proven_ms, sent_ms)
