"""One connection: requests out, pipelined, and their answers in, in the same order.

A broker answers a connection's requests in their order, so the oldest unanswered request is the only one that the next
frame may answer: any other correlation id means that the two sides disagree, and the connection is closed. A request
that times out closes it too, since its late answer would stand before all others.

Frames are cut out of one fixed buffer; a frame that does not fit is received straight into a buffer of its own size,
so that a fetch of fifty megabytes is copied no more often than one of fifty bytes.
"""

from __future__ import annotations

import asyncio
import socket
from collections import deque
from typing import TYPE_CHECKING, Final, TypeVar, cast

from ottla.client.errors import (
    BadAnswer,
    BadArgument,
    ClientClosed,
    ConnectionLost,
    KafkaError,
    RequestTimedOut,
    UnsupportedVersion,
    error_of,
)
from ottla.client.wire.pending import PendingRequest, decoded
from ottla.model import ErrorCode
from ottla.protocol.apis import ApiKey, api
from ottla.protocol.errors import DecodeError, EncodeError
from ottla.protocol.fields import INT16, INT32, LENGTH_BYTES
from ottla.protocol.generated.api_versions import ApiVersionsRequest, ApiVersionsResponse
from ottla.protocol.header import RequestHeader, encode_request
from ottla.protocol.message import Message

if TYPE_CHECKING:
    from collections.abc import Callable

#: What is received at once where no large frame is under way.
SCRATCH_BYTES: Final = 64 * 1024
#: Of what a broker serves: it says that in some 1,000 bytes.
FIRST_ANSWER_BYTES_MAX: Final = 1024 * 1024
#: Unanswered requests on one connection.
IN_FLIGHT_MAX: Final = 100
#: How long closing waits for a peer to take what was written to it.
CLOSE_SECONDS_MAX: Final = 5.0
CORRELATION_MAX: Final = 2**31 - 1
SOFTWARE_NAME: Final = "ottla"

Answer = TypeVar("Answer", bound=Message)


