"""A round: receive from every ready connection, serve their frames, write the logs once, send all answers.

The loop body works on locals, since module and attribute look-ups would cost a quarter more. Frames are cut in the
buffer that they were received into; hot handlers may read there until the round ends, when the buffer goes back to the
pool, and all others have a copy.
"""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import Callable, Mapping
from struct import Struct
from types import MappingProxyType
from typing import Any, Final, Protocol

from ottla import logs
from ottla.handlers.peer import Received
from ottla.ports import Clock
from ottla.ports.network import BROKEN, READABLE, WRITABLE
from ottla.server.answer_memory import AnswerMemory
from ottla.server.buffers import FIRST_READ_BYTES, Buffer, BufferPool
from ottla.server.connection import Connection

log_event = logs.logger("server")

#: Frames of one connection in one round; the others' turn comes before its next ones.
FRAMES_A_ROUND: Final = 32
#: What waits for its turn is copied, up to this size, so that its buffer can be used by others.
PARKED_BYTES_MAX: Final = 4096
#: The beginning of a frame, up to this size, gets a buffer of its own: crowds that send no more would hold 64 KB each.
BEGINNING_BYTES_MAX: Final = 1024
#: What is left free behind a rest that was moved, for the next bytes.
ROOM_BYTES: Final = 1024
#: A rest of more than this is not worth another buffer: the one it has is no more than twice as large. Pages of larger
#: ones come with the bytes that are sent.
SHRUNK_BYTES_MAX: Final = FIRST_READ_BYTES // 2
#: What frames may take in one round, those of control connections apart, before all others have their turn.
ROUND_MS: Final = 5
#: A look at the clock comes after so many connections and one more.
_A_LOOK: Final = 3
#: Patient requests in one round: a thousand members that join at once take as long as ever, but others come between.
PATIENT_A_ROUND: Final = 64
#: api key, version and correlation id: no request is shorter.
_REQUEST_BYTES_MIN: Final = 8
_HEAD: Final = Struct(">ihhi")

#: (connection, buffer, start, end, version, correlation id); start is behind the length, at the API key.
ServeFrame = Callable[[Connection, Received, int, int, int, int], None]


class Dispatch(Protocol):
    @property
    def hot(self) -> Mapping[int, ServeFrame]:
        """By API key: those that serve themselves inside the round."""
        ...

    @property
    def patient(self) -> frozenset[int]:
        """API keys of requests that come in crowds, and whose senders wait for one another anyway."""
        ...

    @property
    def round(self) -> Brackets:
        """What stands around the requests of a round."""
        ...

    def serve(self, connection: Connection, buffer: Received, start: int, end: int) -> None: ...


class Brackets(Protocol):
    #: When the round began that is open.
    began_ms: int

    def begin(self) -> None: ...

    def end(self) -> None:
        """Writes what the round staged and makes the answers that waited for it. Faults stay inside."""
        ...


class _NotYet:
    """Stands in until the broker is open: nothing is read before, so there is nothing to serve or to write."""

    hot: Mapping[int, ServeFrame] = MappingProxyType({})
    patient: frozenset[int] = frozenset()
    began_ms = 0

    @property
    def round(self) -> Brackets:
        return self

    def serve(self, connection: Connection, buffer: Received, start: int, end: int) -> None:
        connection.abort()

    def begin(self) -> None: ...

    def end(self) -> None: ...


