"""A round: receive from every ready connection, serve their frames, write the logs once, send all answers.

The loop body works on locals, since module and attribute look-ups would cost a quarter more. Frames are cut in the
buffer that they were received into; hot handlers may read there until the round ends, when the buffer goes back to the
pool, and all others have a copy.

    begin ▶ control's backlog ▶ all that are ready ▶ bulk ▶ backlog ▶ write, answer ▶ settle: send, close, give back
                                     │                               (the logs' round)
    ready and clear ─────────────────┼─ one read brings one whole frame of a hot API: served where it stands
                                     ├─ its lane knows it: nothing is left to do
                                     └─ anything else: frames are cut, of which some are served
    ready, in the midst of a frame ──── bulk: behind those, with a time of its own
    ready, and anything in progress ─── received if it may be; frames are cut

Where frames are left a connection stands in one of three places until the next round, which is scheduled as long
as anything stands there:

    backlog    whole frames whose turn is to come: first those that waited, in the order of their turns
    touched    something has happened to it between rounds: answers, the end of a wait, a fault (`settling.py`)
    ended      closed, and not yet released (there too)

A round has a bound for its time, for the frames of each connection, and for those that may take long. What is over it
is left where it is: unread with the network, or in the backlog (docs/decisions/whose-turn.md).
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any

from ottla import logs
from ottla.handlers.routes import PRODUCE
from ottla.ports import Clock
from ottla.ports.network import BROKEN, READABLE, WRITABLE
from ottla.protocol.fields import INT32, LENGTH_BYTES, REQUEST_FIELDS_BYTES, REQUEST_HEAD, REQUEST_HEAD_BYTES
from ottla.server.bad_frames import log_bad_frame
from ottla.server.buffers import Buffer
from ottla.server.connection import Connection
from ottla.server.dispatching import Dispatch, NotYet
from ottla.server.incoming import IncomingBuffers
from ottla.server.round_bounds import (
    CROWDED_MS,
    DONE_A_LOOK,
    DONE_BY_HOT,
    FRAMES_A_CYCLE,
    FRAMES_A_ROUND,
    NO_CROWD,
    PATIENT_A_ROUND,
    ROUND_MS,
    SHORT_BYTES,
    WRITTEN_A_MS_SHIFT,
)
from ottla.server.settling import Settling
from ottla.server.whose_turn import in_turn

log_event = logs.logger("server")


class Rounds:
    def __init__(self, clock: Clock, frame_bytes_max: int, closed: Callable[[Connection], None]) -> None:
        self._dispatch: Dispatch = NotYet()
        self._clock = clock
        self._frame_bytes_max = frame_bytes_max
        self._incoming = IncomingBuffers()
        #: Connections with frames that a round left for the next one, in the order of their turns.
        self._backlog: dict[Connection, None] = {}
        self.settling = self._make_settling(closed)
        #: How many patient requests this round may still serve. Those over it stand in the backlog, in their order.
        self._patient_left = 0
        #: Frames of one connection in this round.
        self._frames_each = FRAMES_A_ROUND
        #: When the time of these frames is over, and whether some were left for the next round for that.
        self._ends_ms = 0
        self._late = False
        #: When somebody last had something for us.
        self.served_ms = 0
        self._running = False
        #: Whether a frame was met in this round whose rest is still to come.
        self._arriving = False
        self._scheduled = False
        #: Whether a round has come since one was scheduled.
        self._came = False
        #: Whether one of the listeners is the controller's.
        self._has_control = False
        #: Connections that were ready when the last round was over, and what for. They are first in the next one.
        self._passed_over: dict[Connection, int] = {}

    def _make_settling(self, closed: Callable[[Connection], None]) -> Settling:
        return Settling(self._clock, self._incoming, self._backlog, closed)

    def open(self, dispatch: Dispatch) -> None:
        self._dispatch = dispatch

    def run(self, ready: list[tuple[Any, int]]) -> bool:
        """Serves everything that is ready, as the network calls it; says whether it pays to look at once for more.

        It is one piece, and longer than a function should be: what stands in the loop is done for each request, on
        locals. Taken apart, each request would pay for calls, and for passing on what is local.
        """
        self._running = self._came = True
        self._arriving = self._late = False
        if self._passed_over:
            ready = in_turn({**self._passed_over, **dict(ready)}, self._clock.monotonic_ms())
            self._passed_over = {}
        dispatch = self._dispatch
        round_of_logs = dispatch.round
        whole = False
        try:
            round_of_logs.begin()
            now_ms = round_of_logs.began_ms
            if ready:
                self.served_ms = now_ms
            some_wait = bool(self._backlog)
            # New ones stand behind those that wait since the last round.
            self._patient_left = 0 if some_wait else PATIENT_A_ROUND
            crowd = len(self._backlog) + len(ready)
            self._frames_each = FRAMES_A_ROUND if crowd <= NO_CROWD else max(FRAMES_A_CYCLE // crowd, 1)
            self._ends_ms = now_ms + ROUND_MS
            small, hot, patient = self._incoming.pool.kept_small, dispatch.hot.get, dispatch.patient
            if some_wait and self._has_control:
                self._serve_control()
            #: Small buffers whose requests are served; their batches are staged until the round is written.
            spent: list[Buffer] = []
            used = spent.append
            #: Connections whose frames come in several pieces: long ones, mostly.
            bulk: list[Connection] = []
            unpack, length_max = REQUEST_HEAD.unpack_from, self._frame_bytes_max
            #: What was done since the last look at the clock, in requests that a lane takes.
            done, look_after = 0, DONE_A_LOOK
            following = iter(ready)
            for connection, events in following:
                if done >= look_after:
                    done = 0
                    if self._clock.monotonic_ms() >= now_ms + ROUND_MS:
                        self._passed_over = dict([(connection, events), *following])
                        self._late = True
                        break
                done += 1
                if (
                    events != READABLE
                    or connection.buffer is not None
                    or not small
                    or not connection.is_open
                    or connection.closed
                    or connection.busy
                    or connection.unsent
                    or connection.slots
                    or connection.answers
                ):
                    if events != READABLE or connection.buffer is None:
                        connection.last_active_ms = now_ms
                        done = look_after  # it may take long
                        self._serve_ready(connection, events)
                    elif connection not in self._backlog:
                        bulk.append(connection)
                    else:
                        # Or the network would name it in each round, and others behind thousands of such.
                        connection.mute(True)
                    continue
                connection.last_active_ms = now_ms
                # The rule: one read brings one whole request.
                buffer = small.pop()
                try:
                    received = connection.receive_into(buffer.view)
                except OSError as error:
                    small.append(buffer)
                    if not isinstance(error, BlockingIOError):
                        self.settling.lost(connection)
                    continue
                if received < 0:
                    # Its lane knows what to do with the request, and needs the buffer no more.
                    small.append(buffer)
                    continue
                if (lane := connection.lane) is not None and lane.waiting:
                    self._claimed(connection, buffer, received)
                    continue
                length, key, version, correlation = unpack(buffer.data)
                serve = hot(key)
                try:
                    is_one = length + LENGTH_BYTES == received and REQUEST_FIELDS_BYTES <= length <= length_max
                    if is_one and serve is not None:
                        used(buffer)
                        serve(connection, buffer, LENGTH_BYTES, received, version, correlation)
                        done = look_after if received > SHORT_BYTES else done + DONE_BY_HOT
                        continue
                    done = look_after  # what follows may take long
                    if is_one and key not in patient:
                        # Its handler has a copy of the request, and nobody receives meanwhile.
                        small.append(buffer)
                        dispatch.serve(connection, buffer, LENGTH_BYTES, received)
                    else:
                        self._received(connection, buffer, received)
                except Exception as fault:
                    self.settling.failed(connection, fault)
            if bulk:
                self._serve_bulk(bulk)
            if self._backlog and (some_wait or not self._late):
                self._serve_backlog(some_wait)
            round_of_logs.end()
            small += spent
            whole = True
        finally:
            self._running = False
            if not whole:
                # Something that is no fault of a request has ended the round before its end.
                self._incoming.abandon_used()
            if self.settling.settle(crowded=bool(self._passed_over)):
                self._schedule()
        return not self._arriving and not self._late

    def _claimed(self, connection: Connection, buffer: Buffer, received: int) -> None:
        """What a lane does not know, while requests of its own wait: those get places before it."""
        try:
            connection.claim_places()
            self._received(connection, buffer, received)
        except Exception as fault:
            self.settling.failed(connection, fault)

    def _serve_ready(self, connection: Connection, events: int) -> None:
        if connection.closed:
            return
        try:
            if events & WRITABLE and connection.unsent:
                # Behind all requests: a crowd that takes long answers slowly would hold them up.
                self.settling.sending.takes_more(connection)
            if events & (READABLE | BROKEN):
                self._receive(connection, broken=bool(events & BROKEN))
        except Exception as fault:
            self.settling.failed(connection, fault)

    def _serve_bulk(self, bulk: list[Connection]) -> None:
        """Long frames have a time of their own: a client that sends a short one waits for the rest of none."""
        now_ms = self._clock.monotonic_ms()
        self._ends_ms = now_ms + (CROWDED_MS if self._passed_over else ROUND_MS)
        for place, connection in enumerate(bulk):
            if place and self._is_over(connection):
                self._passed_over.update(dict.fromkeys(bulk[place:], READABLE))
                return
            connection.last_active_ms = now_ms
            self._serve_ready(connection, READABLE)

    def _serve_control(self) -> None:
        """What the controller's connections have left comes before all that is new."""
        for connection in [each for each in self._backlog if each.listener.control]:
            del self._backlog[connection]
            if not connection.closed and connection.buffer is not None:
                self._cut(connection, connection.buffer)

    def _serve_backlog(self, some_wait: bool) -> None:
        if some_wait:
            # Those that are new have used the time and the places of their own.
            self._late = False
            self._patient_left = PATIENT_A_ROUND
            self._ends_ms = self._clock.monotonic_ms() + (CROWDED_MS if self._passed_over else ROUND_MS)
        waiting = deque(sorted(self._backlog, key=lambda waits: not waits.listener.control))
        self._backlog.clear()
        try:
            while waiting and not self._is_over(waiting[0]):
                connection = waiting.popleft()
                if not connection.closed and connection.buffer is not None:
                    self._cut(connection, connection.buffer)
        finally:
            if waiting:
                # Connections that were served and have more come after those that were not.
                waiting.extend(self._backlog)
                self._backlog.clear()
                self._backlog.update(dict.fromkeys(waiting))

    def touched(self, connection: Connection) -> None:
        """Something happened to a connection; inside a round its end sees to it, else the next turn of the loop."""
        self.settling.touched.append(connection)
        if not self._running:
            # The end of a long wait: the connection must not pass for idle before its answer has left.
            connection.last_active_ms = self._clock.monotonic_ms()
            self._schedule()

    def control_first(self, ready: list[tuple[Any, int]]) -> bool:
        """The round of a server with a control listener: its connections are served before all others."""
        ready.sort(key=lambda entry: not entry[0].listener.control)
        self._has_control = True
        return self.run(ready)

    # -- receiving

    def _receive(self, connection: Connection, *, broken: bool = False) -> None:
        if connection.refused:
            if broken:  # the network would name it again in each round
                self.settling.lost(connection)
            return
        connection.claim_places()
        try:
            received = self._incoming.receive(connection)
        except BlockingIOError:
            return
        except OSError:
            self.settling.lost(connection)
            return
        if received > 0:
            assert connection.buffer is not None
            self._cut(connection, connection.buffer)
        elif broken:
            # Nobody reads there any more; or what it has sent fills its room, so that nothing was received that would
            # have said so. The network would name it again in each round, whether it is muted or not.
            self.settling.lost(connection)
        elif received == 0:
            self.settling.peer_gone(connection)
        else:
            connection.mute(True)

    def _received(self, connection: Connection, buffer: Buffer, received: int) -> None:
        """Takes up a buffer with the first bytes that a connection without one has sent."""
        if received == 0:
            self._incoming.release(buffer)
            self.settling.peer_gone(connection)
            return
        self._incoming.hold(connection, buffer, received)
        self._cut(connection, buffer)

    def _cut(self, connection: Connection, buffer: Buffer) -> None:
        """Serves the whole frames that stand in a connection's buffer."""
        try:
            self._serve_frames(connection, buffer)
        except Exception as fault:
            self.settling.failed(connection, fault)
        if connection.peer_gone:
            self.settling.touched.append(connection)  # that may have been all

    def _serve_frames(self, connection: Connection, buffer: Buffer) -> None:
        data = buffer.data
        start = connection.start
        end = connection.end
        unpack = REQUEST_HEAD.unpack_from
        hot, patient = self._dispatch.hot, self._dispatch.patient
        frames_left = self._frames_each
        needed = 0
        while end - start >= REQUEST_HEAD_BYTES:
            length, key, version, correlation = unpack(data, start)
            if length > self._frame_bytes_max or length < REQUEST_FIELDS_BYTES:
                connection.start = start
                if connection.takes(key):
                    log_bad_frame(length, connection)
                    self.settling.hang_up(connection)
                else:  # what was asked before is answered first
                    self._incoming.park(connection, buffer)
                return
            frame_end = start + LENGTH_BYTES + length
            if frame_end > end:
                needed = length + LENGTH_BYTES
                self._arriving = True
                break
            taken = connection.takes(key)
            if not taken or not frames_left or self._is_over(connection):
                connection.start = start
                if taken:
                    self._backlog[connection] = None
                self._incoming.park(connection, buffer)
                return
            frames_left -= 1
            # A session that is not open is asked about by the dispatcher, for these as for all others.
            serve = hot.get(key) if connection.is_open else None
            if serve is None and key in patient:
                if not self._patient_left:
                    connection.start = start
                    self._backlog[connection] = None
                    self._incoming.park(connection, buffer)
                    return
                self._patient_left -= 1
            if serve is not None:
                buffer.in_use = True
                serve(connection, buffer, start + LENGTH_BYTES, frame_end, version, correlation)
            else:
                self._dispatch.serve(connection, buffer, start + LENGTH_BYTES, frame_end)
            start = frame_end
            self._ends_ms -= length >> WRITTEN_A_MS_SHIFT
            if connection.closed:
                if connection.refused:
                    self.settling.hang_up(connection)
                return
            connection.begun_ms = connection.last_active_ms
        connection.start = start
        try:
            self._incoming.keep_rest(connection, buffer, needed)
        except OSError as error:
            log_event.warning_limited(
                "closing a connection for whose request there is no memory", peer=connection.host, reason=error
            )
            self.settling.lost(connection)
            return
        if connection.muted:
            connection.mute(False)
        if needed == 0 and LENGTH_BYTES <= end - start < REQUEST_HEAD_BYTES:
            (length,) = INT32.unpack_from(data, start)
            is_bad = length > self._frame_bytes_max or length < REQUEST_FIELDS_BYTES
            if is_bad and connection.takes(PRODUCE):
                log_bad_frame(length, connection)
                self.settling.hang_up(connection)

    def _is_over(self, connection: Connection) -> bool:
        """Whether this connection's next frame comes too late for this round."""
        if connection.listener.control or self._clock.monotonic_ms() < self._ends_ms:
            return False
        self._late = True
        return True

    def shrink(self, connection: Connection) -> None:
        """What a connection holds becomes no more than what it has sent, and a little. Outside of a round only."""
        self._incoming.shrink(connection)

    def close_connection(self, connection: Connection) -> None:
        """Closes from outside a round: idle for too long, or the server stops."""
        self.settling.close(connection)
        if not self._running and self.settling.settle(crowded=bool(self._passed_over)):
            self._schedule()

    def _schedule(self) -> None:
        if not self._scheduled:
            self._scheduled = True
            self._came = False
            asyncio.get_running_loop().call_soon(self._run_scheduled)

    def _run_scheduled(self) -> None:
        self._scheduled = False
        if not self._came:
            self.run([])
        elif self.settling.is_left:
            # The network was first. It is asked again before those who wait have more time than those who come.
            self._schedule()