class BrokerConnection(asyncio.BufferedProtocol):
    """An open connection to one broker; made by `dialling.connect`."""

    def __init__(self, peer: str, client_id: str, answer_bytes_max: int) -> None:
        self.peer = peer
        self._client_id = client_id
        #: Of the next answer. Of the first it takes little: another program may have the port of a broker that is gone.
        self._answer_bytes_max = FIRST_ANSWER_BYTES_MAX
        self._later_answer_bytes_max = answer_bytes_max
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        #: Oldest first: the next frame answers the first.
        self._pending: deque[PendingRequest] = deque()
        self._room: deque[asyncio.Future[None]] = deque()
        self._correlation_id = 0
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = 0.0
        self._versions: dict[int, tuple[int, int]] = {}
        #: The cluster's finalized features when this connection was made, and their levels.
        self.features: dict[str, int] = {}
        #: Why the connection ended, once it has.
        self.fault: KafkaError | None = None
        #: When something was last asked or answered, in the loop's time.
        self.last_used = self._loop.time()
        #: Before this, in the loop's time, the broker wants nothing more of us.
        self.throttled_until = 0.0
        self._writing_paused = False
        #: While it is being closed: the fault that waiting callers get, and a future that ends when it is closed.
        self._leaving: tuple[KafkaError, asyncio.Future[None]] | None = None
        #: Called when what was written has gone out and more may be.
        self.on_writable: Callable[[], None] | None = None
        #: Called once when the connection has ended.
        self.on_lost: Callable[[BrokerConnection], None] | None = None
        self._scratch = bytearray(SCRATCH_BYTES)
        self._scratch_view = memoryview(self._scratch)
        self._filled = 0
        self._frame_view: memoryview | None = None
        self._frame_filled = 0

    # What callers use

    @property
    def closed(self) -> bool:
        return self.fault is not None

    @property
    def in_flight(self) -> int:
        return len(self._pending)

    @property
    def sendable(self) -> bool:
        """Whether a request sent now would go out now."""
        return (
            self.fault is None
            and not self._writing_paused
            and self._transport is not None
            and not self._transport.is_closing()
            and len(self._pending) < IN_FLIGHT_MAX
            and (not self.throttled_until or self._loop.time() >= self.throttled_until)
        )

    def version(self, api_key: int, *, at_most: int | None = None, at_least: int = 0) -> int:
        """The newest version of an API that both sides know, within the caller's bounds."""
        ours = api(api_key)
        low, high = self._versions.get(api_key, (0, -1))
        chosen = min(high, ours.max if at_most is None else min(at_most, ours.max))
        if chosen < max(low, ours.min, at_least):
            theirs = f"{low} to {high}" if high >= low else "not at all"
            raise UnsupportedVersion(
                f"{self.peer} serves {ours.name} {theirs}; needed is one of {max(ours.min, at_least)} to "
                f"{ours.max if at_most is None else at_most}"
            )
        return chosen

    def set_receive_buffer(self, size: int) -> None:
        """How many bytes the system holds of what was received and not read; without it the system chooses."""
        assert self._transport is not None
        found = self._transport.get_extra_info("socket")
        if found is not None:
            found.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, size)

    def serves(self, api_key: int, version: int = 0) -> bool:
        low, high = self._versions.get(api_key, (0, -1))
        return low <= version <= high

    def send(
        self, request: Message, response_type: type[Answer], version: int, timeout_ms: int
    ) -> asyncio.Future[Answer]:
        """Writes a request; the future gets its answer, or the fault that ended the connection or the wait."""
        assert request.API_KEY == response_type.API_KEY
        frame = self._framed(request, version)
        future: asyncio.Future[Answer] = self._loop.create_future()
        now = self._loop.time()
        deadline = now + timeout_ms / 1000
        self._expect(PendingRequest(request.API_KEY, version, self._correlation_id, response_type, future, deadline))
        self.last_used = now
        assert self._transport is not None
        self._transport.write(frame)
        return future

    def send_frame(
        self,
        frame: bytearray,
        version: int,
        correlation_at: int,
        taker: Callable[[bytes | memoryview], None],
        timeout_ms: int,
    ) -> None:
        """Writes a request that its sender has encoded, but for the correlation id. `taker` is called with the frame of
        the answer, where that is received; of the connection's end the sender hears by `on_lost` alone."""
        if self.fault is not None:
            raise _copied(self.fault)
        key = INT16.unpack_from(frame, LENGTH_BYTES)[0]
        INT32.pack_into(frame, correlation_at, self._next_correlation_id())
        now = self._loop.time()
        self._expect(PendingRequest(key, version, self._correlation_id, None, taker, now + timeout_ms / 1000))
        self.last_used = now
        assert self._transport is not None
        self._transport.write(frame)

    def send_unanswered(self, request: Message, version: int) -> None:
        """Writes a request that the broker does not answer (Produce with acks=0)."""
        frame = self._framed(request, version)
        self.last_used = self._loop.time()
        assert self._transport is not None
        self._transport.write(frame)

    async def ask(
        self,
        request: Message,
        response_type: type[Answer],
        *,
        timeout_ms: int,
        at_most: int | None = None,
        at_least: int = 0,
    ) -> Answer:
        """Sends a request in the newest common version as soon as there is room for it, and gives its answer."""
        version = self.version(request.API_KEY, at_most=at_most, at_least=at_least)
        await self.room(timeout_ms)
        return await self.send(request, response_type, version, timeout_ms)

    async def room(self, timeout_ms: int) -> None:
        """Waits until a request would go out at once."""
        try:
            while not self.sendable:
                await self._wait_for_room(timeout_ms)
        except BaseException:
            # It may have been woken, and goes without sending: no answer of its own wakes who waits behind it.
            if len(self._pending) < IN_FLIGHT_MAX:
                self._wake_room()
            raise

    async def close(self) -> None:
        """Ends the connection when what was written has gone out, or after a while if the peer does not take it."""
        closed = ClientClosed(f"the connection to {self.peer} was closed")
        transport = self._transport
        if self.fault is None and transport is not None and transport.get_write_buffer_size():
            gone = self._loop.create_future()
            self._leaving = (closed, gone)
            transport.close()
            await asyncio.wait([gone], timeout=CLOSE_SECONDS_MAX)
        self.abandon(closed)

    def abandon(self, fault: KafkaError) -> None:
        """Ends the connection; callers that wait for an answer get `fault`."""
        if self.fault is not None:
            return
        self.fault = fault
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._transport is not None:
            self._transport.abort()
        pending, self._pending = self._pending, deque()
        for one in pending:
            future = one.answer_to
            if isinstance(future, asyncio.Future) and not future.done():
                future.set_exception(_copied(fault))
                future.exception()  # the caller may have gone: that is no news for the log
        self._frame_view = None
        self._wake_room(all_=True)
        if self.on_lost is not None:
            self.on_lost(self)

    # Sending

    def _next_correlation_id(self) -> int:
        self._correlation_id = 0 if self._correlation_id == CORRELATION_MAX else self._correlation_id + 1
        return self._correlation_id

    def _expect(self, pending: PendingRequest) -> None:
        self._pending.append(pending)
        if self._timer is None or pending.deadline < self._timer_at:
            self._set_timer(pending.deadline)

    def _framed(self, request: Message, version: int) -> bytes:
        if self.fault is not None:
            raise _copied(self.fault)
        header = RequestHeader(
            api_key=request.API_KEY,
            api_version=version,
            correlation_id=self._next_correlation_id(),
            client_id=self._client_id,
        )
        try:
            return encode_request(header, request)
        except EncodeError as error:  # of a value that a caller gave, in an argument that nobody checked
            raise BadArgument(str(error)) from error

    async def _wait_for_room(self, timeout_ms: int) -> None:
        if self.fault is not None:
            raise _copied(self.fault)
        pause = self.throttled_until - self._loop.time()
        if pause > 0:
            await asyncio.sleep(min(pause, timeout_ms / 1000))
            return
        waiter: asyncio.Future[None] = self._loop.create_future()
        self._room.append(waiter)
        try:
            await asyncio.wait_for(waiter, timeout_ms / 1000)
        except TimeoutError:
            raise RequestTimedOut(
                f"{self.peer} left unanswered what was asked before: {self.in_flight} in {timeout_ms} ms"
            ) from None

    def _wake_room(self, *, all_: bool = False) -> None:
        while self._room:
            waiter = self._room.popleft()
            if not waiter.done():
                waiter.set_result(None)
                if not all_:
                    return

    def pause_writing(self) -> None:
        self._writing_paused = True

    def resume_writing(self) -> None:
        self._writing_paused = False
        self._wake_room(all_=True)
        if self.on_writable is not None:
            self.on_writable()

    # Time-outs

    def _set_timer(self, at: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer_at = at
        self._timer = self._loop.call_at(at, self._look_at_deadlines)

    def _look_at_deadlines(self) -> None:
        self._timer = None
        if not self._pending:
            return
        first = min(self._pending, key=lambda pending: pending.deadline)
        if first.deadline <= self._loop.time():
            name = api(first.api_key).name
            self.abandon(RequestTimedOut(f"{self.peer} did not answer {name} in time"))
        else:
            self._set_timer(first.deadline)

    # Receiving

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def get_buffer(self, sizehint: int) -> memoryview:
        if self._frame_view is not None:
            return self._frame_view[self._frame_filled :]
        return self._scratch_view[self._filled :]

    def buffer_updated(self, nbytes: int) -> None:
        frame = self._frame_view
        if frame is None:
            self._filled += nbytes
            self._cut_frames()
            return
        self._frame_filled += nbytes
        if self._frame_filled == len(frame):
            self._frame_view = None
            self._take_answer(frame)

    def _cut_frames(self) -> None:
        """Takes all whole frames out of the buffer; what is left of one stays at its start, or gets a buffer."""
        view, filled, pos = self._scratch_view, self._filled, 0
        while filled - pos >= LENGTH_BYTES and self.fault is None:
            (size,) = INT32.unpack_from(view, pos)
            if not LENGTH_BYTES <= size <= self._answer_bytes_max:
                hint = " If it is, fetch.max.bytes says how much a consumer takes" if self._versions else ""
                self.abandon(BadAnswer(f"{self.peer} announced an answer of {size} bytes: is it a Kafka broker?{hint}"))
                return
            end = pos + LENGTH_BYTES + size
            if end <= filled:
                frame = bytes(view[pos + LENGTH_BYTES : end])
                pos = end
                self._take_answer(frame)
            elif LENGTH_BYTES + size > SCRATCH_BYTES:
                large = memoryview(bytearray(size))
                self._frame_filled = filled - pos - LENGTH_BYTES
                large[: self._frame_filled] = view[pos + LENGTH_BYTES : filled]
                self._frame_view = large
                pos = filled
            else:
                break
        self._filled = filled - pos
        if pos and self._filled:
            self._scratch[: self._filled] = self._scratch[pos:filled]

    def _take_answer(self, frame: bytes | memoryview) -> None:
        if not self._pending:
            self.abandon(BadAnswer(f"{self.peer} sent an answer that nobody had asked for"))
            return
        pending = self._pending[0]
        (correlation_id,) = INT32.unpack_from(frame)
        if correlation_id != pending.correlation_id:
            self.abandon(
                BadAnswer(f"{self.peer} answered request {correlation_id}, but {pending.correlation_id} was next")
            )
            return
        future = pending.answer_to
        if not isinstance(future, asyncio.Future):
            self._pending.popleft()
            self.last_used = self._loop.time()
            future(frame)
            return
        try:
            answer = decoded(frame, pending)
        except DecodeError as error:
            fault = BadAnswer(f"{self.peer} answered {api(pending.api_key).name} with what is none: {error}")
            fault.__cause__ = error
            self.abandon(fault)
            return
        self._pending.popleft()
        self.last_used = self._loop.time()
        throttle_ms: int = getattr(answer, "throttle_time_ms", 0)
        if throttle_ms > 0:
            self.throttled_until = self.last_used + throttle_ms / 1000
        if not future.done():
            future.set_result(answer)
        if self._room:
            self._wake_room()

    def eof_received(self) -> bool:
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        if self._leaving is not None:
            closed, gone = self._leaving
            self.abandon(closed)
            gone.set_result(None)
            return
        reason = f"{self.peer} closed the connection" if exc is None else f"{self.peer}: {exc}"
        self.abandon(ConnectionLost(reason))

    # The first words

    async def negotiate(self, timeout_ms: int) -> None:
        """Asks which versions the broker serves; an old one that does not know our question's version says so."""
        from ottla import __version__

        request = ApiVersionsRequest(client_software_name=SOFTWARE_NAME, client_software_version=__version__)
        version = api(ApiKey.API_VERSIONS).max
        for _ in range(2):
            answer = await self.send(request, ApiVersionsResponse, version, timeout_ms)
            if answer.error_code != ErrorCode.UNSUPPORTED_VERSION:
                break
            served = {one.api_key: one.max_version for one in answer.api_keys}
            version = max(0, min(version - 1, served.get(ApiKey.API_VERSIONS, 0)))
        if answer.error_code:
            raise UnsupportedVersion(f"{self.peer} did not say what it serves: {error_of(answer.error_code)}")
        self._answer_bytes_max = self._later_answer_bytes_max
        self._versions = {one.api_key: (one.min_version, one.max_version) for one in answer.api_keys}
        self.features = {one.name: one.max_version_level for one in answer.finalized_features}


def _copied(fault: KafkaError) -> KafkaError:
    """One exception raised in several places would collect all their tracebacks."""
    copy = type(fault)(str(fault), code=fault.code)
    copy.__cause__ = fault.__cause__
    return copy
