"""A connection in memory: two bounded streams of bytes that take their time, and what a socket does with them.

What was sent is first on the way, each piece with its own time of arrival, never before the piece in front of it; then
it lies in the receiver's buffer. Both together are bounded: a sender that finds no room waits, as with a full window.
While the link is cut nothing arrives and nothing is lost: TCP sends it again until the link is healed, or until it
gives up. Then the sender's connection is broken, and its peer knows nothing of that before it sends something itself.
"""

from __future__ import annotations

import errno
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from ottla.ports.disk import Buffer

if TYPE_CHECKING:
    from ottla.ports.memory.fabric import Link

#: Far less than a kernel gives, so that full buffers are met often.
PIPE_BYTES: Final = 64 * 1024

#: On the way behind the last bytes: the sender will send no more.
END: Final = b""
#: The sender has given the connection up.
RESET: Final = None


class Pipe:
    """One direction."""

    __slots__ = (
        "_due_pieces",
        "_held",
        "_held_since",
        "_last_arrival",
        "_refused",
        "_way",
        "arrived",
        "ended",
        "link",
        "receiver",
        "sender",
    )

    def __init__(self, link: Link, sender: Side, receiver: Side) -> None:
        self.link = link
        self.sender = sender
        self.receiver = receiver
        #: What the receiver has not taken yet; `ended` when nothing comes behind it.
        self.arrived = bytearray()
        self.ended = False
        self._way: deque[bytes | None] = deque()
        #: Pieces at the front of the way whose time has come.
        self._due_pieces = 0
        self._last_arrival = 0.0
        #: Bytes on the way and arrived; at most PIPE_BYTES.
        self._held = 0
        #: The sender has found no room, and waits to be woken.
        self._refused = False
        #: When the link was first found cut with something on the way; None while it is not.
        self._held_since: float | None = None

    def room(self) -> int:
        return PIPE_BYTES - self._held

    def send(self, data: Buffer) -> int:
        """Takes what there is room for."""
        taken = min(len(data), self.room())
        if taken:
            self._held += taken
            self.put(bytes(memoryview(data)[:taken]))
        if taken < len(data) or self._held == PIPE_BYTES:
            self._refused = True
        return taken

    def put(self, piece: bytes | None) -> None:
        self._way.append(piece)
        fabric = self.link.fabric
        loop, now = fabric.loop, fabric.loop.time()
        self._last_arrival = max(self._last_arrival, now + self.link.delay()) + self.link.passage(len(piece or b""))
        # In nobody's context: what is on the way arrives whatever becomes of its sender.
        if self._last_arrival <= now:
            loop.call_soon(self._one_is_due, context=fabric.context)
        else:
            loop.call_at(self._last_arrival, self._one_is_due, context=fabric.context)

    def _one_is_due(self) -> None:
        # Counted, not named: whichever of two call-backs runs first, the piece in front arrives first.
        self._due_pieces += 1
        self.flow()

    def flow(self) -> None:
        """Lets arrive what is due, unless the link is cut; called again when it is healed."""
        if self.link.is_cut():
            self._hold()
            return
        self._held_since = None
        due, self._due_pieces = self._due_pieces, 0
        for _ in range(min(due, len(self._way))):
            piece = self._way.popleft()
            if piece is RESET:
                self.receiver.broken()
            elif self.receiver.closed or self.receiver.forgotten:
                if piece != END:
                    self.receiver.refuse()
            elif piece == END:
                self.ended = True
                self.receiver.on_change()
            else:
                self.arrived += piece
                self.receiver.on_change()

    def _hold(self) -> None:
        fabric = self.link.fabric
        fabric.hold(self)
        if self._held_since is None and not self.sender.failed:
            self._held_since = since = fabric.loop.time()
            fabric.loop.call_later(fabric.gives_up_s, self._give_up, since, context=fabric.context)

    def _give_up(self, since: float) -> None:
        """Nothing was confirmed for so long that the sender's system breaks the connection, and forgets it."""
        if self._held_since == since and self.link.is_cut():
            self._way.clear()
            self._due_pieces = 0
            self.sender.timed_out()

    def take(self, size: int) -> bytes:
        data = bytes(memoryview(self.arrived)[:size])
        del self.arrived[:size]
        self._held -= len(data)
        if self._refused and data:
            self._refused = False
            self.link.fabric.loop.call_soon(self._tell_room, context=self.link.fabric.context)
        return data

    def _tell_room(self) -> None:
        self.sender.on_change()


