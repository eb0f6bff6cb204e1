"""The end of a round for its connections: answers go out, waits that are over end, and what has ended is closed.

    touched    something has happened to it: answers, the end of a wait, a fault
    ended      closed, and not yet released: to release a thousand costs more than a round may take
    backlog    frames of it are left that its turn comes for: the next round cuts them (`rounds.py`)

A connection is touched by code that has something for it, inside of a round or between two.
"""

from __future__ import annotations

import traceback
from collections import deque
from collections.abc import Callable

from ottla import logs
from ottla.ports import Clock
from ottla.protocol.fields import LENGTH_BYTES
from ottla.server.connection import Connection
from ottla.server.incoming import IncomingBuffers
from ottla.server.round_bounds import CLOSING_CROWDED_MS, CLOSING_MS, SETTLED_A_LOOK
from ottla.server.sending import Sending

log_event = logs.logger("server")


class Settling:
    def __init__(
        self,
        clock: Clock,
        incoming: IncomingBuffers,
        backlog: dict[Connection, None],
        closed: Callable[[Connection], None],
    ) -> None:
        self._clock = clock
        self._incoming = incoming
        self._closed = closed
        self.sending = Sending(clock)
        #: Shared with the rounds, which cut these frames.
        self._backlog = backlog
        #: Connections that something happened to: answers to send, an end to a wait, a close.
        self.touched: list[Connection] = []
        #: Connections that have ended, and still hold what they held.
        self._ended: deque[Connection] = deque()

    def failed(self, connection: Connection, fault: Exception) -> None:
        """A fault of ours in the request of one connection ends that connection alone."""
        log_event.error("a request failed", peer=connection.host, error="".join(traceback.format_exception(fault)))
        self.lost(connection)

    def peer_gone(self, connection: Connection) -> None:
        """The peer sends no more. What it has sent is still served and answered; a wait is given up."""
        connection.peer_gone = True
        if connection.is_over:
            self.lost(connection)
        else:
            connection.mute(True)
            self.touched.append(connection)

    def hang_up(self, connection: Connection) -> None:
        """What has come is no request: nothing more is read, and the connection ends once it has what it is owed.

        Kafka looks at a frame when those before it are answered, so that a bad one costs none of them its answer.
        """
        connection.forget_request()
        self._incoming.let_go(connection)
        self.peer_gone(connection)

    def lost(self, connection: Connection) -> None:
        """It has nothing to be sent any more: its peer has gone, or a fault of ours has ended it."""
        connection.closed, connection.refused = True, False
        self.touched.append(connection)

    def settle(self, *, crowded: bool) -> bool:
        """Ends a round, in which `crowded` says that some had no turn; says whether anything is left for the next."""
        sending, incoming = self.sending, self._incoming
        if self.touched or self._ended or sending.short or sending.long:
            sending.begin()
            self._send_more(sending.next_short)
            self._settle_touched()
            self._send_more(sending.next_long)
            self._close_ended(CLOSING_CROWDED_MS if crowded else CLOSING_MS)
            self._settle_touched()
        if incoming.used:
            incoming.give_back_used()
        # `is_left`, without the call: this is done once a round, and for few connections that is once a request.
        return bool(self._backlog or self.touched or self._ended or sending.short or sending.long)

    @property
    def is_left(self) -> bool:
        """Whether another round has something to do, though the network names nobody."""
        return bool(self._backlog or self.touched or self._ended or self.sending.short or self.sending.long)

    def _settle_touched(self) -> None:
        while touched := self.touched:
            self.touched = []
            for place, connection in enumerate(touched):
                if place & SETTLED_A_LOOK == SETTLED_A_LOOK and self.sending.is_over:
                    self._put_off(touched[place:])
                    return
                try:
                    self._settle_one(connection)
                except Exception as fault:
                    self.failed(connection, fault)

    def _put_off(self, touched: list[Connection]) -> None:
        for connection in touched:
            if connection.answers and not connection.unsent and not connection.closed:
                self.sending.put_off(connection)
            else:
                self.touched.append(connection)

    def _send_more(self, following: Callable[[], Connection | None]) -> None:
        """Goes on with what sockets take again: at least one of them, and others while there is time."""
        while (connection := following()) is not None:
            try:
                self.sending.go_on(connection)
            except OSError:
                self.lost(connection)
            except Exception as fault:
                self.failed(connection, fault)
            else:
                if not connection.unsent:
                    self.touched.append(connection)
            if self.sending.is_over:
                return

    def _settle_one(self, connection: Connection) -> None:
        if connection.answers and (not connection.closed or connection.refused):
            try:
                self.sending.send(connection)
            except OSError:
                connection.closed, connection.refused = True, False
        if connection.closed and connection.refused and connection.unsent and not connection.is_owed:
            # It was refused behind its round, where answers from before had not left.
            self.hang_up(connection)
        if connection.unsent and not connection.closed:
            self.sending.note(connection)
        if connection.closed or (connection.peer_gone and connection.is_over):
            connection.closed = True
            self._ended.append(connection)
            return
        if connection.busy or connection.unsent:
            return
        if connection.buffer is not None and connection.end - connection.start >= LENGTH_BYTES:
            # The next round looks at what waits. Nothing more comes of a peer that has gone: a look at what cannot be
            # served yet would bring the next one, until an answer that it waits for is there.
            if not connection.peer_gone or connection.takes_next:
                self._backlog[connection] = None
        elif connection.muted:
            connection.mute(False)

    def _close_ended(self, time_ms: int) -> None:
        """To close a connection costs as much as to serve some requests, and thousands may end at once."""
        ends_ms = self._clock.monotonic_ms() + time_ms
        while self._ended:
            self.close(self._ended.popleft())
            if self._clock.monotonic_ms() >= ends_ms:
                return

    def close(self, connection: Connection) -> None:
        if connection.released:
            return
        self._backlog.pop(connection, None)
        try:
            connection.release()
        except Exception as fault:
            # Its socket is closed all the same.
            self.failed(connection, fault)
        self._incoming.let_go(connection)
        self.sending.forget(connection)
        self._closed(connection)
