"""One accepted connection on a real socket.

`receive_into` and `send` are the socket's own bound methods, kept in the instance: a call then costs no Python frame.
A closed socket has no descriptor any more, so code that still holds the channel gets EBADF and never another peer's
bytes, even when the system has given the number away again.
"""

from __future__ import annotations

import contextlib
import os
import socket
import sys
from collections.abc import Callable, Sequence
from typing import Any, Final, Protocol

from ottla.ports.disk import Buffer, File
from ottla.ports.network import READABLE, WRITABLE
from ottla.ports.real.disk import IOV_MAX

#: One piece of a file where sendfile is not used: above it the copy costs more than further calls.
PIECE_BYTES: Final = 128 * 1024


class ChannelPoller(Protocol):
    """Polls the connections of one owner."""

    def add(self, channel: SocketChannel, token: Any) -> None: ...

    def change(self, channel: SocketChannel, wanted: int) -> None: ...

    def discard(self, channel: SocketChannel) -> None: ...

    def close(self) -> None: ...


class SocketChannel:
    __slots__ = (
        "__weakref__",
        "_closed",
        "_rounds",
        "_socket",
        "fd",
        "peer",
        "receive_into",
        "send",
        "token",
        "wanted",
    )

    #: Bytes into the view; 0 when the peer will send no more.
    receive_into: Callable[[memoryview], int]
    #: How many bytes were taken.
    send: Callable[[Buffer], int]

    def __init__(self, connection: socket.socket, address: tuple[Any, ...], rounds: ChannelPoller) -> None:
        self.fd = connection.fileno()
        self.peer = unmapped(address[0])
        self.receive_into = connection.recv_into
        self.send = connection.send
        self.token: Any = None
        #: What is polled for now: READABLE and WRITABLE bits.
        self.wanted = READABLE
        self._socket = connection
        self._rounds = rounds
        self._closed = False

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.peer}:{self.peer_port} fd={self.fd}>"

    @property
    def peer_port(self) -> int:
        """0 when the other side has gone. Seldom wanted, and connections are many: it is not kept."""
        try:
            return int(self._socket.getpeername()[1])
        except OSError:
            return 0

    @property
    def closed(self) -> bool:
        return self._closed

    @property
    def is_local(self) -> bool:
        try:
            return unmapped(self._socket.getsockname()[0]) == self.peer
        except OSError:  # it has ended already
            return False

    def set_send_buffer(self, size: int) -> None:
        with contextlib.suppress(OSError):
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, size)

    def fileno(self) -> int:
        return self._socket.fileno()

    def send_buffers(self, buffers: Sequence[Buffer]) -> int:
        return self._socket.sendmsg(buffers if len(buffers) <= IOV_MAX else buffers[:IOV_MAX])

    def send_file(self, file: File, position: int, count: int) -> int:
        source = file.fileno()
        if source < 0:
            return self._send_piece(file, position, count)
        return os.sendfile(self._socket.fileno(), source, position, count)

    def _send_piece(self, file: File, position: int, count: int) -> int:
        data = file.read(min(count, PIECE_BYTES), position)
        return self.send(data) if data else 0

    def watch(self, *, reading: bool, writing: bool) -> None:
        wanted = (READABLE if reading else 0) | (WRITABLE if writing else 0)
        if wanted != self.wanted and not self._closed:
            self._rounds.change(self, wanted)
            self.wanted = wanted

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        self.token = None  # the owner usually holds the channel: this ends the circle
        self._rounds.discard(self)
        self._socket.close()


class PortableChannel(SocketChannel):
    """The same without sendfile, whose arguments and answers differ from system to system."""

    __slots__ = ()

    def send_file(self, file: File, position: int, count: int) -> int:
        return self._send_piece(file, position, count)


def unmapped(address: str) -> str:
    """An IPv4 peer of a socket that serves both families, written as IPv4."""
    # Interned: ten thousand connections come from few addresses.
    return sys.intern(address.removeprefix("::ffff:") if "." in address else address)
