"""An outgoing connection as asyncio presents one: a Transport that feeds a Protocol.

The order of calls is asyncio's: `connection_made`, then data, perhaps `eof_received`, and `connection_lost` once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from contextvars import copy_context
from typing import Any, Final

from ottla.ports.disk import Buffer
from ottla.ports.memory.loop import VirtualLoop
from ottla.ports.memory.pipe import Side

#: One `data_received`; asyncio's own transports read as much.
READ_BYTES: Final = 256 * 1024
#: asyncio's own default.
HIGH_WATER_BYTES: Final = 64 * 1024


class MemoryTransport(asyncio.Transport):
    def __init__(self, loop: VirtualLoop, side: Side, peer: tuple[str, int], protocol: asyncio.BaseProtocol) -> None:
        super().__init__({"peername": peer, "sockname": side.address, "socket": None})
        self._loop = loop
        #: Of the process that has connected: what arrives is its business, and waits while its process stands still.
        self._context = copy_context()
        self._work_is_due = False
        self._side = side
        self._protocol = protocol
        self._unsent = bytearray()
        self._high, self._low = HIGH_WATER_BYTES, HIGH_WATER_BYTES // 4
        self._reading_paused = False
        self._writing_paused = False
        self._eof_received = False
        self._ending = False
        self._closing = False
        self._lost = False

    def start(self) -> None:
        self._protocol.connection_made(self)
        self._side.on_change = self._work_soon
        self._work_soon()

    # The connection's life

    def _work_soon(self) -> None:
        if not self._work_is_due:
            self._work_is_due = True
            self._loop.call_soon(self._work, context=self._context)

    def _work(self) -> None:
        """Receives and sends what can be, after anything has changed."""
        self._work_is_due = False
        if self._side.closed:
            return
        try:
            self._flush()
            self._receive()
        except OSError as error:
            self._lose(error)

    def _receive(self) -> None:
        if self._reading_paused or self._closing or self._eof_received or not self._side.readable():
            return
        if isinstance(self._protocol, asyncio.BufferedProtocol):
            view = memoryview(self._protocol.get_buffer(-1))
            data = self._side.receive(len(view))
            view[: len(data)] = data
            if data:
                self._protocol.buffer_updated(len(data))
        else:
            assert isinstance(self._protocol, asyncio.Protocol)
            data = self._side.receive(READ_BYTES)
            if data:
                self._protocol.data_received(data)
        if data:
            if self._side.readable():
                self._work_soon()
            return
        self._eof_received = True
        if not self._protocol.eof_received():
            self.close()

    def _flush(self) -> None:
        while self._unsent and not self._side.closed:
            try:
                taken = self._side.send(self._unsent)
            except BlockingIOError:
                break
            del self._unsent[:taken]
        if self._writing_paused and len(self._unsent) <= self._low:
            self._writing_paused = False
            self._protocol.resume_writing()
        if not self._unsent:
            if self._ending:
                self._side.end()
            if self._closing:
                self._lose(None)

    def _lose(self, error: OSError | None) -> None:
        if not self._lost:
            self._lost = self._closing = True
            self._unsent.clear()
            if error is None:
                self._side.close()
            else:
                self._side.abort()
            self._loop.call_soon(self._protocol.connection_lost, error, context=self._context)

    # asyncio.Transport

    def write(self, data: Buffer) -> None:
        if self._ending:
            raise RuntimeError("Cannot call write() after write_eof()")
        if self._closing or not data:
            return
        idle = not self._unsent
        self._unsent += data
        if idle:
            try:
                self._flush()
            except OSError as error:
                self._lose(error)
        if len(self._unsent) > self._high and not self._writing_paused:
            self._writing_paused = True
            self._protocol.pause_writing()

    def writelines(self, list_of_data: Iterable[Any]) -> None:
        self.write(b"".join(list_of_data))

    def can_write_eof(self) -> bool:
        return True

    def write_eof(self) -> None:
        if not (self._ending or self._closing):
            self._ending = True
            if not self._unsent:
                self._side.end()

    def close(self) -> None:
        if not self._closing:
            self._closing = True
            if not self._unsent:
                self._lose(None)

    def abort(self) -> None:
        if not self._lost:
            self._side.abort()
            self._lose(None)

    def is_closing(self) -> bool:
        return self._closing

    def pause_reading(self) -> None:
        self._reading_paused = True

    def resume_reading(self) -> None:
        if self._reading_paused:
            self._reading_paused = False
            self._work_soon()

    def is_reading(self) -> bool:
        return not (self._reading_paused or self._closing)

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        if high is None:
            high = 4 * low if low is not None else HIGH_WATER_BYTES
        if low is None:
            low = high // 4
        if not high >= low >= 0:
            raise ValueError(f"high ({high}) must be at least low ({low}), and that at least 0")
        self._high, self._low = high, low

    def get_write_buffer_limits(self) -> tuple[int, int]:
        return self._low, self._high

    def get_write_buffer_size(self) -> int:
        return len(self._unsent)

    def get_protocol(self) -> asyncio.BaseProtocol:
        return self._protocol

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        self._protocol = protocol
