"""Rounds of a served tree: receive, cut frames, serve some of each connection, send.

A round has a bound for its time, and one for the frames of each connection, the lower the more connections there are.
Frames beyond it stay where they are and have their turn in the loop's next one, one connection after the other;
connections beyond it stay unread, and are the first of the next round.

While very much waits in the store, a connection of which nothing does is served on, one short request at a time. All
others are held back until something was answered, so that a crowd makes nobody wait for more than one request of each.
"""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import Callable
from typing import Any, Final

from ottla import logs
from ottla.coordination.errors import CoordinationError
from ottla.coordination.served.connection import Account, Connection
from ottla.coordination.served.limits import CROWDED, CROWDED_BYTES, HANDSHAKE_BYTES_MAX, WAITING_MAX, ServedLimits
from ottla.coordination.zookeeper.jute import LENGTH_BYTES, frame_length
from ottla.ports.clock import Clock
from ottla.ports.network import WRITABLE

#: How long a round serves, and how long connections with frames left do in one turn: some milliseconds together.
ROUND_MS: Final = 2
#: Frames of one connection in one turn, and of a crowd one after the other.
FRAMES_A_TURN: Final = 32
FRAMES_A_CYCLE: Final = 512
#: What one call receives.
RECEIVED_BYTES: Final = 64 * 1024

_log = logs.logger("tree")


class BadFrame(Exception):
    """The connection ends, for this reason."""