class Rounds:
    def __init__(self, clock: Clock, frame_bytes_max: int, closed: Callable[[Connection], None]) -> None:
        self._dispatch: Dispatch = _NotYet()
        self._clock = clock
        self._frame_bytes_max = frame_bytes_max
        self._closed = closed
        self._pool = BufferPool()
        #: Connections with frames that a round left for the next one.
        self._backlog: dict[Connection, None] = {}
        #: Connections that something happened to: answers to send, an end to a wait, a close.
        self._touched: list[Connection] = []
        #: Buffers whose frames are served, but whose batches the round has yet to write.
        self._used: list[Buffer] = []
        #: How many patient requests this round may still serve. Those over it stand in the backlog, in their order.
        self._patient_left = 0
        #: When the time of this round's frames is over, and whether some were left for the next one for that.
        self._ends_ms = 0
        self._late = False
        self._running = False
        #: Whether a frame was met in this round whose rest is still to come.
        self._arriving = False
        self._scheduled = False
        #: Whether the last round was over before all who were ready were served.
        self._broken_off = False
        #: What clients have not taken of large answers.
        self.memory: AnswerMemory | None = None

    def open(self, dispatch: Dispatch) -> None:
        self._dispatch = dispatch

    def run(self, ready: list[tuple[Any, int]]) -> bool:
        """Serves everything that is ready, as the network calls it; says whether it pays to look at once for more."""
        self._running = True
        self._arriving = False
        if self._broken_off and ready:
            # The network names them in the same order again, those first who always have something.
            self._broken_off = False
            ready.sort(key=_by_wait)
        dispatch = self._dispatch
        round_of_logs = dispatch.round
        whole = False
        try:
            round_of_logs.begin()
            now_ms = round_of_logs.began_ms
            # New ones stand behind those that wait since the last round.
            some_wait = bool(self._backlog)
            self._patient_left = 0 if some_wait else PATIENT_A_ROUND
            was_late = self._late
            self._ends_ms = now_ms if was_late else now_ms + ROUND_MS
            small, hot = self._pool.kept_small, dispatch.hot.get
            #: Small buffers whose requests are served; their batches are staged until the round is written.
            spent: list[Buffer] = []
            used = spent.append
            unpack, length_max = _HEAD.unpack_from, self._frame_bytes_max
            served = 0
            for connection, events in ready:
                served += 1
                if not served & _A_LOOK and self._clock.monotonic_ms() > now_ms + ROUND_MS:
                    self._broken_off = True
                    break  # the network tells again of whatever was not received
                connection.last_active_ms = now_ms
                if (
                    events != READABLE
                    or connection.buffer is not None
                    or not small
                    or connection.closed
                    or connection.busy
                    or connection.unsent
                    or connection.slots
                ):
                    self._serve_ready(connection, events)
                    continue
                # The rule: one read brings one whole request of an API that serves itself.
                buffer = small.pop()
                try:
                    received = connection.receive_into(buffer.view)
                except OSError as error:
                    small.append(buffer)
                    if not isinstance(error, BlockingIOError):
                        self._lost(connection)
                    continue
                if received < 0:
                    # Its lane knows what to do with the request, and needs the buffer no more.
                    small.append(buffer)
                    continue
                length, key, version, correlation = unpack(buffer.data)
                serve = hot(key)
                try:
                    if length + 4 != received or not _REQUEST_BYTES_MIN <= length <= length_max or serve is None:
                        self._received(connection, buffer, received)
                    else:
                        used(buffer)
                        serve(connection, buffer, 4, received, version, correlation)
                except Exception as fault:
                    self._failed(connection, fault)
            if self._backlog:
                if some_wait:
                    self._patient_left = PATIENT_A_ROUND
                if was_late:
                    self._ends_ms = self._clock.monotonic_ms() + ROUND_MS
                    self._late = False
                if not self._late:
                    self._serve_backlog()
            round_of_logs.end()
            small += spent
            whole = True
        finally:
            self._running = False
            if not whole:
                # Something that is no fault of a request has ended the round before its end. Its batches may still be
                # staged in these buffers, so that nobody may receive into them.
                self._used.clear()
            self._settle()
        return not self._arriving and not self._late

    def _serve_ready(self, connection: Connection, events: int) -> None:
        if connection.closed:
            return
        try:
            if events & WRITABLE and connection.unsent:
                self._send_unsent(connection)
            if events & (READABLE | BROKEN):
                self._receive(connection)
        except Exception as fault:
            self._failed(connection, fault)

    def _serve_backlog(self) -> None:
        backlog, self._backlog = self._backlog, {}
        for connection in sorted(backlog, key=_is_not_control):
            if not connection.closed and connection.buffer is not None:
                self._cut(connection, connection.buffer)

    def touched(self, connection: Connection) -> None:
        """Something happened to a connection; inside a round its end sees to it, else the next turn of the loop."""
        self._touched.append(connection)
        if not self._running:
            # The end of a long wait: the connection must not pass for idle before its answer has left.
            connection.last_active_ms = self._clock.monotonic_ms()
            self._schedule()

    def control_first(self, ready: list[tuple[Any, int]]) -> bool:
        """The round of a server with a control listener: its connections are served before all others."""
        ready.sort(key=lambda entry: _is_not_control(entry[0]))
        return self.run(ready)

    # -- receiving

    def _receive(self, connection: Connection) -> None:
        buffer = connection.buffer
        try:
            if buffer is None:
                buffer = self._pool.small()
                try:
                    received = connection.channel.receive_into(buffer.view)
                except BaseException:
                    self._pool.give_back(buffer)
                    raise
                self._received(connection, buffer, received)
                return
            if connection.end == buffer.size and not self._make_room(connection, buffer):
                connection.mute(True)
                return
            received = connection.channel.receive_into(buffer.view[connection.end :])
        except BlockingIOError:
            return
        except OSError:
            self._lost(connection)
            return
        if received == 0:
            self._peer_gone(connection)
            return
        connection.end += received
        self._cut(connection, buffer)

    def _received(self, connection: Connection, buffer: Buffer, received: int) -> None:
        """Takes up a buffer with the first bytes that a connection without one has sent."""
        if received == 0:
            self._release(buffer)
            self._peer_gone(connection)
            return
        connection.buffer = buffer
        connection.begun_ms = connection.last_active_ms
        connection.start = 0
        connection.end = received
        self._cut(connection, buffer)

    def _make_room(self, connection: Connection, buffer: Buffer) -> bool:
        """Moves the rest of a frame to the front; False where whole frames fill the buffer and wait for their turn."""
        start = connection.start
        if start == 0:
            return False
        rest = connection.end - start
        # Nothing of it is in use: a round receives from a connection before it serves it.
        buffer.data[:rest] = buffer.data[start : connection.end]
        connection.start = 0
        connection.end = rest
        return True

    def _cut(self, connection: Connection, buffer: Buffer) -> None:
        """Serves the whole frames that stand in a connection's buffer."""
        try:
            self._serve_frames(connection, buffer)
        except Exception as fault:
            self._failed(connection, fault)

    def _serve_frames(self, connection: Connection, buffer: Buffer) -> None:
        data = buffer.data
        start = connection.start
        end = connection.end
        unpack = _HEAD.unpack_from
        hot, patient = self._dispatch.hot, self._dispatch.patient
        frames_left = FRAMES_A_ROUND
        needed = 0
        while end - start >= 12:
            length, key, version, correlation = unpack(data, start)
            if length > self._frame_bytes_max or length < _REQUEST_BYTES_MIN:
                self._bad_frame(connection, length)
                return
            frame_end = start + 4 + length
            if frame_end > end:
                needed = length + 4
                self._arriving = True
                break
            taken = connection.takes(key)
            if not taken or not frames_left or self._is_over(connection):
                connection.start = start
                if taken:
                    self._backlog[connection] = None
                self._park(connection, buffer)
                return
            frames_left -= 1
            serve = hot.get(key)
            if serve is None and key in patient:
                if not self._patient_left:
                    connection.start = start
                    self._backlog[connection] = None
                    self._park(connection, buffer)
                    return
                self._patient_left -= 1
            buffer.is_last = frame_end == end
            if serve is not None:
                buffer.in_use = True
                serve(connection, buffer, start + 4, frame_end, version, correlation)
            else:
                self._dispatch.serve(connection, buffer, start + 4, frame_end)
            start = frame_end
            if connection.closed:
                return
            connection.begun_ms = connection.last_active_ms
        connection.start = start
        if start == end:
            connection.buffer = None
            self._release(buffer)
        elif end - start <= BEGINNING_BYTES_MAX and (buffer.size >= FIRST_READ_BYTES or end == buffer.size):
            self._move_to_little(connection, buffer)
            self._release(buffer)
        elif end == buffer.size or (
            # What was given little room gets more when that is full, or each byte would bring it 64 KB.
            needed > buffer.size - start and buffer.size >= FIRST_READ_BYTES and end - start > BEGINNING_BYTES_MAX
        ):
            self._move_rest(connection, buffer, max(needed, FIRST_READ_BYTES))
        if needed == 0 and 4 <= end - start < 12:
            length = int.from_bytes(data[start : start + 4], "big", signed=True)
            if length > self._frame_bytes_max or length < _REQUEST_BYTES_MIN:
                self._bad_frame(connection, length)

    def _is_over(self, connection: Connection) -> bool:
        """Whether this connection's next frame comes too late for this round."""
        if connection.listener.control or self._clock.monotonic_ms() < self._ends_ms:
            return False
        self._late = True
        return True

    def _park(self, connection: Connection, buffer: Buffer) -> None:
        """Keeps what waits for its turn in as much memory as it takes: crowds would soon need many fresh buffers."""
        rest = connection.end - connection.start
        if rest > PARKED_BYTES_MAX or buffer.size != FIRST_READ_BYTES:
            return
        parked = Buffer(rest)
        parked.data[:] = buffer.data[connection.start : connection.end]
        connection.buffer = parked
        connection.start = 0
        connection.end = rest
        self._release(buffer)

    @staticmethod
    def _move_to_little(connection: Connection, buffer: Buffer) -> None:
        """Leaves no more room than for a little; `_move_rest` makes it once more has come."""
        rest = connection.end - connection.start
        little = Buffer(rest + ROOM_BYTES)
        little.data[:rest] = buffer.data[connection.start : connection.end]
        connection.buffer = little
        connection.start = 0
        connection.end = rest

    def shrink(self, connection: Connection) -> None:
        """Outside of a round: what a connection holds becomes no more than what it has sent, and a little."""
        assert not self._running
        buffer, rest = connection.buffer, connection.end - connection.start
        if buffer is None or buffer.size != FIRST_READ_BYTES or rest > SHRUNK_BYTES_MAX:
            return
        self._move_to_little(connection, buffer)
        if not buffer.in_use:
            self._pool.give_back(buffer)

    def _release(self, buffer: Buffer) -> None:
        """Gives a buffer back, at once if nobody needs what stood in it."""
        if buffer.in_use:
            self._used.append(buffer)
        else:
            self._pool.give_back(buffer)

    def _move_rest(self, connection: Connection, buffer: Buffer, size: int) -> None:
        """Puts the beginning of a frame that will not fit here into a buffer of its size."""
        rest = connection.end - connection.start
        try:
            larger = self._pool.at_least(size)
        except OSError as error:
            log_event.warning_limited(
                "closing a connection for whose request there is no memory", peer=connection.host, reason=error
            )
            self._lost(connection)
            return
        larger.data[:rest] = buffer.data[connection.start : connection.end]
        connection.buffer = larger
        connection.start = 0
        connection.end = rest
        self._used.append(buffer)

    # -- ends

    def _bad_frame(self, connection: Connection, length: int) -> None:
        log_event.warning_limited(
            "closing a connection that announced a frame of a bad size", peer=connection.host, bytes=length
        )
        self._lost(connection)

    def _failed(self, connection: Connection, fault: Exception) -> None:
        """A fault of ours in the request of one connection ends that connection alone."""
        log_event.error("a request failed", peer=connection.host, error="".join(traceback.format_exception(fault)))
        self._lost(connection)

    def _peer_gone(self, connection: Connection) -> None:
        """The peer sends no more. Produces of this round are still written and answered; a wait is given up."""
        connection.peer_gone = True
        if connection.produces_open or connection.answers:
            self._touched.append(connection)
        else:
            self._lost(connection)

    def _lost(self, connection: Connection) -> None:
        connection.closed = True
        self._touched.append(connection)

    def _send_unsent(self, connection: Connection) -> None:
        try:
            connection.send_unsent()
        except OSError:
            self._lost(connection)
            return
        self._note_unsent(connection)
        if not connection.unsent:
            self._touched.append(connection)

    def _note_unsent(self, connection: Connection) -> None:
        if self.memory is not None:
            self.memory.note(connection, connection.outgoing_bytes())

    def _settle(self) -> None:
        """The end of a round: answers go out, buffers go back, those whose wait is over go on with their next frame."""
        touched = self._touched
        while touched:
            self._touched = []
            for connection in touched:
                try:
                    self._settle_one(connection)
                except Exception as fault:
                    self._failed(connection, fault)
            touched = self._touched
        pool = self._pool
        for buffer in self._used:
            pool.give_back(buffer)
        self._used.clear()
        if self._backlog:
            self._schedule()

    def _settle_one(self, connection: Connection) -> None:
        if connection.answers and not connection.closed:
            try:
                connection.send_answers()
            except OSError:
                connection.closed = True
        if connection.unsent and not connection.closed:
            self._note_unsent(connection)
        if connection.closed or (connection.peer_gone and not connection.produces_open):
            self._close(connection)
            return
        if connection.busy or connection.unsent:
            return
        if connection.muted:
            connection.mute(False)
        if connection.buffer is not None and connection.end - connection.start >= 12:
            self._backlog[connection] = None

    def _close(self, connection: Connection) -> None:
        if connection.released:
            return
        self._backlog.pop(connection, None)
        try:
            connection.release()
        except Exception as fault:
            # Its socket is closed all the same.
            self._failed(connection, fault)
        if connection.buffer is not None:
            self._used.append(connection.buffer)
            connection.buffer = None
        self._note_unsent(connection)
        self._closed(connection)

    def close_connection(self, connection: Connection) -> None:
        """Closes from outside a round: idle for too long, or the server stops."""
        self._close(connection)
        if not self._running:
            self._settle()

    def _schedule(self) -> None:
        if not self._scheduled:
            self._scheduled = True
            asyncio.get_running_loop().call_soon(self._run_scheduled)

    def _run_scheduled(self) -> None:
        self._scheduled = False
        self.run([])


def _is_not_control(connection: Connection) -> bool:
    return not connection.listener.control


def _by_wait(entry: tuple[Any, int]) -> tuple[bool, int]:
    """Who has waited longest comes first, behind those of a control listener."""
    return _is_not_control(entry[0]), entry[0].last_active_ms
