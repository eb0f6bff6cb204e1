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
import time
from typing import Any, Final

from ottla.ports.network import READABLE, Round
from ottla.ports.real.channel import SocketChannel
from ottla.ports.real.epoll_rounds import EVENTS, MASKS, ROUND_CONNECTIONS_MAX, ROUNDS_MAX

#: From so many on it is likely that some have sent more meanwhile: they are asked before the loop has its turn.
CROWD_MIN: Final = 2

_READ: Final = selectors.EVENT_READ
_WRITE: Final = selectors.EVENT_WRITE


class RoundSelector(selectors.EpollSelector):
    """Asyncio's own selector, with descriptors beside it that are served in rounds."""

    def __init__(self) -> None:
        super().__init__()
        #: Those of networks, by descriptor: what a round is given when one is readable, and the owner's next round.
        self.channels: dict[int, tuple[tuple[Any, int], list[tuple[Any, int]]]] = {}
        self.owners: list[HostedRounds] = []
        #: The loop that polls here.
        self.loop: RoundLoop | None = None

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
        ends = math.inf if timeout < 0 else time.monotonic() + timeout
        loop = self.loop
        timer = None if loop is None else loop.next_timer()
        while True:
            ready, is_left = self._serve_crowd(timeout)
            # Where the loop has nothing to do but to wait again, its turn would cost a lone request two microseconds.
            if ready or is_left or not timeout or loop is None or not loop.rests(timer):
                return ready
            if timeout > 0:
                timeout = ends - time.monotonic()
                if timeout <= 0:
                    return ready
                timeout = math.ceil(timeout * 1e3) * 1e-3

    def _serve_crowd(self, timeout: float) -> tuple[list[tuple[selectors.SelectorKey, int]], bool]:
        """Waits and serves; at once again as long as many have something. What is asyncio's, and whether it has its
        turn in any case.
        """
        ready: list[tuple[selectors.SelectorKey, int]] = []
        served = 0
        for _ in range(ROUNDS_MAX):
            try:
                polled = self.epoll.poll(timeout, ROUND_CONNECTIONS_MAX)
            except InterruptedError:
                return ready, True
            if not polled:
                return ready, True
            self._sort(polled, ready)
            are_done = True
            for owner in self.owners:
                if owner.due and not owner.serve():
                    are_done = False
            if len(polled) < CROWD_MIN and are_done:
                return ready, False
            served += len(polled)
            if ready or len(polled) < CROWD_MIN or served >= ROUND_CONNECTIONS_MAX or not are_done:
                return ready, True
            timeout = 0
        return ready, True

    def _sort(self, polled: list[tuple[int, int]], ready: list[tuple[selectors.SelectorKey, int]]) -> None:
        """Hands the owners what concerns them, and puts asyncio's part into `ready`."""
        find, readable, events = self.channels.get, select.EPOLLIN, EVENTS
        for fd, mask in polled:
            found = find(fd)
            if found is not None:
                entry, due = found
                due.append(entry if mask == readable else (entry[0], events[mask]))
                continue
            key = self._fd_to_key.get(fd)  # type: ignore[attr-defined]
            if key is not None:
                # Anything but an input wakes a writer, anything but an output a reader, as in the standard library.
                wanted = (_WRITE if mask & ~select.EPOLLIN else 0) | (_READ if mask & ~select.EPOLLOUT else 0)
                ready.append((key, wanted & key.events))


class RoundLoop(asyncio.SelectorEventLoop):
    """The loop of a process of our own."""

    def __init__(self) -> None:
        self.rounds = RoundSelector()
        super().__init__(self.rounds)
        self.rounds.loop = self

    # What the standard library's loops have had since their first days, and no other way leads to.

    def next_timer(self) -> object:
        timers = self._scheduled  # type: ignore[attr-defined]
        return timers[0] if timers else None

    def rests(self, timer: object) -> bool:
        """Whether there is nothing to call, and this is still the first timer."""
        return not self._ready and not self._stopping and self.next_timer() is timer  # type: ignore[attr-defined]


class HostedRounds:
    """The connections of one owner, served out of the loop's own poll."""

    __slots__ = ("_channels", "_loop", "_on_round", "_selector", "due")

    def __init__(self, loop: RoundLoop, on_round: Round) -> None:
        self._loop = loop
        self._selector = loop.rounds
        self._on_round = on_round
        self._channels: dict[int, SocketChannel] = {}
        #: What the next round is given.
        self.due: list[tuple[Any, int]] = []
        self._selector.owners.append(self)

    def serve(self) -> bool:
        try:
            return self._on_round(self.due)
        except Exception as error:  # what a call-back of the loop may do, a round may do
            self._loop.call_exception_handler({"message": "a round failed", "exception": error})
            return False
        finally:
            self.due.clear()

    def add(self, channel: SocketChannel, token: Any) -> None:
        channel.token = token
        self._channels[channel.fd] = channel
        self._selector.channels[channel.fd] = (token, READABLE), self.due
        self._selector.epoll.register(channel.fd, MASKS[channel.wanted])

    def change(self, channel: SocketChannel, wanted: int) -> None:
        if channel.fd in self._channels:
            self._selector.epoll.modify(channel.fd, MASKS[wanted])

    def discard(self, channel: SocketChannel) -> None:
        if self._channels.pop(channel.fd, None) is not None:
            del self._selector.channels[channel.fd]
            with contextlib.suppress(OSError):  # it may have gone with the socket
                self._selector.epoll.unregister(channel.fd)

    def close(self) -> None:
        for channel in list(self._channels.values()):
            channel.close()
        if self in self._selector.owners:
            self._selector.owners.remove(self)
