"""What clients may take of a served tree, each bound with its reason."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ottla.coordination.interface import REQUEST_BYTES_MAX
from ottla.coordination.zookeeper.codes import OpCode

#: A client's time-out is brought between these: ZooKeeper's `minSessionTimeout` and `maxSessionTimeout`, which are two
#: and twenty ticks of two seconds there. Brokers on one host want 1.5 s.
SESSION_MS_MIN: Final = 1_000
SESSION_MS_MAX: Final = 60_000
#: A connect request has 45 bytes, and a password of a client may be any.
HANDSHAKE_BYTES_MAX: Final = 1_024
#: How long a connection may take to send it: ZooKeeper's `sessionlessCnxnTimeout`.
HANDSHAKE_MS_MAX: Final = 10_000
#: Requests of one connection that wait for their answers; ZooKeeper has 1,000 for all together.
PIPELINED_MAX: Final = 1_000
#: Of all connections together, from which on only those that have none are served on, one short request each: each
#: takes some twenty microseconds.
CROWDED: Final = 1_000
#: The same for bytes, of requests and of names in answers that are being made. Objects take several times as much.
CROWDED_BYTES: Final = 16 * 1024 * 1024
#: An operation of a multi is some 60 bytes of a frame, and some kilobytes once it is read, done, revocable and
#: answered. So one multi of ten thousand is under way, or as many as have half a megabyte.
MULTI_WEIGHT: Final = 32
#: Fewer than the store's queue holds, so that no request is refused for want of a place.
WAITING_MAX: Final = 16_000
#: About what a node's name takes in an answer that is being made.
NAME_BYTES: Final = 40
#: While so much of its answers is untaken, nothing more is read of a connection.
UNTAKEN_BYTES: Final = 1024 * 1024
#: A connection that takes nothing of its answers for so long is closed. Its session may live on.
UNTAKEN_MS_MAX: Final = 10_000
#: Watches of one connection: those of a controller are two or three.
WATCHES_MAX: Final = 100_000
#: Of all connections: some 250 bytes each.
WATCHES_ALL_MAX: Final = 500_000
#: Characters of their paths, which may be long.
WATCHED_CHARACTERS_MAX: Final = 64 * 1024 * 1024
#: Longer than any path that a client means; a path is looked through in one piece.
PATH_CHARACTERS_MAX: Final = 16 * 1024


def weight_of(op: int, size: int) -> int:
    """What a request of this size counts for while it waits."""
    return size * MULTI_WEIGHT if op == OpCode.MULTI else size


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedLimits:
    session_ms_min: int = SESSION_MS_MIN
    session_ms_max: int = SESSION_MS_MAX
    #: All together. ZooKeeper's `maxCnxns`, which has no bound unless it is set.
    connections_max: int = 10_000
    #: From one address; ZooKeeper's `maxClientCnxns`, 60 there. Whole clusters run on one host here.
    connections_per_address_max: int = 5_000
    #: ZooKeeper's `jute.maxbuffer`.
    frame_bytes_max: int = REQUEST_BYTES_MAX
    #: What connections hold all together: requests that come in or wait, and answers that are not taken. Above it the
    #: connection that holds the most is closed.
    held_bytes_max: int = 256 * 1024 * 1024

    def negotiated(self, asked_ms: int) -> int:
        return min(max(asked_ms, self.session_ms_min), self.session_ms_max)
