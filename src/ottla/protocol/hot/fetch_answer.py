"""The answer to Fetch, 4 to 18, around records that need not be in memory.

An answer is a list of pieces to send one after the other: bytes, and `RecordsGap`s that stand for a stretch of a
segment file, which the connection sends with `sendfile`. Records that are given as bytes are joined into the bytes
around them, so that an answer with small records only is a single piece and needs a single `send`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from struct import Struct
from typing import Any

from ottla.protocol.errors import EncodeError
from ottla.protocol.hot.framing import NodeEndpoint, begin_answer, put_node_endpoints_tag, put_tag
from ottla.protocol.primitives import (
    ENCODE_FAULTS,
    LENGTH_MAX,
    put_compact_count,
    put_compact_string,
    put_string,
    put_uvarint,
    uuid_bytes,
)

_INT32 = Struct(">i").pack
_PACK_INT32_INTO = Struct(">i").pack_into
_PAIR = Struct(">qq").pack
ANSWER_HEAD = Struct(">ihi").pack
_PARTITION_4 = Struct(">ihqq").pack
#: With the null list of aborted transactions and the preferred replica that follow.
_PARTITION_12 = Struct(">ihqqqbi").pack
_PARTITION_5 = Struct(">ihqqq").pack
_REPLICA_LENGTH = Struct(">ii").pack
_NULL = b"\xff\xff\xff\xff"
_EPOCH_OFFSET = Struct(">iqb").pack
_LEADER = Struct(">iib").pack
_OFFSET_EPOCH = Struct(">qib").pack


class RecordsGap:
    """Stands for `length` bytes of records that `source`, whatever that is to the caller, has."""

    __slots__ = ("length", "source")

    def __init__(self, length: int, source: Any = None) -> None:
        self.length = length
        self.source = source

    def __repr__(self) -> str:
        return f"RecordsGap({self.length}, {self.source!r})"


#: (partition, error code, high watermark, last stable offset, log start offset, aborted transactions as
#: [(producer id, first offset)] or None, preferred read replica, records as bytes, RecordsGap or None), and behind
#: these, optionally, three tagged fields or None for each: diverging (epoch, end offset), current leader (id, epoch),
#: snapshot (end offset, epoch).
PartitionAnswer = tuple[Any, ...]
TopicAnswer = tuple[str | bytes, Sequence[PartitionAnswer]]


def encode_fetch_response(
    version: int,
    topics: Sequence[TopicAnswer],
    *,
    throttle_ms: int = 0,
    error: int = 0,
    session_id: int = 0,
    node_endpoints: Sequence[NodeEndpoint] = (),
    correlation_id: int | None = None,
) -> list[bytes | RecordsGap]:
    """The answer's body as pieces; with a correlation id the whole frame. What a version cannot say is left out."""
    if not 4 <= version <= 18:
        raise EncodeError(f"FetchResponse has no version {version}")
    out = begin_answer(correlation_id, flexible=version >= 12)
    pieces: list[bytes | RecordsGap] = []
    try:
        out += ANSWER_HEAD(throttle_ms, error, session_id) if version >= 7 else _INT32(throttle_ms)
        if version >= 12:
            put_compact_count(out, len(topics))
            out = put_topics_flexible(pieces, out, version, topics)
            put_node_endpoints_tag(out, node_endpoints if version >= 16 else ())
        else:
            out += _INT32(len(topics))
            out = put_topics_plain(pieces, out, version, topics)
    except ENCODE_FAULTS as fault:
        raise EncodeError(f"an answer that version {version} of FetchResponse cannot say: {fault}") from fault
    if not pieces:
        if correlation_id is not None:
            _PACK_INT32_INTO(out, 0, len(out) - 4)
        return [bytes(out)]
    if out:
        pieces.append(bytes(out))
    return pieces if correlation_id is None else _framed(pieces)


def _framed(pieces: list[bytes | RecordsGap]) -> list[bytes | RecordsGap]:
    total = sum(piece.length if isinstance(piece, RecordsGap) else len(piece) for piece in pieces)
    first = pieces[0]
    assert isinstance(first, bytes), "an answer begins with its header"
    if total - 4 > LENGTH_MAX:
        raise EncodeError(f"an answer of {total} bytes is too long for a frame")
    pieces[0] = _INT32(total - 4) + first[4:]
    return pieces


def put_topics_flexible(
    pieces: list[bytes | RecordsGap], out: bytearray, version: int, topics: Iterable[TopicAnswer]
) -> bytearray:
    for topic, partitions in topics:
        if isinstance(topic, str):
            if version >= 13:
                raise EncodeError(f"version {version} names topics by id, not {topic!r}")
            put_compact_string(out, topic)
        else:
            if version < 13:
                raise EncodeError(f"version {version} names topics by name, not by id")
            out += uuid_bytes(topic)
        put_compact_count(out, len(partitions))
        for answer in partitions:
            aborted = answer[5]
            if aborted is None:
                out += _PARTITION_12(*answer[:5], 0, answer[6])
            else:
                out += _PARTITION_5(*answer[:5])
                put_compact_count(out, len(aborted))
                for row in aborted:
                    out += _PAIR(*row)
                    out.append(0)
                out += _INT32(answer[6])
            records = answer[7]
            if records is None:
                out.append(0)
            elif records.__class__ is RecordsGap:
                put_uvarint(out, records.length + 1)
                pieces.append(bytes(out))
                pieces.append(records)
                out = bytearray()
            else:
                length = len(records) + 1
                if 0x7F < length < 0x4000:  # two bytes, as for most answers that are worth joining
                    out.append(length & 0x7F | 0x80)
                    out.append(length >> 7)
                else:
                    put_uvarint(out, length)
                out += records
            if len(answer) > 8:
                _put_tags(out, *answer[8:])
            else:
                out.append(0)
        out.append(0)
    return out


def _put_tags(
    out: bytearray,
    diverging: tuple[int, int] | None,
    leader: tuple[int, int] | None,
    snapshot: tuple[int, int] | None,
) -> None:
    """The default of each, (-1, -1), is not sent either."""
    tags: list[tuple[int, bytes]] = []
    if diverging is not None and diverging != (-1, -1):
        tags.append((0, _EPOCH_OFFSET(*diverging, 0)))
    if leader is not None and leader != (-1, -1):
        tags.append((1, _LEADER(*leader, 0)))
    if snapshot is not None and snapshot != (-1, -1):
        tags.append((2, _OFFSET_EPOCH(*snapshot, 0)))
    out.append(len(tags))
    for number, value in tags:
        put_tag(out, number, value)


def put_topics_plain(
    pieces: list[bytes | RecordsGap], out: bytearray, version: int, topics: Iterable[TopicAnswer]
) -> bytearray:
    for topic, partitions in topics:
        if not isinstance(topic, str):
            raise EncodeError(f"version {version} names topics by name, not by id")
        put_string(out, topic)
        out += _INT32(len(partitions))
        for answer in partitions:
            out += _PARTITION_5(*answer[:5]) if version >= 5 else _PARTITION_4(*answer[:4])
            aborted = answer[5]
            if aborted is None:
                out += _NULL
            else:
                out += _INT32(len(aborted))
                for row in aborted:
                    out += _PAIR(*row)
            records = answer[7]
            gap = records.__class__ is RecordsGap
            length = -1 if records is None else records.length if gap else len(records)
            out += _REPLICA_LENGTH(answer[6], length) if version >= 11 else _INT32(length)
            if gap:
                pieces.append(bytes(out))
                pieces.append(records)
                out = bytearray()
            elif records is not None:
                out += records
    return out
