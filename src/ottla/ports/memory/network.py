"""The Network port of a simulated machine: listeners, channels served in rounds, outgoing connections."""

from __future__ import annotations

import asyncio
import errno
import sys
from collections.abc import Callable, Sequence
from contextvars import copy_context
from typing import TYPE_CHECKING, Any, Final

from ottla.ports.disk import Buffer, File
from ottla.ports.memory.pipe import Side, nobody
from ottla.ports.memory.transport import MemoryTransport
from ottla.ports.network import BROKEN, READABLE, WRITABLE, Accept, Round

if TYPE_CHECKING:
    from ottla.ports.memory.fabric import Fabric

#: Connections in one round.
ROUND_CONNECTIONS_MAX: Final = 512
#: The first port that is given where any will do.
FREE_PORTS: Final = 49_152
PORTS: Final = 65_536
#: Seconds between a machine's attempts to reach another, as Linux doubles them, before it gives up.
CONNECT_RETRIES: Final = (1, 2, 4, 8, 16, 32, 64)
#: One piece of a file.
PIECE_BYTES: Final = 128 * 1024


class MemoryRounds:
    """Level-triggered, as the real ones are: what is left unread is reported again."""

    __slots__ = ("_candidates", "_context", "_fabric", "_on_round", "_scheduled")

    def __init__(self, fabric: Fabric, on_round: Round) -> None:
        self._fabric = fabric
        self._on_round = on_round
        #: The listener's, as with a real selector: what a round starts is not the sender's whose bytes caused it.
        self._context = copy_context()
        #: Channels of which something may be reported.
        self._candidates: dict[MemoryChannel, None] = {}
        self._scheduled = False

    def poke(self, channel: MemoryChannel) -> None:
        self._candidates[channel] = None
        if not self._scheduled:
            self._scheduled = True
            self._fabric.loop.call_soon(self._serve, context=self._context)

    def accept(self, listening: MemoryListening, side: Side, peer: tuple[str, int]) -> None:
        self._fabric.loop.call_soon(listening.welcome, side, peer, context=self._context)

    def discard(self, channel: MemoryChannel) -> None:
        self._candidates.pop(channel, None)

    def clear(self) -> None:
        self._candidates.clear()

    def _serve(self) -> None:
        self._scheduled = False
        ready: list[tuple[Any, int]] = []
        for channel in list(self._candidates):
            events = channel.events()
            if not events:
                del self._candidates[channel]
            elif len(ready) < ROUND_CONNECTIONS_MAX:
                # To the back, so that with more than a round's worth each has its turn.
                self._candidates[channel] = self._candidates.pop(channel)
                ready.append((channel.token, events))
        if not ready:
            return
        if self._fabric.chop:
            self._fabric.random.shuffle(ready)
        self._scheduled = True
        self._fabric.loop.call_soon(self._serve, context=self._context)
        self._on_round(ready)


class MemoryChannel:
    __slots__ = ("_reading", "_rounds", "_side", "_writing", "peer", "peer_port", "token")

    def __init__(self, side: Side, peer: tuple[str, int], rounds: MemoryRounds) -> None:
        self.peer, self.peer_port = peer
        self.token: Any = None
        self._side = side
        self._rounds = rounds
        self._reading = True
        self._writing = False

    def start(self, token: Any) -> None:
        self.token = token
        self._side.on_change = self._changed
        self._changed()

    def _changed(self) -> None:
        self._rounds.poke(self)

    def events(self) -> int:
        side = self._side
        if side.failed:
            return BROKEN | READABLE | (WRITABLE if self._writing else 0)
        events = READABLE if self._reading and side.readable() else 0
        return events | (WRITABLE if self._writing and side.writable() else 0)

    @property
    def closed(self) -> bool:
        return self._side.closed

    def receive_into(self, view: memoryview) -> int:
        data = self._side.receive(len(view))
        view[: len(data)] = data
        return len(data)

    def send(self, data: Buffer) -> int:
        return self._side.send(data)

    @property
    def is_local(self) -> bool:
        return False

    def set_send_buffer(self, size: int) -> None:
        """A pipe has the size that it was made with."""

    def fileno(self) -> int:
        return -1

    def send_buffers(self, buffers: Sequence[Buffer]) -> int:
        return self._side.send(b"".join(buffers))

    def send_file(self, file: File, position: int, count: int) -> int:
        data = file.read(min(count, PIECE_BYTES), position)
        return self._side.send(data) if data else 0

    def watch(self, *, reading: bool, writing: bool) -> None:
        if (reading, writing) != (self._reading, self._writing):
            self._reading, self._writing = reading, writing
            if not self._side.closed and self.token is not None:
                self._changed()

    def close(self) -> None:
        self.token = None
        self._rounds.discard(self)
        self._side.close()


