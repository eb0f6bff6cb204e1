"""One connection of a served tree: bytes in, frames out in their order.

Answers stand in `outgoing` in the order in which the store gave them, with the notifications between them where the
changes were. An answer that is made in steps holds its place until it is made, and so all behind it wait for it.

    accepted ──connect request──▶ greeting ──session opened or taken up again──▶ greeted ──▶ closed
        └─four-letter word, bad frame, ten seconds─────────────────────────────────────────────▲
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final

from ottla.coordination.interface import WatchEvent
from ottla.coordination.served.limits import PIPELINED_MAX, UNTAKEN_BYTES
from ottla.coordination.zookeeper.frames import encode_event
from ottla.coordination.zookeeper.messages import notification
from ottla.ports.network import Channel

#: What one call gives to the socket, and what a connection sends in one turn.
SENT_AT_ONCE_BYTES: Final = 256 * 1024


class Account:
    """Bytes that all connections hold together."""

    __slots__ = ("total",)

    def __init__(self) -> None:
        self.total = 0


class AnswerPlace:
    """The place of an answer that is being made."""

    __slots__ = ("frame",)

    def __init__(self) -> None:
        self.frame: bytes | None = None


class Connection:
    __slots__ = (
        "_account",
        "_wake",
        "accepted_ms",
        "busy",
        "channel",
        "closed",
        "ends_when_sent",
        "grace_ms",
        "greeted",
        "greeting",
        "has_frame",
        "held_bytes",
        "incoming",
        "is_new",
        "key",
        "outgoing",
        "outgoing_bytes",
        "read_only_known",
        "session_id",
        "timeout_ms",
        "untaken_since_ms",
        "waiting",
        "woken",
    )

    def __init__(
        self, channel: Channel, key: int, now_ms: int, account: Account, wake: Callable[[Connection], None]
    ) -> None:
        self.channel = channel
        #: Of this connection and no other: its watches are left under it, since they end with it.
        self.key = key
        self.accepted_ms = now_ms
        #: What was received and is not served: at most one frame and what was read behind it.
        self.incoming = bytearray()
        #: Its first four bytes have not come yet, which may be a word.
        self.is_new = True
        #: What is in `incoming` was not looked at to its end, since something has to come first.
        self.has_frame = False
        #: 0 until it is greeted.
        self.session_id = 0
        self.timeout_ms = 0
        #: Whether the client knows of read-only servers, and is answered accordingly.
        self.read_only_known = True
        #: Its session is being opened, or looked for.
        self.greeting = False
        self.greeted = False
        #: A long request of it is being served, the only one; those behind it wait.
        self.busy = False
        #: Requests that the store has, and how many bytes they are.
        self.waiting = 0
        self.held_bytes = 0
        self.outgoing: deque[bytes | memoryview | AnswerPlace] = deque()
        #: Of those that are made.
        self.outgoing_bytes = 0
        #: Since when the socket has taken nothing of what there is; None where it takes all.
        self.untaken_since_ms: int | None = None
        #: Nothing more is taken; it is closed when all is sent.
        self.ends_when_sent = False
        self.closed = False
        #: Its session is to end so long after this connection; None where it has not asked for that.
        self.grace_ms: int | None = None
        #: Stands among those that something has happened to.
        self.woken = False
        self._account = account
        self._wake = wake

    @property
    def all_bytes(self) -> int:
        return len(self.incoming) + self.held_bytes + self.outgoing_bytes

    @property
    def takes(self) -> bool:
        """Whether its next frame may be served."""
        return not (
            self.busy
            or self.greeting
            or self.closed
            or self.ends_when_sent
            or self.waiting >= PIPELINED_MAX
            or self.outgoing_bytes >= UNTAKEN_BYTES
        )

    @property
    def is_heard(self) -> bool:
        """Whether something that it has sent waits for this server."""
        return self.busy or self.waiting > 0 or self.has_frame

    # What comes in.

    def received(self, data: memoryview) -> None:
        self.incoming += data
        self._account.total += len(data)

    def consume(self, size: int) -> None:
        del self.incoming[:size]
        self._account.total -= size

    def hold(self, size: int) -> None:
        """A request of this size waits."""
        self.waiting += 1
        self.held_bytes += size
        self._account.total += size

    def let_go(self, size: int) -> None:
        self.waiting -= 1
        self.held_bytes -= size
        self._account.total -= size

    # What goes out.

    def send(self, frame: bytes) -> None:
        if self.closed:
            return
        self.outgoing.append(frame)
        self._add(len(frame))

    def send_later(self) -> AnswerPlace:
        later = AnswerPlace()
        self.outgoing.append(later)
        return later

    def made(self, later: AnswerPlace, frame: bytes) -> None:
        """An answer that had its place kept."""
        if not self.closed:
            later.frame = frame
            self._add(len(frame))

    def _add(self, size: int) -> None:
        self.outgoing_bytes += size
        self._account.total += size
        self._wake(self)

    def on_event(self, event: WatchEvent) -> None:
        """The watch that all requests of this connection leave."""
        self.send(encode_event(notification(event.type, event.path)))

    def end_when_sent(self) -> None:
        self.ends_when_sent = True
        self._wake(self)

    def wake(self) -> None:
        self._wake(self)

    def flush(self, now_ms: int) -> None:
        """Gives the socket what it takes, within a bound. Raises OSError where the connection is broken."""
        left = SENT_AT_ONCE_BYTES
        while left > 0 and (ready := self._ready(left)):
            try:
                sent = self.channel.send(ready)
            except BlockingIOError:
                sent = 0
            if not sent:
                if self.untaken_since_ms is None:
                    self.untaken_since_ms = now_ms
                break
            self.untaken_since_ms = None
            self._sent(sent)
            left -= sent
            if sent < len(ready):
                self.untaken_since_ms = now_ms
                break
        self._watch()

    @property
    def has_ready(self) -> bool:
        """Whether something is there to be sent."""
        first = self.outgoing[0] if self.outgoing else None
        return first is not None and not (isinstance(first, AnswerPlace) and first.frame is None)

    def _ready(self, size_max: int) -> bytes | memoryview:
        """The first bytes that may be sent, in one piece."""
        parts: list[bytes | memoryview] = []
        size = 0
        for item in self.outgoing:
            part = item.frame if isinstance(item, AnswerPlace) else item
            if part is None or (parts and size + len(part) > size_max):
                break
            parts.append(part)
            size += len(part)
        if len(parts) == 1:
            return memoryview(parts[0])[:size_max]
        return b"".join(parts)

    def _sent(self, size: int) -> None:
        self.outgoing_bytes -= size
        self._account.total -= size
        while size:
            first = self.outgoing.popleft()
            part = first.frame if isinstance(first, AnswerPlace) else first
            assert part is not None
            if len(part) > size:
                self.outgoing.appendleft(memoryview(part)[size:])
                return
            size -= len(part)

    def _watch(self) -> None:
        reading = self.takes and not self.has_frame
        self.channel.watch(reading=reading, writing=self.untaken_since_ms is not None)

    def close(self) -> None:
        """Once. What still waits in the store is answered to nobody."""
        self.closed = True
        self._account.total -= len(self.incoming) + self.outgoing_bytes
        self.incoming = bytearray()
        self.outgoing.clear()
        self.outgoing_bytes = 0
        self.channel.close()
