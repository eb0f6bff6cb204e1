"""Where the bytes of requests stand: a buffer for each connection that has sent something that is not served yet.

A connection that has nothing to say holds no buffer. Frames are served where they were received, so a buffer goes back
to the pool only when the round has written, or copied, what was served from it.
"""

from __future__ import annotations

from typing import Final

from ottla.server.buffers import FIRST_READ_BYTES, Buffer, BufferPool
from ottla.server.connection import Connection

#: What waits for its turn is copied, up to this size, so that its buffer can be used by others.
PARKED_BYTES_MAX: Final = 16 * 1024
#: The beginning of a frame, up to this size, gets a buffer of its own: crowds that send no more would hold 64 KB each.
BEGINNING_BYTES_MAX: Final = 1024
#: What is left free behind a rest that was moved, for the next bytes.
ROOM_BYTES: Final = 1024
#: Received from one connection in one go: a millisecond or two. Without a bound the kernel copies for as long as the
#: peer keeps up with it: 50 MB and 200 ms in one call.
RECEIVE_BYTES_MAX: Final = 2 * 1024 * 1024
#: A rest of more than this is not worth another buffer: the one it has is no more than twice as large. Pages of larger
#: ones come with the bytes that are sent.
SHRUNK_BYTES_MAX: Final = FIRST_READ_BYTES // 2


class IncomingBuffers:
    def __init__(self) -> None:
        self.pool = BufferPool()
        #: Buffers whose frames are served, but whose batches the round has yet to write.
        self.used: list[Buffer] = []

    def receive(self, connection: Connection) -> int:
        """Reads once: the number of bytes, 0 if the peer sends no more, -1 if whole frames fill the buffer.

        BlockingIOError: nothing is there. OSError: the connection is broken, or nothing can hold what it sends.
        """
        buffer = connection.buffer
        if buffer is None:
            buffer = self.pool.small()
            received = 0
            try:
                received = connection.channel.receive_into(buffer.view)
            finally:
                if received <= 0:
                    self.pool.give_back(buffer)
            if received:
                self.hold(connection, buffer, received)
            return received
        if connection.end == buffer.size:
            if buffer.kept:
                _move(connection, buffer, self.pool.at_least(connection.end - connection.start + ROOM_BYTES))
                assert connection.buffer is not None
                buffer = connection.buffer
            elif not _moved_to_front(connection, buffer):
                return -1
        end = connection.end
        received = connection.channel.receive_into(buffer.view[end : end + RECEIVE_BYTES_MAX])
        connection.end = end + received
        return received

    def hold(self, connection: Connection, buffer: Buffer, received: int) -> None:
        """The first bytes that a connection without a buffer has sent."""
        connection.buffer = buffer
        connection.begun_ms = connection.last_active_ms
        connection.start = 0
        connection.end = received

    def keep_rest(self, connection: Connection, buffer: Buffer, needed: int) -> None:
        """Behind the frames that were served; `needed` are the bytes of the frame whose beginning stands there.

        OSError: there is no memory for it.
        """
        start, end = connection.start, connection.end
        if start == end:
            connection.buffer = None
            self.release(buffer)
        elif end - start <= BEGINNING_BYTES_MAX and (buffer.size >= FIRST_READ_BYTES or end == buffer.size):
            _move(connection, buffer, Buffer(end - start + ROOM_BYTES))
            self.release(buffer)
        elif end == buffer.size or (
            # What was given little room gets more when that is full, or each byte would bring it 64 KB.
            needed > buffer.size - start and buffer.size >= FIRST_READ_BYTES and end - start > BEGINNING_BYTES_MAX
        ):
            _move(connection, buffer, self.pool.at_least(max(needed, FIRST_READ_BYTES)))
            self.used.append(buffer)

    def park(self, connection: Connection, buffer: Buffer) -> None:
        """Keeps what waits for its turn in as much memory as it takes: crowds would soon need many fresh buffers."""
        rest = connection.end - connection.start
        if rest > PARKED_BYTES_MAX or buffer.size != FIRST_READ_BYTES:
            return
        _move(connection, buffer, Buffer(rest))
        self.release(buffer)

    def shrink(self, connection: Connection) -> None:
        """Outside of a round: what a connection holds becomes no more than what it has sent, and a little."""
        buffer, rest = connection.buffer, connection.end - connection.start
        if buffer is None or buffer.size != FIRST_READ_BYTES or rest > SHRUNK_BYTES_MAX:
            return
        _move(connection, buffer, Buffer(rest + ROOM_BYTES))
        if not buffer.in_use:
            self.pool.give_back(buffer)

    def let_go(self, connection: Connection) -> None:
        """The connection is closed; batches from its buffer may still be staged."""
        if connection.buffer is not None:
            self.used.append(connection.buffer)
            connection.buffer = None

    def release(self, buffer: Buffer) -> None:
        """Gives a buffer back, at once if nobody needs what stood in it."""
        if buffer.in_use:
            self.used.append(buffer)
        else:
            self.pool.give_back(buffer)

    def give_back_used(self) -> None:
        """The round is written."""
        for buffer in self.used:
            self.pool.give_back(buffer)
        self.used.clear()

    def abandon_used(self) -> None:
        """The round was not written: what is staged may stand in these buffers, so nobody may receive into them."""
        self.used.clear()


def _moved_to_front(connection: Connection, buffer: Buffer) -> bool:
    """Makes room behind the rest of a frame; False where whole frames fill the buffer and wait for their turn."""
    start = connection.start
    if start == 0:
        return False
    rest = connection.end - start
    # Nothing of it is in use: a round receives from a connection before it serves it.
    buffer.data[:rest] = buffer.data[start : connection.end]
    connection.start = 0
    connection.end = rest
    return True


def _move(connection: Connection, buffer: Buffer, other: Buffer) -> None:
    rest = connection.end - connection.start
    other.data[:rest] = buffer.data[connection.start : connection.end]
    connection.buffer = other
    connection.start = 0
    connection.end = rest