class MemoryListening:
    __slots__ = ("_accept", "_backlog", "_network", "_paused", "_rounds", "port")

    def __init__(self, network: MemoryNetwork, port: int, accept: Accept, rounds: MemoryRounds) -> None:
        self.port = port
        self._network = network
        self._accept = accept
        self._rounds = rounds
        self._paused = False
        #: Connections that came while it was paused.
        self._backlog: list[tuple[Side, tuple[str, int]]] = []

    def arrived(self, side: Side, peer: tuple[str, int]) -> None:
        self._rounds.accept(self, side, peer)

    def welcome(self, side: Side, peer: tuple[str, int]) -> None:
        """A connection that has been waiting in the backlog."""
        if self._network.listener(self.port) is not self:
            side.abort()
            return
        if self._paused:
            self._backlog.append((side, peer))
            return
        channel = MemoryChannel(side, peer, self._rounds)
        try:
            token = self._accept(channel)
        except BaseException:
            channel.close()
            raise
        if token is None:
            channel.close()
        elif not channel.closed:
            channel.start(token)

    def pause(self) -> None:
        self._paused = True

    def resume(self) -> None:
        self._paused = False
        backlog, self._backlog = self._backlog, []
        for side, peer in backlog:
            self._rounds.accept(self, side, peer)

    def close(self) -> None:
        if self._network.listener(self.port) is self:
            self._network.unlisten(self.port)
        for side, _ in self._backlog:
            side.abort()
        self._backlog.clear()


class MemoryNetwork:
    #: As many as there are: nothing here has a descriptor.
    connections_end: Final = sys.maxsize

    def __init__(self, fabric: Fabric, name: str, address: str) -> None:
        self.fabric = fabric
        self.name = name
        self.address = address
        self._listeners: dict[int, MemoryListening] = {}
        self._rounds: dict[Round, MemoryRounds] = {}
        self._last_port = FREE_PORTS - 1
        self.dead = False

    def listen(self, host: str, port: int, accept: Accept, on_round: Round) -> MemoryListening:
        self._check_alive()
        if host not in {"", "0.0.0.0", "::"} and self._reached(host) is not self:  # noqa: S104 - every address
            raise OSError(errno.EADDRNOTAVAIL, f"{host} is no address of {self.name}")
        port = port or self._free_port()
        if port in self._listeners:
            raise OSError(errno.EADDRINUSE, f"port {port} of {self.name} is in use")
        rounds = self._rounds.setdefault(on_round, MemoryRounds(self.fabric, on_round))
        listening = self._listeners[port] = MemoryListening(self, port, accept, rounds)
        return listening

    async def connect(
        self, protocol: Callable[[], asyncio.Protocol], host: str, port: int
    ) -> tuple[asyncio.Transport, asyncio.Protocol]:
        self._check_alive()
        if self._reached(host) is None:
            raise OSError(errno.EHOSTUNREACH, f"no machine is called {host}")
        fabric = self.fabric
        for pause in CONNECT_RETRIES:
            target = self._reached(host)  # each time: the machine may have been started again
            if target is not None and fabric.passes(self.name, target.name) and fabric.passes(target.name, self.name):
                break
            await asyncio.sleep(pause)
        else:
            raise TimeoutError(errno.ETIMEDOUT, f"{host} does not answer")
        await asyncio.sleep(fabric.delay(self.name, target.name) + fabric.delay(target.name, self.name))
        self._check_alive()
        listening = target.listener(port)
        if listening is None:
            raise ConnectionRefusedError(errno.ECONNREFUSED, f"nobody listens on port {port} of {host}")
        near, far = fabric.connected(self, self._free_port(), target, port)
        transport = MemoryTransport(fabric.loop, near, far.address, protocol())
        listening.arrived(far, near.address)
        transport.start()
        return transport, transport.get_protocol()  # type: ignore[return-value]

    def _reached(self, host: str) -> MemoryNetwork | None:
        return self if host in {"localhost", "127.0.0.1", "::1"} else self.fabric.hosts.get(host)

    def _free_port(self) -> int:
        for _ in range(FREE_PORTS, PORTS):
            self._last_port = self._last_port + 1 if self._last_port + 1 < PORTS else FREE_PORTS
            if self._last_port not in self._listeners:
                return self._last_port
        raise OSError(errno.EADDRINUSE, "no port is free")

    def listener(self, port: int) -> MemoryListening | None:
        return self._listeners.get(port)

    def unlisten(self, port: int) -> None:
        del self._listeners[port]

    def close(self) -> None:
        """Closes what listens and what was accepted; outgoing connections have transports to close them."""
        for port in list(self._listeners):
            self.unlisten(port)
        for side in self.fabric.sides_on(self.name):
            if side.accepted:
                side.close()
        for rounds in self._rounds.values():
            rounds.clear()
        self._rounds.clear()

    def kill(self, *, silently: bool = False) -> None:
        """The process is gone and hears nothing more; `Fabric.host` then gives the network of the next.

        Its peers see the sockets close. After a power cut (`silently`) they do not: they hear of it when they send
        something and the machine is back.
        """
        self.dead = True
        self._listeners.clear()
        for side in self.fabric.sides_on(self.name):
            side.on_change = nobody
            if silently:
                side.vanish()
            else:
                side.close()
        for rounds in self._rounds.values():
            rounds.clear()

    def _check_alive(self) -> None:
        if self.dead:
            raise OSError(errno.ENETDOWN, f"this process of {self.name} has ended")
