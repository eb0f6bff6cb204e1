"""What is on its way to a client: how much it is, and what is left of it when a socket has taken a part."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from ottla.handlers.calls.peer import FilePiece, Outgoing

#: What is sent at once, in microseconds; more has its turns. The copy of a megabyte to a socket of the same machine
#: takes a millisecond.
SENT_AT_ONCE_BYTES: Final = 64 * 1024
#: What is left of an answer is copied out of it where it is less than half: a client that has taken most of it would
#: keep the whole, and what is counted is what is left. A copy takes some ten microseconds; of more the whole is kept.
COPIED_REST_BYTES_MAX: Final = 256 * 1024


def left_of(piece: Outgoing, sent: int) -> Outgoing:
    """What the socket has not taken of a piece in memory."""
    view = memoryview(piece)  # type: ignore[arg-type]
    left = view[sent:]
    is_copied = len(left) <= COPIED_REST_BYTES_MAX and 2 * len(left) < len(view.obj)  # type: ignore[arg-type]
    return bytes(left) if is_copied else left


def size_of(pieces: Collection[Outgoing]) -> int:
    size = 0
    for piece in pieces:
        size += piece.count if type(piece) is FilePiece else len(piece)  # type: ignore[arg-type]
    return size


def is_short(pieces: Collection[Outgoing]) -> bool:
    size = 0
    for piece in pieces:
        if type(piece) is FilePiece:
            return False
        size += len(piece)  # type: ignore[arg-type]
    return size <= SENT_AT_ONCE_BYTES
