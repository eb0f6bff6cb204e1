"""A bound on what requests hold in memory before they are served: `queued.max.request.bytes`.

Counted are the buffers that stay with their connections from one round to the next: frames that are not whole yet, and
whole ones behind a request that waits. Once they reach the bound, a connection that comes to need one is not read from
until others have given theirs back; those that have one go on, so that their requests come to an end. Like Kafka's, the
bound may be passed by the one request that reached it.

Where no bound is set none of this runs: rounds are then served by the base classes alone.
"""

from __future__ import annotations

from collections.abc import Callable

from ottla.ports import Clock
from ottla.server.buffers import Buffer
from ottla.server.connection import Connection
from ottla.server.incoming import IncomingBuffers
from ottla.server.rounds import Rounds
from ottla.server.settling import Settling


class BoundedSettling(Settling):
    def __init__(
        self,
        clock: Clock,
        incoming: IncomingBuffers,
        backlog: dict[Connection, None],
        closed: Callable[[Connection], None],
        queued_bytes_max: int,
    ) -> None:
        super().__init__(clock, incoming, backlog, closed)
        self._queued_bytes_max = queued_bytes_max
        #: Bytes of each connection's buffer. Their sum stays below the bound, but for the last.
        self._held: dict[Connection, int] = {}
        self.held_bytes = 0
        #: Connections that are not read from, in the order in which they will be.
        self._starved: dict[Connection, None] = {}

    def _settle_one(self, connection: Connection) -> None:
        super()._settle_one(connection)
        if connection in self._starved and not connection.released:
            connection.mute(True)

    def hang_up(self, connection: Connection) -> None:
        super().hang_up(connection)
        self.count(connection)

    def settle(self, *, crowded: bool) -> bool:
        is_left = super().settle(crowded=crowded)
        while self.may_wake:
            connection = next(iter(self._starved))
            del self._starved[connection]
            self.count(connection)
            self.touched.append(connection)
            is_left |= super().settle(crowded=crowded)
        return is_left

    @property
    def may_wake(self) -> bool:
        """Whether the next round's end has room for somebody who waits for it."""
        return bool(self._starved) and self.held_bytes < self._queued_bytes_max

    def close(self, connection: Connection) -> None:
        super().close(connection)
        self._starved.pop(connection, None)
        self.count(connection)

    def count(self, connection: Connection) -> None:
        """Something may have changed about what this connection holds."""
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


class BoundedRounds(Rounds):
    settling: BoundedSettling

    def __init__(
        self, clock: Clock, frame_bytes_max: int, closed: Callable[[Connection], None], queued_bytes_max: int
    ) -> None:
        self._queued_bytes_max = queued_bytes_max
        super().__init__(clock, frame_bytes_max, closed)

    def _make_settling(self, closed: Callable[[Connection], None]) -> BoundedSettling:
        return BoundedSettling(self._clock, self._incoming, self._backlog, closed, self._queued_bytes_max)

    @property
    def held_bytes(self) -> int:
        return self.settling.held_bytes

    def _cut(self, connection: Connection, buffer: Buffer) -> None:
        super()._cut(connection, buffer)
        self.settling.count(connection)

    def shrink(self, connection: Connection) -> None:
        super().shrink(connection)
        self.settling.count(connection)
        if self.settling.may_wake:
            self._schedule()  # or they would wait for somebody else's round
