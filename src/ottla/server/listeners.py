"""Listeners and their limits: who may connect, and when an idle connection goes.

A connection over a limit is closed as soon as it is accepted, before a byte of it is read. Kafka does so by address;
over `max.connections` it leaves them waiting, so that a client learns of it by a time-out only. As with Kafka, clients
never shut out brokers: on the listener that brokers use among themselves, and on the controller's, `max.connections` is
no limit; the client that was idle longest makes room.

The system's limit on open files is one on connections too: a share of it is kept back for storage, which could not go
on in its next segment otherwise (`ports/real/descriptors.py`).
"""

from __future__ import annotations

import asyncio
import socket
import traceback
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import islice
from types import MappingProxyType
from typing import Final, NamedTuple

from ottla import logs
from ottla.config.slices import ServerConfig
from ottla.ports import Channel, Clock, Listening, Network
from ottla.ports.host_names import mistyped_as_unknown
from ottla.security.session import Session
from ottla.server.answer_memory import AnswerMemory
from ottla.server.connection import Connection
from ottla.server.connection_rate import UNLIMITED, ConnectionRates
from ottla.server.dispatching import Dispatch
from ottla.server.request_memory import BoundedRounds
from ottla.server.rounds import Rounds

log_event = logs.logger("server")

#: How often all connections are looked at. A request that takes longer to come holds no more memory than it has bytes.
LOOK_MS: Final = 1_000
#: For a client on this machine, which takes faster than a network could bring it: what is beyond this waits for it in
#: memory, and each piece wakes it anew (`docs/decisions/send-buffers.md`). The system holds twice as much.
LOCAL_SEND_BUFFER_BYTES: Final = 64 * 1024
#: Connections that are looked at in one turn of the loop.
LOOKED_AT: Final = 256


class ServedListener(NamedTuple):
    """A listener as connections know it."""

    name: str
    #: Requests of the controller come on it, and are served before all others.
    control: bool = False

    @property
    def session(self) -> Session:
        """Of a connection that has shown nothing of itself yet."""
        return _session_on(self.name)


@cache
def _session_on(listener: str) -> Session:
    """One for all connections of a listener, of which there may be thousands."""
    return Session(listener)


class ConnectionLimits(NamedTuple):
    frame_bytes_max: int
    connections_max: int
    connections_per_address_max: int
    connections_by_address: Mapping[str, int]
    #: By listener, where a listener has a limit of its own.
    connections_by_listener: Mapping[str, int]
    #: How long a connection may say nothing; one that waits for its answer says something. Also how long the bytes of
    #: one request may take to come.
    idle_ms_max: int
    #: -1: no bound.
    queued_bytes_max: int = -1
    #: New connections a second: all together, and by listener.
    connections_a_second: int = UNLIMITED
    connections_a_second_by_listener: Mapping[str, int] = MappingProxyType({})
    #: A listener to which the limits for all together do not apply: brokers talk to each other on it.
    protected_listener: str | None = None
    #: -1: the system's choice. None: where it helps.
    send_buffer_bytes: int | None = None


def limits_of(config: ServerConfig) -> ConnectionLimits:
    return ConnectionLimits(
        frame_bytes_max=config.request_bytes_max,
        connections_max=config.connections_max,
        connections_per_address_max=config.connections_per_ip_max,
        connections_by_address=_by_address(config.connections_per_ip_overrides),
        connections_by_listener=config.connections_per_listener,
        idle_ms_max=config.connections_idle_ms_max,
        queued_bytes_max=config.queued_request_bytes_max,
        connections_a_second=config.connection_creation_rate_max,
        connections_a_second_by_listener=config.connection_creation_rate_per_listener,
        protected_listener=config.inter_broker_listener if len(config.listeners) > 1 else None,
        send_buffer_bytes=config.send_buffer_bytes,
    )


def _by_address(limits: Mapping[str, int]) -> dict[str, int]:
    """The limits under the addresses that they are for, as connections have them; some are configured by name."""
    found = {}
    for host, limit in limits.items():
        try:
            with mistyped_as_unknown():
                answers = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
        except OSError as error:
            log_event.warning_limited(
                "nobody knows this host: its limit has no effect",
                key=host,
                property="max.connections.per.ip.overrides",
                host=host,
                reason=error,
            )
            continue
        found.update({str(address[0]): limit for *_, address in answers})
    return found


