"""Answers to Fetch: small reads are copied into the answer, large ones go from the segment to the socket by sendfile.

One joined send beats a header, a sendfile and a trailer as long as its copies are cheaper than two more system calls.
Here the records are copied twice on their way; a request that is recognised (`fetch_memo`) reads them into its own
buffer, and is joined up to that buffer's size.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, Final

from ottla.handlers.calls.peer import FilePiece, Outgoing
from ottla.handlers.fetch.reading import PartitionRead
from ottla.model import ErrorCode
from ottla.protocol.hot.fetch import FetchRequest
from ottla.protocol.hot.fetch_answer import RecordsGap, encode_fetch_response
from ottla.protocol.hot.fetch_answer_steps import encode_fetch_response_steps
from ottla.steps import Steps, pieces

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


def answer_in_steps(
    version: int, correlation: int, session_id: int, reads: list[PartitionRead], limit: int
) -> Steps[list[Outgoing]]:
    """The same in steps. A fault here is one of ours, as is an answer of more than `limit` bytes."""
    topics: list[tuple[str | bytes, _Partitions]] = []
    first = 0
    for some in pieces(enumerate(reads)):
        for at, read in some:
            if read.asked.topic != reads[first].asked.topic:
                topics.append((reads[first].asked.topic, _Partitions(reads, first, at)))
                first = at
        yield
    if reads:
        topics.append((reads[first].asked.topic, _Partitions(reads, first, len(reads))))
    encoded = yield from encode_fetch_response_steps(
        version, topics, session_id=session_id, correlation_id=correlation, limit=limit
    )
    return [_outgoing(piece) for piece in encoded]


class _Partitions(Sequence[tuple[Any, ...]]):
    """A topic's partitions, each made when it is asked for: all of them together would take much memory."""

    def __init__(self, reads: list[PartitionRead], start: int, end: int) -> None:
        self._reads = reads
        self._start = start
        self._end = end

    def __len__(self) -> int:
        return self._end - self._start

    def __getitem__(self, at: Any) -> Any:
        return _partition(self._reads[self._start + at])

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        return map(_partition, islice(self._reads, self._start, self._end))


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
        topics = [(topic, [_nonsense(each[0]) for each in partitions]) for topic, partitions in request.topics]
    (piece,) = encode_fetch_response(version, topics, error=error, correlation_id=correlation)
    assert isinstance(piece, bytes)
    return piece


def nonsense_in_steps(version: int, correlation: int, request: FetchRequest, limit: int) -> Steps[list[Outgoing]]:
    error = ErrorCode.UNKNOWN_SERVER_ERROR
    topics: list[tuple[str | bytes, list[tuple[Any, ...]]]] = []
    if version < _BY_ID:
        for topic, partitions in request.topics:
            answers: list[tuple[Any, ...]] = []
            topics.append((topic, answers))
            for some in pieces(partitions):
                answers += [_nonsense(each[0]) for each in some]
                yield
    encoded = yield from encode_fetch_response_steps(
        version, topics, error=error, correlation_id=correlation, limit=limit
    )
    return [_outgoing(piece) for piece in encoded]


def _nonsense(partition: int) -> tuple[Any, ...]:
    return (partition, ErrorCode.UNKNOWN_SERVER_ERROR, -1, -1, -1, (), _NO_PREFERRED_REPLICA, b"")


def _partition(read: PartitionRead) -> tuple[Any, ...]:
    records: bytes | RecordsGap = b""
    if read.slice is not None and read.slice.size:
        records = read.records or RecordsGap(read.slice.size, read)
    answer = (
        read.asked.partition,
        read.error,
        read.high_watermark,
        read.last_stable_offset,
        read.log_start_offset,
        read.aborted,
        read.preferred,
        records,
    )
    if read.diverging is None:
        return answer
    return (*answer, read.diverging, None, None)


def _outgoing(piece: bytes | RecordsGap) -> Outgoing:
    if isinstance(piece, bytes):
        return piece
    read: PartitionRead = piece.source
    assert read.slice is not None
    assert read.slice.file is not None
    return FilePiece(read.slice.file, read.slice.position, piece.length, read.of_leader)
