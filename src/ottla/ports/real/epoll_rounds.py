"""Rounds out of an epoll set of our own.

The set's descriptor is itself registered with the asyncio loop, which calls `_serve` when anything in it is ready. One
poll that does not wait then yields all that is ready, and the owner serves it in one call. A few polls more follow at
once, as long as they find something: the loop's own turn costs as much as two small requests.

Level-triggered: what the owner leaves unread is reported again. EPOLLRDHUP is not asked for, since a peer that has only
ended its own side still waits for its answers, and an owner that mutes a connection would be woken by it for ever.
"""

from __future__ import annotations

import contextlib
import select
from typing import TYPE_CHECKING, Any, Final

from ottla.ports.network import BROKEN, READABLE, WRITABLE, Round
from ottla.ports.real.channel import SocketChannel

if TYPE_CHECKING:
    import asyncio

#: Connections of one poll, and of rounds that follow at once. A round ends some earlier; but what others of a crowd
#: stand before is seen so much sooner.
ROUND_CONNECTIONS_MAX: Final = 2048
#: Rounds before the loop gets its turn.
ROUNDS_MAX: Final = 8


def _events(mask: int) -> int:
    events = 0
    if mask & (select.EPOLLIN | select.EPOLLPRI):
        events |= READABLE
    if mask & select.EPOLLOUT:
        events |= WRITABLE
    if mask & (select.EPOLLERR | select.EPOLLHUP):
        # What had arrived before the fault can still be read; behind it reading shows what the fault was.
        events |= BROKEN | READABLE
    return events


#: Every answer that epoll can give to what is asked for here.
EVENTS: Final = [_events(mask) for mask in range(32)]
#: READABLE and WRITABLE bits to epoll's.
MASKS: Final = (0, select.EPOLLIN, select.EPOLLOUT, select.EPOLLIN | select.EPOLLOUT)


class EpollRounds:
    __slots__ = ("_channels", "_epoll", "_loop", "_on_round")

    def __init__(self, loop: asyncio.AbstractEventLoop, on_round: Round) -> None:
        self._loop = loop
        self._on_round = on_round
        self._epoll = select.epoll()
        #: By descriptor. A channel stands here exactly as long as it is registered.
        self._channels: dict[int, SocketChannel] = {}
        loop.add_reader(self._epoll.fileno(), self._serve)

    def _serve(self) -> None:
        poll = self._epoll.poll
        channels = self._channels
        on_round = self._on_round
        events = EVENTS
        served = 0
        for _ in range(ROUNDS_MAX):
            ready = poll(0, ROUND_CONNECTIONS_MAX)
            if not ready:
                return
            again = on_round([(channels[fd].token, events[mask]) for fd, mask in ready])
            served += len(ready)
            if not again or self._epoll.closed or served >= ROUND_CONNECTIONS_MAX:
                return

    def add(self, channel: SocketChannel, token: Any) -> None:
        channel.token = token
        self._channels[channel.fd] = channel
        self._epoll.register(channel.fd, MASKS[channel.wanted])

    def change(self, channel: SocketChannel, wanted: int) -> None:
        if channel.fd in self._channels:  # else it is just being accepted, and `add` will see what is wanted
            self._epoll.modify(channel.fd, MASKS[wanted])

    def discard(self, channel: SocketChannel) -> None:
        if self._channels.pop(channel.fd, None) is not None:
            # Closing alone would do, unless a child process is being started just now and still holds the socket.
            with contextlib.suppress(OSError):
                self._epoll.unregister(channel.fd)

    def close(self) -> None:
        for channel in list(self._channels.values()):
            channel.close()
        if not self._epoll.closed:
            self._loop.remove_reader(self._epoll.fileno())
            self._epoll.close()
