"""The answer to Fetch in steps, for many partitions: the same bytes as `fetch_answer` says, in more pieces."""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct

from ottla.protocol.errors import EncodeError
from ottla.protocol.hot.fetch_answer import (
    ANSWER_HEAD,
    PartitionAnswer,
    RecordsGap,
    TopicAnswer,
    put_topics_flexible,
    put_topics_plain,
)
from ottla.protocol.hot.framing import NodeEndpoint, begin_answer, put_node_endpoints_tag
from ottla.protocol.primitives import ENCODE_FAULTS, LENGTH_MAX, put_compact_count, put_count
from ottla.protocol.stepping import PIECE
from ottla.steps import Steps, pieces

_INT32 = Struct(">i").pack
#: Bytes that become one piece: copied once more, in some microseconds.
_PIECE_BYTES = 1 << 16


class _AnswerPieces:
    """An answer that grows: `pieces`, and `out` that is to be the next one."""

    def __init__(self, version: int, limit: int, out: bytearray) -> None:
        self.version = version
        self.limit = min(limit, LENGTH_MAX)
        self.out = out
        self.pieces: list[bytes | RecordsGap] = []
        #: Of `pieces`.
        self.length = 0
        self._put_topics = put_topics_flexible if version >= 12 else put_topics_plain

    def around(self, topic: str | bytes) -> tuple[bytearray, bytearray]:
        """What the plain encoder says before the count of a topic's partitions, and behind them."""
        out = self._put_topics([], bytearray(), self.version, ((topic, ()),))
        return (out[:-2], out[-1:]) if self.version >= 12 else (out[:-4], out[len(out) :])

    def put(self, topic: str | bytes, partitions: Sequence[PartitionAnswer], cut: int = 0, end: int = 0) -> None:
        """Appends what the plain encoder says of a topic, but for the first `cut` bytes and the last `end`."""
        some: list[bytes | RecordsGap] = []
        last = self._put_topics(some, bytearray(), self.version, ((topic, partitions),))
        if some:
            first = some[0]
            assert isinstance(first, bytes), "a gap follows its partition's fields"
            self.out += memoryview(first)[cut:]
            self._end_piece()
            for piece in some[1:]:
                self._add(piece)
            cut = 0
        self.out += memoryview(last)[cut : len(last) - end]
        if len(self.out) >= _PIECE_BYTES:
            self._end_piece()
        self._check()

    def framed(self) -> list[bytes | RecordsGap]:
        self._end_piece()
        self._check()
        first = self.pieces[0]
        assert isinstance(first, bytes), "an answer begins with its header"
        self.pieces[0] = _INT32(self.length - 4) + first[4:]
        return self.pieces

    def _check(self) -> None:
        if self.length + len(self.out) > self.limit:
            raise EncodeError(f"an answer to FETCH of more than {self.limit} bytes")

    def _end_piece(self) -> None:
        if self.out:
            self._add(bytes(self.out))
            self.out = bytearray()

    def _add(self, piece: bytes | RecordsGap) -> None:
        self.pieces.append(piece)
        self.length += piece.length if isinstance(piece, RecordsGap) else len(piece)


def encode_fetch_response_steps(
    version: int,
    topics: Sequence[TopicAnswer],
    *,
    throttle_ms: int = 0,
    error: int = 0,
    session_id: int = 0,
    node_endpoints: Sequence[NodeEndpoint] = (),
    correlation_id: int,
    limit: int,
) -> Steps[list[bytes | RecordsGap]]:
    """The whole frame; EncodeError as soon as it is longer than `limit` bytes, records in gaps included."""
    if not 4 <= version <= 18:
        raise EncodeError(f"FetchResponse has no version {version}")
    flexible = version >= 12
    put_length = put_compact_count if flexible else put_count
    answer = _AnswerPieces(version, limit, begin_answer(correlation_id, flexible=flexible))
    try:
        answer.out += ANSWER_HEAD(throttle_ms, error, session_id) if version >= 7 else _INT32(throttle_ms)
        put_length(answer.out, len(topics))
        work = PIECE
        for topic, partitions in topics:
            if len(partitions) <= PIECE:
                answer.put(topic, partitions)
                work -= len(partitions) + 1
            else:
                name, tail = answer.around(topic)
                answer.out += name
                put_length(answer.out, len(partitions))
                for piece in pieces(partitions, PIECE):
                    answer.put(topic, piece, len(name) + (1 if flexible else 4), len(tail))
                    yield
                answer.out += tail
            if work <= 0:
                work = PIECE
                yield
        if flexible:
            put_node_endpoints_tag(answer.out, node_endpoints if version >= 16 else ())
    except ENCODE_FAULTS as fault:
        raise EncodeError(f"an answer that version {version} of FetchResponse cannot say: {fault}") from fault
    return answer.framed()
