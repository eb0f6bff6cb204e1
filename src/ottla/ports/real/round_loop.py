"""An event loop whose own poll serves the rounds: one system call and a few microseconds less for each of them.

An epoll set inside of the loop's set (`epoll_rounds`) costs a lone request two more polls and a call-back, as much as
serving it does. Where the process is ours, the loop is too: its selector knows which descriptors belong to a network's
owner, hands those to the owner right out of the poll, and gives asyncio the rest. In a loop that is someone else's the
nested set does the same work.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import select
import selectors
from typing import Any, Final

from ottla.ports.network import Round
from ottla.ports.real.channel import SocketChannel
from ottla.ports.real.epoll_rounds import EVENTS, MASKS, ROUND_CONNECTIONS_MAX

_READ: Final = selectors.EVENT_READ
_WRITE: Final = selectors.EVENT_WRITE


class RoundSelector(selectors.EpollSelector):
    """Asyncio's own selector, with descriptors beside it that are served in rounds."""

    def __init__(self) -> None:
        super().__init__()
        #: Those of networks, by descriptor, with whom they belong to.
        self.channels: dict[int, tuple[SocketChannel, HostedRounds]] = {}

    @property
    def epoll(self) -> Any:
        return self._selector  # type: ignore[attr-defined]

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            timeout = -1
        elif timeout <= 0:
            timeout = 0
        else:
            # Rounded up to epoll's milliseconds, or the loop would turn without rest until its timer is due.
            timeout = math.ceil(timeout * 1e3) * 1e-3
        try:
            polled = self.epoll.poll(timeout, ROUND_CONNECTIONS_MAX)
        except InterruptedError:
            return []
        ready: list[tuple[selectors.SelectorKey, int]] = []
        rounds: dict[HostedRounds, list[tuple[Any, int]]] = {}
        channels = self.channels
        for fd, mask in polled:
            found = channels.get(fd)
            if found is not None:
                channel, owner = found
                served = rounds.get(owner)
                if served is None:
                    rounds[owner] = [(channel.token, EVENTS[mask])]
                else:
                    served.append((channel.token, EVENTS[mask]))
                continue
            key = self._fd_to_key.get(fd)  # type: ignore[attr-defined]
            if key is not None:
                # Anything but an input wakes a writer, anything but an output a reader, as in the standard library.
                events = (_WRITE if mask & ~select.EPOLLIN else 0) | (_READ if mask & ~select.EPOLLOUT else 0)
                ready.append((key, events & key.events))
        for owner, served in rounds.items():
            owner.serve(served)
        return ready


class RoundLoop(asyncio.SelectorEventLoop):
    """The loop of a process of our own."""

    def __init__(self) -> None:
        self.rounds = RoundSelector()
        super().__init__(self.rounds)


class HostedRounds:
    """The connections of one owner, served out of the loop's own poll."""

    __slots__ = ("_loop", "_on_round", "_selector")

    def __init__(self, loop: RoundLoop, on_round: Round) -> None:
        self._loop = loop
        self._selector = loop.rounds
        self._on_round = on_round

    def serve(self, ready: list[tuple[Any, int]]) -> None:
        try:
            self._on_round(ready)
        except Exception as error:  # what a call-back of the loop may do, a round may do
            self._loop.call_exception_handler({"message": "a round failed", "exception": error})

    def add(self, channel: SocketChannel, token: Any) -> None:
        channel.token = token
        self._selector.channels[channel.fd] = channel, self
        self._selector.epoll.register(channel.fd, MASKS[channel.wanted])

    def change(self, channel: SocketChannel, wanted: int) -> None:
        if channel.fd in self._selector.channels:
            self._selector.epoll.modify(channel.fd, MASKS[wanted])

    def discard(self, channel: SocketChannel) -> None:
        if self._selector.channels.pop(channel.fd, None) is not None:
            with contextlib.suppress(OSError):  # it may have gone with the socket
                self._selector.epoll.unregister(channel.fd)

    def close(self) -> None:
        for channel, owner in list(self._selector.channels.values()):
            if owner is self:
                channel.close()
