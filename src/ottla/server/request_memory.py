"""A bound on what requests hold in memory before they are served: `queued.max.request.bytes`.

Counted are the buffers that stay with their connections from one round to the next: frames that are not whole yet, and
whole ones behind a request that waits. Once they reach the bound, a connection that comes to need one is not read from
until others have given theirs back; those that have one go on, so that their requests come to an end. Like Kafka's, the
bound may be passed by the one request that reached it.

Where no bound is set none of this runs: rounds are then served by the base class alone.
"""

from __future__ import annotations

from collections.abc import Callable

from ottla.ports import Clock
from ottla.server.buffers import Buffer
from ottla.server.connection import Connection
from ottla.server.rounds import Rounds


class BoundedRounds(Rounds):
    def __init__(
        self, clock: Clock, frame_bytes_max: int, closed: Callable[[Connection], None], queued_bytes_max: int
    ) -> None:
        super().__init__(clock, frame_bytes_max, closed)
        self._queued_bytes_max = queued_bytes_max
        #: Bytes of each connection's buffer. Their sum stays below the bound, but for the last.
        self._held: dict[Connection, int] = {}
        self.held_bytes = 0
        #: Connections that are not read from, in the order in which they will be.
        self._starved: dict[Connection, None] = {}

    def _cut(self, connection: Connection, buffer: Buffer) -> None:
        super()._cut(connection, buffer)
        self._count(connection)

    def shrink(self, connection: Connection) -> None:
        super().shrink(connection)
        self._count(connection)

    def _settle_one(self, connection: Connection) -> None:
        super()._settle_one(connection)
        if connection in self._starved and not connection.released:
            connection.mute(True)

    def _settle(self) -> None:
        super()._settle()
        while self._starved and self.held_bytes < self._queued_bytes_max:
            connection = next(iter(self._starved))
            del self._starved[connection]
            self._count(connection)
            self._touched.append(connection)
            super()._settle()

    def _close(self, connection: Connection) -> None:
        super()._close(connection)
        self._starved.pop(connection, None)
        self._count(connection)

    def _count(self, connection: Connection) -> None:
        before = self._held.pop(connection, 0)
        self.held_bytes -= before
        size = 0 if connection.buffer is None else connection.buffer.size
        if not size:
            self._starved.pop(connection, None)
        elif connection in self._starved or (not before and self.held_bytes >= self._queued_bytes_max):
            self._starved[connection] = None
            connection.mute(True)
        else:
            self._held[connection] = size
            self.held_bytes += size
