"""What cannot be the length of a frame, and may be the beginning of another protocol.

A browser, a health check and a client that is configured for TLS come to Kafka's port every day. Their first four
bytes, read as a length, are a few hundred million or more, which is beyond the limit of a frame unless somebody has
raised it that far.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from ottla import logs
from ottla.protocol.fields import INT32
from ottla.server.connection import Connection

log_event = logs.logger("server")


class AnotherProtocol(NamedTuple):
    what: str
    #: What a reader of the log may do about it.
    advice: str


_HTTP: Final = AnotherProtocol("an HTTP request", "metrics, health and readiness are on the port ottla.metrics.port")
_TLS: Final = AnotherProtocol("a TLS handshake", "the client needs security.protocol=PLAINTEXT")

#: How the methods of HTTP begin, and the greeting of HTTP/2.
_METHODS: Final = frozenset({b"GET ", b"HEAD", b"POST", b"PUT ", b"DELE", b"OPTI", b"CONN", b"PATC", b"TRAC", b"PRI "})
#: A record of a handshake, of any version from SSL 3.0 on: a byte for the kind, then the major version.
_HANDSHAKE: Final = b"\x16\x03"


def another_protocol(length: int) -> AnotherProtocol | None:
    first = INT32.pack(length)
    if first in _METHODS:
        return _HTTP
    return _TLS if first.startswith(_HANDSHAKE) else None


def log_bad_frame(length: int, connection: Connection) -> None:
    if (named := another_protocol(length)) is not None:
        log_event.warning_limited(
            f"closing a connection: {named.what} came to a listener that speaks Kafka's protocol, without TLS",
            peer=connection.host,
            listener=connection.listener.name,
            advice=named.advice,
        )
    else:
        log_event.warning_limited(
            "closing a connection that announced a frame of a bad size", peer=connection.host, bytes=length
        )
