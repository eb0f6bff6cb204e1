"""Listeners and their limits: who may connect, and when an idle connection goes.

A connection over a limit is closed as soon as it is accepted, before a byte of it is read, as Kafka does.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import NamedTuple

from ottla import logs
from ottla.ports import Channel, Clock, Listening, Network
from ottla.server.connection import Connection
from ottla.server.rounds import Dispatch, Rounds

log_event = logs.logger("server")


class ServedListener(NamedTuple):
    """A listener as connections know it."""

    name: str
    #: Requests of the controller come on it, and are served before all others.
    control: bool = False


class Limits(NamedTuple):
    frame_bytes_max: int
    connections_max: int
    connections_per_address_max: int
    connections_by_address: Mapping[str, int]
    #: By listener, where a listener has a limit of its own.
    connections_by_listener: Mapping[str, int]
    #: How long a connection may say nothing; one that waits for its answer says something.
    idle_ms_max: int


class Server:
    def __init__(self, network: Network, clock: Clock, limits: Limits, *, has_control: bool = False) -> None:
        self._network = network
        self._clock = clock
        self._limits = limits
        self._rounds = Rounds(clock, limits.frame_bytes_max, self._closed)
        self._connections: dict[Connection, None] = {}
        self._by_address: dict[str, int] = {}
        self._by_listener: dict[str, int] = {}
        self._listening: list[Listening] = []
        self._sweep: asyncio.TimerHandle | None = None
        #: Whether requests are read; who connects before waits.
        self._open = False
        #: Bound once for all connections, which are many.
        self._touched = self._rounds.touched
        # One call-back for all listeners, so that they share their rounds.
        self._on_round = self._rounds.control_first if has_control else self._rounds.run

    @property
    def connection_count(self) -> int:
        return len(self._connections)

    def outgoing_bytes(self) -> int:
        return sum(connection.outgoing_bytes() for connection in self._connections)

    def listen(self, listener: ServedListener, host: str, port: int) -> int:
        """Starts to accept; returns the port, which the system chose where 0 was asked for."""
        listening = self._network.listen(host, port, lambda channel: self._accept(channel, listener), self._on_round)
        self._listening.append(listening)
        if self._sweep is None:
            self._sweep_later()
        return listening.port

    def _accept(self, channel: Channel, listener: ServedListener) -> Connection | None:
        address = channel.peer
        held = self._by_address.get(address, 0)
        allowed = self._limits.connections_by_address.get(address, self._limits.connections_per_address_max)
        on_listener = self._by_listener.get(listener.name, 0)
        full = on_listener >= self._limits.connections_by_listener.get(listener.name, self._limits.connections_max)
        if held >= allowed or full or len(self._connections) >= self._limits.connections_max:
            log_event.warning_limited(
                "refusing a connection over the limit", peer=address, open=len(self._connections), from_peer=held
            )
            return None
        connection = Connection(channel, listener, self._clock.monotonic_ms(), self._touched)
        self._connections[connection] = None
        self._by_address[address] = held + 1
        self._by_listener[listener.name] = on_listener + 1
        if not self._open:
            connection.mute(True)
        return connection

    def open(self, dispatch: Dispatch) -> None:
        """Begins to read requests: the broker knows everything that it is asked about."""
        self._rounds.open(dispatch)
        self._open = True
        for connection in self._connections:
            connection.mute(False)

    def _closed(self, connection: Connection) -> None:
        if connection not in self._connections:
            return
        del self._connections[connection]
        self._by_listener[connection.listener.name] -= 1
        address = connection.host
        left = self._by_address[address] - 1
        if left:
            self._by_address[address] = left
        else:
            del self._by_address[address]

    # -- idle connections

    def _sweep_later(self) -> None:
        if self._limits.idle_ms_max > 0:
            delay_s = max(0.05, min(10.0, self._limits.idle_ms_max / 4000))
            self._sweep = asyncio.get_running_loop().call_later(delay_s, self._close_idle)

    def _close_idle(self) -> None:
        oldest_ms = self._clock.monotonic_ms() - self._limits.idle_ms_max
        idle = [c for c in self._connections if c.last_active_ms < oldest_ms and not c.busy and not c.slots]
        for connection in idle:
            self._rounds.close_connection(connection)
        self._sweep_later()

    # -- stop

    def stop_accepting(self) -> None:
        for listening in self._listening:
            listening.close()
        self._listening.clear()
        if self._sweep is not None:
            self._sweep.cancel()
            self._sweep = None

    def close(self) -> None:
        """Closes what is left; requests in progress were given their time before."""
        self.stop_accepting()
        for connection in list(self._connections):
            self._rounds.close_connection(connection)