class Server:
    def __init__(self, network: Network, clock: Clock, limits: ConnectionLimits, *, has_control: bool = False) -> None:
        self._network = network
        self._clock = clock
        self._limits = limits
        if limits.queued_bytes_max >= 0:
            self._rounds: Rounds = BoundedRounds(clock, limits.frame_bytes_max, self._closed, limits.queued_bytes_max)
        else:
            self._rounds = Rounds(clock, limits.frame_bytes_max, self._closed)
        self.memory = AnswerMemory(clock, self._rounds.close_connection)
        self._rounds.settling.sending.memory = self.memory
        self._connections: dict[Connection, None] = {}
        self._by_address: dict[str, int] = {}
        self._by_listener: dict[str, int] = {}
        self._listening: dict[str, Listening] = {}
        self._sweep: asyncio.TimerHandle | None = None
        #: Listeners that accept nobody for a moment.
        self._paused: dict[str, asyncio.TimerHandle] = {}
        #: Whether requests are read; connections from before wait.
        self._open = False
        #: Bound once for all connections, which are many.
        self._touched = self._rounds.touched
        # One call-back for all listeners, so that they share their rounds.
        self._on_round = self._rounds.control_first if has_control else self._rounds.run
        self._rates_set: tuple[object, ...] = ()
        self._rates: ConnectionRates
        self.take_limits(limits)

    def take_limits(self, limits: ConnectionLimits) -> None:
        """Holds from the next connection on. What cannot change while the broker runs is as it was."""
        self._limits = limits
        rates = (limits.connections_a_second, limits.connections_a_second_by_listener, limits.protected_listener)
        if rates != self._rates_set:
            # Only then: a second's worth of connections may come at once when counting begins.
            self._rates_set = rates
            self._rates = ConnectionRates(*rates)

    @property
    def connection_count(self) -> int:
        return len(self._connections)

    def resting_ms(self) -> int:
        """For how long nobody has sent anything, or taken any of its answer."""
        return self._clock.monotonic_ms() - self._rounds.served_ms

    def outgoing_bytes(self) -> int:
        return sum(connection.outgoing_bytes() for connection in self._connections)

    def listen(self, listener: ServedListener, host: str, port: int) -> int:
        """Starts to accept; returns the port, which the system chose where 0 was asked for."""
        listening = self._network.listen(host, port, lambda channel: self._accept(channel, listener), self._on_round)
        self._listening[listener.name] = listening
        if self._sweep is None:
            self._sweep_later()
        return listening.port

    def _accept(self, channel: Channel, listener: ServedListener) -> Connection | None:
        if not self._rates.unlimited:
            self._throttle(listener.name)
        address = channel.peer
        held = self._by_address.get(address, 0)
        allowed = self._limits.connections_by_address.get(address, self._limits.connections_per_address_max)
        on_listener = self._by_listener.get(listener.name, 0)
        no_descriptor = channel.fileno() >= self._network.connections_end
        full = no_descriptor or len(self._connections) >= self._limits.connections_max
        own_limit = self._limits.connections_by_listener.get(listener.name)
        over = (full and not self._is_protected(listener)) or (own_limit is not None and on_listener >= own_limit)
        if held >= allowed or over:
            log_event.warning_limited(
                "refusing a connection: what is left of the limit on open files is kept back for storage"
                if no_descriptor
                else "refusing a connection over the limit",
                peer=address,
                open=len(self._connections),
                from_peer=held,
            )
            return None
        if full:
            self._make_room()
        self._size_send_buffer(channel)
        connection = Connection(channel, listener, self._clock.monotonic_ms(), self._touched)
        self._connections[connection] = None
        # Counted anew: who made room may have come from the same address.
        self._by_address[address] = self._by_address.get(address, 0) + 1
        self._by_listener[listener.name] = on_listener + 1
        if not self._open:
            connection.mute(True)
        return connection

    def _size_send_buffer(self, channel: Channel) -> None:
        size = self._limits.send_buffer_bytes
        if size is None and channel.is_local:
            size = LOCAL_SEND_BUFFER_BYTES
        if size is not None and size > 0:
            channel.set_send_buffer(size)

    def _is_protected(self, listener: ServedListener) -> bool:
        return listener.control or listener.name == self._limits.protected_listener

    def _make_room(self) -> None:
        """Closes the client's connection that was idle longest, where there is one."""
        clients = (each for each in self._connections if not self._is_protected(each.listener))
        idlest = min(clients, key=lambda each: each.last_active_ms, default=None)
        if idlest is not None:
            log_event.warning_limited("closing a client's connection to make room for a broker's", peer=idlest.host)
            self._rounds.close_connection(idlest)

    def _throttle(self, listener: str) -> None:
        """Counts a connection; over its rate the listener rests, and the next one waits to be accepted."""
        wait_ms = self._rates.taken(listener, self._clock.monotonic_ms())
        listening = self._listening.get(listener)
        if not wait_ms or listening is None:
            return

        def resume() -> None:
            del self._paused[listener]
            listening.resume()

        listening.pause()
        if listener not in self._paused:
            self._paused[listener] = asyncio.get_running_loop().call_later(wait_ms / 1000, resume)

    def open(self, dispatch: Dispatch) -> None:
        """Begins to read requests: the broker knows everything that it is asked about."""
        self._rounds.open(dispatch)
        self._open = True
        for connection in self._connections:
            connection.mute(False)

    def go_on(self, dispatch: Dispatch) -> None:
        """From here on requests go there."""
        self._rounds.open(dispatch)

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
        idle_ms_max = self._limits.idle_ms_max
        delay_s = max(0.05, min(LOOK_MS, idle_ms_max / 4 if idle_ms_max > 0 else LOOK_MS) / 1000)
        self._sweep = asyncio.get_running_loop().call_later(delay_s, self._look_at_all)

    def _look_at_all(self) -> None:
        self._look_at(iter(list(self._connections)))

    def _look_at(self, left: Iterator[Connection]) -> None:
        """Looks at some, and at the others in the loop's next turns."""
        now_ms = self._clock.monotonic_ms()
        some = list(islice(left, LOOKED_AT))
        for connection in some:
            if connection.released:
                continue
            try:
                self._look_at_one(connection, now_ms)
            except Exception as fault:
                # The sweep goes on, to the others and the next time.
                log_event.warning_limited(
                    "a connection could not be looked at",
                    peer=connection.host,
                    error="".join(traceback.format_exception(fault)),
                )
        if some:
            self._sweep = asyncio.get_running_loop().call_later(0, self._look_at, left)
        else:
            self._sweep_later()

    def _look_at_one(self, connection: Connection, now_ms: int) -> None:
        waits = connection.busy or connection.is_owed or connection.muted
        if connection.buffer is not None and (waits or connection.begun_ms <= now_ms - LOOK_MS):
            self._rounds.shrink(connection)
        if waits:
            # Nothing is read of it, so that it cannot be late with anything.
            connection.begun_ms = now_ms
            if connection.busy or connection.is_owed:
                return
        if self._limits.idle_ms_max <= 0:
            return
        oldest_ms = now_ms - self._limits.idle_ms_max
        if connection.last_active_ms < oldest_ms:
            self._rounds.close_connection(connection)
        elif connection.buffer is not None and connection.begun_ms < oldest_ms:
            log_event.warning_limited("closing a connection whose request never came whole", peer=connection.host)
            self._rounds.close_connection(connection)

    # -- stop

    def stop_accepting(self) -> None:
        for listening in self._listening.values():
            listening.close()
        self._listening.clear()
        for timer in self._paused.values():
            timer.cancel()
        self._paused.clear()
        if self._sweep is not None:
            self._sweep.cancel()
            self._sweep = None
        self.memory.close()

    def close(self) -> None:
        """Closes what is left; requests in progress were given their time before."""
        self.stop_accepting()
        for connection in list(self._connections):
            self._rounds.close_connection(connection)
