"""Answers to Fetch: small reads are copied into the answer, large ones go from the segment to the socket by sendfile.

One joined send beats a header, a sendfile and a trailer as long as its copies are cheaper than two more system calls.
Here the records are copied twice on their way; a request that is recognised (`fetch_memo`) reads them into its own
buffer, and is joined up to that buffer's size.
"""

from __future__ import annotations

from typing import Any, Final

from ottla.handlers.fetch_read import PartitionRead
from ottla.handlers.peer import FilePiece, Outgoing
from ottla.model import ErrorCode
from ottla.protocol.hot.fetch import FetchRequest
from ottla.protocol.hot.fetch_answer import RecordsGap, encode_fetch_response

_NO_PREFERRED_REPLICA: Final = -1
#: From here on topics are named by their ids.
_BY_ID: Final = 13


def encode_answer(version: int, correlation: int, session_id: int, reads: list[PartitionRead]) -> list[Outgoing]:
    """A whole frame in pieces."""
    topics: list[tuple[str | bytes, list[tuple[Any, ...]]]] = []
    for read in reads:
        topic = read.asked.topic
        if not topics or topics[-1][0] != topic:
            topics.append((topic, []))
        topics[-1][1].append(_partition(read))
    pieces = encode_fetch_response(version, topics, session_id=session_id, correlation_id=correlation)
    return [_outgoing(piece) for piece in pieces]


def encode_empty(version: int, correlation: int, error: int, session_id: int, throttle_ms: int) -> bytes:
    """An answer without partitions: to a request whose session is not what it thinks, or that is held back."""
    (piece,) = encode_fetch_response(
        version, [], throttle_ms=throttle_ms, error=error, session_id=session_id, correlation_id=correlation
    )
    assert isinstance(piece, bytes)
    return piece


def encode_nonsense(version: int, correlation: int, request: FetchRequest) -> bytes:
    """The answer to a request that asks for what there is not, in Kafka's way: of each partition an error, and from
    version 13 on of the request alone."""
    error = ErrorCode.UNKNOWN_SERVER_ERROR
    topics: list[tuple[str | bytes, list[tuple[Any, ...]]]] = []
    if version < _BY_ID:
        topics = [
            (topic, [(partition[0], error, -1, -1, -1, (), _NO_PREFERRED_REPLICA, b"") for partition in partitions])
            for topic, partitions in request.topics
        ]
    (piece,) = encode_fetch_response(version, topics, error=error, correlation_id=correlation)
    assert isinstance(piece, bytes)
    return piece


def _partition(read: PartitionRead) -> tuple[Any, ...]:
    records: bytes | RecordsGap = b""
    if read.slice is not None and read.slice.size:
        records = read.records or RecordsGap(read.slice.size, read.slice)
    answer = (
        read.asked.partition,
        read.error,
        read.high_watermark,
        read.last_stable_offset,
        read.log_start_offset,
        read.aborted,
        _NO_PREFERRED_REPLICA,
        records,
    )
    if read.diverging is None:
        return answer
    return (*answer, read.diverging, None, None)


def _outgoing(piece: bytes | RecordsGap) -> Outgoing:
    if isinstance(piece, bytes):
        return piece
    return FilePiece(piece.source.file, piece.source.position, piece.length)