class Side:
    """One end of a connection: what a socket is to a process."""

    __slots__ = (
        "_error",
        "_reset_exchanged",
        "_sending_ended",
        "accepted",
        "address",
        "closed",
        "failed",
        "forgotten",
        "inbound",
        "on_change",
        "outbound",
    )

    inbound: Pipe
    outbound: Pipe

    def __init__(self, address: tuple[str, int]) -> None:
        self.address = address
        #: By a listener; else it is the connecting side.
        self.accepted = False
        self.closed = False
        #: The peer has reset the connection.
        self.failed = False
        #: The peer could not be reached for so long that the connection is over here; the peer does not know.
        self.forgotten = False
        #: A reset was sent, or has come: no other one is due.
        self._reset_exchanged = False
        #: Raised by the next call, once, as a socket does.
        self._error: OSError | None = None
        self._sending_ended = False
        #: Something has become possible: to receive, to send, to find out that it is broken.
        self.on_change: Callable[[], None] = nobody

    def readable(self) -> bool:
        return bool(self.inbound.arrived) or self.inbound.ended or self.failed

    def writable(self) -> bool:
        return self.failed or self.outbound.room() > 0

    def receive(self, size: int) -> bytes:
        self._check_open()
        if self.inbound.arrived:
            return self.inbound.take(self.inbound.link.fabric.chopped(min(size, len(self.inbound.arrived))))
        if self.failed:
            self._raise_error()
            return b""
        if self.inbound.ended:
            return b""
        raise BlockingIOError(errno.EAGAIN, "nothing has arrived")

    def send(self, data: Buffer) -> int:
        self._check_open()
        if self.failed:
            self._raise_error()
            raise BrokenPipeError(errno.EPIPE, "the peer has gone")
        if self._sending_ended:
            raise BrokenPipeError(errno.EPIPE, "the sending side was ended")
        taken = self.outbound.send(data)
        if taken == 0 and len(data) > 0:
            raise BlockingIOError(errno.EAGAIN, "the peer's buffer is full")
        return taken

    def end(self) -> None:
        """Ends the sending half."""
        if not (self._sending_ended or self.failed or self.closed):
            self._sending_ended = True
            self.outbound.put(END)

    def close(self) -> None:
        """As `close` does: an orderly end, or a reset where something was left unread."""
        if self.closed:
            return
        if self.inbound.arrived:
            self.refuse()
        self.end()
        self._gone()

    def abort(self) -> None:
        if not self.closed:
            if not self.failed:
                self.refuse()
            self._gone()

    def vanish(self) -> None:
        """Gone without a word: what still arrives is refused."""
        self._sending_ended = True
        self._gone()

    def refuse(self) -> None:
        if not self._reset_exchanged:
            self._reset_exchanged = True
            self._sending_ended = True
            self.outbound.put(RESET)
            self.failed = True

    def broken(self) -> None:
        """A reset has arrived."""
        self._reset_exchanged = True
        if not self.failed:
            self.failed = True
            self._error = ConnectionResetError(errno.ECONNRESET, "the peer has reset the connection")
            self.on_change()

    def timed_out(self) -> None:
        """What was sent was not confirmed for too long."""
        if not self.failed:
            self.failed = self.forgotten = True
            self._error = TimeoutError(errno.ETIMEDOUT, "the peer has confirmed nothing for too long")
            self.on_change()

    def _gone(self) -> None:
        self.closed = True
        self.on_change = nobody
        self.inbound.link.fabric.forget(self)

    def _check_open(self) -> None:
        if self.closed:
            raise OSError(errno.EBADF, "the connection is closed")

    def _raise_error(self) -> None:
        error, self._error = self._error, None
        if error is not None:
            raise error


def nobody() -> None:
    """Nobody listens yet, or any more."""
