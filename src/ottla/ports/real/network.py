"""Listening sockets and outgoing connections of this machine.

A listener is an ordinary reader of the asyncio loop, since connections come seldom; what they then send is served in
rounds (`epoll_rounds`, `selector_rounds`).
"""

from __future__ import annotations

import errno
import socket
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from ottla import logs
from ottla.ports.host_names import mistyped_as_unknown
from ottla.ports.network import BROKEN, READABLE, Accept, Round
from ottla.ports.real.channel import ChannelPoller, PortableChannel, SocketChannel
from ottla.ports.real.descriptors import end_of_connections

if TYPE_CHECKING:
    import asyncio

log_event = logs.logger("network")

#: Connections that the kernel completes before we look.
BACKLOG: Final = 1024
#: New connections in one turn of the loop, so that a storm of them does not hold up those that are there.
ACCEPTS_MAX: Final = 64
#: How long a listener rests when no descriptor is left; the kernel's backlog holds the callers meanwhile.
REST_SECONDS: Final = 0.2

_NONE_LEFT: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
#: What accept reports of a connection that died in the backlog; the next may be well.
_DIED_WAITING: Final = frozenset({errno.ECONNABORTED, errno.EPROTO, errno.ENETDOWN, errno.EHOSTUNREACH, errno.EINTR})


class RealListening:
    """A listening socket and what is done with its connections."""

    __slots__ = (
        "_accept",
        "_channel",
        "_loop",
        "_on_round",
        "_paused",
        "_rest",
        "_rounds",
        "_socket",
        "_watched",
        "port",
    )

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        listener: socket.socket,
        accept: Accept,
        rounds: ChannelPoller,
        channel: type[SocketChannel],
        on_round: Round,
    ) -> None:
        self.port: int = listener.getsockname()[1]
        self._loop = loop
        self._socket = listener
        self._accept = accept
        self._rounds = rounds
        self._channel = channel
        self._on_round = on_round
        self._rest: asyncio.TimerHandle | None = None
        self._paused = self._watched = False
        self._watch()

    def _watch(self) -> None:
        """Has the loop look at the socket exactly while somebody may be accepted."""
        wanted = not (self._paused or self._rest is not None or self._socket.fileno() < 0)
        if wanted and not self._watched:
            self._loop.add_reader(self._socket.fileno(), self._on_connections)
        elif self._watched and not wanted:
            self._loop.remove_reader(self._socket.fileno())
        self._watched = wanted

    def _on_connections(self) -> None:
        for _ in range(ACCEPTS_MAX):
            if not self._watched:  # closed or paused by the owner, out of `accept`
                return
            try:
                connection, address = self._socket.accept()
            except BlockingIOError:
                return
            except OSError as error:
                if error.errno in _NONE_LEFT:
                    self._take_a_rest(error)
                    return
                if error.errno in _DIED_WAITING:
                    continue
                raise
            self._welcome(connection, address)

    def _welcome(self, connection: socket.socket, address: tuple[Any, ...]) -> None:
        try:
            connection.setblocking(False)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            # As Kafka does: a peer whose machine went away without a word is noticed by the kernel.
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        except OSError:  # reset before we looked; on some systems options then fail
            connection.close()
            return
        channel = self._channel(connection, address, self._rounds)
        try:
            token = self._accept(channel)
            if token is not None and not channel.closed:
                self._poll(channel, token)
                return
        except BaseException:
            channel.close()
            raise
        channel.close()

    def _poll(self, channel: SocketChannel, token: Any) -> None:
        try:
            self._rounds.add(channel, token)
        except OSError as error:
            log_event.warning_limited(
                "closing a connection that cannot be polled", str(self.port), peer=channel.peer, reason=error.strerror
            )
            channel.close()
            # Its owner has taken it, and counts it until it hears of its end.
            self._on_round([(token, READABLE | BROKEN)])

    def _take_a_rest(self, error: OSError) -> None:
        log_event.warning_limited(
            "no connection can be accepted for now", str(self.port), port=self.port, reason=error.strerror
        )
        self._rest = self._loop.call_later(REST_SECONDS, self._go_on)
        self._watch()

    def _go_on(self) -> None:
        self._rest = None
        self._watch()

    def pause(self) -> None:
        self._paused = True
        self._watch()

    def resume(self) -> None:
        self._paused = False
        self._watch()

    def close(self) -> None:
        if self._socket.fileno() < 0:
            return
        if self._rest is not None:
            self._rest.cancel()
            self._rest = None
        self._paused = True
        self._watch()
        self._socket.close()


class RealNetwork:
    __slots__ = ("_listening", "_portable", "_rounds", "connections_end")

    def __init__(self, *, portable: bool = False) -> None:
        self.connections_end: Final = end_of_connections()
        self._portable = portable
        self._listening: list[RealListening] = []
        self._rounds: dict[Round, ChannelPoller] = {}

    def listen(self, host: str, port: int, accept: Accept, on_round: Round) -> RealListening:
        from asyncio import get_running_loop

        loop = get_running_loop()
        listener = bound(host, port)
        rounds = self._rounds.get(on_round)
        if rounds is None:
            rounds = self._rounds[on_round] = self._new_rounds(loop, on_round)
        channel = PortableChannel if self._portable else SocketChannel
        listening = RealListening(loop, listener, accept, rounds, channel, on_round)
        self._listening.append(listening)
        return listening

    def _new_rounds(self, loop: asyncio.AbstractEventLoop, on_round: Round) -> ChannelPoller:
        if self._portable:
            from ottla.ports.real.selector_rounds import SelectorRounds

            return SelectorRounds(loop, on_round)
        from ottla.ports.real.round_loop import HostedRounds, RoundLoop

        if isinstance(loop, RoundLoop):
            return HostedRounds(loop, on_round)
        from ottla.ports.real.epoll_rounds import EpollRounds

        return EpollRounds(loop, on_round)

    async def connect(
        self, protocol: Callable[[], asyncio.Protocol], host: str, port: int
    ) -> tuple[asyncio.Transport, asyncio.Protocol]:
        from asyncio import get_running_loop

        with mistyped_as_unknown():
            return await get_running_loop().create_connection(protocol, host, port)

    def close(self) -> None:
        for listening in self._listening:
            listening.close()
        for rounds in self._rounds.values():
            rounds.close()
        self._listening.clear()
        self._rounds.clear()


def bound(host: str, port: int) -> socket.socket:
    """A listening socket. An empty host means every address of both families, as it does in Kafka."""
    if not host:
        try:
            return _listen_on(socket.AF_INET6, ("::", port))
        except OSError as error:
            if error.errno not in {errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL}:
                raise
        return _listen_on(socket.AF_INET, ("0.0.0.0", port))  # noqa: S104 - a machine without IPv6
    with mistyped_as_unknown():
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    # As Java does: of a name with both kinds of addresses the IPv4 one.
    family, _, _, _, address = min(found, key=lambda entry: entry[0] != socket.AF_INET)
    return _listen_on(family, address)


def _listen_on(family: int, address: Any) -> socket.socket:
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setblocking(False)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, address[0] != "::")
        listener.bind(address)
        listener.listen(BACKLOG)
    except BaseException:
        listener.close()
        raise
    return listener