class Rounds:
    def __init__(
        self,
        clock: Clock,
        limits: ServedLimits,
        account: Account,
        serve: Callable[[Connection, bytes], None],
        is_long: Callable[[bytes], bool],
        word: Callable[[Connection, bytes], bool],
        closed: Callable[[Connection], None],
    ) -> None:
        """`serve` takes a frame, `is_long` says whether a request is, `word` whether four bytes are a word and answers
        it, `closed` is called once."""
        self._clock = clock
        self._limits = limits
        self._account = account
        self._serve = serve
        self._is_long = is_long
        self._word = word
        self._closed = closed
        self._buffer = memoryview(bytearray(RECEIVED_BYTES))
        #: Connections with whole frames that wait for their turn.
        self._backlog: dict[Connection, None] = {}
        #: The same that are held back until something was answered, in the order of their turns.
        self._held_back: dict[Connection, None] = {}
        #: Connections that were ready when the last round was over, and what for: the first of the next one. The
        #: network names those first that have been ready for longest, and that are those with the most to read.
        self._passed_over: dict[Connection, int] = {}
        #: Frames of one connection in this turn.
        self._frames_each = FRAMES_A_TURN
        #: Connections that something happened to: answers, the end of a wait.
        self._woken: list[Connection] = []
        self._scheduled = False
        #: Requests that the store has, of all connections, and their bytes.
        self._waiting = 0
        self._waiting_bytes = 0
        #: When somebody last had something for us.
        self.served_ms = 0

    def run(self, ready: list[tuple[Any, int]]) -> bool:
        """Serves what is ready, as the network calls it."""
        self.served_ms = self._clock.monotonic_ms()
        ends_ms = self.served_ms + ROUND_MS
        self._frames_each = _share(len(ready) + len(self._backlog))
        if self._passed_over:
            ready = list({**self._passed_over, **dict(ready)}.items())
            self._passed_over = {}
        following = iter(ready)
        for connection, events in following:
            if not connection.closed:
                self._contained(connection, self._serve_ready, connection, events)
            if self._clock.monotonic_ms() >= ends_ms:
                self._passed_over = dict(following)
                break
        self._settle()
        return False

    def woken(self, connection: Connection) -> None:
        """Something has happened to it out of a round, or in one."""
        if not connection.woken:
            connection.woken = True
            self._woken.append(connection)
            self._schedule()

    def hold(self, connection: Connection, size: int, weight: int) -> None:
        """A request of so many bytes waits, and with its objects it takes as much as `weight` bytes of short ones."""
        self._waiting += 1
        self._waiting_bytes += weight
        connection.hold(size)

    def let_go(self, connection: Connection, size: int, weight: int) -> None:
        """It does so no more: with what `hold` was told of it."""
        self._waiting -= 1
        self._waiting_bytes -= weight
        connection.let_go(size)
        if connection.has_frame:
            self.woken(connection)
        if self._held_back:
            if self._is_crowded:
                first = next(iter(self._held_back))
                del self._held_back[first]
                self._backlog[first] = None
            else:
                self._backlog.update(self._held_back)
                self._held_back.clear()
        if self._backlog:
            self._schedule()

    @property
    def _is_crowded(self) -> bool:
        return self._waiting >= CROWDED or self._waiting_bytes >= CROWDED_BYTES

    @property
    def waiting(self) -> int:
        return self._waiting

    def close(self, connection: Connection, why: str | None = None) -> None:
        if connection.closed:
            return
        if why is not None:
            _log.warning_limited("closing a client's connection", peer=connection.channel.peer, reason=why)
        connection.close()
        self._backlog.pop(connection, None)
        self._held_back.pop(connection, None)
        self._closed(connection)

    def _contained(self, connection: Connection, work: Callable[..., None], *args: Any) -> None:
        """A fault in one connection ends that one."""
        try:
            work(*args)
        except (BadFrame, CoordinationError) as refused:
            self.close(connection, str(refused))
        except OSError:
            self.close(connection)
        except Exception as fault:
            trace = "".join(traceback.format_exception(fault))
            _log.warning_limited("a request could not be served", peer=connection.channel.peer, error=trace)
            self.close(connection)

    # Receiving.

    def _serve_ready(self, connection: Connection, events: int) -> None:
        if events & WRITABLE:
            self.woken(connection)
        if events & ~WRITABLE:
            try:
                size = connection.channel.receive_into(self._buffer)
            except BlockingIOError:
                return
            if not size:
                self.close(connection)
                return
            connection.received(self._buffer[:size])
            self._take_frames(connection)

    def _take_frames(self, connection: Connection) -> None:
        """Serves the whole frames of a connection, as many as may be for now."""
        incoming = connection.incoming
        if connection.is_new and len(incoming) >= LENGTH_BYTES:
            connection.is_new = False
            if self._word(connection, bytes(incoming[:LENGTH_BYTES])):
                if not connection.closed:
                    connection.consume(len(incoming))
                return
        position = 0
        left = self._frames_each
        connection.has_frame = False
        self._held_back.pop(connection, None)
        try:
            while len(incoming) - position >= LENGTH_BYTES:
                if not left or not connection.takes:
                    connection.has_frame = True
                    break
                end = position + LENGTH_BYTES + self._length(connection, incoming, position)
                if end > len(incoming):
                    break
                left -= 1
                frame = bytes(incoming[position + LENGTH_BYTES : end])
                if self._is_crowded and not self._is_let_in(connection, frame):
                    connection.has_frame = True
                    self._held_back[connection] = None
                    break
                position = end
                self._serve(connection, frame)
        finally:
            if position and not connection.closed:
                connection.consume(position)
        self.woken(connection)

    def _is_let_in(self, connection: Connection, frame: bytes) -> bool:
        """Whether a connection is served though so much waits."""
        return not connection.waiting and self._waiting < WAITING_MAX and not self._is_long(frame)

    def _length(self, connection: Connection, incoming: bytearray, position: int) -> int:
        """Of the frame that starts there. Raises BadFrame: nothing is kept for a frame that is too long."""
        length = frame_length(incoming, position)
        bound = self._limits.frame_bytes_max if connection.greeted else HANDSHAKE_BYTES_MAX
        if not 0 <= length <= bound:
            raise BadFrame(f"a frame may have {bound} bytes")
        return length

    # What is left for the loop's next turn.

    def _schedule(self) -> None:
        if not self._scheduled:
            self._scheduled = True
            asyncio.get_running_loop().call_soon(self._next_turn)

    def _next_turn(self) -> None:
        self._scheduled = False
        ends_ms = self._clock.monotonic_ms() + ROUND_MS
        self._frames_each = _share(len(self._backlog))
        for connection in list(self._backlog):
            self._backlog.pop(connection, None)
            if not connection.closed:
                self._contained(connection, self._take_frames, connection)
            if self._clock.monotonic_ms() >= ends_ms:
                break
        self._settle()
        if self._backlog:
            self._schedule()

    def _settle(self) -> None:
        """Sends what there is, and closes what is over."""
        now_ms = self._clock.monotonic_ms()
        woken, self._woken = self._woken, []
        for at, connection in enumerate(woken):
            connection.woken = False
            if connection.closed:
                continue
            self._contained(connection, self._settle_one, connection, now_ms)
            if self._clock.monotonic_ms() >= now_ms + ROUND_MS:
                # The others in the next turn, before what happens meanwhile.
                self._woken = [*woken[at + 1 :], *self._woken]
                break
        if self._woken:
            self._schedule()

    def _settle_one(self, connection: Connection, now_ms: int) -> None:
        connection.flush(now_ms)
        if connection.untaken_since_ms is None and connection.has_ready:
            self.woken(connection)  # more than one turn's worth
        elif connection.ends_when_sent and not (connection.outgoing or connection.waiting):
            self.close(connection)
        elif connection.has_frame and connection.takes and connection not in self._held_back:
            self._backlog[connection] = None
            self._schedule()


def _share(crowd: int) -> int:
    """Frames of each of so many connections."""
    return min(FRAMES_A_TURN, max(FRAMES_A_CYCLE // max(crowd, 1), 1))
