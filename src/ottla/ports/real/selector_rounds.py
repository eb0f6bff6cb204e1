"""Rounds out of the standard library's `selectors`: the twin of `epoll_rounds` for other systems (kqueue on a Mac).

Two differences have to be made up for. A selector watches for reading or writing but never for neither: a muted
connection is looked at by a `poll` for faults alone, a few times a second. And a selector does not say that a
connection is broken, only that it is ready: reading or writing then shows it.
"""

from __future__ import annotations

import contextlib
import select
import selectors
from typing import TYPE_CHECKING, Any, Final, cast

from ottla.ports.network import BROKEN, READABLE, WRITABLE, Round
from ottla.ports.real.channel import SocketChannel

if TYPE_CHECKING:
    import asyncio

#: Rounds before the loop gets its turn.
ROUNDS_MAX: Final = 4
#: How often muted connections are looked at.
MUTED_SECONDS: Final = 0.1

#: READABLE and WRITABLE bits to the selector's, and back.
_MASKS: Final = (0, selectors.EVENT_READ, selectors.EVENT_WRITE, selectors.EVENT_READ | selectors.EVENT_WRITE)
_EVENTS: Final = {
    selectors.EVENT_READ: READABLE,
    selectors.EVENT_WRITE: WRITABLE,
    selectors.EVENT_READ | selectors.EVENT_WRITE: READABLE | WRITABLE,
}


class SelectorRounds:
    __slots__ = ("_channels", "_loop", "_muted", "_muted_poll", "_on_round", "_selector", "_timer")

    def __init__(self, loop: asyncio.AbstractEventLoop, on_round: Round) -> None:
        self._loop = loop
        self._on_round = on_round
        # Kqueue, epoll or devpoll: each is itself a descriptor that the loop can watch.
        self._selector = cast("selectors.EpollSelector", selectors.DefaultSelector())
        #: By descriptor, muted ones too.
        self._channels: dict[int, SocketChannel] = {}
        self._muted: set[int] = set()
        self._muted_poll = select.poll()
        self._timer: asyncio.TimerHandle | None = None
        loop.add_reader(self._selector.fileno(), self._serve)

    def _serve(self) -> None:
        for _ in range(ROUNDS_MAX):
            ready = self._selector.select(0)
            if not ready:
                return
            self._on_round([(key.data.token, _EVENTS[mask]) for key, mask in ready])
            if self._selector.get_map() is None:  # closed
                return

    def _look_at_muted(self) -> None:
        self._timer = None
        broken = [(self._channels[fd].token, BROKEN | READABLE) for fd, _ in self._muted_poll.poll(0)]
        try:
            if broken:
                self._on_round(broken)
        finally:
            self._arm()

    def _arm(self) -> None:
        if self._muted and self._timer is None:
            self._timer = self._loop.call_later(MUTED_SECONDS, self._look_at_muted)

    def add(self, channel: SocketChannel, token: Any) -> None:
        channel.token = token
        self._channels[channel.fd] = channel
        self._register(channel, channel.wanted)

    def change(self, channel: SocketChannel, wanted: int) -> None:
        if channel.fd not in self._channels:
            return  # it is just being accepted, and `add` will see what is wanted
        if wanted and channel.wanted:
            self._selector.modify(channel.fd, _MASKS[wanted], channel)
        else:
            self._unregister(channel)
            self._register(channel, wanted)

    def _register(self, channel: SocketChannel, wanted: int) -> None:
        if wanted:
            self._selector.register(channel.fd, _MASKS[wanted], channel)
        else:
            self._muted.add(channel.fd)
            self._muted_poll.register(channel.fd, 0)
            self._arm()

    def _unregister(self, channel: SocketChannel) -> None:
        if channel.fd in self._muted:
            self._muted.discard(channel.fd)
            self._muted_poll.unregister(channel.fd)
        else:
            self._selector.unregister(channel.fd)

    def discard(self, channel: SocketChannel) -> None:
        if self._channels.pop(channel.fd, None) is not None:
            with contextlib.suppress(KeyError):  # the system had no room for it
                self._unregister(channel)

    def close(self) -> None:
        for channel in list(self._channels.values()):
            channel.close()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._selector.get_map() is not None:
            self._loop.remove_reader(self._selector.fileno())
            self._selector.close()
