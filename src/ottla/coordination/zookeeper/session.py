"""A session with an ensemble: it outlives its connections, and ends when a server says so or when it is closed.

    CONNECTING --answer--> CONNECTED --connection lost--> DISCONNECTED --answer--> CONNECTED
                                                          DISCONNECTED --"it is over"--> EXPIRED
    any of them --close--> CLOSED

Requests stand in one queue; so many of them are sent ahead of their answers as may be. When a connection is lost,

- a write that was sent fails with ConnectionLoss: nobody knows whether it was done;
- a read that was sent is asked again, after READ_LOSSES_MAX connections no more;
- what was not sent waits for the next connection, for as long as the session lasts.

The next server is sent the session's id and password, then the watches that are left, and where a write was lost a
`sync`: a caller that then reads in order to find out what became of the write sees all that was done, also on a server
that is behind. Only then follow reads and writes.

Only a server can say that a session has expired: this side never ends one by counting it down (`may_live` says what it
would count). What it does by itself is to prove that the process is alive: pings come from the event loop that serves
the clients, so that a loop which stands still for long loses its session, as it should.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from enum import Enum
from functools import partial
from typing import Any, Final, NamedTuple

from ottla import logs
from ottla.coordination.errors import (
    ConnectionLoss,
    CoordinationError,
    DataTooLarge,
    ServersUnreachable,
    SessionClosed,
    SessionExpired,
    WriteRefused,
)
from ottla.coordination.interface import (
    REQUEST_BYTES_MAX,
    EventType,
    SessionEvent,
    SessionInfo,
    SessionListener,
    Watch,
    WatchEvent,
)
from ottla.coordination.zookeeper.addresses import Chroot, ServerAddress
from ottla.coordination.zookeeper.codes import OTTLA_PROTOCOL, KeeperError, OpCode, is_certain, name_of_code
from ottla.coordination.zookeeper.connection import KeeperAnswer, KeeperRequest, ServerConnection
from ottla.coordination.zookeeper.deliveries import Deliveries
from ottla.coordination.zookeeper.frames import encode_request
from ottla.coordination.zookeeper.jute import LENGTH_BYTES
from ottla.coordination.zookeeper.messages import (
    ConnectAnswer,
    ConnectRequest,
    EndWithConnectionRequest,
    NodeEvent,
    PathRequest,
)
from ottla.coordination.zookeeper.servers import EnsembleServers, SessionUnknown
from ottla.coordination.zookeeper.watching import LeftWatches
from ottla.metrics.times import Times
from ottla.ports.clock import Clock
from ottla.ports.entropy import Entropy
from ottla.ports.network import Network

#: Requests that wait or are under way: as many as the tree in this process takes.
QUEUE_MAX: Final = 20_000
#: A read that so many connections were lost under is likelier the cause than a victim.
READ_LOSSES_MAX: Final = 5
#: A ping a fifth of the time-out: a session of 1.5 s is heard of each 300 ms, and survives three that are lost.
PINGS_A_TIMEOUT: Final = 5
#: A server that answers requests and no pings is left after twenty time-outs.
PINGS_UNANSWERED_MAX: Final = 100
#: Whatever time-out a server says.
PING_MS_MIN: Final = 10
#: A server that leaves a request unanswered for half of the time-out is left, so that the other half is enough for
#: another one. A ping waits behind the session's writes, and these for the ensemble's disks: less would be hasty.
SILENCE_PARTS: Final = 2
#: How long `close` waits for the ensemble: after it the session is left to its time-out.
CLOSE_MS_MAX: Final = 3_000
#: How soon a tree of this project ends a session whose connection has closed: long enough for the next connection.
END_GRACE_MS: Final = 250

_log = logs.logger("coordination")


class SessionOptions(NamedTuple):
    servers: Sequence[ServerAddress]
    chroot: Chroot
    timeout_ms: int
    connection_timeout_ms: int
    in_flight_max: int
    #: Asks a tree of this project to end the session soon after its connection has closed.
    end_with_connection: bool = False


class SessionState(Enum):
    CONNECTING = "connecting"
    CONNECTED = "connected"
    DISCONNECTED = "disconnected"
    EXPIRED = "expired"
    CLOSED = "closed"


_NEXT: Final = {
    (SessionState.CONNECTING, SessionState.CONNECTED),
    (SessionState.CONNECTED, SessionState.DISCONNECTED),
    (SessionState.DISCONNECTED, SessionState.CONNECTED),
    (SessionState.DISCONNECTED, SessionState.EXPIRED),
    *((state, SessionState.CLOSED) for state in SessionState if state is not SessionState.CLOSED),
}


class KeeperSession:
    def __init__(self, network: Network, clock: Clock, entropy: Entropy, options: SessionOptions, times: Times) -> None:
        self._clock = clock
        self._options = options
        self._times = times
        self._loop = asyncio.get_running_loop()
        self._state = SessionState.CONNECTING
        self.info = SessionInfo(0, bytes(16), options.timeout_ms)
        self.watches = LeftWatches()
        #: The last transaction that a server has shown this session. No server that is behind it takes the session.
        self.last_zxid = 0
        #: The last one up to which the watches are called: it stays behind while a new connection is given them, which
        #: says by other answers how far its server is.
        self._watched_zxid = 0
        #: Requests of this connection that leave watches, and are not answered yet.
        self._leaving = 0
        self._servers = EnsembleServers(network, clock, entropy, options.servers)
        self._connection: ServerConnection | None = None
        self._queue: deque[KeeperRequest] = deque()
        #: Whether a write was lost, and nothing has shown since that all that was done can be seen.
        self._unsure = False
        self._deliveries = Deliveries()
        self._listeners: list[SessionListener] = []
        self._keeper: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        #: Set when the connection that the keeper has made is lost.
        self._lost = asyncio.Event()
        self._opened: asyncio.Future[None] = self._loop.create_future()
        self._closing: asyncio.Future[KeeperAnswer] | None = None
        self._fault: str | None = None
        #: Of the connections before this one: as `ServerConnection.proven_ms`.
        self._proven_ms = clock.monotonic_ms()

    # Its life.

    @property
    def state(self) -> SessionState:
        return self._state

    @property
    def server(self) -> str | None:
        """The one that it is connected to."""
        return self._connection.server if self._connection else None

    @property
    def fault(self) -> str | None:
        """Why it is over, unless it was closed here; None while it is not."""
        return self._fault

    @property
    def may_live(self) -> bool:
        """Whether it can still be alive by this side's clock. Nothing here rests on it: it is for brokers that are to
        doubt what they are."""
        if self._state in (SessionState.EXPIRED, SessionState.CLOSED):
            return False
        proven_ms = self._proven_ms if self._connection is None else self._connection.proven_ms
        return self._clock.monotonic_ms() - proven_ms < self.info.timeout_ms

    def _become(self, state: SessionState) -> None:
        assert (self._state, state) in _NEXT, f"{self._state} becomes {state}"
        self._state = state

    async def open(self) -> None:
        """Returns when the session is there. Raises ServersUnreachable."""
        self._keeper = self._loop.create_task(self._keep())
        try:
            async with asyncio.timeout(self._options.connection_timeout_ms / 1000):
                await self._opened
        except TimeoutError:
            servers = ", ".join(map(str, self._options.servers))
            waited_ms = self._options.connection_timeout_ms
            why = f" ({self._servers.last_fault})" if self._servers.last_fault else ""
            raise ServersUnreachable(f"none of {servers} could be connected to within {waited_ms} ms{why}") from None
        finally:
            if self._state is SessionState.CONNECTING:
                await self._end()

    async def close(self) -> None:
        """Ends the session on the server, behind what was asked for before. May be called again."""
        if self._closing is not None:
            await asyncio.wait([self._closing])
            return
        self._closing = self._loop.create_future()
        if self._state in (SessionState.CLOSED, SessionState.EXPIRED):
            self._closing.set_result(KeeperAnswer(0, KeeperError.OK, None))
            await self._end()
            return
        # Asked again after a lost connection, as a read is: to end what has ended does nothing.
        frame = bytearray(encode_request(0, OpCode.CLOSE_SESSION))
        self._queue.append(KeeperRequest(OpCode.CLOSE_SESSION, frame, self._closing, writes=False))
        self._pump()
        try:
            async with asyncio.timeout(CLOSE_MS_MAX / 1000):
                await self._closing
        except TimeoutError:
            _log.warning("the session could not be closed, and ends by its time-out", session=f"{self.info.id:#x}")
        except (SessionExpired, ConnectionLoss):
            pass
        finally:
            await self._end()

    async def _end(self) -> None:
        """Nothing of it goes on in this process."""
        if self._state is not SessionState.CLOSED:
            self._become(SessionState.CLOSED)
        connection, self._connection = self._connection, None
        self._stop_timer()
        if connection is not None:
            self._take_back(connection)
            connection.end("the session was closed")
        self.watches.clear()
        self._fail_queue(SessionClosed(f"session {self.info.id:#x} was closed"))
        if self._keeper is not None:
            self._keeper.cancel()
            await asyncio.wait([self._keeper])

    def listen(self, listener: SessionListener) -> None:
        self._listeners.append(listener)

    def _notify(self, event: SessionEvent) -> None:
        for listener in self._listeners:
            self._deliveries.call(partial(listener, event))

    # Requests.

    def ask(
        self, op: OpCode, fields: tuple[Any, ...] | None, *, writes: bool, watch: tuple[str, Watch] | None = None
    ) -> asyncio.Future[KeeperAnswer]:
        """Queues a request. Raises what says that nothing was done; the future gets the answer, whatever its code."""
        self.check_open()
        frame = bytearray(encode_request(0, op, fields))
        _check_size(frame)
        return self.fill(self.reserve(op, writes=writes, watch=watch), frame)

    def reserve(self, op: OpCode, *, writes: bool, watch: tuple[str, Watch] | None = None) -> KeeperRequest:
        """A place in the queue for a request whose frame is still to be made: those behind it wait for `fill`.

        A caller that does not come to fill it cancels its future.
        """
        self.check_open()
        if len(self._queue) >= QUEUE_MAX:
            raise WriteRefused(f"{QUEUE_MAX} requests wait for the ensemble already")
        request = KeeperRequest(op, None, self._loop.create_future(), writes, watch)
        self._queue.append(request)
        return request

    def fill(self, request: KeeperRequest, frame: bytearray) -> asyncio.Future[KeeperAnswer]:
        """Raises DataTooLarge."""
        assert request.answer is not None
        try:
            _check_size(frame)
        except DataTooLarge:
            self.withdraw(request)
            raise
        request.frame = frame
        self._pump()
        return request.answer

    def withdraw(self, request: KeeperRequest) -> None:
        assert request.answer is not None
        request.answer.cancel()
        self._pump()

    def distrust(self, why: str) -> None:
        """The server sent something that cannot be read: the session goes on with another connection."""
        if self._connection is not None:
            self._connection.end(f"{self._connection.server} sent what cannot be read: {why}")

    def check_open(self) -> None:
        """Raises SessionClosed or SessionExpired."""
        if self._closing is not None or self._state is SessionState.CLOSED:
            raise SessionClosed(f"session {self.info.id:#x} was closed")
        if self._state is SessionState.EXPIRED:
            raise SessionExpired(f"session {self.info.id:#x} is over")

    def _pump(self) -> None:
        """Sends what may be sent."""
        connection, queue = self._connection, self._queue
        if connection is None:
            return
        while queue and len(connection.pending) < self._options.in_flight_max and not connection.writing_paused:
            request = queue[0]
            if request.answer is not None and request.answer.done():
                queue.popleft()
            elif request.frame is None or connection.fault is not None:
                return
            else:
                queue.popleft()
                connection.send(request)

    def _fail_queue(self, error: CoordinationError) -> None:
        queue, self._queue = self._queue, deque()
        for request in queue:
            self._fail(request, error)

    def _fail(self, request: KeeperRequest, error: CoordinationError) -> None:
        if request.answer is not None:
            self._deliveries.answer(request.answer, type(error)(*error.args))

    # What the connection calls.

    def answered(self, request: KeeperRequest, answer: KeeperAnswer) -> None:
        self.last_zxid = max(self.last_zxid, answer.zxid)
        self._leaving -= request.op is OpCode.SET_WATCHES and answer.error == KeeperError.OK
        if not self._leaving:
            self._watched_zxid = self.last_zxid
            self._servers.serve_well()
        if request.watch is not None:
            self.watches.answered(request.op, answer.error, *request.watch)
        if request.writes and not is_certain(answer.error):
            self._unsure = True
            self._queue.appendleft(self._own(OpCode.SYNC, self._sync()))
        if request.answer is not None:
            self._times.took(self._clock.monotonic_ms() - request.sent_ms)
            self._deliveries.answer(request.answer, answer)
        connection = self._connection
        if request.answer is None and answer.error == KeeperError.OK and request.op is OpCode.SYNC:
            self._unsure = False
        elif connection is not None and (
            answer.error in _CONNECTION_ENDS or (request.answer is None and answer.error != KeeperError.OK)
        ):
            # The next connection says whether the session is over, or only elsewhere; and it is asked once more for
            # what this one has to do before anything else, as there would be no news of watches that were not taken.
            connection.end(f"{connection.server} answers {name_of_code(answer.error)}")
        self._pump()

    def notified(self, event: NodeEvent) -> None:
        try:
            kind = EventType(event.type)
        except ValueError:
            return  # of the connection, or newer than this client: no watch of ours
        seen = WatchEvent(kind, self._options.chroot.of_client(event.path))
        for watch in self.watches.fired(kind, event.path):
            self._deliveries.call(partial(watch, seen))

    def writable(self) -> None:
        self._pump()

    def lost(self, connection: ServerConnection) -> None:
        if connection is not self._connection:
            return
        self._connection = None
        self._proven_ms = connection.proven_ms
        self._stop_timer()
        self._take_back(connection)
        self._become(SessionState.DISCONNECTED)
        if self._closing is None:
            _log.warning("the connection to ZooKeeper is lost", session=f"{self.info.id:#x}", why=connection.fault)
            self._notify(SessionEvent.DISCONNECTED)
        self._lost.set()

    def _take_back(self, connection: ServerConnection) -> None:
        """What was sent and not answered fails, or is asked again before all others."""
        again: list[KeeperRequest] = []
        for position, request in enumerate(connection.pending):
            # Servers answer in order: if any request is the cause, it is the first.
            request.losses += position == 0
            if request.answer is None or request.answer.done():
                self._unsure = self._unsure or request.writes or request.op is OpCode.SYNC
            elif request.writes:
                self._unsure = True
                self._fail(request, ConnectionLoss(f"{connection.fault or 'the session was closed'}"))
            elif position == 0 and connection.answer_too_large:
                self._fail(request, DataTooLarge(f"its answer is larger than any may be: {connection.fault}"))
            elif request.losses >= READ_LOSSES_MAX:
                self._fail(request, ConnectionLoss(f"{READ_LOSSES_MAX} times: {connection.fault}"))
            else:
                again.append(request)
        connection.pending.clear()
        self._queue.extendleft(reversed(again))

    # Connecting.

    async def _keep(self) -> None:
        """Sees to it that the session has a connection, until it is over."""
        try:
            while True:
                info = self.info
                request = ConnectRequest(0, self.last_zxid, self._options.timeout_ms, info.id, info.password)
                self._connected(*await self._servers.connect(request, info.timeout_ms))
                await self._lost.wait()
                self._lost.clear()
        except SessionUnknown:
            self._expire(f"session {self.info.id:#x} has expired")
        except Exception as error:  # a fault of ours: without this task nothing would ever be answered
            _log.error("the ZooKeeper client failed", fault=repr(error))
            if self._connection is not None:
                self._connection.end("a fault in the client")
            self._expire(f"a fault in the ZooKeeper client: {error!r}")

    def _connected(self, connection: ServerConnection, answer: ConnectAnswer) -> None:
        self.info = SessionInfo(answer.session_id, answer.password, answer.timeout_ms)
        self._become(SessionState.CONNECTED)
        self._connection = connection
        _log.info(
            "connected to ZooKeeper",
            server=connection.server,
            session=f"{answer.session_id:#x}",
            timeout_ms=answer.timeout_ms,
        )
        if self._closing is None:
            self._notify(SessionEvent.CONNECTED)
        if not self._opened.done():
            self._opened.set_result(None)
        self._start_timer()
        connection.start(self)  # which may find that it is lost already
        self._greet(connection, is_ottla=answer.protocol_version == OTTLA_PROTOCOL)
        self._pump()

    def _greet(self, connection: ServerConnection, *, is_ottla: bool) -> None:
        """What a new connection is sent before anything else."""
        if is_ottla and self._options.end_with_connection:
            self._send_own(connection, OpCode.END_WITH_CONNECTION, EndWithConnectionRequest(END_GRACE_MS))
        leaving = list(self.watches.requests(self._watched_zxid))
        self._leaving = len(leaving)
        for request in leaving:
            self._send_own(connection, OpCode.SET_WATCHES, request)
        if self._unsure:
            self._send_own(connection, OpCode.SYNC, self._sync())

    def _sync(self) -> PathRequest:
        return PathRequest(self._options.chroot.on_server("/"))

    def _send_own(self, connection: ServerConnection, op: OpCode, fields: tuple[Any, ...]) -> None:
        if connection.fault is None:
            connection.send(self._own(op, fields))

    @staticmethod
    def _own(op: OpCode, fields: tuple[Any, ...]) -> KeeperRequest:
        """A request that nobody waits for: it is not sent again with the next connection, whose greeting does."""
        return KeeperRequest(op, bytearray(encode_request(0, op, fields)), None, writes=False)

    def _expire(self, why: str) -> None:
        if self._state in (SessionState.EXPIRED, SessionState.CLOSED):
            return
        self._fault = why
        if self._state is SessionState.CONNECTING:  # a fault of ours, before there was a session
            self._become(SessionState.CLOSED)
        else:
            self._become(SessionState.EXPIRED)
        self.watches.clear()
        self._fail_queue(SessionExpired(why))
        if not self._opened.done():
            self._opened.set_exception(SessionExpired(why))
        if self._closing is None:
            _log.error("the session with ZooKeeper is over", why=why)
            self._notify(SessionEvent.EXPIRED)

    # Pings.

    def _start_timer(self) -> None:
        interval_ms = max(PING_MS_MIN, self.info.timeout_ms / PINGS_A_TIMEOUT)
        self._timer = self._loop.call_later(interval_ms / 1000, self._look)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _look(self) -> None:
        connection = self._connection
        if connection is None:
            return
        now_ms, since_ms = self._clock.monotonic_ms(), connection.awaiting_since_ms
        if since_ms is not None and now_ms - since_ms >= self.info.timeout_ms / SILENCE_PARTS:
            connection.end(f"{connection.server} has not answered for {now_ms - since_ms} ms")
            return
        if len(connection.pings_sent_ms) >= PINGS_UNANSWERED_MAX:
            connection.end(f"{connection.server} leaves {PINGS_UNANSWERED_MAX} pings unanswered")
            return
        connection.ping()
        self._start_timer()


#: Codes after which a connection is good for nothing.
_CONNECTION_ENDS: Final = frozenset({KeeperError.SESSION_EXPIRED, KeeperError.SESSION_MOVED})


def _check_size(frame: bytearray) -> None:
    size = len(frame) - LENGTH_BYTES
    if size > REQUEST_BYTES_MAX:
        raise DataTooLarge(f"a request of {size} bytes: {REQUEST_BYTES_MAX} are the limit")
